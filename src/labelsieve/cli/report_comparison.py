"""Two runs compared on the terminal, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

import typer

from labelsieve._text import count, printable
from labelsieve.bench import RunError
from labelsieve.cli._console import lay_out, results
from labelsieve.report.analysis.summary import Summary
from labelsieve.report.analysis.two_runs import Difference, TwoRuns, compare_runs
from labelsieve.report.wording import listed, metric_title


def compare(names: Sequence[str], summaries: Sequence[Summary], *, as_json: bool) -> None:
    """Say what two runs have in common and where they differ."""
    found = compare_runs(*summaries)
    if not found.differences:
        raise RunError(
            f"{names[0]} and {names[1]}: finished results that both have were expected, got none; name runs with a "
            "data set, a method, a classifier, a metric and a size in common."
        )
    if as_json:
        content = {"first": names[0], "second": names[1], **found.as_dict()}
        typer.echo(json.dumps(content, indent=2, allow_nan=False))
        return
    console = results()
    for text in _sentences(names, found):
        console.print(printable(text))
    several = len({difference.classifier for difference in found.differences}) > 1
    for classifier in dict.fromkeys(difference.classifier for difference in found.differences):
        rows = [
            difference
            for difference in found.differences
            if difference.classifier == classifier and difference.difference
        ]
        if rows:
            title = f"judged by {printable(classifier)}" if several else None
            console.print()
            console.print(lay_out(console.width, _columns(rows), long="method", title=title))


def _sentences(names: Sequence[str], found: TwoRuns) -> list[str]:
    shared = found.differences
    differing = [difference for difference in shared if difference.difference]
    beyond = sum(difference.stands_out for difference in shared)
    told = [
        f"first: {names[0]}; second: {names[1]}.",
        f"Both have {count(len({dataset for dataset, _ in found.by_dataset}), 'data set')} and "
        f"{count(len({difference.method for difference in shared}), 'method')}. "
        + (
            f"Of {count(len(shared), 'mean')} (a metric of a method), {len(differing)} differ, {beyond} of them by "
            "more than the folds deviate."
            if differing
            else f"All {count(len(shared), 'mean')} (a metric of a method) are equal."
        ),
    ]
    for which, only in (("first", found.only_first), ("second", found.only_second)):
        parts = [f"{what} {listed(entries)}" for what, entries in only.items() if entries]
        if parts:
            told.append(f"Only the {which} has results of {'; '.join(parts)}.")
    if found.other_data:
        told.append(f"The data of {listed(found.other_data)} are not the same.")
    if found.settings:
        told.append(f"These settings are not the same: {listed(found.settings)}.")
    return told


def _columns(rows: Sequence[Difference]) -> dict[str, list[str]]:
    return {
        "method": [row.method for row in rows],
        "metric": [metric_title(row.metric, row.direction) for row in rows],
        "first": [f"{row.first:.4f}" for row in rows],
        "second": [f"{row.second:.4f}" for row in rows],
        "difference": [f"{row.difference:+.4f}" for row in rows],
        "fold std": ["-" if row.fold_std is None else f"{row.fold_std:.4f}" for row in rows],
    }
