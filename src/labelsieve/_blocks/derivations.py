"""Columns that are made of the data again whenever they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from labelsieve._blocks.blocks import BlockFunction, Columns

__all__ = ["Derivation", "derived_column", "make_columns", "plan"]

#: What makes columns of others, and what its blocks share.
Derivation: TypeAlias = tuple[BlockFunction, tuple[Any, ...]]


def plan(derived: Sequence[Derivation], needs: Sequence[str]) -> tuple[list[str], list[Derivation]]:
    """Say which of ``X`` and ``Y`` must be read, and what is to be done with them, for some columns."""
    steps, wanted = [], set(needs)
    for function, shared in reversed(derived):
        if wanted.intersection(function.gives):
            wanted = wanted.difference(function.gives).union(function.needs)
            steps.append((function, shared))
    return [name for name in ("X", "Y") if name in wanted], steps[::-1]


def make_columns(columns: Columns, steps: Sequence[Derivation], first_row: int) -> Columns:
    """Make of the columns of one block that were read those that are derived."""
    block = {**columns, "first_row": first_row}
    for function, shared in steps:
        block.update(function(block, *shared)[0])
    return block


def derived_column(columns: Columns, steps: Sequence[Derivation], first_row: int, name: str) -> Any:
    """Make one column of a block."""
    return make_columns(columns, steps, first_row)[name]
