"""Judge the same rankings under several choices; rank and teach again only where a choice asks for it."""

from __future__ import annotations

import json
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from labelsieve.bench import RunError
from labelsieve.bench.cells import CellResult, choose_metrics, judge, one_thread, rank_features
from labelsieve.bench.components import build_classifier, identify, use_folder
from labelsieve.bench.config import Experiment
from labelsieve.bench.data import Fold, split_fold
from labelsieve.bench.plan import Cell

__all__ = ["Outcome", "Part", "run_choices"]


class Part(NamedTuple):
    """What one ranking gave under one choice; without values where there is an error."""

    fold: int
    #: Metric -> values, an entry per size.
    values: dict[str, list[float]] = {}  # noqa: RUF012 - nothing writes to it
    #: Labels with one class among those the classifier learnt.
    n_one_class: int = 0
    candidates_per_row: float = 0.0
    error: str = ""


@dataclass
class Outcome:
    """What all rankings gave under one choice."""

    parts: list[Part] = field(default_factory=list)

    @property
    def error(self) -> str:
        """What went wrong first; empty if nothing did."""
        return next((part.error for part in self.parts if part.error), "")

    def by_fold(self) -> dict[str, np.ndarray]:
        """Metric -> values, an entry per fold: the mean over the sizes and over the draws of a random method."""
        found: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
        for part in self.parts:
            for metric, values in part.values.items():
                found[metric][part.fold] += values
        return {
            metric: np.array([np.mean(values) for _, values in sorted(folds.items())])
            for metric, folds in found.items()
        }

    def mean(self, name: str) -> float:
        """Mean of a figure over all rankings."""
        return float(np.mean([getattr(part, name) for part in self.parts]))


def run_choices(
    experiments: Mapping[str, Experiment],
    plans: Mapping[str, Sequence[Cell]],
    jobs: int,
    progress: Callable[[int, int], None] | None,
) -> tuple[dict[str, Outcome], tuple[str, ...]]:
    """Rank once for all choices that show the method the same data and ask it for the same.

    Parameters
    ----------
    experiments : mapping of str to Experiment
        Choice -> configuration; all of the same data set, method, seed and number of folds.
    plans : mapping of str to sequence of Cell
        Choice -> cells of that configuration.
    jobs : int
        Processes; the result does not depend on it.
    progress : callable or None
        Called with the number of finished rankings and of all.

    Returns
    -------
    outcomes : dict
        Choice -> Outcome.
    warnings : tuple of str
        What the method and the classifiers warned of, each once.
    """
    tasks: dict[tuple[Any, ...], list[tuple[str, Experiment, Cell]]] = defaultdict(list)
    for name, experiment in experiments.items():
        for cell in plans[name]:
            ranking = cell.noise.label, experiment.conventions.folds, cell.fold, cell.draw, cell.n_selected
            tasks[ranking].append((name, experiment, cell))
    outcomes = {name: Outcome() for name in experiments}
    told: list[str] = []
    finished = Parallel(n_jobs=jobs, return_as="generator", batch_size=1)(
        delayed(_judge_fold)(task) for task in tasks.values()
    )
    try:
        for n_finished, (parts, notes) in enumerate(finished, start=1):
            for name, part in parts.items():
                outcomes[name].parts.append(part)
            told += notes
            if progress is not None:
                progress(n_finished, len(tasks))
    except BrokenProcessPool:
        raise RunError(
            "a process that judged rankings died, perhaps out of memory; try again with one process (jobs=1)."
        ) from None
    return outcomes, tuple(dict.fromkeys(told))


def _judge_fold(task: Sequence[tuple[str, Experiment, Cell]]) -> tuple[dict[str, Part], list[str]]:
    """Rank the features of one fold and judge that ranking under every choice."""
    parts = {}
    ranked = None
    with one_thread(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for name, experiment, cell in task:
            try:
                ranked = ranked or _Ranked(experiment, cell, caught)
                parts[name] = ranked.judge(experiment, cell)
            except Exception as error:  # the other choices may well be possible
                parts[name] = Part(cell.fold, error=" ".join(str(error).split()))
                if ranked is None:  # nothing is ranked, so there is nothing to judge
                    parts = {other: parts[name] for other, *_ in task}
                    break
    return parts, [" ".join(str(warning.message).split()) for warning in caught]


class _Ranked:
    """One fold, its ranking and the classifiers taught so far, under choices that share the ranking."""

    def __init__(self, experiment: Experiment, cell: Cell, caught: list[Any]) -> None:
        use_folder(experiment)
        self._folds: dict[tuple[str, str], Fold] = {}
        self._taught: dict[str, Any] = {}
        self._order = rank_features(cell, self._split(experiment, cell), CellResult(), caught)

    def _split(self, experiment: Experiment, cell: Cell) -> Fold:
        labels = (experiment.conventions.test_labels, experiment.conventions.train_labels)
        if labels not in self._folds:
            self._folds[labels] = split_fold(
                experiment, cell.dataset, cell.noise, cell.seed, cell.fold, cell.checksum
            )
        return self._folds[labels]

    def judge(self, experiment: Experiment, cell: Cell) -> Part:
        """Judge the ranking as this experiment does."""
        fold, conventions = self._split(experiment, cell), experiment.conventions
        metrics = choose_metrics(experiment.metrics, conventions)
        rows = []
        for _, count in cell.sizes:
            columns = self._order[:count]
            classifier = self._teach(experiment, fold, columns)
            rows.append(dict(judge(classifier, fold, columns, metrics, conventions)))
        values = {metric: [row[metric] for row in rows] for metric in metrics}
        n_rows = fold.Y_train.shape[0]
        n_positive = np.asarray(fold.Y_learn.sum(axis=0, dtype=np.int64))
        n_one_class = int(np.isin(n_positive, (0, n_rows)).sum())
        return Part(cell.fold, values, n_one_class, float(fold.Y_train.sum(dtype=np.int64) / n_rows))

    def _teach(self, experiment: Experiment, fold: Fold, columns: np.ndarray) -> Any:
        classifier = build_classifier(experiment.classifiers[0], experiment.conventions)
        what = [identify(classifier), experiment.conventions.train_labels, len(columns)]
        key = json.dumps(what, sort_keys=True)
        if key not in self._taught:
            self._taught[key] = classifier.fit(fold.X_train[:, columns], fold.Y_learn)
        return self._taught[key]
