"""Provide numbers of the committed experiments to pages, e.g. ``{{ paper.rank.evidence }}``.

The build fails if a page quotes a number that does not exist.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from committed_results import leaderboard, measured_costs, reports
from labelsieve.report.comparison import Comparison
from labelsieve.report.leaderboard import Study
from labelsieve.report.paper import agreement

_NUMBERS = (
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)


def facts() -> dict[str, Any]:
    """Return the numbers by profile, with underscores, and seconds of one fit by method and dataset.

    Examples
    --------
    >>> found = facts()
    >>> 1 <= float(found["paper"]["rank"]["evidence"]) <= found["paper"]["n_ranked"]
    True
    >>> float(found["seconds"]["sum-f"]["yeast"]) < 1
    True
    """
    found: dict[str, Any] = {"seconds": _seconds()}
    for profile, report in reports().items():
        analysis = report.analysis
        found[profile.replace("-", "_")] = {
            "n_datasets": _in_words(len(analysis.summary.datasets)),
            **_ranks(analysis.main),
            "judged_by": {name: _ranks(other) for name, other in analysis.others.items()},
            "printed": {name: _agreement(cells) for name, cells in analysis.papers.items()},
        }
    # Study, classifier -> ranks on the leaderboard. The study has the name of its first profile.
    found["leaderboard"] = {
        study.name.partition(" ")[0].replace("-", "_"): {
            judge: _standing(study, judge) for judge in study.names["classifier"]
        }
        for study in leaderboard()
    }
    return found


def _standing(study: Study, classifier: str) -> dict[str, Any]:
    standing = study.standing(classifier=classifier)
    return {
        "n_ranked": len(standing.ranks),
        "n_datasets": _in_words(len(standing.datasets)),
        "best": next(iter(standing.ranks), ""),
        "rank": {name: f"{rank:.2f}" for name, rank in standing.ranks.items()},
        "place": {name: place for place, name in enumerate(standing.ranks, 1)},
        "critical_difference": _rounded(standing.cd),
    }


def _ranks(comparison: Comparison) -> dict[str, Any]:
    """Return average ranks and places, with and without the references."""
    ranks, methods = comparison.among_all, list(comparison.overall)
    names = sorted(ranks, key=ranks.__getitem__)
    return {
        "n_ranked": len(names),
        "n_methods": _in_words(len(methods)),
        "best": names[0] if names else "",
        "rank": {name: f"{ranks[name]:.2f}" for name in names},
        "place": {name: place for place, name in enumerate(names, 1)},
        "place_among_methods": {name: _in_words(place) for place, name in enumerate(methods, 1)},
        "critical_difference": _rounded(comparison.nemenyi_cd),
    }


def _agreement(cells: pd.DataFrame) -> dict[str, Any]:
    """Return the agreement with the numbers that the paper prints."""
    found = agreement(cells).loc[""]
    return {
        "cells": len(cells),
        "difference": f"{found['difference']:.3f}",
        "correlation": _rounded(found["correlation"]),
        "rank": _rounded(found["flagship_rank"]),
        "rank_in_the_paper": _rounded(found["flagship_rank_in_paper"]),
        "rank_of_frequencies": _rounded(found["frequencies_rank"]),
    }


def _rounded(value: float | None) -> str:
    return "" if value is None or pd.isna(value) else f"{value:.2f}"


def _seconds() -> dict[str, dict[str, str]]:
    return {
        method: {name: cost.partition(" /")[0] for name, cost in costs.items()}
        for method, costs in measured_costs().items()
    }


def _in_words(number: int) -> str:
    return _NUMBERS[number] if number < len(_NUMBERS) else str(number)
