"""The data of a cell: load it, split it into folds and add candidates."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.model_selection import KFold

from labelsieve._numerics.sparse import Matrix, dense, is_sparse
from labelsieve.bench import RunError
from labelsieve.bench.config import DatasetSpec, Experiment, NoiseSpec
from labelsieve.datasets import add_candidates, load
from labelsieve.io import Dataset
from labelsieve.io.reading import read_files


@dataclass(frozen=True)
class DatasetFacts:
    """Facts of a dataset that an experiment records."""

    name: str
    n_samples: int
    n_features: int
    n_labels: int
    cardinality: float
    checksum: str
    size_unit: Literal["percent", "count"]


@dataclass(frozen=True)
class Fold:
    """Training and test part of the data."""

    X_train: Matrix
    #: Candidates of the training part, which is all that a method sees.
    Y_train: Matrix
    #: True labels of the training part.
    Y_clean: Matrix
    X_test: Matrix
    #: True labels of the test part.
    Y_test: Matrix
    #: Candidates of the test part.
    Y_noisy: Matrix


def derive_seed(seed: int, purpose: str, *parts: str | int) -> int:
    """Derive a seed for a purpose; the order of the work and other methods do not change it."""
    text = json.dumps([seed, purpose, *parts])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")


def load_dataset(spec: DatasetSpec, folder: str | None) -> Dataset:
    """Load the dataset of a configuration; its files are relative to the folder."""
    if not spec.path:
        dataset = load(spec.name)
    else:
        base = Path(folder or ".")
        # `os.path.isfile` says no to a list of names that is too long to be a path.
        beside: dict[str, Any] = {
            option: base / given
            for option in ("labels", "candidates")
            if isinstance(given := getattr(spec, option), str) and os.path.isfile(base / given)
        }
        dataset = read_files([base / part for part in spec.path], replace(spec.options, **beside))
    if dataset.Y is None:
        raise RunError(
            f"{spec.name}: expected true labels to judge the methods, got only candidates; rank the features with: "
            "labelsieve select"
        )
    return dataset


def describe(spec: DatasetSpec, dataset: Dataset, experiment: Experiment) -> DatasetFacts:
    """Collect the facts of a dataset; the checksum covers every number in it."""
    assert dataset.Y is not None
    return DatasetFacts(
        name=spec.name,
        n_samples=dataset.X.shape[0],
        n_features=dataset.X.shape[1],
        n_labels=dataset.Y.shape[1],
        cardinality=float(dataset.Y.sum(dtype=np.int64) / dataset.X.shape[0]),
        checksum=_checksum(dataset),
        size_unit="count" if spec.name in experiment.sizes.counts else "percent",
    )


def _checksum(dataset: Dataset) -> str:
    digest = hashlib.sha256()
    for matrix in (dataset.X, dataset.Y, dataset.Y_candidates):
        if matrix is None:
            digest.update(b"none")
            continue
        parts = (matrix.indptr, matrix.indices, matrix.data) if is_sparse(matrix) else (matrix,)
        for part in parts:
            digest.update(f"{part.shape}{part.dtype.str}".encode())
            digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


@lru_cache(maxsize=2)
def _planned_dataset(spec: DatasetSpec, folder: str | None, checksum: str | None) -> Dataset:
    """Load a dataset and check that it did not change since the plan; the last two stay in memory."""
    dataset = load_dataset(spec, folder)
    if checksum is not None and _checksum(dataset) != checksum:
        raise RunError(f"{spec.name}: the data changed since the experiment was planned; run it again.")
    return dataset


@lru_cache(maxsize=1)
def _folds(
    spec: DatasetSpec, folder: str | None, checksum: str | None, n_folds: int, scheme: str, seed: int
) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    dataset = _planned_dataset(spec, folder, checksum)
    random_state = derive_seed(seed, "folds", spec.name)

    if scheme == "consecutive":
        return tuple(KFold(n_folds).split(dataset.X))
    if scheme == "shuffled":
        return tuple(KFold(n_folds, shuffle=True, random_state=random_state).split(dataset.X))
    from iterstrat.ml_stratifiers import MultilabelStratifiedKFold

    assert dataset.Y is not None  # see `load_dataset`
    Y = dense(dataset.Y)
    splitter = MultilabelStratifiedKFold(n_splits=n_folds, shuffle=True, random_state=random_state)
    return tuple(splitter.split(np.zeros((len(Y), 1)), Y))


def split_fold(
    experiment: Experiment,
    spec: DatasetSpec,
    noise: NoiseSpec,
    seed: int,
    fold: int,
    checksum: str | None = None,
    split: str = "shuffled",
) -> Fold:
    """Make one fold, the same for every method.

    `checksum` is that of the planned data, `split` the convention for folds.
    """
    source = (spec, experiment.folder, checksum)
    dataset = _planned_dataset(*source)
    train, test = _folds(*source, experiment.folds, split, seed)[fold]
    Y = dataset.Y
    assert Y is not None
    return Fold(
        X_train=dataset.X[train],
        Y_train=_candidates(dataset, train, noise, derive_seed(seed, "noise", spec.name, fold)),
        Y_clean=Y[train],
        X_test=dataset.X[test],
        Y_test=Y[test],
        Y_noisy=_candidates(dataset, test, noise, derive_seed(seed, "test noise", spec.name, fold)),
    )


def _candidates(dataset: Dataset, rows: np.ndarray, noise: NoiseSpec, seed: int) -> Matrix:
    if noise.model == "given":
        assert dataset.Y_candidates is not None  # the runner checked that
        given: Matrix = dataset.Y_candidates[rows]
        return given
    assert dataset.Y is not None
    assert noise.rate is not None
    rate = int(noise.rate) if noise.model == "count" else noise.rate
    X = dataset.X[rows] if noise.model == "instance" else None
    noisy: Matrix = add_candidates(dataset.Y[rows], noise.model, rate=rate, X=X, random_state=seed)
    return noisy
