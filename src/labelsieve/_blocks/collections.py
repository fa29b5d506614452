"""Dask arrays and dataframes as blocks of rows."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsieve._blocks.blocks import RowBlocks
from labelsieve._blocks.streamed import StreamedBlocks


def is_lazy(value: Any) -> bool:
    """Return whether ``value`` is a dask collection, without importing dask."""
    dask = sys.modules.get("dask")
    return dask is not None and bool(dask.is_dask_collection(value))


def column_names(value: Any) -> list[str] | None:
    """Return the column names of a dataframe if all are strings, else None."""
    columns = getattr(value, "columns", None)
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    return list(columns)


def open_rows(X: Any, y: Any) -> RowBlocks:
    """Convert lazy features and labels to blocks, on the cluster if there is an active client."""
    import dask
    from dask.base import optimize

    X, y = _lazy_array(X), _lazy_array(y)
    _check_chunks(X, "X")
    if not is_lazy(y):
        y = _cut_like(y, X)
    _check_chunks(y, "y")
    if X.shape[0] != y.shape[0]:
        raise ValueError(f"X and y must have the same number of rows, got {X.shape[0]} and {y.shape[0]}.")
    if X.chunks[0] != y.chunks[0]:
        raise ValueError(
            f"X and y must have the same row chunks, got {_describe_chunks(X)} and {_describe_chunks(y)}. "
            f"Use y = y.rechunk({{0: X.chunks[0]}})."
        )
    # Filtering rows can leave empty chunks.
    filled = [index for index, size in enumerate(X.chunks[0]) if size] or [0]
    sizes = [X.chunks[0][index] for index in filled]
    # Fusing would repeat tasks that X and y share, such as parsing a file.
    with dask.config.set({"optimization.fuse.active": False}):
        X, y = optimize(X, y)
    columns = {
        name: value.to_delayed(optimize_graph=False).ravel()[filled] for name, value in (("X", X), ("Y", y))
    }
    client = _active_client()
    if client is None:
        return StreamedBlocks(columns, sizes)
    from labelsieve._blocks.cluster import ClusterBlocks

    return ClusterBlocks(client, columns, sizes)


def _lazy_array(value: Any) -> Any:
    """Convert a dask dataframe to an array with known chunks. Other objects are returned unchanged."""
    return value.to_dask_array(lengths=True) if is_lazy(value) and hasattr(value, "to_dask_array") else value


def _describe_chunks(value: Any) -> str:
    sizes = value.chunks[0]
    return f"{len(sizes)} chunks of {min(sizes)} to {max(sizes)} rows"


def _cut_like(y: Any, X: Any) -> Any:
    """Split labels in memory into the same row chunks as the features."""
    import dask.array as da

    y = y.tocsr() if sp.issparse(y) else np.asarray(y)
    fits = y.ndim == 2 and y.shape[0] == X.shape[0]
    return da.from_array(y, chunks=(X.chunks[0], -1) if fits else -1, asarray=False)


def _check_chunks(value: Any, name: str) -> None:
    """Check that an array is split only by rows, into chunks of known sizes."""
    if value.ndim != 2:
        shape = "features of shape (n_samples, n_features)"
        if name == "y":
            shape = "0/1 candidates of shape (n_samples, n_labels), with classes one-hot encoded"
        raise ValueError(f"{name} must be {shape}. Got {value.ndim} dimension(s).")
    if any(math.isnan(size) for size in (*value.chunks[0], *value.chunks[1])):
        raise ValueError(
            f"The chunks of {name} must have known sizes. Call {name}.compute_chunk_sizes() first."
        )
    if len(value.chunks[1]) > 1:
        raise ValueError(
            f"{name} must be split only by rows, got {len(value.chunks[1])} chunks of columns. "
            f"Use {name} = {name}.rechunk({{1: -1}})."
        )


def _active_client() -> Any:
    """Return the active dask client of this process, or None."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.Client.current()
    except ValueError:
        return None
