"""PML3er-style: label enrichment by propagation, then joint learning of confidences and weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelsieve._base import NON_NEGATIVE, POSITIVE, Interval, Real
from labelsieve._numerics.graph import neighbor_graph
from labelsieve._numerics.norms import row_norms
from labelsieve._numerics.products import squared_norm
from labelsieve._numerics.result import SolverResult
from labelsieve._numerics.ridge import Shifted, WeightedRidge
from labelsieve._numerics.scaling import minmax_rows
from labelsieve._numerics.sparse import Matrix
from labelsieve.methods._label_regressor import LabelRegressor

#: Tolerance of the propagation (largest change of an entry) and its maximum number of steps.
_PROPAGATION_TOL, _MAX_STEPS = 1e-10, 10_000


@dataclass(eq=False, repr=False, kw_only=True)
class PML3er(LabelRegressor):
    """Rank features by a regression on confidences learned from neighbours' labels (PML3er-style).

    The first stage propagates the candidates to neighbouring rows, which gives every label of every
    row a degree of relevance E. The second stage minimises over confidences C, label correlations
    B, weights W and intercepts b::

        1/2 |E - CB|^2 + lambda1 / 2 |C - XW - 1b'|^2 + lambda2 |B|_* + n lambda3 / 2 |W|^2

    subject to ``0 <= C <= Y``, where n is the number of rows and ``|B|_*`` is the nuclear norm, the
    sum of the singular values. Features are ranked by the norms of their rows of W.

    This is a reconstruction from the abstract of [1]_, which describes two stages: a propagation
    that does not reset non-candidates to 0, and joint learning of confidences and predictor. The
    objective and everything else are ours.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1], or None for half of them.
    lambda1, lambda2 : float, default=1.0
        Weights of the predictor's fit to the confidences and of the nuclear norm. A larger lambda2
        lowers the rank of the label correlations.
    lambda3 : float, default=0.1
        Weight of the squared norm of W, per row of X.
    alpha : float, default=0.5
        Weight of the neighbours in each propagation step; must be below 1. See Notes.
    n_neighbors : int, default=10
        Number of neighbours of each row, capped by the number of other rows.
    fit_intercept : bool, default=True
        Fit intercepts, which are not penalised.
    scale : {"standard", "minmax"} or None, default="standard"
        Scale every feature to mean 0 and variance 1, or to [0, 1]. "minmax" does not shift sparse
        features.
    max_iter : int, default=500
        Maximum number of iterations.
    tol : float, default=1e-4
        Stop when the relative change of the objective in one iteration is at most this.
    verbose : int, default=0
        Log every iteration if nonzero.

    Attributes
    ----------
    scores_, ranking_ : ndarray of shape (n_features,)
        Norms of the rows of W, and the rank of every feature (1 is best).
    coef_ : ndarray of shape (n_labels, n_features)
        Transpose of W, for scaled features.
    intercept_ : ndarray of shape (n_labels,)
        b, or zeros if ``fit_intercept=False``.
    label_confidence_ : ndarray or sparse matrix of shape (n_samples, n_labels)
        C; sparse if ``y`` was.
    scaling_ : Scaling
        Offset (or None) and factor of every feature; ``decision_function`` is
        ``scaling_.apply(X) @ coef_.T + intercept_``.
    threshold_ : float
        Decision value from which `predict` returns a label: half the mean confidence of the
        candidates, a convention of this library.
    objective_history_ : ndarray of shape (n_iter_ + 1,)
        Objective at the start and after each of the ``n_iter_`` iterations. It never increases.

    Notes
    -----
    Cost: ``n d q + n q^2 + q^3`` per round for n rows, d features and q labels. In addition, once,
    ``n^2 d`` for the neighbours, in blocks, and the smaller Gram matrix of features or rows.

    A round solves for W and b, then takes one proximal step for B and one for C. Each of these
    lowers the objective. The problem is not convex. The solver starts at C = Y, B = I, W = 0.

    The usual ``alpha`` of 0.95 smooths the labels too much if most features are noise. With 300
    rows, 8 informative features out of 50 and no label noise, it lowers the fraction of informative
    features found from 1.00 to 0.81.

    Rows of E are scaled to [0, 1], which hides how many labels a row has. If there is only one
    label, nothing is left to explain. All computations use float64.

    References
    ----------
    .. [1] Li and Wang, "Recovering accurate labeling information from partially valid data for
       effective multi-label learning", IJCAI 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve.methods.pml3er import PML3er
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 6))
    >>> Y = (X[:, :3] + 0.3 * rng.normal(size=(100, 3)) > 0).astype(int)
    >>> PML3er(n_features_to_select=3).fit(X, Y).get_support(indices=True)
    array([0, 1, 2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LabelRegressor._parameter_constraints,
        "lambda1": POSITIVE,
        "lambda2": NON_NEGATIVE,
        "lambda3": POSITIVE,
        "alpha": [Interval(Real, 0, 1, closed="left")],
        "fit_intercept": ["boolean"],
    }

    lambda1: float = 1.0
    lambda2: float = 1.0
    lambda3: float = 0.1
    alpha: float = 0.5
    n_neighbors: int = 10
    fit_intercept: bool = True
    scale: str | None = "standard"
    max_iter: int = 500
    tol: float = 1e-4
    verbose: int = 0

    def _regress(self, X: Shifted, Y: np.ndarray) -> SolverResult:
        # The offset does not change distances and neighbours.
        return self._descend(X, Y, enrich_labels(X.X, Y, n_neighbors=self.n_neighbors, alpha=self.alpha))

    def _descend(
        self, X: Shifted, Y: np.ndarray, E: np.ndarray, start: np.ndarray | None = None
    ) -> SolverResult:
        """Solve the second stage, starting from ``start`` or W = 0."""
        problem = PML3erProblem(self, X.centred() if self.fit_intercept else X, Y, E)
        W = np.zeros((X.shape[1], Y.shape[1])) if start is None else start
        state = PML3erState(Y, np.eye(Y.shape[1]), float(Y.shape[1]), *problem.predict(W, Y))
        state, history, converged = self._iterate(problem.round, state, problem.objective(state))
        extra = {
            "coef": state.W.T,
            "intercept": state.b - X.mean_row() @ state.W if self.fit_intercept else state.b,
            "label_confidence": state.C,
        }
        return SolverResult(row_norms(state.W), history, converged, extra=extra)


def enrich_labels(
    X: Matrix, Y: np.ndarray, *, n_neighbors: int, alpha: float, bandwidth: str = "mean"
) -> np.ndarray:
    """Propagate the candidates over neighbours. Return the relevance of all labels in [0, 1]."""
    return minmax_rows(propagate(transitions(X, n_neighbors, bandwidth), Y, alpha=alpha))


def propagate(P: sp.csr_matrix, Y: np.ndarray, *, alpha: float) -> np.ndarray:
    """Repeat ``F <- alpha P F + (1 - alpha) Y`` to convergence. Rows of P sum to at most 1."""
    F = Y
    for _ in range(_MAX_STEPS):
        previous = F
        F = alpha * (P @ F) + (1 - alpha) * Y
        if np.abs(F - previous).max() <= _PROPAGATION_TOL:
            break
    return F


def transitions(X: Matrix, n_neighbors: int, bandwidth: str) -> sp.csr_matrix:
    """Return the neighbour weights, normalised to row sums of 1, or 0 for isolated rows."""
    graph = neighbor_graph(X, n_neighbors, bandwidth=bandwidth)
    affinity = graph.affinity - sp.identity(X.shape[0], format="csr")
    sums = np.asarray(affinity.sum(axis=1)).ravel()
    return sp.diags(np.divide(1, sums, out=np.zeros_like(sums), where=sums > 0)) @ affinity


class PML3erState(NamedTuple):
    """Unknowns C, B, W and b, the nuclear norm of B and the prediction XW + 1b'."""

    C: np.ndarray
    B: np.ndarray
    nuclear_norm: float
    W: np.ndarray
    b: np.ndarray
    prediction: np.ndarray


@dataclass(frozen=True)
class PML3erProblem:
    """Parameters and data. The features are centred if an intercept is fitted."""

    params: PML3er
    X: Shifted
    Y: np.ndarray
    E: np.ndarray

    @cached_property
    def ridge(self) -> float:
        """Weight of |W|^2, summed over the rows."""
        return self.X.shape[0] * self.params.lambda3

    @cached_property
    def solve_W(self) -> Callable[[np.ndarray], np.ndarray]:
        """Function that returns the optimal W for given C."""
        return WeightedRidge(self.X).solver(np.full(self.X.shape[1], self.ridge / self.params.lambda1))

    def objective(self, state: PML3erState) -> float:
        """Return the objective at a state."""
        return (
            squared_norm(self.E - state.C @ state.B) / 2
            + self.params.lambda1 / 2 * squared_norm(state.C - state.prediction)
            + self.params.lambda2 * state.nuclear_norm
            + self.ridge / 2 * squared_norm(state.W)
        )

    def round(self, state: PML3erState) -> tuple[PML3erState, float]:
        """Solve for W and b, then take a step in B and in C."""
        W, b, prediction = self.predict(self.solve_W(state.C), state.C)
        B, singular_values = self.step_B(state.C, state.B)
        step = 1 / (singular_values[0] ** 2 + self.params.lambda1)
        C = np.clip(state.C - step * self.gradient_C(state.C, B, prediction), 0, self.Y)
        state = PML3erState(C, B, float(singular_values.sum()), W, b, prediction)
        return state, self.objective(state)

    def predict(self, W: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return W, the optimal b and XW + 1b'."""
        b = C.mean(axis=0) if self.params.fit_intercept else np.zeros(C.shape[1])
        return W, b, self.X.times(W) + b

    def gradient_C(self, C: np.ndarray, B: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        """Return the gradient of the objective with respect to C."""
        return (C @ B - self.E) @ B.T + self.params.lambda1 * (C - prediction)

    def step_B(self, C: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take a proximal gradient step. Return B and its singular values, largest first."""
        CtC = C.T @ C
        curvature = np.linalg.eigvalsh(CtC)[-1]
        if curvature <= 0:
            # All confidences are 0, so only the norm of B is left to minimise.
            return np.zeros_like(B), np.zeros(len(B))
        left, values, right = np.linalg.svd(B - (CtC @ B - C.T @ self.E) / curvature)
        values = np.maximum(values - self.params.lambda2 / curvature, 0)
        return (left * values) @ right, values
