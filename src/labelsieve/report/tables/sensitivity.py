"""Tables of what changes with the noise, a part of a method, a parameter or the number of features."""

from __future__ import annotations

import numpy as np

from labelsieve.report.analysis.run_analysis import Analysis
from labelsieve.report.analysis.sensitivity import Sweep
from labelsieve.report.analysis.summary import as_cost
from labelsieve.report.tables.table import Column, Entry, Table, name_columns, text_columns
from labelsieve.report.wording import count, listed, metric_title


def noise_tables(analysis: Analysis) -> list[Table]:
    """Means over the data sets at every noise rate, by model and metric."""
    tables = []
    for model, metric in dict.fromkeys((curve.model, curve.metric) for curve in analysis.noise):
        curves = [curve for curve in analysis.noise if (curve.model, curve.metric) == (model, metric)]
        rates = tuple(sorted({rate for curve in curves for rate in curve.rates}))
        whole = {(curve.dataset, curve.method): curve.values for curve in curves if curve.rates == rates}
        methods = [name for name in analysis.shown if any(method == name for _, method in whole)]
        # Means of different data sets could not be compared.
        shared = [
            name for name in analysis.summary.datasets if all((name, method) in whole for method in methods)
        ]
        rows = []
        for method in methods if shared else ():
            means = np.mean([whole[dataset, method] for dataset in shared], axis=0)
            rows.append((Entry(method), *(Entry(float(value)) for value in means)))
        if rows:
            title = f"{metric_title(metric)} against noise ({model})"
            columns = name_columns("method", [f"{rate:g}" for rate in rates])
            stem = f"noise_{model}_{metric}"
            tables.append(
                Table(
                    stem,
                    title,
                    columns,
                    tuple(rows),
                    note=f"Means over {count(len(shared), 'data set')}: {listed(shared)}.",
                )
            )
    return tables


def ablation_table(analysis: Analysis) -> Table | None:
    """Means over the data sets of every variant, and on how many data sets it is better than the whole."""
    rows = []
    for ablation in analysis.ablations:
        whole = np.isfinite(ablation.values).all(axis=1)
        if not whole.any():
            continue
        values = ablation.values[whole]
        cost = as_cost(ablation.metric, values)
        better = (cost < cost[:, :1]).sum(axis=0)
        entries = [Entry(float(values[:, 0].mean()))]
        for column in range(1, len(ablation.variants)):
            mean = float(values[:, column].mean())
            entries.append(Entry(mean, words=f"{mean:.3f} ({better[column]} of {len(values)})"))
        judge = (Entry(ablation.classifier),) if analysis.several_judges else ()
        rows.append((Entry(metric_title(ablation.metric)), *judge, *entries))
    if not rows:
        return None
    variants = analysis.ablations[0].variants
    note = f"Means over the data sets; in brackets, on how many of them the variant is better than {variants[0]}."
    columns = (*text_columns("metric", *_judged_by(analysis)), *map(Column, variants))
    return Table("ablation", "Ablation", columns, tuple(rows), note=note)


def sweep_table(analysis: Analysis) -> Table | None:
    """How much each parameter matters: best and worst setting by data set and metric."""
    if not analysis.sweeps:
        return None
    rows = []
    for sweep in analysis.sweeps:
        cost = as_cost(sweep.metric, sweep.values)
        best, worst = int(np.nanargmin(cost)), int(np.nanargmax(cost))
        rows.append(
            (
                Entry(sweep.method),
                Entry(" × ".join(sweep.parameters)),
                Entry(metric_title(sweep.metric)),
                *((Entry(sweep.classifier),) if analysis.several_judges else ()),
                Entry(sweep.dataset),
                Entry(_setting(sweep, best)),
                Entry(float(sweep.values.flat[best])),
                Entry(_setting(sweep, worst)),
                Entry(float(sweep.values.flat[worst])),
                Entry(float(np.nanmax(cost) - np.nanmin(cost))),
            )
        )
    names = ("method", "parameter", "metric", *_judged_by(analysis), "data set", "best setting")
    columns = (
        *(Column(name, numeric=False) for name in names),
        Column("best"),
        Column("worst setting", numeric=False),
        Column("worst"),
        Column("range"),
    )
    return Table("sensitivity", "Sensitivity to the parameters", columns, tuple(rows))


def size_file(analysis: Analysis) -> Table:
    """Every curve in long form: for programs, not for the page."""
    rows = tuple(
        (Entry(dataset), Entry(method), Entry(metric), Entry(size), Entry(int(kept)), Entry(float(value)))
        for (dataset, metric), curves in analysis.curves.items()
        for method, curve in curves.items()
        for size, kept, value in zip(curve.sizes, curve.n_features, curve.values, strict=True)
    )
    columns = (
        *text_columns("data set", "method", "metric"),
        *(Column(name) for name in ("size", "features", "value")),
    )
    return Table("curves", "All metrics at all sizes", columns, rows)


def noise_file(analysis: Analysis) -> Table:
    """Every noise curve in long form."""
    rows = tuple(
        (
            *(Entry(name) for name in (curve.dataset, curve.model, curve.method, curve.metric)),
            Entry(rate),
            Entry(value),
        )
        for curve in analysis.noise
        for rate, value in zip(curve.rates, curve.values, strict=True)
    )
    columns = (*text_columns("data set", "model", "method", "metric"), Column("rate"), Column("value"))
    return Table("noise_all", "All metrics at all noise rates", columns, rows)


def sweep_file(analysis: Analysis) -> Table:
    """Every sweep in long form."""
    rows = tuple(
        (
            *(Entry(name) for name in (sweep.method, _setting(sweep, spot), sweep.dataset, sweep.metric)),
            *((Entry(sweep.classifier),) if analysis.several_judges else ()),
            Entry(float(value)),
        )
        for sweep in analysis.sweeps
        for spot, value in enumerate(sweep.values.flat)
    )
    names = text_columns("method", "setting", "data set", "metric", *_judged_by(analysis))
    columns = (*names, Column("value"))
    return Table("sensitivity_all", "All metrics at all settings", columns, rows)


def _judged_by(analysis: Analysis) -> tuple[str, ...]:
    """The column that tells classifiers apart, where there are several."""
    return ("judged by",) if analysis.several_judges else ()


def _setting(sweep: Sweep, spot: int) -> str:
    """The parameters at one place of the grid, in words."""
    places = np.unravel_index(spot, sweep.values.shape)
    values = [axis[place] for axis, place in zip(sweep.grid, places, strict=True)]
    return ", ".join(f"{name}={value}" for name, value in zip(sweep.parameters, values, strict=True))
