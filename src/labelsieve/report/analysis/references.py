"""Do the methods beat what takes no method: random features, plain filters, all features, none?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labelsieve.report.analysis.comparison import MetricTable

__all__ = ["Challenge", "challenge_references"]


@dataclass(frozen=True)
class Challenge:
    """How a method does against a reference, over all metrics and data sets."""

    method: str
    reference: str
    #: Metric -> number of data sets where the method is better, compared.
    wins: dict[str, int]
    compared: dict[str, int]

    @property
    def n_wins(self) -> int:
        """Comparisons in which the method is better."""
        return sum(self.wins.values())

    @property
    def n_compared(self) -> int:
        """All comparisons: a metric on a data set."""
        return sum(self.compared.values())

    @property
    def won(self) -> bool:
        """Whether the method is better in most comparisons."""
        return 2 * self.n_wins > self.n_compared


def challenge_references(tables: Sequence[MetricTable]) -> tuple[Challenge, ...]:
    """Compare every method with every reference wherever both have results; pairs without are left out."""
    if not tables:
        return ()
    challenges = []
    for reference in tables[0].references:
        for method in tables[0].methods:
            wins, compared = {}, {}
            for table in tables:
                own, other = (table.cost[:, table.column(name)] for name in (method, reference))
                both = np.isfinite(own) & np.isfinite(other)
                wins[table.metric] = int((own[both] < other[both]).sum())
                compared[table.metric] = int(both.sum())
            challenge = Challenge(method, reference, wins, compared)
            if challenge.n_compared:
                challenges.append(challenge)
    return tuple(challenges)
