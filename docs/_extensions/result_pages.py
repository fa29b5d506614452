"""Write a page for every committed experiment, with findings, ranks and tables, and the leaderboard of all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from committed_results import leaderboard, reports
from labelsieve.report.cd_diagram import draw_cd_diagram
from labelsieve.report.leaderboard import MEASURED_OUTSIDE, find, render_leaderboard
from labelsieve.report.page import Report, render_report
from labelsieve.report.tables import as_markdown
from written import write_page

if TYPE_CHECKING:
    from sphinx.application import Sphinx

#: Sections whose tables are shown. The page of `labelsieve report` has all.
_SHOWN = ("ranks", "metrics", "references", "paper", "noise", "ablation", "sensitivity", "stability")
_MOST_ROWS = 40
_BOARD = "leaderboard_page.html"


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before Sphinx reads them."""
    (app.srcdir / "_extra").mkdir(exist_ok=True)  # Sphinx looks for it before it reads pages
    app.connect("builder-inited", _write_pages, priority=100)
    return {"parallel_read_safe": True}


def _write_pages(app: Sphinx) -> None:
    folder = app.srcdir / "results"
    (folder / "figures").mkdir(exist_ok=True)
    for profile, report in reports().items():
        write_page(folder / f"{profile}.md", _page(profile, report, app))
        # Sphinx copies files from this folder to the site unchanged.
        write_page(app.srcdir / "_extra" / "results" / _report_name(profile), render_report(report))
    write_page(folder / "leaderboard.md", _leaderboard())
    write_page(app.srcdir / "_extra" / "results" / _BOARD, render_leaderboard(leaderboard()))
    rows = [
        f"| [{name}]({name}.md) | {_title(report)} | {_scope(report)} |" for name, report in reports().items()
    ]
    table = ["| profile | content | size |", "| --- | --- | --- |", *rows]
    toctree = [
        "```{toctree}",
        ":hidden:",
        "",
        "Summary of results <README>",
        "leaderboard",
        *reports(),
        "/project/benchmarks",
        "/project/measured",
        "/project/measured_large",
        "/project/measured_promises",
        "```",
    ]
    write_page(
        folder / "index.md",
        "\n".join(
            [
                "# Results",
                "",
                "Each page shows one committed experiment. The [summary](README.md) says what they show "
                "and where they come from. The [leaderboard](leaderboard.md) ranks all methods. "
                "[Benchmarks](../../benchmarks/README.md) measure time and memory.",
                "",
                *table,
                "",
                *toctree,
                "",
            ]
        ),
    )


def _leaderboard() -> str:
    """Write the findings and average ranks of all studies, and link the page with filters."""
    lines = [
        "# Leaderboard",
        "",
        f'<a href="{_BOARD}">Open the leaderboard with filters</a>: ranks by dataset, noise, classifier and metric, '
        "wins and losses against any method, time and memory. It is one file that works offline. "
        "[Add your method](../guide/your_own.md#join-the-comparison).",
        "",
    ]
    for study in leaderboard():
        lines += [f"## {study.name}", "", study.settings, ""]
        lines += [f"- {text}" for texts in find(study) for text in texts]
        standings = {judge: study.standing(classifier=judge).ranks for judge in study.names["classifier"]}
        names = dict.fromkeys(name for ranks in standings.values() for name in ranks)
        lines += ["", f"| average rank | {' | '.join(standings)} |", f"| --- |{' ---: |' * len(standings)}"]
        for name in names:
            ranks = (f"{by[name]:.2f}" if name in by else "" for by in standings.values())
            lines.append(f"| {name} | {' | '.join(ranks)} |")
        lines.append("")
    lines += ["## Measured outside this repository", "", *(f"- {text}" for text in MEASURED_OUTSIDE), ""]
    return "\n".join(lines)


def _report_name(profile: str) -> str:
    return f"{profile}_report.html"


def _title(report: Report) -> str:
    experiment = report.analysis.summary.experiment
    return experiment.title or experiment.name


def _scope(report: Report) -> str:
    summary = report.analysis.summary
    n_methods = len(summary.compared) or len(summary.experiment.sweeps)
    return f"{len(summary.datasets)} datasets, {n_methods} methods, {len(summary.references)} references"


def _page(profile: str, report: Report, app: Sphinx) -> str:
    main = report.analysis.main
    lines = [
        f"# {profile}",
        "",
        f"{_title(report)}: {_scope(report)}. Main classifier: {main.classifier}.",
        "",
    ]
    lines += [f"- {sentence}" for sentence in (*report.missing, *report.findings)]
    lines += [""]
    if main.nemenyi_cd is not None:
        figure = draw_cd_diagram(
            main.overall, main.nemenyi_cd, title="all metrics", control=main.control or None
        )
        figure.save(app.srcdir / "results" / "figures", profile, ["png"])
        lines += [
            f"```{{image}} figures/{profile}.png",
            f":alt: {figure.description}",
            ":class: on-white",
            "```",
            "",
        ]
    for section in report.sections:
        tables = [table for table in section.tables if len(table.frame) <= _MOST_ROWS]
        if section.anchor in _SHOWN and tables:
            lines += [f"## {section.title}", "", *section.texts, ""]
            lines += [as_markdown(table) for table in tables]
    lines += [
        "## More",
        "",
        f'<a href="{_report_name(profile)}">The page of the report</a> has all tables, and you can sort them. '
        f"`labelsieve report docs/results/{profile}.csv.gz` builds it from the committed file, and writes the "
        "tables as CSV, Markdown and LaTeX.",
        "",
    ]
    return "\n".join(lines)
