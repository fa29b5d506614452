"""``labelsieve apply-review``: the data without the labels that a review rejects."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from labelsieve._text import count, printable
from labelsieve.cli._console import messages
from labelsieve.cli._options import DataOptions, Quiet, check_outputs, with_data_options, write_errors
from labelsieve.inspection.review import RowNames, read_review, without_removed
from labelsieve.io import write
from labelsieve.io.tables.writing import can_copy, write_without

EPILOG = """\
\b
Examples:
  labelsieve apply-review data.csv review.csv --labels 5 --id name -o clean.csv
  labelsieve apply-review train.arff test.arff review.csv -o clean.arff
"""


@with_data_options
def apply_review(
    data: DataOptions,
    review_file: Annotated[Path, typer.Argument(metavar="REVIEW", help="Review file with verdicts.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Data file to write.")],
    quiet: Quiet = False,
) -> None:
    """Remove the labels that a review rejects.

    Give the options that the data were reviewed with. Labels with the verdict remove are removed, all others stay. A
    table is copied in its own format and no other cell changes. Data in another format are written as numbers, without
    ignored columns.
    """
    check_outputs(data, {"--output": output}, copy="--output", reads=[review_file])
    data = data.with_id_of(review_file)
    console = messages(quiet=quiet)
    dataset = data.read(console)
    ids = None if dataset.id_column is None else RowNames(dataset.id_column, tuple(map(str, dataset.row_ids)))
    review = read_review(review_file, dataset.label_names, ids, dataset.candidates)
    cleaned = without_removed(dataset, review)
    keeps_names = ids is not None and output.suffix.lower() in (".csv", ".tsv")
    is_copy = dataset.is_table and can_copy(Path(data.files[0]), output)
    if is_copy:
        refuted = review.answers == 0
        with write_errors(output):
            write_without(
                dataset,
                zip(review.rows[refuted].tolist(), review.labels[refuted].tolist(), strict=True),
                output,
            )
    else:
        write(cleaned, output, row_names=(ids.column, ids.names) if ids is not None and keeps_names else None)
    n_candidates = int(dataset.candidates.sum())
    console.print(
        f"{printable(dataset.name)}: {count(review.n_removed, 'label')} removed, {review.n_kept} kept; "
        f"{n_candidates - review.n_removed - review.n_kept} of {n_candidates} have no verdict and stay"
    )
    had, has = (np.asarray(data.candidates.sum(axis=1)).ravel() > 0 for data in (dataset, cleaned))
    if (had & ~has).any():
        console.print(f"note: {count(int(np.count_nonzero(had & ~has)), 'row')} lost the last label.")
    if data.ignore and not is_copy:
        console.print(f"note: {printable(output)} does not hold the ignored columns.")
    if ids is not None and not keeps_names and not is_copy:
        console.print(f"note: {printable(output)} does not hold the names of the rows; .csv and .tsv do.")
    console.print(f"wrote {printable(output)}")
