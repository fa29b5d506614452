"""Tables of what was varied, of the fits, and of where the numbers come from."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd

from labelsieve._text import count
from labelsieve.report.analysis import Analysis
from labelsieve.report.summary import STABILITY, Summary
from labelsieve.report.tables import Table, show
from labelsieve.report.variations import rank_settings
from labelsieve.report.wording import listed, metric_title, metric_words

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


def noise_tables(analysis: Analysis) -> list[Table]:
    """Means over the data sets at every noise rate, by model and metric."""
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
        title = f"{metric_title(metric, analysis.summary.direction(metric))} against noise ({model})"
        note = f"Means over {count(len(shared), 'data set')}: {listed(shared)}."
        tables.append(Table(f"noise_{model}_{metric}", title, means.rename_axis("method"), note=note))
    return tables


def ablation_table(analysis: Analysis) -> Table | None:
    """Means over the data sets of every variant, and on how many of them it is better than the whole."""
    rows, keys = [], []
    for (classifier, metric), table in analysis.ablations.items():
        values = table.dropna()
        if values.empty:
            continue
        cost = analysis.summary.cost(metric, values)
        better = cost.lt(cost.iloc[:, 0], axis=0).sum()
        means = values.mean()
        words = [f"{means[name]:.3f} ({better[name]} of {len(values)})" for name in values.columns[1:]]
        title = metric_title(metric, analysis.summary.direction(metric))
        rows.append((title, classifier, means.iloc[0], *words))
        keys.append(means)
    if not rows:
        return None
    variants = list(table.columns)
    frame = pd.DataFrame(rows, columns=["metric", "judged by", *variants]).set_index("metric")
    note = f"Means over the data sets; in brackets, on how many of them the variant is better than {variants[0]}."
    return Table("ablation", "Ablation", _judged(analysis, frame), note=note, keys=pd.DataFrame(keys))


def effect_tables(analysis: Analysis) -> list[Table]:
    """Gain of each part: one row per classifier and pair of variants, then the same in long form, by metric."""
    effects = analysis.effects
    if effects.empty:
        return []
    pair = ["classifier", "fuller", "lesser", "sets"]
    metrics = analysis.facts.metrics
    by_metric = _outcomes(effects.groupby([*pair, "metric"], sort=False)["gain"])
    overall = _outcomes(effects.groupby(pair, sort=False)["gain"])
    parts = {"all metrics": overall}
    for metric in metrics:
        title = metric_title(metric, analysis.summary.direction(metric))
        known = by_metric[by_metric.index.get_level_values("metric") == metric]
        parts[title] = known.droplevel("metric").reindex(overall.index)
    words, keys, marks = (
        pd.DataFrame({title: part[value] for title, part in parts.items()})
        for value in ("words", "mean gain", "mark")
    )
    heads = {"classifier": "judged by", "fuller": "with", "lesser": "against", "sets": "which sets"}
    note = (
        "On how many data sets the first is better/equal/worse, and its mean gain there: positive is better, "
        "whichever way the metric goes. Over all metrics, a metric on a data set counts once. "
        "Bold: better in more than half."
    )
    # A metric without a data set has its row too.
    rows = pd.MultiIndex.from_tuples([(*key, metric) for key in overall.index for metric in metrics])
    long = by_metric[["better", "equal", "worse", "mean gain"]].reindex(rows.set_names([*pair, "metric"]))
    counts = ["better", "equal", "worse"]
    long = long.fillna(dict.fromkeys(counts, 0)).astype(dict.fromkeys(counts, int)).reset_index()
    long["metric"] = long["metric"].map(metric_words)
    first = "judged by" if analysis.several_judges else "with"
    frame = _judged(analysis, words.reset_index().rename(columns=heads)).set_index(first)
    return [
        Table(
            "ablation_effects",
            "What each part adds",
            frame,
            note=note,
            marks=marks.astype(object).fillna(""),
            keys=keys,
        ),
        Table(
            "ablation_effects_by_metric",
            "What each part adds, by metric",
            _judged(analysis, long.rename(columns=heads)).set_index(first),
            form="+.4f",
            note="Numbers of data sets where the first is better, equal and worse, and its mean gain.",
        ),
    ]


def _outcomes(gains: Any) -> pd.DataFrame:
    """Count wins, ties and losses of groups of gains, with their mean, in numbers and words."""
    found = pd.DataFrame(
        {
            "better": gains.agg(lambda gain: int((gain > 0).sum())),
            "equal": gains.agg(lambda gain: int((gain == 0).sum())),
            "worse": gains.agg(lambda gain: int((gain < 0).sum())),
            "mean gain": gains.agg(lambda gain: gain.to_numpy().mean()),
        }
    )
    counts = found[["better", "equal", "worse"]]
    found["words"] = (
        counts.astype(str).agg("/".join, axis=1)
        + ", "
        + found["mean gain"].map(lambda gain: show(gain, "+.4f"))
    )
    found["mark"] = np.where(2 * counts["better"] > counts.sum(axis=1), "best", "")
    return found


def setting_table(analysis: Analysis) -> Table | None:
    """Best and worst setting of every parameter over all data sets and metrics, by classifier."""
    rows, keys = [], []
    ahead_head = "best ahead of worst"
    for (judge, method, parameters), costs, settings, ranks in rank_settings(
        analysis.summary, analysis.sweeps
    ):
        best, worst = int(ranks.argmin()), int(ranks.argmax())
        ahead = costs[:, best] < costs[:, worst]
        keys.append(float(ahead.mean()))
        rows.append(
            {
                "judged by": judge,
                "method": method,
                "parameter": parameters,
                "best setting": settings[best],
                "average rank": float(ranks[best]),
                "worst setting": settings[worst],
                "average rank of the worst": float(ranks[worst]),
                ahead_head: f"{int(ahead.sum())} of {len(ahead)}",
                "mean gain": float((costs[:, worst] - costs[:, best]).mean()),
                "mean range": float(np.ptp(costs, axis=1).mean()),
            }
        )
    if not rows:
        return None
    note = (
        "Best and worst by average rank of the settings over data sets and metrics; in how many of these the best is "
        "ahead of the worst, and by how much in the mean. The range is between the best and the worst setting of each "
        "metric on each data set by itself."
    )
    form = {
        "average rank": ".2f",
        "average rank of the worst": ".2f",
        "mean gain": "+.4f",
        "mean range": ".4f",
    }
    frame = _judged(analysis, pd.DataFrame(rows))
    frame = frame.set_index(frame.columns[0])
    sort_keys = pd.DataFrame({ahead_head: keys})
    return Table("settings", "Which settings do best", frame, form, note, keys=sort_keys)


def sweep_tables(analysis: Analysis) -> list[Table]:
    """Best and worst setting by data set and metric, then every value in long form."""
    table = analysis.sweeps
    if table.empty:
        return []
    rows = []
    key = ["method", "parameters", "classifier", "dataset", "metric"]
    for (method, parameters, classifier, dataset, metric), group in table.groupby(key, sort=False):
        direction = analysis.summary.direction(metric)
        cost = analysis.summary.cost(metric, group["value"].astype(float))
        best, worst = group.loc[cost.idxmin()], group.loc[cost.idxmax()]
        rows.append(
            {
                "method": method,
                "parameter": parameters,
                "metric": metric_title(metric, direction),
                "judged by": classifier,
                "data set": dataset,
                "best setting": best["setting"],
                "best": float(best["value"]),
                "worst setting": worst["setting"],
                "worst": float(worst["value"]),
                "range": float(cost.max() - cost.min()),
            }
        )
    frame = _judged(analysis, pd.DataFrame(rows)).set_index("method")
    heads = {"dataset": "data set", "classifier": "judged by"}
    long = table[["method", "setting", "dataset", "metric", "classifier", "value"]].rename(columns=heads)
    return [
        Table("sensitivity", "Sensitivity to the parameters", frame),
        Table(
            "sensitivity_all",
            "All metrics at all settings",
            _judged(analysis, long.astype({"value": float})).set_index("method"),
        ),
    ]


def _judged(analysis: Analysis, frame: pd.DataFrame) -> pd.DataFrame:
    """Leave out the column of classifiers if there is only one."""
    return frame if analysis.several_judges else frame.drop(columns="judged by")


def curve_file(analysis: Analysis) -> Table:
    """Every curve in long form, for programs."""
    main, summary = analysis.main, analysis.summary
    means = summary.select(main.classifier, main.noise, summary.means)
    means = means[means["method"].isin(summary.shown)]
    for column, names in (("dataset", main.noise), ("metric", main.metrics), ("method", summary.shown)):
        means = means.assign(**{f"{column} place": pd.Categorical(means[column], list(names)).codes})
    means = means.sort_values([name for name in means if name.endswith(" place")], kind="stable")
    heads = {"dataset": "data set", "n_features": "features", "mean": "value"}
    frame = means[["dataset", "method", "metric", "size", "n_features", "mean"]].rename(columns=heads)
    return Table("curves", "All metrics at all sizes", frame.set_index("data set"))


def noise_file(analysis: Analysis) -> Table:
    """Every noise curve in long form, for programs."""
    frame = analysis.noise[["dataset", "model", "method", "metric", "rate", "value"]]
    frame = frame.rename(columns={"dataset": "data set"}).set_index("data set")
    return Table("noise_all", "All metrics at all noise rates", frame)


def cost_tables(analysis: Analysis) -> dict[str, Table]:
    """Seconds, memory, iterations and convergence by name: data sets by methods."""
    wanted = {
        "seconds": ("Seconds a fit", ".3g", "Mean over all fits."),
        "peak_mib": ("Peak memory of a fit (MiB)", ".3g", "The largest of all fits."),
        "n_iter": ("Iterations", ".4g", "Mean over all fits of the methods that iterate."),
        "converged": ("Share of the fits that converged", ".2f", ""),
    }
    tables = {}
    for name, (title, form, note) in wanted.items():
        frame = by_dataset(analysis.summary, name)
        if not frame.empty:
            tables[name] = Table(name, title, frame, form, note)
    return tables


def stability_tables(analysis: Analysis) -> list[Table]:
    """Indices of stability: data sets by methods, with the means below."""
    notes = {
        "kuncheva": "1 for equal sets of features, about 0 for random ones; mean over the sizes.",
        "nogueira": "1 for equal sets of features, about 0 for random ones; mean over the sizes.",
        "jaccard": "Mean share of common features, not corrected for chance; mean over the sizes.",
    }
    tables = []
    for index in STABILITY:
        frame = by_dataset(analysis.summary, index)
        if not frame.empty:
            # The mean over other data sets than the neighbours' could not be compared.
            frame.loc["mean"] = frame.mean(skipna=False)
            title = f"Stability of the selected features: {index.capitalize()}"
            tables.append(
                Table(
                    f"stability_{index}", title, frame.rename_axis("data set"), ".2f", notes[index], n_foot=1
                )
            )
    return tables


def by_dataset(summary: Summary, name: str) -> pd.DataFrame:
    """A cost or an index of stability: data sets by those methods that have any value."""
    facts = summary.facts
    if name in STABILITY:
        rows = [(found.dataset, found.method, found.index[name]) for found in facts.stability]
    else:
        rows = [(cost.dataset, cost.method, getattr(cost, name)) for cost in facts.costs]
    table = pd.DataFrame(rows, columns=["dataset", "method", "value"]).astype({"value": float}).dropna()
    frame = table.pivot(index="dataset", columns="method", values="value")
    datasets, methods = ([name for name in names if name in axis] for names, axis in (
        (summary.datasets, frame.index), (summary.shown, frame.columns)))  # fmt: skip
    return frame.reindex(index=datasets, columns=methods).rename_axis(index="data set", columns=None)


def gap_table(analysis: Analysis) -> Table:
    """Incomplete places by data set, noise and method."""
    rows = [(*gap.place, gap.n_done, gap.n_failed, gap.n_planned) for gap in analysis.facts.coverage.gaps]
    frame = pd.DataFrame(rows, columns=["data set", "noise", "method", "done", "failed", "planned"])
    return Table("missing", "What is not complete", frame.set_index("data set"))


def warning_table(analysis: Analysis) -> Table:
    """Warnings, most frequent first."""
    rows = [(note.method, note.text, note.n_cells) for note in analysis.facts.notes]
    frame = pd.DataFrame(rows, columns=["method", "warning", "cells"])
    return Table("warnings", "Warnings met", frame.set_index("method"))


def dataset_table(summary: Summary) -> Table:
    """Data sets as they were used, with their checksums."""
    rows = [
        (
            facts.name,
            facts.n_samples,
            facts.n_features,
            facts.n_labels,
            float(facts.cardinality),
            facts.checksum,
        )
        for facts in summary.datasets.values()
    ]
    columns = ["data set", "samples", "features", "labels", "true labels a sample", "SHA-256"]
    return Table("datasets", "Data sets", pd.DataFrame(rows, columns=columns).set_index("data set"), ".2f")


def convention_table(summary: Summary) -> Table:
    """Choices where papers leave something open."""
    experiment = summary.experiment
    configuration = summary.facts.runs[-1].configuration
    rows = {"noise": ", ".join(noise.label for noise in experiment.noises())}
    for name, (question, meanings) in _CONVENTIONS.items():
        chosen = dict.fromkeys(getattr(entry, name) for entry in experiment.conventions)
        rows[question] = "; ".join(meanings.get(value, str(value)) for value in chosen)
    for key, question in (
        ("classifiers", "classifier"),
        ("sizes", "numbers of features"),
        ("limits", "limits"),
    ):
        if configuration.get(key):
            rows[question] = _compact(configuration[key])
    rows["standard deviation"] = "over folds and over sizes, each with n − 1"
    rows["seeds"] = ", ".join(map(str, experiment.seeds))
    rows["number of folds"] = str(experiment.folds)
    return Table("conventions", "Conventions", _two_columns(rows, "left open by papers", "here"))


def run_table(summary: Summary) -> Table:
    """Every call of the runner."""
    rows = [
        (run.number, run.started, run.finished or "stopped", run.command, run.n_computed)
        for run in summary.facts.runs
    ]
    columns = ["run", "started", "finished", "command", "cells computed"]
    return Table("runs", "Runs", pd.DataFrame(rows, columns=columns).set_index("run"))


def environment_table(summary: Summary) -> Table:
    """Versions and machine of the last run."""
    facts = dict(summary.facts.runs[-1].environment)
    facts |= facts.pop("versions", {})
    rows = {str(name): _compact(value) for name, value in facts.items()}
    return Table("environment", "Machine and versions", _two_columns(rows, "what", "value"))


def configuration_text(summary: Summary) -> str:
    """Configuration of the last run, in full."""
    return json.dumps(summary.facts.runs[-1].configuration, indent=2)


def _two_columns(rows: dict[str, str], first: str, second: str) -> pd.DataFrame:
    return pd.DataFrame({second: list(rows.values())}, index=pd.Index(list(rows), name=first))


def _compact(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
