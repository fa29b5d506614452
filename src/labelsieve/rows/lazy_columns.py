"""One dask array of what lies in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["lazy_rows"]


def lazy_rows(parts: Sequence[Any], sizes: Sequence[int], empty: Any) -> Any:
    """Make one dask array of delayed blocks of rows; ``empty`` is such a block without rows."""
    import dask.array as da

    blocks = [
        da.from_delayed(part, (size, empty.shape[1]), meta=empty)
        for part, size in zip(parts, sizes, strict=True)
    ]
    return da.concatenate(blocks)
