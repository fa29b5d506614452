"""Names for the array types that pass between the layers."""

from __future__ import annotations

from typing import Any, TypeAlias

#: A dense ndarray or a scipy CSR/CSC matrix; scipy has no type stubs to say it better.
Matrix: TypeAlias = Any
