"""The container every reader returns and every writer takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp


class DatasetError(ValueError):
    """A data file or data set that cannot be used, said in one sentence."""


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Features with true labels, candidate labels or both."""

    X: np.ndarray | sp.csr_array
    Y: np.ndarray | sp.csr_array | None
    Y_candidates: np.ndarray | sp.csr_array | None
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...]
    name: str = ""
    source: str = ""
    nominal: tuple[str, ...] = ()
