"""Put summaries together that are parts of one experiment: a run folder may be gone, its means are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from labelsieve.bench import RunError
from labelsieve.bench.merge import common_experiment
from labelsieve.bench.results import RunRecord
from labelsieve.bench.runner import environment
from labelsieve.bench.store import now
from labelsieve.report.analysis.cells import Coverage, Note
from labelsieve.report.analysis.summary import Summary

__all__ = ["merge_summaries"]

T = TypeVar("T")


def merge_summaries(parts: Sequence[tuple[str, Summary]], *, command: str = "") -> Summary:
    """Join what was summarised of runs on different data sets; nothing is averaged again.

    Parameters
    ----------
    parts : sequence of (str, Summary)
        Name of a part, for errors, and what it holds.
    command : str, default=""
        How this was called, for the record.

    Raises
    ------
    RunError
        The parts differ in more than their data sets, or share one: means of other folds cannot be joined.
    """
    _refuse_shared_datasets(parts)
    experiment = common_experiment(
        [(name, summary.experiment.as_dict()) for name, summary in parts], ("datasets",)
    )
    every = [summary.facts for _, summary in parts]
    scored = {name for facts in every for name in facts.metrics}
    judged = {name for facts in every for name in facts.classifiers}
    merged = replace(
        every[0],
        datasets=_joined(facts.datasets for facts in every),
        metrics=tuple(name for name in experiment.metric_names if name in scored),
        classifiers=tuple(judge.name for judge in experiment.judges() if judge.name in judged),
        noise_rates={name: rate for facts in every for name, rate in facts.noise_rates.items()},
        conditions=_joined(facts.conditions for facts in every),
        usual_noise={name: noise for facts in every for name, noise in facts.usual_noise.items()},
        coverage=Coverage(
            n_planned=sum(facts.coverage.n_planned for facts in every),
            n_done=sum(facts.coverage.n_done for facts in every),
            n_failed=sum(facts.coverage.n_failed for facts in every),
            gaps=_joined(facts.coverage.gaps for facts in every),
            untouched=_joined(facts.coverage.untouched for facts in every),
        ),
        costs=_joined(facts.costs for facts in every),
        stability=_joined(facts.stability for facts in every),
        descents=_joined(facts.descents for facts in every),
        failures=_joined(facts.failures for facts in every),
        notes=_counted(_joined(facts.notes for facts in every)),
        runs=_renumbered(_joined(facts.runs for facts in every), experiment.as_dict(), command),
        n_altered=sum(facts.n_altered for facts in every),
    )
    curves = {key: curve for _, summary in parts for key, curve in summary.curves.items()}
    return Summary(experiment, merged, curves)


def _refuse_shared_datasets(parts: Sequence[tuple[str, Summary]]) -> None:
    owners: dict[str, str] = {}
    for name, summary in parts:
        for dataset in summary.datasets:
            if dataset in owners:
                raise RunError(
                    f"{owners[dataset]} and {name} both hold {dataset!r}; means of different data sets alone can be "
                    "put together, so merge the run folders instead."
                )
            owners[dataset] = name


def _joined(several: Iterable[Iterable[T]]) -> tuple[T, ...]:
    return tuple(chain.from_iterable(several))


def _counted(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Each note once, with the cells of all parts."""
    counts: Counter[tuple[str, str]] = Counter()
    for note in notes:
        counts[note.method, note.text] += note.n_cells
    return tuple(Note(method, text, n_cells) for (method, text), n_cells in counts.most_common())


def _renumbered(
    runs: Sequence[RunRecord], configuration: dict[str, object], command: str
) -> tuple[RunRecord, ...]:
    """The calls of all parts one after the other, and last what put them together."""
    earlier = tuple(
        replace(run, number=number, configuration={}, environment={})
        for number, run in enumerate(runs, start=1)
    )
    last = RunRecord(len(runs) + 1, now(), now(), command, environment(), configuration, 0)
    return (*earlier, last)
