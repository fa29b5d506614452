"""What a fitted selector found about its features, ready to be shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from labelsieve._text import html_table

__all__ = ["RankedFeatures"]

#: Rows of a table in a notebook.
_MOST_ROWS = 10


@dataclass(frozen=True, eq=False)
class RankedFeatures:
    """Places and worth of the features of a fitted selector, in the order of the columns.

    Attributes
    ----------
    names : tuple of str
        Names of the features; ``x0``, ``x1`` ... where they have none.
    ranking : ndarray of int of shape (n_features,)
        Place of every feature, 1 is best.
    worth : ndarray of shape (n_features,)
        What each is worth.
    measure : str
        What that is.
    n_selected : int
        How many are selected.
    """

    names: tuple[str, ...]
    ranking: np.ndarray
    worth: np.ndarray
    measure: str
    n_selected: int

    @classmethod
    def of(cls, selector: Any, feature_names: Iterable[str] | None = None) -> RankedFeatures:
        """Take the findings of a fitted selector; names that are given count more than those of the fit."""
        ranking = selector.ranking_
        # Scores that say nothing but the place come with the evidence that led there.
        measure = "evidence" if hasattr(selector, "evidence_") else "score"
        worth = selector.evidence_ if measure == "evidence" else selector.scores_
        if feature_names is None:
            feature_names = getattr(selector, "feature_names_in_", [f"x{j}" for j in range(len(ranking))])
        return cls(tuple(map(str, feature_names)), ranking, worth, measure, int(selector.n_features_))

    def to_html(self) -> str:
        """Return the selected features, the best first, as a short table."""
        order = np.argsort(self.ranking, kind="stable")[: self.n_selected]
        left = len(order) - _MOST_ROWS
        return html_table(
            f"{self.n_selected} of {len(self.ranking)} features selected",
            ("place", "feature", self.measure),
            [
                (place, self.names[column], f"{self.worth[column]:.4g}")
                for place, column in enumerate(order[:_MOST_ROWS], start=1)
            ],
            f"and {left} more" if left > 0 else "",
        )
