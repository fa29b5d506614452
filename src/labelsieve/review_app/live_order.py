"""Order of the labels to review, updated after each verdict."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from labelsieve.inspection._reviews import Candidates, Review, fit_reviewed
from labelsieve.inspection.explanations import ExplainedSupport
from labelsieve.inspection.label_issues import MIN_REVIEWED, LabelIssues

#: Number of labels at the head of a queue that are sorted.
HEAD = 400


class LiveOrder:
    """Labels of one kind, ranked by the support before the review and the verdicts so far.

    The verdicts of all queues train the regression that estimates probabilities. Verdicts on suspicious labels are no
    random draw, so the result is an order, not a probability.

    Attributes
    ----------
    rows, labels : ndarray of int
        Labels to review, sorted by row, then label.
    is_open : ndarray of bool
        True if a label waits for a verdict in this queue.
    """

    def __init__(self, model: ExplainedSupport, issues: LabelIssues) -> None:
        order = np.lexsort((issues.labels, issues.rows))
        self.rows, self.labels = issues.rows[order], issues.labels[order]
        self.is_open = np.ones(len(order), dtype=bool)
        self._is_missing = issues.which == "missing"
        self._width = len(issues.label_names)
        self._cells = self.rows * self._width + self.labels
        self._is_unpredicted = ~model.is_predicted_[self.labels]
        self._varies = model._varies[self.labels]
        self._is_flagged = issues.is_flagged[order]
        self._rank = order.astype(float)  # the issues are in the order of their ranks
        self._columns: _Columns | None = None
        if model._candidates is not None:
            kept = np.flatnonzero(self._varies)
            rows = self.rows[kept]
            labels = (np.cumsum(model._varies) - 1)[self.labels[kept]]
            given = model._candidates
            from_features = model.from_features(rows, labels, are_absent=self._is_missing)
            self._columns = _Columns(rows, labels, given.support, from_features, given.n_known)
        self._score = self._rank.copy()

    def __contains__(self, cell: int) -> bool:
        return self.position(cell) is not None

    def position(self, cell: int) -> int | None:
        """Return the position of a label, given as ``row * n_labels + label``."""
        place = int(np.searchsorted(self._cells, cell))
        return place if place < len(self._cells) and self._cells[place] == cell else None

    def update(self, review: Review) -> None:
        """Rank the labels again with all verdicts of this kind."""
        decided = review.is_decided & (review.is_missing == self._is_missing)
        places = np.searchsorted(self._cells, review.rows[decided] * self._width + review.labels[decided])
        places, answers = places[self._varies[places]], review.answers[decided][self._varies[places]]
        if self._columns is None or not len(places):
            self._score = self._rank.copy()
            return
        positions = (np.cumsum(self._varies) - 1)[places]
        model = fit_reviewed(self._columns, positions, answers.astype(float))
        probability = np.ones(len(self.rows))
        probability[self._varies] = model.probability(self._columns)
        self._score = -probability if self._is_missing else probability
        if len(places) < MIN_REVIEWED:  # too few to tell if a label that nothing predicts is often wrong
            self._score[self._is_unpredicted] += 1

    def first(self, label: int | None = None, n: int = HEAD) -> np.ndarray:
        """Return positions of the open labels, most likely errors first."""
        is_open = self.is_open if label is None else self.is_open & (self.labels == label)
        places = np.flatnonzero(is_open)
        score = self._score[places]
        if len(places) > n:
            best = np.argpartition(score, n)[:n]
            places, score = places[best], score[best]
        return places[np.lexsort((self._rank[places], score))]

    def n_open(self, label: int | None = None) -> int:
        """Return the number of open labels."""
        return int(np.count_nonzero(self.is_open if label is None else self.is_open & (self.labels == label)))

    def n_flagged(self) -> int:
        """Return the number of open labels that were more likely errors than not before the review."""
        return int(np.count_nonzero(self.is_open & self._is_flagged))


class _Columns(Candidates):
    """Inputs of the regression that are computed once."""

    def columns(self) -> Iterator[np.ndarray]:
        if "_cached" not in self.__dict__:
            self.__dict__["_cached"] = list(super().columns())
        return iter(self.__dict__["_cached"])
