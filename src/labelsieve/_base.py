"""Base classes of all selectors, and the validation of their parameters and data.

A method is a subclass with parameters and one ``_solve`` method, see `CONTRIBUTING.md`. No other file uses
private names of scikit-learn.
"""

from __future__ import annotations

import logging
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils._param_validation import Interval, Options, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted, check_X_y, validate_data

from labelsieve._blocks.collections import column_names, is_lazy, open_rows
from labelsieve._candidates import binarize_tags, check_candidates, require_known, take_unknown
from labelsieve._numerics.result import SolverResult, iterate, logger
from labelsieve._numerics.scaling import Scaling, row_extremes, within_range
from labelsieve._numerics.sparse import Matrix, canonical, check_structure, is_sparse
from labelsieve._row_problem import RowProblem, check_rows, in_memory
from labelsieve._text import format_score, html_table

__all__ = [
    "COUNT",
    "NON_NEGATIVE",
    "POSITIVE",
    "BaseSelector",
    "BlockSelector",
    "Integral",
    "Interval",
    "Options",
    "RankedFeatures",
    "Real",
    "RealNotInt",
    "RowProblem",
    "StrOptions",
    "as_generator",
    "binarize_tags",
    "check_candidates",
    "check_count",
    "check_parameters",
    "check_problem",
    "count_selected",
    "nonnegative_features",
    "nonnegative_scaling",
    "reject_lazy",
    "scale_nonnegative",
    "take_rows",
]

#: Constraints of a non-negative weight, a positive weight and a count.
NON_NEGATIVE: list[Any] = [Interval(Real, 0, None, closed="left")]
POSITIVE: list[Any] = [Interval(Real, 0, None, closed="neither")]
COUNT: list[Any] = [Interval(Integral, 1, None, closed="left")]

#: Methods that accept rows in blocks, listed in the errors of those that do not.
TAKES_BLOCKS = ("EvidenceSelector", "GMM", "PMLFSMIR", "RFS", "RandomRanking", "SumF", "SumMI")

#: Maximum number of rows in the notebook table of a fitted selector.
_ROWS_SHOWN = 10

#: Options of scikit-learn's validation of features and labels.
_TABLE: dict[str, Any] = {
    "multi_output": True,
    "accept_sparse": ("csr", "csc"),
    "dtype": (np.float64, np.float32),
    "ensure_min_samples": 2,
}


@dataclass(eq=False, repr=False)
class BaseSelector(SelectorMixin, BaseEstimator):
    """Base class of all selectors. Subclasses define ``_solve(X, Y) -> SolverResult``.

    The base class checks parameters and data, sets the fitted attributes, and makes the subclass a
    scikit-learn selector with ``transform``, feature names, dataframes, sparse matrices and pipelines.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1], or None for half of them.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Scores returned by ``_solve``. Larger is better.
    ranking_ : ndarray of shape (n_features,)
        Rank of every feature (1 is best).
    n_features_ : int
        Number of selected features.
    label_names_in_ : ndarray of shape (n_labels,)
        Names of the labels: the column names, or y0, y1 and so on.

    See Also
    --------
    SolverResult : Return value of ``_solve``.
    iterate : Loop for methods that descend an objective.
    check_selector : Check that a method meets the contract of this package.

    Notes
    -----
    ``_solve`` receives a validated ``X`` (float32 or float64; dense, CSR or CSC) and the 0/1 candidate
    matrix ``Y`` (dense or CSR). It must modify neither, and return scores with the dtype of ``X``.

    A parameter of the subclass is either set by its ``__init__`` under its own name, or a keyword-only
    field of a dataclass with ``eq=False, repr=False``. Declare it in ``_parameter_constraints`` as in
    scikit-learn, with a list of allowed types, intervals and values. ``_solve`` checks everything else.

    Examples
    --------
    Score features by the distance between their mean over a label's candidates and their mean over all
    rows:

    >>> from numbers import Real
    >>> import numpy as np
    >>> from labelsieve import BaseSelector, SolverResult
    >>> class FarMeans(BaseSelector):
    ...     _parameter_constraints = {**BaseSelector._parameter_constraints, "power": [Real]}
    ...
    ...     def __init__(self, n_features_to_select=None, *, power=2):
    ...         super().__init__(n_features_to_select)
    ...         self.power = power
    ...
    ...     def _solve(self, X, Y):
    ...         means = (Y.T @ X) / np.maximum(Y.sum(axis=0), 1)[:, None]
    ...         return SolverResult(scores=(np.abs(means - X.mean(axis=0)) ** self.power).sum(axis=0))
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [4.0, 2.0], [5.0, 0.0]])
    >>> Y = np.array([[0, 1], [0, 1], [1, 0], [1, 0]])
    >>> FarMeans(n_features_to_select=1).fit(X, Y).scores_
    array([8.   , 0.125])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features_to_select": [None, *COUNT, Interval(RealNotInt, 0, 1, closed="right")],
        # Constraints of parameters that many methods share.
        "n_neighbors": COUNT,
        "max_iter": COUNT,
        "tol": NON_NEGATIVE,
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
    }

    #: True if the order of the features depends on the number of features to select.
    ranking_depends_on_size: ClassVar[bool] = False

    #: True if ``_solve`` takes labels that are NaN, which means unknown.
    takes_unknown_labels: ClassVar[bool] = False

    #: True if ``coef_`` alone scores the labels, from features scaled to [0, 1] with ``scale="minmax"``.
    weights_score_labels: ClassVar[bool] = False

    #: Names of the checks of `labelsieve.contract` that a method cannot pass, with the reasons.
    _expected_failed_checks: ClassVar[dict[str, str]] = {}

    n_features_to_select: int | float | str | None = None

    @abstractmethod
    def _solve(self, X: Matrix, Y: Matrix) -> SolverResult:
        """Score the features of a validated ``X`` for the 0/1 matrix ``Y``. Both may be sparse."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Self:
        """Score and rank the features.

        Parameters
        ----------
        X : {array-like, dataframe, sparse matrix} of shape (n_samples, n_features)
            Features. float32 stays float32, CSR and CSC stay sparse.
        y : {array-like, dataframe, sparse matrix} of shape (n_samples, n_labels) or (n_samples,)
            Candidate labels: 1 if the label is a candidate of the row, 0 if it certainly does not apply. A
            row may have no candidates, which means that no label applies. One-dimensional ``y``, or a single
            column with discrete values other than 0 and 1, is treated as classes and one-hot encoded. You can
            also pass the tags of every row, as a sequence of sets or of lists with strings.
            ``label_names_in_`` then holds all tags in sorted order. `EvidenceSelector` and `SumF` take unknown
            labels, which are NaN in a matrix or dataframe.

        Returns
        -------
        self : object
            The fitted selector.

        Notes
        -----
        Some methods also accept dask arrays and dataframes. Their blocks of rows are read one at a time, or
        stay on the cluster of an active `distributed.Client`. See `docs/guide/scale.md` for details.
        """
        if is_lazy(X):
            with _progress_log(getattr(self, "verbose", 0)):
                result, n_selected = self._solve_lazy(X, y)
            return self._store(result, n_selected)
        X, Y = validate_problem(self, X, y, takes_unknown=self.takes_unknown_labels)
        n_selected = self._n_selected(X.shape[1])
        with _progress_log(getattr(self, "verbose", 0)):
            result = self._solve(within_range(X), Y)
        return self._store(result, n_selected)

    def _solve_lazy(self, X: Any, y: Any) -> tuple[SolverResult, int]:
        """Score the features of dask collections, and return the number to select. Most methods raise."""
        raise needs_all_rows(type(self).__name__, X, f"one of: {', '.join(TAKES_BLOCKS)}")

    def transform(self, X: Any) -> Any:
        """Keep the selected features.

        Parameters
        ----------
        X : {array-like, dataframe, sparse matrix, dask collection} of shape (n_samples, n_features)
            Features with the same columns as in ``fit``.

        Returns
        -------
        X_selected : {ndarray, dataframe, sparse matrix, dask collection} of shape (n_samples, n_features_)
            Selected columns. Lazy if ``X`` is.
        """
        if is_lazy(X):
            return self._transform_lazy(X)
        check_structure(X, "X")
        return super().transform(X)

    def _transform_lazy(self, X: Any) -> Any:
        """Keep the selected columns of a dask array or dataframe without computing it."""
        support = self.get_support(indices=True)
        if X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X must have {self.n_features_in_} features as in fit, got {X.shape[1]}. "
                f"Pass the same columns."
            )
        return X.iloc[:, support] if hasattr(X, "iloc") else X[:, support]

    def inverse_transform(self, X: Any) -> Any:
        """Restore the original columns, with zeros for features that were not selected.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_)
            Selected columns.

        Returns
        -------
        X_original : {ndarray, sparse matrix} of shape (n_samples, n_features)
            Features with zeros in the columns that were not selected.
        """
        check_structure(X, "X")
        return super().inverse_transform(X)

    def _iterate(
        self, step: Callable[[Any], tuple[Any, float]], state: Any, value: float, **options: int
    ) -> tuple[Any, np.ndarray, bool]:
        """Repeat a step until ``tol`` or ``max_iter`` ends the loop. See `iterate`."""
        return iterate(step, state, value, max_iter=self.max_iter, tol=self.tol, **options)

    def _n_selected(self, n_features: int) -> int:
        """Convert ``n_features_to_select`` to a number of columns."""
        wanted = self.n_features_to_select
        # With "auto", the result of the method contains the number.
        return n_features if isinstance(wanted, str) else count_selected(wanted, n_features, "features")

    def _resolved_params(self) -> dict[str, Any]:
        """Return parameters that fix the automatic choices of this fit."""
        return {"n_features_to_select": self.n_features_}

    def _store(self, result: SolverResult, n_selected: int) -> Self:
        """Set the fitted attributes. Warn if the solver did not converge or all scores are 0."""
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
                f"{type(self).__name__} did not converge in max_iter iterations. Increase max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        if not scores.any():
            warnings.warn(
                f"{type(self).__name__} gave all features a score of 0 and ranks them in column order. "
                f"Decrease the sparsity weight, or check that features and labels vary.",
                UserWarning,
                stacklevel=4,
            )
        return self

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self, "ranking_")
        return self.ranking_ <= self.n_features_

    @property
    def _repr_html_(self) -> Callable[[], str]:
        # A property, as in scikit-learn, which raises AttributeError if diagrams are switched off.
        diagram = super()._repr_html_
        return lambda: diagram() + self._findings_html()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        shown: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in shown:
            shown["text/html"] += self._findings_html()
        return shown

    def _findings_html(self) -> str:
        """Return the table that follows scikit-learn's diagram of a fitted selector."""
        return RankedFeatures.of(self).to_html() if hasattr(self, "ranking_") else ""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class BlockSelector(BaseSelector):
    """Base class of selectors that accept rows in blocks. Subclasses define ``_solve_rows(problem)``."""

    @abstractmethod
    def _solve_rows(self, problem: RowProblem) -> SolverResult:
        """Score the features of a validated problem with rows in blocks."""

    def _solve(self, X: Matrix, Y: Matrix) -> SolverResult:
        return self._solve_rows(in_memory(X, Y))

    def _solve_lazy(self, X: Any, y: Any) -> tuple[SolverResult, int]:
        y, tags = binarize_tags(y)
        feature_names, label_names = column_names(X), tags or column_names(y)
        problem = check_rows(open_rows(X, y))
        self.n_features_in_ = problem.n_features
        self.classes_ = None
        if feature_names is not None:
            self.feature_names_in_ = np.array(feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.label_names_in_ = np.array(label_names or _numbered(problem.n_labels), dtype=object)
        n_selected = self._n_selected(problem.n_features)
        return self._solve_rows(problem), n_selected


def validate_problem(
    estimator: Any, X: Any, y: Any, *, min_samples: int = 2, takes_unknown: bool = False
) -> tuple[Matrix, Matrix]:
    """Validate features and candidates of any kind, and set the attributes that describe them.

    Return ``X`` as float32 or float64 (dense, CSR or CSC) and the 0/1 matrix ``Y`` (dense or CSR), in which
    unknown labels are NaN if ``takes_unknown`` is True. Set
    ``n_features_in_`` and ``feature_names_in_`` as in scikit-learn, ``label_names_in_``, and ``classes_``,
    the values of a one-hot encoded ``y``, or None for candidate matrices.
    """
    y, tags = binarize_tags(y)
    label_names = tags or column_names(y)
    check_structure(X, "X")
    check_structure(y, "y")
    if not takes_unknown:
        require_known(y)
    y, unknown = take_unknown(y)
    X, y = validate_data(estimator, X, y, **{**_TABLE, "ensure_min_samples": min_samples})
    X = canonical(X)
    Y, class_names = check_candidates(y, unknown)
    estimator.classes_ = None if class_names is None else np.unique(y)
    if class_names is not None:
        label_names = class_names
    elif label_names is None:
        label_names = _numbered(Y.shape[1])
    estimator.label_names_in_ = np.array(label_names, dtype=object)
    return X, Y


def check_problem(X: Any, y: Any, *, takes_unknown: bool = False) -> tuple[Matrix, Matrix]:
    """Validate features and candidates as in `BaseSelector.fit`, for functions without an estimator."""
    y, _ = binarize_tags(y)
    check_structure(X, "X")
    check_structure(y, "y")
    if not takes_unknown:
        require_known(y)
    y, unknown = take_unknown(y)
    X, y = check_X_y(X, y, **_TABLE)
    return canonical(X), check_candidates(y, unknown)[0]


def check_parameters(estimator: BaseEstimator) -> None:
    """Raise if the parameters of an estimator violate their constraints."""
    estimator._validate_params()


def reject_lazy(name: str, *tables: Any) -> None:
    """Raise for dask collections, for functions and estimators that need all rows at once."""
    for table in tables:
        if is_lazy(table):
            raise needs_all_rows(name, table, "a sample of the rows")


def needs_all_rows(name: str, table: Any, otherwise: str) -> TypeError:
    """Return the error for a dask collection that is not supported."""
    return TypeError(
        f"{name} needs all rows in memory, got a {type(table).__module__.partition('.')[0]} "
        f"{type(table).__name__.lower()}. Use X.compute() and y.compute() if they fit into memory, "
        f"or {otherwise}."
    )


def count_selected(wanted: Any, total: int, what: str, name: str = "n_features_to_select") -> int:
    """Convert an integer, a fraction or None (half) to a number of features.

    Examples
    --------
    >>> [count_selected(wanted, 100, "features") for wanted in (7, 0.29, 0.001, None)]
    [7, 29, 1, 50]
    """
    if wanted is None:
        return max(1, total // 2)
    if isinstance(wanted, (int, np.integer)) and not isinstance(wanted, bool):
        if 1 <= wanted <= total:
            return int(wanted)
    elif isinstance(wanted, (float, np.floating)) and 0 < wanted <= 1:
        # Round first, because 100 * 0.29 is 28.999... in floating point.
        return max(1, int(round(total * float(wanted), 9)))
    raise ValueError(
        f"{name} must be an integer from 1 to {total}, the number of {what}, or a fraction in (0, 1], "
        f"got {wanted!r}."
    )


def check_count(value: Any, name: str, *, minimum: int) -> None:
    """Raise if a value is not an integer of at least ``minimum``, for functions without constraints."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise ValueError(f"{name} must be an integer of at least {minimum}, got {value!r}.")


def nonnegative_features(X: Matrix, scale: str | None) -> Matrix:
    """Scale ``X`` for a method with non-negative factors, or raise."""
    scaling = nonnegative_scaling(X, scale)
    return X if scale is None else scaling.apply(X)


def nonnegative_scaling(X: Matrix, scale: str | None) -> Scaling:
    """Learn the scaling of ``X`` for a method with non-negative factors, or raise."""
    _require_nonnegative(X.data if is_sparse(X) else X, scale, is_sparse=is_sparse(X))
    return Scaling.learn(X, scale)


def scale_nonnegative(problem: RowProblem, scale: str | None) -> None:
    """Scale features in blocks for a method with non-negative factors. Sparse features become CSR."""
    low, high = row_extremes(problem.rows)
    _require_nonnegative(low, scale, is_sparse=problem.is_sparse)
    scaling = None if scale is None else Scaling.between(low, high, is_sparse=problem.is_sparse)
    problem.rows.derive(_scale_block, ["X"], scaling, gives="X")


def _scale_block(X: Matrix, scaling: Scaling | None) -> Matrix:
    X = X if scaling is None else scaling.apply(X)
    return X.tocsr() if is_sparse(X) else X


def _require_nonnegative(values: np.ndarray, scale: str | None, *, is_sparse: bool) -> None:
    """Raise if ``values``, which contain the minimum, are negative and no scaling will shift them."""
    if (scale is None or is_sparse) and values.size and values.min() < 0:
        reason = "it is sparse" if is_sparse else "scale=None"
        remedy = "Shift or clip the negative columns" if is_sparse else "Use scale='minmax'"
        raise ValueError(
            f"X must not be negative if {reason}, got a minimum of {values.min():.6g}. {remedy}."
        )


def as_generator(random_state: Any) -> np.random.Generator:
    """Convert scikit-learn's ``random_state`` to a generator."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31)
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state must be None, a non-negative integer or a generator, got {random_state!r}."
        ) from None


def _numbered(n_labels: int) -> list[str]:
    """Return default names for labels."""
    return [f"y{j}" for j in range(n_labels)]


@contextmanager
def _progress_log(verbose: int) -> Iterator[None]:
    """Log the iterations of a fit, to the terminal if logging is not configured."""
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


class RankedFeatures(NamedTuple):
    """Names and values of the features, best first, with the measure and the number of selected ones."""

    names: list[str]
    worth: np.ndarray
    measure: str
    n_selected: int

    @classmethod
    def of(cls, selector: Any, feature_names: Sequence[object] | None = None) -> RankedFeatures:
        """Collect the results of a fitted selector. `feature_names` defaults to the names seen in fit."""
        order = np.argsort(selector.ranking_, kind="stable")
        # The scores of EvidenceSelector only encode ranks.
        measure = "evidence" if hasattr(selector, "evidence_") else "score"
        worth = selector.evidence_ if measure == "evidence" else selector.scores_
        if feature_names is None:
            feature_names = getattr(selector, "feature_names_in_", [f"x{j}" for j in range(len(order))])
        if len(feature_names) != len(order):
            raise ValueError(f"feature_names must have {len(order)} entries, got {len(feature_names)}.")
        return cls([str(feature_names[j]) for j in order], worth[order], measure, int(selector.n_features_))

    def to_html(self) -> str:
        """Render the selected features as a short table."""
        n_shown = min(self.n_selected, _ROWS_SHOWN)
        n_left = self.n_selected - n_shown
        return html_table(
            f"{self.n_selected} of {len(self.names)} features selected",
            ("rank", "feature", self.measure),
            [(i + 1, self.names[i], format_score(self.worth[i])) for i in range(n_shown)],
            f"and {n_left} more" if n_left else "",
        )
