"""Result of an audit, with export to DataFrames, JSON and HTML."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pandas import DataFrame

from labelsieve._numerics.candidates import fill_unknown
from labelsieve.inspection import wording
from labelsieve.inspection.controlled import ControlledSelection
from labelsieve.inspection.explanations import ExplainedIssues
from labelsieve.inspection.label_issues import LabelIssues
from labelsieve.inspection.ranking import CRITERION, Ranking, evidence_of, find_leaks
from labelsieve.inspection.stability import (
    SIGNIFICANT,
    EvidenceTest,
    SelectionStability,
    correlations,
    substitute_groups,
)
from labelsieve.io import Dataset
from labelsieve.io.dataset import Column, known_wrong
from labelsieve.io.writing import replacing
from labelsieve.methods._evidence.choice import SizeCurve

_NOTEBOOK_HEIGHT = 720
#: Number of top-ranked columns to search for substitutes.
_MAX_COMPARED = 2000


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """Result of an audit. Parts that were not computed are None.

    `labelsieve.audit` computes all parts. Print the result for a summary.

    Attributes
    ----------
    dataset : Dataset
        Table that was audited.
    command : {"audit", "select", "issues"}
        Command that computed the result.
    ranking : Ranking or None
        Ranked columns.
    size_curve : SizeCurve or None
        Average precision on held-out rows by number of columns.
    random_precision : ndarray of shape (n_orders, n_sizes) or None
        Average precision for columns in random order.
    baseline_precision : float or None
        Average precision without columns.
    stability : SelectionStability or None
        Selections on subsamples of the rows.
    evidence_test : EvidenceTest or None
        Permutation test of the total evidence.
    controlled : ControlledSelection or None
        Columns with p-values and q-values.
    label_issues : ExplainedIssues or None
        Candidate labels, worst first, with reasons.
    provenance : mapping of str to str
        Program, command, data checksum and settings.
    warnings : tuple of str
        Warnings of the computation, e.g. that a method did not converge.
    columns, sizes, labels, flagged, suggested : DataFrame
        Ranked columns, size curve, labels, the least supported candidate labels with reasons, and the best supported
        absent labels with reasons.

    Examples
    --------
    >>> from labelsieve import audit
    >>> from labelsieve.datasets import make_pml
    >>> X, Y = make_pml(n_samples=200, n_features=12, n_informative=3, n_labels=4, random_state=0)
    >>> found = audit(X, Y)
    >>> [answer["question"] for answer in found.to_dict()["answers"]][:2]
    ['Which columns matter?', 'How many should you keep?']
    >>> found.is_no_better_than_chance
    False
    """

    dataset: Dataset
    command: str = "audit"
    ranking: Ranking | None = None
    size_curve: SizeCurve | None = None
    random_precision: np.ndarray | None = None
    baseline_precision: float | None = None
    stability: SelectionStability | None = None
    evidence_test: EvidenceTest | None = None
    controlled: ControlledSelection | None = None
    label_issues: ExplainedIssues | None = None
    provenance: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def is_no_better_than_chance(self) -> bool:
        """True if the permutation test is not significant; False if it was not computed."""
        return self.evidence_test is not None and self.evidence_test.p_value > SIGNIFICANT

    @property
    def unit(self) -> str:
        """Name of what is ranked: "column" if columns were encoded as several features, otherwise "feature"."""
        return "column" if len(self.dataset.feature_names) > self.dataset.n_columns else "feature"

    @cached_property
    def _positions(self) -> tuple[int, ...]:
        return self.dataset.ranked

    @cached_property
    def ranked_columns(self) -> tuple[Column, ...]:
        """Columns of the table that have features, in the order that rankings and reasons index."""
        return tuple(self.dataset.columns[position] for position in self._positions)

    @property
    def n_candidates(self) -> int:
        """Number of candidate labels; 0 if rows are read in blocks."""
        return 0 if self.dataset.is_lazy else int(fill_unknown(self.dataset.candidates).sum())

    @property
    def n_kept(self) -> int:
        """Number of columns to keep; 0 if there is no ranking."""
        return 0 if self.ranking is None else self.ranking.n_kept

    @property
    def selected(self) -> list[str]:
        """Names of the columns to keep, best first."""
        return [] if self.ranking is None else [self.ranked_columns[j].name for j in self.ranking.kept]

    @cached_property
    def leaks(self) -> list[tuple[str, str]]:
        """Columns that reproduce a label, with the label."""
        if self.dataset.is_lazy:
            return []
        signed = evidence_of(self.dataset)[1] if self.ranking is None else self.ranking.feature_z2
        return [
            (self.dataset.columns[column].name, self.dataset.label_names[label])
            for column, label in find_leaks(self.dataset, signed)
        ]

    def expected_precision(self, n_columns: int) -> float:
        """Return the expected average precision for a number of columns, interpolated from the size curve."""
        assert self.size_curve is not None
        return float(np.interp(np.log(n_columns), np.log(self.size_curve.sizes), self.size_curve.mean))

    def best_columns(self, n_columns: int) -> dict[str, list[tuple[str, float]]]:
        """Return the columns with the largest squared z values of each label, if these are above noise."""
        assert self.ranking is not None
        z2 = np.abs(self.ranking.column_z2)
        found = {}
        for label, of_label in zip(self.dataset.label_names, z2.T, strict=True):
            best = np.argsort(-np.round(of_label, 9), kind="stable")[:n_columns]
            found[label] = [
                (self.ranked_columns[column].name, float(of_label[column]))
                for column in best
                if of_label[column] > CRITERION.threshold
            ]
        return found

    @cached_property
    def substitutes(self) -> tuple[tuple[tuple[int, float], ...], ...]:
        """Substitutes of each column with their correlations, closest first.

        Columns are grouped by correlations of at least 0.9 between their best features.
        """
        assert self.ranking is not None
        best, X = self.ranking.best_feature, self.dataset.X
        if self.stability is not None:
            group = self.stability.group
        else:
            group = substitute_groups(X[:, best], np.sort(self.ranking.order[:_MAX_COMPARED]))
        found: list[tuple[tuple[int, float], ...]] = [()] * len(best)
        sizes = np.bincount(group)
        for column in np.flatnonzero(sizes[group] > 1).tolist():
            others = np.flatnonzero(group == group[column])
            found[column] = correlations(X, best, column, others[others != column])
        return tuple(found)

    # DataFrames and records

    @property
    def columns(self) -> DataFrame:
        """Ranked columns, best first."""
        ranking, stability = self.ranking, self.stability
        if ranking is None:
            return DataFrame()
        order, shown = ranking.order, [self.ranked_columns[j] for j in ranking.order]
        found: dict[str, Any] = {
            "rank": ranking.places[order],
            "column": [column.name for column in shown],
            "role": [column.role for column in shown],
            "kept": ranking.places[order] <= ranking.n_kept,
            "score": ranking.scores[order],
            **{name: values[order] for name, values in ranking.measures.items()},
            "features": [
                [
                    self.dataset.feature_names[j]
                    for j in sorted(column.features, key=ranking.fitted.ranking_.item)
                ]
                for column in shown
            ],
            "n_missing": [column.n_missing for column in shown],
            "note": [column.note for column in shown],
        }
        if self.controlled is not None:
            found |= {
                "p_value": self.controlled.p_values[order],
                "q_value": self.controlled.q_values[order],
                "is_bound": self.controlled.is_bound[order],
            }
        if stability is not None:
            found |= {
                "frequency": stability.frequency[order],
                "lower": stability.interval[order, 0],
                "upper": stability.interval[order, 1],
                "frequency_with_substitutes": stability.group_frequency[order],
                "substitutes": [
                    [self.ranked_columns[other].name for other, _ in self.substitutes[j]] for j in order
                ],
            }
        return DataFrame(found)

    @property
    def sizes(self) -> DataFrame:
        """Average precision by number of columns."""
        curve, random = self.size_curve, self.random_precision
        if curve is None:
            return DataFrame()
        found = {"n_columns": curve.sizes, "average_precision": curve.mean, "spread": curve.spread}
        return DataFrame(found if random is None else {**found, "random_columns": random.mean(axis=0)})

    @property
    def labels(self) -> DataFrame:
        """Labels that have candidates."""
        if self.label_issues is None:
            return DataFrame()
        found = self.label_issues.issues.label_summary()
        if self.label_issues.missing is not None:
            n_suggested = self.label_issues.missing.issues.label_summary().set_index("label")["n_flagged"]
            found["n_suggested"] = found["label"].map(n_suggested)
        return found

    @property
    def flagged(self) -> DataFrame:
        """Least supported candidates with reasons. All candidates are in `label_issues.issues`."""
        return _flat(self.issue_records())

    @property
    def suggested(self) -> DataFrame:
        """Best supported absent labels with reasons."""
        return _flat(self.issue_records(missing=True))

    def issue_records(
        self, n_listed: int | None = None, *, missing: bool = False
    ) -> Iterator[dict[str, Any]]:
        """Yield the labels to review first and their reasons as JSON-compatible values."""
        explained = self.label_issues
        if explained is not None and missing and explained.issues.which == "wrong":
            explained = explained.missing
        if explained is None:
            return
        issues, reasons = explained.issues, explained.reasons
        listed = explained.listed[:n_listed]
        missing = issues.which == "missing"
        wrong = None if missing else known_wrong(self.dataset, issues.rows[listed], issues.labels[listed])
        for number, place in enumerate(listed):
            row, label = int(issues.rows[place]), int(issues.labels[place])
            row_id = self.dataset.row_ids[row]
            record: dict[str, Any] = {
                "row": row_id if isinstance(row_id, (int, str)) else str(row_id),
                "label": issues.label_names[label],
                "rank": int(place) + 1,
                "support": float(issues.support[row, label]),
            }
            if not missing and issues.shown_probability is not None:
                record["probability"] = float(issues.shown_probability[row, label])
            if wrong is not None:
                record["wrong"] = bool(wrong[number])
            yield record | {
                "base": float(reasons.base[number]),
                "other_columns": float(reasons.others[number]),
                "other_labels": float(reasons.labels[number]),
                "n_labels_in_row": int(reasons.n_in_row[number]),
                "other_label": wording.other_label(self, reasons, number),
                "other_label_effect": float(reasons.other_label_effect[number]),
                "curved": float(reasons.curved[number]),
                "reasons": [
                    {
                        "column": self.ranked_columns[column].name,
                        "value": self.cell(row, int(column)),
                        "text": " ".join(wording.reason(self, row, int(column), int(feature))),
                        "effect": float(effect),
                    }
                    for column, feature, effect in zip(
                        reasons.columns[number],
                        reasons.features[number],
                        reasons.effects[number],
                        strict=True,
                    )
                ],
            }

    def cell(self, row: int, column: int) -> str:
        """Return the text of a cell; `column` is an index into `ranked_columns`."""
        return self.dataset.cell(row, self._positions[column])

    # Output

    def to_dict(
        self, *, kept_only: bool = False, n_issues: int | None = None, by_label: bool = False
    ) -> dict[str, Any]:
        """Return the result as a dictionary of JSON-compatible values.

        Parameters
        ----------
        kept_only : bool, default=False
            If True, include only the columns to keep.
        n_issues : int or None, default=None
            Maximum number of label issues to include.
        by_label : bool, default=False
            If True, include the columns with evidence for each label.
        """
        dataset, ranking = self.dataset, self.ranking
        found: dict[str, Any] = {
            "data": dataset.name,
            "n_rows": dataset.X.shape[0],
            "n_columns": dataset.n_columns,
            "n_features": len(dataset.feature_names),
            "n_labels": len(dataset.label_names),
            "n_candidates": None if dataset.is_lazy else self.n_candidates,
            "leaks": [{"column": column, "label": label} for column, label in self.leaks],
            "answers": [
                {"question": answer.question, "answer": answer.plain} for answer in wording.answers(self)
            ],
        }
        if ranking is not None:
            found |= {
                "method": ranking.method,
                "parameters": ranking.settings,
                "converged": ranking.converged,
                "n_iter": ranking.n_iter,
                "n_kept": ranking.n_kept,
                "columns": _records(self.columns.head(ranking.n_kept) if kept_only else self.columns),
            }
        if by_label:
            found["columns_by_label"] = {
                label: [{"column": name, "z2": z2} for name, z2 in of_label]
                for label, of_label in self.best_columns(self.dataset.n_columns).items()
            }
        if self.evidence_test is not None:
            found["evidence_test"] = {
                "p_value": self.evidence_test.p_value,
                "no_better_than_chance": self.is_no_better_than_chance,
                "evidence": self.evidence_test.total,
                "n_permutations": len(self.evidence_test.permuted),
            }
        if self.controlled is not None:
            found["controlled_selection"] = {
                "fdr": self.controlled.fdr,
                "n_selected": int(self.controlled.selected.sum()),
                "n_permutations": self.controlled.n_permutations,
                "is_settled": self.controlled.is_settled,
                "is_cleaned": self.controlled.is_cleaned,
            }
        if self.size_curve is not None:
            found |= {
                "best": self.size_curve.best,
                "enough": self.size_curve.enough,
                "baseline_precision": self.baseline_precision,
                "size_curve": _records(self.sizes),
            }
        if self.stability is not None:
            found["stability"] = {
                "n_resamples": self.stability.n_resamples,
                "index": self.stability.index,
                "n_stable": self.stability.n_stable,
                "expected_by_chance": self.stability.expected_by_chance,
                "note": wording.stability_note(self),
            }
        if self.label_issues is not None:
            issues = self.label_issues.issues
            found |= {
                "n_checked": issues.n_checked,
                **({} if issues.share_wrong is None else {"share_wrong": issues.share_wrong}),
                "labels": _records(self.labels),
                "label_issues": list(self.issue_records(n_issues)),
                "caveat": issues.caveat(),
                **_guarantees(issues),
            }
            if self.label_issues.missing is not None:
                found["missing_labels"] = {
                    "label_issues": list(self.issue_records(n_issues, missing=True)),
                    **_guarantees(self.label_issues.missing.issues),
                }
        if dataset.is_table:
            found["table"] = dataset.account()
        return found | {
            "warnings": wording.warnings(self),
            "notes": list(dataset.notes),
            "provenance": dict(self.provenance),
        }

    def to_json(self, path: Any = None, **options: Any) -> str:
        """Return the result as JSON and optionally write it to `path`. Options are those of `to_dict`.

        Numbers are rounded to 6 digits because further digits depend on the processor and the number of threads.
        """
        text = json.dumps(_rounded(self.to_dict(**options)), indent=2, allow_nan=False) + "\n"
        return _save(text, path)

    def to_html(self, path: Any = None) -> str:
        """Return the audit page and optionally write it to `path`."""
        from labelsieve.inspection.page import render_page

        return _save(render_page(self), path)

    def summary(self) -> str:
        """Return a text summary that fits on one screen."""
        return wording.summary(self)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        dataset = self.dataset
        sizes = f"{dataset.X.shape[0]} rows, {dataset.n_columns} columns, {len(dataset.label_names)} labels"
        kept = f", keep {self.n_kept}" if self.ranking is not None else ""
        return f"Audit({dataset.name!r}: {sizes}{kept})"

    def _repr_html_(self) -> str:
        # An iframe keeps the content security policy of the page and separates its styles from the notebook.
        return (
            f'<iframe title="labelsieve audit" sandbox="allow-scripts allow-downloads allow-modals" '
            f'style="width: 100%; height: {_NOTEBOOK_HEIGHT}px; border: 0" '
            f'srcdoc="{html.escape(self.to_html())}"></iframe>'
        )


def _flat(records: Iterator[dict[str, Any]]) -> DataFrame:
    """Return records as a DataFrame, with numbered columns for their reasons."""
    rows = []
    for record in records:
        for number, reason in enumerate(record.pop("reasons"), start=1):
            record |= {f"{name}_{number}": value for name, value in reason.items()}
        rows.append(record)
    return DataFrame(rows)


def _guarantees(issues: LabelIssues) -> dict[str, Any]:
    """Return the intervals and the number of possible corrections, or nothing without a complete random draw."""
    found: dict[str, Any] = {}
    with suppress(ValueError):  # the reviews are incomplete, too few, or not a random draw
        found["interval"] = asdict(issues.error_interval())
        found["assisted_interval"] = asdict(issues.error_interval(method="assisted"))
        if issues.which == "missing":
            total = asdict(issues.total_interval())
            found["total_interval"] = {name: value for name, value in total.items() if value == value}
        # Only at the default bound, because a bound that is chosen after looking promises nothing.
        correction = issues.removable() if issues.which == "wrong" else issues.addable()
        found["correctable"] = {"alpha": correction.alpha, "n_labels": len(correction)}
    return found


def _records(frame: DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a DataFrame as JSON-compatible values."""
    records: list[dict[str, Any]] = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return records


def _rounded(value: Any) -> Any:
    """Round all numbers to 6 significant digits and at most 12 decimals."""
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return float(f"{round(value, 12) + 0.0:.6g}") if isinstance(value, float) else value


def _save(text: str, path: Any) -> str:
    """Return the text and write it to `path`, if given."""
    if path is not None:
        with replacing(Path(path)) as stream:
            stream.write(text.encode())
    return text
