"""The figures of a report, by section. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from labelsieve._figures import Picture
from labelsieve.report.analysis.cells import STABILITY
from labelsieve.report.analysis.run_analysis import Analysis
from labelsieve.report.charts.against_paper import draw_against_paper
from labelsieve.report.charts.bars import draw_ablation, draw_costs, draw_stability, draw_win_tie_loss
from labelsieve.report.charts.cd_diagram import draw_cd_diagram, draw_control_diagram
from labelsieve.report.charts.curves import (
    Curve,
    draw_noise_curves,
    draw_objectives,
    draw_sensitivity_curves,
    draw_size_curves,
)
from labelsieve.report.charts.heatmap import draw_sensitivity_surface
from labelsieve.report.charts.method_styles import MethodStyles
from labelsieve.report.wording import metric_words

Named = Iterator[tuple[str, Picture]]
#: Method, parameters, classifier, metric.
_Surface = tuple[str, tuple[str, ...], str, str]


def draw_figures(analysis: Analysis) -> dict[str, list[tuple[str, Picture]]]:
    """Draw all that can be drawn: section -> names of files and their pictures."""
    control = analysis.main.control or None
    styles = MethodStyles(analysis.compared, analysis.references, control)
    return {
        "ranks": list(_ranks(analysis)),
        "curves": list(_curves(analysis, styles)),
        "statistics": list(_statistics(analysis, styles)),
        "paper": list(_paper(analysis, styles)),
        "costs": list(_costs(analysis, styles)),
        "convergence": list(_convergence(analysis)),
        "stability": list(_stability(analysis, styles)),
        "noise": list(_noise(analysis, styles)),
        "ablation": list(_ablation(analysis)),
        "sensitivity": [*_sensitivity(analysis), *_surfaces(analysis)],
    }


def _ranks(analysis: Analysis) -> Named:
    main = analysis.main
    if main.nemenyi_cd is None:
        return
    control = main.control if main.control in main.ranked_methods else None
    yield "cd", draw_cd_diagram(main.overall, main.nemenyi_cd, title="all metrics", control=control)
    for standing in main.standings:
        ranks = dict(zip(standing.methods, standing.average.tolist(), strict=True))
        title = metric_words(standing.metric)
        yield (
            f"cd_{standing.metric}",
            draw_cd_diagram(ranks, main.nemenyi_cd, title=title, control=control),
        )


def _curves(analysis: Analysis, styles: MethodStyles) -> Named:
    datasets = analysis.summary.datasets
    for table in analysis.main.tables:
        panels = {
            dataset: {
                name: Curve(None, curve.mean) if None in curve.sizes else Curve(curve.sizes, curve.values)
                for name, curve in analysis.curves[dataset, table.metric].items()
            }
            for dataset in table.datasets
            if (dataset, table.metric) in analysis.curves
        }
        if any(curve.x is not None for curves in panels.values() for curve in curves.values()):
            picture = draw_size_curves(
                panels,
                title=metric_words(table.metric),
                direction=table.direction,
                unit={dataset: datasets[dataset].size_unit for dataset in panels},
                styles=styles,
            )
            yield f"curves_{table.metric}", picture


def _statistics(analysis: Analysis, styles: MethodStyles) -> Named:
    main = analysis.main
    critical = main.bonferroni_dunn_cd
    for standing in main.standings:
        title = metric_words(standing.metric)
        if critical is not None:
            ranks = dict(zip(standing.methods, standing.average.tolist(), strict=True))
            picture = draw_control_diagram(ranks, critical, control=main.control, title=title)
            yield f"control_{standing.metric}", picture
        if standing.duels:
            outcomes = {duel.method: (*duel.outcome[:3], duel.adjusted) for duel in standing.duels}
            picture = draw_win_tie_loss(outcomes, control=main.control, title=title, styles=styles)
            yield f"win_tie_loss_{standing.metric}", picture


def _paper(analysis: Analysis, styles: MethodStyles) -> Named:
    if analysis.paper is None:
        return
    panels, notes = {}, {}
    for table in analysis.paper.tables:
        title = metric_words(table.metric)
        panels[title] = {
            method: (table.theirs[:, column], table.ours[:, column])
            for column, method in enumerate(table.methods)
        }
        known = table.spearman[np.isfinite(table.spearman)]
        if len(known):
            notes[title] = f"mean rank correlation {known.mean():.2f}"
    yield "paper", draw_against_paper(panels, notes=notes, styles=styles)


def _costs(analysis: Analysis, styles: MethodStyles) -> Named:
    panels: dict[str, dict[str, dict[str, float]]] = {}
    for field, title in (("seconds", "fit time (s)"), ("peak_mib", "peak memory (MiB)")):
        values: dict[str, dict[str, float]] = {}
        for cost in analysis.facts.costs:
            value = getattr(cost, field)
            if value and cost.method in styles.names:
                values.setdefault(cost.method, {})[cost.dataset] = value
        if values:
            panels[title] = values
    if panels:
        yield "costs", draw_costs(panels, styles=styles)


def _convergence(analysis: Analysis) -> Named:
    """One fit a data set."""
    panels: dict[str, dict[str, tuple[float, ...]]] = {}
    for found in analysis.facts.descents:
        panels.setdefault(found.method, {})[found.dataset] = found.objective
    if panels:
        styles = MethodStyles(tuple(analysis.summary.datasets))
        yield "convergence", draw_objectives(panels, styles=styles)


def _stability(analysis: Analysis, styles: MethodStyles) -> Named:
    measures: dict[str, dict[str, list[float]]] = {}
    for found in analysis.facts.stability:
        for index in STABILITY:
            measures.setdefault(index.capitalize(), {}).setdefault(found.method, []).append(
                found.index[index]
            )
    if measures:
        yield "stability", draw_stability(measures, title="stability of the selected features", styles=styles)


def _noise(analysis: Analysis, styles: MethodStyles) -> Named:
    for model, metric in dict.fromkeys((curve.model, curve.metric) for curve in analysis.noise):
        panels: dict[str, dict[str, Curve]] = {}
        for curve in analysis.noise:
            if (curve.model, curve.metric) == (model, metric):
                panels.setdefault(curve.dataset, {})[curve.method] = Curve(curve.rates, curve.values)
        title = f"{metric_words(metric)} ({model})"
        direction = analysis.summary.direction(metric)
        yield (
            f"noise_{model}_{metric}",
            draw_noise_curves(panels, title=title, direction=direction, styles=styles),
        )


def _ablation(analysis: Analysis) -> Named:
    for ablation in analysis.ablations:
        groups = {
            dataset: dict(zip(ablation.variants, values.tolist(), strict=True))
            for dataset, values in zip(ablation.datasets, ablation.values, strict=True)
            if np.isfinite(values).any()
        }
        if groups:
            picture = draw_ablation(
                groups,
                title=f"{metric_words(ablation.metric)}{_judged_by(analysis, ablation.classifier)}",
                direction=analysis.summary.direction(ablation.metric),
                styles=MethodStyles(ablation.variants, control=ablation.variants[0]),
            )
            yield f"ablation{_number(analysis, ablation.classifier)}_{ablation.metric}", picture


def _sensitivity(analysis: Analysis) -> Named:
    """One figure a method, classifier and metric: a panel for each parameter that was varied alone."""
    figures: dict[tuple[str, str, str], dict[str, dict[str, Curve]]] = {}
    for sweep in analysis.sweeps:
        if len(sweep.parameters) == 1 and sweep.is_numeric:
            panels = figures.setdefault((sweep.method, sweep.classifier, sweep.metric), {})
            panels.setdefault(sweep.parameters[0], {})[sweep.dataset] = Curve(sweep.grid[0], sweep.values)
    styles = MethodStyles(tuple(analysis.summary.datasets))
    for place, ((method, classifier, metric), panels) in enumerate(figures.items()):
        title = f"{method}: {metric_words(metric)}{_judged_by(analysis, classifier)}"
        direction = analysis.summary.direction(metric)
        picture = draw_sensitivity_curves(panels, title=title, direction=direction, styles=styles)
        yield f"sensitivity_{place + 1}_{metric}", picture


def _surfaces(analysis: Analysis) -> Named:
    """One figure a pair of parameters, classifier and metric: means over the data sets."""
    grids = {}
    values: dict[_Surface, list[np.ndarray]] = {}
    for sweep in analysis.sweeps:
        if len(sweep.parameters) == 2 and sweep.is_numeric:
            key: _Surface = (sweep.method, sweep.parameters, sweep.classifier, sweep.metric)
            grids[key] = sweep.grid
            values.setdefault(key, []).append(sweep.values)
    for place, (key, surfaces) in enumerate(values.items()):
        _, parameters, classifier, metric = key
        picture = draw_sensitivity_surface(
            np.mean(surfaces, axis=0),
            rows=grids[key][0],
            columns=grids[key][1],
            row_name=parameters[0],
            column_name=parameters[1],
            # A small map has no room for more; the page says what it is.
            title=f"{metric_words(metric)}{_judged_by(analysis, classifier)}",
            direction=analysis.summary.direction(metric),
        )
        yield f"surface_{place + 1}_{metric}", picture


def _judged_by(analysis: Analysis, classifier: str) -> str:
    return f" ({classifier})" if analysis.several_judges else ""


def _number(analysis: Analysis, classifier: str) -> str:
    """Tell the files of other classifiers from those of the first."""
    place = analysis.facts.classifiers.index(classifier)
    return f"_{place + 1}" if place else ""
