"""What a run shows, in sentences made of its numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from labelsieve._text import count
from labelsieve.report.analysis.comparison import ALPHA, Comparison
from labelsieve.report.analysis.run_analysis import Analysis
from labelsieve.report.analysis.sensitivity import setting_costs, whole_sweeps
from labelsieve.report.statistics import average_ranks
from labelsieve.report.wording import listed, metric_words, reference_words

_MOST_NAMED = 6


def find(analysis: Analysis) -> list[str]:
    """Say first what a reader wants to know first: who wins, by how much, is it sure, what does it beat.

    Parameters
    ----------
    analysis : Analysis
        The numbers.

    Returns
    -------
    sentences : list of str
        Plain text; names in it come from the configuration.
    """
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
    """Say what is missing of a run, and what that does to the report; empty if it is complete."""
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
    ranked, compared = analysis.main.ranked_methods, analysis.compared
    unranked = [name for name in compared if name not in ranked]
    if ranked and unranked:
        told.append(f"Not ranked, as too much of it is missing: {listed(unranked)}.")
    standings = analysis.main.standings
    if standings:
        left_out = [name for name in analysis.main.noise if name not in standings[0].datasets]
        if left_out:
            told.append(f"Left out of ranks and tests, as a ranked method lacks results: {listed(left_out)}.")
    return told


def _winner(analysis: Analysis) -> Iterator[str]:
    main, overall = analysis.main, analysis.main.overall
    if len(overall) < 2:
        if analysis.compared:
            yield (
                "No method can be called best: "
                + ("there is only one." if len(analysis.compared) == 1 else "too few results are complete.")
            )
        return
    n_datasets, n_methods = main.n_ranked
    scope = f"over {count(len(main.standings), 'metric')} and {count(n_datasets, 'data set')}"
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
        if main.tables and main.tables[0].methods:
            yield main.no_tests
        return
    assert main.nemenyi_cd is not None
    n_datasets, n_methods = main.n_ranked
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
    differing = [
        metric_words(standing.metric)
        for standing in main.standings
        if standing.iman_davenport is not None and standing.iman_davenport.p_value < ALPHA
    ]
    n_metrics = len(main.standings)
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
    """Where those that were called best stand when the references are ranked too: another field, other ranks."""
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
        nearest = next(name for name in ordered if name in analysis.references)
        told += (
            f"; the best reference, {nearest}, is number {_place(ranks, nearest)} with {ranks[nearest]:.2f}"
        )
    yield f"{told}."


def _what(analysis: Analysis) -> str:
    return "variants" if analysis.compares_variants else "methods"


def _place(ranks: dict[str, float], name: str) -> int:
    """The place of a name by average rank; equals share the better place."""
    return 1 + sum(rank < ranks[name] and not np.isclose(rank, ranks[name]) for rank in ranks.values())


def _references(analysis: Analysis) -> Iterator[str]:
    """For every reference, who does not beat it."""
    for reference in analysis.references:
        challenges = [found for found in analysis.challenges if found.reference == reference]
        if not challenges:
            continue
        losers = [found for found in challenges if not found.won]
        words = reference_words(analysis.slugs.get(reference, reference), reference)
        what = "variant" if analysis.compares_variants else "method"
        if not losers:
            who = (
                f"{challenges[0].method} is" if len(challenges) == 1 else f"All {len(challenges)} {what}s are"
            )
            yield f"{who} better than {words} in most comparisons (a metric on a data set)."
            continue
        losers.sort(key=lambda found: found.n_wins / found.n_compared)
        named = [f"{found.method} ({found.n_wins} of {found.n_compared})" for found in losers[:_MOST_NAMED]]
        more = len(losers) - len(named)
        named += [f"{more} more"] if more else []
        if len(losers) == len(challenges):
            who = "The only" if len(losers) == 1 else f"None of the {len(challenges)}"
            verb = f"{what} is not better" if len(losers) == 1 else f"{what}s is better"
            yield f"{who} {verb} than {words} in most comparisons: {listed(named)}."
        else:
            verb = "is" if len(losers) == 1 else "are"
            yield (
                f"{len(losers)} of {len(challenges)} {what}s {verb} not better than {words} in most comparisons: "
                f"{listed(named)}."
            )


def _ablation(analysis: Analysis) -> Iterator[str]:
    """For every judge, on how much of it the whole method is better than its variants, and by how much."""
    for classifier in dict.fromkeys(effect.classifier for effect in analysis.effects):
        own = [effect for effect in analysis.effects if effect.classifier == classifier]
        whole = own[0].fuller
        outcomes = [
            f"than {effect.lesser} in {(effect.all_gains > 0).sum()} of {effect.all_gains.size} "
            f"(mean gain {effect.all_gains.mean():+.4f})"
            for effect in own
            if effect.fuller == whole
        ]
        judged = f"Judged by {classifier}, " if analysis.several_judges else ""
        yield f"{judged}{whole} is better {listed(outcomes)} comparisons, a metric on a data set each."


def _sensitivity(analysis: Analysis) -> Iterator[str]:
    """For every sweep, which setting is best over data sets and metrics, by mean rank."""
    for (classifier, method, parameters), group in whole_sweeps(analysis.sweeps).items():
        ranks = average_ranks(setting_costs(analysis.summary, group), "lower")
        judged = f", judged by {classifier}" if analysis.several_judges else ""
        yield (
            f"Of {count(ranks.size, 'setting')} of {listed(parameters)}, {method} does best on average with "
            f"{listed(group[0].setting(int(ranks.argmin())))} ({count(len(group), 'comparison')}{judged})."
        )


def _paper(analysis: Analysis) -> Iterator[str]:
    if analysis.paper is None:
        return
    gaps = analysis.paper.differences
    correlations = analysis.paper.spearman
    order = (
        f"; the order of the methods correlates {correlations.mean():.2f} with the paper's (Spearman, mean over "
        f"{count(len(correlations), 'data set and metric', 'data sets and metrics')})"
        if len(correlations)
        else ""
    )
    shared = count(len(gaps), "cell is", "cells are")
    yield f"{shared} in the PML-FSMIR paper too: ours differ by {np.abs(gaps).mean():.2f} in the mean{order}."
    ours, theirs = analysis.paper.flagship_rank(), analysis.paper.flagship_rank("theirs")
    stand_in = analysis.paper.flagship_rank(by_frequencies=True)
    if ours is not None and theirs is not None:
        in_its_place = (
            f" Label frequencies alone with every label predicted would have {stand_in:.2f} in its place."
            if stand_in is not None
            else ""
        )
        metrics = count(len(analysis.paper.tables), "metric")
        yield (
            f"Among the paper's methods, on the {metrics} of these cells alone, PML-FSMIR's average rank is {ours:.2f} "
            f"and {theirs:.2f} in the paper.{in_its_place}"
        )
