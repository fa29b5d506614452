"""Multi-label metrics with every convention spelled out.

The ranking metrics look at scores, the others at 0/1 predictions. What papers leave open is an option here,
and the default of each option is what the experiments of this package use:

- A row without any true label has no ranking to judge. The ranking metrics leave it out; scikit-learn counts
  it as perfect (``empty_rows="perfect"``).
- Equal scores are judged by what stands at or above a label: a false label that ties with a true one counts
  as ranked above it, as in scikit-learn. A constant score therefore earns nothing.
- A row where every label is true cannot be ranked wrongly: its ranking loss is 0, its precision 1.
- Nothing returns NaN: where no row or label is left to judge, the error says which option gives a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from labelsieve.numerics.batches import batches
from labelsieve.numerics.binary import is_binary
from labelsieve.numerics.sparse import dense
from labelsieve.numerics.typing import Matrix

__all__ = [
    "METRICS",
    "Metric",
    "average_precision",
    "coverage",
    "hamming_loss",
    "macro_f1",
    "micro_f1",
    "one_error",
    "ranking_loss",
    "subset_accuracy",
]

EmptyRows = Literal["skip", "perfect"]
Undefined = Literal[0, 1, "skip"]


class _RankedRows(NamedTuple):
    """Rows with their labels in the order of the scores, best first; columns are places in that order."""

    is_true: np.ndarray
    #: How many labels score at least as high as the label in this place.
    depth: np.ndarray
    #: How many of those are true.
    hits: np.ndarray


def ranking_loss(Y_true: Matrix, scores: np.ndarray, *, empty_rows: EmptyRows = "skip") -> float:
    """Share of (true, false) label pairs in which the false label scores at least as high; 0 is best.

    Parameters
    ----------
    Y_true : {array-like, sparse matrix} of shape (n_samples, n_labels)
        True labels, 0/1.
    scores : array-like of shape (n_samples, n_labels)
        Larger means more likely. Hard 0/1 predictions are scores with many ties.
    empty_rows : {"skip", "perfect"}, default="skip"
        Leave rows without a true label out of the mean, or count them as 0.

    Returns
    -------
    loss : float
        Mean over the rows, in [0, 1].

    Examples
    --------
    >>> ranking_loss([[1, 0, 0]], [[0.5, 0.9, 0.1]])
    0.5
    >>> ranking_loss([[1, 0, 0], [0, 0, 0]], [[0.5, 0.9, 0.1], [0.2, 0.1, 0.3]], empty_rows="perfect")
    0.25
    """

    def loss(rows: _RankedRows) -> np.ndarray:
        wrong_pairs = np.where(rows.is_true, rows.depth - rows.hits, 0).sum(axis=1)
        n_true = rows.is_true.sum(axis=1)
        n_pairs = n_true * (rows.is_true.shape[1] - n_true)
        return wrong_pairs / np.maximum(n_pairs, 1)

    return _mean_over_rows(loss, Y_true, scores, empty_rows, perfect=0.0)


def coverage(
    Y_true: Matrix,
    scores: np.ndarray,
    *,
    zero_based: bool = True,
    divide: bool = True,
    empty_rows: EmptyRows = "skip",
) -> float:
    """How far down the ranking one must go to meet every true label; lower is better.

    Parameters
    ----------
    Y_true : {array-like, sparse matrix} of shape (n_samples, n_labels)
        True labels, 0/1.
    scores : array-like of shape (n_samples, n_labels)
        Larger means more likely.
    zero_based : bool, default=True
        Count steps below the first place; False counts labels, as scikit-learn's ``coverage_error`` does.
    divide : bool, default=True
        Divide by the number of labels, so that data sets can be compared; scikit-learn does not.
    empty_rows : {"skip", "perfect"}, default="skip"
        Leave rows without a true label out of the mean, or count them as 0.

    Returns
    -------
    depth : float
        Mean over the rows; in [0, 1) by default.

    Examples
    --------
    >>> coverage([[1, 0, 1, 0]], [[0.9, 0.8, 0.7, 0.1]])
    0.5
    >>> coverage([[1, 0, 1, 0]], [[0.9, 0.8, 0.7, 0.1]], zero_based=False, divide=False)
    3.0
    """

    def worst_place(rows: _RankedRows) -> np.ndarray:
        # A row without true labels is at depth 0 either way.
        depth = np.where(rows.is_true, rows.depth, 0).max(axis=1)
        steps = np.maximum(depth - zero_based, 0)
        return steps / rows.is_true.shape[1] if divide else steps

    return _mean_over_rows(worst_place, Y_true, scores, empty_rows, perfect=0.0)


def average_precision(Y_true: Matrix, scores: np.ndarray, *, empty_rows: EmptyRows = "skip") -> float:
    """Share of true labels among those at or above each true label, averaged; 1 is best.

    This is scikit-learn's label ranking average precision: averaged over the true labels of a row, then over
    the rows. It is not the area under a precision-recall curve.

    Parameters
    ----------
    Y_true : {array-like, sparse matrix} of shape (n_samples, n_labels)
        True labels, 0/1.
    scores : array-like of shape (n_samples, n_labels)
        Larger means more likely.
    empty_rows : {"skip", "perfect"}, default="skip"
        Leave rows without a true label out of the mean, or count them as 1.

    Returns
    -------
    precision : float
        Mean over the rows, in (0, 1].

    Examples
    --------
    >>> average_precision([[1, 0, 1, 0]], [[0.9, 0.8, 0.7, 0.1]])  # (1/1 + 2/3) / 2
    0.8333333333333333
    """

    def precision(rows: _RankedRows) -> np.ndarray:
        at_true_labels = np.where(rows.is_true, rows.hits / rows.depth, 0).sum(axis=1)
        return at_true_labels / np.maximum(rows.is_true.sum(axis=1), 1)

    return _mean_over_rows(precision, Y_true, scores, empty_rows, perfect=1.0)


def one_error(Y_true: Matrix, scores: np.ndarray, *, empty_rows: EmptyRows = "skip") -> float:
    """Share of rows whose best label is not true; 0 is best.

    Where several labels share the highest score, all of them must be true.

    Parameters
    ----------
    Y_true : {array-like, sparse matrix} of shape (n_samples, n_labels)
        True labels, 0/1.
    scores : array-like of shape (n_samples, n_labels)
        Larger means more likely.
    empty_rows : {"skip", "perfect"}, default="skip"
        Leave rows without a true label out of the mean, or count them as 0.

    Returns
    -------
    error : float
        Mean over the rows, in [0, 1].

    Examples
    --------
    >>> one_error([[1, 0], [1, 0]], [[0.9, 0.1], [0.2, 0.3]])
    0.5
    """

    def misses(rows: _RankedRows) -> np.ndarray:
        return rows.hits[:, 0] < rows.depth[:, 0]

    return _mean_over_rows(misses, Y_true, scores, empty_rows, perfect=0.0)


def macro_f1(Y_true: Matrix, Y_pred: Matrix, *, undefined: Undefined = 0) -> float:
    """F1 of every label, averaged over the labels; 1 is best.

    Parameters
    ----------
    Y_true, Y_pred : {array-like, sparse matrix} of shape (n_samples, n_labels)
        True and predicted labels, 0/1.
    undefined : {0, 1, "skip"}, default=0
        F1 of a label with neither a true nor a predicted positive, or "skip" to leave it out of the mean.

    Returns
    -------
    f1 : float
        In [0, 1].

    Examples
    --------
    >>> macro_f1([[1, 0], [1, 0]], [[1, 0], [0, 0]])  # 2/3 and an undefined 0
    0.3333333333333333
    >>> macro_f1([[1, 0], [1, 0]], [[1, 0], [0, 0]], undefined="skip")
    0.6666666666666666
    """
    true, predicted = _label_pair(Y_true, Y_pred)
    return _mean_f1((true & predicted).sum(axis=0), true.sum(axis=0) + predicted.sum(axis=0), undefined)


def micro_f1(Y_true: Matrix, Y_pred: Matrix, *, undefined: Undefined = 0) -> float:
    """F1 of all entries of the label matrix taken together; 1 is best.

    Parameters
    ----------
    Y_true, Y_pred : {array-like, sparse matrix} of shape (n_samples, n_labels)
        True and predicted labels, 0/1.
    undefined : {0, 1, "skip"}, default=0
        What to return when nothing is true and nothing predicted; "skip" has nothing left and is an error.

    Returns
    -------
    f1 : float
        In [0, 1].

    Examples
    --------
    >>> micro_f1([[1, 0], [1, 1]], [[1, 0], [0, 0]])
    0.5
    """
    true, predicted = _label_pair(Y_true, Y_pred)
    return _mean_f1(
        np.array([np.count_nonzero(true & predicted)]),
        np.array([np.count_nonzero(true) + np.count_nonzero(predicted)]),
        undefined,
    )


def hamming_loss(Y_true: Matrix, Y_pred: Matrix) -> float:
    """Share of the entries of the label matrix that are predicted wrongly; 0 is best.

    Parameters
    ----------
    Y_true, Y_pred : {array-like, sparse matrix} of shape (n_samples, n_labels)
        True and predicted labels, 0/1.

    Returns
    -------
    loss : float
        In [0, 1].

    Examples
    --------
    >>> hamming_loss([[1, 0], [1, 1]], [[1, 0], [1, 0]])
    0.25
    """
    true, predicted = _label_pair(Y_true, Y_pred)
    return float(np.count_nonzero(true != predicted) / true.size)


def subset_accuracy(Y_true: Matrix, Y_pred: Matrix) -> float:
    """Share of rows whose labels are all predicted rightly; 1 is best.

    Parameters
    ----------
    Y_true, Y_pred : {array-like, sparse matrix} of shape (n_samples, n_labels)
        True and predicted labels, 0/1.

    Returns
    -------
    accuracy : float
        In [0, 1].

    Examples
    --------
    >>> subset_accuracy([[1, 0], [1, 1]], [[1, 0], [1, 0]])
    0.5
    """
    true, predicted = _label_pair(Y_true, Y_pred)
    return float((true == predicted).all(axis=1).mean())


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


#: Name -> metric; the first five are the usual ones of the field.
METRICS: dict[str, Metric] = {
    "ranking_loss": Metric(ranking_loss, "lower", "scores"),
    "coverage": Metric(coverage, "lower", "scores"),
    "average_precision": Metric(average_precision, "higher", "scores"),
    "macro_f1": Metric(macro_f1, "higher", "predictions"),
    "micro_f1": Metric(micro_f1, "higher", "predictions"),
    "hamming_loss": Metric(hamming_loss, "lower", "predictions"),
    "one_error": Metric(one_error, "lower", "scores"),
    "subset_accuracy": Metric(subset_accuracy, "higher", "predictions"),
}


def _mean_over_rows(
    judge: Callable[[_RankedRows], np.ndarray],
    Y_true: Matrix,
    scores: np.ndarray,
    empty_rows: EmptyRows,
    perfect: float,
) -> float:
    """Average what ``judge`` says about the rows that have true labels, and ``perfect`` for the others."""
    if empty_rows not in ("skip", "perfect"):
        raise ValueError(f'empty_rows must be "skip" or "perfect". Got {empty_rows!r}.')
    true = _as_labels(Y_true, "Y_true")
    scores = np.asarray(scores)
    if scores.dtype.kind not in "biuf":
        raise ValueError(f"scores must be a dense array of numbers. Got dtype {scores.dtype.name!r}.")
    _require_same_shape(true, scores, "scores")
    if np.isnan(scores).any():
        raise ValueError("scores must be numbers that can be ranked. Got NaN. Check the classifier's output.")
    has_labels = true.any(axis=1)
    n_judged = int(np.count_nonzero(has_labels))
    n_empty = true.shape[0] - n_judged
    if empty_rows == "skip" and n_judged == 0:
        raise ValueError(
            f"Y_true must have a row with a true label when such rows alone are judged. Got {n_empty} rows "
            f'without any. Use more rows, or empty_rows="perfect".'
        )
    total = sum(float(judge(rows).sum()) for rows in _ranked(true[has_labels], scores[has_labels]))
    if empty_rows == "skip":
        return total / n_judged
    return (total + n_empty * perfect) / (n_judged + n_empty)


def _ranked(true: np.ndarray, scores: np.ndarray) -> Iterator[_RankedRows]:
    """Sort the labels of each row by score, in batches of rows so that the copies stay small."""
    n_rows, n_labels = true.shape
    places = np.arange(n_labels)
    for rows in batches(n_rows, width=n_labels):
        order = np.argsort(scores[rows], axis=1)[:, ::-1]
        sorted_scores = np.take_along_axis(scores[rows], order, axis=1)
        is_true = np.take_along_axis(true[rows], order, axis=1)
        # Equal scores share the depth of the last of them.
        is_last = np.ones(is_true.shape, dtype=bool)
        is_last[:, :-1] = sorted_scores[:, :-1] != sorted_scores[:, 1:]
        last = np.where(is_last, places, n_labels)
        last = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
        hits = np.take_along_axis(np.cumsum(is_true, axis=1), last, axis=1)
        yield _RankedRows(is_true, last + 1, hits)


def _mean_f1(hits: np.ndarray, positives: np.ndarray, undefined: Undefined) -> float:
    """Average 2 hits / (true + predicted positives) where there are positives, ``undefined`` elsewhere."""
    if undefined not in (0, 1, "skip"):
        raise ValueError(f'undefined must be 0, 1 or "skip". Got {undefined!r}.')
    is_defined = positives > 0
    f1 = 2 * hits[is_defined] / positives[is_defined]
    if undefined != "skip":
        return float((f1.sum() + undefined * np.count_nonzero(~is_defined)) / len(positives))
    if not is_defined.any():
        raise ValueError(
            "Y_true and Y_pred must have a positive when undefined labels are left out. Got only zeros. "
            "Use more rows, or undefined=0."
        )
    return float(f1.mean())


def _label_pair(Y_true: Matrix, Y_pred: Matrix) -> tuple[np.ndarray, np.ndarray]:
    true, predicted = _as_labels(Y_true, "Y_true"), _as_labels(Y_pred, "Y_pred")
    _require_same_shape(true, predicted, "Y_pred")
    return true, predicted


def _as_labels(Y: Matrix, name: str) -> np.ndarray:
    """Return a boolean label matrix, the smallest thing that all metrics can work on."""
    Y = np.asarray(dense(Y))
    if Y.ndim != 2 or Y.size == 0:
        raise ValueError(
            f"{name} must be a 0/1 matrix of shape (n_samples, n_labels) with rows and labels. "
            f"Got shape {Y.shape!r}."
        )
    if not is_binary(Y):
        raise ValueError(
            f"{name} must hold 0 and 1 only. Got other values, of dtype {Y.dtype.name!r}. "
            f"Threshold first, for example ({name} > 0).astype(int)."
        )
    return Y == 1


def _require_same_shape(true: np.ndarray, other: np.ndarray, name: str) -> None:
    if true.shape != other.shape:
        raise ValueError(
            f"{name} must have the shape of Y_true, {true.shape!r}. Got {other.shape!r}. "
            f"Check that rows are samples and columns are labels."
        )
