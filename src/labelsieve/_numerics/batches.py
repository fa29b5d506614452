"""Cut long axes into pieces, so that temporary arrays stay small."""

from __future__ import annotations

from collections.abc import Iterator

#: Entries a temporary array may have: 32 MiB of float64.
BUDGET = 2**22


def batches(length: int, width: int, budget: int = BUDGET) -> Iterator[slice]:
    """Cut ``range(length)`` into slices of which each, times ``width``, stays within the budget.

    Examples
    --------
    >>> list(batches(5, width=10, budget=20))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    size = max(1, budget // max(1, width))
    for start in range(0, length, size):
        yield slice(start, min(start + size, length))
