"""Tables of findings that several commands print."""

from __future__ import annotations

from rich.console import Console, RenderableType

from labelsieve._text import short
from labelsieve.cli._console import lay_out
from labelsieve.inspection.ranking import Ranking
from labelsieve.inspection.result import Audit

#: How to learn more from the label check.
ADVICE = "Check some by hand: labelsieve issues FILE --draw 50 -o review.csv."

# Below this width only one number per feature is shown.
_TWO_MEASURES = 60


def ranking_table(
    found: Audit, ranking: Ranking, console: Console, *, everything: bool = False
) -> RenderableType:
    """Draw rank, name and measures of the selected columns, or of all with the selected marked."""
    listed = ranking.order if everything else ranking.kept
    columns = {
        "rank": [str(ranking.places[column]) for column in listed],
        found.unit: [short(found.ranked_columns[column].name) for column in listed],
    }
    for name in list(ranking.shown)[: None if console.width >= _TWO_MEASURES else 1]:
        # Evidence is a number like 55.8, a score has any size.
        form = "#.4g" if name == "score" else ".1f"
        columns[name] = [f"{ranking.shown[name][column]:{form}}" for column in listed]
    if everything:
        columns["selected"] = ["yes" if ranking.places[column] <= ranking.n_kept else "" for column in listed]
    if any(len(found.ranked_columns[column].features) > 1 for column in listed):
        columns["best part"] = [_best_part(found, ranking, column) for column in listed]
    return lay_out(console, columns, long=found.unit, shares=ranking.shares[listed].tolist())


def _best_part(found: Audit, ranking: Ranking, column: int) -> str:
    """Return the best feature of a column with several, without the name of the column."""
    of_table = found.ranked_columns[column]
    if len(of_table.features) < 2:
        return ""
    name = found.dataset.feature_names[ranking.best_feature[column]]
    return short(name.removeprefix(of_table.name).lstrip(":= "))


def issues_table(found: Audit, console: Console, n_shown: int) -> RenderableType:
    """Draw the labels with the least support, and the strongest reason against each."""
    listed = list(found.issue_records(n_shown))
    columns = {
        "row": [short(record["row"]) for record in listed],
        "label": [short(record["label"]) for record in listed],
    }
    measure = "probability" if listed and "probability" in listed[0] else "support"
    columns[measure] = [f"{record[measure]:.2f}" for record in listed]
    if listed and "wrong" in listed[0]:
        columns["truth"] = ["wrong" if record["wrong"] else "right" for record in listed]
    reason = "strongest reason against it"
    columns[reason] = [
        " = ".join(record["reasons"][0][part] for part in ("column", "value")) if record["reasons"] else ""
        for record in listed
    ]
    return lay_out(console, columns, long=reason, title=f"labels to check first, of {found.n_candidates}")
