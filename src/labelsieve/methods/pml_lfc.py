"""PML-LFC-style: confidences that agree with similarity in features and in candidate labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from labelsieve._base import NON_NEGATIVE, POSITIVE, StrOptions
from labelsieve._numerics.batches import batches
from labelsieve._numerics.norms import row_norms, squared_row_norms
from labelsieve._numerics.products import inner, squared_norm
from labelsieve._numerics.result import SolverResult
from labelsieve._numerics.ridge import Shifted, WeightedRidge
from labelsieve._numerics.sparse import is_sparse
from labelsieve.methods._label_regressor import LabelRegressor

#: Share of the longest row's squared length up to which a row counts as zero: it has no direction.
_NO_DIRECTION = 1e-12
#: Time of a multiplication outside of dense products, in those within; a rough one decides well enough.
_SLOWNESS = 10
#: Times a step is halved at most.
_MAX_HALVINGS = 60


@dataclass(eq=False, repr=False, kw_only=True)
class PMLLFC(LabelRegressor):
    """Select features by the weights that predict confidences, alike where rows are alike (PML-LFC-style).

    Minimises over weights W, intercepts b and confidences P::

        1/2 |XW + 1b' - P|^2 + n lambda1 / 2 |W|^2 + lambda2 / (4 n) |PP' - S|^2,  0 <= P <= Y

    where S holds how similar two rows are in their features and in their candidates. Features rank by the norms
    of their rows of W.

    A reconstruction: from the abstract of [1]_ are confidences from similarity in both spaces, dissimilar rows
    being dissimilar in their true labels, and one model for confidences and predictor with alternating steps.
    The objective and everything else are ours.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        How many features to keep: a number, a share in (0, 1], or None for half of them.
    lambda1 : float, default=0.1
        Weight of the squared norm of W, per row of the data.
    lambda2 : float, default=1.0
        Weight of the similarities. A large one pulls the confidences to those of the noisy candidates.
    similarity : {"or", "and"}, default="or"
        S from the cosines A of the features and B of the candidates of two rows: ``A + B - A B``, large where
        one of them is, or ``A B``, large where both are. See Notes.
    scale : {"standard", "minmax"} or None, default="standard"
        Bring every feature to mean 0 and variance 1, or to [0, 1]; sparse features are not shifted by
        "minmax". Cosines of features that are not negative are all close to 1, and say little.
    max_iter : int, default=300
        Iteration budget.
    tol : float, default=1e-5
        Relative change of the objective in one iteration that stops the loop.
    verbose : int, default=0
        Log every iteration.

    Attributes
    ----------
    scores_, ranking_ : ndarray of shape (n_features,)
        Norms of the rows of W, and the place of every feature, 1 is best.
    coef_ : ndarray of shape (n_labels, n_features)
        The transpose of W, for scaled features.
    intercept_ : ndarray of shape (n_labels,)
        b.
    label_confidence_ : ndarray or sparse matrix of shape (n_samples, n_labels)
        P; sparse if ``y`` was. Rows want unit length, so a row with several labels is not confident in each.
    scaling_ : Scaling
        Offset (or None) and factor of every feature; ``decision_function`` is
        ``scaling_.apply(X) @ coef_.T + intercept_``.
    threshold_ : float
        Half the mean confidence of the candidates, the decision value from which `predict` calls a label
        relevant; a convention of this library.
    objective_history_ : ndarray of shape (n_iter_ + 1,)
        Objective at the start and after each of the ``n_iter_`` iterations; it never rises.

    Notes
    -----
    Cost: ``S P``, the main part of a round, takes ``c d q`` for c candidates in all, d features and q labels,
    or ``n^2 (d + q)`` if that is less; S is never kept. Its norm takes ``n^2 (d + q)`` once.

    A round solves for W and b, then takes a projected gradient step for P, halved until it descends as far as
    its quadratic model says. The problem is not convex in P; it starts at P = Y and W = 0.

    "or" is the default because "and" says of most rows that they have nothing in common. Of ten planted features
    among a hundred, "or" finds shares of 0.99, 0.99 and 0.96 and "and" 0.98, 0.94 and 0.85 at noise 0, 0.2 and
    0.4 (300 rows, 10 labels, ten seeds).

    A row without candidates has no confidence, and a row at the mean of all features no cosine: 0 is taken.
    Computations are in float64.

    References
    ----------
    .. [1] Yu, Yu, Wang, Guo, "Partial multi-label learning with label and feature collaboration", DASFAA 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve.methods.pml_lfc import PMLLFC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 6))
    >>> Y = (X[:, :3] + 0.3 * rng.normal(size=(100, 3)) > 0).astype(int)
    >>> PMLLFC(n_features_to_select=3).fit(X, Y).get_support(indices=True)
    array([0, 1, 2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LabelRegressor._parameter_constraints,
        "lambda1": POSITIVE,
        "lambda2": NON_NEGATIVE,
        "similarity": [StrOptions({"and", "or"})],
    }

    lambda1: float = 0.1
    lambda2: float = 1.0
    similarity: str = "or"
    scale: str | None = "standard"
    max_iter: int = 300
    tol: float = 1e-5
    verbose: int = 0

    def _regress(self, X: Shifted, Y: np.ndarray, start: np.ndarray | None = None) -> SolverResult:
        """Solve from a W, by default 0, and b = 0."""
        problem = PMLLFCProblem(self, X.centred(), Y, Similarity(X, Y, self.similarity))
        W = np.zeros((X.shape[1], Y.shape[1])) if start is None else start
        state = PMLLFCState(W, np.zeros(Y.shape[1]), Y, problem.S.product(Y), 1.0)
        value = problem.objective(W, X.times(W), Y, state.SP)
        state, history, converged = self._iterate(problem.round, state, value)
        extra = {
            "coef": state.W.T,
            "intercept": state.b - X.mean_row() @ state.W,
            "label_confidence": state.P,
        }
        return SolverResult(row_norms(state.W), history, converged, extra=extra)


class Similarity:
    """S, the similarity of every two rows in features and candidates, as products that never form it."""

    def __init__(self, X: Shifted, Y: np.ndarray, kind: str) -> None:
        self.X = X
        self.kind = kind
        self.x_factor = _inverse_lengths(X.squared_row_norms())[:, None]
        self.Y = Y * _inverse_lengths(squared_row_norms(Y))[:, None]
        n_samples, n_labels = Y.shape
        width = _SLOWNESS * X.X.nnz / n_samples if is_sparse(X.X) else X.shape[1]
        by_labels = 4 * np.count_nonzero(Y) * n_labels * (width + _SLOWNESS)
        #: Whether labels are so many that computing all similarities again, row by row, is cheaper.
        self.by_rows = n_samples**2 * (2 * width + 4 * n_labels + 3 * _SLOWNESS) < by_labels

    def product(self, P: np.ndarray) -> np.ndarray:
        """Return S P."""
        if self.by_rows:
            return np.vstack([self.block(rows) @ P for rows in batches(len(P), len(P))])
        return self.product_by_labels(P)

    def product_by_labels(self, P: np.ndarray) -> np.ndarray:
        """Return S P: with unit rows x and y, the sum over the labels k of diag(y_k) XX' diag(y_k) P."""
        total = np.zeros_like(P)
        for label in self.Y.T:
            rows = np.flatnonzero(label)
            factor = label[rows, None] * self.x_factor[rows]
            X = self.X.take(rows)
            total[rows] += factor * X.times(X.transposed_times(factor * P[rows]))
        if self.kind == "and":
            return total
        by_features = self.x_factor * self.X.times(self.X.transposed_times(self.x_factor * P))
        return by_features + self.Y @ (self.Y.T @ P) - total

    def squared_norm(self) -> float:
        """Return |S|^2, from blocks of rows."""
        return sum(squared_norm(self.block(rows)) for rows in batches(len(self.Y), len(self.Y)))

    def block(self, rows: slice) -> np.ndarray:
        """Some rows of S."""
        by_features = self.X.row_products(rows) * self.x_factor[rows] * self.x_factor[:, 0]
        by_labels = self.Y[rows] @ self.Y.T
        both: np.ndarray = by_features * by_labels
        return both if self.kind == "and" else by_features + by_labels - both


class PMLLFCState(NamedTuple):
    """The unknowns, b that of centred features; S P; and the length of the last step."""

    W: np.ndarray
    b: np.ndarray
    P: np.ndarray
    SP: np.ndarray
    step: float


@dataclass(frozen=True)
class PMLLFCProblem:
    """Centred features, candidates and similarities."""

    params: PMLLFC
    X: Shifted
    Y: np.ndarray
    S: Similarity

    @cached_property
    def squared_norm_S(self) -> float:
        """|S|^2."""
        return self.S.squared_norm()

    @cached_property
    def lambda1(self) -> float:
        """Weight of |W|^2 for all rows."""
        return len(self.Y) * self.params.lambda1

    @cached_property
    def lambda2(self) -> float:
        """Weight of the similarities for every pair of rows."""
        return self.params.lambda2 / len(self.Y)

    @cached_property
    def solve_W(self) -> Callable[[np.ndarray], np.ndarray]:
        """From P to the best W."""
        return WeightedRidge(self.X).solver(np.full(self.X.shape[1], self.lambda1))

    def objective(self, W: np.ndarray, prediction: np.ndarray, P: np.ndarray, SP: np.ndarray) -> float:
        """J, given XW + 1b' and SP."""
        mismatch = squared_norm(P.T @ P) - 2 * inner(P, SP) + self.squared_norm_S
        return (
            squared_norm(prediction - P) / 2
            + self.lambda1 / 2 * squared_norm(W)
            + self.lambda2 / 4 * mismatch
        )

    def gradient(self, prediction: np.ndarray, P: np.ndarray, SP: np.ndarray) -> np.ndarray:
        """Of J, by P."""
        return P - prediction + self.lambda2 * (P @ (P.T @ P) - SP)

    def round(self, state: PMLLFCState) -> tuple[PMLLFCState, float]:
        """Solve for W and b, then step in P."""
        W, b = self.solve_W(state.P), state.P.mean(axis=0)
        prediction = self.X.times(W) + b
        P, SP, step = self._step_P(prediction, state)
        return PMLLFCState(W, b, P, SP, step), self.objective(W, prediction, P, SP)

    def largest_share(self, length: float) -> float:
        """How far S can lower J below the rest of it, on a step of this squared length."""
        return self.lambda2 / 2 * float(np.sqrt(self.squared_norm_S)) * length

    def _step_P(self, prediction: np.ndarray, state: PMLLFCState) -> tuple[np.ndarray, np.ndarray, float]:
        """Halve a projected gradient step until J is below the quadratic with curvature 1 / step."""
        P, SP = state.P, state.SP
        gradient, PtP = self.gradient(prediction, P, SP), P.T @ P
        step = min(1.0, 2 * state.step)
        for _ in range(_MAX_HALVINGS):
            moved = np.clip(P - step * gradient, 0, self.Y)
            change = moved - P
            length, gram = squared_norm(change), change.T @ change
            rise = P.T @ change
            rise += rise.T + gram
            # What J is above its tangent, but for the share of S; all without differences of large numbers.
            excess = length / 2 + self.lambda2 / 4 * (2 * inner(PtP, gram) + squared_norm(rise))
            allowed = length / (2 * step)
            # S is expensive: use it only where its share might decide.
            if excess - self.largest_share(length) <= allowed:
                S_moved = self.S.product(moved)
                if excess - self.lambda2 / 2 * inner(change, S_moved - SP) <= allowed:
                    return moved, S_moved, step
            step /= 2
        return P, SP, step


def _inverse_lengths(squares: np.ndarray) -> np.ndarray:
    """One over the root, and 0 for rows without a direction."""
    has_direction = squares > _NO_DIRECTION * squares.max(initial=0)
    return np.sqrt(np.divide(1, squares, out=np.zeros_like(squares), where=has_direction))
