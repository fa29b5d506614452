"""Features and labels of some rows as the greedy path wants them: standardised, and only their products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelsieve.methods._evidence.gram import FormedGram, Gram, GramOnDemand, gram_without_rows
from labelsieve.numerics.candidate_precision import LabelScale, TrainingMoments
from labelsieve.numerics.scaling import Scaling
from labelsieve.numerics.sparse import is_sparse
from labelsieve.numerics.standardized import StandardizedFeatures, second_moments, standardize
from labelsieve.numerics.typing import Matrix

__all__ = ["Problem", "Rows"]


@dataclass(frozen=True)
class Problem:
    """What some rows say: Z'Z and Z'T of the standardised features Z and labels T.

    Parameters
    ----------
    n_samples : int
        How many rows there are.
    features : Scaling
        What standardises the features; a factor of 0 marks those that are constant.
    labels : LabelScale
        The labels that vary, and what standardises them.
    gram : Gram
        Z'Z.
    products : ndarray of shape (n_features, n_varying)
        Z'T.
    """

    n_samples: int
    features: Scaling
    labels: LabelScale
    gram: Gram
    products: np.ndarray

    def moments(self, chosen: np.ndarray) -> TrainingMoments:
        """What a regression on some of the features needs."""
        return TrainingMoments(
            self.n_samples,
            self.features.of(chosen),
            self.labels,
            self.gram.block(chosen),
            self.products[chosen],
        )


class Rows:
    """The problem of all rows, and of those that are left without some.

    Parameters
    ----------
    X : {ndarray, CSR, CSC} of shape (n_samples, n_features)
        Features.
    Y : {ndarray, CSR} of shape (n_samples, n_labels)
        0/1 candidates.
    form_gram : bool
        Form Z'Z once, and find that of fewer rows by subtraction; dense features only.
    """

    def __init__(self, X: Matrix, Y: Matrix, *, form_gram: bool) -> None:
        # Float64 once, and rows that can be taken.
        self.X = (
            X.tocsr().astype(np.float64, copy=False) if is_sparse(X) else X.astype(np.float64, copy=False)
        )
        self.Y = Y
        features = standardize(self.X)
        matrix = second_moments(self.X, features.scaling) if form_gram and not is_sparse(self.X) else None
        self._matrix = matrix
        self.whole = _problem(features, Y, GramOnDemand(features) if matrix is None else FormedGram(matrix))

    def without(self, held_out: np.ndarray) -> Problem:
        """Return the problem of the rows that are not held out."""
        kept = standardize(self.X[~held_out])
        gram: Gram = GramOnDemand(kept)
        if self._matrix is not None and not is_sparse(self.X):
            gram = FormedGram(gram_without_rows(self._matrix, self.whole.features, self.X, held_out, kept))
        return _problem(kept, self.Y[~held_out], gram)


def _problem(features: StandardizedFeatures, Y: Matrix, gram: Gram) -> Problem:
    labels = LabelScale.learn(Y)
    products = labels.scale_products(features.products(Y[:, labels.varying]))
    return Problem(features.n_samples, features.scaling, labels, gram, products)
