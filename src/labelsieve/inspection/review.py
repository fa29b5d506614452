"""Review files: CSV tables of candidate labels with a column for verdicts.

Each line holds one candidate: the row index (``sample``), the row name (``id:COLUMN``) if there is one, the label, and
a ``verdict`` (keep, remove or empty).
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
    """Row and label indices of the candidates in a review file, and 1 (keep), 0 (remove) or -1 (no verdict)."""

    rows: np.ndarray
    labels: np.ndarray
    answers: np.ndarray

    @property
    def checked(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Candidates with a verdict, in the form that `find_label_issues` accepts."""
        decided = self.answers >= 0
        return self.rows[decided], self.labels[decided], self.answers[decided]

    @property
    def n_removed(self) -> int:
        """Number of candidates with the verdict "remove"."""
        return int((self.answers == 0).sum())

    @property
    def n_kept(self) -> int:
        """Number of candidates with the verdict "keep"."""
        return int((self.answers == 1).sum())


def issues_to_csv(issues: LabelIssues, dataset: Dataset, n_listed: int | None = None) -> str:
    """Return ranked candidates with their verdicts as CSV.

    `n_listed` limits the number of candidates without a verdict.
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
    return _to_csv(rows, labels, dataset, columns, np.array(issues.verdicts())[listed].tolist())


def candidates_to_csv(rows: np.ndarray, labels: np.ndarray, dataset: Dataset) -> str:
    """Return candidates to review as CSV, without ranks that could influence the verdicts."""
    return _to_csv(rows, labels, dataset, {}, [""] * len(rows))


def _to_csv(
    rows: np.ndarray,
    labels: np.ndarray,
    dataset: Dataset,
    columns: dict[str, Sequence[object]],
    verdicts: Sequence[str],
) -> str:
    """Return a table in the format of `read_review`."""
    _index_names(dataset.label_names, "labels")
    columns = {
        "sample": rows.tolist(),
        "label": [dataset.label_names[label] for label in labels],
        **columns,
        "verdict": verdicts,
    }
    if dataset.id_column is not None:
        names = list(map(str, dataset.row_ids))
        _index_names(names, "rows")
        columns = {f"{_ID_PREFIX}{dataset.id_column}": [names[row] for row in rows], **columns}
    return csv_text(DataFrame(columns))


def _index_names(names: Sequence[str], role: str) -> dict[str, int]:
    """Map names, as they appear in a review file, to their indices; raise if two look the same."""
    indices: dict[str, int] = {}
    for index, name in enumerate(names):
        other = indices.setdefault(csv_cell(name), index)
        if other != index:
            raise DatasetError(
                f"the {role} {names[other]!r} and {name!r} look the same in a review file; rename one."
            )
    # Spreadsheets may remove the prefix that stops a name from being read as a formula.
    for index, name in enumerate(names):
        indices.setdefault(name, index)
    return indices


def id_column(path: Path) -> str | None:
    """Return the name of the id column of a review file; None if its rows are only numbered."""
    named = (name for name in _read(Source(path)) if name.startswith(_ID_PREFIX))
    return next((name.removeprefix(_ID_PREFIX) for name in named), None)


def n_verdicts(path: Path) -> int:
    """Count the verdicts in a file; return 0 if it is not a review file."""
    try:
        return int((_read(Source(path))["verdict"].str.strip() != "").sum())
    except DatasetError:
        return 0


def read_review(path: Path, dataset: Dataset) -> Review:
    """Read a review file with any separator, line ending or byte order mark that spreadsheets write.

    Rows are matched by the id column of the dataset if the file has that column, otherwise by number. Invalid or
    duplicate lines raise `DatasetError`.
    """
    source, n_rows = Source(path), dataset.X.shape[0]
    table = _read(source)
    id_heading = f"{_ID_PREFIX}{dataset.id_column}"
    row_heading = id_heading if id_heading in table else "sample"
    _check_headings(table, source, row_heading, "label")
    if id_heading in table:
        rows = table[id_heading].map(_index_names(list(map(str, dataset.row_ids)), "rows"))
        hint = "(spreadsheets change numbers such as 007 unless the column is formatted as text)"
    else:
        rows = table["sample"].str.strip().map({str(row): row for row in range(n_rows)})
        hint = f"(numbered from 0 to {n_rows - 1})"
    labels = table["label"].map(_index_names(dataset.label_names, "labels"))
    answers = table["verdict"].str.strip().str.lower().map(_ANSWERS)
    for heading, parsed, expected in (
        (row_heading, rows, f"a row of the dataset {hint}"),
        ("label", labels, "a label of the dataset"),
        ("verdict", answers, "keep, remove or nothing"),
    ):
        if parsed.isna().any():
            line = parsed.isna().idxmax()
            raise source.error(
                f"column {heading!r} must contain {expected}, got {table[heading][line][:80]!r}", line=line
            )
    review = Review(*(parsed.to_numpy(dtype=np.intp) for parsed in (rows, labels, answers)))
    is_candidate = entries(dataset.candidates, review.rows, review.labels) > 0
    if not is_candidate.all():
        line = table.index[~is_candidate][0]
        raise source.error(
            f"label {table['label'][line][:80]!r} is not a candidate in this row; remove the line or use the dataset "
            "that the file was written for",
            line=line,
        )
    is_repeated = DataFrame({"row": rows, "label": labels}).duplicated()
    if is_repeated.any():
        raise source.error("duplicate row and label; remove the line", line=is_repeated.idxmax())
    return review


def _read(source: Source) -> DataFrame:
    """Read the fields of a review file as strings, indexed by line number."""
    (_, header), *lines = read_records(source)[0]
    lines = [(line, record) for line, record in lines if any(map(str.strip, record))]
    header = list(map(str.strip, header))
    while header and not header[-1]:
        header.pop()
    width = len(header)
    for line, record in lines:
        if any(field.strip() for field in record[width:]):
            raise source.error(f"expected {width} fields, got {len(record)}", line=line)
    # Spreadsheets omit empty fields at the end of a line.
    fields = [[*record, *[""] * width][:width] for _, record in lines]
    table = DataFrame(fields, index=[line for line, _ in lines], columns=header, dtype=object)
    _check_headings(table, source, "verdict")
    return table


def _check_headings(table: DataFrame, source: Source, *headings: str) -> None:
    for heading in headings:
        if list(table).count(heading) != 1:
            raise source.error(
                f"not a review file: expected one column {heading!r}. Write a review file with labelsieve issues"
            )


def without_removed(dataset: Dataset, review: Review) -> Dataset:
    """Return the dataset without the candidates whose verdict is "remove"."""
    removed = review.answers == 0
    rows, labels, candidates = review.rows[removed], review.labels[removed], dataset.candidates
    if is_sparse(candidates):
        cleaned = candidates - sp.csr_array(
            (np.ones(len(rows), np.uint8), (rows, labels)), shape=candidates.shape
        )
    else:
        cleaned = candidates.copy()
        cleaned[rows, labels] = 0
    role = "Y" if dataset.Y_candidates is None else "Y_candidates"
    return replace(dataset, **{role: cleaned})
