"""Metrics of 0/1 predictions, and validation of label matrices."""

from __future__ import annotations

from typing import Literal

import numpy as np

from labelsieve._candidates import require_known
from labelsieve._numerics.candidates import is_binary
from labelsieve._numerics.sparse import Matrix, check_structure, dense


def as_labels(Y: Matrix, name: str) -> np.ndarray:
    """Validate a label matrix, and convert it to a boolean array."""
    check_structure(Y, name)
    Y = np.asarray(dense(Y))
    if Y.ndim != 2 or Y.size == 0:
        raise ValueError(
            f"{name} must be a nonempty 0/1 matrix of shape (n_samples, n_labels), got shape {Y.shape!r}."
        )
    require_known(Y, name)
    if not is_binary(Y):
        raise ValueError(
            f"{name} must contain only 0 and 1, got other values of dtype {Y.dtype.name!r}. "
            f"Threshold it first, for example with ({name} > 0).astype(int)."
        )
    return Y == 1


def require_same_shape(true: np.ndarray, other: np.ndarray, name: str) -> None:
    """Raise if an array does not have the shape of the true labels."""
    if true.shape != other.shape:
        raise ValueError(
            f"{name} must have the shape of Y_true, {true.shape!r}, got {other.shape!r}. "
            f"Check that rows are samples and columns are labels."
        )


Undefined = Literal[0, 1, "skip"]


def macro_f1(Y_true: Matrix, Y_pred: Matrix, *, undefined: Undefined = 0) -> float:
    """Compute the mean F1 score of the labels. The best value is 1.

    Parameters
    ----------
    Y_true, Y_pred : {array-like, sparse matrix} of shape (n_samples, n_labels)
        True and predicted labels, 0/1.
    undefined : {0, 1, "skip"}, default=0
        F1 of a label without true and predicted positives, or "skip" to exclude it from the mean.

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
    """Compute the F1 score over all entries of the label matrix. The best value is 1.

    Parameters
    ----------
    Y_true, Y_pred : {array-like, sparse matrix} of shape (n_samples, n_labels)
        True and predicted labels, 0/1.
    undefined : {0, 1, "skip"}, default=0
        F1 if there are no true and no predicted labels. "skip" raises an error in this case.

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


def samples_f1(Y_true: Matrix, Y_pred: Matrix, *, undefined: Undefined = 0) -> float:
    """Compute the mean F1 score of the rows. The best value is 1.

    Parameters
    ----------
    Y_true, Y_pred : {array-like, sparse matrix} of shape (n_samples, n_labels)
        True and predicted labels, 0/1.
    undefined : {0, 1, "skip"}, default=0
        F1 of a row without true and predicted labels, or "skip" to exclude it from the mean.

    Examples
    --------
    >>> samples_f1([[1, 0, 1], [0, 0, 0]], [[1, 0, 0], [0, 0, 0]])  # 2/3 and an undefined 0
    0.3333333333333333
    >>> samples_f1([[1, 0, 1], [0, 0, 0]], [[1, 0, 0], [0, 0, 0]], undefined=1)
    0.8333333333333333
    """
    true, predicted = _label_pair(Y_true, Y_pred)
    return _mean_f1((true & predicted).sum(axis=1), true.sum(axis=1) + predicted.sum(axis=1), undefined)


def hamming_loss(Y_true: Matrix, Y_pred: Matrix) -> float:
    """Compute the fraction of wrong entries of the label matrix. The best value is 0.

    Parameters
    ----------
    Y_true, Y_pred : {array-like, sparse matrix} of shape (n_samples, n_labels)
        True and predicted labels, 0/1.

    Examples
    --------
    >>> hamming_loss([[1, 0], [1, 1]], [[1, 0], [1, 0]])
    0.25
    """
    true, predicted = _label_pair(Y_true, Y_pred)
    return float(np.count_nonzero(true != predicted) / true.size)


def subset_accuracy(Y_true: Matrix, Y_pred: Matrix) -> float:
    """Compute the fraction of rows whose labels are all predicted correctly. The best value is 1.

    Parameters
    ----------
    Y_true, Y_pred : {array-like, sparse matrix} of shape (n_samples, n_labels)
        True and predicted labels, 0/1.

    Examples
    --------
    >>> subset_accuracy([[1, 0], [1, 1]], [[1, 0], [1, 0]])
    0.5
    """
    true, predicted = _label_pair(Y_true, Y_pred)
    return float((true == predicted).all(axis=1).mean())


def _mean_f1(hits: np.ndarray, positives: np.ndarray, undefined: Undefined) -> float:
    """Average 2 hits / (true + predicted positives), with ``undefined`` if there are no positives."""
    if undefined not in (0, 1, "skip"):
        raise ValueError(f'undefined must be 0, 1 or "skip", got {undefined!r}.')
    is_defined = positives > 0
    f1 = 2 * hits[is_defined] / positives[is_defined]
    if undefined != "skip":
        return float((f1.sum() + undefined * np.count_nonzero(~is_defined)) / len(positives))
    if not is_defined.any():
        raise ValueError(
            'Y_true and Y_pred must not both be all zero if undefined="skip". Use more rows, or undefined=0.'
        )
    return float(f1.mean())


def _label_pair(Y_true: Matrix, Y_pred: Matrix) -> tuple[np.ndarray, np.ndarray]:
    true, predicted = as_labels(Y_true, "Y_true"), as_labels(Y_pred, "Y_pred")
    require_same_shape(true, predicted, "Y_pred")
    return true, predicted
