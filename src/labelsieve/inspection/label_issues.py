"""Wrong and missing labels of a dataset, the most likely ones first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pandas import DataFrame
from scipy.stats import rankdata

from labelsieve._base import as_generator, binarize_tags, check_candidates, check_count, reject_lazy
from labelsieve._candidates import take_unknown
from labelsieve._numerics.batches import batches
from labelsieve._numerics.sparse import check_structure, is_sparse
from labelsieve._text import html_table, one_line
from labelsieve.inspection._reviews import (
    OPEN,
    RIGHT,
    UNSURE,
    WRONG,
    Draw,
    Review,
    fit_reviewed,
    positions_in,
)
from labelsieve.inspection.guarantees import (
    FEWEST_REVIEWS,
    Correction,
    ErrorInterval,
    ListAudit,
    assisted_interval,
    audit_list,
    correctable,
    exact_interval,
    sum_intervals,
)
from labelsieve.inspection.label_support import (
    LabelSupport,
    candidate_indices,
    is_unlikely_random,
    varying_labels,
)

__all__ = [
    "LabelIssues",
    "draw_candidates",
    "find_label_issues",
]

MIN_REVIEWED = 50
"""Number of reviewed candidates required to show probabilities; also the default of `draw_candidates`."""

DEFAULT_SUGGESTED = 500
"""Number of absent labels with the most support that a draw of missing labels is from."""

_ROWS_IN_NOTEBOOK = 10
#: Absent labels that are kept, those with the most support.
_MOST_SUGGESTED = 10_000
#: Support of an absent label that is flagged.
_FLAGGED_SUPPORT = 0.5
#: Fewest reviews of a label that give an interval.
_FEWEST_OF_LABEL = 5
#: Words for the codes of verdicts.
VERDICTS = {RIGHT: "right", WRONG: "wrong", UNSURE: "unsure", OPEN: ""}
#: From this number of reviews, half of them estimate probabilities, which rank better than the support.
_ENOUGH_TO_SPLIT = 200

_ADVICE = (
    f"For probabilities, review {MIN_REVIEWED} candidates from draw_candidates and pass them as checked."
)


@dataclass(frozen=True, eq=False, repr=False)
class LabelIssues:
    """Labels ranked by `find_label_issues`, the most likely errors first.

    They are candidates that may be wrong or, if `which` is "missing", labels that a row does not have but may need.

    Attributes
    ----------
    support : ndarray of shape (n_samples, n_labels)
        Support for each label in each row; see `LabelSupport`. Use it to rank labels, not as a probability.
    confidence : ndarray of shape (n_samples, n_labels)
        Support of the candidates rescaled to [0, 1], and 0 for all other labels. This is not a probability.
    probability : ndarray of shape (n_samples, n_labels) or None
        Estimated probability that a candidate is right; None if no candidates were reviewed.
    n_checked : int
        Number of reviewed candidates.
    rows, labels : ndarray of int
        Row and label indices, most likely errors first. Candidates are sorted by probability if some were reviewed,
        otherwise by support. Of the absent labels, the 10,000 with the most support are listed.
    answers : ndarray of int
        Verdicts in the same order: 1 if the label is right for the row, 0 if it is wrong, 2 if the reviewer was unsure,
        -1 if it was not reviewed.
    label_names : tuple of str
        Names of the labels.
    row_ids : tuple
        Names of the rows.
    which : {"wrong", "missing"}
        Kind of errors.
    n_labels : int
        Number of labels that are ranked: all candidates, or all absent labels.
    review : Review or None
        Reviewed labels.
    missing : LabelIssues or None
        Absent labels, if `find_label_issues` ranked both kinds.

    Examples
    --------
    The last row resembles the third, but it also has the label of the first two.

    >>> from labelsieve import find_label_issues
    >>> X, Y = [[0.0], [0.1], [0.9], [1.0]], [[1, 0], [1, 0], [0, 1], [1, 1]]
    >>> issues = find_label_issues(X, Y)
    >>> int(issues.rows[0]), issues.label_names[issues.labels[0]]
    (3, 'y0')
    """

    support: np.ndarray
    confidence: np.ndarray
    probability: np.ndarray | None
    n_checked: int
    rows: np.ndarray
    labels: np.ndarray
    answers: np.ndarray
    label_names: tuple[str, ...]
    row_ids: tuple[Hashable, ...]
    which: str
    n_labels: int
    review: Review | None
    missing: LabelIssues | None
    _model: LabelSupport

    @property
    def n_candidates(self) -> int:
        """Number of candidates, or of absent labels if `which` is "missing"."""
        return self.n_labels

    @property
    def has_probabilities(self) -> bool:
        """True if enough candidates were reviewed to show probabilities."""
        return self.n_checked >= MIN_REVIEWED

    @property
    def shown_probability(self) -> np.ndarray | None:
        """`probability` if enough candidates were reviewed, otherwise None."""
        return self.probability if self.has_probabilities else None

    @property
    def share_wrong(self) -> float | None:
        """Estimated fraction of wrong candidates, or None if too few candidates were reviewed."""
        if self.shown_probability is None:
            return None
        return float(1 - self.shown_probability[self.rows, self.labels].mean())

    @property
    def unchecked(self) -> np.ndarray:
        """Positions in `rows` of the labels that were not reviewed."""
        return np.flatnonzero(self.answers == OPEN)

    @property
    def is_flagged(self) -> np.ndarray:
        """Mask of the labels that are more likely errors than not and have no verdict.

        Without probabilities, labels that the features do not predict are not flagged.
        """
        if self.shown_probability is not None and self.which == "wrong":
            is_error = self.shown_probability[self.rows, self.labels] < 0.5
        else:
            is_error = (
                self.support[self.rows, self.labels] >= _FLAGGED_SUPPORT
                if self.which == "missing"
                else self.confidence[self.rows, self.labels] < 0.5
            )
            is_error &= self._model.is_predicted_[self.labels]
        mask: np.ndarray = is_error & (self.answers == OPEN)
        return mask

    def to_frame(self) -> DataFrame:
        """Return a DataFrame with one row per label, most likely errors first.

        Returns
        -------
        DataFrame
            Columns ``row`` (row id), ``label``, ``issue`` ("wrong" or "missing"), ``rank``, ``support``,
            ``probability`` (with at least 50 reviewed candidates) and ``verdict`` ("right", "wrong", "unsure" or "").
            A missing label is right if the row should have it.
        """
        columns: dict[str, Any] = {
            "row": [self.row_ids[row] for row in self.rows],
            "label": [self.label_names[label] for label in self.labels],
            "issue": self.which,
            "rank": np.arange(1, len(self.rows) + 1),
            "support": self.support[self.rows, self.labels],
        }
        if self.shown_probability is not None:
            columns["probability"] = self.shown_probability[self.rows, self.labels]
        columns["verdict"] = self.verdicts()
        return DataFrame(columns)

    def label_summary(self) -> DataFrame:
        """Return a DataFrame with one row per label, in column order.

        Returns
        -------
        DataFrame
            Columns ``label``, ``n_candidates``, ``auc`` and ``is_predicted`` (see `LabelSupport`), ``n_flagged`` and,
            if at least 50 candidates were reviewed, ``share_wrong`` (estimated fraction of wrong candidates). A
            complete random draw of candidates adds ``low`` and ``high``, the 95 % interval of that fraction for labels
            with at least 5 reviews, otherwise nan. Flagged labels have no verdict and are more likely errors than not.
            Their number is not an error count.
        """
        n_labels = len(self.label_names)
        listed = np.bincount(self.labels, minlength=n_labels)
        flagged = np.bincount(self.labels[self.is_flagged], minlength=n_labels)
        found = {
            "label": self.label_names,
            "n_candidates": listed,
            "auc": self._model.auc_,
            "is_predicted": self._model.is_predicted_,
            "n_flagged": flagged,
        }
        if self.which == "missing":
            del found["n_candidates"]
            return DataFrame(found)
        if self.has_probabilities:
            assert self.probability is not None
            n_wrong = np.bincount(self.labels, 1 - self.probability[self.rows, self.labels], n_labels)
            found["share_wrong"] = np.divide(n_wrong, listed, out=np.zeros(n_labels), where=listed > 0)
        with suppress(ValueError):  # there is no complete random draw
            found |= self._intervals_of_labels(self._needed_draw(of_all=True))
        return DataFrame(found)[listed > 0].reset_index(drop=True)

    def verdicts(self) -> list[str]:
        """Return the verdict on each label, in rank order: "right", "wrong", "unsure" or ""."""
        return [VERDICTS[int(answer)] for answer in self.answers]

    # Guarantees

    def complete_draws(self, *, is_unlisted: bool = False) -> list[Draw]:
        """Return the random draws of this kind whose labels all have a verdict, in order, if there are at least 10."""
        return [
            draw
            for draw in (() if self.review is None else self.review.draws)
            if draw.which == self.which and draw.is_unlisted == is_unlisted
            if draw.size >= FEWEST_REVIEWS and self.review.is_complete(draw)  # type: ignore[union-attr]
        ]

    def error_interval(self, *, level: float = 0.95, method: str = "exact") -> ErrorInterval:
        """Return the number of wrong (or missing) labels with a confidence interval.

        It is about all candidates, or about the absent labels that the draw was from. The interval holds the true
        number in at least 95 % of all draws if the verdicts are correct.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level, in (0, 1).
        method : {"exact", "assisted"}, default="exact"
            "exact" uses the verdicts only. "assisted" also uses the support, which makes the interval about 13 %
            narrower on average. It is not exact, but held its level in our simulations.

        Returns
        -------
        ErrorInterval
            Estimate and interval.
        """
        _check_open_interval(level, "level", 0.95)
        if method not in ("exact", "assisted"):
            raise ValueError(f"method must be 'exact' or 'assisted', got {method!r}.")
        known: dict[tuple[float, str], ErrorInterval] = self.__dict__.setdefault("_intervals", {})
        if (level, method) not in known:
            known[level, method] = self._error_interval(level, method)
        return known[level, method]

    def _error_interval(self, level: float, method: str) -> ErrorInterval:
        drawn = self._drawn(self._needed_draw(of_all=self.which == "wrong"))
        if method == "exact":
            return drawn.interval(level)
        is_unsure = drawn.answers == UNSURE
        rank = rankdata(drawn.score) - 1
        guess = 1 - rank / len(rank)
        return assisted_interval(drawn.is_error, is_unsure, guess, drawn.positions, level)

    def total_interval(self, *, level: float = 0.95) -> ErrorInterval:
        """Return the number of missing labels among all absent ones, with a confidence interval.

        It adds the intervals of the list with the most support and of the other absent labels. Without a draw from the
        others (``draw(is_unlisted=True)``), all of them may be missing, and only the lower end says anything. Most of
        the upper end is unknown in any case, because missing labels are rare among the others.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level, in (0, 1).

        Returns
        -------
        ErrorInterval
            Estimate and interval. The estimate is nan without a draw from the others.
        """
        _check_open_interval(level, "level", 0.95)
        if self.which == "wrong":
            raise ValueError("total_interval needs missing labels, got candidates. Call error_interval.")
        self._needed_draw()
        listed, *_ = self.complete_draws()
        others = [
            draw for draw in self.complete_draws(is_unlisted=True) if draw.n_suggested == listed.n_suggested
        ]
        if others:
            # Each interval holds its number with half of the risk.
            parts = [self._drawn(draw).interval((1 + level) / 2) for draw in (listed, others[0])]
        else:
            parts = [self._drawn(listed).interval(level)]
            parts.append(exact_interval(0, 0, 0, self.n_labels - parts[0].n_labels, level))
        return sum_intervals(level, *parts)

    def removable(self, alpha: float = 0.1) -> Correction:
        """Return candidates that can be removed without review.

        On average over random draws, at most `alpha` of the removed candidates are right. This holds for any noise and
        any quality of the support, if the verdicts are correct.

        Parameters
        ----------
        alpha : float, default=0.1
            Bound on the expected share of right candidates among those removed, in (0, 1).

        Returns
        -------
        Correction
            Row and label indices. It is empty if the reviews do not allow any removal. A second attempt, after a
            ``draw(least_supported=0.2)``, adds its own `alpha`.
        """
        if self.which == "missing":
            raise ValueError("removable needs candidates, got missing labels. Call addable.")
        return self._correctable(alpha)

    def addable(self, alpha: float = 0.2) -> Correction:
        """Return missing labels that can be added without review.

        On average over random draws, at most `alpha` of the added labels are wrong.

        Parameters
        ----------
        alpha : float, default=0.2
            Bound on the expected share of wrong labels among those added, in (0, 1).

        Returns
        -------
        Correction
            Row and label indices. It is empty if the reviews do not allow any addition.
        """
        if self.which == "wrong":
            raise ValueError(
                "addable needs missing labels, got candidates. Call find_label_issues(which='missing')."
            )
        return self._correctable(alpha)

    def audit_list(self, alpha: float = 0.1, delta: float = 0.05) -> ListAudit:
        """Test whether nearly all labels are errors in the list that the last complete draw is from.

        Parameters
        ----------
        alpha : float, default=0.1
            Largest share of labels in the list that may be no errors, reviewed ones aside, in (0, 1).
        delta : float, default=0.05
            Risk that a list with a larger share passes, in (0, 1).

        Returns
        -------
        ListAudit
            The result, and how many labels without error are allowed among the reviewed ones.
        """
        _check_open_interval(alpha, "alpha", 0.1)
        _check_open_interval(delta, "delta", 0.05)
        drawn = self._drawn(self._needed_draw())
        n_right = int((~drawn.is_error).sum())
        return audit_list(n_right, len(drawn.positions), len(drawn.score), alpha, delta)

    def draw(
        self,
        n: int = MIN_REVIEWED,
        *,
        least_supported: float = 1.0,
        n_suggested: int = DEFAULT_SUGGESTED,
        is_unlisted: bool = False,
        random_state: int = 0,
    ) -> Review:
        """Draw random labels to review next. Labels of earlier draws are left out.

        Parameters
        ----------
        n : int, default=50
            Number of labels to draw.
        least_supported : float, default=1.0
            Draw from this share of the candidates, those with the least support. Small shares such as 0.2 make it
            likelier that some can be removed.
        n_suggested : int, default=500
            Number of absent labels, those with the most support, to draw missing labels from. At most a tenth of all
            absent labels.
        is_unlisted : bool, default=False
            If True, draw from all other absent labels, for `total_interval`.
        random_state : int, default=0
            Seed.

        Returns
        -------
        Review
            All labels reviewed so far and the new ones, which have no verdict. Give verdicts with `Review.answer`, and
            pass the result to `find_label_issues`.
        """
        check_count(n, "n", minimum=1)
        check_count(random_state, "random_state", minimum=0)
        earlier = () if self.review is None else self.review.draws
        number = 1 + max((draw.number for draw in earlier), default=0)
        if self.which == "missing":
            check_count(n_suggested, "n_suggested", minimum=1)
            n_suggested = max(1, min(n_suggested, self.n_labels // 10, len(self.rows)))
            draw = Draw(number, n, n_suggested=n_suggested, is_unlisted=is_unlisted)
        elif 0 < least_supported <= 1:
            draw = Draw(number, n, float(least_supported))
        else:
            raise ValueError(f"least_supported must be in (0, 1], got {least_supported!r}.")
        rows, labels, _ = self._population(draw)
        if not len(rows):
            raise ValueError("There is no label left to draw. Draw from a larger list.")
        chosen = np.random.default_rng([random_state, number]).permutation(len(rows))[:n]
        if number == 1 and draw.is_of_all:  # the draw of `draw_candidates`
            chosen = np.random.default_rng(random_state).permutation(len(rows))[:n]
        return _with_draw(self.review, replace(draw, size=len(chosen)), rows[chosen], labels[chosen])

    def _needed_draw(self, *, of_all: bool = False) -> Draw:
        """Return the last complete draw, or the first from all candidates; say in an error why there is none."""
        found = [draw for draw in self.complete_draws() if draw.is_of_all or not of_all]
        if not found:
            raise ValueError(self.why_no_guarantee())
        return found[0 if of_all else -1]

    def why_no_guarantee(self) -> str:
        """Return why there is no complete random draw."""
        review = self.review
        if review is None or not (review.is_missing == (self.which == "missing")).any():
            return f"No {self._kind[:-1]} was reviewed. Review a random draw of {MIN_REVIEWED} first."
        draws = [draw for draw in review.draws if draw.which == self.which and not draw.is_unlisted]
        if not draws:
            return (
                "The reviewed labels are not a random draw, so they say nothing about the others. Review a random draw "
                f"of {MIN_REVIEWED}."
            )
        draw = draws[-1]
        if review.is_complete(draw):
            return f"A guarantee needs at least {FEWEST_REVIEWS} reviewed labels, got {draw.size}."
        return (
            f"{review.n_answered(draw)} of {draw.size} labels of draw {draw.id} are reviewed. Intervals and "
            "corrections need all of them."
        )

    def _population(self, draw: Draw) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return rows and labels that a draw is from, and their scores; low scores look like errors."""
        if self.which == "missing":
            rows, labels = self.rows[: draw.n_suggested], self.labels[: draw.n_suggested]
            if draw.is_unlisted:
                is_unlisted = self._model.absent_labels()
                is_unlisted[rows, labels] = False
                rows, labels = np.nonzero(is_unlisted)
            score = -self.support[rows, labels]
        else:
            order = np.argsort(self.rows * self.support.shape[1] + self.labels)
            order = order[self._model._varies[self.labels[order]]]
            rows, labels = self.rows[order], self.labels[order]
            score = self.support[rows, labels]
            if draw.share < 1:
                n_listed = max(1, round(draw.share * len(rows)))
                least = np.sort(np.argsort(score, kind="stable")[:n_listed])
                rows, labels, score = rows[least], labels[least], score[least]
        if self.review is not None:
            earlier = (self.review.numbers > 0) & (self.review.numbers < draw.number)
            cells = self.review.rows[earlier] * self.support.shape[1] + self.review.labels[earlier]
            is_new = ~np.isin(rows * self.support.shape[1] + labels, cells)
            rows, labels, score = rows[is_new], labels[is_new], score[is_new]
        return rows, labels, score

    def _drawn(self, draw: Draw) -> _Drawn:
        """Return the population of a draw with its verdicts; raise if the reviewed labels are not from it."""
        known: dict[Draw, _Drawn] = self.__dict__.setdefault("_known_draws", {})
        if draw not in known:
            known[draw] = self._find_drawn(draw)
        return known[draw]

    def _find_drawn(self, draw: Draw) -> _Drawn:
        assert self.review is not None
        rows, labels, score = self._population(draw)
        review = self.review.take(np.flatnonzero(self.review.numbers == draw.number))
        if self.which == "wrong":  # labels that do not vary were never drawn
            review = review.take(np.flatnonzero(self._model._varies[review.labels]))
        width = self.support.shape[1]
        positions = positions_in(review.rows * width + review.labels, rows * width + labels)
        if (positions < 0).any():
            raise ValueError(
                f"The reviewed labels of draw {draw.id} are not all in the list that they were drawn from. Use the "
                "same data and the same options as for the draw."
            )
        if is_unlikely_random(score, positions):
            raise ValueError(
                f"The reviewed labels of draw {draw.id} are not a random draw: their support differs from that of the "
                "others. Review all labels of a random draw."
            )
        return _Drawn(rows, labels, score, positions, review)

    def _correctable(self, alpha: float) -> Correction:
        _check_open_interval(alpha, "alpha", 0.1)
        drawn = self._drawn(self._needed_draw())
        assert self.review is not None
        score, calibrates = drawn.score, np.arange(len(drawn.positions))
        if self.which == "wrong" and len(calibrates) >= _ENOUGH_TO_SPLIT:
            score, calibrates = self._split_scores(drawn)
        reviewed = drawn.positions[calibrates]
        is_open = np.ones(len(score), dtype=bool)
        is_open[drawn.positions] = False
        is_right = ~drawn.is_error[calibrates]
        chosen, estimate = correctable(score[is_open], score[reviewed], is_right, alpha)
        positions = np.flatnonzero(is_open)[chosen]
        positions = positions[np.argsort(score[positions], kind="stable")]
        # Labels that a person reviewed outside the draw keep their verdicts.
        decided = self.review.rows * self.support.shape[1] + self.review.labels
        cells = drawn.rows[positions] * self.support.shape[1] + drawn.labels[positions]
        positions = positions[~np.isin(cells, decided[self.review.answers != OPEN])]
        return Correction(
            drawn.rows[positions],
            drawn.labels[positions],
            estimate,
            alpha,
            len(reviewed),
            len(score),
            len(self.complete_draws()),
        )

    def _split_scores(self, drawn: _Drawn) -> tuple[np.ndarray, np.ndarray]:
        """Estimate probabilities from a random half of the reviews; return them and the positions of the other half."""
        candidates = self._model._candidates
        assert candidates is not None  # some label varies
        order = np.random.default_rng(0).permutation(len(drawn.positions))
        fitted, calibrates = np.array_split(order, 2)
        fitted = fitted[drawn.answers[fitted] != UNSURE]
        labels = np.cumsum(self._model._varies)[drawn.labels] - 1
        places = candidates.positions(drawn.rows, labels)
        answers = drawn.answers[fitted].astype(float)
        model = fit_reviewed(candidates, places[drawn.positions[fitted]], answers)
        return model.probability(candidates)[places], calibrates

    def _intervals_of_labels(self, draw: Draw) -> dict[str, np.ndarray]:
        """Return the ends of the interval of each label's share of wrong candidates; nan if too few are reviewed."""
        drawn = self._drawn(draw)
        n_labels = len(self.label_names)
        ends = np.full((2, n_labels), np.nan)
        total = np.bincount(drawn.labels, minlength=n_labels)
        reviewed = drawn.labels[drawn.positions]
        for label in np.flatnonzero(np.bincount(reviewed, minlength=n_labels) >= _FEWEST_OF_LABEL):
            of_label = reviewed == label
            n_unsure = int((drawn.answers[of_label] == UNSURE).sum())
            found = exact_interval(
                int(drawn.is_error[of_label].sum()), n_unsure, int(of_label.sum()), int(total[label]), 0.95
            )
            ends[:, label] = found.low, found.high
        return {"low": ends[0], "high": ends[1]}

    def summary(self, n_shown: int = 5) -> str:
        """Return a text summary of a few lines.

        Parameters
        ----------
        n_shown : int, default=5
            Number of unreviewed candidates to list.
        """
        measure, first = self._first(n_shown)
        return "\n".join(
            [
                f"{self.n_labels:,} {self._kind} in {self.support.shape[0]:,} rows. Review first:",
                *(
                    f"  row {one_line(row)}, label {one_line(label)}: {measure} {value}"
                    for row, label, value in first
                ),
                self.caveat(_ADVICE),
            ]
        )

    def caveat(self, advice: str = "") -> str:
        """Return the note below a list of candidates, ending with `advice` on how to review some."""
        fraction = None if self.which == "missing" else self.share_wrong
        if fraction is not None:
            return f"About {fraction:.0%} of all labels are wrong, estimated from {self.n_checked} reviewed labels."
        if self.which == "missing":
            return (
                "This is a review order. Most absent labels are rightly absent, and a label that annotators never use "
                f"cannot be found. {advice.replace('FILE', 'FILE --which missing')}"
            ).strip()
        basis = f" based on {self.n_checked} reviewed labels" if self.n_checked else ""
        return (
            f"This is a review order{basis}, not a probability. It cannot find systematic errors, where wrong labels "
            f"follow from the features just as right ones do. {advice}"
        ).strip()

    @property
    def _kind(self) -> str:
        return "candidate labels" if self.which == "wrong" else "absent labels"

    def _first(self, n_shown: int) -> tuple[str, list[tuple[Hashable, str, str]]]:
        """Return "rank" or "probability", and row, label and that value of the first unreviewed candidates."""
        table = self.to_frame().iloc[self.unchecked[:n_shown]]
        if self.shown_probability is None:
            measure, values = "rank", table["rank"].map(f"{{:,}} of {self.n_labels:,}".format)
        else:
            measure, values = "probability", table["probability"].map("{:.2f}".format)
        return measure, list(zip(table["row"], table["label"], values, strict=True))

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        measure, first = self._first(_ROWS_IN_NOTEBOOK)
        return html_table(
            f"{self.n_labels} {self._kind}, {(self.answers != OPEN).sum()} reviewed, most likely errors first",
            ("row", "label", measure),
            first,
            self.caveat(_ADVICE),
        )

    def __repr__(self) -> str:
        kind = "candidates" if self.which == "wrong" else "absent labels"
        return f"LabelIssues({self.n_labels} {kind}, {(self.answers != OPEN).sum()} reviewed)"


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Labels that a draw is from, with scores; low ones look like errors. `positions` are those of the review."""

    rows: np.ndarray
    labels: np.ndarray
    score: np.ndarray
    positions: np.ndarray
    review: Review

    @property
    def answers(self) -> np.ndarray:
        return self.review.answers

    @property
    def is_error(self) -> np.ndarray:
        return self.review.is_error

    def interval(self, level: float) -> ErrorInterval:
        """Return the exact interval of the number of errors."""
        n_unsure = int((self.answers == UNSURE).sum())
        return exact_interval(int(self.is_error.sum()), n_unsure, len(self.positions), len(self.score), level)


def find_label_issues(
    X: Any,
    Y: Any,
    *,
    which: str = "wrong",
    kernel: str = "auto",
    use_labels: bool = True,
    each_row_has_truth: bool | str = "auto",
    checked: Any = None,
    row_groups: Any = None,
    label_names: Iterable[str] | None = None,
    row_ids: Iterable[Hashable] | None = None,
) -> LabelIssues:
    """Rank candidate labels that may be wrong, and labels that may be missing.

    Parameters
    ----------
    X : {array-like, dataframe, sparse matrix} of shape (n_samples, n_features)
        Features.
    Y : {array-like, dataframe, sparse matrix} of shape (n_samples, n_labels)
        Candidate labels, 0 or 1, or NaN if unknown. Unknown labels are not listed.
    which : {"wrong", "missing", "both"}, default="wrong"
        Rank candidates that may be wrong, labels that a row may miss, or both.
    kernel : {"auto", "linear", "rbf"}, default="auto"
        Kernel of the regression, as in `LabelSupport`.
    use_labels : bool, default=True
        If True, the other labels of a row contribute to the support, as in `LabelSupport`.
    each_row_has_truth : bool or "auto", default="auto"
        If True, assume that every row has at least one right candidate, as in `LabelSupport`.
    checked : Review, tuple of (rows, labels, answers) or None, default=None
        Reviewed labels. A tuple holds a random draw of candidates: row indices, label indices, and answers (1 for
        right, 0 for wrong, nan for unsure). With at least 50 of them, the result shows probabilities.
    row_groups : array-like of shape (n_samples,) or None, default=None
        Group of every row, as in `LabelSupport.fit`.
    label_names : iterable of str or None, default=None
        Unique label names. The default is the columns of a dataframe `Y`, or ``y0, y1, ...``.
    row_ids : iterable or None, default=None
        Unique row names. The default is the index of a dataframe `X`, or 0, 1, ...

    Returns
    -------
    LabelIssues
        Labels, most likely errors first. Print it for a summary. If `which` is "both", the absent labels are in its
        attribute `missing`.

    See Also
    --------
    draw_candidates : Draw random candidates to review.

    Notes
    -----
    Systematic errors, where wrong labels follow from the features just as right ones do, cannot be found from features
    and candidates alone. Review 50 random candidates to find labels that are wrong more often than others.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve import draw_candidates, find_label_issues
    >>> from labelsieve.datasets import load_digits_attributes
    >>> digits = load_digits_attributes()
    >>> issues = find_label_issues(digits.X, digits.candidates, label_names=digits.label_names)
    >>> worst = issues.rows[:200], issues.labels[:200]
    >>> bool(digits.Y[worst].mean() < 0.05)  # nearly all are wrong
    True
    >>> rows, labels = draw_candidates(digits.candidates, 50)
    >>> checked = rows, labels, digits.Y[rows, labels]  # verdicts of a reviewer
    >>> issues = find_label_issues(digits.X, digits.candidates, checked=checked)
    >>> issues
    LabelIssues(8715 candidates, 50 reviewed)
    """
    reject_lazy("find_label_issues", X, Y)
    if which not in ("wrong", "missing", "both"):
        raise ValueError(f"which must be 'wrong', 'missing' or 'both', got {which!r}.")
    model = LabelSupport(kernel, use_labels, each_row_has_truth).fit(X, Y, checked, row_groups)
    return rank_labels(
        model,
        which=which,
        label_names=model.label_names_in_ if label_names is None else label_names,
        row_ids=_row_ids(X) if row_ids is None else row_ids,
    )


def rank_labels(
    model: LabelSupport,
    *,
    which: str = "wrong",
    label_names: Iterable[Hashable],
    row_ids: Iterable[Hashable],
) -> LabelIssues:
    """Rank the labels of a fitted model; the options are those of `find_label_issues`."""
    n_samples, n_labels = model.support_.shape
    names = tuple(map(str, _check_names(label_names, n_labels, "label_names")))
    ids = _check_names(row_ids, n_samples, "row_ids")

    def ranked(kind: str, missing: LabelIssues | None = None) -> LabelIssues:
        if kind == "missing":
            rows, labels, n_ranked = _most_supported_absent(model)
        else:
            rows, labels = np.nonzero(model.confidence_)  # positive for candidates only
            n_ranked = len(rows)
            if model.probability_ is not None:
                order = np.argsort(model.probability_[rows, labels], kind="stable")
            else:
                # Flagged labels come first, and labels that the features do not predict come last.
                is_last = ~model.is_predicted_[labels]
                is_flagged = (model.confidence_[rows, labels] < 0.5) & ~is_last
                order = np.lexsort((model.support_[rows, labels], is_last, ~is_flagged))
            rows, labels = rows[order], labels[order]
        return LabelIssues(
            support=model.support_,
            confidence=model.confidence_,
            probability=model.probability_,
            n_checked=model.n_checked_,
            rows=rows,
            labels=labels,
            answers=_answers_at(model._reviewed, rows, labels, n_labels),
            label_names=names,
            row_ids=ids,
            which=kind,
            n_labels=n_ranked,
            review=model._reviewed,
            missing=missing,
            _model=model,
        )

    if which == "both":
        return ranked("wrong", ranked("missing"))
    return ranked(which)


def _answers_at(review: Review | None, rows: np.ndarray, labels: np.ndarray, n_labels: int) -> np.ndarray:
    """Return the verdicts on some labels."""
    if review is None:
        return np.full(len(rows), OPEN, dtype=np.int8)
    found = positions_in(rows * n_labels + labels, review.rows * n_labels + review.labels)
    answers: np.ndarray = np.where(found >= 0, review.answers[found], OPEN)
    return answers


def _most_supported_absent(model: LabelSupport) -> tuple[np.ndarray, np.ndarray, int]:
    """Return rows and labels of the absent labels with the most support, best first, and the number of all."""
    support, is_absent = model.support_, model.absent_labels()
    n_samples, n_labels = support.shape
    cells, scores = np.empty(0, dtype=np.intp), np.empty(0)
    for block in batches(n_samples, n_labels):
        absent = np.flatnonzero(is_absent[block])
        cells = np.append(cells, absent + block.start * n_labels)
        supported = support[block].ravel()[absent]
        scores = np.append(scores, np.where(model.is_predicted_[absent % n_labels], supported, -np.inf))
        kept = np.argsort(-scores, kind="stable")[:_MOST_SUGGESTED]
        cells, scores = cells[kept], scores[kept]
    rows, labels = np.divmod(cells, n_labels)
    return rows, labels, int(is_absent.sum())


def draw_candidates(Y: Any, n: int = MIN_REVIEWED, *, random_state: Any = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw random candidates to review.

    Parameters
    ----------
    Y : {array-like, dataframe, sparse matrix} of shape (n_samples, n_labels)
        Candidate labels, 0 or 1, or NaN if unknown. Unknown labels are not drawn.
    n : int, default=50
        Number of candidates to draw. All candidates are returned if there are fewer.
    random_state : int, Generator, RandomState or None, default=0
        Seed. With the same seed, a larger `n` only adds candidates.

    Returns
    -------
    rows, labels : ndarray of shape (n,)
        Row and label indices in random order. Labels that are candidates in every row are never drawn.

    Examples
    --------
    >>> from labelsieve import draw_candidates
    >>> draw_candidates([[1, 0], [1, 1], [0, 1]], 2)
    (array([1, 0]), array([1, 0]))
    """
    check_count(n, "n", minimum=1)
    Y, _ = binarize_tags(Y)
    check_structure(Y, "Y")
    Y, unknown = take_unknown(Y)
    candidates, _ = check_candidates(Y if is_sparse(Y) else np.asarray(Y), unknown)
    rows, labels = candidate_indices(candidates)
    is_informative = varying_labels(candidates)[labels]
    if not is_informative.any():
        raise ValueError(
            "Y must have a label that is a candidate in some rows but not in all, got none. Check that Y holds the "
            "labels."
        )
    rows, labels = rows[is_informative], labels[is_informative]
    drawn = as_generator(random_state).permutation(len(rows))[:n]
    return rows[drawn], labels[drawn]


def _row_ids(X: Any) -> Iterable[Hashable]:
    """Return the index of a dataframe, otherwise row numbers."""
    return X.index.tolist() if hasattr(X, "iloc") else range(np.shape(X)[0])


def _check_names(names: Iterable[Hashable], expected: int, parameter: str) -> tuple[Hashable, ...]:
    """Return the names as a tuple; raise if their number is wrong or one occurs twice."""
    listed = tuple(names)
    if len(listed) != expected:
        raise ValueError(f"{parameter} must have {expected} entries, got {len(listed)}.")
    if len(set(listed)) < expected:
        name, times = Counter(listed).most_common(1)[0]
        raise ValueError(f"{parameter} must be unique, got {name!r} {times} times. Pass unique {parameter}.")
    return listed


def _check_open_interval(value: float, name: str, example: float) -> None:
    """Raise if a value is not between 0 and 1."""
    if not 0 < value < 1:
        raise ValueError(f"{name} must be between 0 and 1, got {value!r}. Use {example}.")


def _with_draw(review: Review | None, draw: Draw, rows: np.ndarray, labels: np.ndarray) -> Review:
    """Return a review with the labels of a new draw. Labels that were reviewed before keep their verdicts."""
    n = len(rows)
    drawn = Review(
        rows,
        labels,
        np.full(n, OPEN, dtype=np.int8),
        np.full(n, draw.which == "missing"),
        np.full(n, draw.number),
        (draw,),
    )
    if review is None:
        return drawn
    width = 1 + max(int(labels.max()), int(review.labels.max(initial=0)))
    drawn.answers[:] = _answers_at(review, rows, labels, width)
    is_repeated = np.isin(review.rows * width + review.labels, rows * width + labels)
    kept = review.take(np.flatnonzero(~is_repeated))
    names = ("rows", "labels", "answers", "is_missing", "numbers")
    joined = {name: np.concatenate([getattr(kept, name), getattr(drawn, name)]) for name in names}
    return Review(**joined, draws=(*review.draws, draw))
