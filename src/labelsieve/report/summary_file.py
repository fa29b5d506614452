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
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import TypeAdapter

from labelsieve._text import csv_cell, csv_text, one_line
from labelsieve.bench import RunError
from labelsieve.bench.config import build_experiment
from labelsieve.bench.merge import Consistent, common_experiment
from labelsieve.bench.results import RunRecord
from labelsieve.bench.runner import environment
from labelsieve.bench.store import now
from labelsieve.io.writing import replacing
from labelsieve.report.summary import CURVE, Coverage, Facts, Summary, count_notes, usual_noise

ENDING = ".csv.gz"
_MARK = "# labelsieve summary 1 "
# A thousand curves take about a megabyte.
_MOST_BYTES = 2**28
#: Keys of the configuration that may differ between merged summaries. Means of other seeds cannot be combined.
AXES = ("datasets", "noise", "methods", "ablation", "sweeps", "references")
_PLACE = CURVE[:3]
_COLUMNS = [*_PLACE, "role", *CURVE[3:], "size", "n_features", "mean", "fold_std"]


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

    The parts may differ in `AXES`. Means cannot be combined, so the results of a method on a dataset with one noise are
    from the part where most classifiers have judged it, or from the first of those. Cells count in each of their parts.
    """
    experiment = common_experiment(_configurations(parts), AXES)
    datasets = Consistent("dataset {!r} has different data or sizes. Run one of them again.")
    best: dict[tuple[str, ...], tuple[int, int]] = {}
    for number, (name, summary) in enumerate(parts):
        for dataset in summary.facts.datasets:
            datasets.add(name, dataset.name, dataset)
        judged = summary.means.groupby(_PLACE, sort=False)["classifier"].nunique()
        incomplete = {tuple(gap[key] for key in _PLACE): 0 for gap in summary.facts.coverage.gaps}
        for place, n_judged in {**incomplete, **judged.to_dict()}.items():
            best[place] = max(best.get(place, (-1, 0)), (n_judged, -number))
    owners = {place: -number for place, (_, number) in best.items()}

    kept = []
    for number, (_, summary) in enumerate(parts):
        mine = {place for place, owner in owners.items() if owner == number}
        kept.append(summary.means[summary.means.set_index(_PLACE).index.isin(mine)])
    every = [summary.facts for _, summary in parts]
    names = [field.name for field in fields(Facts) if field.name != "coverage"]
    joined = {name: _join([getattr(facts, name) for facts in every]) for name in names}
    coverage = _joined_coverage([facts.coverage for facts in every], owners)
    failed = {(gap["dataset"], gap["method"]) for gap in coverage.gaps}
    notes: Counter[tuple[str, str]] = Counter()
    for note in joined["notes"]:
        notes[note["method"], note["text"]] += note["n_cells"]
    earlier = [
        replace(run, number=number, configuration={}, environment={})
        for number, run in enumerate(joined["runs"], start=1)
    ]
    last = RunRecord(len(earlier) + 1, now(), now(), command, environment(), experiment.as_dict(), 0)
    conditions = tuple(dict.fromkeys(joined["conditions"]))
    joined |= {
        "datasets": tuple(datasets.values()),
        "metrics": tuple(name for name in experiment.metric_names if name in joined["metrics"]),
        "classifiers": tuple(
            judge.name for judge in experiment.judges() if judge.name in joined["classifiers"]
        ),
        "conditions": conditions,
        "usual_noise": usual_noise(datasets, conditions, joined["noise_rates"]),
        "coverage": coverage,
        "failures": tuple(one for one in joined["failures"] if (one["dataset"], one["method"]) in failed),
        "notes": count_notes(notes),
        "runs": (*earlier, last),
    }
    for name in ("costs", "stability", "descents"):
        joined[name] = tuple({(one["dataset"], one["method"]): one for one in joined[name][::-1]}.values())[
            ::-1
        ]
    return Summary(experiment, Facts(**joined), pd.concat(kept, ignore_index=True))


def _configurations(parts: Sequence[tuple[str, Summary]]) -> list[tuple[str, dict[str, Any]]]:
    """Return the configurations of all parts. A method of one part is not a reference in another."""
    specs = Consistent("method {!r} has other parameters. Rename one of them.")
    for name, summary in parts:
        for method in summary.experiment.all_methods():
            specs.add(name, method.name, (method.method, method.params))
    methods = {method.name for _, summary in parts for method in summary.experiment.methods}
    found = []
    for name, summary in parts:
        given = summary.experiment.as_dict()
        references = [entry for entry in given["references"] if entry["name"] not in methods]
        found.append((name, {**given, "references": references}))
    return found


def _joined_coverage(parts: Sequence[Coverage], owners: Mapping[tuple[str, ...], int]) -> Coverage:
    """Add the numbers of all parts, without the gaps that another part fills."""
    n_planned, n_done, n_failed = (
        sum(getattr(part, name) for part in parts) for name in ("n_planned", "n_done", "n_failed")
    )
    gaps = []
    for number, part in enumerate(parts):
        for gap in part.gaps:
            if owners[tuple(gap[key] for key in _PLACE)] == number:
                gaps.append(gap)
            else:
                n_planned, n_done, n_failed = (
                    n_planned - gap["planned"],
                    n_done - gap["done"],
                    n_failed - gap["failed"],
                )
    started = {dataset for dataset, *_ in owners}
    untouched = dict.fromkeys(name for part in parts for name in part.untouched if name not in started)
    return Coverage(n_planned, n_done, n_failed, tuple(gaps), tuple(untouched))


def _join(values: Sequence[Any]) -> Any:
    """Combine one fact of several runs according to its type."""
    first = values[0]
    if isinstance(first, dict):
        return {key: value for part in values for key, value in part.items()}
    return sum(values[1:], first)  # numbers and tuples
