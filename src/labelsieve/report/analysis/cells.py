"""What the cells of a run tell besides metrics: coverage, costs, stability, convergence, failures, warnings."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from labelsieve.bench.results import CellRecord, Results
from labelsieve.inspection.stability import jaccard_stability, kuncheva_stability, nogueira_stability

#: Name of an index -> the function that measures it.
STABILITY: dict[str, Callable[[Any], float]] = {
    "kuncheva": kuncheva_stability,
    "nogueira": nogueira_stability,
    "jaccard": jaccard_stability,
}


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


def cover(results: Results) -> tuple[Coverage, set[tuple[Place, str]]]:
    """Count the judgements of every place; returns what is missing, and the places and judges where nothing is."""
    places = [Place(cell.dataset, cell.noise, cell.method) for cell in results.cells]
    done, failed = Counter[tuple[Place, str]](), Counter[tuple[Place, str]]()
    for judgement in results.judgements:
        (done if judgement.status == "done" else failed)[places[judgement.cell], judgement.judge] += 1
    met = {(place.dataset, place.noise) for place, _ in (*done, *failed)}
    gaps: dict[Place, Gap] = {}
    complete = set()
    for (*names, judge), n_planned in results.planned.items():
        place = Place(*names)
        key = place, judge
        if done[key] == n_planned:
            complete.add(key)
        elif (place.dataset, place.noise) in met:
            before = gaps.get(place, Gap(place, 0, 0, 0))
            gaps[place] = Gap(
                place,
                before.n_done + done[key],
                before.n_failed + failed[key],
                before.n_planned + n_planned,
            )
    touched = {dataset for dataset, _ in met}
    untouched = tuple(name for name in results.datasets if name not in touched)
    n_planned = sum(results.planned.values())
    coverage = Coverage(n_planned, done.total(), failed.total(), tuple(gaps.values()), untouched)
    return coverage, complete


def rounded(value: float) -> float:
    """Keep six digits, of what is drawn or read but not computed with.

    Examples
    --------
    >>> rounded(2 / 3)
    0.666667
    """
    return float(f"{value:.6g}")


def measure_costs(cells: Iterable[CellRecord]) -> tuple[Cost, ...]:
    """Average time, memory, iterations and convergence by data set and method, over finished cells.

    A cell is one fit, also of a method that ranks anew for every size: what it costs to select features once.
    """
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
    results: Results, sizes: Mapping[Place, Sequence[int]], judges: Sequence[str]
) -> tuple[Stability, ...]:
    """Compare the rankings of folds and seeds at every size; the first draw stands for random rankings.

    A ranking counts at the sizes it was judged at: some methods rank anew for every one.

    Parameters
    ----------
    results : Results
        The run.
    sizes : mapping of Place to sequence of int
        The places to look at, and the numbers of features kept there.
    judges : sequence of str
        Whose rankings: other conventions may divide the rows otherwise.
    """
    groups: dict[tuple[Place, int], list[np.ndarray]] = defaultdict(list)
    # In order: the last digits must not depend on which cell was finished first.
    judged = {(score.cell, score.n_features) for score in results.scores if score.judge in judges}
    for index, n_kept in sorted(judged):
        cell = results.cells[index]
        # All features are the same whatever the method.
        if cell.ranking is not None and cell.draw == 0 and n_kept < len(cell.ranking):
            groups[Place(cell.dataset, cell.noise, cell.method), n_kept].append(cell.ranking)
    found = []
    for place, n_features in sizes.items():
        rankings = [(groups[place, n_kept], n_kept) for n_kept in n_features]
        selections = [_selected(group, n_kept) for group, n_kept in rankings if len(group) > 1]
        if selections:
            values = {
                name: float(np.mean([measure(selected) for selected in selections]))
                for name, measure in STABILITY.items()
            }
            found.append(Stability(place.dataset, place.method, values, len(selections[0])))
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


def collect_failures(results: Results) -> tuple[Failure, ...]:
    """Group what failed by data set, method and error; a ranking once, however many judgements fail with it."""
    groups: dict[tuple[str, str, str], dict[str, str]] = defaultdict(dict)
    for judgement in results.judgements:
        cell = results.cells[judgement.cell]
        if judgement.status == "failed":
            group = groups[cell.dataset, cell.method, judgement.error or "no message"]
            judge = f", {judgement.judge}" if cell.status == "done" else ""
            group[f"{_in_words(cell)}{judge}"] = judgement.traceback or ""
    return tuple(
        Failure(dataset, method, error, next(filter(None, group.values()), ""), tuple(group))
        for (dataset, method, error), group in groups.items()
    )


def collect_notes(results: Results) -> tuple[Note, ...]:
    """Count the warnings of rankings and judgements, most frequent first."""
    told = [(cell.method, cell.notes) for cell in results.cells]
    told += [
        (results.cells[found.cell].method, found.notes)
        for found in results.judgements
        if found.status == "done"
    ]
    counts = Counter((method, text) for method, notes in told for text in dict.fromkeys(notes))
    return tuple(Note(method, text, n_cells) for (method, text), n_cells in counts.most_common())


def _in_words(cell: CellRecord) -> str:
    """Say which cell of a data set and method it is."""
    asked = cell.params.get("n_features_to_select")
    size = f", for {asked} features" if isinstance(asked, int) else ""
    draw = f", draw {cell.draw}" if cell.draw else ""
    return f"{cell.noise}, seed {cell.seed}, fold {cell.fold}{size}{draw}"


def _selected(rankings: Sequence[np.ndarray], n_kept: int) -> np.ndarray:
    """Masks of the first features of each ranking."""
    masks = np.zeros((len(rankings), len(rankings[0])), dtype=bool)
    for mask, ranking in zip(masks, rankings, strict=True):
        mask[ranking[:n_kept]] = True
    return masks


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
