"""Multi-label metrics with every convention spelled out.

The ranking metrics look at scores, the others at 0/1 predictions. What papers leave open is an option here,
and the default of each option is what the experiments of this package use:

- A row without any true label has no ranking to judge. The ranking metrics leave it out; scikit-learn counts
  it as perfect (``empty_rows="perfect"``).
- Equal scores are judged by what stands at or above a label: a false label that ties with a true one counts
  as ranked above it, as in scikit-learn. A constant score therefore earns nothing. Coverage and average
  precision may let the earlier column come first instead (``ties="index"``), as a program does that sorts.
- Coverage tells in one of four units how many labels one must look at to meet the true ones (``unit``).
- A row where every label is true cannot be ranked wrongly: its ranking loss is 0, its precision 1.
- Nothing returns NaN: where no row or label is left to judge, the error says which option gives a value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Self

from labelsieve.metrics.counting import hamming_loss, macro_f1, micro_f1, samples_f1, subset_accuracy
from labelsieve.metrics.ranking import average_precision, coverage, one_error, ranking_loss

__all__ = [
    "METRICS",
    "PROTOCOL_METRICS",
    "Metric",
    "average_precision",
    "coverage",
    "hamming_loss",
    "macro_f1",
    "micro_f1",
    "one_error",
    "ranking_loss",
    "samples_f1",
    "subset_accuracy",
]


@dataclass(frozen=True)
class Metric:
    """A metric, which way is better, and what it looks at.

    Parameters
    ----------
    function : callable
        Called as ``function(Y_true, scores_or_predictions)``; returns a float.
    direction : {"higher", "lower"}
        Which values are better.
    needs : {"scores", "predictions"}
        Whether the second argument holds real scores or 0/1 predictions.

    Examples
    --------
    >>> def exact(Y_true, Y_pred):
    ...     return float((np.asarray(Y_true) == np.asarray(Y_pred)).all(axis=1).mean())
    >>> import numpy as np
    >>> Metric(exact, "higher", "predictions").function([[1, 0], [1, 1]], [[1, 0], [0, 1]])
    0.5
    """

    function: Callable[..., float]
    direction: Literal["higher", "lower"]
    needs: Literal["scores", "predictions"]

    def with_options(self, **options: Any) -> Self:
        """Return the same metric with other conventions.

        Examples
        --------
        >>> sklearn_loss = METRICS["ranking_loss"].with_options(empty_rows="perfect")
        >>> sklearn_loss.function([[0, 0], [1, 0]], [[0.1, 0.2], [0.1, 0.2]])
        0.5
        """
        return replace(self, function=partial(self.function, **options))


METRICS: dict[str, Metric] = {
    "ranking_loss": Metric(ranking_loss, "lower", "scores"),
    "coverage": Metric(coverage, "lower", "scores"),
    "average_precision": Metric(average_precision, "higher", "scores"),
    "macro_f1": Metric(macro_f1, "higher", "predictions"),
    "micro_f1": Metric(micro_f1, "higher", "predictions"),
    "hamming_loss": Metric(hamming_loss, "lower", "predictions"),
    "one_error": Metric(one_error, "lower", "scores"),
    "subset_accuracy": Metric(subset_accuracy, "higher", "predictions"),
    "samples_f1": Metric(samples_f1, "higher", "predictions"),
}
"""Name -> metric, those of the protocol first.

Examples
--------
>>> metric = METRICS["one_error"]
>>> metric.direction, metric.needs
('lower', 'scores')
>>> metric.function([[1, 0], [0, 1]], [[0.9, 0.2], [0.8, 0.3]])  # the second row's best score is wrong
0.5
"""

PROTOCOL_METRICS = tuple(name for name in METRICS if name != "samples_f1")
"""Metrics of an experiment that names none: the usual ones of the field, then others.

Examples
--------
>>> PROTOCOL_METRICS[0]
'ranking_loss'
"""
