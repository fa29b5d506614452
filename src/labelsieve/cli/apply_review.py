"""``labelsieve apply-review``: remove the wrong labels of a review and add the missing ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from labelsieve._numerics.candidates import fill_unknown
from labelsieve._text import count
from labelsieve.cli._console import messages
from labelsieve.cli._options import (
    DataOptions,
    Quiet,
    check_outputs,
    option,
    with_data_options,
    write_errors,
    write_text,
)
from labelsieve.inspection._reviews import OPEN, RIGHT, WRONG
from labelsieve.inspection.review import (
    corrected,
    depends_on_columns,
    is_cleaned,
    provenance_file,
    provenance_text,
    read_proposals,
    read_review,
)
from labelsieve.io import write
from labelsieve.io.copies import can_copy, write_corrected
from labelsieve.io.source import Source

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
    provenance = provenance_file(output)
    check_outputs(data, {"--output": output}, copy="--output", reads=[review_file])
    data = data.with_id_of(review_file)
    console = messages(quiet=quiet)
    dataset = data.read(console)
    review = read_review(review_file, dataset)
    if proposed:
        accepted = read_proposals(review_file, review)
        answers = np.where(review.is_missing, RIGHT, WRONG).astype(np.int8)
        review = replace(
            review,
            answers=np.where(accepted, answers, review.answers),
            numbers=np.where(accepted, 0, review.numbers),
        )
    cleaned = corrected(dataset, review)
    is_copy = len(data.files) == 1 and dataset.is_table and can_copy(Path(data.files[0]), output)
    names = None
    removed, added = (
        list(zip(review.rows[chosen].tolist(), review.labels[chosen].tolist(), strict=True))
        for chosen in (review.is_error & ~review.is_missing, review.is_error & review.is_missing)
    )
    if is_copy:
        with write_errors(output):
            note = write_corrected(dataset, removed, added, output)
        if note is not None:
            console.print(f"note: {note}.")
    else:
        if dataset.id_column is not None and output.suffix.lower() in (".csv", ".tsv"):
            names = (dataset.id_column, list(map(str, dataset.row_ids)))
        write(cleaned, output, row_names=names)
    if depends_on_columns(review) or is_cleaned(dataset):
        write_text(provenance, provenance_text(Source(output).checksum, len(removed), len(added)))
        console.print(
            f"note: {provenance.name} records that labels were corrected with the help of the columns. Rank and test "
            "columns on the original file."
        )
    else:
        provenance.unlink(missing_ok=True)
    n_unsure = int(((review.answers != OPEN) & ~review.is_decided).sum())
    unsure = f", {n_unsure} unsure" if n_unsure else ""
    console.print(
        f"{dataset.name}: {count(len(removed), 'label')} removed, {len(added)} added; the other "
        f"{int(fill_unknown(dataset.candidates).sum()) - len(removed)} labels stay{unsure}"
    )
    had, has = (
        np.asarray(fill_unknown(part.candidates).sum(axis=1)).ravel() > 0 for part in (dataset, cleaned)
    )
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
