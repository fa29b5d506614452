"""``labelsieve demo``: the whole way on real data that needs no download."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
from rich.console import Console

from labelsieve._figures import has_matplotlib
from labelsieve._numerics.sparse import dense
from labelsieve.cli._console import messages, progress, results, typed, warnings_as_notes
from labelsieve.cli._options import option, write_errors
from labelsieve.cli._tables import ADVICE, issues_table, ranking_table
from labelsieve.cli.methods import find_method
from labelsieve.cli.select import DEFAULT_METHOD, N_PERMUTATIONS, note_warnings
from labelsieve.datasets import load_digits_attributes
from labelsieve.inspection.audit import inspect_dataset
from labelsieve.inspection.ranking import Ranking
from labelsieve.inspection.result import Audit
from labelsieve.inspection.wording import answers
from labelsieve.io import write

EPILOG = """\
\b
Examples:
  labelsieve demo
  labelsieve demo --output my-demo
"""

_SIDE = 8
_N_SELECTED = 12
_N_RESAMPLES = 30
_ISSUES_SHOWN, _ISSUES_COUNTED, _ISSUES_DRAWN = 5, 20, 10


def demo(
    output: Annotated[Path, option("FOLDER", "Folder for the picture, the page and the data.")] = Path(
        "labelsieve-demo"
    ),
    method: Annotated[
        str, option("NAME", "Method, see labelsieve methods.", "--method", "-m")
    ] = DEFAULT_METHOD,
) -> None:
    """Select pixels of handwritten digits, without a download.

    The labels are attributes of the digit, such as even or prime, with noise. The ranking is printed. A picture, a
    page and the data are written to a folder.
    """
    selector = find_method(method)(n_features_to_select=_N_SELECTED)
    console, notes = results(), messages()
    digits = load_digits_attributes()
    notes.print(
        f"{digits.X.shape[0]} handwritten digits, labelled even, prime, with a closed loop...\n"
        "Every label that does not apply was made a candidate with probability 0.2.\n"
    )
    with progress(notes) as status:
        with warnings_as_notes(notes):
            found = inspect_dataset(
                digits,
                selector,
                command="select",
                method=method,
                with_sizes=True,
                n_permutations=N_PERMUTATIONS,
                n_resamples=_N_RESAMPLES,
                check_labels=True,
                command_line=typed(),
                progress=status.advance,
            )
        ranking = found.ranking
        assert ranking is not None
        note_warnings(found, notes)
        with write_errors(output):
            output.mkdir(parents=True, exist_ok=True)
        write(digits, output / "digits.csv")
        files = ["digits.csv"]
        if has_matplotlib():
            status("drawing")
            files += _write_report(found, output)
    console.print(ranking_table(found, ranking, console), "", _pixel_grid(ranking, console), "", sep="\n")
    _, size, trust, _ = answers(found)
    for answer in (size, trust):
        console.print(f"{answer.question} {answer.plain}")
    console.print()
    console.print(issues_table(found, console, _ISSUES_SHOWN))
    wrong = [record["wrong"] for record in found.issue_records(_ISSUES_COUNTED)]
    n_wrong = found.n_candidates - int(digits.Y.sum())  # type: ignore[union-attr]  # the truth is known here
    console.print(
        f"\n{sum(wrong)} of the {len(wrong)} labels to check first are wrong. Of all labels, "
        f"{n_wrong / found.n_candidates:.0%} are."
    )
    assert found.label_issues is not None
    notes.print(f"\n{found.label_issues.issues.caveat(ADVICE)}")
    notes.print(f"\nWrote {', '.join(str(output / file) for file in files)}")
    if not has_matplotlib():
        notes.print("For the picture and the page: pip install 'labelsieve[plot]'")
    for command in ("select {} -k auto", "issues {}"):
        notes.print(f"Try next: labelsieve {command.format(output / 'digits.csv')}")


def _write_report(found: Audit, folder: Path) -> list[str]:
    """Write the picture and the page; return their names."""
    from labelsieve.inspection import pixels

    images = dense(found.dataset.X).reshape(-1, _SIDE, _SIDE)
    mean_image = images.mean(axis=0)
    first = [(record["row"], record["label"]) for record in found.issue_records(_ISSUES_DRAWN)]
    overview = pixels.draw_overview(found, mean_image)
    figures = (overview, pixels.draw_label_issues(first, images))
    with write_errors(folder):
        overview.save(folder, "demo", ["png"])
        replace(found, figures=figures).to_html(folder / "demo.html")
    return ["demo.png", "demo.html"]


def _pixel_grid(ranking: Ranking, console: Console) -> str:
    """Draw the pixels, darker for more evidence, with the ranks of those selected."""
    shades = " .:*#" if console.options.ascii_only else " ░▒▓█"
    # The root keeps one outstanding pixel from leaving all others blank.
    levels = np.sqrt(np.maximum(ranking.shares, 0))
    cells = [
        f"[{place:>2}]" if place <= ranking.n_kept else f" {shades[round(level * (len(shades) - 1))] * 2} "
        for place, level in zip(ranking.places, levels, strict=True)
    ]
    rows = ["".join(cells[start : start + _SIDE]) for start in range(0, len(cells), _SIDE)]
    legend = f"[n]: selected, with its rank; shade: {ranking.measure} of the pixel"
    return "\n".join([*rows, "", legend])
