"""Settle which columns of a table are labels, candidates or neither."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsieve.datasets.columns import (
    CANDIDATE_PREFIX,
    LABEL_PREFIX,
    as_count,
    count_columns,
    named_columns,
)
from labelsieve.datasets.dataset import Dataset, DatasetError
from labelsieve.datasets.mulan_xml import label_names_in
from labelsieve.datasets.source import Source
from labelsieve.datasets.table import Fail, Table, to_dataset

SecondTable = Callable[[Path], Table]


def no_second_table(path: Path) -> Table:
    """Refuse a second file where only columns can be labels."""
    raise DatasetError(f"labels of a frame must be columns of it, got the file {str(path)!r}; join it first.")


def check_options(nominal: str, missing: str) -> None:
    """Refuse values that `nominal` and `missing` do not have."""
    choices = {"nominal": ("code", "onehot"), "missing": ("error", "mean", "zero")}
    for parameter, value in (("nominal", nominal), ("missing", missing)):
        if value not in choices[parameter]:
            raise ValueError(f"{parameter} must be one of {', '.join(choices[parameter])}, got {value!r}.")


def split_table(
    table: Table,
    fail: Fail,
    *,
    labels: Any,
    candidates: Any,
    ignore: Any,
    nominal: str,
    missing: str,
    declared: tuple[Sequence[str], str] | None = None,
    second_table: SecondTable = no_second_table,
    name: str,
    source: str,
) -> Dataset:
    """Make a data set of a table; the first four keywords are parameters of `read`.

    Parameters
    ----------
    declared : tuple of (label names, where they stand) or None
        Labels that the data's own files declare, taken when `labels` is None.
    second_table : callable
        Opens a second file that holds labels only.
    """
    check_options(nominal, missing)
    ignored = [] if ignore is None else named_columns(table.names, ignore, fail, "ignored")
    table, candidate_columns = _candidate_columns(table, candidates, fail, second_table)
    if labels is None:
        label_columns = _declared_columns(table, candidate_columns, declared, fail)
    else:
        table, label_columns = _label_columns(
            table, labels, {*ignored, *candidate_columns}, fail, second_table
        )
    taken = {*ignored, *candidate_columns}
    return to_dataset(
        table,
        [index for index in label_columns if index not in taken],
        candidate_columns,
        fail,
        ignored=ignored,
        nominal=nominal,
        missing=missing,
        name=name,
        source=source,
    )


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
        raise fail("declares with -C in its relation name more labels than it has attributes; give labels=")
    if table.declared_labels is not None:
        return named_columns(table.names, table.declared_labels, fail)
    labels = [index for index, name in enumerate(table.names) if name.startswith(LABEL_PREFIX)]
    if not labels and not candidates:
        raise fail(
            "does not say which columns are labels; give labels= (names, a pattern such as 'label_*', "
            "the number of last columns, a Mulan XML file or a second table)"
        )
    return labels


def _as_file(wanted: Any, table: Table) -> Path | None:
    """The file meant by `wanted`, if it is one and no column."""
    if isinstance(wanted, os.PathLike):
        return Path(wanted)
    if not isinstance(wanted, str) or wanted in table.names:
        return None
    try:
        return Path(wanted) if wanted.lower().endswith(".xml") or Path(wanted).is_file() else None
    except (OSError, ValueError):  # too long, or with a NUL: no path
        return None


def _joined(table: Table, other: Table, file: Path, fail: Fail, prefix: str) -> tuple[Table, list[int]]:
    """The table with the columns of a second one, and where those are."""
    if other.values.shape[0] != table.values.shape[0]:
        raise fail(
            f"has {table.values.shape[0]} rows but {file} has {other.values.shape[0]}; they must match"
        )
    width = len(table.names)
    own = [f"label{index}" for index in range(len(other.names))] if other.headless else other.names
    matrices = [table.values, other.values]
    sparse = any(map(sp.issparse, matrices))
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
            f"({len(unknown)} of {len(names)} are unknown); give the XML file that belongs to it as labels="
        )
    wanted = set(names)
    return [index for index, name in enumerate(table.names) if name in wanted]
