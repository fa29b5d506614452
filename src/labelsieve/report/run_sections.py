"""Sections on the fits, on what was varied, and on where the numbers come from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from labelsieve._text import count
from labelsieve.report.analysis import Analysis
from labelsieve.report.summary import STABILITY
from labelsieve.report.tables import Section, Table, cross, listed, metric_words, show

# Longer tables are files only.
_MOST_ROWS = 200
# Convention -> what papers leave open, and what its values mean.
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


def costs(analysis: Analysis) -> Iterator[Section]:
    """Seconds, memory, iterations and convergence: data sets by methods."""
    wanted = {
        "seconds": ("Seconds a fit", ".3g", "Mean over all fits."),
        "peak_mib": ("Peak memory of a fit (MiB)", ".3g", "The largest of all fits."),
        "n_iter": ("Iterations", ".4g", "Mean over all fits of the methods that iterate."),
        "converged": ("Share of the fits that converged", ".2f", ""),
    }
    tables = [
        Table(name, title, analysis.summary.by_dataset(name), form, note)
        for name, (title, form, note) in wanted.items()
    ]
    yield Section("costs", "Time and memory", tables=_there(*tables[:2]))
    yield Section("convergence", "Convergence", tables=_there(*tables[2:]))


def stability(analysis: Analysis) -> Iterator[Section]:
    """Indices of stability: data sets by methods, with the means below."""
    found = analysis.facts.stability
    if not found:
        return
    corrected = "1 for equal sets of features, about 0 for random ones; mean over the sizes."
    shares = "Mean share of common features, not corrected for chance; mean over the sizes."
    tables = []
    for index in STABILITY:
        frame = analysis.summary.by_dataset(index)
        # The mean over other data sets than the neighbours' could not be compared.
        frame.loc["mean"] = frame.mean(skipna=False)
        title = f"Stability of the selected features: {index.capitalize()}"
        note = shares if index == "jaccard" else corrected
        tables.append(
            Table(f"stability_{index}", title, frame.rename_axis("data set"), ".2f", note, n_foot=1)
        )
    text = f"How alike the features are that a method selects in {found[0]['n_rankings']} folds and seeds."
    yield Section("stability", "Stability", (text,), tuple(tables[:1]), tuple(tables[1:]))


def noise(analysis: Analysis) -> Iterator[Section]:
    """Means over the data sets at every noise rate, by model and metric, and every curve in long form."""
    if analysis.noise.empty:
        return
    tables = []
    for (model, metric), curves in analysis.noise.groupby(["model", "metric"], sort=False):
        grid = curves.pivot(index=["method", "dataset"], columns="rate", values="value").dropna()
        # Means of different data sets could not be compared.
        methods = grid.index.unique("method")
        complete = grid.groupby("dataset").size() == len(methods)
        shared = [name for name in analysis.summary.datasets if complete.get(name, False)]
        if not shared:
            continue
        means = grid[grid.index.isin(shared, level="dataset")].groupby("method").mean()
        means = means.reindex([name for name in analysis.summary.shown if name in methods])
        means.columns = [f"{rate:g}" for rate in means.columns]
        title = f"{analysis.summary.title(metric)} against noise ({model})"
        note = f"Means over {count(len(shared), 'data set')}: {listed(shared)}."
        tables.append(Table(f"noise_{model}_{metric}", title, means.rename_axis("method"), note=note))
    frame = analysis.noise[["dataset", "model", "method", "metric", "rate", "value"]]
    frame = frame.rename(columns={"dataset": "data set"}).set_index("data set")
    file = Table("noise_all", "All metrics at all noise rates", frame)
    yield Section("noise", "Noise", tables=tuple(tables), files=(file,))


def ablation(analysis: Analysis) -> Iterator[Section]:
    """Gains of each part, and the means of every variant."""
    if analysis.effects.empty:
        return
    text = (
        "Does each part of the method help? The whole method against every variant, and variants that differ in "
        "one part against each other."
    )
    effects, by_metric = _effect_tables(analysis)
    tables = _there(effects, _variant_table(analysis))
    yield Section("ablation", "Ablation", (text,), tables, (by_metric,))


def _variant_table(analysis: Analysis) -> Table:
    """Means over the datasets of every variant, and on how many of them it is better than the whole."""
    rows = []
    for (classifier, metric), table in analysis.ablations.items():
        values = table.dropna()
        if values.empty:
            continue
        cost = analysis.summary.cost(metric, values)
        better = cost.lt(cost.iloc[:, 0], axis=0).sum()
        whole, *means = values.mean().items()
        words = {name: f"{mean:.3f} ({better[name]} of {len(values)})" for name, mean in means}
        title = analysis.summary.title(metric)
        rows.append({"metric": title, "judged by": classifier, **dict([whole]), **words})
    name = analysis.summary.methods_with_role("ablation")[0]
    note = f"Means over the data sets; in brackets, on how many of them the variant is better than {name}."
    return Table("ablation", "Ablation", _judged(analysis, rows), note=note)


def _effect_tables(analysis: Analysis) -> tuple[Table, Table]:
    """Gain of each part: one row per classifier and pair of variants, then the same in long form, by metric."""
    metrics, overall = analysis.facts.metrics, "all metrics"
    heads = {"classifier": "judged by", "fuller": "with", "lesser": "against", "sets": "which sets"}
    pair = list(heads.values())
    effects = analysis.effects.rename(columns=heads)
    every = pd.concat([effects.assign(metric=overall), effects])
    signs = np.sign(every["gain"])
    every = every.assign(better=signs > 0, equal=signs == 0, worse=signs < 0)
    groups = every.groupby([*pair, "metric"], sort=False)
    found = groups[["better", "equal", "worse"]].sum()
    found["words"] = found.astype(str).agg("/".join, axis=1)
    found["mean gain"] = groups["gain"].mean()
    found["words"] += ", " + found["mean gain"].map(lambda gain: show(gain, "+.4f"))
    found["mark"] = np.where(2 * found["better"] > groups.size(), "best", "")
    titles = {name: analysis.summary.title(name) for name in metrics}
    pairs = effects[pair].drop_duplicates().itertuples(index=False, name=None)
    words, marks = cross(found.reset_index(), pair, "metric", (pairs, (overall, *metrics)))
    frame = _judged(analysis, words.rename(columns=titles).reset_index())
    long = found.drop(columns=["words", "mark"]).drop(overall, level="metric")
    long = long.rename(metric_words, level="metric").reset_index()
    note = (
        "On how many data sets the first is better/equal/worse, and its mean gain there: positive is better, "
        "whichever way the metric goes. Over all metrics, a metric on a data set counts once. "
        "Bold: better in more than half."
    )
    shorter = "Numbers of data sets where the first is better, equal and worse, and its mean gain."
    title = "What each part adds"
    return (
        Table("ablation_effects", title, frame, note=note, marks=marks.rename(columns=titles)),
        Table("ablation_effects_by_metric", f"{title}, by metric", _judged(analysis, long), "+.4f", shorter),
    )


def sensitivity(analysis: Analysis) -> Iterator[Section]:
    """Best and worst settings over all metrics, then by data set and metric, and every value in long form."""
    found = analysis.sweeps
    if found.empty:
        return
    key = ["method", "parameters", "classifier", "dataset", "metric"]
    ordered = found.assign(
        cost=found["value"] * found["metric"].map(lambda name: analysis.summary.cost(name, 1))
    )
    groups = ordered.groupby(key, sort=False)
    best, worst = (found.loc[places] for places in (groups["cost"].idxmin(), groups["cost"].idxmax()))
    frame = pd.DataFrame(
        {
            "method": best["method"],
            "parameter": best["parameters"],
            "metric": best["metric"].map(analysis.summary.title),
            "judged by": best["classifier"],
            "data set": best["dataset"],
            "best setting": best["setting"],
            "best": best["value"],
            "worst setting": worst["setting"].to_numpy(),
            "worst": worst["value"].to_numpy(),
            "range": np.abs(worst["value"].to_numpy() - best["value"]),
        }
    )
    sweep = Table("sensitivity", "Sensitivity to the parameters", _judged(analysis, frame))
    heads = {"dataset": "data set", "classifier": "judged by"}
    long = found[["method", "setting", "dataset", "metric", "classifier", "value"]].rename(columns=heads)
    file = Table("sensitivity_all", "All metrics at all settings", _judged(analysis, long))
    is_long = len(sweep.frame) > _MOST_ROWS
    texts = [f"The table has {len(sweep.frame)} rows: see {sweep.stem}.csv."] if is_long else []
    doubles = found[found["second"].notna()]
    if len(doubles):
        methods = listed(sorted(doubles["method"].unique()))
        texts.append(f"Lines of two parameters are of {methods}, means over the data sets.")
    folded, files = ((), (sweep, file)) if is_long else ((sweep,), (file,))
    yield Section("sensitivity", "Sensitivity", tuple(texts), _there(_setting_table(analysis)), folded, files)


def _setting_table(analysis: Analysis) -> Table:
    heads = {
        "classifier": "judged by",
        "method": "method",
        "parameters": "parameter",
        "best": "best setting",
        "best_rank": "average rank",
        "worst": "worst setting",
        "worst_rank": "average rank of the worst",
        "ahead": "best ahead of worst",
        "gain": "mean gain",
        "range": "mean range",
    }
    note = (
        "Best and worst by average rank of the settings over data sets and metrics; in how many of these the best is "
        "ahead of the worst, and by how much in the mean. The range is between the best and the worst setting of each "
        "metric on each data set by itself."
    )
    frame = _judged(analysis, analysis.settings[[*heads]].rename(columns=heads))
    ranks_form = dict.fromkeys([heads["best_rank"], heads["worst_rank"]], ".2f")
    form = {**ranks_form, "mean gain": "+.4f", "mean range": ".4f"}
    return Table("settings", "Which settings do best", frame, form, note)


def _judged(analysis: Analysis, rows: Any) -> pd.DataFrame:
    """Make a frame with its first column as index, without the column of classifiers if there is only one."""
    frame = pd.DataFrame(rows)
    if not analysis.several_judges:
        frame = frame.drop(columns="judged by", errors="ignore")
    return frame.set_index(frame.columns[0]) if len(frame.columns) else frame


def failures(analysis: Analysis) -> Iterator[Section]:
    """Incomplete places by data set, noise and method, and warnings."""
    facts = analysis.facts
    heads = ["dataset", "noise", "method", "done", "failed", "planned"]
    gaps = pd.DataFrame(facts.coverage.gaps, columns=heads).rename(columns={"dataset": "data set"})
    tables = _there(Table("missing", "What is not complete", gaps.set_index("data set")))
    is_long = len(gaps) > _MOST_ROWS
    texts = []
    if facts.failures:
        methods = listed(dict.fromkeys(failure["method"] for failure in facts.failures))
        texts.append(f"{count(facts.coverage.n_failed, 'cell')} failed, of {methods}.")
    if is_long:
        texts.append(f"{len(gaps)} places are incomplete: see missing.csv.")
    kind = "files" if is_long else "folded"
    yield Section("failures", "Failures and gaps", tuple(texts), **{kind: tables})
    notes = pd.DataFrame(facts.notes, columns=["method", "text", "n_cells"])
    notes = notes.rename(columns={"text": "warning", "n_cells": "cells"}).set_index("method")
    yield Section("warnings", "Warnings", folded=_there(Table("warnings", "Warnings met", notes)))


def provenance(analysis: Analysis) -> Iterator[Section]:
    """Data sets with their checksums, conventions, runs, versions and machine."""
    facts = analysis.facts
    columns = {
        "name": "data set",
        "n_samples": "samples",
        "n_features": "features",
        "n_labels": "labels",
        "cardinality": "true labels a sample",
        "checksum": "SHA-256",
    }
    datasets = pd.DataFrame(facts.datasets)[[*columns]].rename(columns=columns)
    runs = pd.DataFrame(facts.runs)[["number", "started", "finished", "command", "n_computed"]]
    runs = runs.fillna({"finished": "stopped"}).rename(
        columns={"number": "run", "n_computed": "cells computed"}
    )
    machine = dict(facts.runs[-1].environment)
    machine |= machine.pop("versions", {})
    conventions = _two_columns(_conventions(analysis), "left open by papers", "here")
    yield Section(
        "provenance",
        "Where the numbers come from",
        tables=(
            Table("datasets", "Data sets", datasets.set_index("data set"), ".2f"),
            Table("conventions", "Conventions", conventions),
        ),
        folded=(
            Table("runs", "Runs", runs.set_index("run")),
            Table("environment", "Machine and versions", _two_columns(machine, "what", "value")),
        ),
    )


def _conventions(analysis: Analysis) -> dict[str, Any]:
    """Choices where papers leave something open."""
    experiment = analysis.summary.experiment
    configuration = analysis.facts.runs[-1].configuration
    rows: dict[str, Any] = {"noise": ", ".join(noise.label for noise in experiment.noises())}
    for name, (question, meanings) in _CONVENTIONS.items():
        chosen = dict.fromkeys(getattr(entry, name) for entry in experiment.conventions)
        rows[question] = "; ".join(meanings.get(value, str(value)) for value in chosen)
    asked = {"classifiers": "classifier", "sizes": "numbers of features", "limits": "limits"}
    rows |= {question: configuration[key] for key, question in asked.items() if configuration.get(key)}
    rows["standard deviation"] = "over folds and over sizes, each with n − 1"
    rows["seeds"] = ", ".join(map(str, experiment.seeds))
    rows["number of folds"] = str(experiment.folds)
    return rows


def _two_columns(rows: dict[str, Any], first: str, second: str) -> pd.DataFrame:
    texts = [value if isinstance(value, str) else json.dumps(value) for value in rows.values()]
    return pd.DataFrame({second: texts}, index=pd.Index(list(rows), name=first))


def _there(*tables: Table) -> tuple[Table, ...]:
    return tuple(table for table in tables if len(table.frame))
