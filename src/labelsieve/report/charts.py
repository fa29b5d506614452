"""Charts of a report as data, drawn by the script of the page and by matplotlib.

A chart has *choices* (such as metric, dataset and classifier), a *panel* for each combination with data, and *series*,
by default methods and references. There are three kinds: lines, dots (a row for each series and a dot for each item)
and scatter plots of our values and those of the paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from labelsieve._text import printable
from labelsieve.report.analysis import Analysis
from labelsieve.report.summary import CURVE, STABILITY, Summary, spread

# Number of the best methods and references that are visible at first.
_METHODS_SHOWN, _REFERENCES_SHOWN = 4, 3


class Series(NamedTuple):
    """Line or row of dots."""

    name: str
    reference: bool = False
    control: bool = False
    #: Shown initially.
    first: bool = True


class Menu(NamedTuple):
    """Menu of options. Menus with the same name in other charts change together."""

    name: str
    options: tuple[str, ...]
    #: Directions and file names of metrics.
    better: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class Panel(NamedTuple):
    """Values by position of the series.

    A line has "x" (None for a horizontal line), "y" and optionally "e" (standard deviations). A row of dots has "main"
    and "items". A scatter plot has "x" and "y" by item.
    """

    rows: dict[int, dict[str, Any]]
    #: Names of the items.
    items: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chart:
    """Data of a chart."""

    kind: Literal["lines", "dots", "scatter"]
    choices: tuple[Menu, ...]
    #: Positions of the chosen options -> panel.
    panels: dict[tuple[int, ...], Panel]
    series: tuple[Series, ...]
    #: In figures, the choice with one panel per option, and True to show only the first classifier.
    across: str = ""
    first_judge: bool = False
    #: Names of the axes, of main dots and of items.
    x: str = ""
    y: str = ""
    value: str = ""
    item: str = ""
    #: Description of the standard deviations, such as "over folds".
    spread: str = ""
    log_x: bool = False
    log_y: bool = False
    #: Start of the axis of dots.
    start: float | None = None
    #: 1 or -1 to sort rows of dots by main value.
    order: int = 0
    #: Shaded distance from the best row, and its description.
    band: float | None = None
    band_words: str = ""


def charts_of(analysis: Analysis) -> dict[str, Chart]:
    """Make all charts with data, by name."""
    made = {
        "ranks": _ranks(analysis),
        "curves": _curves(analysis),
        "paper": _paper(analysis),
        "costs": _by_dataset(
            analysis, {"seconds": "seconds per fit", "peak_mib": "peak memory (MiB)"}, "quantity", order=1, log_x=True
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
    """Return shared series and charts as JSON-compatible values."""
    methods = method_series(analysis)
    made = {}
    for name, chart in charts.items():
        names = [choice.name for choice in chart.choices]
        made[name] = vars(chart) | {
            "panels": {",".join(map(str, key)): panel for key, panel in chart.panels.items()},
            "series": None if chart.series == methods else chart.series,
            # Only datasets are shown side by side.
            "all": names.index("dataset") if "dataset" in names else None,
        }
    found: dict[str, Any] = _plain({"series": methods, "charts": made})
    return found


def _plain(value: Any) -> Any:
    """Convert to JSON-compatible values, with four digits and without control characters."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        missing = (None, "", ())
        return {
            key: _plain(part) for key, part in value.items() if part not in missing or key in ("x", "main")
        }
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return float(f"{value:.4g}") if np.isfinite(value) else None
    return printable(value) if isinstance(value, str) else value


def method_series(analysis: Analysis) -> tuple[Series, ...]:
    """Return methods and references. The best ones and the control are shown initially."""
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


def _metric_choice(summary: Summary, metrics: Iterable[str]) -> Menu:
    names = tuple(metrics)
    return Menu("metric", tuple(map(summary.title, names)), tuple(map(summary.direction, names)), names)


def _lines(
    frame: pd.DataFrame, choices: Mapping[str, Menu], series: Iterable[Series], **options: Any
) -> Chart:
    """Make a line chart from columns for each choice, series, x (NaN for a horizontal line), y and optionally e."""
    series = tuple(series)
    names = [one.name for one in series]
    known = [choice.files or choice.options for choice in choices.values()]
    values = [name for name in "xye" if name in frame]
    frame = frame.sort_values("x", kind="stable")
    lines = frame.groupby([*choices, "series"], sort=False)[values].agg(list)
    panels: dict[tuple[int, ...], Panel] = {}
    for (*key, name), *row in lines.itertuples(name=None):
        line = dict(zip(values, row, strict=True))
        line["x"] = None if pd.isna(line["x"][0]) else line["x"]
        panels.setdefault(tuple(map(tuple.index, known, key)), Panel({})).rows[names.index(name)] = line
    return Chart("lines", tuple(choices.values()), panels, series, **options)


def _dots(table: pd.DataFrame, main: pd.Series, names: Sequence[str]) -> Panel:
    """Make a row of dots for each column of a table, with a dot for each table row."""
    rows = {
        names.index(name): {"main": float(main[name]), "items": values.tolist()}
        for name, values in table.items()
    }
    return Panel(rows, tuple(table.index))


def _ranks(analysis: Analysis) -> Chart | None:
    main, shown = analysis.main, analysis.summary.shown
    if len(main.ranked_methods) < 2:
        return None
    metrics = _metric_choice(analysis.summary, main.metrics)
    overall = main.average_ranks.T.set_axis(list(metrics.options))
    panels: dict[tuple[int, ...], Panel] = {(0,): _dots(overall, pd.Series(main.overall), shown)}
    for place, (metric, ranks) in enumerate(main.ranks.items(), start=1):
        panels[place,] = _dots(ranks, main.average_ranks[metric], shown)
    return Chart(
        "dots",
        (Menu("metric", ("all metrics", *metrics.options)),),
        panels,
        method_series(analysis),
        value="average rank",
        item="rank",
        start=1,
        order=1,
        band=main.nemenyi_cd,
        band_words="not significantly worse than the best (Nemenyi)",
    )


def _curves(analysis: Analysis) -> Chart | None:
    """Chart metrics by number of features for all classifiers, at the noise of the tables."""
    summary, noise = analysis.summary, analysis.main.noise
    judges = summary.facts.classifiers
    means = pd.concat([summary.select(judge, noise, summary.means) for judge in judges])
    means = means[means["method"].isin(summary.shown)]
    if not (means.groupby(CURVE)["size"].count() > 1).any():
        return None
    means = means.assign(x=means["n_features"].where(means["size"].notna()))
    choices = {
        "metric": _metric_choice(summary, summary.facts.metrics),
        "dataset": Menu("dataset", tuple(noise)),
        "classifier": Menu("judged by", judges),
    }
    return _lines(
        means.rename(columns={"method": "series", "mean": "y", "fold_std": "e"}),
        choices,
        method_series(analysis),
        across="dataset",
        first_judge=True,
        x="features kept",
        log_x=True,
        spread="over folds",
    )


def _paper(analysis: Analysis) -> Chart | None:
    if not analysis.papers:
        return None
    metrics = list(analysis.papers[analysis.main.classifier]["metric"].unique())
    panels: dict[tuple[int, ...], Panel] = {}
    for place, cells in enumerate(analysis.papers.values()):
        for metric, part in cells[cells["metric"].isin(metrics)].groupby("metric", sort=False):
            datasets, methods = part["dataset"].unique(), part["method"].unique()
            ours, theirs = (spread(part, datasets, methods, whose) for whose in ("ours", "theirs"))
            rows = {
                analysis.summary.shown.index(name): {"x": theirs[name].tolist(), "y": ours[name].tolist()}
                for name in methods
            }
            panels[metrics.index(metric), place] = Panel(rows, tuple(datasets))
    choices = _metric_choice(analysis.summary, metrics), Menu("judged by", tuple(analysis.papers))
    series = method_series(analysis)
    return Chart("scatter", choices, panels, series, across="metric", first_judge=True, x="printed", y="ours")


def _by_dataset(analysis: Analysis, quantities: dict[str, str], choice: str, **options: Any) -> Chart:
    """Chart costs or stability with a row per method, a dot per dataset and the median."""
    tables = {place: analysis.summary.by_dataset(name) for place, name in enumerate(quantities)}
    panels: dict[tuple[int, ...], Panel] = {
        (place,): _dots(table, table.median(), analysis.summary.shown)
        for place, table in tables.items()
        if len(table)
    }
    choices = (Menu(choice, tuple(quantities.values())),)
    series = method_series(analysis)
    return Chart("dots", choices, panels, series, across=choice, value="median", **options)


def _convergence(analysis: Analysis) -> Chart:
    descents = pd.DataFrame(analysis.facts.descents, columns=["dataset", "method", "objective"])
    steps = descents["objective"].map(lambda path: list(range(len(path))))
    frame = descents.assign(x=steps).explode(["x", "objective"])
    choice = Menu("method", tuple(descents["method"].unique()))
    return _lines(
        frame.rename(columns={"dataset": "series", "objective": "y"}),
        {"method": choice},
        map(Series, analysis.summary.datasets),
        across="method",
        x="iteration",
        y="objective",
        log_y=True,
    )


def _noise(analysis: Analysis) -> Chart:
    frame = analysis.noise
    choices = {
        "metric": _metric_choice(analysis.summary, analysis.facts.metrics),
        "dataset": Menu("dataset", tuple(analysis.summary.datasets)),
        "model": Menu("noise", tuple(frame["model"].unique())),
    }
    frame = frame.rename(columns={"method": "series", "rate": "x", "value": "y"})
    return _lines(frame, choices, method_series(analysis), across="dataset", x="noise rate")


def _ablation(analysis: Analysis) -> Chart | None:
    """Chart variants of a method with a row per variant and a dot per dataset."""
    if not analysis.ablations:
        return None
    metrics, judges = analysis.facts.metrics, analysis.facts.classifiers
    panels: dict[tuple[int, ...], Panel] = {}
    for (judge, metric), table in analysis.ablations.items():
        names, values = list(table), table.dropna()
        if len(values):
            panels[metrics.index(metric), judges.index(judge)] = _dots(values, values.mean(), names)
    choices = _metric_choice(analysis.summary, metrics), Menu("judged by", judges)
    series = tuple(Series(name, control=place == 0) for place, name in enumerate(names))
    return Chart("dots", choices, panels, series, value="mean")


def _single_sweeps(analysis: Analysis) -> Chart:
    """Chart sweeps of one parameter with a line per dataset."""
    table = analysis.sweeps[analysis.sweeps["second"].isna()].rename(columns={"dataset": "series"})
    return _sweep_chart(analysis, _numeric(table, "first"), analysis.summary.datasets, "parameter value")


def _double_sweeps(analysis: Analysis) -> Chart:
    """Chart sweeps of two parameters with a line per value of the second, averaged over complete datasets."""
    table = _numeric(analysis.sweeps[analysis.sweeps["second"].notna()], "first", "second")
    n_settings = table.groupby([*_SWEPT, "dataset"])["value"].transform("size")
    is_whole = n_settings == table.groupby(["method", "parameters"])["setting"].transform("nunique")
    table = table[is_whole].sort_values("second", kind="stable")
    table = table.groupby([*_SWEPT, "second", "first"], sort=False)["value"].mean().reset_index()
    values = table["second"].map("{:g}".format)
    table = table.assign(series=table["parameters"].str.split(" × ").str[1] + " = " + values)
    return _sweep_chart(analysis, table, table["series"].unique(), "first parameter")


_SWEPT = ["method", "parameters", "metric", "classifier"]


def _numeric(table: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Keep the sweeps of numeric parameters, which excludes booleans."""
    is_number = table[[*columns]].map(lambda value: isinstance(value, Real) and not isinstance(value, bool))
    sweeps = [table["method"], table["parameters"]]
    return table[is_number.all(axis=1).groupby(sweeps).transform("all")]


def _sweep_chart(analysis: Analysis, table: pd.DataFrame, series: Iterable[str], x: str) -> Chart:
    table = table.rename(columns={"first": "x", "value": "y"})
    table["parameter"] = table["method"] + ": " + table["parameters"]
    choices = {
        "parameter": Menu("parameter", tuple(table["parameter"].unique())),
        "metric": _metric_choice(analysis.summary, analysis.facts.metrics),
        "classifier": Menu("judged by", analysis.facts.classifiers),
    }
    return _lines(table, choices, map(Series, series), across="parameter", x=x, log_x=True)
