"""What a run shows, in sentences made of its numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from labelsieve.report.analysis.comparison import ALPHA, Comparison
from labelsieve.report.analysis.run_analysis import Analysis
from labelsieve.report.analysis.summary import as_cost
from labelsieve.report.wording import count, listed, metric_words, reference_words
from labelsieve.statistics import average_ranks

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
        *_control(analysis.main),
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
    what = "variants" if analysis.compares_variants else "methods"
    if len(winners) > 1:
        yield (
            f"{listed(winners)} share the best average rank, {best:.2f} among {n_methods} {what} {scope} "
            "(1 is best)."
        )
        return
    second = sorted(overall.values())[1]
    runners = [name for name, rank in overall.items() if np.isclose(rank, second)]
    yield (
        f"{winners[0]} has the best average rank, {best:.2f} among {n_methods} {what} {scope} (1 is best), "
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


def _control(main: Comparison) -> Iterator[str]:
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
        f"{main.control}, the control, is number {place} of {len(overall)} with {own:.2f}: {said} "
        f"(Bonferroni–Dunn, {critical:.2f} ranks)."
    )


def _among_all(analysis: Analysis) -> Iterator[str]:
    """Who comes first when the references are ranked too."""
    ranks = analysis.main.among_all
    if len(ranks) <= len(analysis.main.ranked_methods):
        return
    ordered = sorted(ranks, key=ranks.__getitem__)
    best = ranks[ordered[0]]
    leaders = [name for name in ordered if np.isclose(ranks[name], best)]
    verb = "comes first" if len(leaders) == 1 else "share the first place"
    lead = f"With the references ranked too, {listed(leaders)} {verb} of {len(ordered)} with {best:.2f}"
    behind = []
    for what, names in (("method", analysis.compared), ("reference", analysis.references)):
        nearest = next(name for name in ordered if name in names)
        if nearest not in leaders:
            place, rank = _place(ranks, nearest), ranks[nearest]
            behind.append(f"; the best {what}, {nearest}, is number {place} with {rank:.2f}")
    yield f"{lead}{''.join(behind)}."


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
    """For every variant and classifier, on how much of it the whole method is better."""
    variants = analysis.ablations[0].variants if analysis.ablations else ()
    for classifier in dict.fromkeys(ablation.classifier for ablation in analysis.ablations):
        own = [ablation for ablation in analysis.ablations if ablation.classifier == classifier]
        judged = f", judged by {classifier}" if analysis.several_judges else ""
        for column, variant in enumerate(variants[1:], start=1):
            wins = compared = 0
            for ablation in own:
                cost = as_cost(ablation.metric, ablation.values)
                gain = cost[:, column] - cost[:, 0]
                wins += int((gain > 0).sum())
                compared += int(np.isfinite(gain).sum())
            if compared:
                yield (
                    f"{variants[0]} is better than {variant} in {wins} of "
                    f"{count(compared, 'comparison')} (a metric on a data set){judged}."
                )


def _sensitivity(analysis: Analysis) -> Iterator[str]:
    """For every sweep, which setting is best over data sets and metrics, by mean rank."""
    groups: dict[tuple[str, str, tuple[str, ...]], list[np.ndarray]] = {}
    grids = {}
    for sweep in analysis.sweeps:
        if np.isfinite(sweep.values).all() and sweep.values.size > 1:
            costs = as_cost(sweep.metric, sweep.values).ravel()
            key = sweep.classifier, sweep.method, sweep.parameters
            groups.setdefault(key, []).append(costs)
            grids[key] = sweep.grid
    for key, table in groups.items():
        classifier, method, parameters = key
        ranks = average_ranks(table, "lower")
        grid = grids[key]
        places = np.unravel_index(int(ranks.argmin()), [len(axis) for axis in grid])
        setting = listed(
            [f"{name} = {axis[p]}" for name, axis, p in zip(parameters, grid, places, strict=True)]
        )
        judged = f", judged by {classifier}" if analysis.several_judges else ""
        yield (
            f"Of {count(ranks.size, 'setting')} of {listed(parameters)}, {method} does best on average with {setting} "
            f"({count(len(table), 'comparison')}{judged})."
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
        yield f"PML-FSMIR's average rank in these cells is {ours:.2f}, and {theirs:.2f} in the paper.{in_its_place}"
