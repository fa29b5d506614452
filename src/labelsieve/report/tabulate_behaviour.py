"""More tables of a report: time and memory, stability, noise, ablation, sensitivity, and all values in full."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from labelsieve.report.aggregation import as_cost
from labelsieve.report.analysis import Analysis
from labelsieve.report.behaviour import STABILITY
from labelsieve.report.tables import Column, Entry, Table, name_columns
from labelsieve.report.variation import Sweep
from labelsieve.report.wording import count, listed, metric_title


def cost_tables(analysis: Analysis) -> list[Table]:
    """Seconds, memory, iterations and convergence: data sets by methods."""
    costs = {(cost.dataset, cost.method): cost for cost in analysis.costs}
    wanted = (
        ("seconds", "Seconds a fit", ".3g", "Mean over all fits."),
        ("peak_mib", "Peak memory of a fit (MiB)", ".3g", "The largest of all fits."),
        ("n_iter", "Iterations", ".4g", "Mean over all fits of the methods that iterate."),
        ("converged", "Share of the fits that converged", ".2f", ""),
    )
    tables = []
    for field, title, form, note in wanted:
        values = {key: value for key, cost in costs.items() if (value := getattr(cost, field)) is not None}
        table = _grid(field, title, analysis, values, form, note)
        tables += [table] if table is not None else []
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
        values = {(found.dataset, found.method): found.index[index] for found in analysis.stability}
        title = f"Stability of the selected features: {index.capitalize()}"
        table = _grid(f"stability_{index}", title, analysis, values, ".2f", notes[index], average=True)
        tables += [table] if table is not None else []
    return tables


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
            name for name in analysis.results.datasets if all((name, method) in whole for method in methods)
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
        rows.append((Entry(metric_title(ablation.metric)), *entries))
    if not rows:
        return None
    variants = analysis.ablations[0].variants
    note = f"Means over the data sets; in brackets, on how many of them the variant is better than {variants[0]}."
    return Table("ablation", "Ablation", name_columns("metric", variants), tuple(rows), note=note)


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
                Entry(sweep.dataset),
                Entry(_setting(sweep, best)),
                Entry(float(sweep.values.flat[best])),
                Entry(_setting(sweep, worst)),
                Entry(float(sweep.values.flat[worst])),
                Entry(float(np.nanmax(cost) - np.nanmin(cost))),
            )
        )
    names = ("method", "parameter", "metric", "data set", "best setting")
    columns = (
        *(Column(name, numeric=False) for name in names),
        Column("best"),
        Column("worst setting", numeric=False),
        Column("worst"),
        Column("range"),
    )
    return Table("sensitivity", "Sensitivity to the parameters", columns, tuple(rows))


def full_tables(analysis: Analysis) -> list[Table]:
    """Every curve, noise curve and sweep in long form: for programs, not for the page."""
    tables = [
        Table(
            "curves",
            "All metrics at all sizes",
            (*_texts("data set", "method", "metric"), Column("size"), Column("features"), Column("value")),
            tuple(
                (
                    Entry(dataset),
                    Entry(method),
                    Entry(metric),
                    Entry(size),
                    Entry(int(kept)),
                    Entry(float(value)),
                )
                for (dataset, metric), curves in analysis.curves.items()
                for method, curve in curves.items()
                for size, kept, value in zip(curve.sizes, curve.n_features, curve.values, strict=True)
            ),
        ),
        Table(
            "noise_all",
            "All metrics at all noise rates",
            (*_texts("data set", "model", "method", "metric"), Column("rate"), Column("value")),
            tuple(
                (
                    *(Entry(name) for name in (curve.dataset, curve.model, curve.method, curve.metric)),
                    Entry(rate),
                    Entry(value),
                )
                for curve in analysis.noise
                for rate, value in zip(curve.rates, curve.values, strict=True)
            ),
        ),
        Table(
            "sensitivity_all",
            "All metrics at all settings",
            (*_texts("method", "setting", "data set", "metric"), Column("value")),
            tuple(
                (
                    *(
                        Entry(name)
                        for name in (sweep.method, _setting(sweep, spot), sweep.dataset, sweep.metric)
                    ),
                    Entry(float(value)),
                )
                for sweep in analysis.sweeps
                for spot, value in enumerate(sweep.values.flat)
            ),
        ),
    ]
    return [table for table in tables if table.rows]


def _grid(
    stem: str,
    title: str,
    analysis: Analysis,
    values: Mapping[tuple[str, str], float],
    form: str,
    note: str,
    *,
    average: bool = False,
) -> Table | None:
    """Data sets by those methods that have any value; None if there are no values."""
    names = [name for name in analysis.shown if any(method == name for _, method in values)]
    datasets = [name for name in analysis.results.datasets if any(dataset == name for dataset, _ in values)]
    if not names:
        return None
    rows = tuple(
        (Entry(dataset), *(Entry(values.get((dataset, name)), form=form) for name in names))
        for dataset in datasets
    )
    foot: tuple[tuple[Entry, ...], ...] = ()
    if average:
        whole = {name: [values.get((dataset, name), np.nan) for dataset in datasets] for name in names}
        foot = ((Entry("mean"), *(Entry(float(np.mean(whole[name])), form=form) for name in names)),)
    return Table(stem, title, name_columns("data set", names), rows, foot, note)


def _setting(sweep: Sweep, spot: int) -> str:
    """The parameters at one place of the grid, in words."""
    places = np.unravel_index(spot, sweep.values.shape)
    values = [axis[place] for axis, place in zip(sweep.grid, places, strict=True)]
    return ", ".join(f"{name}={value}" for name, value in zip(sweep.parameters, values, strict=True))


def _texts(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, numeric=False) for name in names)
