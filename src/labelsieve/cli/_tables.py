"""Tables that several commands print."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, RenderableType

from labelsieve._text import format_score, short
from labelsieve.cli._console import lay_out
from labelsieve.inspection.controlled import ControlledSelection
from labelsieve.inspection.ranking import Ranking
from labelsieve.inspection.result import Audit

#: Advice for judging flagged labels.
ADVICE = "Review some: labelsieve review FILE."

# Minimum width of a terminal for two numbers per feature.
_TWO_MEASURES_WIDTH = 60


def ranking_table(
    found: Audit, ranking: Ranking, console: Console, *, everything: bool = False
) -> RenderableType:
    """Lay out the ranking of the selected columns, or of all columns with the selected ones marked."""
    listed = ranking.order if everything else ranking.kept
    columns = {
        "rank": [str(ranking.places[column]) for column in listed],
        found.unit: [short(found.ranked_columns[column].name) for column in listed],
    }
    for name in list(ranking.shown)[: None if console.width >= _TWO_MEASURES_WIDTH else 1]:
        values = [ranking.shown[name][column] for column in listed]
        columns[name] = [format_score(value) if name == "score" else f"{value:.1f}" for value in values]
    if found.controlled is not None:
        columns |= error_rates(found.controlled, listed)
    if everything:
        columns["selected"] = ["yes" if ranking.places[column] <= ranking.n_kept else "" for column in listed]
    if any(len(found.ranked_columns[column].features) > 1 for column in listed):
        columns["best feature"] = [best_feature(found, ranking, column) for column in listed]
    return lay_out(console, columns, long=found.unit, bars=ranking.shares[listed].tolist())


def error_rates(controlled: ControlledSelection, listed: Iterable[int]) -> dict[str, list[str]]:
    """Return the p-values and q-values of some columns as texts; "≤" marks upper bounds."""
    return {
        name: [f"{'≤ ' if controlled.is_bound[column] else ''}{numbers[column]:.2g}" for column in listed]
        for name, numbers in (("p", controlled.p_values), ("q", controlled.q_values))
    }


def best_feature(found: Audit, ranking: Ranking, column: int) -> str:
    """Return the best feature of a column that has several, without the column name."""
    ranked = found.ranked_columns[column]
    if len(ranked.features) < 2:
        return ""
    name = found.dataset.feature_names[ranking.best_feature[column]]
    own = name.removeprefix(ranked.name).removeprefix(":").strip()
    return short(own.removeprefix("=") if own.startswith("=") else own)


def issues_table(found: Audit, console: Console, n_shown: int, *, missing: bool = False) -> RenderableType:
    """Lay out the labels to review first, with the strongest reason for an error."""
    explained = found.label_issues
    assert explained is not None
    missing = missing or explained.issues.which == "missing"
    listed = list(found.issue_records(n_shown, missing=missing))
    columns = {
        "row": [short(record["row"]) for record in listed],
        "label": [short(record["label"]) for record in listed],
    }
    measure = "probability" if listed and "probability" in listed[0] else "support"
    columns[measure] = [f"{record[measure]:z.2f}" for record in listed]
    if listed and "wrong" in listed[0]:
        columns["truth"] = ["wrong" if record["wrong"] else "right" for record in listed]
    reason = f"strongest reason {'for' if missing else 'against'} it"
    columns[reason] = [_strongest_reason(record) for record in listed]
    issues = explained.missing.issues if missing and explained.missing is not None else explained.issues
    title = f"{'absent ' if missing else ''}labels to review first, of {issues.n_labels:,}"
    return lay_out(console, columns, long=reason, title=title)


def _strongest_reason(record: dict[str, Any]) -> str:
    """Return the column or the other label with the largest effect."""
    first = record["reasons"][0] if record["reasons"] else None
    other = record["other_label"]
    if other is not None and (first is None or abs(record["other_label_effect"]) > abs(first["effect"])):
        return short(other)
    return "" if first is None else str(first["text"])
