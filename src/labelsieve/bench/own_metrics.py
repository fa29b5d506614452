"""Metrics of one's own: called with plain arrays, and whatever they do is told in one sentence."""

from __future__ import annotations

from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from labelsieve._numerics.sparse import dense
from labelsieve._numerics.typing import Matrix
from labelsieve._text import error_text
from labelsieve.bench.components import import_metric
from labelsieve.bench.config import MetricSpec
from labelsieve.metrics import Metric

__all__ = ["MetricFailed", "own_metric"]


class MetricFailed(Exception):
    """A metric of one's own raised an error, or returned no number."""


def own_metric(spec: MetricSpec) -> Metric:
    """Make a metric of the function that a configuration names."""
    return Metric(partial(_measure, spec), spec.direction, spec.needs)


def _measure(spec: MetricSpec, Y_true: Matrix, said: Matrix) -> float:
    """Call the function with copies, which it may change; bytes would overflow when they are multiplied."""
    true = np.array(dense(Y_true), dtype=int)
    output: Any = np.array(dense(said), dtype=int if spec.needs == "predictions" else float)
    try:
        value = import_metric(spec)(true, output)
        if isinstance(value, Real):
            return float(value)
    except (Exception, SystemExit) as error:
        raise MetricFailed(f"{spec.name} raised {error_text(error)}") from error
    shape = f" of shape {value.shape!r}" if isinstance(value, np.ndarray) else ""
    raise MetricFailed(f"{spec.name} must return one number. Got {type(value).__name__}{shape}.")
