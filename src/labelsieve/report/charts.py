"""Charts of a report as data: panels, series and axes, drawn by the script of the page and by matplotlib.

A chart has *choices* (a metric, a data set, a classifier), a *panel* for every combination of them that has data, and
*series*: methods and references, unless it names others. There are three kinds: lines (values over numbers), dots (a
row for each series, a dot for each item) and a scatter of ours against theirs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from labelsieve._text import printable
from labelsieve.report.analysis import Analysis
from labelsieve.report.run_tables import by_dataset
from labelsieve.report.summary import STABILITY, Summary
from labelsieve.report.variations import is_numeric
from labelsieve.report.wording import metric_title

__all__ = ["Chart", "Choice", "Panel", "Series", "charts_of", "page_charts"]

# A page shows these many of the best methods and references at first.
_METHODS_SHOWN, _REFERENCES_SHOWN = 4, 3


class Series(NamedTuple):
    """A line, or a row of dots."""

    name: str
    reference: bool = False
    control: bool = False
    #: Shown before the reader chooses.
    first: bool = True


class Choice(NamedTuple):
    """Options of which a panel shows one; charts with a choice of the same name follow one another."""

    name: str
    options: tuple[str, ...]
    #: Of metrics: which values are better, and names for files.
    better: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class Panel(NamedTuple):
    """Values by the position of their series.

    A line has "x" (None for a level without places), "y" and perhaps "e", the deviations. A row of dots has "main"
    and "items"; a scatter has "x" and "y" by item.
    """

    rows: dict[int, dict[str, Any]]
    #: Names of the items of a row.
    items: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chart:
    """A chart as data."""

    kind: Literal["lines", "dots", "scatter"]
    choices: tuple[Choice, ...]
    #: By the positions of the chosen options.
    panels: dict[tuple[int, ...], Panel]
    series: tuple[Series, ...]
    #: The choice whose options are the panels of one figure, and if figures show the first classifier only.
    across: str = ""
    first_judge: bool = False
    #: Names of the axes, of the main dot of a row and of its items.
    x: str = ""
    y: str = ""
    value: str = ""
    item: str = ""
    #: What the deviations are over.
    spread: str = ""
    log_x: bool = False
    log_y: bool = False
    #: Smallest value on the axis of dots.
    start: float | None = None
    #: 1 or -1 sorts the rows of dots by their main value.
    order: int = 0
    #: Shaded distance from the best row, and what it means.
    band: float | None = None
    band_words: str = ""


def charts_of(analysis: Analysis) -> dict[str, Chart]:
    """Charts by section; those without data are left out."""
    made = {
        "ranks": _ranks(analysis),
        "curves": _curves(analysis),
        "paper": _paper(analysis),
        "costs": _by_dataset(
            analysis, {"seconds": "seconds a fit", "peak_mib": "peak memory (MiB)"}, "quantity", order=1, log_x=True
        ),
        "convergence": _convergence(analysis),
        "stability": _by_dataset(analysis, {name: name.capitalize() for name in STABILITY}, "index", order=-1),
        "noise": _noise(analysis),
        "ablation": _ablation(analysis),
        "sensitivity": _single_sweeps(analysis),
        "settings": _double_sweeps(analysis),
    }  # fmt: skip
    return {name: chart for name, chart in made.items() if chart is not None and chart.panels}


def page_charts(analysis: Analysis, charts: dict[str, Chart]) -> dict[str, Any]:
    """Return the series that charts share, and the charts, in values that JSON can hold."""
    methods = method_series(analysis)
    made = {}
    for name, chart in charts.items():
        names = [choice.name for choice in chart.choices]
        content = {
            "kind": chart.kind,
            "choices": [
                {"name": choice.name, "options": choice.options, "better": choice.better or None}
                for choice in chart.choices
            ],
            "panels": {
                ",".join(map(str, key)): {"rows": panel.rows, "items": panel.items or None}
                for key, panel in chart.panels.items()
            },
            "series": None if chart.series == methods else [one._asdict() for one in chart.series],
            # Only data sets are shown side by side.
            "all": names.index("data set") if "data set" in names else None,
            "from": chart.start,
            "log": chart.log_x,
            "logY": chart.log_y,
            "bandWords": chart.band_words,
        }
        content |= {
            key: getattr(chart, key) for key in ("x", "y", "value", "item", "spread", "order", "band")
        }
        made[name] = {key: value for key, value in content.items() if value not in (None, "", False)}
    return {"series": _plain([one._asdict() for one in methods]), "charts": _plain(made)}


def _plain(value: Any) -> Any:
    """Four digits are more than a chart can show, and names must not steer the page."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items() if part is not None or key in ("x", "main")}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return float(f"{value:.4g}") if np.isfinite(value) else None
    return printable(value) if isinstance(value, str) else value


def method_series(analysis: Analysis) -> tuple[Series, ...]:
    """Methods, then references; the best of them and the control are shown at first."""
    summary, main = analysis.summary, analysis.main
    ranks = {**dict.fromkeys(summary.shown, np.inf), **main.among_all, **main.overall}
    first = {
        *sorted(summary.compared, key=ranks.__getitem__)[:_METHODS_SHOWN],
        *sorted(summary.references, key=ranks.__getitem__)[:_REFERENCES_SHOWN],
        main.control,
    }
    return tuple(
        Series(name, name in summary.references, name == main.control, name in first)
        for name in summary.shown
    )


def _metric_choice(summary: Summary, metrics: Iterable[str]) -> Choice:
    names = tuple(metrics)
    directions = tuple(summary.direction(name) for name in names)
    return Choice("metric", tuple(map(metric_title, names, directions)), directions, names)


def _ranks(analysis: Analysis) -> Chart | None:
    main = analysis.main
    if len(main.ranked_methods) < 2:
        return None
    metrics = _metric_choice(analysis.summary, main.metrics)
    position = analysis.summary.shown.index
    overall = {
        position(name): {"main": rank, "items": main.average_ranks.loc[name].tolist()}
        for name, rank in main.overall.items()
    }
    panels: dict[tuple[int, ...], Panel] = {(0,): Panel(overall, metrics.options)}
    for place, (metric, ranks) in enumerate(main.ranks.items(), start=1):
        average = main.average_ranks[metric]
        rows = {
            position(name): {"main": float(average[name]), "items": ranks[name].tolist()} for name in ranks
        }
        panels[place,] = Panel(rows, tuple(main.ranked_datasets))
    return Chart(
        "dots",
        (Choice("metric", ("all metrics", *metrics.options)),),
        panels,
        method_series(analysis),
        value="average rank",
        item="rank",
        start=1,
        order=1,
        band=main.nemenyi_cd,
        band_words="not significantly worse than the first (Nemenyi, 5%)",
    )


def _curves(analysis: Analysis) -> Chart | None:
    """Every metric against the number of features, at the noise of the tables, by all classifiers."""
    summary, noise = analysis.summary, analysis.main.noise
    facts = summary.facts
    positions = {
        "metric": facts.metrics,
        "dataset": tuple(noise),
        "classifier": facts.classifiers,
        "method": summary.shown,
    }
    means = pd.concat([summary.select(judge, noise, summary.means) for judge in facts.classifiers])
    means = means[means["method"].isin(summary.shown)]
    keys = [means[name].map({value: n for n, value in enumerate(names)}) for name, names in positions.items()]
    panels: dict[tuple[int, ...], Panel] = {}
    for *key, place, size, kept, mean, std in zip(
        *keys, means["size"], means["n_features"], means["mean"], means["fold_std"], strict=True
    ):
        rows = panels.setdefault(tuple(key), Panel({})).rows
        row = rows.setdefault(place, {"x": None if np.isnan(size) else [], "y": [], "e": []})
        for name, value in (("x", kept), ("y", mean), ("e", std)):
            if row[name] is not None:
                row[name].append(value)
    has_sizes = any(len(row["x"] or ()) > 1 for panel in panels.values() for row in panel.rows.values())
    if not has_sizes:
        return None
    choices = (
        _metric_choice(summary, facts.metrics),
        Choice("data set", tuple(noise)),
        Choice("judged by", facts.classifiers),
    )
    return Chart(
        "lines", choices, panels, method_series(analysis), across="data set", first_judge=True, x="features kept",
        log_x=True, spread="over folds",
    )  # fmt: skip


def _paper(analysis: Analysis) -> Chart | None:
    if not analysis.papers:
        return None
    metrics = analysis.papers[analysis.main.classifier].metrics
    panels: dict[tuple[int, ...], Panel] = {}
    for (m, metric), (j, check) in product(enumerate(metrics), enumerate(analysis.papers.values())):
        if metric in check.metrics:
            ours, theirs = check.table(metric, "ours"), check.table(metric, "theirs")
            rows = {
                analysis.summary.shown.index(name): {"x": theirs[name].tolist(), "y": ours[name].tolist()}
                for name in ours
            }
            panels[m, j] = Panel(rows, tuple(ours.index))
    choices = _metric_choice(analysis.summary, metrics), Choice("judged by", tuple(analysis.papers))
    return Chart(
        "scatter",
        choices,
        panels,
        method_series(analysis),
        across="metric",
        first_judge=True,
        x="printed",
        y="ours",
    )


def _by_dataset(analysis: Analysis, quantities: dict[str, str], choice: str, **options: Any) -> Chart:
    """Costs or stability: a row for each method, an item for each data set; the median stands out."""
    panels: dict[tuple[int, ...], Panel] = {}
    for place, name in enumerate(quantities):
        frame = by_dataset(analysis.summary, name)
        rows = {
            analysis.summary.shown.index(method): {
                "main": float(values.median()),
                "items": values.tolist(),
            }
            for method, values in frame.items()
        }
        if rows:
            panels[place,] = Panel(rows, tuple(frame.index))
    choices = (Choice(choice, tuple(quantities.values())),)
    series = method_series(analysis)
    return Chart("dots", choices, panels, series, across=choice, value="median", **options)


def _convergence(analysis: Analysis) -> Chart | None:
    descents = analysis.facts.descents
    methods = tuple(dict.fromkeys(found.method for found in descents))
    datasets = list(analysis.summary.datasets)
    panels: dict[tuple[int, ...], Panel] = {}
    for found in descents:
        rows = panels.setdefault((methods.index(found.method),), Panel({})).rows
        steps = list(range(len(found.objective)))
        rows[datasets.index(found.dataset)] = {"x": steps, "y": list(found.objective)}
    return Chart(
        "lines", (Choice("method", methods),), panels, tuple(map(Series, datasets)), across="method", x="iteration",
        y="objective", log_y=True,
    )  # fmt: skip


def _noise(analysis: Analysis) -> Chart | None:
    models = tuple(analysis.noise["model"].unique())
    datasets, metrics = tuple(analysis.summary.datasets), analysis.facts.metrics
    panels: dict[tuple[int, ...], Panel] = {}
    for (model, dataset, method, metric), curve in analysis.noise.groupby(
        ["model", "dataset", "method", "metric"], sort=False
    ):
        key = metrics.index(metric), datasets.index(dataset), models.index(model)
        rows = panels.setdefault(key, Panel({})).rows
        place = analysis.summary.shown.index(method)
        rows[place] = {"x": curve["rate"].tolist(), "y": curve["value"].tolist()}
    choices = (
        _metric_choice(analysis.summary, metrics),
        Choice("data set", datasets),
        Choice("noise", models),
    )
    return Chart("lines", choices, panels, method_series(analysis), across="data set", x="noise rate")


def _ablation(analysis: Analysis) -> Chart | None:
    """Variants of a method: a row for each, a dot for each data set."""
    if not analysis.ablations:
        return None
    metrics, judges = analysis.facts.metrics, analysis.facts.classifiers
    panels: dict[tuple[int, ...], Panel] = {}
    for (judge, metric), table in analysis.ablations.items():
        values = table.dropna()
        if len(values):
            rows = {
                column: {"main": float(values[name].mean()), "items": values[name].tolist()}
                for column, name in enumerate(table)
            }
            panels[metrics.index(metric), judges.index(judge)] = Panel(rows, tuple(values.index))
    choices = _metric_choice(analysis.summary, metrics), Choice("judged by", judges)
    series = tuple(Series(name, control=place == 0) for place, name in enumerate(table))
    return Chart("dots", choices, panels, series, value="mean")


def _single_sweeps(analysis: Analysis) -> Chart | None:
    """Parameters that were varied alone: a line for each data set."""
    table = analysis.sweeps[analysis.sweeps["second"].isna()]
    datasets = list(analysis.summary.datasets)
    lines = [
        (key, datasets.index(dataset), curve["first"].tolist(), curve["value"].astype(float).tolist())
        for (*key, dataset), curve in table.groupby([*_SWEPT, "dataset"], sort=False)
        if is_numeric(curve["first"])
    ]
    return _sweep_chart(analysis, lines, datasets, "value of the parameter")


def _double_sweeps(analysis: Analysis) -> Chart | None:
    """Two parameters: a line for each value of the second, means over the data sets without gaps."""
    table = analysis.sweeps[analysis.sweeps["second"].notna()]
    found, names = [], []
    for key, group in table.groupby(_SWEPT, sort=False):
        if not is_numeric(group["first"]) or not is_numeric(group["second"]):
            continue
        grids = group.pivot(index="dataset", columns=["second", "first"], values="value").dropna()
        second = str(key[1]).split(" × ")[1]
        for value, line in grids.astype(float).mean().groupby(level="second"):
            names.append(f"{second} = {value:g}")
            if len(grids):
                line = line.droplevel("second").sort_index()
                found.append((key, names[-1], line.index.tolist(), line.tolist()))
    series = list(dict.fromkeys(names))
    lines = [(key, series.index(name), x, y) for key, name, x, y in found]
    return _sweep_chart(analysis, lines, series, "value of the first parameter")


_SWEPT = ["method", "parameters", "metric", "classifier"]


def _sweep_chart(analysis: Analysis, lines: list[Any], series: list[str], x: str) -> Chart | None:
    """Make a chart of lines, each with its key (method, parameters, metric, classifier), series, x and y."""
    titles = tuple(dict.fromkeys(f"{method}: {parameters}" for (method, parameters, *_), *_ in lines))
    metrics, judges = analysis.facts.metrics, analysis.facts.classifiers
    panels: dict[tuple[int, ...], Panel] = {}
    for (method, parameters, metric, judge), place, places, values in lines:
        key = titles.index(f"{method}: {parameters}"), metrics.index(metric), judges.index(judge)
        panels.setdefault(key, Panel({})).rows[place] = {"x": places, "y": values}
    choices = (
        Choice("parameter", titles),
        _metric_choice(analysis.summary, metrics),
        Choice("judged by", judges),
    )
    return Chart("lines", choices, panels, tuple(map(Series, series)), across="parameter", x=x, log_x=True)
