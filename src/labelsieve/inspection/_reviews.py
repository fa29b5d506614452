"""Reviews of labels, and probabilities estimated from them by penalised logistic regression.

The penalty pulls the weight of the support towards 1 and the other five weights towards 0. With intercept b0, weights b
and label effects u, the regression minimises a convex function with a unique solution::

    sum of log-losses + (0.1 b0^2 + 30 |b - (1, 0, 0, 0, 0, 0)|^2 + 10 |u|^2) / 2
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from pandas import isna
from scipy.special import expit

from labelsieve._numerics.batches import batches
from labelsieve._numerics.candidates import is_binary
from labelsieve._numerics.sparse import entries

_INTERCEPT_PENALTY, _WEIGHT_PENALTY, _LABEL_PENALTY = 0.1, 30.0, 10.0
_MAX_LABEL_EFFECTS = 2000
_MAX_STEPS, _STEP_TOLERANCE = 50, 1e-10
_LARGEST_PREDICTOR = 30.0
_FLOOR_QUANTILE = 0.05

#: Verdicts on a label of a row.
RIGHT, WRONG, UNSURE, OPEN = 1, 0, 2, -1


@dataclass(frozen=True)
class Draw:
    """Plan of a random draw of labels to review.

    Attributes
    ----------
    number : int
        1 for the first draw of a table. Later draws leave out the labels of earlier ones.
    size : int
        Planned number of labels. Guarantees need verdicts on all of them.
    share : float, default=1.0
        The draw is from this share of the candidates, those with the least support.
    n_suggested : int, default=0
        If positive, the draw is from this number of absent labels, those with the most support.
    is_unlisted : bool, default=False
        True if the draw is from all other absent labels instead.
    """

    number: int
    size: int
    share: float = 1.0
    n_suggested: int = 0
    is_unlisted: bool = False

    @property
    def which(self) -> str:
        """Kind of errors that the draw is about: "wrong" or "missing"."""
        return "missing" if self.n_suggested else "wrong"

    @property
    def is_of_all(self) -> bool:
        """True if the draw is from all candidates."""
        return self.share == 1 and not self.n_suggested

    @property
    def id(self) -> str:
        """Text that identifies the draw in a review file."""
        if self.n_suggested:
            return f"{self.number}:{'unlisted' if self.is_unlisted else 'missing'}-{self.n_suggested}"
        return f"{self.number}:all" if self.is_of_all else f"{self.number}:least-{100 * self.share:g}%"

    @classmethod
    def parse(cls, identifier: str, size: int) -> Self | None:
        """Return the draw with this `id`, or None if the text is not an id.

        Examples
        --------
        >>> Draw.parse("2:least-20%", 50)
        Draw(number=2, size=50, share=0.2, n_suggested=0, is_unlisted=False)
        """
        match = re.fullmatch(
            r"([1-9]\d*):(?:all|least-(\d+(?:\.\d+)?)%|(missing|unlisted)-([1-9]\d*))", identifier
        )
        if match is None or size < 1:
            return None
        number, percent, absent, n_suggested = match.groups()
        share = float(percent) / 100 if percent else 1.0
        found = cls(int(number), size, share, int(n_suggested or 0), absent == "unlisted")
        return found if 0 < share <= 1 else None


@dataclass(frozen=True, eq=False)
class Review:
    """Labels to review, with the verdicts so far.

    Attributes
    ----------
    rows, labels : ndarray of int of shape (n_labels,)
        Row and label indices.
    answers : ndarray of int of shape (n_labels,)
        Verdicts: 1 if the label is right for the row, 0 if it is wrong, 2 if the reviewer is unsure, -1 if there is no
        verdict yet.
    is_missing : ndarray of bool of shape (n_labels,)
        True for a label that the row does not have and that might be missing.
    numbers : ndarray of int of shape (n_labels,)
        Number of the draw of each label; 0 if it was not drawn at random.
    draws : tuple of Draw
        Draws, in the order of their numbers.
    """

    rows: np.ndarray
    labels: np.ndarray
    answers: np.ndarray
    is_missing: np.ndarray
    numbers: np.ndarray
    draws: tuple[Draw, ...]

    @classmethod
    def of_draw(cls, rows: np.ndarray, labels: np.ndarray, answers: np.ndarray | None = None) -> Self:
        """Return the review of a random draw from all candidates."""
        if answers is None:
            answers = np.full(len(rows), OPEN)
        return cls(
            rows,
            labels,
            np.asarray(answers, dtype=np.int8),
            np.zeros(len(rows), dtype=bool),
            np.ones(len(rows), dtype=np.intp),
            (Draw(1, len(rows)),),
        )

    @classmethod
    def validate(cls, checked: Any, is_candidate: Any) -> Review | None:
        """Validate the parameter ``checked`` against a dense or CSR matrix of candidates; None if it is empty."""
        if checked is None or (isinstance(checked, Review) and not len(checked.rows)):
            return None
        if isinstance(checked, Review):
            rows, labels, answers = checked.rows, checked.labels, checked.answers.astype(float)
        else:
            try:
                if hasattr(checked, "columns"):  # iterating over a dataframe would give its column names
                    raise TypeError
                rows, labels, answers = (np.asarray(part).ravel() for part in checked)
            except (TypeError, ValueError):
                raise ValueError(
                    "checked must be a Review or a tuple of three sequences (rows, labels, answers), got "
                    f"{type(checked).__name__}. For example, pass checked=([0, 4], [2, 1], [1, 0]) or (frame.row, "
                    "frame.label, frame.answer)."
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
        rows, labels = rows.astype(np.intp), labels.astype(np.intp)
        found = checked if isinstance(checked, Review) else cls.of_draw(rows, labels, _codes(answers))
        is_other = entries(is_candidate, rows, labels).astype(bool) == found.is_missing
        if is_other.any():
            raise ValueError(
                f"checked must contain only candidates, got row {rows[is_other][0]}, label {labels[is_other][0]}. "
                "Remove it."
            )
        cells, counts = np.unique(rows * is_candidate.shape[1] + labels, return_counts=True)
        if counts.max() > 1:
            row, label = divmod(int(cells[counts.argmax()]), is_candidate.shape[1])
            raise ValueError(
                f"checked must contain each label once, got row {row}, label {label} twice. Remove one."
            )
        return found

    @property
    def is_decided(self) -> np.ndarray:
        """Mask of the labels with the verdict right or wrong."""
        mask: np.ndarray = (self.answers == RIGHT) | (self.answers == WRONG)
        return mask

    @property
    def is_error(self) -> np.ndarray:
        """Mask of the wrong candidates and the missing labels."""
        mask: np.ndarray = self.answers == np.where(self.is_missing, RIGHT, WRONG)
        return mask

    @property
    def open(self) -> np.ndarray:
        """Positions of the labels without a verdict."""
        return np.flatnonzero(self.answers == OPEN)

    def answer(self, answers: Any) -> Review:
        """Return a copy with verdicts on the open labels: 1 (right), 0 (wrong) or nan (unsure), in their order."""
        given = _codes(np.asarray(answers).ravel())
        if len(given) != len(self.open):
            raise ValueError(
                f"answers must have one entry per open label ({len(self.open)}), got {len(given)}."
            )
        filled = self.answers.copy()
        filled[self.open] = given
        return replace(self, answers=filled)

    def take(self, positions: np.ndarray) -> Review:
        """Return some of the labels."""
        names = ("rows", "labels", "answers", "is_missing", "numbers")
        return replace(self, **{name: getattr(self, name)[positions] for name in names})

    def correct(self, chosen: np.ndarray) -> Review:
        """Return a copy in which the labels of a mask are errors outside any draw."""
        errors = np.where(self.is_missing, RIGHT, WRONG).astype(np.int8)
        return replace(
            self,
            answers=np.where(chosen, errors, self.answers),
            numbers=np.where(chosen, 0, self.numbers),
        )

    def is_complete(self, draw: Draw) -> bool:
        """Return True if all labels of a draw have a verdict."""
        answers = self.answers[self.numbers == draw.number]
        return len(answers) == draw.size and bool((answers != OPEN).all())

    def n_answered(self, draw: Draw) -> int:
        """Return the number of labels of a draw that have a verdict."""
        return int((self.answers[self.numbers == draw.number] != OPEN).sum())

    def for_probabilities(self) -> Review:
        """Return the decided candidates that probabilities are estimated from.

        These are the draws from all candidates. Without any, they are all candidates.
        """
        kept = self.is_decided & ~self.is_missing
        of_all = [draw.number for draw in self.draws if draw.is_of_all]
        return self.take(np.flatnonzero(kept & np.isin(self.numbers, of_all) if of_all else kept))

    def restrict_to(self, varies: np.ndarray) -> Review:
        """Return the labels that vary, with label indices among these labels."""
        kept = self.take(np.flatnonzero(varies[self.labels]))
        return replace(kept, labels=(np.cumsum(varies) - 1)[kept.labels])


def positions_in(cells: np.ndarray, listed: np.ndarray) -> np.ndarray:
    """Return the position of each cell in a list without repeats, or -1.

    Examples
    --------
    >>> positions_in(np.array([7, 5]), np.array([9, 5, 6]))
    array([-1,  1])
    """
    if not len(listed):
        return np.full(len(cells), -1)
    order = np.argsort(listed)
    found = order[np.minimum(np.searchsorted(listed, cells, sorter=order), len(listed) - 1)]
    return np.where(listed[found] == cells, found, -1)


def _codes(answers: np.ndarray) -> np.ndarray:
    """Return verdicts as codes; nan and None mean unsure."""
    is_unsure = isna(answers)
    if not is_binary(np.asarray(answers[~is_unsure].tolist())):
        raise ValueError(
            "checked must have answers 1 (right), 0 (wrong) or nan (unsure), got "
            f"{set(answers[~is_unsure].tolist()) - {0, 1}}."
        )
    codes = np.full(len(answers), UNSURE, dtype=np.int8)
    codes[~is_unsure] = answers[~is_unsure].astype(np.int8)
    return codes


@dataclass(frozen=True, eq=False)
class Candidates:
    """Inputs of the regression: all candidates of labels that vary, sorted by row, then label.

    `support` has shape (n_samples, n_labels). `feature_support` is the support from features alone, one per candidate.
    `n_known` is the number of rows in which each label is known.
    """

    rows: np.ndarray
    labels: np.ndarray
    support: np.ndarray
    feature_support: np.ndarray
    n_known: np.ndarray

    def positions(self, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the positions of the given candidates among all candidates."""
        n_labels = self.support.shape[1]
        found: np.ndarray = np.searchsorted(self.rows * n_labels + self.labels, rows * n_labels + labels)
        return found

    def columns(self) -> Iterator[np.ndarray]:
        """Yield the six standardised predictors; a constant one becomes 0."""
        n_samples, n_labels = self.support.shape
        in_row = np.bincount(self.rows, minlength=n_samples)
        frequency = np.bincount(self.labels, minlength=n_labels) / self.n_known
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
    # The effects of all other labels are 0.
    reviewed, labels = np.unique(candidates.labels[positions], return_inverse=True)
    effects = len(reviewed) if n_labels <= _MAX_LABEL_EFFECTS else 0
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
    label_effects = np.zeros(n_labels)
    if effects:
        label_effects[reviewed] = solution[7:]
    return ReviewModel(float(solution[0]), solution[1:7], label_effects)
