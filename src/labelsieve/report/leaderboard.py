"""Leaderboard: rank all methods of several runs, with costs, as one page with filters.

Runs with the same settings form a study, in which folds, noise and seeds are equal for all methods.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from labelsieve import __version__
from labelsieve._pages import render
from labelsieve._text import count
from labelsieve.bench import RunError
from labelsieve.bench.config import RANDOM, UNRANKED
from labelsieve.bench.merge import shared_settings
from labelsieve.report.comparison import ALPHA
from labelsieve.report.statistics import nemenyi_cd, rank_methods
from labelsieve.report.summary import DIGITS, Summary
from labelsieve.report.summary_file import AXES, merge_summaries
from labelsieve.report.tables import listed

#: Method that the findings are about.
OURS = "evidence"
#: Smaller differences of two values count as ties.
TIE = 0.001
#: Levels of the table of values, by the name of their filter.
CELL = ("dataset", "noise", "classifier", "metric")
#: A measurement that the committed results do not contain.
MEASURED_OUTSIDE = (
    "The datasets of this repository were in view when evidence and rfs were developed. These numbers are "
    "from twelve datasets that had not been used before, seven of them with real noise.",
    "Average ranks of 14 with the linear SVM: evidence 5.15, rfs 5.45, all features 5.62, MDMR 5.92, fastcan "
    "6.10. With ML-kNN: evidence 5.02, rfs 5.33, fastcan 5.47, MDMR 6.77, all features 7.32. evidence was "
    "first with both, but not significantly ahead of these four. Against fastcan, it won 10 times and lost 2 "
    "times (average precision, linear SVM).",
    "On the seven datasets with real noise and with the linear SVM, keeping all features was first (3.46), "
    "ahead of rfs (5.57), evidence (5.69) and fastcan (5.77).",
    "The automatic number of features lost 0.011 average precision against the best number, a fixed fifth of "
    "the features 0.044.",
)
_REFERENCES = (*UNRANKED, RANDOM)
_MOST_NAMES = 4


@dataclass(frozen=True)
class Standing:
    """Average ranks of the methods that have results in all selected cells."""

    #: Method -> average rank, best first.
    ranks: dict[str, float]
    datasets: tuple[str, ...]
    n_cells: int
    #: Methods with missing results.
    left_out: tuple[str, ...]

    @property
    def cd(self) -> float | None:
        """Critical difference (Nemenyi), None without a test."""
        n_methods, n_datasets = len(self.ranks), len(self.datasets)
        return nemenyi_cd(n_methods, n_datasets, alpha=ALPHA) if min(n_methods, n_datasets) > 1 else None


@dataclass(frozen=True)
class Study:
    """Runs with the same settings."""

    summary: Summary

    @property
    def name(self) -> str:
        """Name for a menu."""
        return self.summary.experiment.name

    @cached_property
    def methods(self) -> tuple[str, ...]:
        """Methods and references with results, in configured order."""
        names = (*self.summary.methods_with_role("method"), *self.summary.references)
        found = set(self.summary.means["method"])
        return tuple(name for name in names if name in found)

    @cached_property
    def values(self) -> pd.DataFrame:
        """Means over sizes by cell and method, NaN for missing."""
        table = self.summary.scores.pivot(index=list(CELL), columns="method", values="mean")
        return table.reindex(columns=list(self.methods)).dropna(how="all")

    @cached_property
    def names(self) -> dict[str, tuple[str, ...]]:
        """Names of the datasets, noises, classifiers and metrics with results."""
        facts = self.summary.facts
        orders: list[Iterable[str]] = [
            self.summary.datasets,
            facts.noise_rates,
            facts.classifiers,
            facts.metrics,
        ]
        known = {level: set(self.values.index.get_level_values(level)) for level in CELL}
        return {
            level: tuple(name for name in order if name in known[level])
            for level, order in zip(CELL, orders, strict=True)
        }

    @cached_property
    def is_common(self) -> pd.Series:
        """True for cells with a dataset and noise that belong to the largest comparison without gaps.

        Its number of methods times its number of pairs of dataset and noise is the largest.
        """
        known = self.values.notna().groupby(level=["dataset", "noise"]).any()
        found = [known.loc[:, methods].all(axis=1) for methods in known.drop_duplicates().to_numpy()]
        common = max(found, key=lambda pairs: int(pairs.sum() * known[pairs].all().sum()))
        places = self.values.index.droplevel(["classifier", "metric"])
        return pd.Series(common.reindex(places).to_numpy(), index=self.values.index)

    def costs(self, **chosen: str) -> pd.DataFrame:
        """Return the values in the chosen cells, negated if higher is better.

        Cells that are not common count only if none of the chosen ones is.
        """
        selected = pd.Series(True, index=self.values.index)
        for level, name in chosen.items():
            selected &= self.values.index.get_level_values(level) == name
        if (selected & self.is_common).any():
            selected &= self.is_common
        values = self.values[selected]
        directions = values.index.get_level_values("metric").map(self.summary.experiment.directions)
        return values.mul(np.where(directions == "lower", 1, -1), axis=0)

    def standing(self, **chosen: str) -> Standing:
        """Rank the methods with one dataset, noise, classifier or metric. Ranks are averaged within a dataset first."""
        costs = self.costs(**chosen)
        complete = costs.columns[costs.notna().all()]
        left_out = tuple(costs.columns.difference(complete, sort=False))
        present = set(costs.index.get_level_values("dataset"))
        datasets = tuple(name for name in self.names["dataset"] if name in present)
        averages = pd.Series(dtype=float)
        if len(complete) > 1:
            ranks = pd.DataFrame(rank_methods(costs[complete], "lower"), costs.index, complete)
            averages = ranks.groupby(level="dataset").mean().mean().sort_values(kind="stable")
        return Standing(averages.to_dict(), datasets, len(costs), left_out)

    def duels(self, opponent: str, **chosen: str) -> dict[str, tuple[int, int, int]]:
        """Count in how many cells each ranked method wins, ties and loses against another one."""
        costs = self.costs(**chosen)
        found = {}
        for name in self.standing(**chosen).ranks:
            lead = (costs[opponent] - costs[name]).round(DIGITS)
            wins, losses = int((lead >= TIE).sum()), int((lead <= -TIE).sum())
            found[name] = (wins, len(costs) - wins - losses, losses)
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers of the page as JSON-compatible values."""
        names = self.names
        levels = [self.values.index.get_level_values(level).map(names[level].index) for level in CELL]
        places = {name: place for place, name in enumerate(self.methods)}
        datasets = {name: place for place, name in enumerate(names["dataset"])}
        specs = {method.name: method.method for method in self.summary.experiment.all_methods()}
        return {
            "name": self.name,
            "settings": self.settings,
            "methods": [{"name": name, "reference": specs[name] in _REFERENCES} for name in self.methods],
            "datasets": names["dataset"],
            "noises": names["noise"],
            "classifiers": names["classifier"],
            "metrics": [
                {"name": name, "title": self.summary.title(name), "direction": self.summary.direction(name)}
                for name in names["metric"]
            ],
            # For each cell: dataset, noise, classifier, metric, 1 if common, and the value of each method.
            "cells": [
                [*place, int(is_common), [None if np.isnan(value) else value for value in row]]
                for *place, is_common, row in zip(
                    *levels, self.is_common, self.values.to_numpy().tolist(), strict=True
                )
            ],
            # Method, dataset, seconds, MiB.
            "costs": [
                [
                    places[cost["method"]],
                    datasets[cost["dataset"]],
                    _short(cost["seconds"]),
                    _short(cost["peak_mib"]),
                ]
                for cost in self.summary.facts.costs
                if cost["method"] in places and cost["dataset"] in datasets
            ],
        }

    @property
    def settings(self) -> str:
        """Settings that all runs of the study share, in words."""
        experiment, coverage = self.summary.experiment, self.summary.facts.coverage
        low, *_, high = *experiment.sizes.percent, experiment.sizes.percent[-1]
        text = (
            f"{count(experiment.folds, 'fold')}, {count(len(experiment.seeds), 'seed')}, means over "
            f"{count(len(experiment.sizes.percent), 'size')} from {low:g}% to {high:g}% of the features."
        )
        if coverage.complete:
            return text
        return f"{text} Incomplete: {coverage.n_done} of {coverage.n_planned} cells are done."


def is_comparison(summary: Summary) -> bool:
    """Return True if a run has results of methods, not only of variants or sweeps."""
    return bool(summary.means["method"].isin(summary.methods_with_role("method")).any())


def studies(parts: Sequence[tuple[str, Summary]]) -> list[Study]:
    """Merge runs with the same settings, given with their names, into studies. Runs without methods are left out."""
    groups: dict[str, list[tuple[str, Summary]]] = {}
    for name, summary in parts:
        if is_comparison(summary):
            settings = shared_settings(summary.experiment.as_dict(), AXES)
            groups.setdefault(json.dumps(settings, sort_keys=True), []).append((name, summary))
    found: list[Study] = []
    for group in groups.values():
        summary = merge_summaries(group) if len(group) > 1 else group[0][1]
        name = " + ".join(dict.fromkeys(part.experiment.name for _, part in group))
        n_same = sum(study.name.partition(" (")[0] == name for study in found)
        name = f"{name} ({n_same + 1})" if n_same else name
        experiment = summary.experiment.model_copy(update={"name": name})
        found.append(Study(Summary(experiment, summary.facts, summary.means)))
    if not found:
        raise RunError("expected at least one run with results of methods, got none. Pass another run.")
    return found


def find(study: Study) -> tuple[list[str], list[str]]:
    """Describe who leads and who beats `evidence`, and then the leaders by dataset and noise."""
    main, details = (
        [text for part in parts for judge in study.names["classifier"] for text in part(study, judge)]
        for parts in ((_leaders, _duels), (_by_dataset, _by_noise))
    )
    others = [name for name in study.names["dataset"] if name not in study.standing().datasets]
    if others:
        main.append(f"Not included because some methods have no results there: {listed(others)}.")
    return main, details


def _leaders(study: Study, classifier: str) -> Iterator[str]:
    standing = study.standing(classifier=classifier)
    if not standing.ranks:
        yield f"Judged by {classifier}, fewer than two methods have complete results."
        return
    (best, rank), *others = standing.ranks.items()
    following = listed([f"{name} ({other:.2f})" for name, other in others[:_MOST_NAMES]])
    text = (
        f"Judged by {classifier}, {best} leads {len(standing.ranks)} methods and references on "
        f"{count(len(standing.datasets), 'dataset')} (average rank {rank:.2f}), followed by {following}."
    )
    if OURS in list(standing.ranks)[1 + _MOST_NAMES :]:
        place = list(standing.ranks).index(OURS) + 1
        text += f" {OURS} is number {place} ({standing.ranks[OURS]:.2f})."
    if standing.cd is not None:
        worse = [name for name, other in others if other - rank >= standing.cd]
        names = listed(worse) if len(worse) <= _MOST_NAMES else f"{len(worse)} of them"
        text += (
            f" The lead is significant over {names if worse else 'none of them'}: average ranks must differ by "
            f"{standing.cd:.2f} (Nemenyi, {ALPHA:.0%})."
        )
    yield text


def _duels(study: Study, classifier: str) -> Iterator[str]:
    """Name the methods that win more comparisons against ours than they lose."""
    if OURS in study.standing(classifier=classifier).ranks:
        duels = study.duels(OURS, classifier=classifier)
        ahead = [f"{name} ({wins} to {losses})" for name, (wins, _, losses) in duels.items() if wins > losses]
        is_one = len(ahead) < 2
        yield (
            f"Judged by {classifier}, {listed(ahead) or 'no other method'} {'wins' if is_one else 'win'} more "
            f"comparisons against {OURS} than {'it loses' if is_one else 'they lose'}."
        )


def _by_dataset(study: Study, classifier: str) -> Iterator[str]:
    """Name the datasets on which another method leads."""
    standing = study.standing(classifier=classifier)
    if OURS in standing.ranks and len(standing.datasets) > 1:
        leaders: dict[str, list[str]] = {}
        for dataset in standing.datasets:
            best = next(iter(study.standing(classifier=classifier, dataset=dataset).ranks))
            leaders.setdefault(best, []).append(dataset)
        n_won = len(leaders.pop(OURS, []))
        others = "; ".join(f"{name} on {listed(datasets)}" for name, datasets in leaders.items())
        yield (
            f"Judged by {classifier}, {OURS} leads on {n_won} of {len(standing.datasets)} datasets"
            f"{f'; {others}' if others else ''}."
        )


def _by_noise(study: Study, classifier: str) -> Iterator[str]:
    """Name the leader with each noise if there are several."""
    texts = []
    for noise in study.names["noise"] if len(study.names["noise"]) > 1 else ():
        ranks = study.standing(classifier=classifier, noise=noise).ranks
        if ranks:
            best = next(iter(ranks))
            ours = f", {OURS} {ranks[OURS]:.2f}" if OURS in ranks and best != OURS else ""
            texts.append(f"{noise}: {best} ({ranks[best]:.2f}{ours})")
    if texts:
        yield f"Leaders by noise, judged by {classifier}: {'; '.join(texts)}."


def render_leaderboard(found: Sequence[Study]) -> str:
    """Return the HTML page of all studies."""
    most = max(len(study.methods) for study in found)
    return render(
        "leaderboard.html",
        styles=["experiment.css"],
        scripts=("sort.js", "common.js", "audit/dom.js", "leaderboard.js"),
        data={
            "studies": [study.as_dict() for study in found],
            # Critical differences of 0, 1, ... methods on one dataset.
            "critical": [0, 0, *(round(nemenyi_cd(k, 1, alpha=ALPHA), 6) for k in range(2, most + 1))],
            "ours": OURS,
            "tie": TIE,
        },
        title="Leaderboard",
        studies=[(study, *find(study)) for study in found],
        outside=MEASURED_OUTSIDE if any(OURS in study.methods for study in found) else (),
        tie=TIE,
        generator=f"labelsieve bench leaderboard {__version__}",
    )


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.3g}")
