"""Run one cell: rank on candidates, judge the ranking by the truth."""

from __future__ import annotations

import hashlib
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from labelsieve._text import error_text
from labelsieve.bench.components import build_method, feature_order, for_keeps, use_folder
from labelsieve.bench.config import UNRANKED, Experiment
from labelsieve.bench.data import Fold, split_fold
from labelsieve.bench.judging import Judging, ScoreRow, seeded
from labelsieve.bench.limits import forget_peak_memory, peak_mebibytes
from labelsieve.bench.plan import Cell, Judgement, has_weights
from labelsieve.bench.seals import basis

__all__ = ["CellResult", "JudgementResult", "Ranked", "Task", "evaluate"]

_LONGEST_HISTORY = 10_000


class Ranked(NamedTuple):
    """What judging needs of a ranking; nothing for references that rank nothing."""

    #: Features, best first.
    order: np.ndarray | None = None
    #: Of shape (n_labels, n_features), where they score labels.
    weights: np.ndarray | None = None

    @property
    def order_bytes(self) -> bytes | None:
        """The order as it is stored."""
        return None if self.order is None else np.ascontiguousarray(self.order, dtype="<i4").tobytes()

    @property
    def weights_digest(self) -> str | None:
        """Checksum of the weights."""
        if self.weights is None:
            return None
        return hashlib.sha256(np.ascontiguousarray(self.weights, dtype="<f4").tobytes()).hexdigest()

    def basis(self, uses_weights: bool) -> str:
        """Checksum of what a judgement is made of: where it is another, the judgement is out of date."""
        return basis(self.order_bytes, self.weights_digest if uses_weights else None)


@dataclass(frozen=True)
class Task:
    """What a process is asked to do: a cell with the judgements that are missing."""

    cell: Cell
    #: The ranking, if it is there already.
    ranked: Ranked | None = None
    #: Key of a judgement that is there -> what it was made of; it is made again if the ranking turns out otherwise.
    known: dict[str, str] = field(default_factory=dict)
    #: Whether the ranking was there, without what the judgements need.
    again: bool = False

    @property
    def key(self) -> str:
        """That of the ranking."""
        return self.cell.key

    @property
    def at_stake(self) -> list[Judgement]:
        """Judgements that fail if the task does: a ranking that was there stays, and what was made of it."""
        kept = self.known if self.again else {}
        return [judgement for judgement in self.cell.judgements if judgement.key not in kept]

    def __str__(self) -> str:
        return str(self.cell)


@dataclass
class JudgementResult:
    """What became of a judgement; a failed one has an error and its traceback instead of scores."""

    basis: str = ""
    error: str | None = None
    traceback: str | None = None
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    scores: list[ScoreRow] = field(default_factory=list)


@dataclass
class CellResult:
    """What became of a cell; where the ranking failed, or its process did, there is an error."""

    error: str | None = None
    traceback: str | None = None
    fit_seconds: float | None = None
    #: Of all that was done.
    seconds: float = 0.0
    peak_mib: float | None = None
    n_iter: int | None = None
    converged: bool | None = None
    ranked: Ranked = field(default_factory=Ranked)
    objective: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    #: Key -> what became of it.
    judgements: dict[str, JudgementResult] = field(default_factory=dict)


def evaluate(experiment: Experiment, task: Task) -> CellResult:
    """Run a cell. Whatever goes wrong in it is part of the result."""
    start = time.perf_counter()
    result = CellResult()
    cell = task.cell
    with _one_thread(), _recorded(result) as caught:
        use_folder(experiment)
        place = cell.dataset, cell.noise, cell.seed, cell.fold, cell.checksum, cell.split
        fold = split_fold(experiment, *place)
        if task.ranked is not None:
            result.ranked = task.ranked
        elif cell.method.method not in UNRANKED:
            _rank(cell, fold, result, caught)
        result.judgements = _judge(experiment, task, fold, result.ranked)
    if result.error is not None:
        result = CellResult(error=result.error, traceback=result.traceback)
    result.seconds = time.perf_counter() - start
    return result


def _one_thread() -> AbstractContextManager[Any]:
    """Compute in one thread whatever the number of jobs: sums in another order would give other last digits."""
    limited: AbstractContextManager[Any] = _threadpools().limit(limits=1)
    return limited


@lru_cache(maxsize=1)
def _threadpools() -> ThreadpoolController:
    """Find the thread pools of this process once: looking takes longer than a small fit."""
    return ThreadpoolController()


@contextmanager
def _recorded(result: CellResult | JudgementResult) -> Iterator[list[warnings.WarningMessage]]:
    """Note what is warned of, and what goes wrong."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield caught
        except (Exception, SystemExit) as error:
            result.error = " ".join(error_text(error).split())
            result.traceback = traceback.format_exc()
        else:
            told = [" ".join(str(warning.message).split()) for warning in caught]
            result.notes = tuple(dict.fromkeys(told))


def _judge(experiment: Experiment, task: Task, fold: Fold, ranked: Ranked) -> dict[str, JudgementResult]:
    judging = Judging(task.cell, fold, *ranked, experiment.metrics)
    results = {}
    for judgement in task.cell.judgements:
        result = JudgementResult(ranked.basis(judgement.uses_weights))
        if judgement.obstacle or task.known.get(judgement.key) == result.basis:
            continue
        start = time.perf_counter()
        with _recorded(result):
            result.scores = judging.judge(judgement)
        result.seconds = time.perf_counter() - start
        results[judgement.key] = result
    return results


def _rank(cell: Cell, fold: Fold, result: CellResult, caught: list[warnings.WarningMessage]) -> None:
    """Fit the method to the candidates of the training part, timed."""
    selector = seeded(build_method(cell.method), cell, "method", cell.method.params)
    X, Y = for_keeps(selector, fold.X_train), for_keeps(selector, fold.Y_train)
    forget_peak_memory()
    before = peak_mebibytes()
    start = time.perf_counter()
    selector.fit(X, Y)
    result.fit_seconds = time.perf_counter() - start
    after = peak_mebibytes()
    if before is not None and after is not None:
        result.peak_mib = max(0.0, after - before)
    n_features, n_labels = fold.X_train.shape[1], fold.Y_train.shape[1]
    # In single precision, which halves the file: judged is what is stored.
    weights = np.asarray(selector.coef_, dtype=np.float32) if has_weights(selector) else None
    if weights is not None and weights.shape != (n_labels, n_features):
        raise TypeError(f"coef_ must have the shape {(n_labels, n_features)!r}. Got {weights.shape!r}.")
    result.ranked = Ranked(feature_order(selector, n_features), weights)
    objective = getattr(selector, "objective_history_", None)
    if objective is not None:
        result.objective = _thinned(np.asarray(objective, dtype=float))
    if hasattr(selector, "n_iter_"):
        result.n_iter = int(np.max(selector.n_iter_))
        result.converged = not any(issubclass(warning.category, ConvergenceWarning) for warning in caught)


def _thinned(history: np.ndarray) -> np.ndarray:
    """Keep first, last and evenly spaced values of a long history."""
    if len(history) <= _LONGEST_HISTORY:
        return history
    kept: np.ndarray = np.linspace(0, len(history) - 1, _LONGEST_HISTORY).round().astype(int)
    return np.asarray(history[kept])
