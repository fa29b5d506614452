"""Means of a run over folds, seeds and draws, and the facts next to them.

Every number of a report comes from a summary, whether it was computed from the results of a run or read from a file.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from labelsieve.bench.config import Experiment
from labelsieve.bench.results import CellRecord, DatasetFacts, Results, RunRecord, Score
from labelsieve.inspection.stability import jaccard_stability, kuncheva_stability, nogueira_stability

__all__ = ["CURVE", "DIGITS", "STABILITY", "Facts", "Summary", "rounded", "summarise"]

#: Columns that identify a curve: one metric against the number of features.
CURVE = ["dataset", "noise", "method", "classifier", "metric"]
#: If a run has several noise rates, tables show the one nearest to this, the rate of the paper's experiment.
USUAL_RATE = 0.2
#: Digits of means and differences: equal results summed in another order must tie.
DIGITS = 12
#: Stability index -> the function that computes it.
STABILITY: dict[str, Callable[[Any], float]] = {
    "kuncheva": kuncheva_stability,
    "nogueira": nogueira_stability,
    "jaccard": jaccard_stability,
}


class Place(NamedTuple):
    """A method on a data set under a noise."""

    dataset: str
    noise: str
    method: str


@dataclass(frozen=True)
class Gap:
    """A place that is not counted because cells are missing or failed."""

    place: Place
    n_done: int
    n_failed: int
    n_planned: int


@dataclass(frozen=True)
class Coverage:
    """Planned, finished and failed cells."""

    n_planned: int
    n_done: int
    n_failed: int
    gaps: tuple[Gap, ...]
    #: Data sets without any result.
    untouched: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Tell if every planned cell finished."""
        return self.n_done == self.n_planned


@dataclass(frozen=True)
class Cost:
    """Cost of the fits of a method on a data set; None if it was not measured."""

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
    """Similarity of the features selected in different folds and seeds, averaged over the sizes."""

    dataset: str
    method: str
    #: Name of the index -> value.
    index: dict[str, float]
    n_rankings: int


@dataclass(frozen=True)
class Descent:
    """Objective of one fit at the start and after every iteration."""

    dataset: str
    method: str
    objective: tuple[float, ...]


@dataclass(frozen=True)
class Failure:
    """Cells of one method and data set that failed for one reason."""

    dataset: str
    method: str
    error: str
    traceback: str
    #: The cells in words.
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Note:
    """A warning and the number of cells of a method that raised it."""

    method: str
    text: str
    n_cells: int


@dataclass(frozen=True)
class Facts:
    """Everything in a summary except its means, in values that JSON can hold."""

    datasets: tuple[DatasetFacts, ...]
    #: In the configured order. With several conventions, a classifier is named with some of them.
    metrics: tuple[str, ...]
    classifiers: tuple[str, ...]
    #: Noise -> its rate, if it has one.
    noise_rates: dict[str, float | None]
    #: Data sets and the noises used there.
    conditions: tuple[tuple[str, str], ...]
    #: Data set -> the noise shown in its tables.
    usual_noise: dict[str, str]
    coverage: Coverage
    costs: tuple[Cost, ...]
    stability: tuple[Stability, ...]
    descents: tuple[Descent, ...]
    failures: tuple[Failure, ...]
    notes: tuple[Note, ...]
    #: Calls of the runner. Only the last keeps its configuration (without folder) and environment.
    runs: tuple[RunRecord, ...]
    #: Stored cells that failed their checksum.
    n_altered: int


@dataclass(frozen=True)
class Summary:
    """Means of a run; only complete places have any."""

    experiment: Experiment
    facts: Facts
    #: One row per size of a curve: the columns of `CURVE`, size, n_features, mean, fold_std. A reference without
    #: sizes has one row, with NaN for its size; fold_std is NaN for a single fold.
    means: pd.DataFrame

    @cached_property
    def datasets(self) -> dict[str, DatasetFacts]:
        """Data sets by name."""
        return {facts.name: facts for facts in self.facts.datasets}

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Mean and std over the sizes of every curve, and the fold_std pooled over them (root mean square)."""
        curves = self.means.assign(variance=self.means["fold_std"] ** 2).groupby(CURVE, sort=False)
        variance = curves["variance"]
        is_known = variance.count() == variance.size()
        return pd.DataFrame(
            {
                "mean": curves["mean"].mean().round(DIGITS),
                "std": curves["mean"].std(),
                "fold_std": np.sqrt(variance.mean()).where(is_known),
            }
        ).reset_index()

    def select(self, classifier: str, noise: Mapping[str, str], frame: pd.DataFrame | None = None) -> Any:
        """Rows of the scores, or of another frame, of one classifier and one noise per data set."""
        frame = self.scores if frame is None else frame
        return frame[(frame["classifier"] == classifier) & (frame["noise"] == frame["dataset"].map(noise))]

    def cost(self, metric: str, values: Any) -> Any:
        """Change the sign of a metric if higher is better, so that the smallest value is best."""
        return -values if self.direction(metric) == "higher" else values

    def direction(self, metric: str) -> Literal["higher", "lower"]:
        """Tell which values of a metric are better."""
        return self.experiment.directions[metric]

    def methods_with_role(self, role: str) -> tuple[str, ...]:
        """Methods of a role, in the configured order."""
        return tuple(method.name for method in self.experiment.all_methods() if method.role == role)

    @cached_property
    def compared(self) -> tuple[str, ...]:
        """Methods that are ranked: the methods, or else the variants of an ablation."""
        return self.methods_with_role("method") or self.methods_with_role("ablation")

    @cached_property
    def references(self) -> tuple[str, ...]:
        """References that the methods are compared with."""
        return self.methods_with_role("reference")

    @property
    def shown(self) -> tuple[str, ...]:
        """Methods and references, in the order of tables."""
        return (*self.compared, *self.references)


def summarise(results: Results) -> Summary:
    """Average the results of a run, complete or not, and keep the facts that a report needs."""
    # Summaries are published: the folder of the configuration is not part of them.
    experiment, cells = results.experiment.model_copy(update={"folder": None}), results.cells
    planned = _count_judgements(results)
    means = _average(results, planned)
    scored = {score.metric for score in results.scores}
    judged = {score.judge for score in results.scores}
    metrics = tuple(name for name in experiment.metric_names if name in scored)
    classifiers = tuple(judge.name for judge in experiment.judges() if judge.name in judged)
    rates = {cell.noise: cell.noise_rate for cell in cells}
    conditions = tuple(dict.fromkeys((cell.dataset, cell.noise) for cell in cells))
    usual = _usual_noise(results.datasets, conditions, rates)
    *earlier, last = results.runs
    facts = Facts(
        datasets=tuple(results.datasets.values()),
        metrics=metrics,
        classifiers=classifiers,
        noise_rates=rates,
        conditions=conditions,
        usual_noise=usual,
        coverage=_coverage(results, planned),
        costs=_costs(cells),
        stability=(),
        descents=(),
        failures=_failures(results),
        notes=_notes(results),
        runs=(
            *(replace(run, configuration={}, environment={}) for run in earlier),
            replace(last, configuration={**last.configuration, "folder": None}),
        ),
        n_altered=results.n_altered,
    )
    summary = Summary(experiment, facts, means)
    facts = replace(
        facts, stability=_stability(results, summary), descents=_descents(cells, summary.compared)
    )
    return replace(summary, facts=facts)


def rounded(value: float) -> float:
    """Keep six digits of a number that is read or drawn but not computed with.

    Examples
    --------
    >>> rounded(2 / 3)
    0.666667
    """
    return float(f"{value:.6g}")


def _count_judgements(results: Results) -> pd.DataFrame:
    """Count planned, finished and failed judgements of every place and classifier."""
    counts = Counter(
        (cell.dataset, cell.noise, cell.method, judgement.judge, judgement.status == "done")
        for judgement in results.judgements
        for cell in (results.cells[judgement.cell],)
    )
    rows = [
        (*key, n_planned, counts[(*key, True)], counts[(*key, False)])
        for key, n_planned in results.planned.items()
    ]
    return pd.DataFrame(rows, columns=[*CURVE[:4], "planned", "done", "failed"])


def _coverage(results: Results, planned: pd.DataFrame) -> Coverage:
    touched = planned.groupby(["dataset", "noise"])[["done", "failed"]].transform("sum").sum(axis=1) > 0
    incomplete = planned[touched & (planned["done"] < planned["planned"])]
    gaps = incomplete.groupby(CURVE[:3], sort=False)[["done", "failed", "planned"]].sum()
    started = set(planned.loc[touched, "dataset"])
    n_planned, n_done, n_failed = (int(planned[name].sum()) for name in ("planned", "done", "failed"))
    return Coverage(
        n_planned,
        n_done,
        n_failed,
        tuple(Gap(Place(*place), *map(int, counts)) for place, *counts in gaps.itertuples(name=None)),
        tuple(name for name in results.datasets if name not in started),
    )


def _average(results: Results, planned: pd.DataFrame) -> pd.DataFrame:
    """Average complete places over folds, seeds and draws; curves stand in the order of the plan."""
    repetition = ["seed", "fold", "draw"]
    cells = pd.DataFrame(
        [[getattr(cell, name) for name in (*CURVE[:3], *repetition)] for cell in results.cells],
        columns=[*CURVE[:3], *repetition],
    )
    scores = pd.DataFrame(list(results.scores), columns=Score._fields).rename(columns={"judge": "classifier"})
    complete = planned.loc[planned["done"] == planned["planned"], CURVE[:4]].reset_index(names="place")
    table = scores.astype({"size": float}).join(cells, on="cell").merge(complete, on=CURVE[:4])
    positions = {name: position for position, name in enumerate(results.experiment.metric_names)}
    table["position"] = table["metric"].map(positions)
    # Sorted by repetition: the last digits must not depend on which cell finished first.
    order = ["place", "position", "size", *repetition]
    table = table.dropna(subset="position").sort_values(order, na_position="first", ignore_index=True)
    point = [*CURVE, "size"]
    points = table.groupby(point, sort=False, dropna=False)
    folds = table.groupby([*point, "seed", "fold"], sort=False, dropna=False)["value"].mean()
    std = folds.groupby(point, sort=False, dropna=False).std().map(rounded)
    means = points.agg(n_features=("n_features", "last"), mean=("value", "mean"))
    return means.assign(fold_std=std.to_numpy()).reset_index()


def _usual_noise(
    datasets: Iterable[str], conditions: Sequence[tuple[str, str]], rates: Mapping[str, float | None]
) -> dict[str, str]:
    """Choose the noise shown in the tables of every data set that has results."""

    def distance(noise: str) -> float:
        rate = rates[noise]
        return np.inf if rate is None else abs(rate - USUAL_RATE)

    noises: dict[str, list[str]] = defaultdict(list)
    for dataset, noise in conditions:
        noises[dataset].append(noise)
    return {name: min(noises[name], key=distance) for name in datasets if name in noises}


def _costs(cells: Iterable[CellRecord]) -> tuple[Cost, ...]:
    """Average time, memory, iterations and convergence of the finished fits by data set and method."""
    groups: dict[tuple[str, str], list[CellRecord]] = defaultdict(list)
    for cell in cells:
        if cell.status == "done":
            groups[cell.dataset, cell.method].append(cell)

    def mean(values: Iterable[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return float(np.mean(known)) if known else None

    return tuple(
        Cost(
            dataset,
            method,
            mean(cell.fit_seconds for cell in group),
            max((cell.peak_mib for cell in group if cell.peak_mib is not None), default=None),
            mean(cell.n_iter for cell in group),
            mean(cell.converged for cell in group),
        )
        for (dataset, method), group in groups.items()
    )


def _stability(results: Results, summary: Summary) -> tuple[Stability, ...]:
    """Compare the rankings of folds and seeds at every size, at the usual noise, by the first classifier.

    A ranking counts at the sizes it was judged at, because some methods rank again for every size. The first draw
    stands for random rankings.
    """
    facts = summary.facts
    if not facts.classifiers:
        return ()
    judged = {
        (score.cell, score.n_features) for score in results.scores if score.judge == facts.classifiers[0]
    }
    groups: dict[tuple[str, str, str, int], list[np.ndarray]] = defaultdict(list)
    for index, n_kept in sorted(judged):
        cell = results.cells[index]
        # All features are the same set for every method.
        if cell.ranking is not None and cell.draw == 0 and n_kept < len(cell.ranking):
            groups[cell.dataset, cell.noise, cell.method, n_kept].append(cell.ranking)
    table = summary.select(facts.classifiers[0], facts.usual_noise, summary.means)
    table = table[(table["metric"] == facts.metrics[0]) & table["size"].notna()]
    sizes = {place: group.tolist() for place, group in table.groupby(CURVE[:3])["n_features"]}
    found = []
    for (dataset, noise), method in (
        (item, method) for item in facts.usual_noise.items() for method in summary.shown
    ):
        kept = sizes.get((dataset, noise, method), [])
        rankings = [(groups[dataset, noise, method, n_kept], n_kept) for n_kept in kept]
        selections = [_selected(group, n_kept) for group, n_kept in rankings if len(group) > 1]
        if selections:
            values = {
                name: float(np.mean([measure(selected) for selected in selections]))
                for name, measure in STABILITY.items()
            }
            found.append(Stability(dataset, method, values, len(selections[0])))
    return tuple(found)


def _selected(rankings: Sequence[np.ndarray], n_kept: int) -> np.ndarray:
    """Masks of the first features of each ranking."""
    masks = np.zeros((len(rankings), len(rankings[0])), dtype=bool)
    np.put_along_axis(masks, np.array(rankings)[:, :n_kept], True, axis=1)
    return masks


def _descents(cells: Iterable[CellRecord], methods: Sequence[str]) -> tuple[Descent, ...]:
    """Take the objective of one fit per method and data set; the others look alike."""
    found: dict[tuple[str, str], Descent] = {}
    for cell in cells:
        if cell.method in methods and cell.objective is not None and len(cell.objective) > 1:
            path = tuple(rounded(value) for value in cell.objective.tolist())
            found.setdefault((cell.method, cell.dataset), Descent(cell.dataset, cell.method, path))
    return tuple(found.values())


def _failures(results: Results) -> tuple[Failure, ...]:
    """Group failures by data set, method and error; a ranking counts once for all its judgements."""
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


def _in_words(cell: CellRecord) -> str:
    """Name a cell of a data set and method."""
    asked = cell.params.get("n_features_to_select")
    size = f", for {asked} features" if isinstance(asked, int) else ""
    draw = f", draw {cell.draw}" if cell.draw else ""
    return f"{cell.noise}, seed {cell.seed}, fold {cell.fold}{size}{draw}"


def _notes(results: Results) -> tuple[Note, ...]:
    """Count the warnings of rankings and judgements, most frequent first."""
    raised = [(cell.method, cell.notes) for cell in results.cells]
    raised += [
        (results.cells[found.cell].method, found.notes)
        for found in results.judgements
        if found.status == "done"
    ]
    counts = Counter((method, text) for method, notes in raised for text in dict.fromkeys(notes))
    return tuple(Note(method, text, n_cells) for (method, text), n_cells in counts.most_common())
