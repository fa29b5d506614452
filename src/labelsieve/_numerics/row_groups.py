"""Groups of rows that no split or permutation may separate, such as the visits of one patient."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln

#: Fewest different permutations of whole groups for a test.
_LEAST_PERMUTATIONS = 1000


def check_groups(groups: Any, n_samples: int) -> np.ndarray | None:
    """Number the groups from 0, or return None if every row is its own group. Raise for another number of rows."""
    if groups is None:
        return None
    codes = np.unique(np.asarray(groups), return_inverse=True)[1].ravel()
    if len(codes) != n_samples:
        raise ValueError(f"row_groups must have one entry per row ({n_samples}), got {len(codes)}.")
    return codes if codes.max(initial=-1) + 1 < n_samples else None


def draw_folds(
    n_samples: int, n_folds: int, rng: np.random.Generator, groups: np.ndarray | None
) -> np.ndarray:
    """Draw the fold of every row. Large groups come first, each into the fold with the fewest rows.

    Examples
    --------
    >>> folds = draw_folds(6, 2, np.random.default_rng(0), np.array([0, 0, 0, 1, 2, 2]))
    >>> bool(folds[0] == folds[1] == folds[2]), bool(folds[4] == folds[5]), np.bincount(folds).tolist()
    (True, True, [3, 3])
    """
    if groups is None:
        plain: np.ndarray = rng.permutation(n_samples) % n_folds
        return plain
    sizes = np.bincount(groups)
    if len(sizes) < n_folds:
        raise ValueError(
            f"row_groups must have at least {n_folds} groups for {n_folds} folds, got {len(sizes)}."
        )
    order = rng.permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    fold_of, n_rows = np.empty(len(sizes), dtype=np.intp), np.zeros(n_folds, dtype=np.intp)
    for group in order:
        fold_of[group] = n_rows.argmin()
        n_rows[fold_of[group]] += sizes[group]
    folds: np.ndarray = fold_of[groups]
    return folds


def blocks_by_size(groups: np.ndarray) -> list[np.ndarray]:
    """Return the rows of the groups, one array of shape (n_groups, size) for each size of the groups.

    Examples
    --------
    >>> [block.tolist() for block in blocks_by_size(np.array([0, 1, 0, 2]))]
    [[[1], [3]], [[0, 2]]]
    """
    by_group = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups)
    ends = np.cumsum(sizes)
    return [
        by_group[(ends[sizes == size] - size)[:, None] + np.arange(size)] for size in np.unique(sizes) if size
    ]


class RowOrders:
    """Random orders of the rows. Whole groups change places with groups of the same size.

    Examples
    --------
    >>> orders = RowOrders(5, np.array([0, 0, 1, 1, 2]))
    >>> orders.draw(np.random.default_rng(3)).tolist()
    [2, 3, 0, 1, 4]
    """

    def __init__(self, n_samples: int, groups: np.ndarray | None) -> None:
        self._n_samples = n_samples
        self._blocks = None if groups is None else blocks_by_size(groups)

    @property
    def is_possible(self) -> bool:
        """True if there are enough different orders for a test."""
        if self._blocks is None:
            return True
        log_orders = sum(gammaln(len(block) + 1) for block in self._blocks)
        return bool(log_orders >= np.log(_LEAST_PERMUTATIONS))

    def require(self) -> None:
        """Raise if there are too few different orders."""
        if not self.is_possible:
            raise ValueError(
                "row_groups must have many groups of the same size, which permutations exchange as a whole, got sizes "
                f"{', '.join(f'{block.shape[1]} ({len(block)} times)' for block in (self._blocks or [])[:5])}. The "
                "test is impossible for these groups."
            )

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Draw one order."""
        if self._blocks is None:
            return rng.permutation(self._n_samples)
        order = np.empty(self._n_samples, dtype=np.intp)
        for block in self._blocks:
            order[block] = block[rng.permutation(len(block))]
        return order
