"""EvidenceSelector: greedy selection by the evidence for labels that earlier features do not explain."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from labelsieve._base import BlockSelector, Integral, Interval, Real, RowProblem, StrOptions, as_generator
from labelsieve._numerics.candidate_precision import LabelScale, average_precision_rows
from labelsieve._numerics.result import SolverResult
from labelsieve._numerics.row_groups import check_groups, draw_folds
from labelsieve._numerics.sparse import Matrix
from labelsieve._row_problem import in_memory
from labelsieve._text import near
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

#: Maximum memory in bytes for the products of features and labels and for the greedy steps.
BUDGET = 2**32
#: Labels with fewer candidates have unreliable evidence and are dropped first if memory is short.
_MIN_CANDIDATES = 5
#: Seed of the random orders that a ranking is compared with.
_RANDOM_ORDERS_SEED = 1
#: Fitted attributes that exist with some settings only.
_OPTIONAL_ATTRIBUTES = ("cv_scores_", "cv_gap_", "cv_allowed_", "size_curve_")


@dataclass(eq=False, repr=False, kw_only=True)
class EvidenceSelector(BlockSelector):
    """Select features by the evidence for candidate labels that earlier features do not explain.

    The evidence of feature ``j`` for label ``l`` is the squared z value ``z2 = n r_jl^2`` with the
    correlation ``r``. Values below a threshold ``t`` are treated as noise, so the evidence of a feature
    is

    ``E_j = sum_l max(z2_jl - t, 0)``.

    Features are added to the selection ``S`` one by one. Each step adds the feature with the largest
    ``E_j(S) + epsilon E_j``, where ``E_j(S)`` is its evidence that the selected features do not explain.
    ``epsilon``, the parameter ``redundancy``, ranges from forward selection (0) to a filter (inf). By
    default it is chosen by inner cross-validation.

    This method is our own and has no paper. Under this package's protocol it and
    :class:`~labelsieve.RFS` rank first of the package with a linear classifier. Its margin over plain filters
    such as :class:`~labelsieve.SumF` is small. It is less stable than a filter, mainly if many features
    carry nearly the same evidence. ``redundancy=inf`` is the most stable setting.

    Parameters
    ----------
    n_features_to_select : int, float, "auto" or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1], or None for half of them. "auto"
        chooses the number by inner cross-validation. The ranking depends on the number.
    keep : sequence of int or str, default=()
        Features that are always selected, by index or by name. They rank first.
    redundancy : float or "auto", default="auto"
        ``epsilon``, the weight of the evidence of a feature alone. With inf, only this evidence counts,
        which is the most stable. With 1, it counts as much as the unexplained evidence. With 0, only
        the unexplained evidence counts. "auto" chooses among inf, 1 and 0: the first whose predictions
        with the requested number of features are not clearly worse than the best (see `tolerance`).
    threshold : float, default=4.0
        ``t``. Squared z values below it are treated as noise. With 0 and ``redundancy=inf``, features
        are ranked by the sum of their squared correlations with the labels.
    ridge : float, default=1.0
        Fraction of a standardised feature's variance that the greedy search adds to it. A larger value
        tolerates more redundancy: a copy of a selected feature keeps ``ridge / (2 + ridge)`` of its
        evidence. This is a third with 1, and 1/21 with 0.1, for a strictly non-redundant selection.
    tolerance : float, default=1.64
        Maximum loss of precision accepted for a more stable redundancy, in standard errors of the
        difference to the best. The loss is at most 1% of the best precision. 0 selects the best.
    n_folds : int, default=3
        Number of inner folds for choosing the redundancy. Choosing the number of features uses at
        least 5.
    max_steps : int, default=1000
        Maximum number of greedy steps. The remaining features are ranked by their criteria after the
        last step.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the inner folds. Nothing else is random.
    verbose : int, default=0
        Log inner folds and selected features if positive.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        ``(n_features - rank + 1) / n_features``. The criterion may rise during a greedy search, so the
        scores encode the ranks only. See `evidence_` and `criterion_` for the value of a feature.
    ranking_ : ndarray of shape (n_features,)
        Rank of every feature (1 is best). Selected features are ranked in the order of selection, the
        others by their criteria at the end of the search.
    n_features_ : int
        Number of selected features.
    evidence_ : ndarray of shape (n_features,)
        ``E_j``, plus a millionth of ``sum_l z2_jl`` to order the features without evidence above the
        threshold.
    label_evidence_ : ndarray of shape (n_labels, n_features)
        ``max(z2_jl - t, 0)``, the part of the evidence of each feature that is about one label.
    criterion_ : ndarray of shape (n_features,)
        ``E_j(S) + epsilon E_j`` when the feature was selected, or at the end of the search for the
        others. Equals `evidence_` if epsilon is inf.
    redundancy_ : float
        ``epsilon`` that was used.
    cv_scores_ : ndarray of shape (n_folds, 3)
        Mean average precision of the held-out rows in every inner fold for inf, 1 and 0, with the
        selected number of features. Like `cv_gap_` and `cv_allowed_`, only set if inner
        cross-validation chose the redundancy.
    cv_gap_ : ndarray of shape (3,)
        Difference between the best mean precision and the mean of each redundancy. The mean is over all
        held-out rows, or over the folds if the number of features is chosen too.
    cv_allowed_ : ndarray of shape (3,)
        Maximum gap at which a more stable redundancy is chosen. 0 if the number of features is chosen
        too, because then the best pair is used.
    size_curve_ : SizeCurve
        Mean average precision by number of features and inner fold, with the redundancy that was used.
        Only set with ``n_features_to_select="auto"``. Its spread shows how many fewer features would
        hardly be worse.

    Notes
    -----
    Let ``Z`` be the standardised features (0 if constant), ``T`` the standardised labels (without
    constant ones), ``G = Z'Z + ridge n I`` and ``C = Z'T``. Given ``S``, the unexplained parts are

    ``a_j = G_jj - G_jS G_SS^-1 G_Sj`` and ``c_jl = C_jl - G_jS G_SS^-1 C_Sl``,

    and the evidence for one label is ``(1 + ridge) c_jl^2 / a_j``, which is ``z2_jl`` if ``S`` is empty.
    If criteria agree to ten digits, the first column is selected.

    An unknown label (NaN) is replaced by the mean of the known ones, so that it contributes 0 to ``C``.
    Held-out rows are scored on their known labels.

    Inner cross-validation ranks the features in every fold, regresses the labels on the top features (a
    ridge regression with a tenth of their variance) and measures the label-ranking average precision of
    the held-out rows against their *candidates*. This is a valid criterion if wrong candidates occur at
    a rate that does not depend on the features. With fewer than 6 or ``2 n_folds`` rows, or if all
    features are kept, nothing is chosen and the redundancy is 1. With "auto" and fewer than 6 rows, half
    of the features are kept. With more than 5000 features, the first ``max_steps`` features are scored.

    "auto" tries twelve numbers in geometric steps up to 0.6 of the features, and all of them. With more
    than 5000 features, it tries numbers up to `max_steps`. Its inner folds make at most 300 greedy steps.
    It uses the pair of number and redundancy with the highest mean. Ties are broken by the smaller
    number, then by the more stable redundancy.

    A search of ``m`` steps needs up to ``8 n_features (3 n_labels + m)`` bytes. If this exceeds 4 GiB,
    labels with fewer than 5 candidates are dropped. If that is not enough, the fit fails. Sparse
    features are never made dense.

    Cost: one product of X and Y, then for every selected feature its products with all others and
    ``O(n_features (n_labels + m))`` operations at step m. Every inner fold repeats the search.

    Examples
    --------
    The second feature is a copy of the first. The third has less evidence, but of its own.

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
        "keep": ["array-like"],
        "redundancy": [StrOptions({"auto"}), Interval(Real, 0, None, closed="both")],
        "threshold": [Interval(Real, 0, None, closed="left")],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "tolerance": [Interval(Real, 0, None, closed="left")],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "max_steps": [Interval(Integral, 1, None, closed="left")],
    }

    ranking_depends_on_size: ClassVar[bool] = True
    takes_unknown_labels: ClassVar[bool] = True

    keep: Sequence[int | str] = ()
    redundancy: float | str = "auto"
    threshold: float = 4.0
    ridge: float = 1.0
    tolerance: float = 1.64
    n_folds: int = 3
    max_steps: int = 1000
    random_state: Any = 0
    verbose: int = 0

    def fit(self, X: Any, y: Any, row_groups: Any = None) -> Self:
        """Rank the features.

        Parameters
        ----------
        X : {array-like, dataframe, sparse matrix} of shape (n_samples, n_features)
            Features.
        y : {array-like, dataframe, sparse matrix} of shape (n_samples, n_labels) or (n_samples,)
            Candidate labels, NaN if unknown, or classes, or tags.
        row_groups : array-like of shape (n_samples,) or None, default=None
            Group of every row. Inner folds keep the rows of a group together.

        Returns
        -------
        self : object
            The fitted selector.
        """
        self._row_groups = row_groups
        try:
            return super().fit(X, y)
        finally:
            del self._row_groups

    def _resolved_params(self) -> dict[str, Any]:
        return {**super()._resolved_params(), "redundancy": self.redundancy_}

    def _solve_rows(
        self, problem: RowProblem, *, folds: np.ndarray | None = None, budget: int = BUDGET
    ) -> SolverResult:
        """Rank the features. ``folds`` is the inner fold of every row, drawn at random if None."""
        n_samples, n_features = problem.shape
        n_selected = None if self.n_features_to_select == "auto" else self._n_selected(n_features)
        kept = find_features(self.keep, getattr(self, "feature_names_in_", ()), n_features)
        if n_selected is not None and len(kept) > n_selected:
            raise ValueError(
                f"n_features_to_select must be at least the number of features in keep ({len(kept)}), got {n_selected}."
            )
        redundancy = None if isinstance(self.redundancy, str) else self.redundancy
        plan = plan_fit(
            problem.shape,
            n_selected=n_selected,
            redundancy=redundancy,
            n_folds=self.n_folds,
            max_steps=max(self.max_steps, len(kept)),
            n_kept=len(kept),
        )
        if folds is None or not plan.n_folds:
            groups = check_groups(getattr(self, "_row_groups", None), n_samples)
            folds = _draw_folds(n_samples, plan.n_folds, as_generator(self.random_state), groups)
        rows, whole = _open_rows(problem, plan, folds, budget)
        criterion = Criterion(self.threshold, self.ridge, kept)
        if not plan.n_folds:
            n_chosen = n_selected or max(1, n_features // 2, len(kept))
            choice = Choice(1.0 if redundancy is None else redundancy, n_chosen)
        elif n_selected is None:
            choice = best_pair(held_out_precision(rows, plan, criterion), plan.redundancies, plan.sizes)
        else:
            precision = held_out_precision(rows, plan, criterion)
            choice = most_stable(precision, plan.redundancies, n_selected, self.tolerance)
        n_steps = min(choice.n_selected, max(self.max_steps, len(kept)))
        order, reached = rank_features(whole, choice.redundancy, criterion, n_steps, log_steps=True)
        scores = np.empty(n_features, dtype=problem.dtype)
        scores[order] = np.arange(n_features, 0, -1) / n_features
        extra = {
            "evidence": criterion.alone(whole.products, n_samples),
            "label_evidence": _label_evidence(whole, problem.n_labels, rows.kept_labels, self.threshold),
            "criterion": reached,
            "redundancy": float(choice.redundancy),
            **choice.attributes,
        }
        return SolverResult(scores=scores, n_selected=choice.n_selected, extra=extra)

    def _store(self, result: SolverResult, n_selected: int) -> Self:
        for name in _OPTIONAL_ATTRIBUTES:
            if hasattr(self, name):  # set by an earlier fit
                delattr(self, name)
        if not result.extra["evidence"].any():
            warnings.warn(
                "EvidenceSelector found no evidence for any label. Features are ranked in column order. "
                "Check that features and labels vary.",
                UserWarning,
                stacklevel=5,
            )
        return super()._store(result, n_selected)


def find_features(wanted: Sequence[int | str], names: Sequence[str], n_features: int) -> tuple[int, ...]:
    """Return the indices of features given by name or index, without repetitions."""
    places = {name: place for place, name in enumerate(names)}
    found = []
    for feature in wanted:
        if isinstance(feature, str) and feature in places:
            found.append(places[feature])
        elif isinstance(feature, Integral) and 0 <= feature < n_features:
            found.append(int(feature))
        else:
            close = near(feature, list(places)) if isinstance(feature, str) else None
            hint = f"; did you mean {close!r}?" if close else "."
            known = "names of features or " if places else ""
            raise ValueError(
                f"keep must contain {known}integers from 0 to {n_features - 1}, got {feature!r}{hint}"
            )
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, eq=False)
class SizeEvaluation:
    """Precision by number of columns, with the best pair of redundancy and size."""

    curve: SizeCurve
    redundancy: float
    n_selected: int
    #: Mean precision over the folds for columns in random order, shape (n_random, n_sizes).
    random: np.ndarray
    #: Mean precision without any column, ranking labels by frequency.
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
    row_groups: Any = None,
    on_fold: Callable[[], None] = lambda: None,
) -> SizeEvaluation:
    """Cross-validate the number of columns to keep, as ``n_features_to_select="auto"`` does for features.

    Uses the parameters of the selector except for the number of features. `keep` must contain indices.
    ``column_of`` is the column of every feature, numbered from 0. Sizes count columns, and each column is
    used with all its features. ``sizes`` replaces the default grid. ``n_folds=None`` uses the selector's
    number, but at least 5. ``n_random`` random orders of the columns are scored as well. Folds keep rows of
    the same group in ``row_groups`` together. ``on_fold`` is called after every fold.
    """
    columns = None if column_of is None else ColumnIndex(column_of)
    problem = in_memory(X, Y)
    n_columns = problem.n_features if columns is None else columns.n_columns
    kept = find_features(selector.keep, (), problem.n_features)
    plan = plan_fit(
        problem.shape,
        n_selected=None,
        redundancy=None if isinstance(selector.redundancy, str) else selector.redundancy,
        n_folds=n_folds or selector.n_folds,
        max_steps=max(selector.max_steps, len(kept)),
        n_columns=n_columns,
        sizes=sizes,
        n_kept=len(set(kept if column_of is None else np.asarray(column_of)[list(kept)].tolist())),
        **({} if n_folds is None else {"min_folds": 2}),
    )
    groups = check_groups(row_groups, problem.shape[0])
    folds = _draw_folds(problem.shape[0], plan.n_folds, as_generator(selector.random_state), groups)
    rows, _ = _open_rows(problem, plan, folds, BUDGET)
    shuffler = np.random.default_rng(_RANDOM_ORDERS_SEED)
    precision = held_out_precision(
        rows,
        plan,
        Criterion(selector.threshold, selector.ridge, kept),
        columns=columns,
        orders=[shuffler.permutation(n_columns) for _ in range(n_random)],
        on_fold=on_fold,
    )
    choice = best_pair(precision, plan.redundancies, plan.sizes)
    return SizeEvaluation(
        choice.attributes["size_curve"],
        float(choice.redundancy),
        choice.n_selected,
        precision.means[:, len(plan.redundancies) :].mean(axis=0),
        _baseline(Y, folds, plan.n_folds),
    )


def _label_evidence(whole: Problem, n_labels: int, kept_labels: np.ndarray, threshold: float) -> np.ndarray:
    """Return the evidence of each feature for each label, 0 for labels that do not vary or were dropped."""
    evidence = np.zeros((n_labels, len(whole.products)))
    for place, label in enumerate(kept_labels[whole.labels.varying]):
        evidence[label] = np.maximum(whole.products[:, place] ** 2 / whole.n_samples - threshold, 0)
    return evidence


def _baseline(Y: Matrix, folds: np.ndarray, n_folds: int) -> float:
    """Return the precision of held-out rows if labels are ranked by their training frequency."""
    means = []
    for fold in range(n_folds):
        labels, held_out = LabelScale.learn(Y[folds != fold]), Y[folds == fold]
        predicted = np.tile(labels.mean, (held_out.shape[0], 1))
        precision = average_precision_rows(held_out[:, labels.varying], predicted)
        means.append(precision[~np.isnan(precision)])
    return float(np.mean([mean.mean() if len(mean) else 0.0 for mean in means]))


def _draw_folds(
    n_samples: int, n_folds: int, rng: np.random.Generator, groups: np.ndarray | None
) -> np.ndarray:
    """Draw the inner fold of every row, all 0 without folds."""
    return draw_folds(n_samples, n_folds, rng, groups) if n_folds else np.zeros(n_samples, dtype=np.intp)


def _open_rows(problem: RowProblem, plan: Plan, folds: np.ndarray, budget: int) -> tuple[Rows, Problem]:
    """Return the rows with as many labels as memory allows, and the problem of all rows."""
    n_samples, n_features = problem.shape
    rows = Rows(problem, folds)
    rows.keep_labels(_affordable_labels(*rows.label_counts, n_samples, plan, n_features, budget))
    form_gram = is_gram_cheaper(n_features, plan.n_columns, plan.n_folds, is_sparse=problem.is_sparse)
    return rows, rows.whole(form_gram=form_gram)


def _affordable_labels(
    counts: np.ndarray, n_known: np.ndarray, n_samples: int, plan: Plan, n_features: int, budget: int
) -> np.ndarray:
    """Keep the labels that vary. Drop rare labels if memory is short, and raise if that is not enough."""
    labels = LabelScale.of_counts(counts, n_known, n_samples).varying
    if plan.n_bytes(n_features, len(labels)) > budget:
        labels = labels[counts[labels] >= _MIN_CANDIDATES]
    needed = plan.n_bytes(n_features, len(labels))
    if needed > budget:
        raise ValueError(
            f"EvidenceSelector may use at most {budget} bytes of memory, but {n_features} features, "
            f"{len(labels)} labels and {plan.max_steps} steps need {needed} bytes, even without labels "
            f"with fewer than {_MIN_CANDIDATES} candidates. Drop labels or features, or decrease max_steps."
        )
    return labels
