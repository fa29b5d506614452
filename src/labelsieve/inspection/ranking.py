"""Ranked columns of a table, and their relation to each label."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from labelsieve._base import BaseSelector
from labelsieve._numerics.candidates import count_labels
from labelsieve._numerics.scaling import within_range
from labelsieve._row_problem import in_memory
from labelsieve.io import Dataset
from labelsieve.methods._columns import ColumnSelector
from labelsieve.methods._evidence.path import Criterion
from labelsieve.methods._evidence.problem import Rows
from labelsieve.methods.evidence import EvidenceSelector

CRITERION = Criterion(EvidenceSelector().threshold, EvidenceSelector().ridge)
#: Measures of a greedy method. Its scores are ranks only.
_MEASURES = ("evidence", "criterion")


#: A column whose squared correlation with a label is at least this reproduces it, if enough rows have the label.
_LEAK, _FEWEST_LEAKED = 0.95, 10


def evidence_of(dataset: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Return the evidence of every feature alone, and its signed z² with every label."""
    X, Y = within_range(dataset.X).astype(np.float64, copy=False), dataset.candidates
    whole = Rows(in_memory(X, Y), np.zeros(X.shape[0], dtype=np.intp)).whole(form_gram=False)
    signed = np.zeros((X.shape[1], Y.shape[1]))
    signed[:, whole.labels.varying] = np.sign(whole.products) * whole.products**2 / whole.n_samples
    return CRITERION.alone(whole.products, X.shape[0]), signed


def find_leaks(dataset: Dataset, signed: np.ndarray) -> list[tuple[int, int]]:
    """Return columns that reproduce a label, with the label that each one reproduces best."""
    n_rows = dataset.X.shape[0]
    counts, n_known = count_labels(dataset.candidates)
    is_frequent = np.minimum(counts, n_known - counts) >= _FEWEST_LEAKED
    share = np.abs(signed) * is_frequent / n_rows
    best = share.argmax(axis=1)
    found: dict[int, tuple[float, int]] = {}
    for feature in np.flatnonzero(share.max(axis=1) >= _LEAK):
        column, label = int(dataset.column_of[feature]), int(best[feature])
        found[column] = max(found.get(column, (0.0, 0)), (float(share[feature, label]), label))
    return [(column, label) for column, (_, label) in sorted(found.items())]


@dataclass(frozen=True, eq=False, repr=False)
class Ranking:
    """Columns in the order of a fitted selector. Column numbers count the columns that have features."""

    dataset: Dataset
    #: Slug of the method.
    method: str
    #: Fitted selector of the columns, or of the features if rows are read in blocks.
    selector: BaseSelector | ColumnSelector
    #: True if the user gave the number of columns.
    is_size_given: bool = True
    #: True if the method converged or is not iterative.
    converged: bool = True

    def __repr__(self) -> str:
        return f"Ranking({len(self.places)} columns by {self.method}, keep {self.n_kept})"

    @property
    def fitted(self) -> BaseSelector:
        """Method fitted to the features."""
        selector = self.selector
        method: BaseSelector = selector.selector_ if isinstance(selector, ColumnSelector) else selector
        return method

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the method, including those that the fit chose."""
        return {**self.fitted.get_params(), **self.fitted._resolved_params()}

    @property
    def places(self) -> np.ndarray:
        """Rank of each column; 1 is the best."""
        return self.selector.ranking_

    @property
    def best_feature(self) -> np.ndarray:
        """Feature of each column that the method ranks first."""
        is_by_column = isinstance(self.selector, ColumnSelector)
        return self.selector.best_ if is_by_column else np.arange(len(self.places))

    @property
    def scores(self) -> np.ndarray:
        """Score of the best feature of each column."""
        return self.selector.scores_

    @property
    def measures(self) -> dict[str, np.ndarray]:
        """Measures of each column by name, the main one first; empty for most methods."""
        found = self.selector
        return {name: getattr(found, f"{name}_") for name in _MEASURES if hasattr(found, f"{name}_")}

    @property
    def n_kept(self) -> int:
        """Number of columns to keep."""
        return self.selector.n_features_

    @property
    def is_iterative(self) -> bool:
        """True if the method minimises an objective iteratively."""
        return hasattr(self.fitted, "objective_history_")

    @property
    def n_iter(self) -> int | None:
        """Number of iterations."""
        return getattr(self.fitted, "n_iter_", None)

    @property
    def depends_on_size(self) -> bool:
        """True if a different number of columns changes the order of the first ones."""
        # A greedy search starts with the columns of a shorter search.
        return self.selector.ranking_depends_on_size and not isinstance(self.fitted, EvidenceSelector)

    @cached_property
    def order(self) -> np.ndarray:
        """Columns, best first."""
        return np.argsort(self.places, kind="stable")

    @property
    def kept(self) -> np.ndarray:
        """Columns to keep, best first."""
        kept: np.ndarray = self.order[: self.n_kept]
        return kept

    @property
    def shown(self) -> Mapping[str, np.ndarray]:
        """Measures to show for each column, the main one first."""
        return self.measures or {"score": self.scores}

    @property
    def measure(self) -> str:
        """Name of the main measure."""
        return next(iter(self.shown))

    @property
    def worth(self) -> np.ndarray:
        """Main measure of each column."""
        return self.shown[self.measure]

    @property
    def _nothing(self) -> float:
        """Largest main measure of a column that is unrelated to the labels."""
        # A millionth of the evidence below the threshold is added to break ties between such columns.
        threshold = self.parameters.get("threshold", 0.0)
        return 1e-6 * threshold * len(self.dataset.label_names) if self.measure == "evidence" else 0.0

    @property
    def shares(self) -> np.ndarray:
        """Length of the bar of each column; the longest is 1."""
        longest = np.abs(self.worth).max() or 1.0
        return np.where(self.worth <= self._nothing, 0.0, self.worth / longest)

    @property
    def n_arbitrary(self) -> int:
        """Number of kept columns that are unrelated to the labels, so that noise or column order chose them."""
        return int((self.worth[self.kept] <= self._nothing).sum())

    @property
    def settings(self) -> dict[str, Any]:
        """Parameters as JSON values."""
        return {
            name: "inf" if isinstance(value, float) and value == math.inf else value
            for name, value in self.parameters.items()
            if isinstance(value, (int, float, str, bool, type(None)))
        }

    # Relation of columns and labels, for every method

    @cached_property
    def column_of(self) -> np.ndarray:
        """Column of each feature."""
        return np.searchsorted(self.dataset.ranked, self.dataset.column_of)

    @cached_property
    def _products(self) -> tuple[np.ndarray, np.ndarray]:
        return evidence_of(self.dataset)

    @property
    def feature_evidence(self) -> np.ndarray:
        """Evidence of each feature on its own."""
        return self._products[0]

    @property
    def feature_z2(self) -> np.ndarray:
        """Number of rows times squared correlation of each feature and label, with the sign of the correlation."""
        return self._products[1]

    @cached_property
    def column_z2(self) -> np.ndarray:
        """Signed z² of each column with each label, for the feature of the column with the largest z²."""
        signed, column_of = self.feature_z2, self.column_of
        found = np.zeros((len(self.places), signed.shape[1]))
        strength = np.zeros_like(found)
        np.maximum.at(strength, column_of, np.abs(signed))
        features, labels = np.nonzero((np.abs(signed) == strength[column_of]) & (signed != 0))
        # The first of equal features is written last, so it stays.
        found[column_of[features[::-1]], labels[::-1]] = signed[features[::-1], labels[::-1]]
        return found
