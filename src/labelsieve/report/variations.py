"""Effects of varying one thing: the noise, a part of a method, a parameter."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from labelsieve.report.statistics import average_ranks
from labelsieve.report.summary import DIGITS, Summary

__all__ = ["ablation_effects", "ablations", "noise_curves", "rank_settings", "sweeps"]

#: Columns that identify a sweep over data sets and metrics.
SWEEP = ["classifier", "method", "parameters"]


def noise_curves(summary: Summary, classifier: str) -> pd.DataFrame:
    """Follow every method over the rates of each noise model that has several.

    The columns are model, dataset, method, metric, rate and value.
    """
    levels = [
        (noise, noise.rsplit(" ", 1)[0], rate)
        for noise, rate in summary.facts.noise_rates.items()
        if rate is not None
    ]
    table = summary.scores.merge(pd.DataFrame(levels, columns=["noise", "model", "rate"]), on="noise")
    table = table[table["classifier"] == classifier]
    key = ["model", "dataset", "method", "metric"]
    order = {
        "model": list(dict.fromkeys(model for _, model, _ in levels)),
        "dataset": list(summary.datasets),
        "method": list(summary.shown),
        "metric": list(summary.facts.metrics),
    }
    for column, names in order.items():
        table = table[table[column].isin(names)]
        table[column] = pd.Categorical(table[column], categories=names)
    several = table.groupby(key, observed=True)["rate"].transform("size") > 1
    table = table[several].sort_values([*key, "rate"]).astype(dict.fromkeys(key, str))
    return table.rename(columns={"mean": "value"})[[*key, "rate", "value"]].reset_index(drop=True)


def ablations(summary: Summary, noise: dict[str, str]) -> dict[tuple[str, str], pd.DataFrame]:
    """Classifier, metric -> data sets by variants of a method, the first of them whole; NaN for gaps."""
    variants = list(summary.methods_with_role("ablation"))
    if len(variants) < 2:
        return {}
    found = {}
    for classifier in summary.facts.classifiers:
        scores = summary.select(classifier, noise)
        for metric in summary.facts.metrics:
            rows = scores[(scores["metric"] == metric) & scores["method"].isin(variants)]
            table = rows.pivot(index="dataset", columns="method", values="mean")
            found[classifier, metric] = table.reindex(index=list(noise), columns=variants).astype(float)
    return found


def ablation_effects(summary: Summary, found: dict[tuple[str, str], pd.DataFrame]) -> pd.DataFrame:
    """Compare the whole method with every variant, and variants that differ in one parameter with each other.

    The columns are classifier, fuller, lesser, sets (what only the lesser sets), metric, dataset and gain, by how
    much the fuller is better on a data set that has both.
    """
    params = {method.name: method.params for method in summary.experiment.all_methods()}
    parts = []
    for (classifier, metric), table in found.items():
        cost = summary.cost(metric, table)
        names = list(table.columns)
        for fuller, lesser in product(names, names):
            differing = {
                name: value for name, value in params[lesser].items() if params[fuller].get(name) != value
            }
            is_one_part = len(differing) == 1 and set(params[fuller]) == set(params[lesser]) - set(differing)
            if fuller == lesser or not (fuller == names[0] or is_one_part):
                continue
            gain = (cost[lesser] - cost[fuller]).round(DIGITS).dropna()
            sets = ", ".join(f"{name} = {str(value).lower()}" for name, value in differing.items())
            parts += [
                (classifier, fuller, lesser, sets, metric, dataset, value) for dataset, value in gain.items()
            ]
    columns = ["classifier", "fuller", "lesser", "sets", "metric", "dataset", "gain"]
    frame = pd.DataFrame(parts, columns=columns)
    # All metrics of a pair follow one another.
    order = {key: place for place, key in enumerate(product(summary.facts.classifiers, params, params))}
    places = [order[key] for key in zip(frame["classifier"], frame["fuller"], frame["lesser"], strict=True)]
    return frame.iloc[np.argsort(places, kind="stable")].reset_index(drop=True)


def sweeps(summary: Summary, noise: dict[str, str]) -> pd.DataFrame:
    """Collect sweeps of one or two parameters.

    The columns are those of `SWEEP`, setting (in words), first and second (values of the parameters), dataset,
    metric and value, NaN for gaps. Names of two parameters are joined by " × ".
    """
    settings: dict[tuple[str, tuple[str, ...]], dict[tuple[Any, ...], str]] = {}
    for sweep in summary.experiment.sweeps:
        names = tuple(sweep.parameters)
        if len(names) <= 2:
            group = settings.setdefault((sweep.method, names), {})
            group |= {tuple(method.params[name] for name in names): method.name for method in sweep.methods()}
    parts = []
    for (slug, names), group in settings.items():
        rows = [
            (name, ", ".join(f"{key} = {value}" for key, value in zip(names, values, strict=True)), *values)
            for values in _rising(group)
            for name in (group[values],)
        ]
        columns = ["name", "setting", "first", "second"][: 2 + len(names)]
        table = pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(columns[2:], object))
        for classifier in summary.facts.classifiers:
            scores = summary.select(classifier, noise).rename(columns={"method": "name", "mean": "value"})
            cells = pd.DataFrame(product(noise, summary.facts.metrics), columns=["dataset", "metric"])
            cells = cells.merge(table, how="cross")
            cells = cells.merge(scores[["name", "dataset", "metric", "value"]], how="left")
            known = cells.groupby(["dataset", "metric"])["value"].transform("count") > 0
            parts.append(
                cells[known].assign(classifier=classifier, method=slug, parameters=" × ".join(names))
            )
    columns = [*SWEEP, "setting", "first", "second", "dataset", "metric", "value"]
    rows = [row for part in parts for row in part.to_dict("records")]
    # Not concat: the values of one parameter may be of any type, and a second parameter may be missing.
    return pd.DataFrame(rows, columns=columns, dtype=object).astype({"value": float})


def rank_settings(
    summary: Summary, table: pd.DataFrame
) -> Iterator[tuple[tuple[str, str, str], np.ndarray, list[str], np.ndarray]]:
    """For every sweep: its key, costs (metrics on data sets without gaps by settings), settings, average ranks."""
    for key, group in table.groupby(SWEEP, sort=False):
        curves = [(metric, curve) for (_, metric), curve in group.groupby(["dataset", "metric"], sort=False)]
        whole = [(metric, curve) for metric, curve in curves if curve["value"].notna().all()]
        if whole and len(whole[0][1]) > 1:
            costs = np.array([summary.cost(metric, curve["value"].to_numpy()) for metric, curve in whole])
            yield key, costs.astype(float), whole[0][1]["setting"].tolist(), average_ranks(costs, "lower")


def is_numeric(values: pd.Series) -> bool:
    """Tell if all values of a parameter are numbers, and not truth values."""
    return all(isinstance(value, Real) and not isinstance(value, bool) for value in values)


def _rising(values: Any) -> list[Any]:
    """Sort values; those without an order stay as they came."""
    try:
        return sorted(values)
    except TypeError:
        return list(values)
