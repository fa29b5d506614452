"""The numbers of a run in long form: one row for every judged size and metric, with the facts of its ranking."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from labelsieve._text import csv_text
from labelsieve.bench import RunError
from labelsieve.bench.results import Results
from labelsieve.io.writing import replacing

__all__ = ["COLUMNS", "FORMATS", "export", "long_rows"]

#: Column -> its type in Parquet.
COLUMNS = {
    "dataset": "string",
    "noise": "string",
    "noise_rate": "float64",
    "seed": "int64",
    "fold": "int64",
    "method": "string",
    "role": "string",
    "draw": "int64",
    "params": "string",
    "classifier": "string",
    "conventions": "string",
    "size": "float64",
    "size_unit": "string",
    "n_features": "int64",
    "metric": "string",
    "direction": "string",
    "value": "float64",
    "fit_seconds": "float64",
    "peak_mib": "float64",
    "n_iter": "int64",
    "converged": "bool",
}


def export(results: Results, path: Path, form: str) -> int:
    """Write the numbers of a run to a file, whole or not at all; returns how many rows there are.

    Parameters
    ----------
    results : Results
        The run, complete or not.
    path : Path
        The file; one that is there is replaced.
    form : str
        One of `FORMATS`. Parquet needs pyarrow.
    """
    rows = list(long_rows(results))
    if not rows:
        raise RunError(f"{results.name}: finished cells were expected, got none; run the experiment first.")
    try:
        with replacing(path) as stream:
            FORMATS[form](rows, stream)
            stream.flush()  # a full disk must show before the file takes its place
    except OSError as error:
        raise RunError(f"{path}: cannot be written ({error}); name another file with --out.") from None
    return len(rows)


def long_rows(results: Results) -> Iterator[tuple[Any, ...]]:
    """Yield the values of `COLUMNS`, cell by cell in the order of the plan."""
    judges = {judge.name: judge for judge in results.experiment.judges()}
    directions = results.experiment.directions
    params = [json.dumps(cell.params, sort_keys=True) for cell in results.cells]
    for index, judge, size, n_features, metric, value in sorted(results.scores, key=lambda score: score.cell):
        cell = results.cells[index]
        yield (
            *(cell.dataset, cell.noise, cell.noise_rate, cell.seed, cell.fold),
            *(cell.method, cell.role, cell.draw, params[index]),
            *(judges[judge].classifier.name, judges[judge].conventions.name),
            *(size, results.datasets[cell.dataset].size_unit, n_features),
            *(metric, directions.get(metric), value),
            *(cell.fit_seconds, cell.peak_mib, cell.n_iter, cell.converged),
        )


def _write_csv(rows: Sequence[tuple[Any, ...]], stream: IO[bytes]) -> None:
    stream.write(csv_text([tuple(COLUMNS), *rows]).encode())


def _write_parquet(rows: Sequence[tuple[Any, ...]], stream: IO[bytes]) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise RunError(
            "Parquet needs pyarrow: pip install 'labelsieve[parquet]', or write --to csv."
        ) from None
    columns = zip(COLUMNS.items(), zip(*rows, strict=True), strict=True)
    arrays = {name: pa.array(values, type=pa.type_for_alias(kind)) for (name, kind), values in columns}
    pq.write_table(pa.table(arrays), stream)


#: Name of a format -> what writes rows to a stream.
FORMATS: dict[str, Callable[[Sequence[tuple[Any, ...]], IO[bytes]], None]] = {
    "csv": _write_csv,
    "parquet": _write_parquet,
}
