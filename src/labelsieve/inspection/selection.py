"""What a fitted selector found in a data set, as plain values that every output is made from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from labelsieve._base import BaseSelector
from labelsieve.inspection.auditing.doubts import Doubts, doubt_subject
from labelsieve.inspection.auditing.subject import Subject
from labelsieve.inspection.label_issues import LabelIssues, find_label_issues
from labelsieve.inspection.stability import SIGNIFICANT, STEADY, EvidenceTest, SelectionStability
from labelsieve.io import Dataset
from labelsieve.io.dataset import known_wrong
from labelsieve.methods._columns import ColumnSelector
from labelsieve.size_curve import SizeCurve

#: How many of the least supported candidates are listed.
N_SUSPECTS = 20
# What a method that orders features by steps says about each; a score there is but the place.
_MEASURES = ("evidence", "criterion")


@dataclass(frozen=True)
class RankedFeature:
    """One feature, or one column of a table, and its place."""

    rank: int
    column: int
    name: str
    score: float
    selected: bool
    #: What the method shows instead of the score, by name: empty for most.
    measures: dict[str, float]
    #: The features that a column of a table is made of, best first.
    members: tuple[str, ...] = ()

    @property
    def shown(self) -> dict[str, float]:
        """The numbers for people, the leading one first."""
        return self.measures or {"score": self.score}

    @property
    def leading(self) -> float:
        """The number that bars are drawn by."""
        return next(iter(self.shown.values()))

    def as_dict(self) -> dict[str, Any]:
        """Return the feature as values JSON can hold."""
        return {
            "rank": self.rank,
            "name": self.name,
            "score": self.score,
            **self.measures,
            "selected": self.selected,
            **({"members": list(self.members)} if self.members else {}),
        }


@dataclass(frozen=True)
class Suspect:
    """A candidate label that features and other labels support least."""

    sample: int
    label: str
    support: float
    #: Whether the candidate is false, where the truth is known.
    wrong: bool | None
    #: What the row is called, where it has a name.
    id: str | None = None


@dataclass(frozen=True)
class Selection:
    """Ranking, convergence and doubtful candidates of one fit."""

    data: str
    method: str
    class_name: str
    parameters: dict[str, Any]
    n_samples: int
    n_features: int
    n_labels: int
    #: 0 where rows were read in blocks, and not counted.
    n_candidates: int
    converged: bool
    #: Objective at the start and after every iteration; None for a method without iterations.
    objective: tuple[float, ...] | None
    n_iter: int | None
    #: All features, best first.
    features: tuple[RankedFeature, ...]
    #: Least supported first; none where rows were read in blocks.
    suspects: tuple[Suspect, ...]
    #: What the list of suspects cannot show.
    caveat: str
    #: How many of all candidates are false, where the truth is known and they are some but not all.
    n_wrong: int | None
    #: Precision by number of features, where the number was chosen by the data.
    curve: SizeCurve | None = None
    #: Whether shuffled labels give as much evidence; None if it was not asked.
    chance: EvidenceTest | None = None
    #: How often halves of the rows choose the same; None if it was not asked.
    stability: SelectionStability | None = None
    #: What is ranked: features, or columns of a table that features were made of.
    unit: str = "feature"
    #: What every column of the table was taken for.
    account: tuple[dict[str, Any], ...] = ()
    #: The candidates to doubt with reasons, where a page was asked for.
    doubts: Doubts | None = None

    @property
    def selected(self) -> tuple[RankedFeature, ...]:
        """The selected features, best first."""
        return tuple(feature for feature in self.features if feature.selected)

    @property
    def measure_names(self) -> tuple[str, ...]:
        """What is shown about every feature, the leading number first."""
        return tuple(self.features[0].shown)

    @property
    def highest(self) -> float:
        """Largest leading number of all features, 1 where all are 0: the length of a whole bar."""
        return max(abs(feature.leading) for feature in self.features) or 1.0

    @property
    def leading_by_column(self) -> np.ndarray:
        """The leading number of every feature, in the order of the columns."""
        values = np.empty(len(self.features))
        values[[feature.column for feature in self.features]] = [feature.leading for feature in self.features]
        return values

    @property
    def _nothing(self) -> float:
        """The leading number of a feature that has nothing to show."""
        # Below the threshold a millionth of the evidence counts, which orders features that have none.
        return (
            1e-6 * self.parameters["threshold"] * self.n_labels if "evidence" in self.measure_names else 0.0
        )

    def share(self, feature: RankedFeature) -> float:
        """Length of a feature's bar, the longest being 1."""
        return 0.0 if feature.leading <= self._nothing else feature.leading / self.highest

    @property
    def n_arbitrary(self) -> int:
        """How many of the selected features have nothing to show, so that column order or noise chose them."""
        return sum(feature.leading <= self._nothing for feature in self.selected)

    @property
    def arbitrary_note(self) -> str:
        """Say how many of the selected features have nothing to show."""
        many = f"{self.n_arbitrary} of the {len(self.selected)} selected {self.unit}s"
        if "evidence" in self.measure_names:
            return f"{many} have no evidence above noise: chance put them there."
        return f"{many} have the {self.measure_names[0]} 0: column order alone put them there."

    @property
    def listed_wrong(self) -> int:
        """How many of the listed suspects are false."""
        return sum(bool(suspect.wrong) for suspect in self.suspects)

    @property
    def size_note(self) -> str:
        """Say which number of features is best, and which is hardly worse; there must be a curve."""
        curve = self.curve
        assert curve is not None
        best = int(np.searchsorted(curve.sizes, curve.best))
        note = f"The best precision, {curve.mean[best]:.3f}, is that of {curve.best} of {self.n_features} {self.unit}s"
        if curve.enough == curve.best:
            return f"{note}; no smaller number comes within the spread of the folds."
        reached = curve.mean[np.searchsorted(curve.sizes, curve.enough)]
        return f"{note}; {curve.enough} are within the spread of the folds: {reached:.3f}."

    @property
    def stability_note(self) -> str:
        """Say how many features are steady, and how many of these chance explains; halves must have been asked."""
        stability = self.stability
        assert stability is not None
        many = f"1 {self.unit} is" if stability.n_steady == 1 else f"{stability.n_steady} {self.unit}s are"
        note = f"{many} chosen by {STEADY:.0%} of the halves or more"
        if stability.expected_by_chance < stability.n_steady:
            # It is a bound, so it is rounded up.
            most = math.ceil(10 * stability.expected_by_chance) / 10
            return f"{note}; chance alone explains {most:.1f} of them on average at most."
        return (
            f"{note}; how many chance alone would choose cannot be said where {stability.n_selected} of "
            f"{self.n_features} {self.unit}s are asked for."
        )

    @property
    def is_no_better_than_chance(self) -> bool:
        """Whether shuffled labels give as much evidence; False if that was not asked."""
        return self.chance is not None and self.chance.p_value > SIGNIFICANT

    def as_dict(self, *, all_features: bool = False) -> dict[str, Any]:
        """Return the findings as values JSON can hold."""
        found: dict[str, Any] = {
            "data": self.data,
            "method": self.method,
            # JSON has no infinity.
            "parameters": {
                name: "inf" if value == math.inf else value for name, value in self.parameters.items()
            },
            "n_samples": self.n_samples,
            "n_features": self.n_features,
            "n_labels": self.n_labels,
            "converged": self.converged,
            "n_iter": self.n_iter,
            "features": [feature.as_dict() for feature in (self.features if all_features else self.selected)],
        }
        if self.suspects:
            found["suspicious_labels"] = [
                {name: value for name, value in asdict(suspect).items() if value is not None}
                for suspect in self.suspects
            ]
        if self.chance is not None:
            found["chance"] = {"p_value": self.chance.p_value, "no_better": self.is_no_better_than_chance}
        if self.curve is not None:
            found["size_curve"] = {
                "sizes": self.curve.sizes.tolist(),
                "average_precision": self.curve.mean.tolist(),
                "spread": self.curve.spread.tolist(),
                "best": self.curve.best,
                "enough": self.curve.enough,
            }
        if self.stability is not None:
            found["stability"] = self._stability_as_dict()
        if self.account:
            found["columns"] = list(self.account)
        return found

    def _stability_as_dict(self) -> dict[str, Any]:
        stability = self.stability
        assert stability is not None
        names = {feature.column: feature.name for feature in self.features}
        return {
            "n_resamples": stability.n_resamples,
            "index": stability.index,
            "n_steady": stability.n_steady,
            "expected_by_chance": stability.expected_by_chance,
            "features": [
                {
                    "name": feature.name,
                    "frequency": float(stability.frequency[feature.column]),
                    "interval": stability.interval[feature.column].tolist(),
                    "substitutes": [names[column] for column in stability.substitutes(feature.column)],
                    "frequency_with_substitutes": float(stability.group_frequency[feature.column]),
                }
                for feature in self.selected
            ],
        }


def summarise(
    selector: BaseSelector | ColumnSelector,
    dataset: Dataset,
    method: str,
    *,
    converged: bool,
    curve: SizeCurve | None = None,
    chance: EvidenceTest | None = None,
    stability: SelectionStability | None = None,
    table: Dataset | None = None,
    ids: Sequence[str] | None = None,
    subject: Subject | None = None,
    check_labels: bool = False,
) -> Selection:
    """Collect what a selector fitted on the candidates of `dataset` found.

    What a `ColumnSelector` ranks are the columns of the `table` that the data set was made of; `ids` name the rows.
    With a `subject`, which is the same data as a page shows them, doubtful candidates get reasons.

    Examples
    --------
    >>> from labelsieve import EvidenceSelector
    >>> from labelsieve.datasets import load_digits_attributes
    >>> digits = load_digits_attributes()
    >>> selector = EvidenceSelector(n_features_to_select=20).fit(digits.X, digits.candidates)
    >>> found = summarise(selector, digits, "evidence", converged=True)
    >>> len(found.selected), found.features[0].rank, found.n_candidates
    (20, 1, 8715)
    """
    order = np.argsort(selector.ranking_)
    selected = selector.get_support()
    fitted = selector.selector_ if isinstance(selector, ColumnSelector) else selector
    names = dataset.feature_names if table is None else table.column_names
    members = {} if table is None else _members(table, fitted)
    history = getattr(fitted, "objective_history_", None)
    measures = {name: getattr(selector, f"{name}_") for name in _MEASURES if hasattr(selector, f"{name}_")}
    # Labels are checked with all rows at once; where there is no check, there are no suspects.
    doubts = None if subject is None or not check_labels else doubt_subject(subject)
    issues = None
    if doubts is not None:
        issues = doubts.issues
    elif check_labels:
        issues = find_label_issues(dataset.X, dataset.candidates, label_names=dataset.label_names)
    suspects, caveat, n_wrong = ((), "", None) if issues is None else _suspects(issues, dataset, ids)
    return Selection(
        data=dataset.name,
        method=method,
        class_name=type(fitted).__name__,
        parameters=fitted.get_params(),
        n_samples=dataset.X.shape[0],
        n_features=len(names),
        n_labels=len(dataset.label_names),
        n_candidates=0 if dataset.is_lazy else int(dataset.candidates.sum()),
        converged=converged,
        objective=None if history is None else tuple(np.asarray(history, dtype=float).tolist()),
        n_iter=getattr(fitted, "n_iter_", None),
        features=tuple(
            RankedFeature(
                rank,
                int(j),
                names[j],
                float(selector.scores_[j]),
                bool(selected[j]),
                {name: float(values[j]) for name, values in measures.items()},
                members.get(int(j), ()),
            )
            for rank, j in enumerate(order, start=1)
        ),
        suspects=suspects,
        caveat=caveat,
        n_wrong=n_wrong,
        curve=getattr(selector, "size_curve_", curve),
        chance=chance,
        stability=stability,
        unit="feature" if table is None else "column",
        account=() if table is None else tuple(table.account()),
        doubts=doubts,
    )


def _members(table: Dataset, fitted: BaseSelector) -> dict[int, tuple[str, ...]]:
    """Names of the features of every ranked column, best first."""
    found: dict[int, tuple[str, ...]] = {}
    for place, position in enumerate(table.ranked):
        features = sorted(table.columns[position].features, key=lambda feature: fitted.ranking_[feature])
        found[place] = tuple(table.feature_names[feature] for feature in features)
    return found


def _suspects(
    issues: LabelIssues, dataset: Dataset, ids: Sequence[str] | None
) -> tuple[tuple[Suspect, ...], str, int | None]:
    """Return the least supported candidates, what to keep in mind, and how many of all are false if known."""
    support = issues.support[issues.rows, issues.labels]
    wrong = known_wrong(dataset, issues.rows, issues.labels)
    suspects = tuple(
        Suspect(
            sample=int(issues.rows[place]),
            label=issues.label_names[issues.labels[place]],
            support=float(support[place]),
            wrong=None if wrong is None else bool(wrong[place]),
            id=None if ids is None else ids[issues.rows[place]],
        )
        for place in range(min(N_SUSPECTS, issues.n_candidates))
    )
    caveat = issues.caveat()
    if wrong is None or wrong.all() or not wrong.any():
        return suspects, caveat, None
    return suspects, caveat, int(wrong.sum())
