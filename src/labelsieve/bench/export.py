"""Export the numbers of a run in long form: one row for every judged size and metric."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from labelsieve._text import csv_cell
from labelsieve.bench import RunError
from labelsieve.bench.results import Results
from labelsieve.io.writing import replacing

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "FORMATS", "export", "long_frame"]

#: Column -> its type; those that may be missing are nullable.
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
    "n_iter": "Int64",
    "converged": "boolean",
}
FORMATS = ("csv", "parquet")


def export(results: Results, path: Path, form: str) -> int:
    """Write the numbers of a run to a file in one of the `FORMATS`, whole or not at all; returns the number of rows."""
    frame = long_frame(results)
    if frame.empty:
        raise RunError(f"{results.experiment.name}: no cell is finished; run the experiment first.")
    try:
        with replacing(path) as stream:
            _write(frame, stream, form)
    except OSError as error:
        raise RunError(f"{path}: cannot be written ({error}); name another file with --out.") from None
    return len(frame)


def long_frame(results: Results) -> pd.DataFrame:
    """Return a frame with `COLUMNS`, cell by cell in the order of the plan."""
    import pandas as pd

    judges = {judge.name: judge for judge in results.experiment.judges()}
    directions = results.experiment.directions
    params = [json.dumps(cell.params, sort_keys=True) for cell in results.cells]
    rows: list[tuple[Any, ...]] = []
    for index, judge, size, n_features, metric, value in sorted(results.scores, key=lambda score: score.cell):
        cell = results.cells[index]
        rows.append(
            (
                *(cell.dataset, cell.noise, cell.noise_rate, cell.seed, cell.fold),
                *(cell.method, cell.role, cell.draw, params[index]),
                *(judges[judge].classifier.name, judges[judge].conventions.name),
                *(size, results.datasets[cell.dataset].size_unit, n_features),
                *(metric, directions.get(metric), value),
                *(cell.fit_seconds, cell.peak_mib, cell.n_iter, cell.converged),
            )
        )
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def _write(frame: pd.DataFrame, stream: IO[bytes], form: str) -> None:
    if form == "csv":
        texts = [name for name, kind in COLUMNS.items() if kind == "string" and name != "params"]
        frame.assign(**{name: frame[name].map(csv_cell, na_action="ignore") for name in texts}).to_csv(
            stream, index=False
        )
        return
    try:
        frame.to_parquet(stream, engine="pyarrow", index=False)
    except ImportError:
        raise RunError("Parquet needs pyarrow: pip install 'labelsieve[files]', or write --to csv.") from None
