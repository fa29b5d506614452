"""``labelsieve apply-review``: the data without what a review removes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from labelsieve._text import count, printable
from labelsieve.cli.console import messages
from labelsieve.cli.opening import LabelSep, Role, TableOptions, Text, open_data
from labelsieve.cli.target import (
    Candidates,
    Identifier,
    Ignore,
    Labels,
    Missing,
    Nominal,
    check_targets,
    coding_note,
    find_target,
    naming_column,
    reading_options,
    refuse_repeated,
    told_if_unwritable,
)
from labelsieve.inspection.review import read_review, without_removed
from labelsieve.io import write
from labelsieve.io.copies import can_copy, write_without

EPILOG = """\
Examples:

labelsieve apply-review data.csv review.csv --labels 5 --id name -o clean.csv

labelsieve apply-review train.arff test.arff review.csv -o clean.arff
"""


def apply_review(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE REVIEW",
            help="Data file, its parts, or a name of the catalogue; then the review file.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Write the cleaned data to this file.")],
    labels: Labels = None,
    candidates: Candidates = None,
    ignore: Ignore = None,
    nominal: Nominal = None,
    missing: Missing = None,
    identifier: Identifier = None,
    label_sep: LabelSep = None,
    text: Text = None,
    role: Role = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No notes; errors only.")] = False,
) -> None:
    """Write the data without the candidate labels that a review removes.

    Give the data with the options they were reviewed with. Candidates with the verdict remove are taken off, those
    with keep or nothing stay. A table of anything but numbers is written whole, if in its own format, and no other
    cell changes. Of other data ignored columns are not written, and in CSV the label columns are called label:NAME,
    so that reading the file needs no --labels.
    """
    *files, review_file = targets
    if not files:
        raise typer.BadParameter("give the data file, then the review file", param_hint="FILE REVIEW")
    refuse_repeated(targets)
    check_targets((*targets, labels, candidates), {"--output": output}, data="--output")
    options = reading_options(
        labels=labels, candidates=candidates, ignore=ignore, nominal=nominal, missing=missing
    )
    column = naming_column(identifier, Path(review_file))
    wishes = TableOptions.of(label_sep, text, role)
    console = messages(quiet=quiet)
    entry = find_target(files, options, console)
    data = open_data(files, entry, options, wishes, column)
    dataset, ids, is_copy = data.dataset, data.ids, False
    review = read_review(Path(review_file), dataset.label_names, ids, dataset.candidates)
    cleaned = without_removed(dataset, review)
    keeps_names = ids is not None and output.suffix.lower() in (".csv", ".tsv")
    if len(files) == 1 and dataset.is_table and can_copy(Path(files[0]), output):
        is_copy = True
        refuted = review.answers == 0
        with told_if_unwritable(output):
            write_without(
                dataset,
                zip(review.rows[refuted].tolist(), review.labels[refuted].tolist(), strict=True),
                output,
            )
    else:
        write(cleaned, output, row_names=(ids.column, ids.names) if ids is not None and keeps_names else None)
    n_candidates = int(dataset.candidates.sum())
    console.print(
        f"{printable(dataset.name)}: {count(review.n_removed, 'candidate')} removed, {review.n_kept} kept; "
        f"{n_candidates - review.n_removed - review.n_kept} of {n_candidates} have no verdict and stay"
    )
    if entry is None and options.nominal != "onehot" and dataset.nominal:
        console.print(coding_note(dataset.nominal))
    if options.ignore and not is_copy:
        console.print(f"note: {printable(output)} does not hold the columns that --ignore leaves out.")
    had, has = (np.asarray(data.candidates.sum(axis=1)).ravel() > 0 for data in (dataset, cleaned))
    if (had & ~has).any():
        n_emptied = int(np.count_nonzero(had & ~has))
        console.print(f"note: {count(n_emptied, 'row')} lost the last candidate.")
    if ids is not None and not keeps_names and not is_copy:
        console.print(f"note: {printable(output)} does not hold the names of the rows; .csv and .tsv do.")
    console.print(f"wrote {printable(output)}")
