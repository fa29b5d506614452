"""Metrics of the order in which scores rank the labels of a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from scipy.stats import rankdata

from labelsieve._numerics.batches import batches
from labelsieve._numerics.sparse import Matrix
from labelsieve.metrics.counting import as_labels, require_same_shape

EmptyRows = Literal["skip", "perfect"]
Ties = Literal["errors", "index"]
CoverageUnit = Literal["zero-based", "count", "one-based", "excess"]


class _RankedRows(NamedTuple):
    """Rows with labels sorted by score, best first. Columns are ranks."""

    is_true: np.ndarray
    #: Number of labels that rank above the label or are tied with it, including the label itself.
    depth: np.ndarray
    #: Number of true labels among them.
    hits: np.ndarray


def ranking_loss(Y_true: Matrix, scores: np.ndarray, *, empty_rows: EmptyRows = "skip") -> float:
    """Compute the fraction of wrongly ordered pairs of a true and a false label. The best value is 0.

    A pair is wrongly ordered if the score of the false label is at least as high.

    Parameters
    ----------
    Y_true : {array-like, sparse matrix} of shape (n_samples, n_labels)
        True labels, 0/1.
    scores : array-like of shape (n_samples, n_labels)
        Scores, where larger means more likely. 0/1 predictions are scores with many ties.
    empty_rows : {"skip", "perfect"}, default="skip"
        Exclude rows without a true label from the mean, or count them as 0.

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
    """Compute the mean rank of the last true label of a row. Lower is better.

    Parameters
    ----------
    Y_true : {array-like, sparse matrix} of shape (n_samples, n_labels)
        True labels, 0/1.
    scores : array-like of shape (n_samples, n_labels)
        Scores, where larger means more likely.
    unit : {"zero-based", "count", "one-based", "excess"}, default="zero-based"
        Unit of the rank c of the last of L true labels among q labels:

        - ``"zero-based"``: (c - 1) / q.
        - ``"count"``: c, as in scikit-learn's ``coverage_error``.
        - ``"one-based"``: c / q.
        - ``"excess"``: (c - L) / (q - L), the fraction of false labels ranked above the last true one. It is 0
          for a perfect ranking, and if all labels are true.
    ties : {"errors", "index"}, default="errors"
        A label ranks below all labels with the same score, or only below those in earlier columns.
    empty_rows : {"skip", "perfect"}, default="skip"
        Exclude rows without a true label from the mean, or count them as 0.

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

    def last_rank(rows: _RankedRows) -> np.ndarray:
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

    return _mean_over_rows(last_rank, Y_true, scores, empty_rows, perfect=0.0, ties=ties)


def average_precision(
    Y_true: Matrix, scores: np.ndarray, *, ties: Ties = "errors", empty_rows: EmptyRows = "skip"
) -> float:
    """Compute the label ranking average precision, as in scikit-learn. The best value is 1.

    The precision at a true label is the fraction of true labels among the labels ranked at or above it. It is
    averaged over the true labels of a row, then over the rows. This is not the area under a precision-recall
    curve.

    Parameters
    ----------
    Y_true : {array-like, sparse matrix} of shape (n_samples, n_labels)
        True labels, 0/1.
    scores : array-like of shape (n_samples, n_labels)
        Scores, where larger means more likely.
    ties : {"errors", "index"}, default="errors"
        A label ranks below all labels with the same score, or only below those in earlier columns.
    empty_rows : {"skip", "perfect"}, default="skip"
        Exclude rows without a true label from the mean, or count them as 1.

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
    """Compute the fraction of rows whose top-ranked label is not true. The best value is 0.

    If several labels have the highest score, all of them must be true.

    Parameters
    ----------
    Y_true : {array-like, sparse matrix} of shape (n_samples, n_labels)
        True labels, 0/1.
    scores : array-like of shape (n_samples, n_labels)
        Scores, where larger means more likely.
    empty_rows : {"skip", "perfect"}, default="skip"
        Exclude rows without a true label from the mean, or count them as 0.

    Examples
    --------
    >>> one_error([[1, 0], [1, 0]], [[0.9, 0.1], [0.2, 0.3]])
    0.5
    """

    def misses(rows: _RankedRows) -> np.ndarray:
        return rows.hits[:, 0] < rows.depth[:, 0]

    return _mean_over_rows(misses, Y_true, scores, empty_rows, perfect=0.0)


def macro_auc(Y_true: Matrix, scores: np.ndarray) -> float:
    """Compute the mean area under the ROC curve of the labels. The best value is 1.

    The area of a label is the probability that a row with the label has a higher score than a row without it.
    Ties count one half. Labels that all rows or no rows have are left out.

    Parameters
    ----------
    Y_true : {array-like, sparse matrix} of shape (n_samples, n_labels)
        True labels, 0/1.
    scores : array-like of shape (n_samples, n_labels)
        Scores, where larger means more likely. Unlike the other ranking metrics, this one compares the scores of
        different rows.

    Examples
    --------
    >>> macro_auc([[1, 0], [0, 0], [1, 1]], [[0.9, 0.1], [0.2, 0.3], [0.1, 0.3]])  # 1/2 and 3/4
    0.625
    """
    true, scores = _check_scores(Y_true, scores)
    n_true = true.sum(axis=0)
    varies = (n_true > 0) & (n_true < len(true))
    if not varies.any():
        raise ValueError(
            "Y_true must have a label that some rows have and others lack, got none. Use more rows."
        )
    true, n_true = true[:, varies], n_true[varies]
    rank_sums = np.where(true, rankdata(scores[:, varies], axis=0), 0).sum(axis=0)
    areas = (rank_sums - n_true * (n_true + 1) / 2) / (n_true * (len(true) - n_true))
    return float(areas.mean())


def _check_scores(Y_true: Matrix, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Validate true labels and scores. Return them as arrays."""
    true = as_labels(Y_true, "Y_true")
    scores = np.asarray(scores)
    if scores.dtype.kind not in "biuf":
        raise ValueError(f"scores must be a dense array of numbers, got dtype {scores.dtype.name!r}.")
    require_same_shape(true, scores, "scores")
    if np.isnan(scores).any():
        raise ValueError("scores must not contain NaN. Check the output of the classifier.")
    return true, scores


def _mean_over_rows(
    evaluate: Callable[[_RankedRows], np.ndarray],
    Y_true: Matrix,
    scores: np.ndarray,
    empty_rows: EmptyRows,
    perfect: float,
    ties: Ties = "errors",
) -> float:
    """Average a metric over the rows with true labels, and optionally ``perfect`` for the other rows."""
    _require_option("empty_rows", empty_rows, EmptyRows)
    _require_option("ties", ties, Ties)
    true, scores = _check_scores(Y_true, scores)
    has_labels = true.any(axis=1)
    n_labelled = int(np.count_nonzero(has_labels))
    n_empty = true.shape[0] - n_labelled
    if empty_rows == "skip" and n_labelled == 0:
        raise ValueError(
            f'Y_true must have a row with a true label if empty_rows="skip", got {n_empty} rows without one. '
            f'Use more rows, or empty_rows="perfect".'
        )
    total = sum(float(evaluate(rows).sum()) for rows in _ranked(true[has_labels], scores[has_labels], ties))
    if empty_rows == "skip":
        return total / n_labelled
    return (total + n_empty * perfect) / (n_labelled + n_empty)


def _ranked(true: np.ndarray, scores: np.ndarray, ties: Ties) -> Iterator[_RankedRows]:
    """Sort the labels of each row by score, in batches of rows to limit memory."""
    n_rows, n_labels = true.shape
    positions = np.arange(n_labels)
    for rows in batches(n_rows, width=n_labels):
        if ties == "errors":
            order = np.argsort(scores[rows], axis=1)[:, ::-1]
        else:
            # A stable sort of the reversed columns, reversed again, puts the earlier of two ties first.
            order = n_labels - 1 - np.argsort(scores[rows, ::-1], axis=1, kind="stable")[:, ::-1]
        is_true = np.take_along_axis(true[rows], order, axis=1)
        is_last = np.ones(is_true.shape, dtype=bool)
        if ties == "errors":
            # Tied labels all have the depth of the last one.
            sorted_scores = np.take_along_axis(scores[rows], order, axis=1)
            is_last[:, :-1] = sorted_scores[:, :-1] != sorted_scores[:, 1:]
        last = np.where(is_last, positions, n_labels)
        last = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
        hits = np.take_along_axis(np.cumsum(is_true, axis=1), last, axis=1)
        yield _RankedRows(is_true, last + 1, hits)


def _require_option(name: str, value: str, allowed: Any) -> None:
    choices = get_args(allowed)
    if value not in choices:
        *others, last = (f'"{choice}"' for choice in choices)
        raise ValueError(f"{name} must be {', '.join(others)} or {last}, got {value!r}.")
