"""Features of a fitted selector, best first, for tables and charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from labelsieve._text import html_table

__all__ = ["RankedFeatures"]

#: Rows of a table in a notebook.
_MOST_ROWS = 10


class RankedFeatures(NamedTuple):
    """Names and worth of the features, best first, what that worth is, and how many of them are selected."""

    names: list[str]
    worth: np.ndarray
    measure: str
    n_selected: int

    @classmethod
    def of(cls, selector: Any, feature_names: Sequence[object] | None = None) -> RankedFeatures:
        """Take the findings of a fitted selector; without `feature_names`, with the names of the fit."""
        order = np.argsort(selector.ranking_, kind="stable")
        # Scores that say nothing but the place come with the evidence that led there.
        measure = "evidence" if hasattr(selector, "evidence_") else "score"
        worth = selector.evidence_ if measure == "evidence" else selector.scores_
        if feature_names is None:
            feature_names = getattr(selector, "feature_names_in_", [f"x{j}" for j in range(len(order))])
        if len(feature_names) != len(order):
            raise ValueError(f"feature_names must have {len(order)} entries, got {len(feature_names)}.")
        return cls([str(feature_names[j]) for j in order], worth[order], measure, int(selector.n_features_))

    def to_html(self) -> str:
        """Return the selected features as a short table."""
        n_shown = min(self.n_selected, _MOST_ROWS)
        n_left = self.n_selected - n_shown
        return html_table(
            f"{self.n_selected} of {len(self.names)} features selected",
            ("place", "feature", self.measure),
            [(place + 1, self.names[place], f"{self.worth[place]:.4g}") for place in range(n_shown)],
            f"and {n_left} more" if n_left else "",
        )
