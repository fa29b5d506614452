"""From dask arrays and dataframes to blocks of rows, and back."""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsieve._blocks.blocks import Columns, RowBlocks
from labelsieve._blocks.fold_log import FoldLog
from labelsieve._blocks.streamed import StreamedBlocks

__all__ = ["column_names", "is_lazy", "open_rows"]


def is_lazy(value: Any) -> bool:
    """Say whether ``value`` is a dask collection; where dask was never imported, nothing is."""
    dask = sys.modules.get("dask")
    return dask is not None and bool(dask.is_dask_collection(value))


def column_names(value: Any) -> list[str] | None:
    """Names of the columns of a dataframe, lazy or not, if all are strings; None for arrays."""
    columns = getattr(value, "columns", None)
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    return list(columns)


def open_rows(
    X: Any,
    y: Any,
    *,
    checkpoint: str | None,
    identity: str,
    on_block: Callable[[int, int], None] | None = None,
) -> RowBlocks:
    """Turn lazy features and labels into blocks: on the cluster of the active client, else read one by one.

    ``identity`` says what is being fitted, so that checkpoints of something else are not taken up.
    """
    X, y = _lazy_array(X), _lazy_array(y)
    _check_chunks(X, "X")
    if not is_lazy(y):
        y = _cut_like(y, X)
    _check_chunks(y, "y")
    if X.shape[0] != y.shape[0]:
        raise ValueError(f"X and y must have the same number of rows. Got {X.shape[0]} and {y.shape[0]}.")
    if X.chunks[0] != y.chunks[0]:
        raise ValueError(
            f"X and y must be cut into the same blocks of rows. Got {_cuts(X)} and {_cuts(y)}. "
            f"Use y = y.rechunk({{0: X.chunks[0]}})."
        )
    sizes = X.chunks[0]
    identity = f"{identity}\n{X.shape} {y.shape} {sizes}"
    # Rows that were filtered leave blocks behind that have none; they say nothing of the others.
    filled = [index for index, size in enumerate(sizes) if size] or [0]
    sizes = [sizes[index] for index in filled]
    columns = {name: value.to_delayed().ravel()[filled] for name, value in (("X", X), ("Y", y))}
    client = _active_client()
    if client is not None:
        from labelsieve._blocks.cluster import ClusterBlocks

        folder = tempfile.mkdtemp(prefix="labelsieve-") if checkpoint is None else checkpoint
        return ClusterBlocks(
            client, columns, sizes, log=FoldLog(folder, identity, is_temporary=checkpoint is None)
        )
    graphs = zip(*(_own_graphs(parts) for parts in columns.values()), strict=True)
    loaders = [partial(_read, dict(zip(columns, block, strict=True))) for block in graphs]
    log = None if checkpoint is None else FoldLog(checkpoint, identity)
    return StreamedBlocks(loaders, sizes, log=log, on_block=on_block)


def _lazy_array(value: Any) -> Any:
    """Turn a dask dataframe into an array with known chunks; anything else is returned as it is."""
    return value.to_dask_array(lengths=True) if is_lazy(value) and hasattr(value, "to_dask_array") else value


def _cuts(value: Any) -> str:
    """Say how an array is cut."""
    sizes = value.chunks[0]
    return f"{len(sizes)} blocks of {min(sizes)} to {max(sizes)} rows"


def _cut_like(y: Any, X: Any) -> Any:
    """Cut labels that are in memory as the features are."""
    import dask.array as da

    y = y.tocsr() if sp.issparse(y) else np.asarray(y)
    if y.ndim != 2 or y.shape[0] != X.shape[0]:
        # What is wrong is said where lazy labels are checked.
        return da.from_array(y, chunks=-1, asarray=False)
    return da.from_array(y, chunks=(X.chunks[0], -1), asarray=False)


def _check_chunks(value: Any, name: str) -> None:
    """See that an array is cut into blocks of rows whose numbers are known."""
    if value.ndim != 2:
        shape = "features of shape (n_samples, n_features)"
        if name == "y":
            shape = "0/1 candidates of shape (n_samples, n_labels), one-hot encoded if they are classes"
        raise ValueError(
            f"{name} must have rows and columns where the rows come in blocks. Got {value.ndim} dimension(s). "
            f"Give {shape}."
        )
    if any(math.isnan(size) for size in (*value.chunks[0], *value.chunks[1])):
        raise ValueError(
            f"The chunks of {name} must have known sizes. Got unknown ones. Call {name}.compute_chunk_sizes() first."
        )
    if len(value.chunks[1]) > 1:
        raise ValueError(
            f"{name} must be cut into blocks of rows only. Got {len(value.chunks[1])} chunks of columns. "
            f"Use {name} = {name}.rechunk({{1: -1}})."
        )


def _active_client() -> Any:
    """Return the client of a cluster that is in use in this process, or None."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None


def _own_graphs(parts: Sequence[Any]) -> list[tuple[dict[Any, Any], Any]]:
    """Return for every block of an array the tasks that make it, and the key of the last one.

    All blocks share one graph, which whoever computes a block in every fold must not search each time.
    """
    from dask.optimization import cull

    shared = dict(parts[0].__dask_graph__())
    return [(cull(shared, [part.key])[0], part.key) for part in parts]


def _read(block: dict[str, tuple[dict[Any, Any], Any]], names: Sequence[str]) -> Columns:
    """Compute some lazy columns of a block here and now."""
    from dask.local import get_sync

    tasks = {key: task for name in names for key, task in block[name][0].items()}
    values = get_sync(tasks, [block[name][1] for name in names])
    return dict(zip(names, values, strict=True))
