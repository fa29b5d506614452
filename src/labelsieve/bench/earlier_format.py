"""Results files of the formats in which a cell was a ranking and all its judgements at once.

Format 1 had no seals, format 2 had. Both are read as they are, and turned into the present format by the next
writer. Their keys were digests of everything together; a ranking keeps its old key, and a judgement has that of its
ranking and the name of its classifier, until a run plans the same cell and gives both their present names.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from labelsieve.bench.components import identify_classifier, identify_method
from labelsieve.bench.config import UNRANKED, Experiment, Judge
from labelsieve.bench.data import DatasetFacts
from labelsieve.bench.plan import Cell, digest, plan
from labelsieve.bench.seals import Rows, Seal, basis, broken_seals, cell_digest, scores_by_key

__all__ = [
    "FORMATS",
    "SCHEMA",
    "SEALED",
    "SEALS",
    "TABLES",
    "UNSEALED",
    "convert",
    "is_earlier_key",
    "present_keys",
    "read_tables",
    "readable",
]

FORMATS = UNSEALED, SEALED = (1, 2)
TABLES = ("runs", "datasets", "plan", "cells", "scores")

SCHEMA = """
CREATE TABLE runs (
    number INTEGER PRIMARY KEY, started TEXT NOT NULL, finished TEXT, command TEXT NOT NULL,
    configuration TEXT NOT NULL, environment TEXT NOT NULL
) STRICT;
CREATE TABLE datasets (position INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, facts TEXT NOT NULL) STRICT;
CREATE TABLE plan (
    position INTEGER PRIMARY KEY, key TEXT NOT NULL, dataset TEXT NOT NULL, noise TEXT NOT NULL, noise_rate REAL,
    seed INTEGER NOT NULL, fold INTEGER NOT NULL, method TEXT NOT NULL, role TEXT NOT NULL, draw INTEGER NOT NULL
) STRICT;
CREATE TABLE cells (
    key TEXT PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs (number), finished TEXT NOT NULL,
    description TEXT NOT NULL, params TEXT NOT NULL, error TEXT, traceback TEXT,
    fit_seconds REAL, seconds REAL NOT NULL, peak_mib REAL,
    n_iter INTEGER, converged INTEGER, ranking BLOB, objective BLOB, notes TEXT NOT NULL,
    digest TEXT NOT NULL
) STRICT;
CREATE TABLE scores (
    key TEXT NOT NULL REFERENCES cells (key) ON DELETE CASCADE, classifier TEXT NOT NULL, size REAL,
    n_features INTEGER NOT NULL, metric TEXT NOT NULL, value REAL NOT NULL,
    UNIQUE (key, classifier, size, metric)
) STRICT;
"""
SEALS = """
CREATE TABLE seals (name TEXT NOT NULL, n_rows INTEGER NOT NULL, total TEXT NOT NULL) STRICT;
"""

#: What identified the classifiers of the package when these files were written.
_SVM = {"C": 1.0, "gamma": "scale", "kernel": "linear", "max_iter": 100_000, "scale": "minmax"}
_CLASSIFIERS: dict[str, tuple[str, dict[str, Any]]] = {
    "linear-svm": ("labelsieve.classify:LabelwiseSVM", _SVM),
    "rbf-svm": ("labelsieve.classify:LabelwiseSVM", {**_SVM, "kernel": "rbf"}),
    "ml-knn": ("labelsieve.classify:MLkNN", {"n_neighbors": 10, "scale": "minmax", "smoothing": 1.0}),
}
_CONVENTIONS = (
    "test_labels",
    "train_labels",
    "one_class",
    "ranking_scores",
    "empty_rows",
    "coverage",
    "f1_undefined",
    "folds",
)


def readable(tables: Mapping[str, Rows], seals: Mapping[str, Seal] | None) -> tuple[Rows, int]:
    """Return the cells that are as they were written, and how many are not, or no longer there.

    Raises ValueError for what cannot be told cell by cell; `seals` is None for the format that had none.
    """
    scores = scores_by_key(tables["scores"])
    intact = [row for row in tables["cells"] if row[-1] == cell_digest(row[:-1], scores.get(row[0], ()))]
    n_altered = len(tables["cells"]) - len(intact)
    orphans = scores.keys() - {row["key"] for row in tables["cells"]}
    if seals is not None:
        n_written = seals["cells"].n_rows if "cells" in seals else None
        n_lost = max(0, n_written - len(tables["cells"])) if isinstance(n_written, int) else 0
        broken = broken_seals(tables, {name: seals.get(name, Seal(-1)) for name in TABLES[:-1]})
        if "cells" in broken and (n_altered or n_lost):
            broken.remove("cells")
        if broken:
            raise ValueError(f"the checksum of {' and '.join(broken)} is another")
        n_altered += n_lost
    return intact, n_altered + len(orphans)


def convert(tables: Mapping[str, list[Any]]) -> dict[str, list[tuple[Any, ...]]]:
    """Turn rows of the earlier formats into those of the present one, without seals; cells must be intact."""
    scores = scores_by_key(tables["scores"])
    found: dict[str, list[tuple[Any, ...]]] = {
        "runs": [tuple(row) for row in tables["runs"]],
        "datasets": [tuple(row) for row in tables["datasets"]],
        "plan": [],
        "rankings": [],
        "judgements": [],
        "scores": [],
    }
    names = _classifier_names(tables)
    for position, key, *place in tables["plan"]:
        for number, name in enumerate(names):
            at = len(names) * (position - 1) + number + 1
            found["plan"].append((at, key, _judgement_key(key, name), *place, name, None))
    for *row, _ in tables["cells"]:
        ranking = (*row, None)
        found["rankings"].append((*ranking, cell_digest(ranking)))
        key, run, finished, description, *_ = row
        order, own = row[12], scores.get(key, [])
        for name in dict.fromkeys(classifier for classifier, *_ in own):
            judgement = (
                *(_judgement_key(key, name), key, run, finished, f"{description}, {name}"),
                *(None, None, 0.0, "[]", basis(order)),
            )
            values = [tuple(rest) for classifier, *rest in own if classifier == name]
            found["judgements"].append((*judgement, cell_digest(judgement, values)))
            found["scores"] += [(judgement[0], *rest) for rest in values]
    return found


def _judgement_key(key: str, classifier: str) -> str:
    return f"{key}:{classifier}"


def is_earlier_key(key: str) -> bool:
    """Whether a judgement has the name that `convert` gave it."""
    return ":" in key


def _classifier_names(tables: Mapping[str, list[Any]]) -> list[str]:
    """Those of the last configuration; of the scores, if that cannot be read."""
    with suppress(ValueError, TypeError, KeyError, IndexError, RecursionError):
        configuration = json.loads(tables["runs"][-1][4])
        return [str(entry["name"]) for entry in configuration["classifiers"]]
    return list(dict.fromkeys(row[1] for row in tables["scores"]))


def present_keys(
    earlier: Experiment, experiment: Experiment, facts: dict[str, DatasetFacts]
) -> dict[str, str]:
    """Name the cells of an earlier file as they are named now, as far as this experiment has their methods.

    Nothing is imported that this experiment does not import anyway. A classifier that is another than it was
    keeps its old name: its judgements do not count any more.

    Parameters
    ----------
    earlier : Experiment
        The configuration that the file holds.
    experiment : Experiment
        The one that is to be run.
    facts : dict
        Its data sets.
    """
    if not set(earlier.import_paths()) <= set(experiment.import_paths()) or len(earlier.conventions) > 1:
        return {}
    settings = {
        name: getattr(earlier, name) for name in ("folds", "classifiers", "metrics", "conventions", "sizes")
    }
    alike = experiment.model_copy(update={**settings, "noise": tuple({*earlier.noise, *experiment.noise})})
    return dict(pair for cell in plan(alike, facts) for pair in _renamed(alike, cell))


def _renamed(experiment: Experiment, cell: Cell) -> Iterator[tuple[str, str]]:
    (conventions,) = experiment.conventions
    known = {name: getattr(conventions, name) for name in _CONVENTIONS}
    known["coverage"] = "share" if known["coverage"] == "zero-based" else known["coverage"]
    unranked = cell.method.method in UNRANKED
    content = {
        "scheme": 1,
        "folds": experiment.folds,
        "classifiers": [
            {"name": judgement.judge.classifier.name, **_identity(judgement.judge)}
            for judgement in cell.judgements
        ],
        "metrics": experiment.metric_names,
        "conventions": known,
        "dataset": cell.dataset.name,
        "checksum": cell.checksum,
        "noise": cell.noise.model_dump(),
        "seed": cell.seed,
        "fold": cell.fold,
        "method": {"method": cell.method.method} if unranked else identify_method(cell.method),
        "draw": cell.draw,
        "sizes": cell.judgements[0].sizes,
    }
    old = digest(content)
    yield old, cell.key
    for judgement in cell.judgements:
        judge = judgement.judge
        if _identity(judge) == identify_classifier(judge.classifier, judge.conventions):
            yield _judgement_key(old, judge.classifier.name), judgement.key


def _identity(judge: Judge) -> dict[str, Any]:
    """What identified a classifier."""
    spec = judge.classifier
    if spec.classifier not in _CLASSIFIERS:
        return identify_classifier(spec, judge.conventions)
    name, defaults = _CLASSIFIERS[spec.classifier]
    one_class = {"one_class": judge.conventions.one_class} if spec.classifier.endswith("svm") else {}
    params = {**defaults, **one_class, **spec.params}
    return {"class": name, "params": dict(sorted(params.items()))}


def read_tables(database: sqlite3.Connection) -> dict[str, Rows]:
    """All rows of an earlier file, past its indexes."""
    return {name: database.execute(f"SELECT * FROM {name} NOT INDEXED").fetchall() for name in TABLES}
