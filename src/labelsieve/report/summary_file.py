"""A summary as one small file: compressed CSV with the facts of the run in its first line.

A row of the table is one metric of one method at one size on one data set. ``pandas.read_csv(path, skiprows=1)``
reads it; `read_summary` returns the summary that was written, digit for digit.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import TypeAdapter

from labelsieve._text import csv_cell, csv_text, one_line
from labelsieve.bench import RunError
from labelsieve.bench.config import build_experiment
from labelsieve.bench.merge import common_experiment
from labelsieve.bench.results import RunRecord
from labelsieve.bench.runner import environment
from labelsieve.bench.store import now
from labelsieve.io.writing import replacing
from labelsieve.report.summary import CURVE, Coverage, Facts, Summary, count_notes

ENDING = ".csv.gz"
_MARK = "# labelsieve summary 1 "
# A summary of a thousand curves takes a megabyte.
_MOST_BYTES = 2**28
_COLUMNS = [*CURVE[:3], "role", *CURVE[3:], "size", "n_features", "mean", "fold_std"]


def is_summary(path: Path) -> bool:
    """Tell by its name if a file is a summary."""
    return path.name.endswith(ENDING)


def write_summary(summary: Summary, path: Path) -> None:
    """Write a summary, whole or not at all; the same summary gives the same bytes."""
    roles = {method.name: method.role for method in summary.experiment.all_methods()}
    table = summary.means.assign(role=summary.means["method"].map(roles))[_COLUMNS]
    facts = json.dumps(TypeAdapter(Facts).dump_python(summary.facts, mode="json"), separators=(",", ":"))
    text = f"{_MARK}{facts}\n{csv_text(table)}"
    with replacing(path) as stream, gzip.GzipFile("", "wb", fileobj=stream, mtime=0) as packed:
        packed.write(text.encode())


def read_summary(path: Path) -> Summary:
    """Read what `write_summary` wrote; raises an error if the file is something else, or damaged."""
    try:
        with gzip.open(path) as packed:
            content = packed.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ValueError("it is too large")
        head, _, table = content.decode().partition("\n")
        if not head.startswith(_MARK):
            raise ValueError("its first line is another")
        facts = TypeAdapter(Facts).validate_json(head.removeprefix(_MARK))
        experiment = build_experiment(facts.runs[-1].configuration, str(path))
        known = {
            "dataset": [dataset.name for dataset in experiment.datasets],
            "noise": [noise.label for noise in experiment.noises()],
            "method": [method.name for method in experiment.all_methods()],
            "classifier": [judge.name for judge in experiment.judges()],
            "metric": experiment.metric_names,
        }
        # Tables and files are named after metrics.
        if foreign := set(facts.metrics) - set(known["metric"]):
            raise ValueError(f"the experiment has no {min(foreign)!r}")
        return Summary(experiment, facts, _read_means(table, known))
    except (OSError, EOFError, zlib.error, ValueError, LookupError) as error:
        raise RunError(
            f"{path}: a file written by 'labelsieve report RUN --summary FILE' was expected, got something else "
            f"or a damaged one ({one_line(error)[:200]}); write it again."
        ) from None


def _read_means(text: str, known: dict[str, Any]) -> pd.DataFrame:
    """Read the table; a name that is not in the experiment is an error."""
    table = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    if list(table.columns) != _COLUMNS:
        raise ValueError("its columns are others")
    for column in ("size", "n_features", "mean", "fold_std"):
        # Parsed by Python, digit for digit.
        kind = int if column == "n_features" else float
        table[column] = [kind(cell or "nan") for cell in table[column]]
    for column, names in known.items():
        # Cells are written so that a spreadsheet takes none of them for a formula.
        by_cell = {csv_cell(name): name for name in names}
        if foreign := set(table[column]) - set(by_cell):
            raise ValueError(f"the experiment has no {column} {min(foreign)!r}")
        table[column] = table[column].map(by_cell)
    return table.drop(columns="role")


def merge_summaries(parts: Sequence[tuple[str, Summary]], *, command: str = "") -> Summary:
    """Join named summaries of runs that are parts of one experiment.

    They may differ in their data sets only and share none, because means of other folds cannot be joined.
    """
    owners: dict[str, str] = {}
    for name, summary in parts:
        for dataset in summary.datasets:
            if dataset in owners:
                raise RunError(
                    f"{owners[dataset]} and {name} both hold {dataset!r}; means of different data sets alone can be "
                    "put together, so merge the run folders instead."
                )
            owners[dataset] = name
    experiment = common_experiment(
        [(name, summary.experiment.as_dict()) for name, summary in parts], ("datasets",)
    )
    every = [summary.facts for _, summary in parts]
    joined = {field.name: _join([getattr(facts, field.name) for facts in every]) for field in fields(Facts)}
    notes: Counter[tuple[str, str]] = Counter()
    for note in joined["notes"]:
        notes[note["method"], note["text"]] += note["n_cells"]
    earlier = [
        replace(run, number=number, configuration={}, environment={})
        for number, run in enumerate(joined["runs"], start=1)
    ]
    last = RunRecord(len(earlier) + 1, now(), now(), command, environment(), experiment.as_dict(), 0)
    joined |= {
        "metrics": tuple(name for name in experiment.metric_names if name in joined["metrics"]),
        "classifiers": tuple(
            judge.name for judge in experiment.judges() if judge.name in joined["classifiers"]
        ),
        "notes": count_notes(notes),
        "runs": (*earlier, last),
    }
    means = pd.concat([summary.means for _, summary in parts], ignore_index=True)
    return Summary(experiment, Facts(**joined), means)


def _join(values: Sequence[Any]) -> Any:
    """Join the same fact of several runs by its type."""
    first = values[0]
    if isinstance(first, Coverage):
        names = [field.name for field in fields(Coverage)]
        return Coverage(**{name: _join([getattr(value, name) for value in values]) for name in names})
    if isinstance(first, dict):
        return {key: value for part in values for key, value in part.items()}
    return sum(values[1:], first)  # numbers and tuples
