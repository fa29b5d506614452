"""Whether numbers are 0 and 1 only: the one question that everybody who takes labels asks."""

from __future__ import annotations

import numpy as np


def is_binary(values: np.ndarray, *, signed: bool = False) -> bool:
    """Whether all values are 0 or 1, or with `signed` -1, 0 or 1; text, complex numbers and NaN are not.

    Examples
    --------
    >>> is_binary(np.array([0.0, 1.0])), is_binary(np.array([True])), is_binary(np.array([-1, 1]))
    (True, True, False)
    >>> is_binary(np.array([-1, 1]), signed=True), is_binary(np.array(["1"]))
    (True, False)
    """
    if values.dtype.kind == "b":
        return True
    # What has no sign is not compared with -1, which some numpy cannot do.
    allowed = (-1, 0, 1) if signed and values.dtype.kind != "u" else (0, 1)
    return values.dtype.kind in "iuf" and bool(np.isin(values, allowed).all())
