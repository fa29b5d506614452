"""Summary of a run: means over folds, seeds and draws, and facts about the run.

Reports are computed from summaries, which come from the results of a run or from a file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from labelsieve.bench.config import Experiment
from labelsieve.bench.data import DatasetFacts
from labelsieve.bench.results import Results, RunRecord
from labelsieve.inspection.stability import jaccard_stability, kuncheva_stability, nogueira_stability
from labelsieve.report.tables import metric_title

#: Columns that identify a curve of a metric by number of features.
CURVE = ["dataset", "noise", "method", "classifier", "metric"]
#: Noise rate of the paper. If there are several rates, tables show the nearest one.
USUAL_RATE = 0.2
#: Digits of means and differences. Rounding makes results tie that only differ in the order of summation.
DIGITS = 12
#: Stability index -> the function that computes it.
STABILITY: dict[str, Callable[[Any], float]] = {
    "kuncheva": kuncheva_stability,
    "nogueira": nogueira_stability,
    "jaccard": jaccard_stability,
}

Record = dict[str, Any]


@dataclass(frozen=True)
class Coverage:
    """Numbers of planned, finished and failed cells."""

    n_planned: int
    n_done: int
    n_failed: int
    #: Results left out because cells are missing or failed: dataset, noise, method, done, failed, planned.
    gaps: tuple[Record, ...]
    #: Datasets without any result.
    untouched: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Return True if all planned cells are done."""
        return self.n_done == self.n_planned


@dataclass(frozen=True)
class Facts:
    """Facts about a run as JSON-compatible values."""

    datasets: tuple[DatasetFacts, ...]
    #: In configured order. If there are several conventions, the names of classifiers contain them.
    metrics: tuple[str, ...]
    classifiers: tuple[str, ...]
    #: Noise -> rate, or None.
    noise_rates: dict[str, float | None]
    #: Pairs of dataset and noise.
    conditions: tuple[tuple[str, str], ...]
    #: Dataset -> noise shown in tables.
    usual_noise: dict[str, str]
    coverage: Coverage
    #: Costs of fits: dataset, method, seconds and n_iter (means), peak_mib (maximum), converged (fraction), None if not
    #: measured.
    costs: tuple[Record, ...]
    #: Stability of the selected features, mean over sizes: dataset, method, index, n_rankings.
    stability: tuple[Record, ...]
    #: Objective of one fit by iteration: dataset, method, objective.
    descents: tuple[Record, ...]
    #: Failed cells by error: dataset, method, error, traceback, cells (descriptions).
    failures: tuple[Record, ...]
    #: Warnings, most frequent first: method, text, n_cells.
    notes: tuple[Record, ...]
    #: Calls of the runner. Only the last has its configuration (without folder) and environment.
    runs: tuple[RunRecord, ...]
    #: Number of damaged rows.
    n_altered: int


@dataclass(frozen=True)
class Summary:
    """Means and facts of a run. Incomplete results have no means."""

    experiment: Experiment
    facts: Facts
    #: One row per curve and size: the columns of `CURVE`, size, n_features, mean, fold_std. The size is NaN for
    #: references without sizes. fold_std is NaN for a single fold.
    means: pd.DataFrame

    @cached_property
    def datasets(self) -> dict[str, DatasetFacts]:
        """Datasets by name."""
        return {facts.name: facts for facts in self.facts.datasets}

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Mean and std over sizes by curve, and root mean square of fold_std."""
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
        """Select the rows of a classifier and one noise per dataset from the scores or another dataframe."""
        frame = self.scores if frame is None else frame
        return frame[(frame["classifier"] == classifier) & (frame["noise"] == frame["dataset"].map(noise))]

    def by_dataset(self, name: str) -> pd.DataFrame:
        """Return a cost or stability index by dataset and method."""
        facts = self.facts
        rows = (
            [{**found, **found["index"]} for found in facts.stability] if name in STABILITY else facts.costs
        )
        table = pd.DataFrame(rows, columns=["dataset", "method", name]).dropna()
        frame = spread(table, self.datasets, self.shown, name)
        return frame.dropna(how="all").dropna(how="all", axis=1)

    def cost(self, metric: str, values: Any) -> Any:
        """Convert values of a metric to costs, where lower is better."""
        return -values if self.direction(metric) == "higher" else values

    def direction(self, metric: str) -> Literal["higher", "lower"]:
        """Return the direction of better values of a metric."""
        return self.experiment.directions[metric]

    def title(self, metric: str) -> str:
        """Return the name of a metric with an arrow towards better values."""
        return metric_title(metric, self.direction(metric))

    def methods_with_role(self, role: str) -> tuple[str, ...]:
        """Return the methods with a role in configured order."""
        return tuple(method.name for method in self.experiment.all_methods() if method.role == role)

    @cached_property
    def compared(self) -> tuple[str, ...]:
        """Methods to rank, or the variants of an ablation if there are no methods."""
        return self.methods_with_role("method") or self.methods_with_role("ablation")

    @cached_property
    def references(self) -> tuple[str, ...]:
        """Names of the references."""
        return self.methods_with_role("reference")

    @property
    def shown(self) -> tuple[str, ...]:
        """Methods and references in table order."""
        return (*self.compared, *self.references)


def summarise(results: Results) -> Summary:
    """Summarise the results of a run, complete or not."""
    # Summaries may be published, so remove the local folder.
    experiment = results.experiment.model_copy(update={"folder": None})
    cells = results.cells
    scores = results.scores.join(cells[[*CURVE[:3], "seed", "fold", "draw"]], on="cell")
    planned = _count_judgements(results)
    metrics, judged = set(scores["metric"]), set(scores["classifier"])
    conditions = tuple(dict.fromkeys(zip(cells["dataset"], cells["noise"], strict=True)))
    rates = {
        noise: None if pd.isna(rate) else rate
        for noise, rate in zip(cells["noise"], cells["noise_rate"], strict=True)
    }
    *earlier, last = results.runs
    facts = Facts(
        datasets=tuple(results.datasets.values()),
        metrics=tuple(name for name in experiment.metric_names if name in metrics),
        classifiers=tuple(judge.name for judge in experiment.judges() if judge.name in judged),
        noise_rates=rates,
        conditions=conditions,
        usual_noise=usual_noise(results.datasets, conditions, rates),
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
    summary = Summary(experiment, facts, _average(scores, planned, experiment.metric_names))
    descents = _descents(cells, summary.compared)
    facts = replace(facts, stability=_stability(results, scores, summary), descents=descents)
    return replace(summary, facts=facts)


def arrange(frame: pd.DataFrame, **names: Iterable[str]) -> pd.DataFrame:
    """Sort rows by the given order of names in each column and drop rows with other names.

    Examples
    --------
    >>> arrange(pd.DataFrame({"method": ["rfs", "mine", "mifs"]}), method=["mifs", "rfs"])["method"].tolist()
    ['mifs', 'rfs']
    """
    positions = {column: {name: n for n, name in enumerate(known)} for column, known in names.items()}
    places = pd.DataFrame({column: frame[column].map(known) for column, known in positions.items()})
    order = places.dropna().sort_values(list(names), kind="stable").index
    return frame.loc[order].reset_index(drop=True)


def spread(
    frame: pd.DataFrame, datasets: Iterable[str], methods: Iterable[str], value: str = "mean"
) -> pd.DataFrame:
    """Pivot rows to datasets by methods in the given order, with NaN for missing values."""
    table = frame.pivot(index="dataset", columns="method", values=value).astype(float)
    table = table.reindex(index=list(datasets), columns=list(methods))
    return table.rename_axis(index="dataset", columns=None)


def rounded(value: float) -> float:
    """Round a number for display to six significant digits.

    Examples
    --------
    >>> rounded(2 / 3)
    0.666667
    """
    return float(f"{value:.6g}")


def as_records(frame: pd.DataFrame) -> list[Record]:
    """Return rows as JSON-compatible values, with None for missing or infinite values."""
    known = frame.notna() & ~frame.isin([np.inf, -np.inf])
    records: list[Record] = frame.astype(object).where(known, None).to_dict("records")
    return records


def _count_judgements(results: Results) -> pd.DataFrame:
    """Count planned, done and failed judgements by place in the plan."""
    judged = results.judgements.join(results.cells[CURVE[:3]], on="cell")
    is_done = judged["error"].isna()
    counts = judged.assign(done=is_done, failed=~is_done).groupby(CURVE[:4])[["done", "failed"]].sum()
    planned = results.planned.join(counts, on=CURVE[:4])
    return planned.fillna({"done": 0, "failed": 0}).astype({"done": int, "failed": int})


def _coverage(results: Results, planned: pd.DataFrame) -> Coverage:
    touched = planned.groupby(["dataset", "noise"])[["done", "failed"]].transform("sum").sum(axis=1) > 0
    incomplete = planned[touched & (planned["done"] < planned["planned"])]
    gaps = incomplete.groupby(CURVE[:3], sort=False)[["done", "failed", "planned"]].sum().reset_index()
    started = set(planned.loc[touched, "dataset"])
    n_planned, n_done, n_failed = (int(planned[name].sum()) for name in ("planned", "done", "failed"))
    untouched = tuple(name for name in results.datasets if name not in started)
    return Coverage(n_planned, n_done, n_failed, tuple(as_records(gaps)), untouched)


def _average(scores: pd.DataFrame, planned: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """Average complete results over folds, seeds and draws in the order of the plan."""
    complete = planned.loc[planned["done"] == planned["planned"], CURVE[:4]].reset_index(names="place")
    table = scores.merge(complete, on=CURVE[:4])
    table["position"] = table["metric"].map({name: position for position, name in enumerate(metrics)})
    # A fixed order keeps the last digits independent of the order in which cells finish.
    order = ["place", "position", "size", "seed", "fold", "draw"]
    table = table.dropna(subset="position").sort_values(order, na_position="first", ignore_index=True)
    point = [*CURVE, "size"]
    points = table.groupby(point, sort=False, dropna=False)
    folds = table.groupby([*point, "seed", "fold"], sort=False, dropna=False)["value"].mean()
    std = folds.groupby(point, sort=False, dropna=False).std().map(rounded)
    means = points.agg(n_features=("n_features", "last"), mean=("value", "mean"))
    return means.assign(fold_std=std.to_numpy()).reset_index()


def usual_noise(
    datasets: Iterable[str], conditions: Sequence[tuple[str, str]], rates: Mapping[str, float | None]
) -> dict[str, str]:
    """Choose the noise shown in tables by dataset."""

    def distance(condition: tuple[str, str]) -> float:
        rate = rates[condition[1]]
        return np.inf if rate is None else abs(rate - USUAL_RATE)

    # Later items replace earlier ones, so each dataset gets its nearest noise, the first one if tied.
    nearest = dict(sorted(conditions, key=distance)[::-1])
    return {name: nearest[name] for name in datasets if name in nearest}


def _costs(cells: pd.DataFrame) -> tuple[Record, ...]:
    """Summarise time, memory, iterations and convergence of fits by dataset and method."""
    measured = dict.fromkeys(["fit_seconds", "peak_mib", "n_iter", "converged"], float)
    fits = cells[cells["error"].isna()].astype(measured)
    costs = fits.groupby(["dataset", "method"], sort=False).agg(
        seconds=("fit_seconds", "mean"),
        peak_mib=("peak_mib", "max"),
        n_iter=("n_iter", "mean"),
        converged=("converged", "mean"),
    )
    return tuple(as_records(costs.reset_index()))


def _stability(results: Results, scores: pd.DataFrame, summary: Summary) -> tuple[Record, ...]:
    """Measure the stability of rankings over folds and seeds at the usual noise.

    Only sizes at which a ranking was judged by the first classifier count, because some methods rank separately for
    each size. Only the first random draw is used.
    """
    facts = summary.facts
    if not facts.classifiers:
        return ()
    size = [*CURVE[:3], "n_features"]
    judged = summary.select(facts.classifiers[0], facts.usual_noise, scores[scores["draw"] == 0])
    judged = judged[["cell", *size]].drop_duplicates().sort_values("cell", kind="stable")
    rows = []
    for (*place, n_kept), group in judged.groupby(size, sort=False):
        every = results.cells.loc[group["cell"], "ranking"]
        # Selections of all features are trivially equal.
        rankings = [ranking for ranking in every if ranking is not None and n_kept < len(ranking)]
        if len(rankings) > 1:
            selected = np.argsort(np.array(rankings), axis=1) < n_kept
            values = [measure(selected) for measure in STABILITY.values()]
            rows.append((*place, n_kept, len(rankings), *values))
    found = pd.DataFrame(rows, columns=[*size, "n_rankings", *STABILITY])
    means = summary.means
    shown = means[(means["classifier"] == facts.classifiers[0]) & (means["metric"] == facts.metrics[0])]
    found = arrange(shown.merge(found, on=size), dataset=facts.usual_noise, method=summary.shown)
    return tuple(
        {
            "dataset": dataset,
            "method": method,
            "index": group[list(STABILITY)].mean().to_dict(),
            "n_rankings": int(group["n_rankings"].iloc[0]),
        }
        for (dataset, method), group in found.groupby(["dataset", "method"], sort=False)
    )


def _descents(cells: pd.DataFrame, methods: Sequence[str]) -> tuple[Record, ...]:
    """Return the objective of one fit per method and dataset."""
    found: dict[tuple[str, str], Record] = {}
    for dataset, method, objective in cells[["dataset", "method", "objective"]].itertuples(index=False):
        if method in methods and objective is not None and len(objective) > 1:
            path = [rounded(value) for value in objective.tolist()]
            record = {"dataset": dataset, "method": method, "objective": path}
            found.setdefault((method, dataset), record)
    return tuple(found.values())


def _failures(results: Results) -> tuple[Record, ...]:
    """Group failures by dataset, method and error. A failed ranking counts once."""
    failed = results.judgements.join(results.cells[["dataset", "method"]], on="cell").fillna(
        {"traceback": ""}
    )
    groups = failed.groupby(["dataset", "method", "error"], sort=False)  # drops missing errors
    return tuple(
        {
            "dataset": dataset,
            "method": method,
            "error": error,
            "traceback": next(filter(None, group["traceback"]), ""),
            "cells": group["description"].unique().tolist(),
        }
        for (dataset, method, error), group in groups
    )


def _notes(results: Results) -> tuple[Record, ...]:
    """Count the warnings of rankings and judgements, most frequent first."""
    done = results.judgements[results.judgements["error"].isna()].join(results.cells["method"], on="cell")
    raised = pd.concat([results.cells[["method", "notes"]], done[["method", "notes"]]])
    counts = Counter((method, text) for method, notes in raised.to_numpy() for text in dict.fromkeys(notes))
    return count_notes(counts)


def count_notes(counts: Counter[tuple[str, str]]) -> tuple[Record, ...]:
    """Convert counts of warnings to records, most frequent first."""
    return tuple(
        {"method": method, "text": text, "n_cells": n_cells}
        for (method, text), n_cells in counts.most_common()
    )
