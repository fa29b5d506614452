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

#: The objective must stand still over this many iterations: single ones may be slow or rejected.
_WINDOW = 10


@dataclass(eq=False, repr=False, kw_only=True)
class PMLFSMIR(BlockSelector):
    """Select features with labels reconstructed from their mutual information (PML-FSMIR).

    Three stages [1]_. Mutual information between the candidate labels turns the 0/1 matrix ``Y`` into
    confidences ``T`` in [0, 1]. Non-negative factors ``U``, ``V``, ``W`` minimise

    ``|UVW - T|^2 + alpha |X - UV|^2 + beta tr(W L W') + gamma |W|_21``

    where ``L`` is the Laplacian of the mutual information ``Z'`` between the columns of ``T``. The weights
    become ``W Z'``, and a feature's score is the norm of its row.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        How many features to keep: a number, a share in (0, 1], or None for half of them.
    alpha, beta, gamma : float, default=1.0
        Weights of the feature reconstruction, the label graph and the row sparsity (Eq. 8).
    n_components : int or "sqrt", default="sqrt"
        Size of the shared latent space: a number up to ``min(n_samples, n_features)``, or the square root of
        the number of features, as in [1]_, capped at the number of rows.
    reconstruct_labels : bool, default=True
        Stage 1; without it the candidates themselves are factorised.
    reconstruct_weights : bool, default=True
        Stage 3; without it the factor ``W`` is used as it is.
    w_update : {"exact", "printed"}, default="exact"
        "exact" descends the objective. "printed" takes Eq. 10 of [1]_ to the letter, where the Laplacian
        became the identity; the objective may then rise. Needs ``solver="mu"``.
    solver : {"cd", "mu"}, default="cd"
        "mu" are the multiplicative updates of [1]_; "cd" is extrapolated block coordinate descent on the same
        objective, several times faster to the same value.
    mi_estimator : {"distinct", "binned"}, default="distinct"
        How the real-valued confidences become symbols: every distinct value is one, or ``n_bins`` equal-width
        bins over (0, 1] with zero apart. "distinct" overestimates the information of labels whose
        confidences take nearly as many values as there are rows.
    n_bins : int, default=10
        Number of bins for ``mi_estimator="binned"``.
    init : {"nndsvda", "nndsvd", "random"}, default="nndsvda"
        Start of ``U`` and ``V``: singular vectors with zeros filled by the mean of ``X`` or by a hundredth of
        it, both deterministic, or uniform random numbers as in the authors' script. ``W`` starts constant,
        so no start depends on the order of the labels.
    scale : {"minmax", None}, default="minmax"
        Bring every feature to [0, 1] inside ``fit`` (sparse ``X`` is divided by the column maximum), or trust
        that ``X`` is non-negative.
    max_iter : int, default=1000
        Iteration budget.
    tol : float, default=1e-5
        Stop when the objective fell by at most this share over the last ten iterations.
    random_state : int, RandomState, Generator or None, default=None
        Used by ``init="random"`` only.
    verbose : int, default=0
        Log every iteration.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Norm of every feature's weights; larger is better.
    ranking_ : ndarray of shape (n_features,)
        Place of every feature, 1 is best; ties go to the lower column.
    coef_ : ndarray of shape (n_labels, n_features)
        Weights after the last stage.
    label_confidence_ : {ndarray, sparse matrix, dask array} of shape (n_samples, n_labels)
        ``T``: how well each candidate agrees with the others of its row, 0 for non-candidates; lazy if ``X`` is.
    label_information_ : ndarray of shape (n_labels, n_labels)
        ``Z'`` in bits.
    objective_history_ : ndarray of shape (n_iter_ + 1,)
        Objective at the start and after each of the ``n_iter_`` iterations. With ``solver="cd"`` the start is where 20
        multiplicative sweeps led from ``init``; of more than 16384 rows, these are done on a sample.

    Notes
    -----
    A feature that is constant has score 0 (with ``scale=None``, only one of zeros has). Labels that are
    constant carry no information: when all are, ``T`` is ``Y``. `docs/pml_fsmir.md` lists the paper's
    errata, our deviations and the measurements behind the defaults.

    Cost: a few products of X with ``n_components`` columns for every iteration; once the mutual information
    of all pairs of labels.

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
            raise ValueError(
                "w_update='printed' is a multiplicative update. Got solver='cd'. Use solver='mu'."
            )
        scale_nonnegative(problem, self.scale)
        rows, n_labels = problem.rows, problem.n_labels
        n_components = self._latent_size(problem.shape)
        # Weigh the candidates.
        counts = rows.fold(cooccurrence, ["Y"])
        information = information_of_pairs(counts, rows.n_rows)
        derive_confidence(rows, information if self.reconstruct_labels else None)
        if self.reconstruct_labels:
            n_bins = self.n_bins if self.mi_estimator == "binned" else None
            information = symbol_information(rows, n_labels, n_bins)
        confidence = rows.gather("confidence")
        derive_target(rows, counts.trace(), n_labels, problem.dtype)
        rows.rename({}, drop=("confidence",))
        # Factorise, and spread the weights over the labels.
        factorization = FactorizationProblem(problem, information, self.alpha, self.beta, self.gamma)
        factors, history, converged = self._factorize(factorization, n_components)
        W = factors.W @ information if self.reconstruct_weights else factors.W
        W = W.astype(problem.dtype)
        extra = {"coef": W.T, "label_confidence": confidence, "label_information": information}
        return SolverResult(row_norms(W), history, converged, extra=extra)

    def _latent_size(self, shape: tuple[int, ...]) -> int:
        """Turn ``n_components`` into a number."""
        if self.n_components == "sqrt":
            return min(int(np.sqrt(shape[1])), shape[0])
        if self.n_components > min(shape):
            raise ValueError(
                f"n_components must be at most min(n_samples, n_features) = {min(shape)}. "
                f"Got {self.n_components!r}. Ask for fewer, or use 'sqrt'."
            )
        return int(self.n_components)

    def _factorize(
        self, problem: FactorizationProblem, n_components: int
    ) -> tuple[Factors, np.ndarray, bool]:
        """Factorise (stage 2, Eq. 8-10); returns the factors, the history of F and whether it converged."""
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
