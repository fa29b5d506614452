"""How methods behave besides their metrics: time, memory, convergence, stability, failures."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labelsieve.bench.results import CellRecord
from labelsieve.report.aggregation import Aggregate, Place
from labelsieve.stability import jaccard_stability, kuncheva_stability, nogueira_stability

STABILITY: dict[str, Callable[[Any], float]] = {
    "kuncheva": kuncheva_stability,
    "nogueira": nogueira_stability,
    "jaccard": jaccard_stability,
}


@dataclass(frozen=True)
class Cost:
    """What the fits of a method on a data set took; None where nothing was measured."""

    dataset: str
    method: str
    #: Mean seconds of a fit.
    seconds: float | None
    #: Largest memory of a fit, in MiB.
    peak_mib: float | None
    #: Mean number of iterations.
    n_iter: float | None
    #: Share of the fits that converged.
    converged: float | None


@dataclass(frozen=True)
class Steadiness:
    """How alike the features are that a method selects in different folds and seeds; means over the sizes."""

    dataset: str
    method: str
    #: Name of the index -> value.
    index: dict[str, float]
    n_rankings: int


@dataclass(frozen=True)
class Failure:
    """Cells of one method and data set that failed for one reason."""

    dataset: str
    method: str
    error: str
    traceback: str
    #: The cells, in words.
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Note:
    """A warning, and how many cells of a method met it."""

    method: str
    text: str
    n_cells: int


def measure_costs(cells: Iterable[CellRecord]) -> tuple[Cost, ...]:
    """Average time, memory, iterations and convergence by data set and method, over finished cells."""
    groups: dict[tuple[str, str], list[CellRecord]] = defaultdict(list)
    for cell in cells:
        if cell.status == "done":
            groups[cell.dataset, cell.method].append(cell)
    return tuple(
        Cost(
            dataset,
            method,
            _mean(cell.fit_seconds for cell in group),
            max((cell.peak_mib for cell in group if cell.peak_mib is not None), default=None),
            _mean(cell.n_iter for cell in group),
            _mean(cell.converged for cell in group),
        )
        for (dataset, method), group in groups.items()
    )


def measure_stability(
    aggregate: Aggregate, methods: Sequence[str], noise: dict[str, str], classifier: str
) -> tuple[Steadiness, ...]:
    """Compare the rankings of folds and seeds at every size; the first draw stands for random rankings."""
    groups: dict[Place, list[np.ndarray]] = defaultdict(list)
    for cell in aggregate.results.cells:
        if cell.ranking is not None and cell.draw == 0 and noise.get(cell.dataset) == cell.noise:
            groups[Place(cell.dataset, cell.noise, cell.method)].append(cell.ranking)
    found = []
    for dataset, level in noise.items():
        for method in methods:
            place = Place(dataset, level, method)
            rankings = groups[place]
            curve = aggregate.curve(place, classifier, aggregate.metrics[0]) if aggregate.metrics else None
            if len(rankings) < 2 or curve is None or None in curve.sizes:
                continue
            # All features are the same whatever the method.
            proper = [n_kept for n_kept in curve.n_features if n_kept < len(rankings[0])]
            if not proper:
                continue
            selections = [_selected(rankings, n_kept) for n_kept in proper]
            index = {
                name: float(np.mean([measure(selected) for selected in selections]))
                for name, measure in STABILITY.items()
            }
            found.append(Steadiness(dataset, method, index, len(rankings)))
    return tuple(found)


def collect_failures(cells: Iterable[CellRecord]) -> tuple[Failure, ...]:
    """Group failed cells by data set, method and error."""
    groups: dict[tuple[str, str, str], list[CellRecord]] = defaultdict(list)
    for cell in cells:
        if cell.status == "failed":
            groups[cell.dataset, cell.method, cell.error or "no message"].append(cell)
    return tuple(
        Failure(
            dataset,
            method,
            error,
            next((cell.traceback for cell in group if cell.traceback), ""),
            tuple(f"{cell.noise}, seed {cell.seed}, fold {cell.fold}" for cell in group),
        )
        for (dataset, method, error), group in groups.items()
    )


def collect_notes(cells: Iterable[CellRecord]) -> tuple[Note, ...]:
    """Count the warnings, most frequent first."""
    counts = Counter((cell.method, text) for cell in cells for text in dict.fromkeys(cell.notes))
    return tuple(Note(method, text, n_cells) for (method, text), n_cells in counts.most_common())


def _selected(rankings: Sequence[np.ndarray], n_kept: int) -> np.ndarray:
    """Masks of the first features of each ranking."""
    masks = np.zeros((len(rankings), len(rankings[0])), dtype=bool)
    for mask, ranking in zip(masks, rankings, strict=True):
        mask[ranking[:n_kept]] = True
    return masks


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
