"""Features and labels to and from pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from labelsieve._pandas import import_pandas
from labelsieve.io.errors import DatasetError, Fail, Mention
from labelsieve.io.labelling import split_table
from labelsieve.io.options import ReadOptions
from labelsieve.io.readers.matrices import Matrices
from labelsieve.io.readers.table import (
    CANDIDATE_PREFIX,
    LABEL_PREFIX,
    MAX_CATEGORIES,
    Table,
    coded,
    in_order,
)

if TYPE_CHECKING:
    from pandas import DataFrame, Series


def frame_of(data: Matrices) -> DataFrame:
    """Return features and labels, which have names, as one frame."""
    pd = import_pandas(error=DatasetError)
    assert data.feature_names is not None
    assert data.label_names is not None
    blocks = [_block(pd, data.X, list(data.feature_names))]
    for prefix, labels in ((LABEL_PREFIX, data.Y), (CANDIDATE_PREFIX, data.Y_candidates)):
        if labels is not None:
            blocks.append(_block(pd, labels, [prefix + name for name in data.label_names]))
    frame = pd.concat(blocks, axis=1)
    coded_columns = {}
    for name in data.nominal:
        codes = np.asarray(frame[name]).astype(int)
        coded_columns[name] = pd.Categorical.from_codes(codes, categories=range(codes.max() + 1))
    return frame.assign(**coded_columns) if coded_columns else frame


def _block(pd: Any, matrix: Any, names: list[str]) -> DataFrame:
    if sp.issparse(matrix):
        return pd.DataFrame.sparse.from_spmatrix(matrix, columns=names)
    return pd.DataFrame(matrix, columns=names)


def split_frame(frame: DataFrame, options: ReadOptions) -> Matrices:
    """Take features and labels out of the columns of a frame."""

    def fail(*parts: str | Mention) -> DatasetError:
        return DatasetError("the frame ", *parts, ".")

    if not len(frame) or not len(frame.columns):
        raise fail(f"needs rows and columns, got shape {frame.shape!r}")
    names = [str(column) for column in frame.columns]
    if len(set(names)) < len(names):
        raise fail("needs column names that all differ; rename one")
    pd = import_pandas(error=DatasetError)
    columns: list[Any] = []
    categories: dict[int, tuple[str, ...]] = {}
    free_text = set()
    for index in range(len(names)):
        values, kinds = _column(pd, frame.iloc[:, index], names[index], fail)
        if kinds is not None and len(kinds) > MAX_CATEGORIES:
            free_text.add(index)
            values = np.zeros(len(frame))
        elif kinds is not None:
            categories[index] = kinds
        columns.append(values)
    if any(sp.issparse(column) for column in columns):
        tall = [column if sp.issparse(column) else sp.csc_array(column[:, None]) for column in columns]
        values = sp.csr_array(sp.hstack(tall, format="csr"))
    else:
        values = np.column_stack(columns)
    return split_table(Table(names, values, categories, free_text=frozenset(free_text)), options, fail)


def _column(pd: Any, column: Series, name: str, fail: Fail) -> tuple[Any, tuple[str, ...] | None]:
    """Values of one column, and its categories if it is nominal."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes = column.cat.codes.to_numpy().astype(np.float64)
        codes[codes < 0] = np.nan
        return codes, tuple(str(category) for category in column.cat.categories)
    if isinstance(column.dtype, pd.SparseDtype) and column.dtype.fill_value == 0:
        stored = column.array
        entries = (
            stored.sp_values.astype(np.float64),
            (stored.sp_index.indices, np.zeros(stored.npoints, int)),
        )
        return sp.csc_array(entries, shape=(len(column), 1)), None
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        seconds = (column - pd.Timestamp(0, tz=column.dt.tz)) / pd.Timedelta(seconds=1)
        return seconds.to_numpy(dtype=np.float64), None
    try:
        if column.dtype.kind == "c":
            raise TypeError("complex")
        return column.to_numpy(dtype=np.float64, na_value=np.nan), None
    except (TypeError, ValueError):
        pass
    if not (pd.api.types.is_string_dtype(column.dtype) or column.dtype == object):
        raise fail(
            f"column {name!r} must be numbers, text, categories or dates, got {column.dtype}; convert it"
        )
    codes_by_text: dict[str, int] = {}
    texts = ["" if missing else str(text) for text, missing in zip(column, column.isna(), strict=True)]
    values = np.array(coded(texts, codes_by_text))
    ordered = in_order(values[:, None], {0: codes_by_text})[0]
    return values, ordered
