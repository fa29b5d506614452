"""Export the results of a run to a table with one row per size and metric."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from labelsieve._text import csv_text, install_command
from labelsieve.bench import RunError
from labelsieve.bench.results import Results
from labelsieve.io.writing import replacing

COLUMNS = [
    *("dataset", "noise", "noise_rate", "seed", "fold", "method", "role", "draw", "params", "classifier"),
    *("conventions", "size", "size_unit", "n_features", "metric", "direction", "value", "fit_seconds"),
    *("peak_mib", "n_iter", "converged"),
]
# Types of the columns that may have missing values.
_TYPES = {
    **dict.fromkeys(["noise_rate", "fit_seconds", "peak_mib"], float),
    **{"n_iter": "Int64", "converged": "boolean"},
}
FORMATS = ("csv", "parquet")


def export(results: Results, path: Path, form: str) -> int:
    """Write the results of a run atomically in one of the `FORMATS` and return the number of rows."""
    frame = long_frame(results)
    if frame.empty:
        raise RunError(f"{results.experiment.name}: no cells are finished. Run the experiment first.")
    try:
        with replacing(path) as stream:
            if form == "csv":
                stream.write(csv_text(frame).encode())
            else:
                frame.to_parquet(stream, engine="pyarrow", index=False)
    except ImportError:
        raise RunError(
            f"Parquet needs pyarrow. Install it: {install_command('pyarrow')}, or use --to csv."
        ) from None
    return len(frame)


def long_frame(results: Results) -> pd.DataFrame:
    """Return the results as a dataframe with `COLUMNS`, in the order of the plan."""
    judges = {judge.name: judge for judge in results.experiment.judges()}
    params = results.cells["params"].map(lambda values: json.dumps(values, sort_keys=True))
    frame = results.scores.sort_values("cell", kind="stable").join(
        results.cells.assign(params=params), on="cell"
    )
    judged_by = frame["classifier"]
    frame = frame.assign(
        classifier=judged_by.map({name: judge.classifier.name for name, judge in judges.items()}),
        conventions=judged_by.map({name: judge.conventions.name for name, judge in judges.items()}),
        size_unit=frame["dataset"].map({name: facts.size_unit for name, facts in results.datasets.items()}),
        direction=frame["metric"].map(results.experiment.directions),
    )
    return frame[COLUMNS].astype(_TYPES)
