"""EvidenceSelector: greedy selection by the evidence for each label that earlier features leave unexplained."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from labelsieve._base import BlockSelector, Integral, Interval, Real, RowProblem, StrOptions, as_generator
from labelsieve._numerics.candidate_precision import LabelScale, average_precision_rows
from labelsieve._numerics.result import SolverResult
from labelsieve._numerics.sparse import Matrix
from labelsieve._row_problem import in_memory
from labelsieve.methods._evidence.choice import (
    Choice,
    ColumnIndex,
    Plan,
    SizeCurve,
    best_pair,
    held_out_precision,
    most_stable,
    plan_fit,
)
from labelsieve.methods._evidence.path import Criterion, rank_features
from labelsieve.methods._evidence.problem import Problem, Rows, is_gram_cheaper

__all__ = ["EvidenceSelector", "SizeEvaluation", "evaluate_sizes"]

#: Bytes that the products of features and labels and the greedy steps may take.
BUDGET = 2**32
#: Labels with fewer candidates are left out first where memory is short: their evidence is hardly reliable.
_FEWEST_CANDIDATES = 5
#: Seed of the random orders that a ranking is compared with.
_RANDOM_ORDERS_SEED = 1
#: Fitted attributes that only some settings have.
_CHOICES = ("cv_scores_", "cv_gap_", "cv_allowed_", "size_curve_")


@dataclass(eq=False, repr=False, kw_only=True)
class EvidenceSelector(BlockSelector):
    """Select features by their evidence for the candidate labels, less what earlier features explain.

    The evidence of feature ``j`` for label ``l`` is ``z2 = n r_jl^2`` with the correlation ``r``, the square
    of a z value. What stays below a threshold ``t`` is noise, so a feature has the evidence

    ``E_j = sum_l max(z2_jl - t, 0)``.

    One feature after the other is added to the selection ``S``, each time the one with the largest
    ``E_j(S) + epsilon E_j``, where ``E_j(S)`` is the evidence that is left of it next to the features taken
    before. ``epsilon``, the parameter ``redundancy``, leads from forward selection (0) to a filter (inf); by
    default inner cross-validation chooses it.

    This method is our own and has no paper. Under this package's protocol it ranks first with a linear
    classifier, level with :class:`~labelsieve.RFS` on some data. Its margin over plain filters such as
    :class:`~labelsieve.SumF` is small. It is less stable than a filter, chiefly if many features carry nearly
    the same evidence; ``redundancy=inf`` is the most stable.

    Parameters
    ----------
    n_features_to_select : int, float, "auto" or None, default=None
        How many features to keep: a number, a share in (0, 1], or None for half of them. "auto" chooses the
        number by inner cross-validation. The ranking depends on it.
    redundancy : float or "auto", default="auto"
        ``epsilon``, the weight of the evidence that a feature has alone. inf orders the features by it and
        nothing else, which is the most stable; at 1 it counts as much as the evidence left next to the
        features taken; at 0 only the latter counts. "auto" takes inf, 1 or 0: the first whose predictions
        are not clearly worse than the best at the requested number of features, see `tolerance`.
    threshold : float, default=4.0
        ``t``: squared z values below it are noise. 0 together with ``redundancy=inf`` orders the features by
        the sum of their squared correlations with the labels.
    ridge : float, default=1.0
        Share of a standardised feature's variance that is added to it in the greedy search, which forgives
        some redundancy: a copy of a feature that was taken keeps ``ridge / (2 + ridge)`` of its evidence, a
        third at 1. With 0.1 it keeps 1/21, for a strictly non-redundant selection.
    tolerance : float, default=1.64
        How much worse than the best a more stable redundancy may predict: as many standard errors of the
        difference, and never more than a hundredth of the best. 0 takes the best.
    n_folds : int, default=3
        Inner folds for the choice of the redundancy at a given number of features. The choice of the number
        itself takes at least 5.
    max_steps : int, default=1000
        Features taken one by one. Those beyond follow in the order of the criterion at that moment.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the inner folds, the only thing that is drawn.
    verbose : int, default=0
        Log inner folds and selected features if positive.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        ``(n_features - place + 1) / n_features``: the criterion need not fall along a greedy search, so the
        score says nothing but the place. What a feature is worth is in `evidence_` and `criterion_`.
    ranking_ : ndarray of shape (n_features,)
        Place of every feature, 1 is best: in the order of selection, then the others by the criterion at the
        end of the search.
    n_features_ : int
        Number of selected features.
    evidence_ : ndarray of shape (n_features,)
        ``E_j``, plus a millionth of ``sum_l z2_jl``, which orders the features without evidence above the
        threshold.
    criterion_ : ndarray of shape (n_features,)
        ``E_j(S) + epsilon E_j`` when the feature was taken, for the others at the end of the search;
        `evidence_` itself if epsilon is inf.
    redundancy_ : float
        ``epsilon`` as used.
    cv_scores_ : ndarray of shape (n_folds, 3)
        Mean average precision of the held-out rows in every inner fold, for inf, 1 and 0, at the number of
        features selected. Like the following two only where inner cross-validation chose the redundancy.
    cv_gap_ : ndarray of shape (3,)
        How far the mean over all held-out rows, or over the folds where the number of features is chosen too,
        lies behind the best.
    cv_allowed_ : ndarray of shape (3,)
        How far it may lie behind for a more stable redundancy; 0 where the number of features is chosen
        too, as then the best pair is taken.
    size_curve_ : SizeCurve
        Mean average precision by number of features and inner fold at the redundancy used; only with
        ``n_features_to_select="auto"``. Its spread shows how many fewer features would hardly be worse.

    Notes
    -----
    With standardised features ``Z`` and labels ``T`` (constant ones are 0, respectively left out),
    ``G = Z'Z + ridge n I`` and ``C = Z'T``, what is left next to ``S`` is

    ``a_j = G_jj - G_jS G_SS^-1 G_Sj`` and ``c_jl = C_jl - G_jS G_SS^-1 C_Sl``,

    the evidence for one label ``(1 + ridge) c_jl^2 / a_j``, which for empty ``S`` is ``z2_jl``. Of features that
    are equal to ten digits, the first column is taken.

    Inner cross-validation ranks the features again in every fold, regresses the labels on the first of them
    (ridge regression with a tenth of their variance) and judges the label-ranking average precision of the
    held-out rows against their *candidates*. These suffice for a choice if wrong candidates appear at one rate
    whatever the features. There is no choice, and the redundancy is 1, with fewer than 6 or ``2 n_folds`` rows
    and if all features are kept; with "auto" and fewer than 6 rows half of the features are kept. The first
    ``max_steps`` features are judged if there are more than 5000.

    "auto" tries twelve numbers in geometric steps up to 0.6 of the features, and all of them; above 5000
    features, up to `max_steps`. Its inner folds take at most 300 features one by one. The pair of number and
    redundancy with the highest mean is taken, of equal ones the smaller number, then the more stable redundancy.

    A search of ``m`` steps holds up to ``8 n_features (3 n_labels + m)`` bytes. If these would exceed 4 GiB,
    labels with fewer than 5 candidates are left out; if that is not enough, the fit fails. Sparse features are
    never made dense.

    Cost: a product of X with Y, then for every feature taken its products with all others and
    ``O(n_features (n_labels + m))`` at step m; every inner fold repeats the search.

    Examples
    --------
    The second feature repeats the first; the third is worth less alone and more next to it.

    >>> import numpy as np
    >>> from labelsieve.methods.evidence import EvidenceSelector
    >>> rng = np.random.default_rng(0)
    >>> Y = (rng.random((200, 3)) < 0.5).astype(int)
    >>> first, third = (Y[:, :2] ^ (rng.random((200, 2)) < [0.1, 0.2])).T
    >>> X = np.column_stack([first, first, third])
    >>> selector = EvidenceSelector(n_features_to_select=2).fit(X, Y)
    >>> selector.ranking_, selector.redundancy_
    (array([1, 3, 2]), 0.0)
    >>> EvidenceSelector(n_features_to_select=2, redundancy=np.inf).fit(X, Y).ranking_
    array([1, 2, 3])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BlockSelector._parameter_constraints,
        "n_features_to_select": [
            *BlockSelector._parameter_constraints["n_features_to_select"],
            StrOptions({"auto"}),
        ],
        "redundancy": [StrOptions({"auto"}), Interval(Real, 0, None, closed="both")],
        "threshold": [Interval(Real, 0, None, closed="left")],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "tolerance": [Interval(Real, 0, None, closed="left")],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "max_steps": [Interval(Integral, 1, None, closed="left")],
    }

    ranking_depends_on_size: ClassVar[bool] = True

    redundancy: float | str = "auto"
    threshold: float = 4.0
    ridge: float = 1.0
    tolerance: float = 1.64
    n_folds: int = 3
    max_steps: int = 1000
    random_state: Any = 0
    verbose: int = 0

    def _settled_params(self) -> dict[str, Any]:
        return {**super()._settled_params(), "redundancy": self.redundancy_}

    def _solve_rows(
        self, problem: RowProblem, *, folds: np.ndarray | None = None, budget: int = BUDGET
    ) -> SolverResult:
        """Rank the features; ``folds`` gives the inner fold of every row instead of a draw."""
        n_samples, n_features = problem.shape
        n_selected = None if self.n_features_to_select == "auto" else self._n_selected(n_features)
        redundancy = None if isinstance(self.redundancy, str) else self.redundancy
        plan = plan_fit(
            problem.shape,
            n_selected=n_selected,
            redundancy=redundancy,
            n_folds=self.n_folds,
            max_steps=self.max_steps,
        )
        if folds is None or not plan.n_folds:
            folds = _draw_folds(n_samples, plan.n_folds, as_generator(self.random_state))
        rows, whole = _open_rows(problem, plan, folds, budget)
        criterion = Criterion(self.threshold, self.ridge)
        if not plan.n_folds:
            choice = Choice(1.0 if redundancy is None else redundancy, n_selected or max(1, n_features // 2))
        elif n_selected is None:
            choice = best_pair(held_out_precision(rows, plan, criterion), plan.redundancies, plan.sizes)
        else:
            precision = held_out_precision(rows, plan, criterion)
            choice = most_stable(precision, plan.redundancies, n_selected, self.tolerance)
        n_steps = min(choice.n_selected, self.max_steps)
        order, reached = rank_features(whole, choice.redundancy, criterion, n_steps, log_steps=True)
        scores = np.empty(n_features, dtype=problem.dtype)
        scores[order] = np.arange(n_features, 0, -1) / n_features
        extra = {
            "evidence": criterion.alone(whole.products, n_samples),
            "criterion": reached,
            "redundancy": float(choice.redundancy),
            **choice.grounds,
        }
        return SolverResult(scores=scores, n_selected=choice.n_selected, extra=extra)

    def _store(self, result: SolverResult, n_selected: int) -> Self:
        for name in _CHOICES:
            if hasattr(self, name):  # from an earlier fit that chose
                delattr(self, name)
        if not result.extra["evidence"].any():
            warnings.warn(
                "EvidenceSelector found no evidence at all, so the ranking is the column order. "
                "Check that features and labels vary.",
                UserWarning,
                stacklevel=4,
            )
        return super()._store(result, n_selected)


@dataclass(frozen=True, eq=False)
class SizeEvaluation:
    """Precision of a ranking by its number of columns, with the best pair of redundancy and size."""

    curve: SizeCurve
    redundancy: float
    n_selected: int
    #: Mean over the folds for columns in random order, n_random x n_sizes.
    random: np.ndarray
    #: The same without any column: labels in the order of their frequency.
    baseline: float


def evaluate_sizes(
    selector: EvidenceSelector,
    X: Matrix,
    Y: Matrix,
    *,
    column_of: np.ndarray | None = None,
    sizes: np.ndarray | None = None,
    n_folds: int | None = None,
    n_random: int = 0,
    on_fold: Callable[[], None] = lambda: None,
) -> SizeEvaluation:
    """Cross-validate how many columns to keep, as ``n_features_to_select="auto"`` does for features.

    The parameters of the selector are used, except for the number of features. ``column_of`` has the column of
    every feature, numbers from 0: sizes count columns, and a column is used with all its features. ``sizes`` are
    tried instead of a grid. ``n_folds=None`` takes that of the selector, but at least 5. ``n_random`` random orders
    of the columns are judged as well, and ``on_fold`` is called after every fold.
    """
    columns = None if column_of is None else ColumnIndex(column_of)
    problem = in_memory(X, Y)
    n_columns = problem.n_features if columns is None else columns.n_columns
    plan = plan_fit(
        problem.shape,
        n_selected=None,
        redundancy=None if isinstance(selector.redundancy, str) else selector.redundancy,
        n_folds=n_folds or selector.n_folds,
        max_steps=selector.max_steps,
        n_columns=n_columns,
        sizes=sizes,
        **({} if n_folds is None else {"least_folds": 2}),
    )
    folds = _draw_folds(problem.shape[0], plan.n_folds, as_generator(selector.random_state))
    rows, _ = _open_rows(problem, plan, folds, BUDGET)
    shuffler = np.random.default_rng(_RANDOM_ORDERS_SEED)
    precision = held_out_precision(
        rows,
        plan,
        Criterion(selector.threshold, selector.ridge),
        columns=columns,
        orders=[shuffler.permutation(n_columns) for _ in range(n_random)],
        on_fold=on_fold,
    )
    choice = best_pair(precision, plan.redundancies, plan.sizes)
    return SizeEvaluation(
        choice.grounds["size_curve"],
        float(choice.redundancy),
        choice.n_selected,
        precision.means[:, len(plan.redundancies) :].mean(axis=0),
        _baseline(Y, folds, plan.n_folds),
    )


def _baseline(Y: Matrix, folds: np.ndarray, n_folds: int) -> float:
    """Return the precision of held-out rows if labels stand in the order of their frequency elsewhere."""
    means = []
    for fold in range(n_folds):
        labels, held_out = LabelScale.learn(Y[folds != fold]), Y[folds == fold]
        predicted = np.tile(labels.mean, (held_out.shape[0], 1))
        precision = average_precision_rows(held_out[:, labels.varying], predicted)
        means.append(precision[~np.isnan(precision)])
    return float(np.mean([mean.mean() if len(mean) else 0.0 for mean in means]))


def _draw_folds(n_samples: int, n_folds: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the inner fold of every row; all 0 without folds."""
    if not n_folds:
        return np.zeros(n_samples, dtype=np.intp)
    folds: np.ndarray = rng.permutation(n_samples) % n_folds
    return folds


def _open_rows(problem: RowProblem, plan: Plan, folds: np.ndarray, budget: int) -> tuple[Rows, Problem]:
    """Return the rows with the labels that memory allows, and the problem of all rows."""
    n_samples, n_features = problem.shape
    rows = Rows(problem, folds)
    rows.keep_labels(_affordable_labels(rows.label_counts, n_samples, plan, n_features, budget))
    form_gram = is_gram_cheaper(n_features, plan.n_columns, plan.n_folds, is_sparse=problem.is_sparse)
    return rows, rows.whole(form_gram=form_gram)


def _affordable_labels(
    counts: np.ndarray, n_samples: int, plan: Plan, n_features: int, budget: int
) -> np.ndarray:
    """Keep the labels that vary, without rare ones if memory is short; raise if that is not enough."""
    labels = LabelScale.of_counts(counts, n_samples).varying
    if plan.n_bytes(n_features, len(labels)) > budget:
        labels = labels[counts[labels] >= _FEWEST_CANDIDATES]
    needed = plan.n_bytes(n_features, len(labels))
    if needed > budget:
        raise ValueError(
            f"EvidenceSelector must hold {n_features} features x {len(labels)} labels and {plan.most_steps} steps "
            f"in at most {budget} bytes. Got {needed} bytes, without the labels of fewer than "
            f"{_FEWEST_CANDIDATES} candidates. Leave out labels or features, or lower max_steps."
        )
    return labels
