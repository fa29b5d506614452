"""What the charts of a page draw, as values JSON can hold; the page's own script draws them.

A chart has *choices* (a metric, a data set, a judge), a *panel* for every combination of them that there is, and
*series*: methods and references, unless it names others. There are three kinds: lines (values over numbers), dots (a
row for each series, a dot for each item) and a scatter of ours against theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from labelsieve._text import printable
from labelsieve.report.analysis.cells import STABILITY, Place
from labelsieve.report.analysis.run_analysis import Analysis
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
from labelsieve.report.interactive.sweeps import ablation_chart, sensitivity_chart, settings_chart
from labelsieve.report.wording import metric_title

__all__ = ["page_charts"]

# Of a dozen lines and more, those that a reader looks for first are shown at first.
_METHODS_SHOWN, _REFERENCES_SHOWN = 4, 3


def page_charts(analysis: Analysis) -> dict[str, Any]:
    """The series that charts share, and by section the chart that stands there; sections without one are left out."""
    charts = {
        "ranks": _ranks(analysis),
        "curves": _curves(analysis),
        "paper": _paper(analysis),
        "costs": _costs(analysis),
        "convergence": _convergence(analysis),
        "stability": _stability(analysis),
        "noise": _noise(analysis),
        "ablation": ablation_chart(analysis),
        "sensitivity": sensitivity_chart(analysis),
        "settings": settings_chart(analysis),
    }
    return {
        "series": _methods(analysis),
        "charts": {anchor: chart for anchor, chart in charts.items() if chart is not None},
    }


def _methods(analysis: Analysis) -> list[dict[str, Any]]:
    """Methods, then references; `first` are those shown before the reader chooses."""
    ranks = {**dict.fromkeys(analysis.shown, np.inf), **analysis.main.among_all, **analysis.main.overall}
    first = {
        *sorted(analysis.compared, key=ranks.__getitem__)[:_METHODS_SHOWN],
        *sorted(analysis.references, key=ranks.__getitem__)[:_REFERENCES_SHOWN],
        analysis.main.control,
    }
    return [
        {
            "name": printable(name),
            "reference": name in analysis.references,
            "control": name == analysis.main.control,
            "first": name in first,
        }
        for name in analysis.shown
    ]


def _ranks(analysis: Analysis) -> Chart | None:
    main = analysis.main
    if not main.standings or len(main.ranked_methods) < 2:
        return None
    metrics = [standing.metric for standing in main.standings]
    titles = [metric_title(metric, analysis.summary.direction(metric)) for metric in metrics]
    panels: Panels = {
        panel_key(0): {
            "rows": {
                analysis.shown.index(name): {
                    "main": short(rank),
                    "items": [
                        short(float(standing.average[main.ranked_methods.index(name)]))
                        for standing in main.standings
                    ],
                }
                for name, rank in main.overall.items()
            },
            "items": titles,
        }
    }
    for place, standing in enumerate(main.standings, start=1):
        panels[panel_key(place)] = {
            "rows": {
                analysis.shown.index(name): {
                    "main": short(float(average)),
                    "items": [short(float(rank)) for rank in ranks],
                }
                for name, average, ranks in zip(
                    standing.methods, standing.average, standing.ranks.T, strict=True
                )
            },
            "items": shown_names(standing.datasets),
        }
    return {
        "kind": "dots",
        "value": "average rank",
        "item": "rank",
        "from": 1,
        "order": 1,
        "band": main.nemenyi_cd,
        "bandWords": "not significantly worse than the first (Nemenyi, 5%)",
        "choices": [choice("metric", ["all metrics", *titles])],
        "panels": panels,
    }


def _curves(analysis: Analysis) -> Chart | None:
    """Every metric against the number of features, at the noise of the tables, by all judges."""
    summary, noise = analysis.summary, analysis.main.noise
    metrics, judges = analysis.facts.metrics, analysis.facts.classifiers
    panels: Panels = {}
    has_sizes = False
    for (m, metric), (d, (dataset, level)), (j, judge) in product(
        enumerate(metrics), enumerate(noise.items()), enumerate(judges)
    ):
        rows = {}
        for place, method in enumerate(analysis.shown):
            curve = summary.curve(Place(dataset, level, method), judge, metric)
            if curve is None:
                continue
            is_line = None not in curve.sizes
            has_sizes |= is_line and len(curve.sizes) > 1
            rows[place] = {
                "x": curve.n_features.tolist() if is_line else None,
                "y": shorts(curve.values),
                "e": shorts(curve.fold_std),
            }
        if rows:
            panels[panel_key(m, d, j)] = {"rows": rows}
    if not has_sizes:
        return None
    return {
        "kind": "lines",
        "x": "features kept",
        "log": True,
        "spread": "over folds",
        "all": 1,
        "choices": [
            metric_choice(analysis.summary, metrics),
            choice("data set", noise),
            choice("judged by", judges),
        ],
        "panels": panels,
    }


def _paper(analysis: Analysis) -> Chart | None:
    if analysis.paper is None:
        return None
    checks = {analysis.main.classifier: analysis.paper, **analysis.other_papers}
    metrics = [table.metric for table in analysis.paper.tables]
    panels: Panels = {}
    for j, check in enumerate(checks.values()):
        for table in check.tables:
            if table.metric in metrics:
                panels[panel_key(metrics.index(table.metric), j)] = {
                    "rows": {
                        analysis.shown.index(method): {"x": shorts(theirs), "y": shorts(ours)}
                        for method, theirs, ours in zip(
                            table.methods, table.theirs.T, table.ours.T, strict=True
                        )
                    },
                    "items": shown_names(table.datasets),
                }
    return {
        "kind": "scatter",
        "x": "printed",
        "y": "ours",
        "choices": [metric_choice(analysis.summary, metrics), choice("judged by", checks)],
        "panels": panels,
    }


def _costs(analysis: Analysis) -> Chart | None:
    panels: Panels = {}
    quantities = {"seconds": "seconds a fit", "peak_mib": "peak memory (MiB)"}
    for place, field in enumerate(quantities):
        values = {(cost.dataset, cost.method): getattr(cost, field) for cost in analysis.facts.costs}
        panel = _by_dataset(analysis, values)
        if panel is not None:
            panels[panel_key(place)] = panel
    if not panels:
        return None
    return {
        "kind": "dots",
        "log": True,
        "order": 1,
        "value": "median",
        "choices": [choice("quantity", quantities.values())],
        "panels": panels,
    }


def _stability(analysis: Analysis) -> Chart | None:
    panels: Panels = {}
    for place, index in enumerate(STABILITY):
        values = {(found.dataset, found.method): found.index[index] for found in analysis.facts.stability}
        panel = _by_dataset(analysis, values)
        if panel is not None:
            panels[panel_key(place)] = panel
    if not panels:
        return None
    names = [index.capitalize() for index in STABILITY]
    return {
        "kind": "dots",
        "order": -1,
        "value": "median",
        "choices": [choice("index", names)],
        "panels": panels,
    }


def _by_dataset(analysis: Analysis, values: Mapping[tuple[str, str], float | None]) -> dict[str, Any] | None:
    """A row for each method, an item for each data set; the median stands out."""
    datasets = [name for name in analysis.summary.datasets if any(key[0] == name for key in values)]
    rows = {}
    for place, method in enumerate(analysis.shown):
        items = [values.get((dataset, method)) for dataset in datasets]
        known = [item for item in items if item is not None and np.isfinite(item)]
        if known:
            drawn = [None if item is None else short(item) for item in items]
            rows[place] = {"main": short(float(np.median(known))), "items": drawn}
    return {"rows": rows, "items": shown_names(datasets)} if rows else None


def _convergence(analysis: Analysis) -> Chart | None:
    descents = analysis.facts.descents
    if not descents:
        return None
    methods = list(dict.fromkeys(found.method for found in descents))
    datasets = list(analysis.summary.datasets)
    panels: Panels = {}
    for found in descents:
        rows = panels.setdefault(panel_key(methods.index(found.method)), {"rows": {}})["rows"]
        rows[datasets.index(found.dataset)] = {
            "x": list(range(len(found.objective))),
            "y": [short(value) for value in found.objective],
        }
    return {
        "kind": "lines",
        "x": "iteration",
        "y": "objective",
        "logY": True,
        "series": other_series(datasets),
        "choices": [choice("method", methods)],
        "panels": panels,
    }


def _noise(analysis: Analysis) -> Chart | None:
    if not analysis.noise:
        return None
    models = list(dict.fromkeys(curve.model for curve in analysis.noise))
    datasets, metrics = list(analysis.summary.datasets), list(analysis.facts.metrics)
    panels: Panels = {}
    for curve in analysis.noise:
        key = panel_key(metrics.index(curve.metric), datasets.index(curve.dataset), models.index(curve.model))
        rows = panels.setdefault(key, {"rows": {}})["rows"]
        rows[analysis.shown.index(curve.method)] = {
            "x": list(curve.rates),
            "y": [short(value) for value in curve.values],
        }
    return {
        "kind": "lines",
        "x": "noise rate",
        "all": 1,
        "choices": [
            metric_choice(analysis.summary, metrics),
            choice("data set", datasets),
            choice("noise", models),
        ],
        "panels": panels,
    }
