"""Selectors of other packages under the contract of this one, so that experiments can compare them.

They are not in `METHODS`. Experiments know them by the names in `RIVALS`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn import __version__ as sklearn_version
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.feature_selection import chi2, mutual_info_classif
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from labelsieve._base import COUNT, POSITIVE, BaseSelector, as_generator
from labelsieve._numerics.result import SolverResult
from labelsieve._numerics.scaling import Scaling
from labelsieve._numerics.sparse import Matrix, dense, is_sparse

_LARGEST_SEED = 2**31 - 1
_HAS_L1_RATIO = tuple(map(int, sklearn_version.split(".")[:2])) >= (1, 8)


@dataclass(eq=False, repr=False, kw_only=True)
class Chi2(BaseSelector):
    """Rank features by scikit-learn's chi-squared statistic, summed over the labels.

    Features are scaled to [0, 1]. Sparse features are divided by their largest absolute value.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1], or None for half of them.

    Examples
    --------
    >>> Chi2(n_features_to_select=1).fit([[1, 0], [1, 1], [0, 1], [0, 0]], [[1], [1], [0], [0]]).ranking_
    array([1, 2])
    """

    def _solve(self, X: Matrix, Y: Matrix) -> SolverResult:
        scaled = Scaling.learn(X, "minmax").apply(X)
        # Negative values occur in sparse features only, which keep their zeros.
        scaled = abs(scaled)
        return _summed(X, (chi2(scaled, y)[0] for y in _varying(Y)))


@dataclass(eq=False, repr=False, kw_only=True)
class MutualInformation(BaseSelector):
    """Rank features by scikit-learn's estimate of mutual information, summed over the labels.

    The values of sparse features count as categories. Dense features use nearest neighbours.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1], or None for half of them.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the noise that separates equal values.

    Examples
    --------
    >>> X = [[9, 0], [8, 1], [7, 0], [1, 1], [2, 0], [3, 1], [8, 1], [2, 0]]
    >>> y = [[1], [1], [1], [0], [0], [0], [1], [0]]
    >>> MutualInformation(n_features_to_select=1, random_state=0).fit(X, y).ranking_
    array([1, 2])
    """

    _expected_failed_checks: ClassVar[dict[str, str]] = {
        "check_containers_agree": "values of sparse features count as categories",
        "check_degenerate_data_give_finite_scores": "scikit-learn rejects single classes",
    }

    random_state: Any = None

    def _solve(self, X: Matrix, Y: Matrix) -> SolverResult:
        seed = _seed(self.random_state)
        return _summed(X, (mutual_info_classif(X, y, random_state=seed) for y in _varying(Y)))


@dataclass(eq=False, repr=False, kw_only=True)
class ExtraTrees(BaseSelector):
    """Rank features by the importances of extremely randomised trees that predict all labels at once.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1], or None for half of them.
    n_estimators : int, default=200
        Number of trees.
    min_samples_leaf : int, default=5
        Minimum number of rows in a leaf. It limits the memory that tables with many labels take.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the trees.

    Examples
    --------
    >>> X, y = [[1, 0], [1, 1], [0, 1], [0, 0]], [[1], [1], [0], [0]]
    >>> ExtraTrees(n_features_to_select=1, min_samples_leaf=1, random_state=0).fit(X, y).ranking_
    array([1, 2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSelector._parameter_constraints,
        "n_estimators": COUNT,
        "min_samples_leaf": COUNT,
    }

    _expected_failed_checks: ClassVar[dict[str, str]] = {
        "check_degenerate_data_give_finite_scores": "scikit-learn's trees need values in single precision"
    }

    n_estimators: int = 200
    min_samples_leaf: int = 5
    random_state: Any = None

    def _solve(self, X: Matrix, Y: Matrix) -> SolverResult:
        trees = ExtraTreesClassifier(
            self.n_estimators, min_samples_leaf=self.min_samples_leaf, random_state=_seed(self.random_state)
        )
        labels = dense(Y)
        if labels.shape[1] == 1:
            labels = labels.ravel()
        return SolverResult(scores=trees.fit(X, labels).feature_importances_.astype(X.dtype))


@dataclass(eq=False, repr=False, kw_only=True)
class L1Logistic(BaseSelector):
    """Rank features by the absolute weights of l1 logistic regressions, summed over the labels.

    Features are divided by their standard deviation, and dense features are also centred.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1], or None for half of them.
    C : float, default=1.0
        Inverse strength of the penalty, as in scikit-learn.

    Examples
    --------
    >>> X, y = [[1, 0], [1, 1], [0, 1], [0, 0]], [[1], [1], [0], [0]]
    >>> L1Logistic(n_features_to_select=1, C=10).fit(X, y).ranking_
    array([1, 2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSelector._parameter_constraints,
        "C": POSITIVE,
    }

    _expected_failed_checks: ClassVar[dict[str, str]] = {
        "check_containers_agree": "sparse features are not centred"
    }

    C: float = 1.0

    def _solve(self, X: Matrix, Y: Matrix) -> SolverResult:
        scaled = StandardScaler(with_mean=not is_sparse(X)).fit_transform(X)
        penalty = {"l1_ratio": 1} if _HAS_L1_RATIO else {"penalty": "l1"}
        # The seed affects the order of coordinates, not the solution.
        model = LogisticRegression(C=self.C, solver="liblinear", random_state=0, **penalty)
        return _summed(X, (np.abs(model.fit(scaled, y).coef_[0]) for y in _varying(Y)))


@dataclass(eq=False, repr=False, kw_only=True)
class FastCan(BaseSelector):
    """Rank features by greedy canonical correlation with the labels, with the package fastcan.

    As many features are ranked as fastcan can select. It stops at linear dependence, so half as many are
    tried then. The others come last, in column order.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1], or None for half of them.
    """

    def _solve(self, X: Matrix, Y: Matrix) -> SolverResult:
        from fastcan import FastCan as Greedy

        scores = np.zeros(X.shape[1], dtype=X.dtype)
        labels = [*_varying(Y)]
        n_ranked = min(X.shape) if labels else 0
        while n_ranked:
            try:
                found = Greedy(n_ranked, verbose=0).fit(dense(X).astype(float), np.column_stack(labels))
            except RuntimeError:  # linear dependence
                n_ranked //= 2
            else:
                scores[found.indices_] = np.arange(n_ranked, 0, -1)
                break
        return SolverResult(scores=scores)


#: Name in experiments -> class.
RIVALS: Mapping[str, type[BaseSelector]] = {
    "fastcan": FastCan,
    "extra-trees": ExtraTrees,
    "l1-logistic": L1Logistic,
    "sklearn-chi2": Chi2,
    "sklearn-mutual-information": MutualInformation,
}


def _varying(Y: Matrix) -> Iterator[np.ndarray]:
    """Yield the labels that some rows have and others lack."""
    for y in dense(Y).T:
        if y.any() and not y.all():
            yield y


def _summed(X: Matrix, by_label: Iterator[np.ndarray]) -> SolverResult:
    """Sum the scores over the labels. Constant features have undefined scores, which count as 0."""
    scores = np.zeros(X.shape[1])
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        for values in by_label:
            scores += np.nan_to_num(values)
    return SolverResult(scores=scores.astype(X.dtype))


def _seed(random_state: Any) -> int:
    return int(as_generator(random_state).integers(_LARGEST_SEED))
