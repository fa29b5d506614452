"""Classifier that cleans its training labels."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from labelsieve._numerics.sparse import is_sparse
from labelsieve.classify import LabelwiseSVM
from labelsieve.inspection.label_issues import find_label_issues


class CleanedSVM(BaseEstimator):  # type: ignore[misc]
    """Linear SVMs trained on the candidate labels that `find_label_issues` does not flag.

    Experiments use it under its import path, ``labelsieve.inspection.cleaned_svm:CleanedSVM``.

    Attributes
    ----------
    svm_ : LabelwiseSVM
        Fitted classifier.
    n_removed_ : int
        Number of candidate labels that were removed.

    Examples
    --------
    >>> from labelsieve.datasets import make_pml
    >>> X, Y = make_pml(random_state=0)
    >>> CleanedSVM().fit(X, Y).predict(X).shape == Y.shape
    True
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Remove the flagged labels and train the classifier."""
        issues = find_label_issues(X, y)
        is_flagged = issues.is_flagged
        places = issues.rows[is_flagged], issues.labels[is_flagged]
        self.n_removed_ = len(places[0])
        if is_sparse(y):
            cleaned: Any = sp.csr_array(y - sp.csr_array((np.ones_like(places[0]), places), shape=y.shape))
        else:
            cleaned = np.array(y)
            cleaned[places] = 0
        self.svm_ = LabelwiseSVM().fit(X, cleaned)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Score the labels of new rows."""
        return self.svm_.decision_function(X)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the labels of new rows."""
        predicted: np.ndarray = self.svm_.predict(X)
        return predicted
