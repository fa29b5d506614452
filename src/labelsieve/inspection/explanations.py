"""Label issues with reasons: what each column adds to the support of a candidate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from labelsieve._numerics.batches import batches
from labelsieve._numerics.candidates import fill_unknown
from labelsieve._numerics.scaling import Scaling
from labelsieve._numerics.sparse import Matrix, entries
from labelsieve.inspection._leave_one_out import LeaveOneOut
from labelsieve.inspection.label_issues import LabelIssues, rank_labels
from labelsieve.inspection.label_support import LabelSupport, varying_labels
from labelsieve.io import Dataset

#: Smallest effect of another label that counts as a reason.
_LEAST_LABEL_EFFECT = 0.02
#: Number of reasons for a candidate.
_N_REASONS = 3
#: Largest number of candidates with reasons. `issues` lists all candidates.
_MOST_LISTED = 1500
#: Twice as many candidates as are flagged are listed, and at least 200.
_LISTED_FACTOR, _LEAST_LISTED = 2, 200


@dataclass(frozen=True, eq=False)
class Reasons:
    """Parts of the support of the listed candidates: ``base + effects of all columns + curved + labels = support``."""

    #: Columns that lower the support most, or raise it most for missing labels, of shape (n_listed, n_reasons).
    columns: np.ndarray
    #: Feature of each column with the largest share in its effect.
    features: np.ndarray
    #: Effects of these columns on the support.
    effects: np.ndarray
    #: Effect of all other columns.
    others: np.ndarray
    #: Share of the other rows that have the label.
    base: np.ndarray
    #: Difference between the predictions with a Gaussian and a linear kernel; 0 if the kernel is linear.
    curved: np.ndarray
    #: Effect of the other labels of the row.
    labels: np.ndarray
    #: Other label with the strongest effect against a candidate, or for a missing label; -1 if there is none.
    other_label: np.ndarray
    #: Effect of this label, and True if the row has it.
    other_label_effect: np.ndarray
    has_other_label: np.ndarray
    #: Number of candidates of the row.
    n_in_row: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class ExplainedIssues:
    """All candidates in review order, the first of them with reasons."""

    issues: LabelIssues
    #: Positions, among all, of the first candidates without a verdict.
    listed: np.ndarray
    #: Number of listed candidates that are flagged. They come first. At most 1500 are listed.
    n_flagged: int
    #: Reasons for the listed candidates.
    reasons: Reasons
    #: Kernel of the regression, "linear" or "rbf"; None if no label varies.
    kernel: str | None
    #: Description of the regression.
    model: str
    #: True if every row is assumed to have a right candidate.
    assumes_truth: bool
    #: True if nothing is assumed about rows with a single candidate.
    spares_single: bool
    #: True if no row has more than one candidate.
    has_one_label_per_row: bool
    #: Absent labels that may be missing, or None.
    missing: ExplainedIssues | None = None

    def __repr__(self) -> str:
        return f"ExplainedIssues({self.issues!r}, {len(self.listed)} listed, {self.n_flagged} flagged)"


class ExplainedSupport(LabelSupport):
    """Label support that keeps the linear regression, which gives the effect of each feature."""

    def _regression(self, X: Matrix, Y: Matrix) -> LeaveOneOut:
        if self.kernel == "rbf":  # the reasons are those of the linear regression
            self._linear_regression(X, Y)
        self.chosen_ = super()._regression(X, Y)
        return self.chosen_

    def _linear_regression(self, X: Matrix, Y: Matrix) -> LeaveOneOut:
        self.linear_, self.asked_ = super()._linear_regression(X, Y), X
        return self.linear_

    def from_features(self, rows: np.ndarray, labels: np.ndarray, *, are_absent: bool) -> np.ndarray:
        """Return the prediction from features alone; `labels` counts only labels that vary."""
        if are_absent:
            return -self._residuals[rows, labels]  # absent labels are known
        assert self._candidates is not None  # some label varies
        found: np.ndarray = self._candidates.feature_support[self._candidates.positions(rows, labels)]
        return found

    def effects_of_labels(self, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the effect of each label on the support of others in the row; `labels` counts those that vary.

        The residual of a label is regressed on those of all others, so that ``-P_kl / P_ll`` is the coefficient of
        label k for label l, with P the inverse of the regularized correlations.
        """
        effects = np.zeros((len(rows), len(self._varies[self._varies])))
        if self.label_penalty_ is None:
            return effects
        related, (scaling, P) = self._related, self._label_precision
        assert scaling.offset is not None  # learned with centre=True
        is_related = np.isin(labels, related)
        position = np.searchsorted(related, labels[is_related])
        coefficients = -P[position] / (P[position, position] * scaling.factor[position])[:, None]
        coefficients[np.arange(len(position)), position] = 0
        Z = (self._residuals[np.ix_(rows[is_related], related)] - scaling.offset) * scaling.factor
        effects[np.ix_(np.flatnonzero(is_related), related)] = Z * coefficients
        return effects

    def effects_on(self, row: int, label: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the features of the regression, and what each feature and each label adds to the support of one label.

        Labels that do not vary, and the label itself, add nothing.
        """
        of_labels = np.zeros(len(self._varies))
        if self.kernel_ is None or not self._varies[label]:
            return np.empty(0, dtype=np.intp), np.empty(0), of_labels
        rows, labels = np.array([row]), (np.cumsum(self._varies) - 1)[[label]]
        _, effects = self.linear_.effects(self.asked_, rows, labels)
        of_labels[self._varies] = self.effects_of_labels(rows, labels)[0]
        return np.arange(self.n_features_in_)[self._used_features], effects[0], of_labels

    def weights_of(self, label: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the features of the regression, and their weights for a label."""
        if self.kernel_ is None or not self._varies[label]:
            return np.empty(0, dtype=np.intp), np.empty(0)
        weights = self.linear_.weights(self.asked_)[:, np.cumsum(self._varies)[label] - 1]
        return np.arange(self.n_features_in_)[self._used_features], weights

    @cached_property
    def _label_precision(self) -> tuple[Scaling, np.ndarray]:
        """Scaling of the residuals of related labels, and the inverse of their regularized correlations."""
        R = self._residuals[:, self._related]
        scaling = Scaling.learn(R, "standard", centre=True)
        assert scaling.offset is not None  # learned with centre=True
        Z = (R - scaling.offset) * scaling.factor
        products = Z.T @ Z / len(Z)
        products[np.diag_indices_from(products)] += self.label_penalty_
        return scaling, np.linalg.inv(products)

    @cached_property
    def _residuals(self) -> np.ndarray:
        residuals = self.chosen_.residuals()
        if self._known is not None:
            residuals[~self._known[:, self._varies]] = 0
        return residuals


def explain_label_issues(
    dataset: Dataset,
    *,
    checked: Any = None,
    n_listed: int | None = None,
    which: str = "wrong",
    **options: Any,
) -> ExplainedIssues:
    """Find label issues as `find_label_issues` does, and explain at least the first `n_listed` of them by columns.

    `options` are parameters of `LabelSupport`.
    """
    X, Y = dataset.X, dataset.candidates
    model = ExplainedSupport(**options).fit(X, Y, checked, dataset.groups)
    found = rank_labels(model, which=which, label_names=dataset.label_names, row_ids=dataset.row_ids)
    column_of = np.searchsorted(dataset.ranked, dataset.column_of)

    def explained(issues: LabelIssues, missing: ExplainedIssues | None = None) -> ExplainedIssues:
        n_flagged = int(issues.is_flagged.sum())
        most = max(min(_MOST_LISTED, max(_LISTED_FACTOR * n_flagged, _LEAST_LISTED)), n_listed or 0)
        listed = issues.unchecked[:most]
        return ExplainedIssues(
            issues=issues,
            listed=listed,
            n_flagged=min(n_flagged, len(listed)),
            reasons=_reasons(model, issues, listed, Y, column_of),
            kernel=model.kernel_,
            model=_in_words(model),
            assumes_truth=model.assumes_truth_,
            spares_single=model._spares_single,
            has_one_label_per_row=model.has_one_label_per_row_,
            missing=missing,
        )

    return explained(found, None if found.missing is None else explained(found.missing))


def _reasons(
    model: ExplainedSupport, issues: LabelIssues, listed: np.ndarray, Y: Matrix, column_of: np.ndarray
) -> Reasons:
    """Split the support of some labels into the effects of columns and other labels."""
    rows, labels, n_listed = issues.rows[listed], issues.labels[listed], len(listed)
    are_absent = issues.which == "missing"
    # Low effects speak against a candidate, high ones for a missing label.
    against = -1 if are_absent else 1
    varies = varying_labels(Y)
    is_estimated = model.kernel_ is not None  # else every label is its own support
    explained = np.flatnonzero(varies[labels] & is_estimated)
    asked = np.arange(len(column_of))[model._used_features if is_estimated else []]
    distinct, column_of = np.unique(column_of[asked], return_inverse=True)
    n_reasons = min(_N_REASONS, len(distinct))
    columns = np.zeros((n_listed, n_reasons), dtype=np.intp)
    features = np.zeros((n_listed, n_reasons), dtype=np.intp)
    effects = np.zeros((n_listed, n_reasons))
    others, curved, other_labels = np.zeros((3, n_listed))
    support = issues.support[rows, labels]
    base = support.copy()  # of a label that does not vary, the label itself
    position = np.cumsum(varies) - 1  # of a label among those that vary
    by_column = np.argsort(column_of, kind="stable")
    counts = np.bincount(column_of)
    starts = np.cumsum(counts) - counts
    for block in batches(len(explained), max(4 * len(column_of), 1)):
        places = explained[block]
        from_features = model.from_features(rows[places], position[labels[places]], are_absent=are_absent)
        mean, of_features = model.linear_.effects(model.asked_, rows[places], position[labels[places]])
        grouped = of_features[:, by_column]
        of_columns = np.add.reduceat(grouped, starts, axis=1)
        # Rounded, so that equal columns come in the order of the table.
        strongest = np.argsort(against * np.round(of_columns, 9), axis=1, kind="stable")[:, :n_reasons]
        columns[places] = distinct[strongest]
        effects[places] = np.take_along_axis(of_columns, strongest, axis=1)
        for at, place in enumerate(places):
            for number, column in enumerate(strongest[at]):
                own = slice(starts[column], starts[column] + counts[column])
                features[place, number] = asked[by_column[own][np.argmin(against * grouped[at, own])]]
        total = of_columns.sum(axis=1)
        others[places] = total - effects[places].sum(axis=1)
        base[places] = mean
        curved[places] = from_features - mean - total
        other_labels[places] = support[places] - from_features
    if model.kernel_ == "linear":
        curved[:] = 0  # what is left there is rounding
    other, other_effect = np.full(n_listed, -1), np.zeros(n_listed)
    if len(explained):
        of_labels = model.effects_of_labels(rows[explained], position[labels[explained]])
        strongest = (against * np.round(of_labels, 9)).argmin(axis=1)
        found = of_labels[np.arange(len(explained)), strongest]
        is_reason = against * found < -_LEAST_LABEL_EFFECT
        other[explained[is_reason]] = np.flatnonzero(varies)[strongest[is_reason]]
        other_effect[explained[is_reason]] = found[is_reason]
    candidates = fill_unknown(Y)
    return Reasons(
        columns,
        features,
        effects,
        others,
        base,
        curved,
        other_labels,
        other,
        other_effect,
        entries(candidates, rows, np.maximum(other, 0)) > 0,
        np.asarray(candidates.sum(axis=1)).ravel().astype(int)[rows],
    )


def _in_words(model: LabelSupport) -> str:
    """Describe the regression."""
    if model.penalty_ is None:
        return "the labels themselves: none varies"
    others = "not used" if model.label_penalty_ is None else f"{model.label_penalty_:g}"
    return f"{model.kernel_} regression without the row, penalty {model.penalty_:.3g}; other labels {others}"
