"""``labelsieve apply-review``: remove the wrong labels of a review and add the missing ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from labelsieve.cli._console import messages
from labelsieve.cli._options import (
    DataOptions,
    Quiet,
    check_outputs,
    option,
    with_data_options,
    write_errors,
)
from labelsieve.inspection.cleaning import write_cleaned
from labelsieve.inspection.review import read_review

EPILOG = """\
\b
Examples:
  labelsieve apply-review data.csv review.csv --labels 5 --id name -o clean.csv
  labelsieve apply-review train.arff test.arff review.csv -o clean.arff
"""


@with_data_options
def apply_review(
    data: DataOptions,
    review_file: Annotated[Path, typer.Argument(metavar="REVIEW", help="Review file with your verdicts.")],
    output: Annotated[Path, option("FILE", "Data file to write.", "--output", "-o")],
    proposed: Annotated[
        bool, typer.Option("--proposed", help="Apply the proposals without a verdict too.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Remove the wrong labels of a review and add the missing ones.

    Use the same data options as for the review. Labels with the verdict "wrong" are removed, and missing labels
    with the verdict "right" are added. All others stay. A table keeps its format and all other cells. Data that
    change format are written as numbers, without ignored columns.
    """
    check_outputs(data, {"--output": output}, copy="--output", reads=[review_file])
    data = data.with_id_of(review_file)
    console = messages(quiet=quiet)
    dataset = data.read(console)
    review = read_review(review_file, dataset, proposed=proposed)
    with write_errors(output):
        copy = write_cleaned(dataset, review, output)
    console.print(f"{dataset.name}: {copy.summary}")
    for note in copy.notes:
        console.print(f"note: {note}.")
    console.print(f"wrote {output}")
