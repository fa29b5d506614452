"""PML-FSMIR: noise-resistant label reconstruction feature selection."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from labelsieve._base import (
    COUNT,
    POSITIVE,
    BlockSelector,
    RowProblem,
    StrOptions,
    as_generator,
    scale_nonnegative,
)
from labelsieve._numerics.information import cooccurrence, information_of_pairs
from labelsieve._numerics.norms import row_norms
from labelsieve._numerics.result import SolverResult
from labelsieve.methods._fsmir.block_descent import BlockDescent
from labelsieve.methods._fsmir.factorization import (
    FactorizationProblem,
    Factors,
    multiplicative_sweep,
    start_factors,
)
from labelsieve.methods._fsmir.labels import derive_confidence, derive_target, symbol_information

#: Number of iterations for the stopping rule. Single iterations may be slow or rejected.
_WINDOW = 10


@dataclass(eq=False, repr=False, kw_only=True)
class PMLFSMIR(BlockSelector):
    """Rank features by a factorisation with labels reconstructed from mutual information.

    The method has three stages [1]_. Stage 1 turns the 0/1 matrix ``Y`` into confidences ``T`` in
    [0, 1], using the mutual information between the candidate labels. Stage 2 finds non-negative
    factors ``U``, ``V`` and ``W`` that minimise

    ``|UVW - T|^2 + alpha |X - UV|^2 + beta tr(W L W') + gamma |W|_21``

    where ``L`` is the Laplacian of the mutual information ``Z'`` between the columns of ``T``.
    Stage 3 replaces the weights with ``W Z'``. The score of a feature is the norm of its row.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1], or None for half of them.
    alpha, beta, gamma : float, default=1.0
        Weights of the feature reconstruction, the label graph and the row sparsity (Eq. 8).
    n_components : int or "sqrt", default="sqrt"
        Size of the shared latent space: an integer up to ``min(n_samples, n_features)``, or "sqrt"
        for the square root of the number of features as in [1]_, capped by the number of rows.
    reconstruct_labels : bool, default=True
        Run stage 1. If False, the candidates themselves are factorised.
    reconstruct_weights : bool, default=True
        Run stage 3. If False, the factor ``W`` is used as it is.
    w_update : {"exact", "printed"}, default="exact"
        "exact" minimises the objective. "printed" follows Eq. 10 of [1]_ literally, in which the
        Laplacian is replaced by the identity, so that the objective may increase. It requires
        ``solver="mu"``.
    solver : {"cd", "mu"}, default="cd"
        "mu" runs the multiplicative updates of [1]_. "cd" is extrapolated block coordinate descent
        on the same objective, which reaches the same value several times faster.
    mi_estimator : {"distinct", "binned"}, default="distinct"
        How to discretise the real-valued confidences. "distinct" treats every distinct value as a
        symbol. "binned" uses ``n_bins`` equal-width bins over (0, 1] and one for zero. "distinct"
        overestimates the information of labels with nearly as many distinct confidences as rows.
    n_bins : int, default=10
        Number of bins for ``mi_estimator="binned"``.
    init : {"nndsvda", "nndsvd", "random"}, default="nndsvda"
        Start of ``U`` and ``V``. "nndsvda" and "nndsvd" are deterministic: singular vectors with
        zeros replaced by the mean of ``X`` or by a hundredth of it. "random" draws uniform numbers,
        as in the authors' script. ``W`` starts constant, so the start does not depend on the order
        of the labels.
    scale : {"minmax", None}, default="minmax"
        Scale every feature to [0, 1] in ``fit`` (sparse ``X`` is divided by the column maximum), or
        use ``X >= 0`` as it is.
    max_iter : int, default=1000
        Maximum number of iterations.
    tol : float, default=1e-5
        Stop when the relative decrease of the objective over the last ten iterations is at most
        this.
    random_state : int, RandomState, Generator or None, default=None
        Seed for ``init="random"``.
    verbose : int, default=0
        Log every iteration if nonzero.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Norm of the weights of every feature. Larger is better.
    ranking_ : ndarray of shape (n_features,)
        Rank of every feature (1 is best). Ties go to the lower index.
    coef_ : ndarray of shape (n_labels, n_features)
        Weights after the last stage.
    label_confidence_ : {ndarray, sparse matrix, dask array} of shape (n_samples, n_labels)
        ``T``, the agreement of each candidate with the other candidates of its row; 0 for
        non-candidates. Lazy if ``X`` is.
    label_information_ : ndarray of shape (n_labels, n_labels)
        ``Z'`` in bits.
    objective_history_ : ndarray of shape (n_iter_ + 1,)
        Objective at the start and after each of the ``n_iter_`` iterations. With ``solver="cd"``,
        the start is the result of 20 multiplicative sweeps from ``init``, run on a sample if there
        are more than 16,384 rows.

    Notes
    -----
    Constant features have score 0; with ``scale=None``, only features of zeros do. Constant labels
    carry no information. If all labels are constant, ``T`` is ``Y``. `docs/guide/pml_fsmir.md` lists the
    errata of the paper, our deviations and the measurements behind the defaults.

    Cost: a few products of X with ``n_components`` columns per iteration, plus the mutual
    information of all pairs of labels, once.

    References
    ----------
    .. [1] Gao, Pan, Han, Liu, "Noise-resistant label reconstruction feature selection for partial
       multi-label learning", IJCAI 2025.

    Examples
    --------
    >>> from labelsieve import PMLFSMIR
    >>> from labelsieve.datasets import load_digits_attributes
    >>> digits = load_digits_attributes()
    >>> selector = PMLFSMIR(n_features_to_select=12).fit(digits.X, digits.Y_candidates)
    >>> selector.transform(digits.X).shape
    (1797, 12)
    """

    weights_score_labels = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BlockSelector._parameter_constraints,
        "scale": [StrOptions({"minmax"}), None],
        "alpha": POSITIVE,
        "beta": POSITIVE,
        "gamma": POSITIVE,
        "n_components": [*COUNT, StrOptions({"sqrt"})],
        "reconstruct_labels": ["boolean"],
        "reconstruct_weights": ["boolean"],
        "w_update": [StrOptions({"exact", "printed"})],
        "solver": [StrOptions({"cd", "mu"})],
        "mi_estimator": [StrOptions({"distinct", "binned"})],
        "n_bins": COUNT,
        "init": [StrOptions({"nndsvda", "nndsvd", "random"})],
    }

    alpha: float = 1.0
    beta: float = 1.0
    gamma: float = 1.0
    n_components: int | Literal["sqrt"] = "sqrt"
    reconstruct_labels: bool = True
    reconstruct_weights: bool = True
    w_update: Literal["exact", "printed"] = "exact"
    solver: Literal["cd", "mu"] = "cd"
    mi_estimator: Literal["distinct", "binned"] = "distinct"
    n_bins: int = 10
    init: Literal["nndsvda", "nndsvd", "random"] = "nndsvda"
    scale: Literal["minmax"] | None = "minmax"
    max_iter: int = 1000
    tol: float = 1e-5
    random_state: Any = None
    verbose: int = 0

    def _solve_rows(self, problem: RowProblem) -> SolverResult:
        if self.w_update == "printed" and self.solver != "mu":
            raise ValueError(f"w_update='printed' requires solver='mu', got solver={self.solver!r}.")
        scale_nonnegative(problem, self.scale)
        rows, n_labels = problem.rows, problem.n_labels
        n_components = self._latent_size(problem.shape)
        # Stage 1: confidences of the candidates.
        counts = rows.fold(cooccurrence, ["Y"])
        information = information_of_pairs(counts, rows.n_rows)
        derive_confidence(rows, information if self.reconstruct_labels else None)
        if self.reconstruct_labels:
            n_bins = self.n_bins if self.mi_estimator == "binned" else None
            information = symbol_information(rows, n_labels, n_bins)
        confidence = rows.gather("confidence")
        derive_target(rows, counts.trace(), n_labels, problem.dtype)
        rows.rename({}, drop=("confidence",))
        # Stage 2: factorisation. Stage 3: weights of related labels are combined.
        factorization = FactorizationProblem(problem, information, self.alpha, self.beta, self.gamma)
        factors, history, converged = self._factorize(factorization, n_components)
        W = factors.W @ information if self.reconstruct_weights else factors.W
        W = W.astype(problem.dtype)
        extra = {"coef": W.T, "label_confidence": confidence, "label_information": information}
        return SolverResult(row_norms(W), history, converged, extra=extra)

    def _latent_size(self, shape: tuple[int, ...]) -> int:
        """Resolve and validate ``n_components``."""
        if self.n_components == "sqrt":
            return min(int(np.sqrt(shape[1])), shape[0])
        if self.n_components > min(shape):
            raise ValueError(
                f"n_components must be at most min(n_samples, n_features) = {min(shape)} or 'sqrt', "
                f"got {self.n_components!r}."
            )
        return int(self.n_components)

    def _factorize(
        self, problem: FactorizationProblem, n_components: int
    ) -> tuple[Factors, np.ndarray, bool]:
        """Run stage 2 (Eq. 8-10). Return the factors, the objective history and convergence."""
        rng = as_generator(self.random_state)
        loop = partial(self._iterate, window=_WINDOW)
        if self.solver == "cd":
            descent = BlockDescent(problem)
            state = descent.start(n_components, self.init, rng)
            state, history, converged = loop(descent.step, state, state.value)
            return state.accepted, history, converged
        factors = start_factors(problem, n_components, self.init, rng)
        V, W = factors
        value = problem.objective(problem.grams(), V, W, V @ W)
        sweep = partial(multiplicative_sweep, problem, printed=self.w_update == "printed")
        return loop(sweep, factors, value)
