"""Charts of what was varied on purpose: parts of a method, one parameter, two parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from labelsieve.report.analysis.run_analysis import Analysis
from labelsieve.report.analysis.sensitivity import Sweep
from labelsieve.report.interactive.panels import (
    Chart,
    Panels,
    choice,
    metric_choice,
    other_series,
    panel_key,
    short,
    shorts,
    shown_names,
)

__all__ = ["ablation_chart", "sensitivity_chart", "settings_chart"]


def ablation_chart(analysis: Analysis) -> Chart | None:
    """Variants of a method: a row for each, a dot for each data set."""
    if not analysis.ablations:
        return None
    metrics, judges = analysis.facts.metrics, analysis.facts.classifiers
    panels: Panels = {}
    for found in analysis.ablations:
        whole = np.isfinite(found.values).all(axis=1)
        if whole.any():
            values = found.values[whole]
            panels[panel_key(metrics.index(found.metric), judges.index(found.classifier))] = {
                "rows": {
                    column: {"main": short(float(values[:, column].mean())), "items": shorts(values[:, column])}
                    for column in range(len(found.variants))
                },
                "items": shown_names(name for name, is_whole in zip(found.datasets, whole, strict=True) if is_whole),
            }  # fmt: skip
    variants = analysis.ablations[0].variants
    return {
        "kind": "dots",
        "value": "mean",
        "series": other_series(variants, control=variants[0]),
        "choices": [metric_choice(analysis.summary, metrics), choice("judged by", judges)],
        "panels": panels,
    }


def sensitivity_chart(analysis: Analysis) -> Chart | None:
    """Parameters that were varied alone: a line for each data set."""
    single = [sweep for sweep in analysis.sweeps if len(sweep.parameters) == 1 and sweep.is_numeric]
    if not single:
        return None
    datasets = list(analysis.summary.datasets)
    named, choices = _sweep_choices(analysis, single)
    panels: Panels = {}
    for sweep in single:
        rows = panels.setdefault(named(sweep), {"rows": {}})["rows"]
        rows[datasets.index(sweep.dataset)] = {"x": list(sweep.grid[0]), "y": shorts(sweep.values)}
    return {
        "kind": "lines",
        "log": True,
        "x": "value of the parameter",
        "series": other_series(datasets),
        "choices": choices,
        "panels": panels,
    }


def settings_chart(analysis: Analysis) -> Chart | None:
    """Two parameters: a line for each value of the second, means over the data sets that all have."""
    double = [sweep for sweep in analysis.sweeps if len(sweep.parameters) == 2 and sweep.is_numeric]
    if not double:
        return None
    named, choices = _sweep_choices(analysis, double)
    groups: dict[str, list[Sweep]] = {}
    for sweep in double:
        if np.isfinite(sweep.values).all():
            groups.setdefault(named(sweep), []).append(sweep)
    lines = list(
        dict.fromkeys(f"{sweep.parameters[1]} = {value:g}" for sweep in double for value in sweep.grid[1])
    )
    panels: Panels = {}
    for key, sweeps in groups.items():
        mean = np.mean([sweep.values for sweep in sweeps], axis=0)
        (first, second), name = sweeps[0].grid, sweeps[0].parameters[1]
        panels[key] = {
            "rows": {
                lines.index(f"{name} = {value:g}"): {"x": list(first), "y": shorts(mean[:, column])}
                for column, value in enumerate(second)
            }
        }
    return {
        "kind": "lines",
        "log": True,
        "x": "value of the first parameter",
        "series": other_series(lines),
        "choices": choices,
        "panels": panels,
    }


def _sweep_choices(analysis: Analysis, sweeps: Sequence[Sweep]) -> tuple[Callable[[Sweep], str], list[Any]]:
    """How a sweep is found among the choices, and the choices."""
    titles = list(dict.fromkeys(_sweep_title(sweep) for sweep in sweeps))
    metrics, judges = analysis.facts.metrics, analysis.facts.classifiers

    def named(sweep: Sweep) -> str:
        judge = judges.index(sweep.classifier)
        return panel_key(titles.index(_sweep_title(sweep)), metrics.index(sweep.metric), judge)

    return named, [
        choice("parameter", titles),
        metric_choice(analysis.summary, metrics),
        choice("judged by", judges),
    ]


def _sweep_title(sweep: Sweep) -> str:
    return f"{sweep.method}: {' × '.join(sweep.parameters)}"
