"""Probabilities estimated from reviewed candidates by penalised logistic regression.

The penalty pulls the weight of the support towards 1 and the other five weights towards 0. With intercept b0, weights b
and label effects u, the regression minimises a convex function with a unique solution::

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
_MAX_LABEL_EFFECTS = 2000
_MAX_STEPS, _STEP_TOLERANCE = 50, 1e-10
_LARGEST_PREDICTOR = 30.0
_FLOOR_QUANTILE = 0.05


@dataclass(frozen=True)
class ReviewedLabels:
    """Reviewed candidates: row indices, label indices, and 1 for right or 0 for wrong."""

    rows: np.ndarray
    labels: np.ndarray
    answers: np.ndarray

    @classmethod
    def validate(cls, checked: Any, is_candidate: Any) -> ReviewedLabels | None:
        """Validate the parameter ``checked`` against a dense or CSR matrix of candidates; None if it is empty."""
        if checked is None:
            return None
        try:
            if hasattr(checked, "columns"):  # iterating over a dataframe would give its column names
                raise TypeError
            rows, labels, answers = (np.asarray(part).ravel() for part in checked)
        except (TypeError, ValueError):
            raise ValueError(
                f"checked must be a tuple of three sequences (rows, labels, answers), got {type(checked).__name__}. "
                "For example, pass checked=([0, 4], [2, 1], [1, 0]) or (frame.row, frame.label, frame.answer)."
            ) from None
        if not len(rows) == len(labels) == len(answers):
            raise ValueError(
                f"checked must have equally many rows, labels and answers, got {len(rows)}, {len(labels)} and "
                f"{len(answers)}."
            )
        if not len(rows):
            return None
        for name, indices, size in zip(("rows", "labels"), (rows, labels), is_candidate.shape, strict=True):
            invalid = indices[(indices < 0) | (indices >= size)] if indices.dtype.kind in "iu" else indices
            if len(invalid):
                raise ValueError(
                    f"checked must have {name} that are integers from 0 to {size - 1}, got {invalid.tolist()[0]!r}."
                )
        if not is_binary(answers):
            raise ValueError(
                f"checked must have answers 1 (right) or 0 (wrong), got {set(answers.tolist()) - {0, 1}}."
            )
        rows, labels = rows.astype(np.intp), labels.astype(np.intp)
        is_other = ~entries(is_candidate, rows, labels).astype(bool)
        if is_other.any():
            raise ValueError(
                f"checked must contain only candidates, got row {rows[is_other][0]}, label {labels[is_other][0]}. "
                "Remove it."
            )
        cells, counts = np.unique(rows * is_candidate.shape[1] + labels, return_counts=True)
        if counts.max() > 1:
            row, label = divmod(int(cells[counts.argmax()]), is_candidate.shape[1])
            raise ValueError(
                f"checked must contain each candidate once, got row {row}, label {label} twice. Remove one."
            )
        return cls(rows, labels, answers.astype(float))

    def restrict_to(self, varies: np.ndarray) -> ReviewedLabels:
        """Return the reviewed candidates of labels that vary, with label indices among these labels."""
        kept = varies[self.labels]
        positions = np.cumsum(varies) - 1
        return ReviewedLabels(self.rows[kept], positions[self.labels[kept]], self.answers[kept])


@dataclass(frozen=True, eq=False)
class Candidates:
    """Inputs of the regression: all candidates of labels that vary, sorted by row, then label.

    `support` has shape (n_samples, n_labels). `feature_support` is the support from features alone, one per candidate.
    """

    rows: np.ndarray
    labels: np.ndarray
    support: np.ndarray
    feature_support: np.ndarray

    def positions(self, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the positions of the given candidates among all candidates."""
        n_labels = self.support.shape[1]
        found: np.ndarray = np.searchsorted(self.rows * n_labels + self.labels, rows * n_labels + labels)
        return found

    def columns(self) -> Iterator[np.ndarray]:
        """Yield the six standardised predictors; a constant one becomes 0."""
        n_samples, n_labels = self.support.shape
        in_row = np.bincount(self.rows, minlength=n_samples)
        frequency = np.bincount(self.labels, minlength=n_labels) / n_samples
        with np.errstate(divide="ignore"):  # values of rows and labels without candidates are not used
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
class ReviewModel:
    """Fitted regression: intercept, six weights, and one effect per label (0 if there are too many labels)."""

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


def fit_reviewed(candidates: Candidates, positions: np.ndarray, answers: np.ndarray) -> ReviewModel:
    """Fit the regression to the candidates at ``positions`` with Newton's method."""
    n_labels = candidates.support.shape[1]
    labels = candidates.labels[positions]
    effects = n_labels if n_labels <= _MAX_LABEL_EFFECTS else 0
    B = np.column_stack(
        [
            np.ones(len(positions)),
            *(column[positions] for column in candidates.columns()),
            (labels[:, None] == np.arange(effects)).astype(float),
        ]
    )
    penalty = np.r_[_INTERCEPT_PENALTY, np.full(6, _WEIGHT_PENALTY), np.full(effects, _LABEL_PENALTY)]
    prior = np.zeros(len(penalty))
    prior[1] = 1
    solution = prior.copy()
    for _ in range(_MAX_STEPS):
        p = expit(np.clip(B @ solution, -_LARGEST_PREDICTOR, _LARGEST_PREDICTOR))
        hessian = (B.T * (p * (1 - p))) @ B
        hessian[np.diag_indices_from(hessian)] += penalty
        step = np.linalg.solve(hessian, B.T @ (p - answers) + penalty * (solution - prior))
        solution -= step
        if np.abs(step).max() < _STEP_TOLERANCE:
            break
    label_effects = solution[7:] if effects else np.zeros(n_labels)
    return ReviewModel(float(solution[0]), solution[1:7], label_effects)
