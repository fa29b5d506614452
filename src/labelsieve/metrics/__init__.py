"""Multi-label metrics with explicit conventions.

Ranking metrics take scores, and the other metrics take 0/1 predictions. Conventions that papers leave open
are options. Their defaults are used in the experiments of this package:

- Ranking metrics skip rows without a true label. scikit-learn counts such rows as perfect
  (``empty_rows="perfect"``).
- If a false label has the same score as a true label, it counts as ranked above it, as in scikit-learn, so
  constant scores are not rewarded. With ``ties="index"``, coverage and average precision break ties by
  column instead, as in programs that sort the labels.
- Coverage has four units (``unit``).
- If all labels of a row are true, its ranking loss is 0 and its precision is 1.
- The macro AUC leaves out labels that all rows or no rows have.
- No metric returns NaN. If there is no row or label to average over, the error names an option that defines
  the value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Self

from labelsieve.metrics.counting import hamming_loss, macro_f1, micro_f1, samples_f1, subset_accuracy
from labelsieve.metrics.ranking import average_precision, coverage, macro_auc, one_error, ranking_loss

__all__ = [
    "METRICS",
    "PROTOCOL_METRICS",
    "Metric",
    "average_precision",
    "coverage",
    "hamming_loss",
    "macro_auc",
    "macro_f1",
    "micro_f1",
    "one_error",
    "ranking_loss",
    "samples_f1",
    "subset_accuracy",
]


@dataclass(frozen=True)
class Metric:
    """Metric with its direction and the kind of its input.

    Parameters
    ----------
    function : callable
        Called as ``function(Y_true, scores_or_predictions)``. Returns a float.
    direction : {"higher", "lower"}
        Better values.
    needs : {"scores", "predictions"}
        Second argument of the function: real scores or 0/1 predictions.

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
        """Return a copy of the metric with other conventions.

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
    "macro_auc": Metric(macro_auc, "higher", "scores"),
}
"""Metrics by name.

Examples
--------
>>> metric = METRICS["one_error"]
>>> metric.direction, metric.needs
('lower', 'scores')
>>> metric.function([[1, 0], [0, 1]], [[0.9, 0.2], [0.8, 0.3]])  # the second row's best score is wrong
0.5
"""

PROTOCOL_METRICS = tuple(name for name in METRICS if name not in ("samples_f1", "macro_auc"))
"""Default metrics of an experiment.

Examples
--------
>>> PROTOCOL_METRICS[0]
'ranking_loss'
"""
