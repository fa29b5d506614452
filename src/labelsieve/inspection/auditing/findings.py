"""What an audit found, as numbers and frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from labelsieve._pandas import import_pandas
from labelsieve.inspection.auditing.doubts import Doubts
from labelsieve.inspection.auditing.ranking import ColumnRanking
from labelsieve.inspection.auditing.steadiness import Steadiness
from labelsieve.inspection.auditing.subject import Subject
from labelsieve.inspection.stability import SIGNIFICANT, EvidenceTest
from labelsieve.size_curve import SizeCurve

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["SURE", "Findings"]

#: Columns that come back in so many resamples are sure.
SURE = 0.9


@dataclass(frozen=True, eq=False, repr=False)
class Findings:
    """The numbers behind four answers about one table.

    Attributes
    ----------
    subject : Subject
        What was audited.
    chance : EvidenceTest
        Whether the columns tell more about the labels than about shuffled ones.
    ranking : ColumnRanking
        The columns in order, and the size curve.
    n_kept : int
        How many columns to keep: as asked for, else the number with the best precision.
    is_size_given : bool
        Whether it was asked for.
    steadiness : Steadiness
        Places of the columns on halves of the rows, and substitutes.
    doubts : Doubts
        The candidate labels in order, with reasons.
    provenance : mapping of str to str
        How this was made.
    """

    subject: Subject
    chance: EvidenceTest
    ranking: ColumnRanking
    n_kept: int
    is_size_given: bool
    steadiness: Steadiness
    doubts: Doubts
    provenance: Mapping[str, str]

    @property
    def is_no_better_than_chance(self) -> bool:
        """Whether shuffled labels give as much evidence."""
        return self.chance.p_value > SIGNIFICANT

    @property
    def curve(self) -> SizeCurve:
        """Average precision on held-out rows by number of columns."""
        return self.ranking.curve

    @property
    def stands_out(self) -> np.ndarray:
        """Which columns say more about some label than chance explains, with 5 % for all features and labels together.

        Of n independent rows ``z²`` is about chi-squared; with as many features and labels as there are, some would
        exceed any lower bound.
        """
        signed = self.ranking.signed_z2
        n_pairs = signed.shape[0] * max(1, int(np.count_nonzero(~np.isnan(self.doubts.auc))))
        bound = stats.chi2.isf(SIGNIFICANT / n_pairs, 1)
        is_beyond: np.ndarray = np.abs(self.ranking.column_z2).max(axis=1) > bound
        return is_beyond

    @property
    def selected(self) -> list[str]:
        """Names of the columns to keep, best first."""
        return [self.subject.columns[column].name for column in self.ranking.order[: self.n_kept]]

    def expected(self, n_kept: int) -> float:
        """Average precision to expect of so many columns; between the sizes tried it is interpolated."""
        sizes = np.log(self.curve.sizes)
        return float(np.interp(np.log(n_kept), sizes, self.curve.mean))

    @property
    def columns(self) -> DataFrame:
        """The columns as a pandas frame, best first; needs pandas."""
        return import_pandas().DataFrame([self.column_record(column) for column in self.ranking.order])

    @property
    def sizes(self) -> DataFrame:
        """The size curve as a pandas frame; needs pandas."""
        return import_pandas().DataFrame(self.size_records())

    @property
    def labels(self) -> DataFrame:
        """The labels as a pandas frame; needs pandas."""
        return import_pandas().DataFrame(self.label_records())

    @property
    def doubtful(self) -> DataFrame:
        """The candidates to doubt first, with reasons, as a pandas frame; `doubts.issues` has all. Needs pandas."""
        rows = []
        for listed in self.doubt_records():
            reasons = listed.pop("reasons")
            for number, reason in enumerate(reasons, start=1):
                listed |= {f"{name}_{number}": value for name, value in reason.items()}
            rows.append(listed)
        return import_pandas().DataFrame(rows)

    def column_record(self, column: int) -> dict[str, Any]:
        """All about one column, as values JSON can hold."""
        of_table, steadiness = self.subject.columns[column], self.steadiness
        record: dict[str, Any] = {
            "rank": int(self.ranking.places[column]),
            "column": of_table.name,
            "role": of_table.role,
            "kept": bool(self.ranking.places[column] <= self.n_kept),
            "evidence": float(self.ranking.column_evidence[column]),
            "best_feature": self.subject.feature_names[self.ranking.best_feature[column]],
            "n_missing": of_table.n_missing,
        }
        if steadiness.n_resamples:
            frequency, interval, group = self.frequencies
            record |= {
                "frequency": float(frequency[column]),
                "lower": float(interval[column, 0]),
                "upper": float(interval[column, 1]),
                "frequency_with_substitutes": float(group[column]),
            }
        record["substitutes"] = [
            self.subject.columns[other].name for other, _ in steadiness.substitutes[column]
        ]
        return record

    @cached_property
    def frequencies(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """How often halves of the rows keep each column, the intervals of that, and the same with substitutes."""
        steadiness = self.steadiness
        return (
            steadiness.frequency(self.n_kept),
            steadiness.interval(self.n_kept),
            steadiness.group_frequency(self.n_kept),
        )

    def size_records(self) -> list[dict[str, Any]]:
        """The size curve, as values JSON can hold."""
        curve, random = self.curve, self.ranking.random.mean(axis=0)
        return [
            {
                "n_columns": int(size),
                "average_precision": float(mean),
                "spread": float(spread),
                "random_columns": float(chance),
            }
            for size, mean, spread, chance in zip(curve.sizes, curve.mean, curve.spread, random, strict=True)
        ]

    def label_records(self) -> list[dict[str, Any]]:
        """The labels that have candidates, as values JSON can hold."""
        issues = self.doubts.issues
        places = {name: place for place, name in enumerate(issues.label_names)}
        found = []
        for doubts in issues.by_label():
            area = self.doubts.auc[places[doubts.label]]
            record = {
                "label": doubts.label,
                "n_candidates": doubts.n_candidates,
                "auc": None if np.isnan(area) else float(area),
                "n_to_look_at": doubts.n_to_look_at,
            }
            if doubts.share_wrong is not None:
                record["share_wrong"] = doubts.share_wrong
            found.append(record)
        return found

    def doubt_records(self) -> Iterator[dict[str, Any]]:
        """The candidates to doubt first, with reasons, as values JSON can hold."""
        issues, reasons = self.doubts.issues, self.doubts.reasons
        for number, place in enumerate(self.doubts.listed):
            row, label = int(issues.rows[place]), int(issues.labels[place])
            record: dict[str, Any] = {
                "row": _plain(issues.row_ids[row]),
                "label": issues.label_names[label],
                "support": float(issues.support[row, label]),
                "least_supported_percent": float(issues.percentiles[place]),
            }
            if issues.shown_probability is not None:
                record["probability"] = float(issues.shown_probability[row, label])
            record |= {
                "base": float(reasons.base[number]),
                "other_columns": float(reasons.others[number]),
                "other_labels": float(reasons.labels[number]),
                "curved": float(reasons.curved[number]),
                "reasons": [
                    {
                        "column": self.subject.columns[column].name,
                        "value": self.subject.cell(row, int(column)),
                        "effect": float(effect),
                    }
                    for column, effect in zip(reasons.columns[number], reasons.effects[number], strict=True)
                ],
            }
            yield record


def _plain(value: Any) -> Any:
    """A name of a row as JSON can hold it."""
    return value if isinstance(value, (int, str)) else str(value)
