"""Findings of a run as short texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from labelsieve._text import count
from labelsieve.report.analysis import Analysis
from labelsieve.report.comparison import ALPHA
from labelsieve.report.paper import FLAGSHIP, agreement
from labelsieve.report.tables import listed, metric_words

#: A report opens with this many findings. The others follow further down.
N_MAIN = 3
# Longer lists of names are replaced by their number.
_MOST_NAMES = 3


def find(analysis: Analysis) -> list[str]:
    """Describe the findings of a run, most important first."""
    parts = (_winner, _ablation, _sensitivity, _references, _paper, _control, _with_references, _tests)
    return [text for part in parts for text in part(analysis)]


def missing_parts(analysis: Analysis) -> list[str]:
    """Describe the parts missing from a run and from its report."""
    coverage, n_altered, main = analysis.facts.coverage, analysis.facts.n_altered, analysis.main
    texts = []
    if n_altered:
        texts.append(
            f"Not included: {count(n_altered, 'damaged row')}. To recompute, run the experiment again."
        )
    if coverage.complete:
        return texts
    failed = f", {coverage.n_failed} failed" if coverage.n_failed else ""
    n_left = coverage.n_planned - coverage.n_done - coverage.n_failed
    left = f", {n_left} not run yet" if n_left else ""
    texts.append(
        f"This run is incomplete: {coverage.n_done} of {count(coverage.n_planned, 'cell')} done{failed}{left}. "
        "A method is shown for a dataset if all its folds and seeds are done."
    )
    if coverage.untouched:
        texts.append(f"No results yet for {listed(coverage.untouched)}.")
    unranked = [name for name in analysis.summary.compared if name not in main.ranked_methods]
    if main.ranked_methods and unranked:
        texts.append(f"Not ranked because too many results are missing: {listed(unranked)}.")
    left_out = [name for name in main.noise if name not in main.ranked_datasets]
    if main.ranked_methods and left_out:
        texts.append(f"Not used for ranks and tests because results are missing: {listed(left_out)}.")
    return texts


def _leaders(ranks: Mapping[str, float]) -> list[str]:
    """Names with the best average rank."""
    return [name for name, rank in ranks.items() if np.isclose(rank, min(ranks.values()))]


def _place(ranks: Mapping[str, float], name: str) -> int:
    """Place of a name by average rank. Ties share the better place."""
    return 1 + sum(rank < ranks[name] and not np.isclose(rank, ranks[name]) for rank in ranks.values())


def _winner(analysis: Analysis) -> Iterator[str]:
    """Name the methods with the best average rank and those that are significantly worse."""
    main, overall = analysis.main, analysis.main.overall
    n_compared = len(analysis.summary.compared)
    if len(overall) < 2:
        if n_compared:
            reason = "only one is compared" if n_compared == 1 else "too few results are complete"
            yield f"The {analysis.noun}s are not ranked because {reason}."
        return
    winners = _leaders(overall)
    best = overall[winners[0]]
    others = {name: rank for name, rank in overall.items() if name not in winners}
    verb = "has" if len(winners) == 1 else "share"
    following = ""
    if len(winners) == 1:
        second = _leaders(others)
        following = f", followed by {listed(second)} ({others[second[0]]:.2f})"
    text = f"{listed(winners)} {verb} the best average rank of {len(overall)} {analysis.noun}s ({best:.2f}){following}."
    if main.nemenyi_cd is not None:
        worse = [name for name, rank in overall.items() if rank - best >= main.nemenyi_cd]
        names = listed(worse) if len(worse) <= _MOST_NAMES else f"{len(worse)} others"
        text += f" The lead over {names} is significant." if worse else " The lead is not significant."
    yield text


def _ablation(analysis: Analysis) -> Iterator[str]:
    """Count the comparisons in which the full method beats its variants, by classifier."""
    for classifier, effects in analysis.effects.groupby("classifier", sort=False):
        full = effects["fuller"].iloc[0]
        outcomes = [
            f"{lesser} in {(gain > 0).sum()} of {len(gain)}"
            for lesser, gain in effects[effects["fuller"] == full].groupby("lesser", sort=False)["gain"]
        ]
        judged = f" (judged by {classifier})" if analysis.several_judges else ""
        yield f"{full} beats {listed(outcomes)} comparisons{judged}."


def _sensitivity(analysis: Analysis) -> Iterator[str]:
    """Name the settings with the best average rank with the main classifier."""
    found = analysis.settings
    found = found[found["classifier"] == analysis.main.classifier]
    judged = f" (judged by {analysis.main.classifier})" if analysis.several_judges else ""
    for method, rows in found.groupby("method", sort=False):
        settings = [best.replace(", ", " with ") for best in rows["best"]]
        yield f"{method} does best on average at {listed(settings)}{judged}."


def _references(analysis: Analysis) -> Iterator[str]:
    """Count the methods that beat each reference in most comparisons."""
    challenges, noun = analysis.main.challenges, analysis.noun
    if challenges.empty:
        return
    n_methods = challenges["method"].nunique()
    counts = challenges.groupby(["reference", "method"], sort=False)[["wins", "compared"]].sum()
    n_better = (2 * counts["wins"] > counts["compared"]).groupby("reference", sort=False).sum()
    texts = []
    for n, references in sorted((n, names.index) for n, names in n_better.groupby(n_better)):
        subject = {0: f"No {noun} beats", n_methods: f"Every {noun} beats"}.get(
            n, f"{n} of {n_methods} {noun}s {'beats' if n == 1 else 'beat'}"
        )
        texts.append(f"{subject} {listed(references, 'and' if n else 'or')}")
    yield f"{'. '.join([f'{texts[0]} in most comparisons', *texts[1:]])}."


def _paper(analysis: Analysis) -> Iterator[str]:
    """Compare the rank of the flagship method and the scores with the paper."""
    if not analysis.papers:
        return
    cells = analysis.papers[analysis.main.classifier]
    found = agreement(cells).loc[""]
    ours, theirs = found["flagship_rank"], found["flagship_rank_in_paper"]
    if not pd.isna(ours):
        yield f"The average rank of {FLAGSHIP} is {ours:.2f} here and {theirs:.2f} in the PML-FSMIR paper."
    yield f"Scores differ from those of the PML-FSMIR paper by {found['difference']:.2f} on average."


def _control(analysis: Analysis) -> Iterator[str]:
    """Compare the control with the other methods, unless it is the best."""
    main = analysis.main
    critical, overall = main.bonferroni_dunn_cd, main.overall
    if critical is None or next(iter(overall)) == main.control:
        return
    rank = overall[main.control]
    better = [name for name, other in overall.items() if rank - other >= critical]
    worse = [name for name, other in overall.items() if other - rank >= critical]
    verdicts = [
        f"significantly {word} than {listed(names)}"
        for word, names in (("worse", better), ("better", worse))
        if names
    ]
    yield (
        f"{main.control}, the control, is number {_place(overall, main.control)} of {len(overall)} {analysis.noun}s "
        f"({rank:.2f}). It is {listed(verdicts) or 'not significantly different from any other'} "
        f"(Bonferroni–Dunn, critical difference {critical:.2f})."
    )


def _with_references(analysis: Analysis) -> Iterator[str]:
    """Name the best of methods and references together."""
    ranks, overall = analysis.main.among_all, analysis.main.overall
    if len(ranks) <= len(overall) or not overall:
        return
    leaders = _leaders(ranks)
    behind = [f"{name} is number {_place(ranks, name)}" for name in _leaders(overall) if name not in leaders]
    verb = "has" if len(leaders) == 1 else "share"
    text = f"With references included, {listed(leaders)} {verb} the best average rank of {len(ranks)}"
    yield f"{', and '.join([text, listed(behind)]) if behind else text}."


def _tests(analysis: Analysis) -> Iterator[str]:
    """Summarise the tests over all methods, or explain why there are none."""
    main = analysis.main
    if main.nemenyi_cd is None:
        if main.metrics and analysis.summary.compared:
            yield main.no_tests
        return
    p_values = main.tests["iman_davenport_p"]
    differing = [metric_words(metric) for metric in p_values.index[p_values < ALPHA]]
    names = f": {listed(differing)}" if 0 < len(differing) < len(p_values) else ""
    yield f"Average ranks must differ by at least {main.nemenyi_cd:.2f} to be significant (Nemenyi, {ALPHA:.0%})."
    yield (
        f"The {analysis.noun}s differ significantly on {len(differing)} of {count(len(p_values), 'metric')}{names} "
        "(Iman–Davenport)."
    )
