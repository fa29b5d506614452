"""Review files: CSV tables of candidates in which a person fills in verdicts.

A line is a candidate: the row number (``sample``, counted from 0), the row name (``id:COLUMN``) if the data have one,
the label, and a ``verdict``: keep, remove, or empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from labelsieve._numerics.sparse import entries, is_sparse
from labelsieve._text import csv_cell, csv_text
from labelsieve.inspection.label_issues import LabelIssues
from labelsieve.io.dataset import Dataset
from labelsieve.io.errors import DatasetError
from labelsieve.io.frames import read_records
from labelsieve.io.source import Source

__all__ = [
    "Review",
    "id_column",
    "issues_text",
    "n_verdicts",
    "places_text",
    "read_review",
    "without_removed",
]

_ID_PREFIX = "id:"
_ANSWERS = {"keep": 1, "remove": 0}


@dataclass(frozen=True)
class Review:
    """Candidates of a review file.

    Attributes
    ----------
    rows, labels : ndarray of shape (n_lines,)
        Row and label of each, counted from 0.
    answers : ndarray of shape (n_lines,)
        1 for keep, 0 for remove, -1 for no verdict.
    """

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
    return csv_text([tuple(columns), *zip(*columns.values(), strict=True)])


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
    source = Source(path)
    number, header = next(_lines(source), (1, []))
    _place("verdict", header, source, number)
    named = [name for name in header if name.startswith(_ID_PREFIX)]
    return named[0][len(_ID_PREFIX) :] if named else None


def n_verdicts(path: Path) -> int:
    """Count the verdicts in a file; 0 if it is not a review file."""
    try:
        records = _lines(Source(path))
        _, header = next(records, (1, []))
        at = header.index("verdict")
        return sum(bool(record[at].strip()) for _, record in records)
    except (DatasetError, ValueError):
        return 0


def read_review(path: Path, dataset: Dataset) -> Review:
    """Read a review file as spreadsheets save it: any separator, line ending and byte order mark.

    Parameters
    ----------
    path : Path
        The file.
    dataset : Dataset
        The reviewed data. Rows are named by its `id_column` if the file has that column, else numbered.

    Raises
    ------
    DatasetError
        A line is not a candidate, is a duplicate or has an invalid verdict.
    """
    source = Source(path)
    records = _lines(source)
    number, header = next(records, (1, []))
    is_named = f"{_ID_PREFIX}{dataset.id_column}" in header
    row_heading = f"{_ID_PREFIX}{dataset.id_column}" if is_named else "sample"
    row_at, label_at, verdict_at = (
        _place(heading, header, source, number) for heading in (row_heading, "label", "verdict")
    )
    label_names, candidates = dataset.label_names, dataset.candidates
    known_labels = _written(label_names, "labels")
    known_rows = _written(list(map(str, dataset.row_ids)), "rows") if is_named else None
    answers: list[int] = []
    lines: dict[tuple[int, int], int] = {}
    for number, record in records:
        row = _row(record[row_at], known_rows, candidates.shape[0], source, number)
        label = known_labels.get(record[label_at])
        if label is None:
            raise source.error(
                f"{record[label_at][:80]!r} is no label of the data; do not change that column", line=number
            )
        first = lines.setdefault((row, label), number)
        if first != number:
            raise source.error(
                f"this row and label stand in line {first} already; leave one of them out", line=number
            )
        answers.append(_answer(record[verdict_at], source, number))
    places = np.array(list(lines), dtype=np.intp).reshape(-1, 2)
    review = Review(places[:, 0], places[:, 1], np.array(answers, dtype=int))
    is_candidate = entries(candidates, review.rows, review.labels) > 0
    if not is_candidate.all():
        at = int(np.flatnonzero(~is_candidate)[0])
        raise source.error(
            f"label {label_names[review.labels[at]][:80]!r} is no candidate of this row; remove the line, or give the "
            "data that the file was written for",
            line=list(lines.values())[at],
        )
    return review


def _lines(source: Source) -> Iterator[tuple[int, list[str]]]:
    """Yield the header and the lines that are not empty, each as long as the header."""
    width = None
    for number, record in read_records(source)[0]:
        if width is None:
            record = [field.strip() for field in record]
            while record and not record[-1]:
                record.pop()
            width = len(record)
        elif not any(field.strip() for field in record):
            continue
        elif any(field.strip() for field in record[width:]):
            raise source.error(f"expected {width} fields, got {len(record)}; correct the line", line=number)
        # Spreadsheets leave out empty fields at the end of a line.
        yield number, [*record, *("",) * (width - len(record))]


def _place(heading: str, header: list[str], source: Source, line: int) -> int:
    """Return the position of a required column."""
    if header.count(heading) != 1:
        raise source.error(
            f"is no review file of these data: it needs one column {heading!r}; write one with labelsieve issues",
            line=line,
        )
    return header.index(heading)


def _row(text: str, known: dict[str, int] | None, n_rows: int, source: Source, line: int) -> int:
    """Return the row that a field names or numbers."""
    if known is not None:
        if text not in known:
            raise source.error(
                f"no row of the data is called {text[:80]!r}; do not change that column (spreadsheets change numbers "
                "such as 007 unless it is formatted as text)",
                line=line,
            )
        return known[text]
    number = text.strip()
    if not (number.isascii() and number.isdigit() and len(number) < 19 and int(number) < n_rows):
        raise source.error(
            f"{text[:80]!r} is no row of the data; 'sample' counts from 0 to {n_rows - 1}", line=line
        )
    return int(number)


def _answer(text: str, source: Source, line: int) -> int:
    """Return 1 for keep, 0 for remove, -1 for an empty verdict."""
    verdict = text.strip().lower()
    if not verdict:
        return -1
    if verdict not in _ANSWERS:
        raise source.error(f"the verdict must be keep, remove or nothing, got {text[:80]!r}", line=line)
    return _ANSWERS[verdict]


def without_removed(dataset: Dataset, review: Review) -> Dataset:
    """Return the data without the candidates that a review removes.

    Examples
    --------
    >>> data = Dataset([[0.5], [2.0]], [[1, 0], [1, 1]])
    >>> review = Review(np.array([1, 0]), np.array([1, 0]), np.array([0, 1]))
    >>> without_removed(data, review).Y
    array([[1, 0],
           [1, 0]], dtype=uint8)
    """
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
