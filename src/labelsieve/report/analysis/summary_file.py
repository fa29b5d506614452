"""A summary as one small file: CSV, compressed, with the facts of the run in its first line.

A line of the table is one metric of one method at one size on one data set. ``pandas.read_csv(path,
skiprows=1)`` reads it; `read_summary` makes of it the summary that was written, digit for digit.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from labelsieve._text import csv_cell, csv_text, one_line
from labelsieve.bench import RunError
from labelsieve.bench.config import Experiment, build_experiment
from labelsieve.io.writing import replacing
from labelsieve.report.analysis.cells import STABILITY
from labelsieve.report.analysis.summary import Curve, CurveKey, Facts, Summary

__all__ = ["ENDING", "is_summary", "read_summary", "write_summary"]

ENDING = ".csv.gz"
_MARK = "# labelsieve summary 1 "
_COLUMNS = (
    "dataset", "noise", "method", "role", "classifier", "metric", "size", "n_features", "mean", "fold_std",
)  # fmt: skip
# A summary of a thousand curves has a megabyte; what unpacks to more is none.
_MOST_BYTES = 2**28


def is_summary(path: Path) -> bool:
    """Whether a file is a summary, by its name."""
    return path.name.endswith(ENDING)


def write_summary(summary: Summary, path: Path) -> None:
    """Write a summary, whole or not at all; the same summary gives the same bytes."""
    facts = json.dumps(TypeAdapter(Facts).dump_python(summary.facts, mode="json"), separators=(",", ":"))
    text = f"{_MARK}{facts}\n{csv_text([_COLUMNS, *_rows(summary)])}"
    with replacing(path) as stream, gzip.GzipFile("", "wb", fileobj=stream, mtime=0) as packed:
        packed.write(text.encode())


def read_summary(path: Path) -> Summary:
    """Read what `write_summary` wrote.

    Raises
    ------
    RunError
        The file is something else, or damaged.
    """
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
        summary = Summary(experiment, facts, _curves(table, experiment))
        _check_names(summary)
        return summary
    except (OSError, EOFError, zlib.error, ValueError, LookupError, csv.Error) as error:
        raise RunError(
            f"{path}: a file written by 'labelsieve report RUN --summary FILE' was expected, got something else "
            f"or a damaged one ({one_line(error)[:200]}); write it again."
        ) from None


def _rows(summary: Summary) -> Iterator[tuple[object, ...]]:
    roles = {method.name: method.role for method in summary.experiment.all_methods()}
    for (dataset, noise, method, classifier, metric), curve in summary.curves.items():
        for size, kept, mean, std in zip(
            curve.sizes,
            curve.n_features.tolist(),
            curve.values.tolist(),
            curve.fold_std.tolist(),
            strict=True,
        ):
            shown = None if math.isnan(std) else std
            yield dataset, noise, method, roles[method], classifier, metric, size, kept, mean, shown


def _check_names(summary: Summary) -> None:
    """Refuse facts about what the experiment does not have; tables and figures look names up."""
    experiment, facts = summary.experiment, summary.facts
    noises = [*facts.noise_rates, *facts.usual_noise.values(), *(noise for _, noise in facts.conditions)]
    for known, told in (
        (experiment.metric_names, facts.metrics),
        ([judge.name for judge in experiment.judges()], facts.classifiers),
        ([noise.label for noise in experiment.noises()], noises),
        ([dataset.name for dataset in experiment.datasets], summary.datasets),
        (summary.datasets, [*facts.usual_noise, *(found.dataset for found in facts.descents)]),
        ((*summary.compared, *summary.references), [found.method for found in facts.stability]),
    ):
        foreign = set(told) - set(known)
        if foreign:
            raise ValueError(f"the experiment has no {min(foreign)!r}")
    if facts.coverage.n_done and not facts.classifiers:
        raise ValueError("finished cells without a classifier")
    if any(found.index.keys() != STABILITY.keys() for found in facts.stability):
        raise ValueError("its indices of stability are others")


def _curves(table: str, experiment: Experiment) -> dict[CurveKey, Curve]:
    """Put the lines of the table together; a name that is not the experiment's is an error."""
    names = [
        _by_cell(dataset.name for dataset in experiment.datasets),
        _by_cell(noise.label for noise in experiment.noises()),
        _by_cell(method.name for method in experiment.all_methods()),
        _by_cell(judge.name for judge in experiment.judges()),
        _by_cell(experiment.metric_names),
    ]
    header, *lines = csv.reader(io.StringIO(table, newline=""))
    if tuple(header) != _COLUMNS:
        raise ValueError("its columns are others")
    points: dict[CurveKey, list[tuple[float | None, int, float, float]]] = {}
    for dataset, noise, method, _, classifier, metric, size, kept, mean, std in lines:
        cells = (dataset, noise, method, classifier, metric)
        key: Any = tuple(known[cell] for known, cell in zip(names, cells, strict=True))
        points.setdefault(key, []).append(
            (float(size) if size else None, int(kept), float(mean), float(std or "nan"))
        )
    return {
        key: Curve(tuple(sizes), np.array(kept), np.array(means), np.array(stds))
        for key, (sizes, kept, means, stds) in (
            (key, zip(*rows, strict=True)) for key, rows in points.items()
        )
    }


def _by_cell(names: Iterable[str]) -> dict[str, str]:
    """What stands in the table -> the name."""
    return {csv_cell(name): name for name in names}
