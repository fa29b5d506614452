"""One dask array of what lies in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

__all__ = ["lazy_rows"]


def lazy_rows(parts: Sequence[Any], sizes: Sequence[int], empty: Any) -> Any:
    """Make one dask array of delayed blocks of rows; ``empty`` is such a block without rows.

    All tasks lie in one layer of its graph. With layers for each block, as concatenated arrays have, dask compares
    all blocks with all others whenever it optimises the graph.
    """
    import dask.array as da
    from dask.utils import ensure_dict

    name = f"rows-{uuid4().hex}"
    tasks: dict[Any, Any] = {}
    for index, part in enumerate(parts):
        tasks.update(ensure_dict(part.__dask_graph__()))
        tasks[name, index, 0] = part.key
    return da.Array(tasks, name, (tuple(sizes), (empty.shape[1],)), meta=empty)
