"""``labelsieve report``: what a run shows, as a page, tables and figures."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelsieve.bench import RunError, require_packages
from labelsieve.cli.console import messages, results
from labelsieve.cli.fitting import progress
from labelsieve.cli.tables import lay_out
from labelsieve.report import missing_packages

if TYPE_CHECKING:
    from labelsieve.report.analysis import Analysis

EPILOG = """\
Examples:

labelsieve report

labelsieve report tiny

labelsieve report runs/paper-lite --control pml-fsmir --out docs/results
"""

_RUNS = Path("runs")


def report(
    run: Annotated[
        str | None,
        typer.Argument(metavar="[RUN]", help="Run folder, or its name below runs/; the latest by default."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the report; 'report' in the run folder by default.")
    ] = None,
    control: Annotated[
        str | None, typer.Option(metavar="METHOD", help="The method that the others are compared with.")
    ] = None,
    figures: Annotated[bool, typer.Option(help="Draw figures, which takes most of the time.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON for programs.")] = False,
) -> None:
    """Write the report of a run: a page, tables and figures.

    A run that is not finished has a report too, of what is there.
    """
    require_packages()
    needed = [name for name in missing_packages() if figures or name != "matplotlib"]
    if needed:
        raise RunError(f"a report needs {' and '.join(needed)}: pip install 'labelsieve[report]'")
    from labelsieve.bench.results import read_results
    from labelsieve.bench.store import database_path
    from labelsieve.report.analysis import analyse
    from labelsieve.report.experiment import refuse_to_replace, write_report

    path = database_path(run if run is not None else _latest_run())
    folder = out or path.parent / "report"
    refuse_to_replace(folder)
    with progress(messages()) as name_activity:
        name_activity(f"reading {path.parent}")
        found = read_results(path)
        name_activity("comparing")
        analysis = analyse(found, control=control)
        try:
            page = write_report(analysis, folder, figures=figures, announce=name_activity)
        except OSError as error:
            raise RunError(
                f"{folder}: cannot be written ({error}); name another folder with --out."
            ) from None
    _tell(analysis, page, as_json)


def _latest_run() -> Path:
    """The run below ``runs`` that changed last."""
    from labelsieve.bench.store import FILE_NAME

    # Until a runner closes the file, its news lie in a second one.
    found = [path for ending in ("", "-wal") for path in _RUNS.glob(f"*/{FILE_NAME}{ending}")]
    if not found:
        raise RunError(f"no run is below {_RUNS}/; name one, or start one with: labelsieve bench run tiny")
    return max(found, key=lambda path: path.stat().st_mtime).parent


def _tell(analysis: Analysis, page: Path, as_json: bool) -> None:
    from labelsieve.report.findings import find, missing_parts

    missing, findings = missing_parts(analysis), find(analysis)
    among_all = analysis.main.among_all()
    overall = analysis.main.overall
    if as_json:
        typer.echo(json.dumps(_as_dict(analysis, page, missing, findings), indent=2, allow_nan=False))
        return
    console = results()
    for text in (*missing, *findings):
        console.print(text)
    if len(overall) > 1:
        names = sorted(among_all, key=among_all.__getitem__) if among_all else list(overall)
        columns = {
            "method": names,
            "average rank": [f"{overall[name]:.2f}" if name in overall else "" for name in names],
        }
        if len(among_all) > len(overall):
            columns = {
                "method": columns["method"],
                "with references": [f"{among_all[name]:.2f}" for name in names],
                "average rank": columns["average rank"],
            }
        console.print()
        console.print(lay_out(console.width, columns, long="method"))
        console.print()
    console.print(f"wrote {page}", soft_wrap=True)


def _as_dict(analysis: Analysis, page: Path, missing: list[str], findings: list[str]) -> dict[str, Any]:
    """What was found, as values JSON can hold."""
    main = analysis.main
    return {
        "page": str(page),
        "complete": analysis.coverage.complete,
        "missing": missing,
        "findings": findings,
        "control": main.control or None,
        "average_ranks": main.overall,
        "average_ranks_with_references": main.among_all(),
        "nemenyi_cd": main.nemenyi_cd,
        "bonferroni_dunn_cd": main.bonferroni_dunn_cd,
        "tests": {
            standing.metric: {
                name: {
                    # Perfect agreement gives an infinite statistic, which JSON has no word for.
                    "statistic": test.statistic if math.isfinite(test.statistic) else None,
                    "p_value": test.p_value,
                }
                for name, test in (
                    ("friedman", standing.friedman),
                    ("iman_davenport", standing.iman_davenport),
                )
                if test is not None
            }
            for standing in main.standings
        },
    }
