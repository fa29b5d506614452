"""Temporary: `read` with all options, until `io.read` takes them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from labelsieve.io import Dataset, DatasetError
from labelsieve.io.options import ReadOptions
from labelsieve.io.reading import read_files, read_identifiers
from labelsieve.io.tables import read_table
from labelsieve.io.tables.opening import is_table


def read(
    files: list[str],
    *,
    chunks: Any = None,
    labels: Any = None,
    candidates: Any = None,
    ignore: Any = None,
    id: Any = None,
    roles: Any = None,
    label_sep: Any = None,
    text: Any = None,
    nominal: Any = None,
    missing: Any = None,
) -> Dataset:
    options = ReadOptions.of(
        labels=labels, candidates=candidates, ignore=ignore, nominal=nominal, missing=missing
    )
    if chunks is not None:
        return read_files(files, options, chunks=chunks)
    table = (
        len(files) == 1
        and candidates is None
        and nominal is None
        and missing is None
        and is_table(Path(files[0]))
        and not (isinstance(labels, str) and (labels.endswith(".xml") or os.path.isfile(labels)))
    )
    if table:
        return read_table(
            files[0],
            labels=labels,
            label_sep=label_sep,
            id=id,
            ignore=ignore or (),
            text=text or "drop",
            roles=roles,
        )
    if roles or label_sep or text:
        raise DatasetError("is for one table")
    if id is None:
        return read_files(files, options)
    names, is_left_out = read_identifiers(files, id)
    if not is_left_out:
        others = [part.strip() for part in ignore.split(",")] if isinstance(ignore, str) else ignore or ()
        options = replace(options, ignore=[*filter(None, others), id])
    return replace(read_files(files, options), row_ids=names, id_column=id)
