"""Split long axes into batches to keep temporary arrays small."""

from __future__ import annotations

from collections.abc import Iterator

#: Maximum number of entries of a temporary array: 32 MiB of float64.
BUDGET = 2**22


def batches(length: int, width: int, budget: int = BUDGET) -> Iterator[slice]:
    """Split ``range(length)`` into slices whose length times ``width`` is at most the budget.

    Examples
    --------
    >>> list(batches(5, width=10, budget=20))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    size = max(1, budget // max(1, width))
    for start in range(0, length, size):
        yield slice(start, min(start + size, length))
