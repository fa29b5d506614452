"""The contract of every selector: validation in, scores and ranking out.

A method is a subclass with parameters and one ``_solve``; see `CONTRIBUTING.md`. This is the only file that
imports scikit-learn's private modules.
"""

from __future__ import annotations

import logging
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils._param_validation import Interval, Options, RealNotInt, StrOptions
from sklearn.utils._tags import Tags
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, check_X_y, validate_data

from labelsieve.numerics.binary import is_binary
from labelsieve.numerics.result import SolverResult, logger
from labelsieve.numerics.scaling import Scaling
from labelsieve.numerics.sparse import canonical, check_structure, is_sparse
from labelsieve.numerics.typing import Matrix

__all__ = [
    "LOOP_CONSTRAINTS",
    "RANDOM_CONSTRAINTS",
    "SCALE_CONSTRAINTS",
    "BaseSelector",
    "Integral",
    "Interval",
    "Options",
    "Real",
    "RealNotInt",
    "StrOptions",
    "as_generator",
    "check_candidates",
    "check_count",
    "check_problem",
    "nonnegative_features",
    "nonnegative_scaling",
    "take_rows",
]

#: Constraints shared by iterative methods, methods with random parts and methods that scale features.
LOOP_CONSTRAINTS: dict[str, list[Any]] = {
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "verbose": ["verbose"],
}
RANDOM_CONSTRAINTS: dict[str, list[Any]] = {"random_state": ["random_state", np.random.Generator]}
SCALE_CONSTRAINTS: dict[str, list[Any]] = {"scale": [StrOptions({"minmax"}), None]}

#: What scikit-learn is told of features and labels.
_TABLE: dict[str, Any] = {
    "multi_output": True,
    "accept_sparse": ("csr", "csc"),
    "dtype": (np.float64, np.float32),
    "ensure_min_samples": 2,
}


class BaseSelector(SelectorMixin, BaseEstimator):
    """Base of all selectors; a subclass writes ``_solve(X, Y) -> SolverResult``.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        How many features to keep: a number, a share in (0, 1], or None for half of them.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features_to_select": [
            None,
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="right"),
        ],
    }

    #: Whether asking for another number of features changes the order of the features, not only where it is cut.
    ranking_depends_on_size: ClassVar[bool] = False

    #: Whether ``coef_`` scores the labels by itself, from features that ``scale="minmax"`` brought to [0, 1].
    weights_score_labels: ClassVar[bool] = False

    #: Checks of the contract (`labelsieve.contract`) a method cannot pass -> why not.
    _expected_failed_checks: ClassVar[dict[str, str]] = {}

    classes_: np.ndarray | None
    label_names_in_: np.ndarray
    n_features_in_: int

    def __init__(self, n_features_to_select: int | float | str | None = None) -> None:
        self.n_features_to_select = n_features_to_select

    @abstractmethod
    def _solve(self, X: Matrix, Y: Matrix) -> SolverResult:
        """Score the features of a validated ``X`` for the 0/1 matrix ``Y``; each may be dense or sparse."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Self:
        """Score and rank the features.

        Parameters
        ----------
        X : {array-like, dataframe, sparse matrix} of shape (n_samples, n_features)
            Features. float32 stays float32, CSR and CSC stay sparse.
        y : {array-like, dataframe, sparse matrix} of shape (n_samples, n_labels) or (n_samples,)
            Candidate labels: 1 where the label is a candidate of the row, 0 where it certainly does not
            apply. A row without candidates is allowed: it says that no label applies. One-dimensional ``y``,
            and a single column with other discrete values than 0 and 1, are read as classes and one-hot
            encoded.

        Returns
        -------
        self : object
            The fitted selector.
        """
        X, Y = validate_problem(self, X, y)
        n_selected = self._n_selected(X.shape[1])
        with _progress_log(getattr(self, "verbose", 0)):
            result = self._solve(X, Y)
        return self._store(result, n_selected)

    def transform(self, X: Any) -> Any:
        """Keep the selected features.

        Parameters
        ----------
        X : {array-like, dataframe, sparse matrix} of shape (n_samples, n_features)
            Features, the columns those of ``fit``.

        Returns
        -------
        X_selected : {ndarray, dataframe, sparse matrix} of shape (n_samples, n_features_)
            The selected columns.
        """
        check_structure(X, "X")
        return super().transform(X)

    def inverse_transform(self, X: Any) -> Any:
        """Put selected features back into their columns, zeros into the others.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_)
            The selected columns.

        Returns
        -------
        X_original : {ndarray, sparse matrix} of shape (n_samples, n_features)
            Features with zeros where a column was not selected.
        """
        check_structure(X, "X")
        return super().inverse_transform(X)

    def _n_selected(self, n_features: int) -> int:
        """Turn ``n_features_to_select`` into a number of columns."""
        wanted = self.n_features_to_select
        if wanted is None:
            return max(1, n_features // 2)
        if isinstance(wanted, str):
            # "auto": the method says in its result how many; until then, all.
            return n_features
        if isinstance(wanted, Integral):
            if wanted > n_features:
                raise ValueError(
                    f"n_features_to_select must be at most the number of features ({n_features}). "
                    f"Got {wanted!r}. Ask for fewer, or for a share such as 0.2."
                )
            return int(wanted)
        # Rounded first: 100 features times 0.29 is 28.999... in binary.
        return max(1, int(round(n_features * wanted, 9)))

    def _settled_params(self) -> dict[str, Any]:
        """Parameters with which another fit makes the choices again that this one made by itself."""
        return {"n_features_to_select": self.n_features_}

    def _store(self, result: SolverResult, n_selected: int) -> Self:
        """Turn a solver's result into fitted attributes, with the warnings it deserves."""
        scores = result.scores
        order = np.argsort(-scores, kind="stable")
        self.scores_ = scores
        self.ranking_ = np.empty(len(scores), dtype=np.intp)
        self.ranking_[order] = np.arange(1, len(scores) + 1)
        self.n_features_ = n_selected if result.n_selected is None else result.n_selected
        for name, value in result.extra.items():
            setattr(self, name + "_", value)
        if result.objective is not None:
            self.objective_history_ = result.objective
            self.n_iter_ = max(1, len(result.objective) - 1)
        if not result.converged:
            warnings.warn(
                f"{type(self).__name__} did not converge within its iterations. Increase max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        if not scores.any():
            warnings.warn(
                f"{type(self).__name__} gave every feature the score 0, so the ranking is the column order. "
                f"Lower the sparsity weight, or check that features and labels vary.",
                UserWarning,
                stacklevel=4,
            )
        return self

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self, "ranking_")
        return self.ranking_ <= self.n_features_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        return tags


def validate_problem(estimator: Any, X: Any, y: Any, *, least_samples: int = 2) -> tuple[Matrix, Matrix]:
    """Validate features and candidates of any kind; sets what every estimator notes about them.

    Returns ``X`` as float32 or float64, dense, CSR or CSC, and the 0/1 matrix ``Y``, dense or CSR. Set are
    ``n_features_in_`` and ``feature_names_in_`` as in scikit-learn, ``label_names_in_``, and ``classes_``: the values
    that a one-hot encoded y held, for methods that predict; None for candidate matrices.
    """
    label_names = _column_names(y)
    check_structure(X, "X")
    check_structure(y, "y")
    X, y = validate_data(estimator, X, y, **{**_TABLE, "ensure_min_samples": least_samples})
    X = canonical(X)
    Y, class_names = check_candidates(y)
    estimator.classes_ = None if class_names is None else np.unique(y)
    if class_names is not None:
        label_names = class_names
    elif label_names is None:
        label_names = [f"y{j}" for j in range(Y.shape[1])]
    estimator.label_names_in_ = np.array(label_names, dtype=object)
    return X, Y


def check_candidates(y: Matrix) -> tuple[Matrix, list[str] | None]:
    """Return a float64 0/1 candidate matrix, and the class names if ``y`` held classes.

    Two-dimensional input must be 0/1 already, dense or sparse. A single column with other discrete values,
    and one-dimensional input, are classes and become one column each.

    Examples
    --------
    >>> check_candidates(np.array(["red", "blue", "red"]))
    (array([[0., 1.],
           [1., 0.],
           [0., 1.]]), ['blue', 'red'])
    """
    if is_sparse(y):
        Y = sp.csr_matrix(y, dtype=np.float64, copy=True)
        Y.sum_duplicates()
        Y.eliminate_zeros()
        _require_binary(Y.data)
        n_candidates = Y.nnz
        names = None
    else:
        y = np.asarray(y)
        if y.dtype == object and y.ndim == 2 and all(isinstance(value, Real) for value in y.flat):
            y = y.astype(np.float64)
        is_classes = y.ndim == 1 or (y.shape[1] == 1 and not is_binary(y))
        if is_classes:
            Y, names = _one_hot(y.ravel())
        else:
            _require_binary(y)
            Y, names = y.astype(np.float64), None
        n_candidates = np.count_nonzero(Y)
    if n_candidates == 0:
        raise ValueError(
            "y must contain at least one candidate label. Got only zeros. Check the label columns and "
            "that 1 means candidate."
        )
    return Y, names


def check_problem(X: Any, y: Any) -> tuple[Matrix, Matrix]:
    """Return features and 0/1 candidates as `BaseSelector.fit` reads them, for functions that fit nothing."""
    check_structure(X, "X")
    check_structure(y, "y")
    X, y = check_X_y(X, y, **_TABLE)
    return canonical(X), check_candidates(y)[0]


def check_count(value: Any, name: str, *, least: int) -> None:
    """Refuse what is no whole number of at least ``least``, for functions that have no constraints."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}. Got {value!r}.")


def nonnegative_features(X: Matrix, scale: str | None) -> Matrix:
    """Scale ``X`` as a method with non-negative factors needs it, or say why it cannot be used."""
    scaling = nonnegative_scaling(X, scale)
    return X if scale is None else scaling.apply(X)


def nonnegative_scaling(X: Matrix, scale: str | None) -> Scaling:
    """Learn the scaling of ``X`` that a method with non-negative factors needs, or say why there is none."""
    if scale is None or is_sparse(X):
        values = X.data if is_sparse(X) else X
        if values.size and values.min() < 0:
            remedy = (
                "use scale='minmax'" if not is_sparse(X) else "shift or clip the negative columns before fit"
            )
            raise ValueError(
                f"X must not be negative for this method when it is "
                f"{'sparse' if is_sparse(X) else 'used unscaled (scale=None)'}. "
                f"Got a minimum of {values.min():.6g}. To mend it, {remedy}."
            )
    return Scaling.learn(X, scale)


def as_generator(random_state: Any) -> np.random.Generator:
    """Return a local generator for scikit-learn's ``random_state``, or the generator itself."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)


def _require_binary(values: np.ndarray) -> None:
    """Refuse anything but 0 and 1, with the remedy that fits what came."""
    if is_binary(values):
        return
    expected = "y must be 0/1 candidate labels of shape (n_samples, n_labels)."
    if values.dtype.kind not in "iuf":
        sample = values.ravel()[:1].tolist()[0]
        raise ValueError(
            f"{expected} Got {sample!r}. Convert first, for example (y == {sample!r}).astype(int)."
        )
    found = np.unique(values)
    if np.isin(found, (-1, 0, 1)).all():
        raise ValueError(f"{expected} Got -1/+1 values. Convert first: (y > 0).astype(int).")
    if (found != np.round(found)).any():
        raise ValueError(
            f"{expected} Got continuous values. Threshold them first, for example (y > 0.5).astype(int)."
        )
    listed = ", ".join(f"{value:g}" for value in found[:4])
    raise ValueError(
        f"{expected} Got the values {listed}{', ...' if len(found) > 4 else ''}. One-hot encode them first."
    )


def _one_hot(y: np.ndarray) -> tuple[np.ndarray, list[str]]:
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    if kind not in ("binary", "multiclass"):
        raise ValueError(
            f"y must be 0/1 candidate labels of shape (n_samples, n_labels) or (n_samples,) classes. "
            f"Unknown label type: got {kind} values. Bin or threshold them first."
        )
    classes, codes = np.unique(y, return_inverse=True)
    return np.eye(len(classes))[codes], [str(value) for value in classes]


def _column_names(y: Any) -> list[str] | None:
    """Names of a dataframe's columns if all are strings, as scikit-learn does for features."""
    columns = getattr(y, "columns", None)
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    return list(columns)


@contextmanager
def _progress_log(verbose: int) -> Iterator[None]:
    """Let the iterations of one fit reach the log; give it a terminal where nobody configured logging."""
    if not verbose:
        yield
        return
    level = logger.level
    handler = None if logger.hasHandlers() else logging.StreamHandler()
    logger.setLevel(logging.INFO)
    if handler:
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.setLevel(level)
        if handler:
            logger.removeHandler(handler)
