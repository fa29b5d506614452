"""How much of the plan of a run is there."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from labelsieve.bench.results import Results

__all__ = ["Coverage", "Gap", "Place", "cover"]


class Place(NamedTuple):
    """Where a method was tried: a row of a table."""

    dataset: str
    noise: str
    method: str


@dataclass(frozen=True)
class Gap:
    """A method on a data set that cannot be counted, because cells are missing or failed."""

    place: Place
    n_done: int
    n_failed: int
    n_planned: int


@dataclass(frozen=True)
class Coverage:
    """How much of the plan is there."""

    n_planned: int
    n_done: int
    n_failed: int
    gaps: tuple[Gap, ...]
    #: Data sets of which nothing is there.
    untouched: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether every planned cell was computed without failing."""
        return self.n_done == self.n_planned


def cover(results: Results) -> tuple[Coverage, set[Place]]:
    """Count the cells of every place; returns what is missing, and the places where nothing is."""
    done, failed = Counter[Place](), Counter[Place]()
    draws: Counter[str] = Counter()
    for cell in results.cells:
        place = Place(cell.dataset, cell.noise, cell.method)
        (done if cell.status == "done" else failed)[place] += 1
        draws[cell.method] = max(draws[cell.method], cell.draw + 1)
    experiment = results.experiment
    n_repeats = len(experiment.seeds) * experiment.folds
    met = dict.fromkeys((cell.dataset, cell.noise) for cell in results.cells)
    gaps, complete = [], set()
    for dataset, noise in met:
        for method in results.methods:
            place = Place(dataset, noise, method)
            n_planned = n_repeats * max(draws[method], 1)
            if done[place] == n_planned:
                complete.add(place)
            else:
                gaps.append(Gap(place, done[place], failed[place], n_planned))
    touched = {dataset for dataset, _ in met}
    untouched = tuple(name for name in results.datasets if name not in touched)
    coverage = Coverage(results.n_planned, sum(done.values()), sum(failed.values()), tuple(gaps), untouched)
    return coverage, complete
