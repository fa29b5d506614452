"""The fits of a run besides their metrics: time, memory, convergence, stability, failures, warnings."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labelsieve.bench.results import CellRecord
from labelsieve.report.analysis.coverage import Place
from labelsieve.stability import jaccard_stability, kuncheva_stability, nogueira_stability

#: Name of an index -> the function that measures it.
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
class Stability:
    """How alike the features are that a method selects in different folds and seeds; means over the sizes."""

    dataset: str
    method: str
    #: Name of the index -> value.
    index: dict[str, float]
    n_rankings: int


@dataclass(frozen=True)
class Descent:
    """How the objective of one fit fell."""

    dataset: str
    method: str
    #: At the start and after every iteration, to the digits that a chart can show.
    objective: tuple[float, ...]


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


def rounded(value: float) -> float:
    """Keep six digits, of what is drawn or read but not computed with.

    Examples
    --------
    >>> rounded(2 / 3)
    0.666667
    """
    return float(f"{value:.6g}")


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
    cells: Iterable[CellRecord], sizes: Mapping[Place, Sequence[int]]
) -> tuple[Stability, ...]:
    """Compare the rankings of folds and seeds at every size; the first draw stands for random rankings.

    Parameters
    ----------
    cells : iterable of CellRecord
        All cells.
    sizes : mapping of Place to sequence of int
        The places to look at, and the numbers of features kept there.
    """
    groups: dict[Place, list[np.ndarray]] = defaultdict(list)
    for cell in cells:
        if cell.ranking is not None and cell.draw == 0:
            groups[Place(cell.dataset, cell.noise, cell.method)].append(cell.ranking)
    found = []
    for place, n_features in sizes.items():
        rankings = groups[place]
        if len(rankings) < 2:
            continue
        # All features are the same whatever the method.
        selections = [_selected(rankings, n_kept) for n_kept in n_features if n_kept < len(rankings[0])]
        if selections:
            index = {
                name: float(np.mean([measure(selected) for selected in selections]))
                for name, measure in STABILITY.items()
            }
            found.append(Stability(place.dataset, place.method, index, len(rankings)))
    return tuple(found)


def collect_descents(cells: Iterable[CellRecord], methods: Sequence[str]) -> tuple[Descent, ...]:
    """Take the objective of one fit a data set of some methods; the others look alike."""
    found: dict[tuple[str, str], Descent] = {}
    for cell in cells:
        key = cell.method, cell.dataset
        if (
            key not in found
            and cell.method in methods
            and cell.objective is not None
            and len(cell.objective) > 1
        ):
            path = tuple(rounded(value) for value in cell.objective.tolist())
            found[key] = Descent(cell.dataset, cell.method, path)
    return tuple(found.values())


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
