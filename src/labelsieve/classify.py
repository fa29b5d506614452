"""Multi-label classifiers for evaluating selected features.

All three are scikit-learn classifiers for 0/1 label matrices. `decision_function` scores the labels of a
row, and `predict` returns the labels with scores above 0. A one-dimensional target contains classes, which
have one score each.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from labelsieve._base import (
    Integral,
    Interval,
    Real,
    StrOptions,
    binarize_tags,
    check_candidates,
    check_parameters,
)
from labelsieve._candidates import require_known
from labelsieve._numerics.graph import nearest_rows
from labelsieve._numerics.scaling import Scaling
from labelsieve._numerics.sparse import Matrix, canonical, check_structure, dense, with_short_indices
from labelsieve._numerics.squared_hinge import solve_squared_hinge
from labelsieve._prediction import LabelPredictor

__all__ = ["LabelFrequency", "LabelwiseSVM", "MLkNN"]


class _MultilabelClassifier(LabelPredictor, ClassifierMixin, BaseEstimator):
    """Base class with validation and decoding. Subclasses learn and score a 0/1 matrix."""

    _validation: ClassVar[dict[str, Any]] = {"accept_sparse": ("csr",), "dtype": np.float64}

    classes_: np.ndarray
    n_features_in_: int

    @abstractmethod
    def _learn(self, X: Matrix, Y: np.ndarray) -> None:
        """Learn from a validated ``X`` and a dense boolean ``Y``."""

    def _choose_labels(self, scores: np.ndarray) -> np.ndarray:
        return scores > 0

    def fit(self, X: Any, y: Any) -> Self:
        """Learn to score the labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features. Sparse matrices stay sparse.
        y : {array-like, sparse matrix} of shape (n_samples, n_labels) or (n_samples,)
            0/1 labels, or classes.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        check_parameters(self)
        y, _ = binarize_tags(y)
        check_structure(X, "X")
        check_structure(y, "y")
        require_known(y)
        X, y = validate_data(self, X, y, multi_output=True, **self._validation)
        Y, class_names = check_candidates(y)
        self._has_classes = class_names is not None
        self.classes_ = np.unique(y) if self._has_classes else np.arange(Y.shape[1])
        self._learn(canonical(X), dense(Y) > 0)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Score the labels or classes of new rows. Two classes have a single score, as in scikit-learn.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features.
        """
        scores = super().decision_function(X)
        if self._has_classes and len(self.classes_) == 2:
            scores = (scores[:, 1] - scores[:, 0]) / 2
        return scores

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the fraction of rows whose labels or class are predicted correctly.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features.
        y : {array-like, sparse matrix} of shape (n_samples, n_labels) or (n_samples,)
            True labels, or classes.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the rows.
        """
        check_structure(y, "y")
        return float(super().score(X, y, sample_weight=sample_weight))

    def _target_classes(self) -> np.ndarray | None:
        return self.classes_ if self._has_classes else None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        return tags


class LabelwiseSVM(_MultilabelClassifier):
    """Support vector machine for every label.

    Parameters
    ----------
    kernel : {"linear", "rbf"}, default="linear"
        "linear" uses the squared hinge loss of `sklearn.svm.LinearSVC`, solved for all labels together.
        "rbf" uses a Gaussian kernel and the hinge loss of `sklearn.svm.SVC`.
    C : float, default=1.0
        Inverse regularisation strength.
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the Gaussian kernel, as in `sklearn.svm.SVC`.
    scale : {"minmax"} or None, default="minmax"
        Scale every feature to [0, 1] on the training rows. Sparse features are divided by their largest
        absolute value instead, so that they stay sparse.
    one_class : {"lowest", "constant"}, default="lowest"
        Scores of labels that all training rows have, or none. "lowest" scores them below all other labels of
        the row, while `predict` returns their value in the training rows. "constant" scores them 1 or 0, as
        in scikit-learn's `OneVsRestClassifier`, so a label that never occurs ranks above all labels with
        negative scores.
    max_iter : int, default=100000
        Maximum number of iterations of each machine.

    Attributes
    ----------
    classes_ : ndarray
        Indices of the labels, or the classes of a one-dimensional target.
    coef_ : ndarray of shape (n_labels, n_features)
        Weights for scaled features, for the linear kernel only. They are 0 for labels with a single class.
    intercept_ : ndarray of shape (n_labels,)
        Intercepts, for the linear kernel only.
    scaling_ : Scaling
        Offset (or None) and factor of every feature, learned in ``fit``.
    n_iter_ : int
        Largest number of iterations of a machine.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [0.1, 0.9], [0.9, 0.1]])
    >>> Y = np.array([[0, 1, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0]])
    >>> machine = LabelwiseSVM().fit(X, Y)
    >>> machine.predict([[0.2, 0.8]])
    array([[0, 1, 0]])
    >>> int(machine.decision_function([[0.2, 0.8]]).argmin())  # the label that never occurs
    2
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions({"linear", "rbf"})],
        "C": [Interval(Real, 0, None, closed="neither")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")],
        "scale": [StrOptions({"minmax"}), None],
        "one_class": [StrOptions({"lowest", "constant"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        kernel: Literal["linear", "rbf"] = "linear",
        *,
        C: float = 1.0,
        gamma: Literal["scale", "auto"] | float = "scale",
        scale: Literal["minmax"] | None = "minmax",
        one_class: Literal["lowest", "constant"] = "lowest",
        max_iter: int = 100_000,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.scale = scale
        self.one_class = one_class
        self.max_iter = max_iter

    def _learn(self, X: Matrix, Y: np.ndarray) -> None:
        self.scaling_ = Scaling.learn(X, self.scale)
        X = self.scaling_.apply(X)
        n_positive = Y.sum(axis=0)
        self._is_always = n_positive == Y.shape[0]
        self._is_learnt = (n_positive > 0) & ~self._is_always
        if self.kernel == "rbf":
            self._learn_gaussian(X, Y[:, self._is_learnt])
        else:
            self._learn_linear(X, Y)

    def _learn_gaussian(self, X: Matrix, Y: np.ndarray) -> None:
        X = with_short_indices(X)  # libsvm counts in 32 bits
        # The seed does not affect the result, but without it SVC would use the global random state.
        machine = SVC(C=self.C, gamma=self.gamma, max_iter=self.max_iter, random_state=0)
        # Do not validate X again for every label.
        with config_context(assume_finite=True, skip_parameter_validation=True):
            self._machines = [clone(machine).fit(X, labels) for labels in Y.T]
        self.n_iter_ = max((int(np.max(machine.n_iter_)) for machine in self._machines), default=0)

    def _learn_linear(self, X: Matrix, Y: np.ndarray) -> None:
        fit = solve_squared_hinge(X, Y[:, self._is_learnt], C=self.C, max_iter=self.max_iter)
        self.coef_, self.intercept_ = np.zeros((Y.shape[1], X.shape[1])), np.zeros(Y.shape[1])
        self.coef_[self._is_learnt], self.intercept_[self._is_learnt] = fit.coef, fit.intercept
        self.n_iter_ = int(fit.n_iter.max(initial=0))
        n_open = np.count_nonzero(~fit.converged)
        if n_open:
            warnings.warn(
                f"{n_open} of {len(fit.converged)} linear machines did not converge in {self.n_iter_} iterations. "
                f'Scale the features (scale="minmax"), lower C, or increase the number of iterations (max_iter).',
                ConvergenceWarning,
                stacklevel=4,
            )

    def _score_labels(self, X: Matrix) -> np.ndarray:
        X = self.scaling_.apply(X)
        if self.kernel == "linear":
            scores = X @ self.coef_.T + self.intercept_
        else:
            X = with_short_indices(X)
            scores = np.zeros((X.shape[0], len(self._is_learnt)))
            for label, machine in zip(np.flatnonzero(self._is_learnt), self._machines, strict=True):
                scores[:, label] = machine.decision_function(X)
        if self.one_class == "constant":
            scores[:, self._is_always] = 1.0
        else:
            # The columns of one-class labels are still 0, so the minimum is at most 0.
            scores[:, ~self._is_learnt] = scores.min(axis=1, keepdims=True) - 1
        return scores

    def _choose_labels(self, scores: np.ndarray) -> np.ndarray:
        return (scores > 0) | self._is_always


class MLkNN(_MultilabelClassifier):
    """Multi-label k-nearest-neighbours classifier (ML-kNN) [1]_.

    The score of a label is the logarithm of its posterior odds, given the number of neighbours with the
    label. A training row is never its own neighbour. Ties are broken by the lower row index, so dense and
    sparse features give the same scores.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number of neighbours. It must be smaller than the number of training rows.
    smoothing : float, default=1.0
        Number added to all counts. 1 is Laplace smoothing.
    scale : {"minmax"} or None, default="minmax"
        Scale every feature to [0, 1] on the training rows, as in `LabelwiseSVM`.

    Attributes
    ----------
    classes_ : ndarray
        Indices of the labels, or the classes of a one-dimensional target.
    log_odds_ : ndarray of shape (n_labels, n_neighbors + 1)
        Score of a label for every possible number of neighbours with the label.
    scaling_ : Scaling
        Offset (or None) and factor of every feature, learned in ``fit``.
    n_features_in_ : int
        Number of features.

    References
    ----------
    .. [1] Zhang and Zhou, "ML-KNN: A lazy learning approach to multi-label learning", Pattern Recognition
       40(7), 2007.

    Examples
    --------
    >>> X = np.array([[0.0], [0.1], [0.2], [0.8], [0.9], [1.0]])
    >>> Y = np.array([[1, 0], [1, 0], [1, 0], [0, 1], [0, 1], [0, 1]])
    >>> MLkNN(n_neighbors=2).fit(X, Y).predict([[0.15], [0.85]])
    array([[1, 0],
           [0, 1]])
    """

    # Increased when scores change for the same parameters, so that experiments are evaluated again.
    _revision: ClassVar[int] = 2
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "smoothing": [Interval(Real, 0, None, closed="neither")],
        "scale": [StrOptions({"minmax"}), None],
    }

    def __init__(
        self, n_neighbors: int = 10, *, smoothing: float = 1.0, scale: Literal["minmax"] | None = "minmax"
    ) -> None:
        self.n_neighbors = n_neighbors
        self.smoothing = smoothing
        self.scale = scale

    def _learn(self, X: Matrix, Y: np.ndarray) -> None:
        n_rows, k, s = X.shape[0], self.n_neighbors, self.smoothing
        if k >= n_rows:
            raise ValueError(
                f"n_neighbors must be smaller than the number of training rows (n_samples={n_rows}), got {k!r}."
            )
        self.scaling_ = Scaling.learn(X, self.scale)
        self._X, self._Y = self.scaling_.apply(X), Y
        counts = self._count(None)
        with_label, without_label = _tally(counts, Y, k + 1), _tally(counts, ~Y, k + 1)
        n_positive = Y.sum(axis=0)
        prior = np.log(s + n_positive) - np.log(s + n_rows - n_positive)
        self.log_odds_ = (
            prior[:, None]
            + np.log(s + with_label)
            - np.log(s * (k + 1) + n_positive)[:, None]
            - np.log(s + without_label)
            + np.log(s * (k + 1) + n_rows - n_positive)[:, None]
        )

    def _score_labels(self, X: Matrix) -> np.ndarray:
        counts = self._count(self.scaling_.apply(X))
        return self.log_odds_[np.arange(counts.shape[1]), counts]

    def _count(self, X: Matrix | None) -> np.ndarray:
        """Count the neighbours with each label, for the rows of ``X`` or the training rows if it is None."""
        neighbors, _ = nearest_rows(self._X, self.n_neighbors, queries=X, exclude_self=X is None)
        rows = np.arange(0, neighbors.size + 1, self.n_neighbors)
        ones = np.ones(neighbors.size, dtype=np.intp)
        graph = sp.csr_array((ones, neighbors.ravel(), rows), shape=(len(neighbors), len(self._Y)))
        return graph @ self._Y


class LabelFrequency(_MultilabelClassifier):
    """Baseline classifier that scores labels by their frequency and ignores the features.

    Attributes
    ----------
    classes_ : ndarray
        Indices of the labels, or the classes of a one-dimensional target.
    frequencies_ : ndarray of shape (n_labels,)
        Fraction of training rows with each label. Scores are frequencies minus 0.5.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> X = np.zeros((4, 1))
    >>> Y = np.array([[1, 0], [1, 0], [1, 1], [0, 0]])
    >>> LabelFrequency().fit(X, Y).decision_function(X[:1])
    array([[ 0.25, -0.25]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    def _learn(self, X: Matrix, Y: np.ndarray) -> None:
        self.frequencies_ = Y.mean(axis=0)

    def _score_labels(self, X: Matrix) -> np.ndarray:
        return np.tile(self.frequencies_ - 0.5, (X.shape[0], 1))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # It ignores the features, so it cannot classify well.
        tags.classifier_tags.poor_score = True
        return tags


def _tally(counts: np.ndarray, is_counted: np.ndarray, n_values: int) -> np.ndarray:
    """Count the rows with each number of neighbours, for every label."""
    labels = zip(counts.T, is_counted.T, strict=True)
    return np.array([np.bincount(own[chosen], minlength=n_values) for own, chosen in labels])
