"""Prediction of labels and classes for estimators that score labels."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from labelsieve._numerics.scaling import Scaling
from labelsieve._numerics.sparse import Matrix, canonical, check_structure


class LabelPredictor:
    """Mixin that adds ``decision_function`` and ``predict`` to an estimator that scores labels.

    Subclasses define ``_score_labels`` and ``_choose_labels``, and set ``classes_`` in ``fit``.
    """

    #: Options of scikit-learn's `validate_data` for features.
    _validation: ClassVar[dict[str, Any]] = {
        "accept_sparse": ("csr", "csc"),
        "dtype": (np.float64, np.float32),
    }

    classes_: np.ndarray | None

    def decision_function(self, X: Any) -> np.ndarray:
        """Score the labels of new rows.

        Parameters
        ----------
        X : {array-like, dataframe, sparse matrix} of shape (n_samples, n_features)
            Features, unscaled as in ``fit``.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_labels)
            Scores of the labels. Larger is more relevant. Compare scores within a row only.
        """
        return self._score_labels(self._validated(X))

    def predict(self, X: Any) -> np.ndarray:
        """Predict the labels of new rows from their scores.

        See the class for its decision rule. After a fit to one-dimensional classes, predict the class with
        the largest score.

        Parameters
        ----------
        X : {array-like, dataframe, sparse matrix} of shape (n_samples, n_features)
            Features, unscaled as in ``fit``.

        Returns
        -------
        y : ndarray of shape (n_samples, n_labels) or (n_samples,)
            1 for predicted labels and 0 for the others, or classes.
        """
        scores = self._score_labels(self._validated(X))
        classes = self._target_classes()
        if classes is not None:
            return np.asarray(classes[scores.argmax(axis=1)])
        return self._choose_labels(scores).astype(np.int64)

    @abstractmethod
    def _score_labels(self, X: Matrix) -> np.ndarray:
        """Return one score per row and label for a validated ``X``."""

    @abstractmethod
    def _choose_labels(self, scores: np.ndarray) -> np.ndarray:
        """Return a boolean matrix of the predicted labels."""

    def _target_classes(self) -> np.ndarray | None:
        """Return the values of a one-dimensional target, or None after a fit to a label matrix."""
        return self.classes_

    def _validated(self, X: Any) -> Matrix:
        """Validate ``X`` against the features seen in ``fit``."""
        check_is_fitted(self)
        check_structure(X, "X")
        validated: Matrix = validate_data(self, X, reset=False, **self._validation)
        return canonical(validated)


class LinearLabelPredictor(LabelPredictor):
    """Mixin that scores labels by a linear function of scaled features, fitted to 0/1 labels.

    ``fit`` sets ``coef_``, ``intercept_`` and ``scaling_``. Labels with scores of at least 0.5 are
    predicted.
    """

    coef_: np.ndarray
    intercept_: np.ndarray
    scaling_: Scaling

    def _score_labels(self, X: Matrix) -> np.ndarray:
        # Move the scaling into the coefficients, so that sparse features need no offset.
        W, intercept = self.scaling_.unscaled_model(self.coef_, self.intercept_)
        return X @ W + intercept

    def _choose_labels(self, scores: np.ndarray) -> np.ndarray:
        return scores >= 0.5
