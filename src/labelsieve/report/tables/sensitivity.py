"""Tables of what changes with the noise, a part of a method, a parameter or the number of features."""

from __future__ import annotations

import numpy as np

from labelsieve._text import count
from labelsieve.report.analysis.run_analysis import Analysis
from labelsieve.report.analysis.sensitivity import setting_costs, whole_sweeps
from labelsieve.report.analysis.summary import as_cost
from labelsieve.report.statistics import average_ranks
from labelsieve.report.tables.table import Column, Entry, Table, name_columns, text_columns
from labelsieve.report.wording import listed, metric_title, metric_words


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
            title = f"{metric_title(metric, analysis.summary.direction(metric))} against noise ({model})"
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
        direction = analysis.summary.direction(ablation.metric)
        cost = as_cost(direction, values)
        better = (cost < cost[:, :1]).sum(axis=0)
        entries = [Entry(float(values[:, 0].mean()))]
        for column in range(1, len(ablation.variants)):
            mean = float(values[:, column].mean())
            entries.append(Entry(mean, words=f"{mean:.3f} ({better[column]} of {len(values)})"))
        judge = (Entry(ablation.classifier),) if analysis.several_judges else ()
        rows.append((Entry(metric_title(ablation.metric, direction)), *judge, *entries))
    if not rows:
        return None
    variants = analysis.ablations[0].variants
    note = f"Means over the data sets; in brackets, on how many of them the variant is better than {variants[0]}."
    columns = (*text_columns("metric", *_judged_by(analysis)), *map(Column, variants))
    return Table("ablation", "Ablation", columns, tuple(rows), note=note)


def effect_tables(analysis: Analysis) -> list[Table]:
    """Does a part help? One line a judge and pair of variants, then the same in long form, by metric."""
    if not analysis.effects:
        return []
    metrics = analysis.facts.metrics
    rows, lines = [], []
    for effect in analysis.effects:
        judge = (Entry(effect.classifier),) if analysis.several_judges else ()
        pair = (*judge, Entry(effect.fuller), Entry(effect.lesser), Entry(effect.taken_away))
        rows.append((*pair, _outcome(effect.all_gains), *(_outcome(effect.gains[name]) for name in metrics)))
        for metric, gains in effect.gains.items():
            lines.append((*pair, Entry(metric_words(metric)), *map(Entry, _outcomes(gains)), _gain(gains)))
    names = text_columns(*_judged_by(analysis), "with", "against", "which sets")
    heads = ("all metrics", *(metric_title(metric, analysis.summary.direction(metric)) for metric in metrics))
    note = (
        "On how many data sets the first is better/equal/worse, and its mean gain there: positive is better, "
        "whichever way the metric goes. Over all metrics, a metric on a data set counts once. "
        "Bold: better in more than half."
    )
    long = ("better", "equal", "worse", "mean gain")
    return [
        Table(
            "ablation_effects", "What each part adds", (*names, *map(Column, heads)), tuple(rows), note=note
        ),
        Table(
            "ablation_effects_by_metric",
            "What each part adds, by metric",
            (*names, *text_columns("metric"), *map(Column, long)),
            tuple(lines),
            note="Numbers of data sets where the first is better, equal and worse, and its mean gain.",
        ),
    ]


def _outcomes(gains: np.ndarray) -> tuple[int, int, int]:
    return int((gains > 0).sum()), int((gains == 0).sum()), int((gains < 0).sum())


def _gain(gains: np.ndarray) -> Entry:
    return Entry(float(gains.mean()) if len(gains) else None, form="+.4f")


def _outcome(gains: np.ndarray) -> Entry:
    """Wins, ties and losses, and the mean gain, by which the column sorts."""
    if not len(gains):
        return Entry(None)
    found = _outcomes(gains)
    words = f"{'/'.join(map(str, found))}, {_gain(gains).text}"
    return Entry(float(gains.mean()), words=words, mark="best" if 2 * found[0] > len(gains) else "")


def setting_table(analysis: Analysis) -> Table | None:
    """Does a parameter matter? One line a judge and parameter: the best setting over all data sets and metrics."""
    rows = []
    for (judge, method, parameters), group in whole_sweeps(analysis.sweeps).items():
        costs = setting_costs(analysis.summary, group)
        ranks = average_ranks(costs, "lower")
        best, worst = int(ranks.argmin()), int(ranks.argmax())
        ahead = costs[:, best] < costs[:, worst]
        rows.append(
            (
                *((Entry(judge),) if analysis.several_judges else ()),
                Entry(method),
                Entry(" × ".join(parameters)),
                Entry(", ".join(group[0].setting(best))),
                Entry(float(ranks[best]), form=".2f"),
                Entry(", ".join(group[0].setting(worst))),
                Entry(float(ranks[worst]), form=".2f"),
                Entry(float(ahead.mean()), words=f"{int(ahead.sum())} of {len(ahead)}"),
                Entry(float((costs[:, worst] - costs[:, best]).mean()), form="+.4f"),
                Entry(float(np.ptp(costs, axis=1).mean()), form=".4f"),
            )
        )
    columns = (
        *text_columns(*_judged_by(analysis), "method", "parameter", "best setting"),
        Column("average rank"),
        *text_columns("worst setting"),
        Column("average rank of the worst"),
        Column("best ahead of worst"),
        Column("mean gain"),
        Column("mean range"),
    )
    note = (
        "Best and worst by average rank of the settings over data sets and metrics; in how many of these the best is "
        "ahead of the worst, and by how much in the mean. The range is between the best and the worst setting of each "
        "metric on each data set by itself."
    )
    title = "Which settings do best"
    return Table("settings", title, columns, tuple(rows), note=note) if rows else None


def sweep_table(analysis: Analysis) -> Table | None:
    """How much each parameter matters: best and worst setting by data set and metric."""
    if not analysis.sweeps:
        return None
    rows = []
    for sweep in analysis.sweeps:
        direction = analysis.summary.direction(sweep.metric)
        cost = as_cost(direction, sweep.values)
        best, worst = int(np.nanargmin(cost)), int(np.nanargmax(cost))
        rows.append(
            (
                Entry(sweep.method),
                Entry(" × ".join(sweep.parameters)),
                Entry(metric_title(sweep.metric, direction)),
                *((Entry(sweep.classifier),) if analysis.several_judges else ()),
                Entry(sweep.dataset),
                Entry(", ".join(sweep.setting(best))),
                Entry(float(sweep.values.flat[best])),
                Entry(", ".join(sweep.setting(worst))),
                Entry(float(sweep.values.flat[worst])),
                Entry(float(np.nanmax(cost) - np.nanmin(cost))),
            )
        )
    columns = (
        *text_columns("method", "parameter", "metric", *_judged_by(analysis), "data set", "best setting"),
        Column("best"),
        *text_columns("worst setting"),
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
            *(
                Entry(name)
                for name in (sweep.method, ", ".join(sweep.setting(spot)), sweep.dataset, sweep.metric)
            ),
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
