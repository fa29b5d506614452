"""Findings of a run in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from labelsieve._text import count
from labelsieve.report.analysis import Analysis
from labelsieve.report.comparison import ALPHA, Comparison
from labelsieve.report.paper import agreement
from labelsieve.report.tables import listed, metric_words


def find(analysis: Analysis) -> list[str]:
    """Say what a run shows in a few sentences, the most important first."""
    parts = (_winner, _significance, _control, _references, _ablation, _sensitivity, _paper)
    return [text for part in parts for text in part(analysis)]


def missing_parts(analysis: Analysis) -> list[str]:
    """Say what is missing of a run and what the report leaves out; empty if the run is complete."""
    coverage, n_altered, main = analysis.facts.coverage, analysis.facts.n_altered, analysis.main
    texts = []
    if n_altered:
        texts.append(
            f"{count(n_altered, 'stored row')} failed the checksum and are left out; run the experiment again."
        )
    if coverage.complete:
        return texts
    failed = f", {coverage.n_failed} failed" if coverage.n_failed else ""
    n_left = coverage.n_planned - coverage.n_done - coverage.n_failed
    left = f", {n_left} not run yet" if n_left else ""
    texts.append(
        f"This run is incomplete: {coverage.n_done} of {count(coverage.n_planned, 'cell')} done{failed}{left}. "
        "Only what is complete is shown: a method on a dataset counts when all its folds and seeds are done."
    )
    if coverage.untouched:
        texts.append(f"Nothing yet of {listed(coverage.untouched)}.")
    unranked = [name for name in analysis.summary.compared if name not in main.ranked_methods]
    if main.ranked_methods and unranked:
        texts.append(f"Not ranked, as too much of it is missing: {listed(unranked)}.")
    left_out = [name for name in main.noise if name not in main.ranked_datasets]
    if main.ranked_methods and left_out:
        texts.append(f"Left out of ranks and tests, as a ranked method lacks results: {listed(left_out)}.")
    return texts


def _leaders(ranks: Mapping[str, float]) -> list[str]:
    """Names with the best average rank."""
    return [name for name, rank in ranks.items() if np.isclose(rank, min(ranks.values()))]


def _best(ranks: Mapping[str, float]) -> str:
    """Say who is best on average."""
    leaders = _leaders(ranks)
    return f"{listed(leaders)} {'has' if len(leaders) == 1 else 'share'} the best average rank"


def _place(ranks: Mapping[str, float], name: str) -> int:
    """Place of a name by average rank; equals share the better place."""
    return 1 + sum(rank < ranks[name] and not np.isclose(rank, ranks[name]) for rank in ranks.values())


def _winner(analysis: Analysis) -> Iterator[str]:
    main, overall = analysis.main, analysis.main.overall
    if len(overall) < 2:
        compared = analysis.summary.compared
        if compared:
            reason = "there is only one." if len(compared) == 1 else "too few results are complete."
            yield f"No method can be called best: {reason}"
        return
    winners = _leaders(overall)
    scope = f"over {count(len(main.metrics), 'metric')} and {count(len(main.ranked_datasets), 'dataset')}"
    best = overall[winners[0]]
    text = f"Among the {len(overall)} {analysis.noun}s, {_best(overall)}, {best:.2f} {scope}"
    others = {name: rank for name, rank in overall.items() if name not in winners}
    if len(winners) == 1:
        text += f", {min(others.values()) - best:.2f} ahead of {listed(_leaders(others))}"
    yield f"{text} (1 is best)."


def _significance(analysis: Analysis) -> Iterator[str]:
    main = analysis.main
    if main.no_tests or main.nemenyi_cd is None:
        if main.metrics and analysis.summary.compared:
            yield main.no_tests
        return
    winners = _leaders(main.overall)
    best = main.overall[winners[0]]
    worse = [name for name, rank in main.overall.items() if rank - best >= main.nemenyi_cd]
    verb = "is" if len(winners) == 1 else "are"
    text = (
        f"{listed(winners)} {verb} significantly better than {listed(worse)}"
        if worse
        else "No lead over another method is significant"
    )
    p_values = main.tests["iman_davenport_p"]
    differing = [metric_words(metric) for metric in p_values.index[p_values < ALPHA]]
    which = f" ({listed(differing)})" if 0 < len(differing) < len(p_values) else ""
    yield (
        f"{text}: average ranks must differ by {main.nemenyi_cd:.2f} (Nemenyi, {ALPHA:.0%}). The methods differ "
        f"significantly on {len(differing)} of {count(len(p_values), 'metric')}{which} (Iman–Davenport)."
    )


def _control(analysis: Analysis) -> Iterator[str]:
    main = analysis.main
    critical, overall = main.bonferroni_dunn_cd, main.overall
    if critical is None or next(iter(overall)) == main.control:
        return
    own = overall[main.control]
    better = [name for name, rank in overall.items() if own - rank >= critical]
    worse = [name for name, rank in overall.items() if rank - own >= critical]
    verdicts = [
        f"significantly {word} than {listed(names)}"
        for word, names in (("worse", better), ("better", worse))
        if names
    ]
    verdict = listed(verdicts) or "not significantly different from any other"
    yield (
        f"{main.control}, the control, is number {_place(overall, main.control)} of the {len(overall)} "
        f"{analysis.noun}s with {own:.2f}: {verdict} (Bonferroni–Dunn, {critical:.2f} ranks)."
    )


def _references(analysis: Analysis) -> Iterator[str]:
    """Say how many methods beat each reference, and who is first if the references are ranked too."""
    main = analysis.main
    if main.challenges.empty:
        return
    counts = main.challenges.groupby(["reference", "method"], sort=False)[["wins", "compared"]].sum()
    better = 2 * counts["wins"] > counts["compared"]
    n_better = better.groupby("reference", sort=False).sum()
    text = listed([f"{name} {n}" for name, n in n_better.items()])
    yield (
        f"Number of the {len(analysis.summary.compared)} {analysis.noun}s that beat each reference in most comparisons "
        f"(a metric on a dataset): {text}.{_with_references(main)}"
    )


def _with_references(main: Comparison) -> str:
    ranks = main.among_all
    if len(ranks) <= len(main.overall):
        return ""
    leaders, best = _leaders(ranks), _leaders(main.overall)
    behind = [f"{name} is number {_place(ranks, name)}" for name in best if name not in leaders]
    rest = f" and {listed(behind)}" if behind else ""
    return f" With the references ranked too, {_best(ranks)} of {len(ranks)}{rest}."


def _ablation(analysis: Analysis) -> Iterator[str]:
    """Say by how much the whole method is better than its variants, for every classifier."""
    for classifier, effects in analysis.effects.groupby("classifier", sort=False):
        whole = effects["fuller"].iloc[0]
        outcomes = [
            f"than {lesser} in {(gain > 0).sum()} of {len(gain)} (mean gain {gain.mean():+.4f})"
            for lesser, gain in effects[effects["fuller"] == whole].groupby("lesser", sort=False)["gain"]
        ]
        judged = f"Judged by {classifier}, " if analysis.several_judges else ""
        yield f"{judged}{whole} is better {listed(outcomes)} comparisons (a metric on a dataset)."


def _sensitivity(analysis: Analysis) -> Iterator[str]:
    """Name the settings with the best average rank over datasets and metrics, by the main classifier."""
    found = analysis.settings
    found = found[found["classifier"] == analysis.main.classifier]
    judged = f", judged by {analysis.main.classifier}" if analysis.several_judges else ""
    for method, rows in found.groupby("method", sort=False):
        settings = [
            f"{row.best.replace(', ', ' with ')} (of {row.n_settings} settings)" for row in rows.itertuples()
        ]
        yield f"{method} does best on average with {listed(settings)}{judged}."


def _paper(analysis: Analysis) -> Iterator[str]:
    if not analysis.papers:
        return
    cells = analysis.papers[analysis.main.classifier]
    found = agreement(cells).loc[""]
    yield (
        f"Ours differ from the {len(cells)} cells of the PML-FSMIR paper by {found['difference']:.2f} in the "
        f"mean, and the orders of the methods correlate {found['spearman']:.2f} (Spearman). PML-FSMIR's average rank "
        f"there is {found['flagship_rank']:.2f}, and {found['flagship_rank_in_paper']:.2f} in the paper."
    )
