"""PML-FSLA: partial multi-label feature selection by latent space alignment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelsieve._base import COUNT, NON_NEGATIVE, BaseSelector, StrOptions, as_generator, nonnegative_features
from labelsieve._numerics.candidates import uniform_per_label
from labelsieve._numerics.norms import l21_weights, multiplicative_step, row_norms, smooth_l21_norm
from labelsieve._numerics.products import inner, right_product, squared_norm, transposed_product
from labelsieve._numerics.result import SolverResult
from labelsieve._numerics.sparse import Matrix, dense, is_sparse


@dataclass(eq=False, repr=False, kw_only=True)
class PMLFSLA(BaseSelector):
    """Rank features by aligning a latent space of the features with one of the cleaned labels.

    Minimises over ``Q, L, P, M, T >= 0``, where T is 0 for non-candidates and its rows sum to 1
    [1]_::

        |X - LQ'|^2 + alpha |T - PM|^2 + beta |L - P|^2 + gamma |QM|_21

    L is the latent space of the features, P that of the labels, and the third term aligns them. T
    holds the cleaned labels. Features are ranked by the squared norms of their rows of QM. By
    default, the entries of L and P are at most 1. This bound is ours: without it the objective has
    no minimiser, see Notes.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1], or None for half of them.
    alpha : float, default=100.0
        Weight of the label factorisation.
    beta : float, default=1.0
        Weight of the alignment of the two latent spaces.
    gamma : float, default=10.0
        Row-sparsity weight.
    n_components : int, "optics" or None, default=None
        Size of the latent spaces. None is half the number of labels, but at least 2 and at most 50.
        "optics" is the authors' choice, the number of clusters that OPTICS finds among the rows.
    rank_by : {"qm", "q"}, default="qm"
        Rank by the rows of QM, which the objective makes sparse, or by the rows of Q, which the
        authors' code returns first.
    update : {"bounded", "exact", "coded"}, default="bounded"
        "bounded" takes exact steps with L and P in [0, 1]. "exact" takes exact steps on the
        published objective. "coded" takes the steps of the authors' code, which can increase the
        objective. See Notes.
    scale : {"minmax"} or None, default="minmax"
        Scale every feature to [0, 1], or use ``X >= 0`` as it is.
    max_iter : int, default=1000
        Maximum number of sweeps, as in the authors' code. Some datasets need more than twice as
        many to reach ``tol``.
    tol : float, default=1e-5
        Stop when the relative change of the objective in one sweep is at most this. The authors use
        1e-3, and 0.1 once the objective is below 100.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the random start.
    verbose : int, default=0
        Log every sweep if nonzero.

    Attributes
    ----------
    scores_, ranking_ : ndarray of shape (n_features,)
        Squared norms of the rows of QM or Q, and the rank of every feature (1 is best).
    coef_ : ndarray of shape (n_labels, n_features)
        Transpose of QM. Its products with the features are not on the scale of the labels, so the
        method has no ``decision_function``.
    label_confidence_ : ndarray or sparse matrix of shape (n_samples, n_labels)
        T. Rows with candidates sum to 1, and rows without are 0. Sparse if ``y`` was.
    objective_history_ : ndarray of shape (n_iter_ + 1,)
        Objective at the start and after each of the ``n_iter_`` sweeps. It never increases, except
        with ``update="coded"``.

    Notes
    -----
    Cost: per sweep, products with k components of X (two), of matrices of the size of Y (three)
    and of one of the size of ``coef_``, and a sort of the rows of T. Sparse X stays sparse. T is
    dense.

    The published objective has no minimiser. If L = P, multiplying both by a growing number and
    dividing Q and M by it changes only the last term, which goes to 0 with QM. The default
    ``update="bounded"`` deviates from [1]_ to prevent this. A multiplicative step minimises a
    separable quadratic upper bound of the objective. The minimum of the bound on [0, 1] is the step
    clipped at 1, so the objective still never increases.

    The authors' code differs from the exact steps. In P, alpha is missing from the denominator, and
    in M it is missing altogether. T is PM on the candidates divided by its row sums, instead of the
    nearest distribution. M uses QM from before the Q step. Unless alpha is 1, the objective can
    increase, and the final ranking can be the reverse of the exact one. Use ``update="coded"`` to
    reproduce published numbers. In all forms, the norms of the rows of QM are smoothed by 2e-16
    under the root.

    The rows of T sum to 1, because T = 0 would make both label terms 0. As a consequence, a row
    with many true labels weighs as much as a row with one, and a feature that raises all labels
    together goes unnoticed. Labels influence features only through the latent spaces, which
    independent features hardly share. With 10 informative features out of 100, the fraction of them
    in the top 10 is 0.71, 0.64 and 0.40 at noise 0, 0.2 and 0.4 with "bounded", 0.48, 0.45 and 0.32
    with "exact", and 0.41, 0.24 and 0.20 with "coded"
    (``make_pml(300, 100, n_informative=10, n_labels=10)``, ten seeds).

    The default weights are from a later comparison; the authors search a grid from 1e-3 to 1e3. The
    random numbers of M are tied to the labels, so the order of the labels does not matter.

    References
    ----------
    .. [1] Pan, Liu, Gao, "Reconsidering feature structure information and latent space alignment in
       partial multi-label feature selection", AAAI 2025.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve.methods.pml_fsla import PMLFSLA
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.random((60, 5)), rng.integers(0, 2, (60, 2))
    >>> X[:, [1, 3]] += 3 * Y
    >>> PMLFSLA(n_features_to_select=2, random_state=0).fit(X, Y).get_support(indices=True)
    array([1, 3])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSelector._parameter_constraints,
        "scale": [StrOptions({"minmax"}), None],
        "alpha": NON_NEGATIVE,
        "beta": NON_NEGATIVE,
        "gamma": NON_NEGATIVE,
        "n_components": [*COUNT, StrOptions({"optics"}), None],
        "rank_by": [StrOptions({"qm", "q"})],
        "update": [StrOptions({"bounded", "exact", "coded"})],
    }

    alpha: float = 100.0
    beta: float = 1.0
    gamma: float = 10.0
    n_components: int | str | None = None
    rank_by: str = "qm"
    update: str = "bounded"
    scale: str | None = "minmax"
    max_iter: int = 1000
    tol: float = 1e-5
    random_state: Any = None
    verbose: int = 0

    def _solve(self, X: Matrix, Y: Matrix) -> SolverResult:
        X = nonnegative_features(X, self.scale)
        if self.n_components is None:
            n_components = min(max(2, round(Y.shape[1] / 2)), 50)
        else:
            n_components = number_of_clusters(X) if self.n_components == "optics" else int(self.n_components)
        return self._descend(X, Y, random_start(X, Y, n_components, as_generator(self.random_state)))

    def _descend(self, X: Matrix, Y: Matrix, start: Sequence[np.ndarray]) -> SolverResult:
        """Minimise the objective for ``X >= 0``, starting at positive Q, L, P and M."""
        candidates = dense(Y)  # T and P M are dense, too
        problem = PMLFSLAProblem(self, X, candidates != 0)
        state = problem.start(start, candidates)
        value = problem.objective(state, right_product(X, state.Q.T))
        state, history, converged = self._iterate(problem.sweep, state, value)
        coef = state.R.T.astype(X.dtype)
        ranked_by = coef.T if self.rank_by == "qm" else state.Q.astype(X.dtype)
        extra = {"coef": coef, "label_confidence": sp.csr_matrix(state.T) if is_sparse(Y) else state.T}
        return SolverResult(row_norms(ranked_by) ** 2, history, converged, extra=extra)


def random_start(X: Matrix, Y: Matrix, n_components: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Draw uniform Q, L, P and M. Permuting the labels permutes the columns of M."""
    Q = rng.random((X.shape[1], n_components))
    L = rng.random((X.shape[0], n_components))
    P = rng.random((X.shape[0], n_components))
    return Q, L, P, uniform_per_label(Y, n_components, rng)


def number_of_clusters(X: Matrix) -> int:
    """Count the clusters that OPTICS finds with the authors' settings, at least 1."""
    from sklearn.cluster import OPTICS

    with np.errstate(divide="ignore", invalid="ignore"):  # duplicate rows have distance 0
        clustering = OPTICS(
            min_samples=min(5, X.shape[0]), metric="euclidean", xi=0.05, min_cluster_size=0.01
        )
        found = clustering.fit(X).labels_
    return max(1, len(np.unique(found[found >= 0])))


class PMLFSLAState(NamedTuple):
    """Factors and products: X is close to L Q', the cleaned labels T to P M, and R is Q M."""

    Q: np.ndarray
    L: np.ndarray
    P: np.ndarray
    M: np.ndarray
    T: np.ndarray
    PM: np.ndarray
    R: np.ndarray


@dataclass(frozen=True)
class PMLFSLAProblem:
    """Parameters and data. X may be single precision; the factors must be double."""

    params: PMLFSLA
    X: Matrix
    is_candidate: np.ndarray

    @cached_property
    def squared_norm_X(self) -> float:
        """|X|^2."""
        return squared_norm(self.X)

    def start(self, factors: Sequence[np.ndarray], candidates: np.ndarray) -> PMLFSLAState:
        """Return the state with these factors and the initial T."""
        T = candidates if self.params.update == "coded" else _normalise_rows(candidates)
        Q, L, P, M = factors
        return PMLFSLAState(Q, L, P, M, T, P @ M, Q @ M)

    def objective(self, state: PMLFSLAState, XQ: np.ndarray) -> float:
        """Return the objective, without forming L Q'."""
        Q, L, P = state.Q, state.L, state.P
        features = self.squared_norm_X - 2 * inner(L, XQ) + inner(L.T @ L, Q.T @ Q)
        return (
            features
            + self.params.alpha * squared_norm(state.T - state.PM)
            + self.params.beta * squared_norm(L - P)
            + self.params.gamma * smooth_l21_norm(state.R)
        )

    def sweep(self, state: PMLFSLAState) -> tuple[PMLFSLAState, float]:
        """Update Q, L, T, P and M once."""
        alpha, beta, gamma = self.params.alpha, self.params.beta, self.params.gamma
        Q, L, P, M, *_ = state
        is_coded = self.params.update == "coded"
        largest = 1.0 if self.params.update == "bounded" else np.inf
        # The authors omit alpha from the gradient of the label term.
        label_weight = 1.0 if is_coded else alpha

        weighted_R = _weighted_rows(state.R)
        Q = multiplicative_step(Q, transposed_product(self.X, L), Q @ (L.T @ L) + gamma * (weighted_R @ M.T))
        XQ = right_product(self.X, Q.T)
        # The clipped step minimises the bound on [0, largest], so the objective cannot increase.
        L = np.minimum(multiplicative_step(L, XQ + beta * P, L @ (Q.T @ Q) + beta * L), largest)

        if is_coded:
            T = _normalise_rows(self.is_candidate * state.PM)
        else:
            T = project_rows_on_simplex(state.PM, self.is_candidate)
            weighted_R = _weighted_rows(Q @ M)
        P = np.minimum(
            multiplicative_step(P, alpha * (T @ M.T) + beta * L, label_weight * (P @ (M @ M.T)) + beta * P),
            largest,
        )
        M = multiplicative_step(
            M, label_weight * (P.T @ T), label_weight * (P.T @ P @ M) + gamma * (Q.T @ weighted_R)
        )
        state = PMLFSLAState(Q, L, P, M, T, P @ M, Q @ M)
        return state, self.objective(state, XQ)


def project_rows_on_simplex(M: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Project every row on the non-negative vectors that sum to 1 and are 0 where not allowed.

    The projection subtracts one level from all allowed entries and clips at 0. Of the sorted
    entries ``v_1 >= v_2 >= ...``, those with ``v_r > (v_1 + ... + v_r - 1) / r`` stay positive.
    """
    ordered = np.where(allowed, M, -np.inf)
    ordered.sort(axis=1)
    ordered = ordered[:, ::-1]
    ranks = np.arange(1, M.shape[1] + 1)
    levels = (np.cumsum(ordered, axis=1) - 1) / ranks
    n_positive = np.count_nonzero(ordered > levels, axis=1)
    # A row without allowed entries becomes 0.
    level = np.where(n_positive > 0, levels[np.arange(len(M)), n_positive - 1], np.inf)
    projected: np.ndarray = np.maximum(M - level[:, None], 0)
    projected *= allowed
    return projected


def _weighted_rows(R: np.ndarray) -> np.ndarray:
    """Return half the gradient of the sparsity term."""
    return l21_weights(R)[:, None] * R


def _normalise_rows(M: np.ndarray) -> np.ndarray:
    """Divide every row by its sum. Rows of zeros stay zero."""
    sums = M.sum(axis=1, keepdims=True)
    return np.divide(M, sums, out=np.zeros_like(M), where=sums > 0)
