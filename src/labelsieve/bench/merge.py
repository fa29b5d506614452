"""Merge runs that are parts of one experiment, such as different datasets, seeds or methods."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from sqlite3 import Row
from tempfile import TemporaryDirectory
from typing import Any

from labelsieve.bench import RunError
from labelsieve.bench.config import Experiment, build_experiment
from labelsieve.bench.plan import Planned
from labelsieve.bench.runner import environment
from labelsieve.bench.store import FILE_NAME, Contents, Store

#: Keys that may differ between parts. Their entries are combined.
AXES = ("datasets", "seeds", "noise", "methods", "ablation", "sweeps", "references")
#: Keys that do not affect results. Those of the first part are kept.
_IGNORED_KEYS = ("name", "title", "folder", "limits", "store_weights", "control")


def merge(sources: Sequence[Path], folder: Path, *, command: str = "") -> dict[str, int]:
    """Merge several results files atomically into a new one.

    If several files have the same cell, the first one that did not fail is kept. An experiment that covers all parts
    can continue in the new run folder.

    Returns the numbers of ``rankings`` and ``judgements`` in the new file, of ``planned``, ``done`` and ``failed``
    judgements, and of ``damaged`` rows, which are left out.
    """
    path = folder / FILE_NAME
    if path.exists():
        raise RunError(f"{path} already exists. Choose another folder with --out.")
    with ExitStack() as stack:
        stores = [stack.enter_context(Store(source)) for source in sources]
        parts = [(str(store.path.parent), store.read_run()) for store in stores]
        experiment = common_experiment(
            [(name, build_experiment(part.configuration, name).as_dict()) for name, part in parts]
        )
        datasets = Consistent("dataset {!r} has different data or sizes. Run one of them again.")
        for name, part in parts:
            for dataset, facts in part.datasets.items():
                datasets.add(name, dataset, facts)
        plan = _plan(parts)
        rows: list[tuple[str, Row]] = []
        for _, part in parts:
            rows += (("runs", row) for row in part.runs.values())
            rows += (("rankings", row) for row in part.rankings.values())
            rows += (("judgements", row) for row in part.judgements.values())
        rows.sort(key=lambda entry: entry[0] != "runs" and entry[1]["error"] is not None)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            temporary = Path(stack.enter_context(TemporaryDirectory(dir=folder, prefix=".merge-")), FILE_NAME)
        except OSError as error:
            raise RunError(f"cannot write to {folder} ({error}). Choose another folder with --out.") from None
        with Store(temporary, writer=True) as store:
            store.copy(rows, replace=False)
            for source, (_, part) in zip(stores, parts, strict=True):
                weights = source.read_weights(part.weighted)
                store.copy((("weights", row) for row in weights), replace=False)
            run = store.begin_run(command, experiment.as_dict(), environment(), plan, datasets)
            store.end_run(run)
            found = store.read()
        os.replace(temporary, path)
    return {
        **{"rankings": len(found.rankings), "judgements": len(found.judgements)},
        **found.count(plan),
        "damaged": sum(part.n_damaged for _, part in parts),
    }


def common_experiment(
    parts: Sequence[tuple[str, Mapping[str, Any]]], axes: Sequence[str] = AXES
) -> Experiment:
    """Combine the configurations of several runs, given with their names.

    Raises an error if they differ in keys other than `axes`, or if entries with the same name differ.
    """
    (first_name, first), *others = parts
    for name, configuration in others:
        shared = shared_settings(configuration, axes)
        differing = [key for key, value in shared_settings(first, axes).items() if value != shared[key]]
        if differing:
            raise RunError(
                f"{first_name} and {name} are not parts of one experiment because {', '.join(differing)} differ. "
                f"Parts may only differ in {', '.join(axes)}."
            )
    merged: dict[str, Any] = {}
    for key in axes:
        entries = Consistent(f"entry {{!r}} of {key} differs. Rename one of them.")
        for part, configuration in parts:
            for entry in configuration[key]:
                name = entry["name"] if isinstance(entry, dict) and "name" in entry else json.dumps(entry)
                entries.add(part, name, entry)
        merged[key] = list(entries.values())
    counts = Consistent("sizes.counts of {!r} differ. Run one of them again.")
    for part, configuration in parts:
        for dataset, numbers in configuration["sizes"]["counts"].items():
            counts.add(part, dataset, numbers)
    control = next((given["control"] for _, given in parts if given["control"]), "")
    given = {**first, **merged, "sizes": {**first["sizes"], "counts": counts}, "control": control}
    return build_experiment(given, " and ".join(name for name, _ in parts))


def shared_settings(configuration: Mapping[str, Any], axes: Sequence[str]) -> dict[str, Any]:
    """Select the settings that must be equal in all parts, without numbers of features by dataset."""
    kept = {key: value for key, value in configuration.items() if key not in (*axes, *_IGNORED_KEYS)}
    return {**kept, "sizes": {**kept["sizes"], "counts": {}}}


class Consistent(dict[Any, Any]):
    """Values of all parts by name that must agree. `problem` is the error message with a placeholder for the name."""

    def __init__(self, problem: str) -> None:
        self._problem = problem
        self._parts: dict[Any, str] = {}

    def add(self, part: str, name: Any, value: Any) -> None:
        """Add a value of a part, or raise an error if another part has another value."""
        other = self._parts.setdefault(name, part)
        if self.setdefault(name, value) != value:
            raise RunError(f"{other} and {part} contradict each other: {self._problem.format(name)}")


def _plan(parts: Sequence[tuple[str, Contents]]) -> list[Planned]:
    """Combine the plans of all parts."""
    places = Consistent("{!r} differs because its code or defaults changed. Run one of them again.")
    for part, contents in parts:
        keys: dict[str, set[tuple[str, str]]] = {}
        for row in contents.plan:
            place = f"{row.dataset}, {row.noise}, seed {row.seed}, fold {row.fold}, draw {row.draw}"
            keys.setdefault(f"{row.method} judged by {row.judge}, {place}", set()).add((row.ranking, row.key))
        for place, found in keys.items():
            places.add(part, place, found)
    return list(dict.fromkeys(row for _, contents in parts for row in contents.plan))
