"""Review files: CSV tables of labels with a column for verdicts.

Each line holds one label of one row: the row index (``sample``), the row name (``id:COLUMN``) if there is one, the
label, the ``issue`` (wrong or missing) and a ``verdict``: right if the row should have the label, wrong if not, unsure,
or empty. Labels of a random draw have its id (``draw``) and its planned size (``planned``). The other labels of the
row, its free text and the columns to show (``show:COLUMN``) help the reviewer and are not read. If a label of a row
has several lines, the last one counts.

`labelsieve review` appends lines to such a file. Its last heading, ``data:CHECKSUM``, names the data, and a last line
without a line end was not written completely and does not count. The JSON export of Label Studio is read too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from pandas import DataFrame

from labelsieve._numerics.candidates import fill_unknown
from labelsieve._numerics.sparse import dense, entries
from labelsieve._text import csv_cell, csv_text
from labelsieve.inspection._reviews import OPEN, Draw, Review, positions_in
from labelsieve.inspection.guarantees import Correction
from labelsieve.inspection.label_issues import VERDICTS, LabelIssues
from labelsieve.inspection.label_studio import read_tasks
from labelsieve.io.dataset import Dataset
from labelsieve.io.errors import DatasetError
from labelsieve.io.frames import read_records
from labelsieve.io.source import Source

_ID_PREFIX, _SHOWN_PREFIX = "id:", "show:"
#: Heading of the column that binds a file of `labelsieve review` to its data.
DATA_PREFIX = "data:"
_FIRST_LINE_OF_JOURNAL = re.compile(rb"""[^\n]*[,;\t]"?data:[0-9a-f]{16}""")
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
    """Return ranked labels with their verdicts as CSV; the parameters are those of `issues_to_frame`."""
    return csv_text(issues_to_frame(issues, dataset, n_listed, corrections))


def issues_to_frame(
    issues: LabelIssues,
    dataset: Dataset,
    n_listed: int | None = None,
    corrections: Sequence[Correction] = (),
) -> DataFrame:
    """Return ranked labels with their verdicts as a table; missing labels follow the candidates.

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
        tables.append(_to_frame(review, dataset, {**columns, **_context_of(review, dataset)}))
    check_names(dataset)
    return tables[0] if len(tables) == 1 else _stacked(tables)


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
    review, width = issues.review, len(issues.label_names)
    if review is None:
        return np.zeros(len(rows), dtype=np.intp), ()
    found = positions_in(rows * width + labels, review.rows * width + review.labels)
    return np.where(found >= 0, review.numbers[found], 0), review.draws


def review_to_csv(review: Review, dataset: Dataset) -> str:
    """Return labels to review as CSV, without ranks that could influence the verdicts."""
    return csv_text(review_to_frame(review, dataset))


def review_to_frame(review: Review, dataset: Dataset) -> DataFrame:
    """Return labels to review as a table, without ranks."""
    check_names(dataset)
    return _to_frame(review, dataset, _context_of(review, dataset))


def journal_to_csv(review: Review, dataset: Dataset, checksum: str) -> str:
    """Return a file of `labelsieve review` for data with this checksum."""
    frame = _to_frame(review, dataset, {})
    return csv_text(frame.assign(**{f"{DATA_PREFIX}{checksum}": ""}))


def check_names(dataset: Dataset) -> None:
    """Raise if two labels or two rows look the same in a review file."""
    _index_names(dataset.label_names, "labels")
    if dataset.id_column is not None:
        _index_names(list(map(str, dataset.row_ids)), "rows")


def _to_frame(review: Review, dataset: Dataset, columns: Mapping[str, Sequence[object]]) -> DataFrame:
    """Return a table in the format of `read_review`."""
    draws = {draw.number: draw for draw in review.draws}
    columns = {
        "sample": review.rows.tolist(),
        "label": [dataset.label_names[label] for label in review.labels],
        "issue": ["missing" if value else "wrong" for value in review.is_missing],
        **columns,
        "verdict": [VERDICTS[int(answer)] for answer in review.answers],
        "draw": [draws[number].id if number else "" for number in review.numbers.tolist()],
        "planned": [draws[number].size if number else "" for number in review.numbers.tolist()],
    }
    if dataset.id_column is not None:
        names = [str(dataset.row_ids[row]) for row in review.rows]
        columns = {f"{_ID_PREFIX}{dataset.id_column}": names, **columns}
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
        table = _read(Source(path))
    except DatasetError:
        return 0
    names = [name for name in table if name in ("sample", "label") or name.startswith(_ID_PREFIX)]
    return int((table.drop_duplicates(names, keep="last")["verdict"].str.strip() != "").sum())


def read_review(path: Path, dataset: Dataset, *, proposed: bool = False) -> Review:
    """Read a review file with any separator, line ending or byte order mark that spreadsheets write.

    Rows are matched by the id column of the dataset if the file has that column, otherwise by number. Of several lines
    for a label of a row, the last one counts. If `proposed`, proposals without a verdict count as verdicts outside
    draws. Invalid lines raise `DatasetError`.
    """
    lines, is_proposed = read_lines(path, dataset, proposed=proposed)
    cells = lines.rows * len(dataset.label_names) + lines.labels
    _, first = np.unique(cells, return_index=True)
    _, last = np.unique(cells[::-1], return_index=True)
    # In the order of the first lines, which is that of the draw.
    latest = (len(cells) - 1 - last)[np.argsort(first)]
    review = lines.take(latest)
    return review.correct(is_proposed[latest] & (review.answers == OPEN))


def read_lines(path: Path, dataset: Dataset, *, proposed: bool = False) -> tuple[Review, np.ndarray]:
    """Return all lines of a review file, and a mask of the proposals if they are asked for."""
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
    if not proposed:
        return review, np.zeros(len(table), dtype=bool)
    if "proposed" not in table:
        raise source.error(
            "has no column 'proposed'; write one with labelsieve issues --checked FILE --remove-at 10%"
        )
    return review, table["proposed"].str.strip().str.lower().isin(_PROPOSALS.values()).to_numpy()


def _read(source: Source) -> DataFrame:
    """Read the fields of a review file as strings, indexed by the number of the line or task."""
    if source.ending == ".json":
        table = DataFrame(read_tasks(source), dtype=object).fillna("")
        table.index += 1
        _check_headings(table, source, "verdict")
        return table
    if _FIRST_LINE_OF_JOURNAL.match(source.raw) and not source.raw.endswith(b"\n"):
        source.raw = source.raw[: source.raw.rfind(b"\n") + 1]
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
