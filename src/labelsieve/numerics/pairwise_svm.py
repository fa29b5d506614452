"""One linear SVM per pair of labels, trained on the rows that tell the two apart.

libsvm, through scikit-learn, solves every pair: it is the solver of the published results and, with rows
in the tens, what costs is the call and not the method.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn import config_context
from sklearn.svm import SVC

from labelsieve.numerics.result import logger
from labelsieve.numerics.typing import Matrix

#: Numbers in a temporary block: 32 MiB of float64.
BLOCK_SIZE = 2**22

#: Iterations libsvm may take; enough for anything but features of wild scales, which it then warns about.
MAX_ITER = 10_000_000


@dataclass(frozen=True)
class PairwiseClassifiers:
    """Linear classifiers ``w . x + b > 0`` that prefer the first label of a pair.

    Parameters
    ----------
    first, second : integer ndarrays of shape (n_pairs,)
        The two labels of every pair.
    coef : ndarray of shape (n_pairs, n_features)
        Weight vectors.
    intercept : ndarray of shape (n_pairs,)
        Offsets.
    accuracy : ndarray of shape (n_pairs,)
        Share of its own training rows that a classifier gets right.
    """

    first: np.ndarray
    second: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    accuracy: np.ndarray


def train_pairwise(X: Matrix, credible: np.ndarray, candidate: np.ndarray, C: float) -> PairwiseClassifiers:
    """Train a linear SVM for every pair of labels that has rows on both sides.

    On the side of label j against k stand the rows where j is credible and k is no candidate. Labels that
    are candidates but not credible are on neither side. Pairs with an empty side are left out.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n_samples, n_features)
        Features.
    credible, candidate : boolean ndarrays of shape (n_samples, n_labels)
        Labels that are believed, labels that are possible.
    C : float
        Weight of the hinge loss.

    Examples
    --------
    >>> X = np.array([[0.0], [2.0]])
    >>> labels = np.array([[True, False], [False, True]])
    >>> trained = train_pairwise(X, labels, labels, C=1.0)
    >>> trained.coef, trained.intercept, trained.accuracy
    (array([[-1.]]), array([1.]), array([1.]))
    """
    first, second = _trainable_pairs(credible, candidate)
    coef = np.empty((len(first), X.shape[1]))
    intercept, accuracy = np.empty((2, len(first)))
    n_trained = 0
    kept = np.zeros(len(first), dtype=bool)
    with config_context(assume_finite=True, skip_parameter_validation=True):
        for pair, (rows, is_first) in enumerate(_training_rows(first, second, credible, candidate)):
            # A row on both sides counts for the first label only, which may leave the second without rows.
            if is_first.all():
                continue
            kept[pair] = True
            coef[n_trained], intercept[n_trained] = w, b = _linear_svm(X[rows], is_first, C)
            accuracy[n_trained] = np.mean((X[rows] @ w + b > 0) == is_first)
            n_trained += 1
            if n_trained % 5000 == 0:
                logger.info("%d of %d pairwise classifiers trained", n_trained, len(first))
    return PairwiseClassifiers(
        first[kept], second[kept], coef[:n_trained], intercept[:n_trained], accuracy[:n_trained]
    )


def count_votes(
    X: Matrix, classifiers: PairwiseClassifiers, n_labels: int, weights: np.ndarray | None = None
) -> np.ndarray:
    """Sum the pairs that every label wins, in every row: shape (n_samples, n_labels).

    ``weights`` says how much each classifier's vote counts; None counts every vote as one.
    """
    n_rows, n_pairs = X.shape[0], len(classifiers.first)
    wins_first, wins_second = _incidence(classifiers, n_labels, weights)
    votes = np.zeros((n_labels, n_rows))
    block = max(1, BLOCK_SIZE // n_rows)
    for start in range(0, n_pairs, block):
        pairs = slice(start, start + block)
        decisions = (X @ classifiers.coef[pairs].T).T + classifiers.intercept[pairs, None]
        first_wins = (decisions > 0).astype(np.float64)
        votes += wins_first[:, pairs] @ first_wins + wins_second[:, pairs] @ (1.0 - first_wins)
    return votes.T


def mean_weights(
    classifiers: PairwiseClassifiers, n_labels: int, weights: np.ndarray | None = None
) -> np.ndarray:
    """Average each label's classifiers, turned to its side: shape (n_labels, n_features).

    A label without classifiers has a row of zeros.
    """
    wins_first, wins_second = _incidence(classifiers, n_labels, weights)
    n_classifiers = np.bincount(np.r_[classifiers.first, classifiers.second], minlength=n_labels)
    return (wins_first - wins_second) @ classifiers.coef / np.maximum(n_classifiers, 1)[:, None]


def stacked_norms(classifiers: PairwiseClassifiers, weights: np.ndarray | None = None) -> np.ndarray:
    """Norm of every feature's weights over all classifiers, in which opposite signs do not cancel."""
    factor = np.ones(len(classifiers.first)) if weights is None else weights**2
    return np.sqrt(np.einsum("p,pf,pf->f", factor, classifiers.coef, classifiers.coef))


def _incidence(
    classifiers: PairwiseClassifiers, n_labels: int, weights: np.ndarray | None
) -> tuple[sp.csc_matrix, sp.csc_matrix]:
    """Label by classifier: the weight where the label is the first, and where it is the second."""
    n_pairs = len(classifiers.first)
    values = np.ones(n_pairs) if weights is None else weights

    def place(labels: np.ndarray) -> sp.csc_matrix:
        return sp.csc_matrix((values, (labels, np.arange(n_pairs))), shape=(n_labels, n_pairs))

    return place(classifiers.first), place(classifiers.second)


def _trainable_pairs(credible: np.ndarray, candidate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs j < k with a row where j is credible and k impossible, and one the other way round."""
    n_rows_for = credible.T.astype(np.float64) @ ~candidate
    return np.nonzero(np.triu((n_rows_for > 0) & (n_rows_for.T > 0), 1))


def _training_rows(
    first: np.ndarray, second: np.ndarray, credible: np.ndarray, candidate: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows of each pair, and which of them stand for the first label."""
    rows_of = [np.flatnonzero(column) for column in credible.T]
    impossible = np.ascontiguousarray(~candidate.T)
    for j, k in zip(first.tolist(), second.tolist(), strict=True):
        for_j = rows_of[j][impossible[k][rows_of[j]]]
        for_k = rows_of[k][impossible[j][rows_of[k]]]
        for_k = for_k[~(credible[for_k, j] & impossible[k][for_k])]
        rows = np.concatenate([for_j, for_k])
        order = np.argsort(rows)
        yield rows[order], order < len(for_j)


def _linear_svm(rows: Matrix, is_first: np.ndarray, C: float) -> tuple[np.ndarray, float]:
    """Weights and offset of a linear SVM with the first label on the positive side.

    The products of the rows are handed over where they fit a block, since libsvm computes them one by one.
    """
    # libsvm's answer depends, within its tolerance, on which class is the positive one. Letting the first
    # row decide makes it the same whichever label of the pair comes first.
    sign = 1.0 if is_first[0] else -1.0
    if rows.shape[0] * max(rows.shape) <= BLOCK_SIZE:
        data, kernel = rows @ (rows.toarray() if sp.issparse(rows) else rows).T, "precomputed"
    else:
        data, kernel = rows, "linear"
    svm = SVC(kernel=kernel, C=C, max_iter=MAX_ITER).fit(data, is_first == is_first[0])
    dual = svm.dual_coef_.toarray() if sp.issparse(svm.dual_coef_) else svm.dual_coef_
    return sign * (dual.ravel() @ rows[svm.support_]), sign * float(svm.intercept_[0])
