"""``labelsieve apply-review``: remove the labels that a review marks as wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from labelsieve._text import count
from labelsieve.cli._console import messages
from labelsieve.cli._options import DataOptions, Quiet, check_outputs, option, with_data_options, write_errors
from labelsieve.inspection.review import read_review, without_removed
from labelsieve.io import write
from labelsieve.io.copies import can_copy, write_without

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
    quiet: Quiet = False,
) -> None:
    """Remove the labels that a review marks as wrong.

    Use the same data options as for the review. Labels with the verdict "remove" are removed, and all others
    stay. A table keeps its format and all other cells. Data that change format are written as numbers,
    without ignored columns.
    """
    check_outputs(data, {"--output": output}, copy="--output", reads=[review_file])
    data = data.with_id_of(review_file)
    console = messages(quiet=quiet)
    dataset = data.read(console)
    review = read_review(review_file, dataset)
    cleaned = without_removed(dataset, review)
    is_copy = len(data.files) == 1 and dataset.is_table and can_copy(Path(data.files[0]), output)
    names = None
    if is_copy:
        rejected = review.answers == 0
        removed = zip(review.rows[rejected].tolist(), review.labels[rejected].tolist(), strict=True)
        with write_errors(output):
            note = write_without(dataset, removed, output)
        if note is not None:
            console.print(f"note: {note}.")
    else:
        if dataset.id_column is not None and output.suffix.lower() in (".csv", ".tsv"):
            names = (dataset.id_column, list(map(str, dataset.row_ids)))
        write(cleaned, output, row_names=names)
    n_candidates = int(dataset.candidates.sum())
    console.print(
        f"{dataset.name}: {count(review.n_removed, 'label')} removed, {review.n_kept} kept; "
        f"{n_candidates - review.n_removed - review.n_kept} of {n_candidates} have no verdict and are kept"
    )
    had, has = (np.asarray(part.candidates.sum(axis=1)).ravel() > 0 for part in (dataset, cleaned))
    if (had & ~has).any():
        console.print(f"note: {count(int(np.count_nonzero(had & ~has)), 'row')} lost their last label.")
    if data.ignore and not is_copy:
        console.print(f"note: {output} does not contain the ignored columns.")
    if len(data.files) > 1 and dataset.is_table:
        console.print(
            f"note: {output} contains encoded features. To keep the original columns, pass a single file."
        )
    if dataset.id_column is not None and names is None and not is_copy:
        console.print(f"note: {output} does not contain the row names. Write .csv or .tsv to keep them.")
    console.print(f"wrote {output}")
