"""Review files: CSV tables of labels with a column for verdicts.

Each line holds one label of one row: the row index (``sample``), the row name (``id:COLUMN``) if there is one, the
label, the ``issue`` (wrong or missing) and a ``verdict``: right if the row should have the label, wrong if not, unsure,
or empty. Labels of a random draw have its id (``draw``) and its planned size (``planned``). The other labels
of the row, its free text and the columns to show (``show:COLUMN``) help the reviewer and are not read.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from pandas import DataFrame

from labelsieve._numerics.candidates import fill_unknown
from labelsieve._numerics.sparse import dense, entries, is_sparse
from labelsieve._text import csv_cell, csv_text
from labelsieve.inspection._reviews import OPEN, Draw, Review
from labelsieve.inspection.guarantees import Correction
from labelsieve.inspection.label_issues import VERDICTS, LabelIssues
from labelsieve.io.dataset import Dataset
from labelsieve.io.errors import DatasetError
from labelsieve.io.frames import read_records
from labelsieve.io.source import Source

_ID_PREFIX, _SHOWN_PREFIX = "id:", "show:"
_ANSWERS = {word: code for code, word in VERDICTS.items()}
_ISSUES = {"": False, "wrong": False, "missing": True}
#: Words in the column of proposals.
_PROPOSALS = {"wrong": "remove", "missing": "add"}


def issues_to_csv(
    issues: LabelIssues,
    dataset: Dataset,
    n_listed: int | None = None,
    corrections: Sequence[Correction] = (),
) -> str:
    """Return ranked labels with their verdicts as CSV; missing labels follow the candidates.

    `n_listed` limits the number of labels of each kind that have neither a verdict nor a proposal. `corrections` are
    proposed in a column of their own, in the order of the kinds.
    """
    parts = [issues] if issues.missing is None else [issues, issues.missing]
    tables = []
    for number, part in enumerate(parts):
        width = len(part.label_names)
        proposed = np.zeros(len(part.rows), dtype=bool)
        if number < len(corrections):
            found = corrections[number]
            proposed = np.isin(part.rows * width + part.labels, found.rows * width + found.labels)
        is_kept = (part.answers != OPEN) | proposed
        others = np.flatnonzero(~is_kept)
        is_kept[others[: n_listed if n_listed is not None or part.which == "wrong" else 1000]] = True
        listed = np.flatnonzero(is_kept)
        rows, labels = part.rows[listed], part.labels[listed]
        columns: dict[str, Sequence[object]] = {
            "rank": (listed + 1).tolist(),
            "support": [round(float(value), 4) for value in part.support[rows, labels]],
        }
        if part.which == "wrong" and part.shown_probability is not None:
            columns["probability"] = [round(float(p), 4) for p in part.shown_probability[rows, labels]]
        if corrections:
            columns["proposed"] = [_PROPOSALS[part.which] if value else "" for value in proposed[listed]]
        review = Review(
            rows,
            labels,
            part.answers[listed],
            np.full(len(rows), part.which == "missing"),
            *_draws_of(part, rows, labels),
        )
        tables.append(_to_frame(review, dataset, columns))
    text = tables[0] if len(tables) == 1 else _stacked(tables)
    return csv_text(text)


def _stacked(tables: Sequence[DataFrame]) -> DataFrame:
    """Put tables with partly different columns below each other; empty cells are empty texts."""
    columns = list(dict.fromkeys(name for table in tables for name in table))
    columns = [name for name in columns if name not in _LAST] + [name for name in _LAST if name in columns]
    records = [record for table in tables for record in table.to_dict("records")]
    return DataFrame([[record.get(name, "") for name in columns] for record in records], columns=columns)


#: Columns at the end of a review file.
_LAST = ("verdict", "proposed", "draw", "planned")


def _draws_of(
    issues: LabelIssues, rows: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, tuple[Draw, ...]]:
    """Return the numbers of the draws of some labels, and the draws."""
    numbers, review = np.zeros(len(rows), dtype=np.intp), issues.review
    if review is None:
        return numbers, ()
    width = len(issues.label_names)
    number_of = dict(
        zip((review.rows * width + review.labels).tolist(), review.numbers.tolist(), strict=True)
    )
    numbers[:] = [number_of.get(cell, 0) for cell in (rows * width + labels).tolist()]
    return numbers, review.draws


def review_to_csv(review: Review, dataset: Dataset) -> str:
    """Return labels to review as CSV, without ranks that could influence the verdicts."""
    return csv_text(_to_frame(review, dataset, {}))


def _to_frame(review: Review, dataset: Dataset, columns: dict[str, Sequence[object]]) -> DataFrame:
    """Return a table in the format of `read_review`."""
    _index_names(dataset.label_names, "labels")
    draws = {draw.number: draw for draw in review.draws}
    columns = {
        "sample": review.rows.tolist(),
        "label": [dataset.label_names[label] for label in review.labels],
        "issue": ["missing" if value else "wrong" for value in review.is_missing],
        **columns,
        **_context_of(review, dataset),
        "verdict": [VERDICTS[int(answer)] for answer in review.answers],
        "draw": [draws[number].id if number else "" for number in review.numbers.tolist()],
        "planned": [draws[number].size if number else "" for number in review.numbers.tolist()],
    }
    if dataset.id_column is not None:
        names = list(map(str, dataset.row_ids))
        _index_names(names, "rows")
        columns = {f"{_ID_PREFIX}{dataset.id_column}": [names[row] for row in review.rows], **columns}
    return DataFrame(columns)


def _context_of(review: Review, dataset: Dataset) -> dict[str, list[str]]:
    """Return columns with the other labels of each row, its free text and the columns to show."""
    rows, place = np.unique(review.rows, return_inverse=True)
    Y = dense(fill_unknown(dataset.candidates)[rows]) > 0
    found = {
        "other labels": [
            ", ".join(dataset.label_names[at] for at in np.flatnonzero(Y[row]) if at != label)
            for row, label in zip(place, review.labels, strict=True)
        ]
    }
    if dataset.has_context:
        contexts = [dataset.context(int(row)) for row in rows]
        for name in contexts[0] if contexts else ():
            found[f"{_SHOWN_PREFIX}{name}"] = [contexts[row][name] for row in place]
    return found


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
    for optional in ("issue", "draw", "planned"):
        if optional not in table:
            table[optional] = ""
    if id_heading in table:
        rows = table[id_heading].map(_index_names(list(map(str, dataset.row_ids)), "rows"))
        hint = "(spreadsheets change numbers such as 007 unless the column is formatted as text)"
    else:
        rows = table["sample"].str.strip().map({str(row): row for row in range(n_rows)})
        hint = f"(numbered from 0 to {n_rows - 1})"
    labels = table["label"].map(_index_names(dataset.label_names, "labels"))
    kinds = table["issue"].str.strip().str.lower().map(_ISSUES)
    answers = table["verdict"].str.strip().str.lower().map(_ANSWERS)
    plans = [
        Draw.parse(identifier.strip(), int(size) if size.strip().isdecimal() else 0)
        if identifier.strip()
        else 0
        for identifier, size in zip(table["draw"], table["planned"], strict=True)
    ]
    numbers = DataFrame(
        {"draw": [plan.number if isinstance(plan, Draw) else plan for plan in plans]}, table.index
    )
    for heading, parsed, expected in (
        (row_heading, rows, f"a row of the dataset {hint}"),
        ("label", labels, "a label of the dataset"),
        ("issue", kinds, "wrong or missing"),
        ("verdict", answers, "right, wrong, unsure or nothing"),
        ("draw", numbers["draw"], "a draw such as 1:all with its planned size, or nothing"),
    ):
        if parsed.isna().any():
            line = parsed.isna().idxmax()
            raise source.error(
                f"column {heading!r} must contain {expected}, got {table[heading][line][:80]!r}", line=line
            )
    draws = {plan.number: plan for plan in plans if isinstance(plan, Draw)}
    for line, plan in zip(table.index, plans, strict=True):
        if isinstance(plan, Draw) and draws[plan.number] != plan:
            raise source.error(f"draw {plan.id!r} must have one planned size and one number", line=line)
    review = Review(
        rows.to_numpy(dtype=np.intp),
        labels.to_numpy(dtype=np.intp),
        answers.to_numpy(dtype=np.int8),
        kinds.to_numpy(dtype=bool),
        numbers["draw"].to_numpy(dtype=np.intp),
        tuple(draws[number] for number in sorted(draws)),
    )
    is_other = entries(dataset.candidates, review.rows, review.labels) != ~review.is_missing
    if is_other.any():
        line = table.index[is_other][0]
        problem = "is not missing from" if review.is_missing[is_other][0] else "is not a candidate in"
        raise source.error(
            f"label {table['label'][line][:80]!r} {problem} this row; remove the line or use the dataset "
            "that the file was written for",
            line=line,
        )
    is_repeated = DataFrame({"row": rows, "label": labels}).duplicated()
    if is_repeated.any():
        raise source.error("duplicate row and label; remove the line", line=is_repeated.idxmax())
    return review


def read_proposals(path: Path, review: Review) -> np.ndarray:
    """Return a mask of the labels of a review file that have a proposal and no verdict."""
    table = _read(Source(path))
    if "proposed" not in table:
        raise DatasetError(
            f"{path}: has no column 'proposed'; write one with labelsieve issues --checked FILE --remove-at 10%."
        )
    is_proposed = table["proposed"].str.strip().str.lower().isin(_PROPOSALS.values()).to_numpy()
    mask: np.ndarray = is_proposed & (review.answers == OPEN)
    return mask


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


def corrected(dataset: Dataset, review: Review) -> Dataset:
    """Return the dataset without the candidates that are wrong, and with the missing labels that are right."""
    candidates = dataset.candidates
    if is_sparse(candidates):
        sign = np.where(review.is_missing, 1, -1)[review.is_error]
        places = review.rows[review.is_error], review.labels[review.is_error]
        changes = sp.csr_array((sign, places), shape=candidates.shape)
        cleaned = sp.csr_array((candidates.astype(np.float64) + changes).astype(candidates.dtype))
        cleaned.eliminate_zeros()
    else:
        cleaned = candidates.copy()
        is_error = review.is_error
        cleaned[review.rows[is_error], review.labels[is_error]] = review.is_missing[is_error]
    role = "Y" if dataset.Y_candidates is None else "Y_candidates"
    return replace(dataset, **{role: cleaned})


def depends_on_columns(review: Review) -> bool:
    """Return True if corrections were chosen with the help of the columns, not only by random draws from all."""
    of_all = [draw.number for draw in review.draws if draw.is_of_all]
    return bool((review.is_error & ~np.isin(review.numbers, of_all)).any())


def provenance_file(path: Path) -> Path:
    """Return the file next to a corrected copy that says how it was corrected."""
    return path.with_name(f"{path.name}.review.json")


def provenance_text(checksum: str, n_removed: int, n_added: int) -> str:
    """Return the content of `provenance_file` for a copy with this checksum."""
    return (
        json.dumps({"sha256": checksum, "removed": n_removed, "added": n_added, "depends_on_columns": True})
        + "\n"
    )


def is_cleaned(dataset: Dataset) -> bool:
    """Return True if the labels of a file were corrected with the help of its columns."""
    path = provenance_file(Path(dataset.source)) if dataset.source else None
    if path is None or not path.is_file():
        return False
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("sha256") == dataset.checksum and bool(dataset.checksum)
