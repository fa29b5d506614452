"""Read and write summaries as compressed CSV files with the facts of the run in the first line.

Each row is one metric of one method at one size on one dataset. To read it with pandas, use
``pandas.read_csv(path, skiprows=1)``. `read_summary` restores exactly what was written.
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
# A thousand curves take about a megabyte.
_MOST_BYTES = 2**28
_COLUMNS = [*CURVE[:3], "role", *CURVE[3:], "size", "n_features", "mean", "fold_std"]


def is_summary(path: Path) -> bool:
    """Return True if the file name is that of a summary."""
    return path.name.endswith(ENDING)


def write_summary(summary: Summary, path: Path) -> None:
    """Write a summary atomically. The bytes depend only on the summary."""
    roles = {method.name: method.role for method in summary.experiment.all_methods()}
    table = summary.means.assign(role=summary.means["method"].map(roles))[_COLUMNS]
    facts = json.dumps(TypeAdapter(Facts).dump_python(summary.facts, mode="json"), separators=(",", ":"))
    text = f"{_MARK}{facts}\n{csv_text(table)}"
    with replacing(path) as stream, gzip.GzipFile("", "wb", fileobj=stream, mtime=0) as packed:
        packed.write(text.encode())


def read_summary(path: Path) -> Summary:
    """Read a file written by `write_summary`, or raise an error if it is invalid."""
    try:
        with gzip.open(path) as packed:
            content = packed.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ValueError("too large")
        head, _, table = content.decode().partition("\n")
        if not head.startswith(_MARK):
            raise ValueError("unknown first line")
        facts = TypeAdapter(Facts).validate_json(head.removeprefix(_MARK))
        experiment = build_experiment(facts.runs[-1].configuration, str(path))
        known = {
            "dataset": [dataset.name for dataset in experiment.datasets],
            "noise": [noise.label for noise in experiment.noises()],
            "method": [method.name for method in experiment.all_methods()],
            "classifier": [judge.name for judge in experiment.judges()],
            "metric": experiment.metric_names,
        }
        # Metrics become file names.
        if foreign := set(facts.metrics) - set(known["metric"]):
            raise ValueError(f"unknown metric {min(foreign)!r}")
        return Summary(experiment, facts, _read_means(table, known))
    except (OSError, EOFError, zlib.error, ValueError, LookupError) as error:
        raise RunError(
            f"{path}: expected a file written by 'labelsieve report RUN --summary FILE', got something else or a "
            f"damaged file ({one_line(error)[:200]}). Write it again."
        ) from None


def _read_means(text: str, known: dict[str, Any]) -> pd.DataFrame:
    """Read the table and check that all names are in the experiment."""
    table = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    if list(table.columns) != _COLUMNS:
        raise ValueError("unknown columns")
    for column in ("size", "n_features", "mean", "fold_std"):
        # Unlike pandas, Python restores all digits.
        kind = int if column == "n_features" else float
        table[column] = [kind(cell or "nan") for cell in table[column]]
    for column, names in known.items():
        # Written cells are escaped to prevent formulas in spreadsheets.
        by_cell = {csv_cell(name): name for name in names}
        if foreign := set(table[column]) - set(by_cell):
            raise ValueError(f"unknown {column} {min(foreign)!r}")
        table[column] = table[column].map(by_cell)
    return table.drop(columns="role")


def merge_summaries(parts: Sequence[tuple[str, Summary]], *, command: str = "") -> Summary:
    """Merge the summaries of parts of an experiment, given with their names.

    The parts must have different datasets and be equal otherwise because means cannot be combined.
    """
    owners: dict[str, str] = {}
    for name, summary in parts:
        for dataset in summary.datasets:
            if dataset in owners:
                raise RunError(
                    f"{owners[dataset]} and {name} both contain {dataset!r}. Summary files must have different "
                    "datasets. Merge the run folders instead."
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
    """Combine one fact of several runs according to its type."""
    first = values[0]
    if isinstance(first, Coverage):
        names = [field.name for field in fields(Coverage)]
        return Coverage(**{name: _join([getattr(value, name) for value in values]) for name in names})
    if isinstance(first, dict):
        return {key: value for part in values for key, value in part.items()}
    return sum(values[1:], first)  # numbers and tuples
