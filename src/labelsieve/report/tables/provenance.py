"""Where the numbers come from: data, conventions, configuration, versions, machine."""

from __future__ import annotations

import json
from typing import Any

from labelsieve.report.analysis.summary import Summary
from labelsieve.report.tables.table import Column, Entry, Table, text_columns

# What papers leave open, and what the values mean.
_CONVENTIONS: dict[str, tuple[str, dict[Any, str]]] = {
    "test_labels": (
        "where noise goes",
        {
            "clean": "the training part only; test labels are clean",
            "noisy": "test labels have noise too",
            "noisy-f1": "test labels have noise too, for F1 alone",
        },
    ),
    "train_labels": (
        "labels the classifier trains on",
        {"candidates": "the candidate labels", "clean": "clean labels, which isolates the selection"},
    ),
    "one_class": (
        "a label with one class in the training part",
        {"lowest": "a score below every other label's", "constant": "scikit-learn's constant"},
    ),
    "absent_labels": (
        "a label without a positive in the training part",
        {"keep": "judged as every other", "skip": "left out"},
    ),
    "ranking_scores": (
        "scores of the ranking metrics",
        {"decision": "decision values", "hard": "hard 0/1 predictions"},
    ),
    "empty_rows": (
        "rows without a true label",
        {"skip": "left out of the ranking metrics", "perfect": "counted as perfect, as in scikit-learn"},
    ),
    "ties": (
        "equal scores",
        {"errors": "ranked as if wrong", "index": "by column, in coverage and average precision"},
    ),
    "coverage": (
        "coverage",
        {
            "zero-based": "(rank of the worst true label − 1) / number of labels",
            "count": "scikit-learn's: from 1, not divided",
            "one-based": "rank of the worst true label / number of labels",
            "excess": "(rank of the worst true label − true labels) / false labels",
        },
    ),
    "f1_undefined": (
        "F1 with no true and no predicted positive",
        {0: "0", 1: "1", "skip": "left out"},
    ),
    "folds": (
        "folds",
        {
            "shuffled": "shuffled, from the seed",
            "stratified": "iterative stratification",
            "consecutive": "consecutive rows, as the data has them",
        },
    ),
}


def dataset_table(summary: Summary) -> Table:
    """The data sets as they were used, with their checksums."""
    columns = (
        *text_columns("data set"),
        *(Column(head) for head in ("samples", "features", "labels", "true labels a sample")),
        *text_columns("SHA-256"),
    )
    rows = tuple(
        (
            Entry(facts.name),
            *(Entry(number) for number in (facts.n_samples, facts.n_features, facts.n_labels)),
            Entry(float(facts.cardinality), form=".2f"),
            Entry(facts.checksum),
        )
        for facts in summary.datasets.values()
    )
    return Table("datasets", "Data sets", columns, rows)


def convention_table(summary: Summary) -> Table:
    """What was chosen where papers leave it open."""
    experiment = summary.experiment
    configuration = summary.facts.runs[-1].configuration
    rows = [(Entry("noise"), Entry(", ".join(noise.label for noise in experiment.noises())))]
    for name, (question, meanings) in _CONVENTIONS.items():
        chosen = dict.fromkeys(getattr(entry, name) for entry in experiment.conventions)
        rows.append((Entry(question), Entry("; ".join(meanings.get(value, str(value)) for value in chosen))))
    for key, question in (
        ("classifiers", "classifier"),
        ("sizes", "numbers of features"),
        ("limits", "limits"),
    ):
        if configuration.get(key):
            rows.append((Entry(question), Entry(_compact(configuration[key]))))
    rows.append((Entry("standard deviation"), Entry("over folds and over sizes, each with n − 1")))
    rows.append((Entry("seeds"), Entry(", ".join(map(str, experiment.seeds)))))
    rows.append((Entry("number of folds"), Entry(str(experiment.folds))))
    return Table("conventions", "Conventions", text_columns("left open by papers", "here"), tuple(rows))


def run_table(summary: Summary) -> Table:
    """Every call of the runner."""
    columns = (
        Column("run"),
        *text_columns("started", "finished", "command"),
        Column("cells computed"),
    )
    rows = tuple(
        (
            Entry(run.number),
            Entry(run.started),
            Entry(run.finished or "stopped"),
            Entry(run.command),
            Entry(run.n_computed),
        )
        for run in summary.facts.runs
    )
    return Table("runs", "Runs", columns, rows)


def environment_table(summary: Summary) -> Table:
    """Versions and machine of the last run."""
    facts = dict(summary.facts.runs[-1].environment)
    versions = facts.pop("versions", {})
    rows = tuple((Entry(str(name)), Entry(_compact(value))) for name, value in {**facts, **versions}.items())
    return Table("environment", "Machine and versions", text_columns("what", "value"), rows)


def configuration_text(summary: Summary) -> str:
    """The configuration of the last run, in full."""
    return json.dumps(summary.facts.runs[-1].configuration, indent=2)


def _compact(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
