"""``labelsieve demo``: the whole way on real data that needs no download."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from labelsieve._base import BaseSelector
from labelsieve._numerics.sparse import dense
from labelsieve._pages import missing_packages
from labelsieve.cli.console import messages, results, typed
from labelsieve.cli.fitting import ADVICE, DEFAULT_METHOD, fit, progress, size_curve
from labelsieve.cli.methods import find_method
from labelsieve.cli.tables import ranking_table, suspects_table
from labelsieve.cli.target import told_if_unwritable
from labelsieve.datasets import load_digits_attributes
from labelsieve.inspection.auditing.subject import Subject
from labelsieve.inspection.selection import Selection
from labelsieve.inspection.stability import STEADY
from labelsieve.io import write
from labelsieve.io.writing import replacing

EPILOG = """\
Examples:

labelsieve demo

labelsieve demo --output my-demo
"""

_SIDE = 8
_GRID_WIDTH = 4 * _SIDE
_N_SELECTED = 12
_N_RESAMPLES = 30
_SUSPECTS_SHOWN = 5
_PICTURED = 10


def demo(
    output: Annotated[Path, typer.Option(help="Folder for the picture, the page and the data.")] = Path(
        "labelsieve-demo"
    ),
    method: Annotated[str, typer.Option("--method", "-m", help="See: labelsieve methods.")] = DEFAULT_METHOD,
) -> None:
    """Select pixels of handwritten digits: real data, no download.

    Labels are attributes of the digit, such as even or prime, with noise among them. The ranking is shown
    here; a picture, a page and the data are written to a folder.
    """
    selector = find_method(method)(n_features_to_select=_N_SELECTED)
    console, notes = results(), messages()
    digits = load_digits_attributes()
    notes.print(
        f"{digits.X.shape[0]} handwritten digits, labelled even, prime, with a closed loop...\n"
        "Every label that does not apply was made a candidate with probability 0.2.\n"
    )
    subject = Subject.of_dataset(digits)
    with progress(notes) as name_activity:
        found = fit(
            selector,
            digits,
            method,
            notes,
            name_activity,
            n_resamples=_N_RESAMPLES,
            subject=subject,
            check_labels=True,
        )
        name_activity("trying numbers of pixels")
        found = replace(found, curve=size_curve(selector, digits))
        with told_if_unwritable(output):
            output.mkdir(parents=True, exist_ok=True)
        write(digits, output / "digits.csv")
        files = ["digits.csv"]
        if not missing_packages():
            name_activity("drawing")
            files += _write_report(found, selector, subject, output)
    grid = _pixel_grid(found, console)
    if console.width >= 70:
        side_by_side = Table.grid(padding=(0, 3))
        side_by_side.add_row(ranking_table(found, console, width=console.width - _GRID_WIDTH - 3), grid)
        console.print(side_by_side)
    else:
        console.print(ranking_table(found, console), "", grid, sep="\n")
    console.print()
    _say_how_many_and_how_sure(found, console)
    console.print()
    console.print(suspects_table(found, console, _SUSPECTS_SHOWN))
    if found.n_wrong is not None:
        console.print(
            f"\n{found.listed_wrong} of the {len(found.suspects)} least supported candidates are wrong; "
            f"of all candidates, {found.n_wrong / found.n_candidates:.0%} are."
        )
    notes.print(f"\n{found.caveat} {ADVICE}")
    notes.print(f"\nWrote {', '.join(str(output / file) for file in files)}")
    if missing_packages():
        notes.print("For the picture and the page: pip install 'labelsieve[report]'")
    again = _program()
    notes.print(
        f"Try next: {again} select {output / 'digits.csv'} -k auto\n          {again} issues {output / 'digits.csv'}"
    )


def _say_how_many_and_how_sure(found: Selection, console: Console) -> None:
    """Two of the four questions in a sentence each; the page has the curve and the bars."""
    curve, stability = found.curve, found.stability
    assert curve is not None
    assert stability is not None
    n_selected = len(found.selected)
    reached = np.interp(n_selected, curve.sizes, curve.mean)
    console.print(
        f"How many are enough? {n_selected} pixels rank the labels of other digits with a precision of {reached:.3f}. "
        f"{found.size_note}"
    )
    frequency = stability.frequency[[feature.column for feature in found.selected]]
    console.print(
        f"How sure is that? {np.count_nonzero(frequency >= STEADY)} of the {n_selected} are chosen on {STEADY:.0%} "
        f"or more of {stability.n_resamples} halves of the digits."
    )


def _program() -> str:
    """The command that started this program: its path where the shell does not find it by name."""
    started = sys.argv[0]
    found = shutil.which("labelsieve")
    if Path(started).name != "labelsieve" or (found and os.path.realpath(found) == os.path.realpath(started)):
        return "labelsieve"
    return started


def _write_report(found: Selection, selector: BaseSelector, subject: Subject, folder: Path) -> list[str]:
    """Write the picture and the page; returns their names."""
    from labelsieve.inspection import pixels
    from labelsieve.inspection.page import page_of_selection

    images = dense(subject.X).reshape(-1, _SIDE, _SIDE)
    mean_image = images.mean(axis=0)
    pictures = [
        pixels.draw_selected_pixels(found, mean_image),
        pixels.draw_pixel_worth(found, mean_image.shape),
        pixels.draw_suspects(found.suspects[:_PICTURED], images),
    ]
    with told_if_unwritable(folder):
        pixels.draw_overview(found, mean_image).save_png(folder / "demo.png")
        page = page_of_selection(found, selector, subject, command=typed(), pictures=pictures)
        with replacing(folder / "demo.html") as stream:
            stream.write(page.encode())
    return ["demo.png", "demo.html"]


def _pixel_grid(found: Selection, console: Console) -> Table:
    """Draw the pixels, darker for those worth more, with the rank of those selected."""
    shades = " .:*#" if console.options.ascii_only else " ░▒▓█"
    worth = found.leading_by_column
    ranks = {feature.column: feature.rank for feature in found.selected}
    table = Table.grid()
    for _ in range(_SIDE):
        table.add_column(no_wrap=True)
    for row in range(_SIDE):
        cells = []
        for pixel in range(row * _SIDE, (row + 1) * _SIDE):
            # The root keeps one outstanding pixel from leaving all others blank.
            level = np.sqrt(max(worth[pixel], 0) / found.highest)
            shade = shades[round(level * (len(shades) - 1))]
            text = f"[{ranks[pixel]:>2}]" if pixel in ranks else f" {shade * 2} "
            cells.append(Text(text, style=_shade_style(level, pixel in ranks, console)))
        table.add_row(*cells)
    legend = Text(f"[n] selected, with its rank\nshade: {found.measure_names[0]} of the pixel", style="dim")
    both = Table.grid()
    both.add_row(table)
    both.add_row("")
    both.add_row(legend)
    return both


def _shade_style(level: float, is_selected: bool, console: Console) -> str:
    """Colour of a pixel where the terminal has colours."""
    if console.color_system is None:
        return ""
    if not is_selected:
        return f"grey{round(30 + 40 * level)}"
    return "bold black on " + ("gold1", "orange1", "dark_orange")[min(2, int(3 * level))]
