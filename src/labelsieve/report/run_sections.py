"""Sections on costs, stability, noise, ablation, sensitivity, failures and provenance."""

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

# Longer tables are only written to files.
_MOST_ROWS = 200
# Convention -> its description, and the descriptions of its values.
_CONVENTIONS: dict[str, tuple[str, dict[Any, str]]] = {
    "test_labels": (
        "test labels",
        {
            "clean": "without noise",
            "noisy": "with noise",
            "noisy-f1": "with noise, only for F1",
        },
    ),
    "train_labels": (
        "training labels of the classifier",
        {"candidates": "candidate labels", "clean": "true labels"},
    ),
    "one_class": (
        "labels with a single class in the training rows",
        {"lowest": "scored below all other labels", "constant": "constant score, as in scikit-learn"},
    ),
    "absent_labels": (
        "labels without a positive in the training rows",
        {"keep": "included", "skip": "left out"},
    ),
    "ranking_scores": (
        "scores for ranking metrics",
        {"decision": "decision values", "hard": "0/1 predictions"},
    ),
    "empty_rows": (
        "rows without true labels",
        {"skip": "left out of ranking metrics", "perfect": "counted as perfect, as in scikit-learn"},
    ),
    "ties": (
        "tied scores",
        {"errors": "counted as errors", "index": "ordered by label index in coverage and average precision"},
    ),
    "coverage": (
        "coverage",
        {
            "zero-based": "(rank of the worst true label − 1) / number of labels",
            "count": "rank of the worst true label, as in scikit-learn",
            "one-based": "rank of the worst true label / number of labels",
            "excess": "(rank of the worst true label − true labels) / false labels",
        },
    ),
    "f1_undefined": (
        "F1 without true and predicted positives",
        {0: "0", 1: "1", "skip": "left out"},
    ),
    "folds": (
        "folds",
        {
            "shuffled": "shuffled by seed",
            "stratified": "iterative stratification",
            "consecutive": "consecutive rows",
        },
    ),
}


def costs(analysis: Analysis) -> Iterator[Section]:
    """Show time, memory, iterations and convergence by dataset and method."""
    wanted = {
        "seconds": ("Seconds per fit", "sig", "Mean over all fits."),
        "peak_mib": ("Peak memory per fit (MiB)", "sig", "Maximum over all fits."),
        "n_iter": ("Iterations", "sig", "Mean over all fits of iterative methods."),
        "converged": ("Fraction of fits that converged", ".2f", ""),
    }
    tables = [
        Table(name, title, analysis.summary.by_dataset(name), form, note)
        for name, (title, form, note) in wanted.items()
    ]
    yield Section("costs", "Time and memory", tables=_non_empty(*tables[:2]))
    yield Section("convergence", "Convergence", tables=_non_empty(*tables[2:]))


def stability(analysis: Analysis) -> Iterator[Section]:
    """Show stability indices by dataset and method."""
    found = analysis.facts.stability
    if not found:
        return
    corrected = "Mean over the sizes. 1 for identical selections, about 0 for random selections."
    uncorrected = "Mean over the sizes. Mean fraction of common features, not corrected for chance."
    tables = []
    for index in STABILITY:
        frame = analysis.summary.by_dataset(index)
        # Means over different datasets are not comparable.
        frame.loc["mean"] = frame.mean(skipna=False)
        title = f"Stability of the selected features: {index.capitalize()}"
        note = uncorrected if index == "jaccard" else corrected
        tables.append(Table(f"stability_{index}", title, frame.rename_axis("dataset"), ".2f", note, n_foot=1))
    text = f"Similarity of the features that a method selects in {found[0]['n_rankings']} folds and seeds."
    yield Section("stability", "Stability", (text,), tuple(tables[:1]), tuple(tables[1:]))


def noise(analysis: Analysis) -> Iterator[Section]:
    """Show means over datasets by noise rate, and all values in a file."""
    if analysis.noise.empty:
        return
    tables = []
    for (model, metric), curves in analysis.noise.groupby(["model", "metric"], sort=False):
        grid = curves.pivot(index=["method", "dataset"], columns="rate", values="value").dropna()
        # Means over different datasets are not comparable.
        methods = grid.index.unique("method")
        complete = grid.groupby("dataset").size() == len(methods)
        shared = [name for name in analysis.summary.datasets if complete.get(name, False)]
        if not shared:
            continue
        means = grid[grid.index.isin(shared, level="dataset")].groupby("method").mean()
        means = means.reindex([name for name in analysis.summary.shown if name in methods])
        means.columns = [f"{rate:g}" for rate in means.columns]
        title = f"{analysis.summary.title(metric)} by noise rate ({model})"
        note = f"Means over {count(len(shared), 'dataset')}: {listed(shared)}."
        tables.append(Table(f"noise_{model}_{metric}", title, means.rename_axis("method"), note=note))
    frame = analysis.noise[["dataset", "model", "method", "metric", "rate", "value"]].set_index("dataset")
    file = Table("noise_all", "All metrics at all noise rates", frame)
    yield Section("noise", "Noise", tables=tuple(tables), files=(file,))


def ablation(analysis: Analysis) -> Iterator[Section]:
    """Show the gain of each part and the means of all variants."""
    if analysis.effects.empty:
        return
    text = "Comparisons of the full method with all variants, and of variants that differ in one part."
    effects, by_metric = _effect_tables(analysis)
    tables = _non_empty(effects, _variant_table(analysis))
    yield Section("ablation", "Ablation", (text,), tables, (by_metric,))


def _variant_table(analysis: Analysis) -> Table:
    """Make the table of means by variant with the numbers of datasets where it beats the full method."""
    rows = []
    for (classifier, metric), table in analysis.ablations.items():
        values = table.dropna()
        if values.empty:
            continue
        cost = analysis.summary.cost(metric, values)
        better = cost.lt(cost.iloc[:, 0], axis=0).sum()
        full, *means = values.mean().items()
        words = {name: f"{mean:.3f} ({better[name]} of {len(values)})" for name, mean in means}
        title = analysis.summary.title(metric)
        rows.append({"metric": title, "judged by": classifier, **dict([full]), **words})
    name = analysis.summary.methods_with_role("ablation")[0]
    note = f"Means over datasets. In brackets: number of datasets where the variant is better than {name}."
    return Table("ablation", "Ablation", _judged(analysis, rows), note=note)


def _effect_tables(analysis: Analysis) -> tuple[Table, Table]:
    """Make the tables of gains by classifier and pair of variants, overall and by metric."""
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
        "Numbers of datasets where the first variant is better/equal/worse, and its mean gain. A positive gain is an "
        "improvement for all metrics. The column for all metrics counts each metric on each dataset. "
        "Bold: better in more than half."
    )
    shorter = "Numbers of datasets where the first variant is better, equal and worse, and its mean gain."
    title = "Gain of each part"
    return (
        Table("ablation_effects", title, frame, note=note, marks=marks.rename(columns=titles)),
        Table("ablation_effects_by_metric", f"{title}, by metric", _judged(analysis, long), "+.4f", shorter),
    )


def sensitivity(analysis: Analysis) -> Iterator[Section]:
    """Show the best and worst settings overall and by dataset and metric, and all values in a file."""
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
            "dataset": best["dataset"],
            "best setting": best["setting"],
            "best": best["value"],
            "worst setting": worst["setting"].to_numpy(),
            "worst": worst["value"].to_numpy(),
            "range": np.abs(worst["value"].to_numpy() - best["value"]),
        }
    )
    sweep = Table("sensitivity", "Sensitivity to the parameters", _judged(analysis, frame))
    long = found[["method", "setting", "dataset", "metric", "classifier", "value"]]
    long = long.rename(columns={"classifier": "judged by"})
    file = Table("sensitivity_all", "All metrics at all settings", _judged(analysis, long))
    is_long = len(sweep.frame) > _MOST_ROWS
    texts = [f"Results by dataset and metric are in tables/{sweep.stem}.csv."] if is_long else []
    doubles = found[found["second"].notna()]
    if len(doubles):
        methods = listed(sorted(doubles["method"].unique()))
        texts.append(f"The chart of two parameters shows means over datasets for {methods}.")
    folded, files = ((), (sweep, file)) if is_long else ((sweep,), (file,))
    yield Section(
        "sensitivity", "Sensitivity", tuple(texts), _non_empty(_setting_table(analysis)), folded, files
    )


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
        "Best and worst setting by average rank over datasets and metrics, how often the best beats the worst, and its "
        "mean gain. The range is that between the best and worst values of each metric on each dataset."
    )
    frame = _judged(analysis, analysis.settings[[*heads]].rename(columns=heads))
    ranks_form = dict.fromkeys([heads["best_rank"], heads["worst_rank"]], ".2f")
    form = {**ranks_form, "mean gain": "+.4f", "mean range": ".4f"}
    return Table("settings", "Best and worst settings", frame, form, note)


def _judged(analysis: Analysis, rows: Any) -> pd.DataFrame:
    """Make a dataframe indexed by its first column. Drop the classifier if there is only one."""
    frame = pd.DataFrame(rows)
    if not analysis.several_judges:
        frame = frame.drop(columns="judged by", errors="ignore")
    return frame.set_index(frame.columns[0]) if len(frame.columns) else frame


def failures(analysis: Analysis) -> Iterator[Section]:
    """Show incomplete results by dataset, noise and method, and warnings."""
    facts = analysis.facts
    heads = ["dataset", "noise", "method", "done", "failed", "planned"]
    gaps = pd.DataFrame(facts.coverage.gaps, columns=heads)
    tables = _non_empty(Table("missing", "Incomplete results", gaps.set_index("dataset")))
    is_long = len(gaps) > _MOST_ROWS
    texts = []
    if facts.failures:
        methods = listed(dict.fromkeys(failure["method"] for failure in facts.failures))
        texts.append(f"{count(facts.coverage.n_failed, 'cell')} of {methods} failed.")
    if is_long:
        texts.append("Incomplete results are listed in tables/missing.csv.")
    kind = "files" if is_long else "folded"
    yield Section("failures", "Failed and missing cells", tuple(texts), **{kind: tables})
    notes = pd.DataFrame(facts.notes, columns=["method", "text", "n_cells"])
    notes = notes.rename(columns={"text": "warning", "n_cells": "cells"}).set_index("method")
    yield Section("warnings", "Warnings", folded=_non_empty(Table("warnings", "Warnings by method", notes)))


def provenance(analysis: Analysis) -> Iterator[Section]:
    """Show datasets with checksums, conventions, runs, versions and machine."""
    facts = analysis.facts
    columns = {
        "name": "dataset",
        "n_samples": "rows",
        "n_features": "features",
        "n_labels": "labels",
        "cardinality": "true labels per row",
        "checksum": "SHA-256",
    }
    datasets = pd.DataFrame(facts.datasets)[[*columns]].rename(columns=columns)
    runs = pd.DataFrame(facts.runs)[["number", "started", "finished", "command", "n_computed"]]
    runs = runs.fillna({"finished": "stopped"}).rename(
        columns={"number": "run", "n_computed": "cells computed"}
    )
    machine = dict(facts.runs[-1].environment)
    machine |= machine.pop("versions", {})
    conventions = _two_columns(_conventions(analysis), "convention", "value")
    yield Section(
        "provenance",
        "Data and settings",
        tables=(
            Table("datasets", "Datasets", datasets.set_index("dataset"), ".2f"),
            Table("conventions", "Conventions", conventions),
        ),
        folded=(
            Table("runs", "Runs", runs.set_index("run")),
            Table("environment", "Machine and versions", _two_columns(machine, "item", "value")),
        ),
    )


def _conventions(analysis: Analysis) -> dict[str, Any]:
    """Describe the choices that papers often leave open."""
    experiment = analysis.summary.experiment
    configuration = analysis.facts.runs[-1].configuration
    rows: dict[str, Any] = {"noise": ", ".join(noise.label for noise in experiment.noises())}
    for name, (question, meanings) in _CONVENTIONS.items():
        chosen = dict.fromkeys(getattr(entry, name) for entry in experiment.conventions)
        rows[question] = "; ".join(meanings.get(value, str(value)) for value in chosen)
    settings = {"classifiers": "classifier", "sizes": "numbers of features", "limits": "limits"}
    rows |= {name: configuration[key] for key, name in settings.items() if configuration.get(key)}
    rows["standard deviation"] = "over folds and over sizes, with n − 1"
    rows["seeds"] = ", ".join(map(str, experiment.seeds))
    rows["number of folds"] = str(experiment.folds)
    return rows


def _two_columns(rows: dict[str, Any], first: str, second: str) -> pd.DataFrame:
    texts = [value if isinstance(value, str) else json.dumps(value) for value in rows.values()]
    return pd.DataFrame({second: texts}, index=pd.Index(list(rows), name=first))


def _non_empty(*tables: Table) -> tuple[Table, ...]:
    return tuple(table for table in tables if len(table.frame))
