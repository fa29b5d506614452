"""Which columns of a table are labels, candidates or neither: by name, pattern, count, prefix or another file."""

from __future__ import annotations

import difflib
import fnmatch
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsieve._numerics.sparse import is_sparse
from labelsieve.io.errors import DatasetError, Fail, Mention
from labelsieve.io.options import ReadOptions
from labelsieve.io.readers.matrices import Matrices
from labelsieve.io.readers.mulan_xml import label_names_in
from labelsieve.io.readers.source import Source
from labelsieve.io.readers.table import CANDIDATE_PREFIX, LABEL_PREFIX, Table
from labelsieve.io.splitting import Roles, assign_roles, split_columns

SecondTable = Callable[[Path], Table]


def no_second_table(path: Path) -> Table:
    """Refuse a second file where only columns can be labels."""
    raise DatasetError(f"labels of a frame must be columns of it, got the file {str(path)!r}; join it first.")


def split_table(
    table: Table,
    options: ReadOptions,
    fail: Fail,
    *,
    declared: tuple[Sequence[str], str] | None = None,
    second_table: SecondTable = no_second_table,
) -> Matrices:
    """Make features and labels of a table; the other parameters are those of `choose_roles`."""
    table, roles = choose_roles(table, options, fail, declared=declared, second_table=second_table)
    return split_columns(table, roles, options, fail)


def choose_roles(
    table: Table,
    options: ReadOptions,
    fail: Fail,
    *,
    declared: tuple[Sequence[str], str] | None = None,
    second_table: SecondTable = no_second_table,
) -> tuple[Table, Roles]:
    """Say which columns are features and labels; the table is extended by those of other files.

    Parameters
    ----------
    declared : tuple of (label names, where they stand) or None
        Labels that the data's own files declare, taken when the options name none.
    second_table : callable
        Opens a second file that holds labels only.
    """
    ignored = [] if options.ignore is None else named_columns(table.names, options.ignore, fail, "ignored")
    table, candidates = _candidate_columns(table, options.candidates, fail, second_table)
    taken = {*ignored, *candidates}
    if options.labels is None:
        labels = _declared_columns(table, candidates, declared, fail)
    else:
        table, labels = _label_columns(table, options.labels, taken, fail, second_table)
    labels = [index for index in labels if index not in taken]
    return table, assign_roles(table, labels, candidates, ignored, fail)


def _candidate_columns(
    table: Table, wanted: Any, fail: Fail, second_table: SecondTable
) -> tuple[Table, list[int]]:
    """Columns of candidate labels, and the table extended by them if they came from another file."""
    if wanted is None:
        return table, [i for i, name in enumerate(table.names) if name.startswith(CANDIDATE_PREFIX)]
    file = _as_file(wanted, table)
    if file is not None:
        return _joined(table, second_table(file), file, fail, CANDIDATE_PREFIX)
    return table, named_columns(table.names, wanted, fail, "candidate")


def _label_columns(
    table: Table, wanted: Any, taken: set[int], fail: Fail, second_table: SecondTable
) -> tuple[Table, list[int]]:
    """Columns of true labels as the caller names them, and the table extended by those of another file."""
    count = as_count(wanted)
    if count is not None and wanted not in table.names:
        free = [index for index in range(len(table.names)) if index not in taken]
        return table, [free[place] for place in count_columns(len(free), count, fail)]
    file = _as_file(wanted, table)
    if file is None:
        return table, named_columns(table.names, wanted, fail)
    if file.suffix.lower() == ".xml":
        return table, _xml_columns(table, label_names_in(Source(file)), str(file), fail)
    return _joined(table, second_table(file), file, fail, "")


def _declared_columns(
    table: Table, candidates: list[int], declared: tuple[Sequence[str], str] | None, fail: Fail
) -> list[int]:
    """Columns of true labels by what the data itself says."""
    if declared is not None:
        return _xml_columns(table, *declared, fail)
    if table.declared_labels == []:
        raise fail(
            "declares with -C in its relation name more labels than it has attributes; give ",
            Mention("labels"),
        )
    if table.declared_labels is not None:
        return named_columns(table.names, table.declared_labels, fail)
    labels = [index for index, name in enumerate(table.names) if name.startswith(LABEL_PREFIX)]
    if not labels and not candidates:
        raise fail(
            "does not say which columns are labels; give ",
            Mention("labels"),
            " (names, a pattern such as 'label_*', the number of last columns, a Mulan XML file or a second table)",
        )
    return labels


def _as_file(wanted: Any, table: Table) -> Path | None:
    """The file meant by `wanted`, if it is one and no column."""
    if isinstance(wanted, os.PathLike):
        return Path(wanted)
    if not isinstance(wanted, str) or wanted in table.names:
        return None
    return Path(wanted) if wanted.lower().endswith(".xml") or os.path.isfile(wanted) else None


def _joined(table: Table, other: Table, file: Path, fail: Fail, prefix: str) -> tuple[Table, list[int]]:
    """The table with the columns of a second one, and where those are."""
    if other.values.shape[0] != table.values.shape[0]:
        raise fail(
            f"has {table.values.shape[0]} rows but {file} has {other.values.shape[0]}; they must match"
        )
    width = len(table.names)
    own = [f"label{index}" for index in range(len(other.names))] if other.headless else other.names
    matrices: list[Any] = [table.values, other.values]
    sparse = any(map(is_sparse, matrices))
    joined = replace(
        table,
        names=[*table.names, *(prefix + name for name in own)],
        values=sp.hstack(matrices, format="csr") if sparse else np.hstack(matrices),
        categories={
            **table.categories,
            **{width + index: kinds for index, kinds in other.categories.items()},
        },
        free_text=table.free_text | {width + index for index in other.free_text},
        headless=False,
    )
    return joined, list(range(width, width + len(own)))


def _xml_columns(table: Table, names: Sequence[str], origin: str, fail: Fail) -> list[int]:
    """Columns an XML file names; it must not contradict the header."""
    unknown = set(names).difference(table.names)
    if unknown:
        first = next(label for label in names if label in unknown)
        raise fail(
            f"has no attribute {first[:80]!r}, which {origin} names as a label "
            f"({len(unknown)} of {len(names)} are unknown); give the XML file that belongs to it as ",
            Mention("labels"),
        )
    wanted = set(names)
    return [index for index, name in enumerate(table.names) if name in wanted]


def as_count(wanted: object) -> int | None:
    """The number meant by an integer or a string of one, else None."""
    if isinstance(wanted, str):
        try:
            return int(wanted)
        except ValueError:
            return None
    return int(wanted) if isinstance(wanted, int) and not isinstance(wanted, bool) else None


def count_columns(total: int, count: int, fail: Fail) -> list[int]:
    """Positions of the last `count` of `total` columns, or of the first ones for a negative count."""
    if not 0 < abs(count) < total:
        raise fail(
            Mention("labels", count),
            f" must leave at least one feature of {total} columns and at least one label; "
            "give the number of label columns (negative for the first columns)",
        )
    return list(range(total - count, total)) if count > 0 else list(range(-count))


def named_columns(
    names: Sequence[str],
    wanted: str | Sequence[str],
    fail: Fail,
    role: str = "label",
) -> list[int]:
    """Positions of the columns with the wanted names or patterns, in file order.

    Parameters
    ----------
    names : sequence of str
        All columns.
    wanted : str or sequence of str
        Names or shell patterns such as ``"label_*"``; one string may hold several, parted by commas.
    """
    position = {name: index for index, name in enumerate(names)}
    if isinstance(wanted, str):
        wanted = (
            [wanted] if wanted in position else [part.strip() for part in wanted.split(",") if part.strip()]
        )
    chosen: set[int] = set()
    for item in wanted:
        if not isinstance(item, str):
            raise fail(f"{role} names must be strings, got {item!r}; give names, a pattern or a count")
        if item in position:
            chosen.add(position[item])
            continue
        matches = [index for index, name in enumerate(names) if fnmatch.fnmatchcase(name, item)]
        if not matches and "," in item:
            chosen.update(named_columns(names, [part.strip() for part in item.split(",")], fail, role))
            continue
        if not matches:
            # Bounded, since comparing long texts takes quadratic time.
            close = difflib.get_close_matches(
                item[:50], [name[:50] for name in names[:5000]], n=3, cutoff=0.0
            )
            raise fail(f"has no column {item[:80]!r}; the closest names are {', '.join(map(repr, close))}")
        chosen.update(matches)
    if not chosen:
        raise fail(f"got an empty list of {role} columns; name at least one")
    return sorted(chosen)
