"""Tables of methods against one another and against the references."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from labelsieve._text import count
from labelsieve.metrics import METRICS
from labelsieve.report.analysis.comparison import ALPHA, Comparison, MetricTable, Standing
from labelsieve.report.analysis.run_analysis import Analysis
from labelsieve.report.tables.table import Column, Entry, Mark, Table, name_columns, text_columns
from labelsieve.report.wording import metric_title, metric_words

_RANK = ".2f"


def metric_tables(comparison: Comparison) -> list[Table]:
    """One table a metric: data sets by methods and references, with the average ranks below."""
    standings = {standing.metric: standing for standing in comparison.standings}
    return [_metric_table(table, standings.get(table.metric)) for table in comparison.tables]


def rank_table(comparison: Comparison) -> Table:
    """Average ranks by metric and overall, best first; references are ranked in the last column only."""
    standings = comparison.standings
    among_all = comparison.among_all
    overall = comparison.overall
    columns = (
        *text_columns("method"),
        *(Column(metric_words(standing.metric), "average rank among the methods") for standing in standings),
        Column("all metrics", "average rank among the methods"),
        Column("with the references ranked too"),
    )
    rows: list[tuple[Entry, ...]] = []
    for name in overall:
        place = comparison.ranked_methods.index(name)
        averages = [float(standing.average[place]) for standing in standings]
        values = [*averages, overall[name], among_all.get(name)]
        rows.append((Entry(name), *(Entry(value, form=_RANK) for value in values)))
    for name in sorted(set(among_all) - set(overall), key=among_all.__getitem__):
        gaps = [Entry(None)] * (len(standings) + 1)
        rows.append((Entry(name), *gaps, Entry(among_all[name], form=_RANK)))
    return _mark_lowest(Table("average_ranks", "Average ranks", columns, tuple(rows), note="1 is best."))


def difference_table(comparison: Comparison) -> Table:
    """Do the methods differ at all? Friedman's and Iman and Davenport's tests, by metric."""
    heads = (
        "Friedman χ²",
        "p (Friedman)",
        "Iman–Davenport F",
        "p (Iman–Davenport)",
        "pairs that differ (Nemenyi)",
    )
    rows = []
    for standing in comparison.standings:
        if standing.friedman is None or standing.iman_davenport is None or standing.pairs is None:
            continue
        n_pairs = len(standing.methods) * (len(standing.methods) - 1) // 2
        n_different = int((np.triu(standing.pairs < ALPHA, k=1)).sum())
        rows.append(
            (
                Entry(metric_words(standing.metric)),
                Entry(standing.friedman.statistic, form=".2f"),
                Entry(standing.friedman.p_value, form="p"),
                Entry(standing.iman_davenport.statistic, form=".2f"),
                Entry(standing.iman_davenport.p_value, form="p"),
                Entry(n_different, words=f"{n_different} of {n_pairs}"),
            )
        )
    return Table("tests", "Do the methods differ at all?", name_columns("metric", heads), tuple(rows))


def pair_tables(comparison: Comparison) -> list[Table]:
    """P-values of all pairs of methods (Nemenyi), by metric."""
    tables = []
    for standing in comparison.standings:
        if standing.pairs is None:
            continue
        rows = tuple(
            (
                Entry(name),
                *(
                    Entry(None)
                    if column == row
                    else Entry(float(p), form="p", mark="best" if p < ALPHA else "")
                    for column, p in enumerate(standing.pairs[row])
                ),
            )
            for row, name in enumerate(standing.methods)
        )
        tables.append(
            Table(
                f"nemenyi_{standing.metric}",
                f"Nemenyi p-values: {metric_words(standing.metric)}",
                name_columns("method", standing.methods),
                rows,
                note=f"Adjusted for all pairs; bold is below {ALPHA}.",
            )
        )
    return tables


def duel_table(comparison: Comparison) -> Table | None:
    """Win/tie/loss of the control against each method; None without a test."""
    standings = [standing for standing in comparison.standings if standing.duels]
    if not standings:
        return None
    rows = []
    for place, duel in enumerate(standings[0].duels or ()):
        outcomes = [standing.duels[place] for standing in standings if standing.duels]
        entries = [
            Entry(
                float(duel.outcome.wins - duel.outcome.losses),
                words=f"{duel.outcome.wins}/{duel.outcome.ties}/{duel.outcome.losses}",
                mark="best" if duel.adjusted < ALPHA else "",
            )
            for duel in outcomes
        ]
        total = [sum(duel.outcome[part] for duel in outcomes) for part in range(3)]
        last = Entry(float(total[0] - total[2]), words="/".join(map(str, total)))
        rows.append((Entry(duel.method), *entries, last))
    heads = [*(metric_words(standing.metric) for standing in standings), "all metrics"]
    return Table(
        "win_tie_loss",
        f"Win/tie/loss of {comparison.control}",
        name_columns("against", heads),
        tuple(rows),
        note=f"Data sets where {comparison.control} is better/equal/worse; bold where Wilcoxon's test, "
        f"adjusted by Holm for the number of methods, is below {ALPHA}.{_least_p_value(comparison)}",
    )


def _least_p_value(comparison: Comparison) -> str:
    """Say so where there are too few data sets for any difference to be significant."""
    n_datasets, n_methods = comparison.n_ranked
    # Of the 2^n patterns of signs, the two with all signs equal are the least likely.
    least = 2 * 0.5**n_datasets * (n_methods - 1)
    if least < ALPHA:
        return ""
    few = f"{count(n_datasets, 'data set')} and {count(n_methods, 'method')}"
    return f" With {few} it is never below {min(least, 1):.3f}: nothing can be bold."


def duel_p_values(comparison: Comparison) -> Table | None:
    """P-values of the same comparisons, single and adjusted."""
    rows = tuple(
        (
            Entry(metric_words(standing.metric)),
            Entry(duel.method),
            *(Entry(duel.outcome[part]) for part in range(3)),
            Entry(duel.outcome.p_value, form="p"),
            Entry(duel.adjusted, form="p"),
        )
        for standing in comparison.standings
        for duel in standing.duels or ()
    )
    columns = (
        *text_columns("metric", "against"),
        *(Column(head) for head in ("wins", "ties", "losses", "p (Wilcoxon)", "p (Holm)")),
    )
    title = f"Wilcoxon's tests of {comparison.control}"
    return Table("wilcoxon", title, columns, rows) if rows else None


def challenge_tables(analysis: Analysis) -> list[Table]:
    """Do the methods beat the references? First over all metrics, then one table a metric."""
    won = {(challenge.method, challenge.reference): challenge for challenge in analysis.challenges}
    if not won:
        return []
    references = [name for name in analysis.references if any(key[1] == name for key in won)]
    tables = []
    for metric in (None, *(table.metric for table in analysis.main.tables)):
        rows = []
        for method in analysis.compared:
            entries = []
            for reference in references:
                challenge = won.get((method, reference))
                if challenge is None:
                    entries.append(Entry(None))
                    continue
                wins = challenge.n_wins if metric is None else challenge.wins[metric]
                compared = challenge.n_compared if metric is None else challenge.compared[metric]
                share = wins / compared if compared else np.nan
                mark: Mark = "best" if 2 * wins > compared else ""
                entries.append(Entry(share, words=f"{wins} of {compared}", mark=mark))
            rows.append((Entry(method), *entries))
        title = "over all metrics and data sets" if metric is None else f"{metric_words(metric)}, data sets"
        tables.append(
            Table(
                "references" if metric is None else f"references_{metric}",
                f"Comparisons in which the method beats the reference: {title}",
                name_columns("method", references),
                tuple(rows),
                note="Bold: better in more than half.",
            )
        )
    return tables


def condition_table(analysis: Analysis) -> Table | None:
    """Average ranks over all metrics under each noise and classifier; None if there is one condition."""
    named = {name: other for name, other in analysis.others.items() if other.standings}
    if not named:
        return None
    rows = [
        (Entry(name), *(Entry(other.overall.get(method), form=_RANK) for method in analysis.compared))
        for name, other in {"as above": analysis.main, **named}.items()
    ]
    return _mark_lowest(
        Table(
            "conditions",
            "Average ranks under other conditions",
            name_columns("condition", analysis.compared),
            tuple(rows),
            note="Over all metrics and the data sets complete there; 1 is best.",
        ),
        by_row=True,
    )


def all_ranks_table(analysis: Analysis) -> Table | None:
    """Average ranks with the references ranked too, under each noise and classifier; None if there is one condition."""
    others = {name: other.among_all for name, other in analysis.others.items() if other.among_all}
    if not others:
        return None
    conditions = {"as above": analysis.main.among_all, **others}
    names = sorted(analysis.main.among_all, key=analysis.main.among_all.__getitem__)
    rows = tuple(
        (Entry(name), *(Entry(ranks.get(name), form=_RANK) for ranks in conditions.values()))
        for name in names
    )
    return _mark_lowest(
        Table(
            "conditions_with_references",
            "Average ranks under other conditions, with the references ranked too",
            name_columns("method", conditions),
            rows,
            note="Over all metrics and the data sets complete there; 1 is best.",
        )
    )


def _metric_table(table: MetricTable, standing: Standing | None) -> Table:
    n_methods = len(table.methods)
    rows = []
    for row, dataset in enumerate(table.datasets):
        cost = table.cost[row]
        places = np.unique(cost[:n_methods][np.isfinite(cost[:n_methods])])
        marks: list[Mark] = [
            _mark(value, places, is_method=column < n_methods) for column, value in enumerate(cost)
        ]
        rows.append(
            (
                Entry(dataset),
                *(
                    Entry(_known(mean), _known(fold_std), mark, size_spread=_known(std))
                    for mean, fold_std, std, mark in zip(
                        table.mean[row], table.fold_std[row], table.std[row], marks, strict=True
                    )
                ),
            )
        )
    foot: tuple[tuple[Entry, ...], ...] = ()
    if standing is not None:
        average = dict(zip(standing.methods, standing.average.tolist(), strict=True))
        best = np.unique(standing.average)
        entries = (
            Entry(average.get(name), form=_RANK, mark=_mark(average.get(name, np.nan), best, is_method=True))
            for name in table.methods
        )
        foot = ((Entry("average rank"), *entries, *(Entry(None) for _ in table.references)),)
    over_folds, over_sizes = (
        f" ± standard deviation {of}" if np.isfinite(spread).any() else ""
        for spread, of in (
            (table.fold_std, "over the folds at one size (root mean square over the sizes)"),
            (table.std, "over the sizes of the means over folds"),
        )
    )
    dagger = " † is a reference ahead of every method." if table.references else ""
    return Table(
        # The name of one's own could be that of another table.
        table.metric if table.metric in METRICS else f"metric_{table.metric}",
        metric_title(table.metric, table.direction),
        (
            *text_columns("data set"),
            *(Column(name, "methods") for name in table.methods),
            *(Column(name, "references") for name in table.references),
        ),
        tuple(rows),
        foot,
        *(
            f"Mean over folds and sizes{spread}; {table.direction} is better. Best method bold, second underlined."
            f"{dagger}"
            for spread in (over_folds, over_sizes)
        ),
    )


def _mark(cost: float, places: np.ndarray, *, is_method: bool) -> Mark:
    """Best or second among the methods; of references, those ahead of all methods."""
    if not np.isfinite(cost) or len(places) == 0:
        return ""
    if not is_method:
        return "ahead" if cost < places[0] else ""
    if cost == places[0]:
        return "best"
    return "second" if cost == places[1] else ""


def _mark_lowest(table: Table, *, by_row: bool = False) -> Table:
    """Mark the lowest number and the second of every column, or row, after the first column."""
    numbers = [[_number(entry) for entry in row[1:]] for row in table.rows]
    grid = np.array(numbers, dtype=float).reshape(len(table.rows), -1)
    lines = grid if by_row else grid.T
    places = [np.unique(line[np.isfinite(line)]) for line in lines]
    rows = tuple(
        (
            row[0],
            *(
                replace(entry, mark=mark)
                for entry, mark in zip(
                    row[1:],
                    (
                        _mark(value, places[index if by_row else column], is_method=True)
                        for column, value in enumerate(grid[index])
                    ),
                    strict=True,
                )
            ),
        )
        for index, row in enumerate(table.rows)
    )
    return replace(table, rows=rows)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _number(entry: Entry) -> float:
    return np.nan if not isinstance(entry.value, float) else entry.value
