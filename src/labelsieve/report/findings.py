"""Findings of a run in sentences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from labelsieve._text import count
from labelsieve.report.analysis import Analysis
from labelsieve.report.comparison import ALPHA, Comparison
from labelsieve.report.variations import rank_settings
from labelsieve.report.wording import listed, metric_words, reference_words

__all__ = ["find", "missing_parts"]

_MOST_NAMED = 6


def find(analysis: Analysis) -> list[str]:
    """Say what a run shows, the most important first: the winner, its lead, its significance, what it beats."""
    return [
        *_winner(analysis),
        *_significance(analysis.main),
        *_control(analysis),
        *_among_all(analysis),
        *_references(analysis),
        *_ablation(analysis),
        *_sensitivity(analysis),
        *_paper(analysis),
    ]


def missing_parts(analysis: Analysis) -> list[str]:
    """Say what is missing of a run and what the report leaves out; empty if the run is complete."""
    coverage = analysis.facts.coverage
    altered = analysis.facts.n_altered
    doubt = (
        [
            f"The numbers of {count(altered, 'cell')} were altered after they were stored; run the experiment again."
        ]
        if altered
        else []
    )
    if coverage.complete:
        return doubt
    failed = f", {coverage.n_failed} failed" if coverage.n_failed else ""
    absent = coverage.n_planned - coverage.n_done - coverage.n_failed
    still = f", {absent} not run yet" if absent else ""
    told = [
        *doubt,
        f"This run is incomplete: {coverage.n_done} of {count(coverage.n_planned, 'cell')} done{failed}{still}. "
        "Only what is complete is shown: a method on a data set counts when all its folds and seeds are done.",
    ]
    if coverage.untouched:
        told.append(f"Nothing yet of {listed(coverage.untouched)}.")
    ranked, compared = analysis.main.ranked_methods, analysis.summary.compared
    unranked = [name for name in compared if name not in ranked]
    if ranked and unranked:
        told.append(f"Not ranked, as too much of it is missing: {listed(unranked)}.")
    if ranked:
        left_out = [name for name in analysis.main.noise if name not in analysis.main.ranked_datasets]
        if left_out:
            told.append(f"Left out of ranks and tests, as a ranked method lacks results: {listed(left_out)}.")
    return told


def _winner(analysis: Analysis) -> Iterator[str]:
    main, overall = analysis.main, analysis.main.overall
    if len(overall) < 2:
        compared = analysis.summary.compared
        if compared:
            reason = "there is only one." if len(compared) == 1 else "too few results are complete."
            yield f"No method can be called best: {reason}"
        return
    n_methods = len(main.ranked_methods)
    scope = f"over {count(len(main.metrics), 'metric')} and {count(len(main.ranked_datasets), 'data set')}"
    best = min(overall.values())
    winners = [name for name, rank in overall.items() if np.isclose(rank, best)]
    what = _what(analysis)
    if len(winners) > 1:
        yield (
            f"Among the {n_methods} {what}, {listed(winners)} share the best average rank, {best:.2f} {scope} "
            "(1 is best)."
        )
        return
    second = sorted(overall.values())[1]
    runners = [name for name, rank in overall.items() if np.isclose(rank, second)]
    yield (
        f"Among the {n_methods} {what}, {winners[0]} has the best average rank, {best:.2f} {scope} (1 is best), "
        f"{second - best:.2f} ahead of {listed(runners)}."
    )


def _significance(main: Comparison) -> Iterator[str]:
    if main.no_tests:
        if main.metrics and main.summary.compared:
            yield main.no_tests
        return
    assert main.nemenyi_cd is not None
    n_datasets, n_methods = len(main.ranked_datasets), len(main.ranked_methods)
    ordered = list(main.overall.items())
    best = ordered[0][1]
    winners = [name for name, rank in ordered if np.isclose(rank, best)]
    worse = [name for name, rank in ordered if rank - best >= main.nemenyi_cd]
    needed = (
        f"with {count(n_datasets, 'data set')} and {count(n_methods, 'method')}, average ranks must differ by "
        f"{main.nemenyi_cd:.2f} (Nemenyi, {ALPHA:.0%})"
    )
    if not worse:
        yield f"No lead over another method is significant: {needed}."
    else:
        rest = (
            ""
            if len(worse) == len(ordered) - len(winners)
            else "; the lead over the others is not significant"
        )
        verb = "is" if len(winners) == 1 else "are"
        yield f"{listed(winners)} {verb} significantly better than {listed(worse)}{rest}: {needed}."
    p_values = main.tests["iman_davenport_p"]
    differing = [metric_words(metric) for metric in p_values.index[p_values < ALPHA]]
    n_metrics = len(p_values)
    which = "" if not differing or len(differing) == n_metrics else f" ({listed(differing)})"
    yield (
        f"That the methods differ at all is significant on {len(differing)} of {count(n_metrics, 'metric')}"
        f"{which} (Iman and Davenport's test, {ALPHA:.0%}, each metric alone)."
    )


def _control(analysis: Analysis) -> Iterator[str]:
    main = analysis.main
    critical = main.bonferroni_dunn_cd
    overall = main.overall
    if critical is None or next(iter(overall)) == main.control:
        return
    place = _place(overall, main.control)
    own = overall[main.control]
    better = [name for name, rank in overall.items() if own - rank >= critical]
    worse = [name for name, rank in overall.items() if rank - own >= critical]
    verdict = [
        f"significantly {word} than {listed(names)}"
        for word, names in (("worse", better), ("better", worse))
        if names
    ]
    said = listed(verdict) if verdict else "not significantly different from any other"
    yield (
        f"{main.control}, the control, is number {place} of the {len(overall)} {_what(analysis)} with {own:.2f}: "
        f"{said} (Bonferroni–Dunn, {critical:.2f} ranks)."
    )


def _among_all(analysis: Analysis) -> Iterator[str]:
    """Say where the best methods stand if the references are ranked too."""
    ranks, overall = analysis.main.among_all, analysis.main.overall
    if len(ranks) <= len(overall):
        return
    ordered = sorted(ranks, key=ranks.__getitem__)
    leaders = [name for name in ordered if np.isclose(ranks[name], ranks[ordered[0]])]
    verb = "has" if len(leaders) == 1 else "share"
    told = f"Among all {len(ordered)}, with the references ranked too, {listed(leaders)} {verb} the best average rank, "
    told += f"{ranks[ordered[0]]:.2f}"
    best = min(overall.values())
    behind = [
        f"{name} is number {_place(ranks, name)} of the {len(ordered)} with {ranks[name]:.2f}"
        for name, rank in overall.items()
        if np.isclose(rank, best) and name not in leaders
    ]
    if behind:
        told += f"; {listed(behind)}"
    elif len(leaders) == 1:
        nearest = next(name for name in ordered if name in analysis.summary.references)
        told += (
            f"; the best reference, {nearest}, is number {_place(ranks, nearest)} with {ranks[nearest]:.2f}"
        )
    yield f"{told}."


def _what(analysis: Analysis) -> str:
    return "variants" if analysis.compares_variants else "methods"


def _place(ranks: dict[str, float], name: str) -> int:
    """Place of a name by average rank; equals share the better place."""
    return 1 + sum(rank < ranks[name] and not np.isclose(rank, ranks[name]) for rank in ranks.values())


def _references(analysis: Analysis) -> Iterator[str]:
    """Name the methods that do not beat a reference, for every reference."""
    slugs = {method.name: method.method for method in analysis.summary.experiment.all_methods()}
    what = "variant" if analysis.compares_variants else "method"
    for reference, rows in analysis.challenges.groupby("reference", sort=False):
        counts = rows.groupby("method", sort=False)[["wins", "compared"]].sum()
        losers = counts[2 * counts["wins"] <= counts["compared"]]
        words = reference_words(slugs.get(reference, reference), reference)
        if losers.empty:
            who = f"{counts.index[0]} is" if len(counts) == 1 else f"All {len(counts)} {what}s are"
            yield f"{who} better than {words} in most comparisons (a metric on a data set)."
            continue
        losers = losers.iloc[np.argsort(losers["wins"] / losers["compared"], kind="stable")]
        first = losers.head(_MOST_NAMED)
        named = [f"{method} ({wins} of {compared})" for method, wins, compared in first.itertuples(name=None)]
        more = len(losers) - len(named)
        named += [f"{more} more"] if more else []
        if len(losers) == len(counts):
            who = "The only" if len(losers) == 1 else f"None of the {len(counts)}"
            verb = f"{what} is not better" if len(losers) == 1 else f"{what}s is better"
            yield f"{who} {verb} than {words} in most comparisons: {listed(named)}."
        else:
            verb = "is" if len(losers) == 1 else "are"
            yield (
                f"{len(losers)} of {len(counts)} {what}s {verb} not better than {words} in most comparisons: "
                f"{listed(named)}."
            )


def _ablation(analysis: Analysis) -> Iterator[str]:
    """Say by how much the whole method is better than its variants, for every classifier."""
    for classifier, effects in analysis.effects.groupby("classifier", sort=False):
        whole = effects["fuller"].iloc[0]
        outcomes = [
            f"than {lesser} in {(gain > 0).sum()} of {len(gain)} (mean gain {gain.mean():+.4f})"
            for lesser, gain in effects[effects["fuller"] == whole].groupby("lesser", sort=False)["gain"]
        ]
        judged = f"Judged by {classifier}, " if analysis.several_judges else ""
        yield f"{judged}{whole} is better {listed(outcomes)} comparisons, a metric on a data set each."


def _sensitivity(analysis: Analysis) -> Iterator[str]:
    """Name the setting with the best average rank over data sets and metrics, for every sweep."""
    for (classifier, method, parameters), costs, settings, ranks in rank_settings(
        analysis.summary, analysis.sweeps
    ):
        judged = f", judged by {classifier}" if analysis.several_judges else ""
        yield (
            f"Of {count(ranks.size, 'setting')} of {listed(parameters.split(' × '))}, {method} does best on average "
            f"with {listed(settings[int(ranks.argmin())].split(', '))} ({count(len(costs), 'comparison')}{judged})."
        )


def _paper(analysis: Analysis) -> Iterator[str]:
    if not analysis.papers:
        return
    check = analysis.papers[analysis.main.classifier]
    gaps, correlations = check.differences, check.spearman
    order = (
        f"; the order of the methods correlates {correlations.mean():.2f} with the paper's (Spearman, mean over "
        f"{count(len(correlations), 'data set and metric', 'data sets and metrics')})"
        if len(correlations)
        else ""
    )
    shared = count(len(gaps), "cell is", "cells are")
    yield f"{shared} in the PML-FSMIR paper too: ours differ by {np.abs(gaps).mean():.2f} in the mean{order}."
    ours, theirs = check.flagship_rank(), check.flagship_rank("theirs")
    stand_in = check.flagship_rank(by_frequencies=True)
    if ours is not None and theirs is not None:
        in_its_place = (
            f" Label frequencies alone with every label predicted would have {stand_in:.2f} in its place."
            if stand_in is not None
            else ""
        )
        metrics = count(len(check.metrics), "metric")
        yield (
            f"Among the paper's methods, on the {metrics} of these cells alone, PML-FSMIR's average rank is {ours:.2f} "
            f"and {theirs:.2f} in the paper.{in_its_place}"
        )
