"""The contract of every selector: validation in, scores and ranking out.

A method is a subclass with parameters and one ``_solve``; see `CONTRIBUTING.md`. This is the only file that
knows private names of scikit-learn.
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
from labelsieve._candidates import binarize_tags, check_candidates
from labelsieve._numerics.result import SolverResult, iterate, logger
from labelsieve._numerics.scaling import Scaling, row_extremes
from labelsieve._numerics.sparse import Matrix, canonical, check_structure, is_sparse
from labelsieve._row_problem import RowProblem, check_rows, in_memory
from labelsieve._text import html_table

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

#: Constraints of a weight, of a weight that must not vanish, and of a number of things.
NON_NEGATIVE: list[Any] = [Interval(Real, 0, None, closed="left")]
POSITIVE: list[Any] = [Interval(Real, 0, None, closed="neither")]
COUNT: list[Any] = [Interval(Integral, 1, None, closed="left")]

#: Methods that take rows in blocks, for those that must say that they do not.
TAKES_BLOCKS = ("EvidenceSelector", "GMM", "PMLFSMIR", "RFS", "RandomRanking", "SumF", "SumMI")

#: Rows of the table of a fitted selector in a notebook.
_ROWS_SHOWN = 10

#: How scikit-learn validates features and labels.
_TABLE: dict[str, Any] = {
    "multi_output": True,
    "accept_sparse": ("csr", "csc"),
    "dtype": (np.float64, np.float32),
    "ensure_min_samples": 2,
}


@dataclass(eq=False, repr=False)
class BaseSelector(SelectorMixin, BaseEstimator):
    """Base of all selectors; a subclass writes ``_solve(X, Y) -> SolverResult``.

    The base checks parameters and data, sets the fitted attributes and makes the subclass a scikit-learn selector:
    ``transform``, names of features, data frames, sparse matrices, pipelines.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        How many features to keep: a number, a share in (0, 1], or None for half of them.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        What ``_solve`` returned; larger is better.
    ranking_ : ndarray of shape (n_features,)
        Place of every feature, 1 is best.
    n_features_ : int
        How many features are kept.
    label_names_in_ : ndarray of shape (n_labels,)
        Names of the labels: those of the columns, or y0, y1 and so on.

    See Also
    --------
    SolverResult : What ``_solve`` returns.
    iterate : The loop of a method that descends an objective.
    check_selector : Check that a method keeps the contract of this package.

    Notes
    -----
    ``_solve`` gets a validated ``X``, float32 or float64, dense, CSR or CSC, and the 0/1 matrix ``Y`` of candidates,
    dense or CSR; it changes neither, and its scores have the type of ``X``.

    A parameter of the subclass is stored by its ``__init__`` under its own name, or is a keyword-only field of a
    dataclass with ``eq=False, repr=False``. It is declared in ``_parameter_constraints`` as in scikit-learn: a list of
    types and of values such as None, of which one must fit. ``_solve`` checks everything else.

    Examples
    --------
    Features by how far their mean over a label's candidates lies from that of all rows:

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
        # Parameters that many methods have.
        "n_neighbors": COUNT,
        "max_iter": COUNT,
        "tol": NON_NEGATIVE,
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
    }

    #: Whether another number of features changes their order, not only where it is cut.
    ranking_depends_on_size: ClassVar[bool] = False

    #: Whether ``coef_`` scores the labels by itself, from features that ``scale="minmax"`` brought to [0, 1].
    weights_score_labels: ClassVar[bool] = False

    #: Checks of `labelsieve.contract` that a method cannot pass -> the reason.
    _expected_failed_checks: ClassVar[dict[str, str]] = {}

    n_features_to_select: int | float | str | None = None

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
            encoded. A sequence of sets, or of lists with strings, holds the tags of every row; ``label_names_in_``
            are then all tags, sorted.

        Returns
        -------
        self : object
            The fitted selector.

        Notes
        -----
        Some methods also take dask arrays and dataframes, whose blocks of rows are read one after the other, or
        stay on the cluster of an active `distributed.Client`; `docs/guide/scale.md` says which and how.
        """
        if is_lazy(X):
            with _progress_log(getattr(self, "verbose", 0)):
                result, n_selected = self._solve_lazy(X, y)
            return self._store(result, n_selected)
        X, Y = validate_problem(self, X, y)
        n_selected = self._n_selected(X.shape[1])
        with _progress_log(getattr(self, "verbose", 0)):
            result = self._solve(X, Y)
        return self._store(result, n_selected)

    def _solve_lazy(self, X: Any, y: Any) -> tuple[SolverResult, int]:
        """Score the features of dask collections, and say how many to select; most methods cannot."""
        raise needs_all_rows(type(self).__name__, X, f"one of: {', '.join(TAKES_BLOCKS)}")

    def transform(self, X: Any) -> Any:
        """Keep the selected features.

        Parameters
        ----------
        X : {array-like, dataframe, sparse matrix, dask collection} of shape (n_samples, n_features)
            Features, the columns those of ``fit``.

        Returns
        -------
        X_selected : {ndarray, dataframe, sparse matrix, dask collection} of shape (n_samples, n_features_)
            The selected columns; lazy if ``X`` is.
        """
        if is_lazy(X):
            return self._transform_lazy(X)
        check_structure(X, "X")
        return super().transform(X)

    def _transform_lazy(self, X: Any) -> Any:
        """Keep the selected columns of a dask array or dataframe, which stays lazy."""
        support = self.get_support(indices=True)
        if X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X must have the {self.n_features_in_} features of fit. Got {X.shape[1]}. Pass the same columns."
            )
        return X.iloc[:, support] if hasattr(X, "iloc") else X[:, support]

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

    def _iterate(
        self, step: Callable[[Any], tuple[Any, float]], state: Any, value: float, **options: int
    ) -> tuple[Any, np.ndarray, bool]:
        """Repeat a step until ``tol`` or ``max_iter`` ends the loop; see `iterate`."""
        return iterate(step, state, value, max_iter=self.max_iter, tol=self.tol, **options)

    def _n_selected(self, n_features: int) -> int:
        """Turn ``n_features_to_select`` into a number of columns."""
        wanted = self.n_features_to_select
        # "auto": the method says in its result how many; until then, all.
        return n_features if isinstance(wanted, str) else count_selected(wanted, n_features, "features")

    def _settled_params(self) -> dict[str, Any]:
        """Return parameters that fix the choices this fit made automatically."""
        return {"n_features_to_select": self.n_features_}

    def _store(self, result: SolverResult, n_selected: int) -> Self:
        """Turn a solver's result into fitted attributes, and warn if it did not converge or is all 0."""
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

    @property
    def _repr_html_(self) -> Callable[[], str]:
        # A property as in scikit-learn, where it is missing if diagrams are switched off.
        diagram = super()._repr_html_
        return lambda: diagram() + self._findings_html()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        shown: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in shown:
            shown["text/html"] += self._findings_html()
        return shown

    def _findings_html(self) -> str:
        """Return what follows scikit-learn's diagram of a fitted selector."""
        return RankedFeatures.of(self).to_html() if hasattr(self, "ranking_") else ""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class BlockSelector(BaseSelector):
    """Base of selectors that take the rows in blocks; a subclass writes ``_solve_rows(problem) -> SolverResult``."""

    @abstractmethod
    def _solve_rows(self, problem: RowProblem) -> SolverResult:
        """Score the features of a checked problem whose rows lie in blocks."""

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


def validate_problem(estimator: Any, X: Any, y: Any, *, least_samples: int = 2) -> tuple[Matrix, Matrix]:
    """Validate features and candidates of any kind; sets what every estimator notes about them.

    Returns ``X`` as float32 or float64, dense, CSR or CSC, and the 0/1 matrix ``Y``, dense or CSR. Set are
    ``n_features_in_`` and ``feature_names_in_`` as in scikit-learn, ``label_names_in_``, and ``classes_``: the values
    that a one-hot encoded y held, for methods that predict; None for candidate matrices.
    """
    y, tags = binarize_tags(y)
    label_names = tags or column_names(y)
    check_structure(X, "X")
    check_structure(y, "y")
    X, y = validate_data(estimator, X, y, **{**_TABLE, "ensure_min_samples": least_samples})
    X = canonical(X)
    Y, class_names = check_candidates(y)
    estimator.classes_ = None if class_names is None else np.unique(y)
    if class_names is not None:
        label_names = class_names
    elif label_names is None:
        label_names = _numbered(Y.shape[1])
    estimator.label_names_in_ = np.array(label_names, dtype=object)
    return X, Y


def check_problem(X: Any, y: Any) -> tuple[Matrix, Matrix]:
    """Return features and 0/1 candidates as `BaseSelector.fit` reads them, for functions that fit nothing."""
    y, _ = binarize_tags(y)
    check_structure(X, "X")
    check_structure(y, "y")
    X, y = check_X_y(X, y, **_TABLE)
    return canonical(X), check_candidates(y)[0]


def check_parameters(estimator: BaseEstimator) -> None:
    """Raise if the constraints of an estimator do not allow its parameters."""
    estimator._validate_params()


def reject_lazy(name: str, *tables: Any) -> None:
    """Raise for dask collections, for functions and estimators that need all rows at once."""
    for table in tables:
        if is_lazy(table):
            raise needs_all_rows(name, table, "a sample of the rows")


def needs_all_rows(name: str, table: Any, otherwise: str) -> TypeError:
    """Return the error for a dask collection that cannot be used."""
    return TypeError(
        f"{name} needs all rows at once and got a {type(table).__module__.partition('.')[0]} "
        f"{type(table).__name__.lower()}. Use X.compute() and y.compute() if they fit into memory, or {otherwise}."
    )


def count_selected(wanted: Any, total: int, what: str, name: str = "n_features_to_select") -> int:
    """Turn a number, a share or None for half of all into a number.

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
        # Rounded first: 100 times 0.29 is 28.999... in binary.
        return max(1, int(round(total * float(wanted), 9)))
    raise ValueError(
        f"{name} must be from 1 to {total}, the number of {what}, or a share in (0, 1]. Got {wanted!r}."
    )


def check_count(value: Any, name: str, *, least: int) -> None:
    """Raise if a value is not an integer of at least ``least``, for functions without constraints."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}. Got {value!r}.")


def nonnegative_features(X: Matrix, scale: str | None) -> Matrix:
    """Scale ``X`` for a method with non-negative factors, or raise."""
    scaling = nonnegative_scaling(X, scale)
    return X if scale is None else scaling.apply(X)


def nonnegative_scaling(X: Matrix, scale: str | None) -> Scaling:
    """Learn the scaling of ``X`` for a method with non-negative factors, or raise."""
    _require_nonnegative(X.data if is_sparse(X) else X, scale, is_sparse=is_sparse(X))
    return Scaling.learn(X, scale)


def scale_nonnegative(problem: RowProblem, scale: str | None) -> None:
    """Scale the features of rows in blocks for a method with non-negative factors; sparse ones become CSR."""
    low, high = row_extremes(problem.rows)
    _require_nonnegative(low, scale, is_sparse=problem.is_sparse)
    scaling = None if scale is None else Scaling.between(low, high, is_sparse=problem.is_sparse)
    problem.rows.derive(_scale_block, ["X"], scaling, gives="X")


def _scale_block(X: Matrix, scaling: Scaling | None) -> Matrix:
    X = X if scaling is None else scaling.apply(X)
    return X.tocsr() if is_sparse(X) else X


def _require_nonnegative(values: np.ndarray, scale: str | None, *, is_sparse: bool) -> None:
    """Raise if features are negative and no scaling will shift them; ``values`` include the smallest."""
    if (scale is None or is_sparse) and values.size and values.min() < 0:
        remedy = "use scale='minmax'" if not is_sparse else "shift or clip the negative columns before fit"
        raise ValueError(
            f"X must not be negative for this method when it is "
            f"{'sparse' if is_sparse else 'used unscaled (scale=None)'}. "
            f"Got a minimum of {values.min():.6g}. To fix it, {remedy}."
        )


def as_generator(random_state: Any) -> np.random.Generator:
    """Return a local generator for scikit-learn's ``random_state``, or the generator itself."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31)
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state must be None, an integer of at least 0 or a generator. Got {random_state!r}."
        ) from None


def _numbered(n_labels: int) -> list[str]:
    """Return names for labels without names."""
    return [f"y{j}" for j in range(n_labels)]


@contextmanager
def _progress_log(verbose: int) -> Iterator[None]:
    """Log the iterations of one fit, to the terminal if logging is not configured."""
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
    """Names and worth of the features, best first, what that worth is, and how many of them are selected."""

    names: list[str]
    worth: np.ndarray
    measure: str
    n_selected: int

    @classmethod
    def of(cls, selector: Any, feature_names: Sequence[object] | None = None) -> RankedFeatures:
        """Take the findings of a fitted selector; without `feature_names`, with the names of the fit."""
        order = np.argsort(selector.ranking_, kind="stable")
        # Scores that say nothing but the place come with the evidence that led there.
        measure = "evidence" if hasattr(selector, "evidence_") else "score"
        worth = selector.evidence_ if measure == "evidence" else selector.scores_
        if feature_names is None:
            feature_names = getattr(selector, "feature_names_in_", [f"x{j}" for j in range(len(order))])
        if len(feature_names) != len(order):
            raise ValueError(f"feature_names must have {len(order)} entries, got {len(feature_names)}.")
        return cls([str(feature_names[j]) for j in order], worth[order], measure, int(selector.n_features_))

    def to_html(self) -> str:
        """Return the selected features as a short table."""
        n_shown = min(self.n_selected, _ROWS_SHOWN)
        n_left = self.n_selected - n_shown
        return html_table(
            f"{self.n_selected} of {len(self.names)} features selected",
            ("place", "feature", self.measure),
            [(place + 1, self.names[place], f"{self.worth[place]:.4g}") for place in range(n_shown)],
            f"and {n_left} more" if n_left else "",
        )
