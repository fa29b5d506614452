"""The worked example that PML-FSSO, MIFS and DRMFS share: six rows, four features, three labels.

Its matrices and values were computed independently of this library from the methods' equations.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from labelsieve._blocks.blocks import MemoryBlocks
from labelsieve._numerics.information import cooccurrence, information_of_pairs
from labelsieve.methods._fsmir.labels import derive_confidence, symbol_information

_EXAMPLE: dict[str, Any] = json.loads(
    (Path(__file__).parent / "data" / "graph_methods.json").read_text(encoding="utf-8")
)
X = np.array(_EXAMPLE["X"])
Y = np.array(_EXAMPLE["Y"])
N_NEIGHBORS = 2


def graph(kind: str) -> np.ndarray:
    """The affinity over rows, features or labels."""
    return np.array(_EXAMPLE[f"{kind}_graph"])


def values(method: str, moment: str) -> dict[str, Any]:
    """Matrices and numbers of a method at a moment such as ``it1``."""
    return {name: np.array(value) for name, value in _EXAMPLE[method][moment].items()}


def numerical_gradient(function, at: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """Central differences, entry by entry."""
    gradient = np.empty_like(at)
    for index in np.ndindex(at.shape):
        ahead, behind = at.copy(), at.copy()
        ahead[index] += step
        behind[index] -= step
        gradient[index] = (function(ahead) - function(behind)) / (2 * step)
    return gradient


def fill(base: float, a: int, b: int, modulus: int, shape: tuple[int, int]) -> np.ndarray:
    """The start of a worked example: entry (i, j) is ``base + 0.1 ((a i + b j) mod modulus)``."""
    i, j = np.indices(shape)
    return base + 0.1 * ((a * i + b * j) % modulus)


def label_confidence(Y):
    """Stage 1 of PML-FSMIR, in memory."""
    rows = MemoryBlocks([{"Y": Y}])
    derive_confidence(rows, information_of_pairs(cooccurrence(Y), Y.shape[0]))
    return rows.gather("confidence")


def symbol_mutual_information(T, n_bins=None):
    """Information of all pairs of columns, in memory."""
    return symbol_information(MemoryBlocks([{"confidence": T}]), T.shape[1], n_bins)
