"""``labelsieve demo``: audit a built-in table of tagged animals."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from labelsieve.cli._console import command_line, messages, progress, results, warnings_as_notes
from labelsieve.cli._options import option, write_errors, write_text
from labelsieve.cli.audit import print_summary
from labelsieve.datasets import load_animals
from labelsieve.datasets.animals import ANIMALS_CSV
from labelsieve.datasets.digits import write_digits
from labelsieve.inspection.audit import audit

EPILOG = """\
\b
Examples:
  labelsieve demo
  labelsieve demo --output my-demo
"""


def demo(
    output: Annotated[Path, option("FOLDER", "Folder for the table and the HTML page.")] = Path(
        "labelsieve-demo"
    ),
) -> None:
    """Audit a built-in table of tagged animals.

    Prints the findings and writes the table and an HTML page with charts to a folder.
    """
    console, notes = results(), messages()
    animals = load_animals()
    notes.print(
        "The table has 101 animals, 11 columns such as hair and legs, and tags such as mammal.\n"
        "86 of the 324 tags are wrong because they were added at random.\n"
    )
    with progress(notes) as status, warnings_as_notes(notes):
        found = audit(animals, progress=status.advance, command_line=command_line())
        with write_errors(output):
            output.mkdir(parents=True, exist_ok=True)
            write_text(output / ANIMALS_CSV.name, ANIMALS_CSV.read_text("utf-8"))
            write_text(output / "audit.html", found.to_html())
            digits = write_digits(output)
    print_summary(found, console)
    table = output / ANIMALS_CSV.name
    notes.print(
        f"\nWrote the table to {table} and a page with charts to {output / 'audit.html'}.\n\nTry next:"
    )
    for command in (
        f"audit {table} --labels tags --html audit.html",
        f"select {table} --labels tags -k 4",
        f"review {table} --labels tags --open",
    ):
        notes.print(f"  labelsieve {command}")
    notes.print("\nReview wrong labels of 500 handwritten digits, shown as images:")
    notes.print(f"  labelsieve review {digits} --labels attributes --open")
