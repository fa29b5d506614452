"""Review files: CSV tables of candidates in which a person fills in verdicts.

A line is a candidate: the row number (``sample``, counted from 0), the row name (``id:COLUMN``) if the data have one,
the label, and a ``verdict``: keep, remove, or empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from pandas import DataFrame

from labelsieve._numerics.sparse import entries, is_sparse
from labelsieve._text import csv_cell, csv_text
from labelsieve.inspection.label_issues import LabelIssues
from labelsieve.io.dataset import Dataset
from labelsieve.io.errors import DatasetError
from labelsieve.io.frames import read_records
from labelsieve.io.source import Source

_ID_PREFIX = "id:"
_ANSWERS = {"keep": 1, "remove": 0, "": -1}


@dataclass(frozen=True)
class Review:
    """Candidates of a review file, counted from 0, with 1 for keep, 0 for remove and -1 for no verdict."""

    rows: np.ndarray
    labels: np.ndarray
    answers: np.ndarray

    @property
    def checked(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Candidates with a verdict, as `find_label_issues` takes them."""
        decided = self.answers >= 0
        return self.rows[decided], self.labels[decided], self.answers[decided]

    @property
    def n_removed(self) -> int:
        """Number of candidates to remove."""
        return int((self.answers == 0).sum())

    @property
    def n_kept(self) -> int:
        """Number of candidates to keep."""
        return int((self.answers == 1).sum())


def issues_text(issues: LabelIssues, dataset: Dataset, n_listed: int | None = None) -> str:
    """Write the labels least supported first, with their verdicts.

    With `n_listed`, write only so many labels without a verdict.
    """
    listed = np.arange(issues.n_candidates)
    if n_listed is not None:
        listed = np.setdiff1d(listed, issues.unchecked[n_listed:])
    rows, labels = issues.rows[listed], issues.labels[listed]
    columns: dict[str, Sequence[object]] = {
        "rank": (listed + 1).tolist(),
        "least_supported_percent": [float(f"{percent:.3g}") for percent in issues.percentiles[listed]],
    }
    if issues.shown_probability is not None:
        columns["probability"] = [round(float(p), 4) for p in issues.shown_probability[rows, labels]]
    return _text(rows, labels, dataset, columns, np.array(issues.verdicts())[listed].tolist())


def places_text(rows: np.ndarray, labels: np.ndarray, dataset: Dataset) -> str:
    """Write labels to check, without a rank that could influence the verdict."""
    return _text(rows, labels, dataset, {}, [""] * len(rows))


def _text(
    rows: np.ndarray,
    labels: np.ndarray,
    dataset: Dataset,
    columns: dict[str, Sequence[object]],
    verdicts: Sequence[str],
) -> str:
    """Return the table as CSV that `read_review` reads."""
    _written(dataset.label_names, "labels")
    columns = {
        "sample": rows.tolist(),
        "label": [dataset.label_names[label] for label in labels],
        **columns,
        "verdict": verdicts,
    }
    if dataset.id_column is not None:
        names = list(map(str, dataset.row_ids))
        _written(names, "rows")
        columns = {f"{_ID_PREFIX}{dataset.id_column}": [names[row] for row in rows], **columns}
    return csv_text(DataFrame(columns))


def _written(names: Sequence[str], role: str) -> dict[str, int]:
    """Map names as written in a review file to their positions; raise if two look the same."""
    places: dict[str, int] = {}
    for place, name in enumerate(names):
        other = places.setdefault(csv_cell(name), place)
        if other != place:
            raise DatasetError(
                f"the {role} {names[other]!r} and {name!r} look the same in a review file; rename one."
            )
    # A spreadsheet may remove the prefix that protects a name from being read as a formula.
    for place, name in enumerate(names):
        places.setdefault(name, place)
    return places


def id_column(path: Path) -> str | None:
    """Return the column that names the rows of a review file; None if they are numbered."""
    named = (name for name in _read(Source(path)) if name.startswith(_ID_PREFIX))
    return next((name.removeprefix(_ID_PREFIX) for name in named), None)


def n_verdicts(path: Path) -> int:
    """Count the verdicts in a file; 0 if it is not a review file."""
    try:
        return int((_read(Source(path))["verdict"].str.strip() != "").sum())
    except DatasetError:
        return 0


def read_review(path: Path, dataset: Dataset) -> Review:
    """Read a review file as spreadsheets save it: any separator, line ending and byte order mark.

    Rows are named by the `id_column` of the data if the file has that column, else numbered. A line that is not a
    candidate, is a duplicate or has an invalid verdict raises `DatasetError`.
    """
    source, n_rows = Source(path), dataset.X.shape[0]
    table = _read(source)
    named = f"{_ID_PREFIX}{dataset.id_column}"
    row_heading = named if named in table else "sample"
    _check_headings(table, source, row_heading, "label")
    if named in table:
        rows = table[named].map(_written(list(map(str, dataset.row_ids)), "rows"))
        hint = "(spreadsheets change numbers such as 007 unless the column is formatted as text)"
    else:
        rows = table["sample"].str.strip().map({str(row): row for row in range(n_rows)})
        hint = f"(counted from 0 to {n_rows - 1})"
    labels = table["label"].map(_written(dataset.label_names, "labels"))
    answers = table["verdict"].str.strip().str.lower().map(_ANSWERS)
    for heading, found, expected in (
        (row_heading, rows, f"a row of the data {hint}"),
        ("label", labels, "a label of the data"),
        ("verdict", answers, "keep, remove or nothing"),
    ):
        if found.isna().any():
            line = found.isna().idxmax()
            raise source.error(
                f"the column {heading!r} must hold {expected}, got {table[heading][line][:80]!r}", line=line
            )
    review = Review(*(found.to_numpy(dtype=np.intp) for found in (rows, labels, answers)))
    is_candidate = entries(dataset.candidates, review.rows, review.labels) > 0
    if not is_candidate.all():
        line = table.index[~is_candidate][0]
        raise source.error(
            f"label {table['label'][line][:80]!r} is not a candidate of this row; remove the line, or give the data "
            "that the file was written for",
            line=line,
        )
    is_repeated = DataFrame({"row": rows, "label": labels}).duplicated()
    if is_repeated.any():
        raise source.error("this row and label have an earlier line; remove one", line=is_repeated.idxmax())
    return review


def _read(source: Source) -> DataFrame:
    """Read the fields of a review file as texts, indexed by line."""
    (_, header), *lines = read_records(source)[0]
    lines = [(line, record) for line, record in lines if any(map(str.strip, record))]
    header = list(map(str.strip, header))
    while header and not header[-1]:
        header.pop()
    width = len(header)
    for line, record in lines:
        if any(field.strip() for field in record[width:]):
            raise source.error(f"expected {width} fields, got {len(record)}; correct the line", line=line)
    # Spreadsheets leave out empty fields at the end of a line.
    fields = [[*record, *[""] * width][:width] for _, record in lines]
    table = DataFrame(fields, index=[line for line, _ in lines], columns=header, dtype=object)
    _check_headings(table, source, "verdict")
    return table


def _check_headings(table: DataFrame, source: Source, *headings: str) -> None:
    for heading in headings:
        if list(table).count(heading) != 1:
            raise source.error(
                f"is not a review file of these data: it needs one column {heading!r}; write one with labelsieve issues"
            )


def without_removed(dataset: Dataset, review: Review) -> Dataset:
    """Return the data without the candidates that a review removes."""
    removed = review.answers == 0
    rows, labels, labels_of_data = review.rows[removed], review.labels[removed], dataset.candidates
    if is_sparse(labels_of_data):
        off = sp.csr_array((np.ones(len(rows), np.uint8), (rows, labels)), shape=labels_of_data.shape)
        cleaned = labels_of_data - off
    else:
        cleaned = labels_of_data.copy()
        cleaned[rows, labels] = 0
    role = "Y" if dataset.Y_candidates is None else "Y_candidates"
    return replace(dataset, **{role: cleaned})
