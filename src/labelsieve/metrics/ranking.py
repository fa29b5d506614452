"""Metrics that look at the order of the labels of a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from labelsieve._numerics.batches import batches
from labelsieve._numerics.sparse import Matrix
from labelsieve.metrics.counting import as_labels, require_same_shape

EmptyRows = Literal["skip", "perfect"]
Ties = Literal["errors", "index"]
CoverageUnit = Literal["zero-based", "count", "one-based", "excess"]


class _RankedRows(NamedTuple):
    """Rows with their labels in the order of the scores, best first; columns are places in that order."""

    is_true: np.ndarray
    #: How many labels come before the label in this place or tie with it, itself included.
    depth: np.ndarray
    #: How many of those are true.
    hits: np.ndarray


def ranking_loss(Y_true: Matrix, scores: np.ndarray, *, empty_rows: EmptyRows = "skip") -> float:
    """Return the share of (true, false) label pairs in which the false label scores at least as high; 0 is best.

    Parameters
    ----------
    Y_true : {array-like, sparse matrix} of shape (n_samples, n_labels)
        True labels, 0/1.
    scores : array-like of shape (n_samples, n_labels)
        Larger means more likely. Hard 0/1 predictions are scores with many ties.
    empty_rows : {"skip", "perfect"}, default="skip"
        Leave rows without a true label out of the mean, or count them as 0.

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
    unit: CoverageUnit = "zero-based",
    ties: Ties = "errors",
    empty_rows: EmptyRows = "skip",
) -> float:
    """Measure how far down the ranking the last true label of a row stands; lower is better.

    Parameters
    ----------
    Y_true : {array-like, sparse matrix} of shape (n_samples, n_labels)
        True labels, 0/1.
    scores : array-like of shape (n_samples, n_labels)
        Larger means more likely.
    unit : {"zero-based", "count", "one-based", "excess"}, default="zero-based"
        How to tell that the worst of the L true labels of a row is in place c of q: the steps below the first
        place as a share of the labels, (c - 1) / q; the labels one looks at, c, as scikit-learn's
        ``coverage_error``; their share, c / q; or the share of the false labels among them,
        (c - L) / (q - L), which is 0 for a perfect ranking and for a row where every label is true.
    ties : {"errors", "index"}, default="errors"
        A label comes after all that tie with it, or after those in earlier columns.
    empty_rows : {"skip", "perfect"}, default="skip"
        Leave rows without a true label out of the mean, or count them as 0.

    Examples
    --------
    >>> coverage([[1, 0, 1, 0]], [[0.9, 0.8, 0.7, 0.1]])
    0.5
    >>> coverage([[1, 0, 1, 0]], [[0.9, 0.8, 0.7, 0.1]], unit="count")
    3.0
    >>> coverage([[1, 0, 1, 0]], [[0.9, 0.8, 0.7, 0.1]], unit="excess")  # one of two false labels
    0.5
    """
    _require_option("unit", unit, CoverageUnit)

    def worst_place(rows: _RankedRows) -> np.ndarray:
        n_labels = rows.is_true.shape[1]
        depth = np.where(rows.is_true, rows.depth, 0).max(axis=1)
        match unit:
            case "zero-based":
                return (depth - 1) / n_labels
            case "count":
                return depth
            case "one-based":
                return depth / n_labels
            case "excess":
                n_true = rows.is_true.sum(axis=1)
                return (depth - n_true) / np.maximum(n_labels - n_true, 1)

    return _mean_over_rows(worst_place, Y_true, scores, empty_rows, perfect=0.0, ties=ties)


def average_precision(
    Y_true: Matrix, scores: np.ndarray, *, ties: Ties = "errors", empty_rows: EmptyRows = "skip"
) -> float:
    """Average the share of true labels among those at or above each true label; 1 is best.

    This is scikit-learn's label ranking average precision: averaged over the true labels of a row, then over
    the rows. It is not the area under a precision-recall curve.

    Parameters
    ----------
    Y_true : {array-like, sparse matrix} of shape (n_samples, n_labels)
        True labels, 0/1.
    scores : array-like of shape (n_samples, n_labels)
        Larger means more likely.
    ties : {"errors", "index"}, default="errors"
        All labels that tie with a label are above it, or those in earlier columns.
    empty_rows : {"skip", "perfect"}, default="skip"
        Leave rows without a true label out of the mean, or count them as 1.

    Examples
    --------
    >>> average_precision([[1, 0, 1, 0]], [[0.9, 0.8, 0.7, 0.1]])  # (1/1 + 2/3) / 2
    0.8333333333333333
    >>> average_precision([[1, 0]], [[0.5, 0.5]]), average_precision([[1, 0]], [[0.5, 0.5]], ties="index")
    (0.5, 1.0)
    """

    def precision(rows: _RankedRows) -> np.ndarray:
        at_true_labels = np.where(rows.is_true, rows.hits / rows.depth, 0).sum(axis=1)
        return at_true_labels / np.maximum(rows.is_true.sum(axis=1), 1)

    return _mean_over_rows(precision, Y_true, scores, empty_rows, perfect=1.0, ties=ties)


def one_error(Y_true: Matrix, scores: np.ndarray, *, empty_rows: EmptyRows = "skip") -> float:
    """Return the share of rows whose best label is not true; 0 is best.

    Where several labels share the highest score, all of them must be true.

    Parameters
    ----------
    Y_true : {array-like, sparse matrix} of shape (n_samples, n_labels)
        True labels, 0/1.
    scores : array-like of shape (n_samples, n_labels)
        Larger means more likely.
    empty_rows : {"skip", "perfect"}, default="skip"
        Leave rows without a true label out of the mean, or count them as 0.

    Examples
    --------
    >>> one_error([[1, 0], [1, 0]], [[0.9, 0.1], [0.2, 0.3]])
    0.5
    """

    def misses(rows: _RankedRows) -> np.ndarray:
        return rows.hits[:, 0] < rows.depth[:, 0]

    return _mean_over_rows(misses, Y_true, scores, empty_rows, perfect=0.0)


def _mean_over_rows(
    judge: Callable[[_RankedRows], np.ndarray],
    Y_true: Matrix,
    scores: np.ndarray,
    empty_rows: EmptyRows,
    perfect: float,
    ties: Ties = "errors",
) -> float:
    """Average what ``judge`` says about the rows that have true labels, and ``perfect`` for the others."""
    _require_option("empty_rows", empty_rows, EmptyRows)
    _require_option("ties", ties, Ties)
    true = as_labels(Y_true, "Y_true")
    scores = np.asarray(scores)
    if scores.dtype.kind not in "biuf":
        raise ValueError(f"scores must be a dense array of numbers. Got dtype {scores.dtype.name!r}.")
    require_same_shape(true, scores, "scores")
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
    total = sum(float(judge(rows).sum()) for rows in _ranked(true[has_labels], scores[has_labels], ties))
    if empty_rows == "skip":
        return total / n_judged
    return (total + n_empty * perfect) / (n_judged + n_empty)


def _ranked(true: np.ndarray, scores: np.ndarray, ties: Ties) -> Iterator[_RankedRows]:
    """Sort the labels of each row by score, in batches of rows so that the copies stay small."""
    n_rows, n_labels = true.shape
    places = np.arange(n_labels)
    for rows in batches(n_rows, width=n_labels):
        if ties == "errors":
            order = np.argsort(scores[rows], axis=1)[:, ::-1]
        else:
            # Sorted stably from the last column to the first, then reversed: the earlier of two equals is first.
            order = n_labels - 1 - np.argsort(scores[rows, ::-1], axis=1, kind="stable")[:, ::-1]
        is_true = np.take_along_axis(true[rows], order, axis=1)
        is_last = np.ones(is_true.shape, dtype=bool)
        if ties == "errors":
            # Equal scores share the depth of the last of them.
            sorted_scores = np.take_along_axis(scores[rows], order, axis=1)
            is_last[:, :-1] = sorted_scores[:, :-1] != sorted_scores[:, 1:]
        last = np.where(is_last, places, n_labels)
        last = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
        hits = np.take_along_axis(np.cumsum(is_true, axis=1), last, axis=1)
        yield _RankedRows(is_true, last + 1, hits)


def _require_option(name: str, value: str, allowed: Any) -> None:
    choices = get_args(allowed)
    if value not in choices:
        *others, last = (f'"{choice}"' for choice in choices)
        raise ValueError(f"{name} must be {', '.join(others)} or {last}. Got {value!r}.")
