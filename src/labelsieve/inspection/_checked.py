"""Probabilities from reviewed candidates, by a logistic regression with a prior.

The prior gives the support the weight 1 and the other five columns 0. With intercept b0, weights b and label effects
u, the regression minimises a convex function with one solution::

    sum of log-losses + (0.1 b0^2 + 30 |b - (1, 0, 0, 0, 0, 0)|^2 + 10 |u|^2) / 2
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from labelsieve._numerics.batches import batches
from labelsieve._numerics.candidates import is_binary
from labelsieve._numerics.sparse import entries

_INTERCEPT_PENALTY, _WEIGHT_PENALTY, _LABEL_PENALTY = 0.1, 30.0, 10.0
_MOST_LABEL_EFFECTS = 2000
_MOST_STEPS, _SMALL_STEP = 50, 1e-10
_LARGEST_PREDICTOR = 30.0
_FLOOR_QUANTILE = 0.05


@dataclass(frozen=True)
class Checks:
    """Reviewed candidates: their places and whether each is right."""

    rows: np.ndarray
    labels: np.ndarray
    answers: np.ndarray

    @classmethod
    def of(cls, checked: Any, is_candidate: Any) -> Checks | None:
        """Validate ``checked`` against a dense or CSR matrix of candidates; None without reviewed candidates."""
        if checked is None:
            return None
        try:
            if hasattr(checked, "columns"):  # iterating over a frame gives the names of its columns
                raise TypeError
            rows, labels, answers = (np.asarray(part).ravel() for part in checked)
        except (TypeError, ValueError):
            raise ValueError(
                f"checked must be a tuple of three sequences, rows, labels and answers, got {type(checked).__name__}. "
                "Pass for example checked=([0, 4], [2, 1], [1, 0]), or (frame.row, frame.label, frame.answer)."
            ) from None
        if not len(rows) == len(labels) == len(answers):
            raise ValueError(
                f"checked must have as many rows as labels and answers. Got {len(rows)}, {len(labels)} and "
                f"{len(answers)}. Give one of each for every candidate."
            )
        if not len(rows):
            return None
        for name, places, size in zip(("rows", "labels"), (rows, labels), is_candidate.shape, strict=True):
            outside = places[(places < 0) | (places >= size)] if places.dtype.kind in "iu" else places
            if len(outside):
                raise ValueError(
                    f"checked must give {name} as whole numbers from 0 to {size - 1}, got {outside.tolist()[0]!r}."
                )
        if not is_binary(answers):
            raise ValueError(
                "checked must answer with 1 for a right candidate and 0 for a wrong one, "
                f"got {set(answers.tolist()) - {0, 1}}."
            )
        rows, labels = rows.astype(np.intp), labels.astype(np.intp)
        is_none = ~entries(is_candidate, rows, labels).astype(bool)
        if is_none.any():
            raise ValueError(
                f"checked must hold candidates only, got row {rows[is_none][0]}, label {labels[is_none][0]}, which is "
                "not one. Leave it out."
            )
        cells, counts = np.unique(rows * is_candidate.shape[1] + labels, return_counts=True)
        if counts.max() > 1:
            row, label = divmod(int(cells[counts.argmax()]), is_candidate.shape[1])
            raise ValueError(
                f"checked must hold every candidate once, got row {row}, label {label} twice. Leave one out."
            )
        return cls(rows, labels, answers.astype(float))

    def among(self, varies: np.ndarray) -> Checks:
        """Return the reviews of labels that vary, numbered among these labels."""
        kept = varies[self.labels]
        positions = np.cumsum(varies) - 1
        return Checks(self.rows[kept], positions[self.labels[kept]], self.answers[kept])


@dataclass(frozen=True, eq=False)
class Candidates:
    """Inputs of the regression: all candidates of labels that vary, by row, then label.

    `support` is that of all rows and labels, `feature_support` that of the candidates by the features alone.
    """

    rows: np.ndarray
    labels: np.ndarray
    support: np.ndarray
    feature_support: np.ndarray

    def places(self, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the positions of some candidates among all, which are sorted by row, then label."""
        n_labels = self.support.shape[1]
        found: np.ndarray = np.searchsorted(self.rows * n_labels + self.labels, rows * n_labels + labels)
        return found

    def columns(self) -> Iterator[np.ndarray]:
        """Yield the six standardised columns; a constant one is 0."""
        n_samples, n_labels = self.support.shape
        in_row = np.bincount(self.rows, minlength=n_samples)
        frequency = np.bincount(self.labels, minlength=n_labels) / n_samples
        with np.errstate(divide="ignore"):  # rows and labels without a candidate are not used
            log_in_row, log_odds = np.log(in_row), np.log(frequency) - np.log1p(-frequency)
        floors = np.empty(n_labels)
        for block in batches(n_labels, n_samples):
            floors[block] = np.quantile(self.support[:, block], _FLOOR_QUANTILE, axis=0)
        for column in (
            self.support[self.rows, self.labels],
            self.feature_support,
            log_in_row[self.rows],
            (in_row == 1).astype(float)[self.rows],
            log_odds[self.labels],
            floors[self.labels],
        ):
            deviation = column.std()
            yield (column - column.mean()) / deviation if deviation > 1e-9 else np.zeros_like(column)


@dataclass(frozen=True)
class CheckedModel:
    """Fitted regression: intercept, six weights, and an effect per label (0 if there are too many labels)."""

    intercept: float
    weights: np.ndarray
    label_effects: np.ndarray

    def probability(self, candidates: Candidates) -> np.ndarray:
        """Return the probability that each candidate is right."""
        predictor = self.intercept + self.label_effects[candidates.labels]
        for weight, column in zip(self.weights, candidates.columns(), strict=True):
            predictor += weight * column
        probability: np.ndarray = expit(predictor)
        return probability


def fit_checked(candidates: Candidates, places: np.ndarray, answers: np.ndarray) -> CheckedModel:
    """Fit the regression to the candidates at ``places``, by Newton's method from the prior."""
    n_labels = candidates.support.shape[1]
    labels = candidates.labels[places]
    effects = n_labels if n_labels <= _MOST_LABEL_EFFECTS else 0
    B = np.column_stack(
        [
            np.ones(len(places)),
            *(column[places] for column in candidates.columns()),
            (labels[:, None] == np.arange(effects)).astype(float),
        ]
    )
    penalty = np.r_[_INTERCEPT_PENALTY, np.full(6, _WEIGHT_PENALTY), np.full(effects, _LABEL_PENALTY)]
    prior = np.zeros(len(penalty))
    prior[1] = 1
    solution = prior.copy()
    for _ in range(_MOST_STEPS):
        chance = expit(np.clip(B @ solution, -_LARGEST_PREDICTOR, _LARGEST_PREDICTOR))
        hessian = (B.T * (chance * (1 - chance))) @ B
        hessian[np.diag_indices_from(hessian)] += penalty
        step = np.linalg.solve(hessian, B.T @ (chance - answers) + penalty * (solution - prior))
        solution -= step
        if np.abs(step).max() < _SMALL_STEP:
            break
    label_effects = solution[7:] if effects else np.zeros(n_labels)
    return CheckedModel(float(solution[0]), solution[1:7], label_effects)
