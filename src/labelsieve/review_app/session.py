"""State of a review: queues, verdicts, undo, live order, and answers with guarantees."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from labelsieve._numerics.sparse import dense
from labelsieve._text import printable
from labelsieve.inspection import wording
from labelsieve.inspection._reviews import OPEN, RIGHT, UNSURE, WRONG, Draw, Review
from labelsieve.inspection.cleaning import CleanedCopy, write_cleaned
from labelsieve.inspection.explanations import ExplainedSupport
from labelsieve.inspection.guarantees import Correction
from labelsieve.inspection.label_issues import (
    MIN_REVIEWED,
    VERDICTS,
    LabelIssues,
    draw_candidates,
    rank_labels,
)
from labelsieve.io import Dataset, DatasetError
from labelsieve.review_app.cards import Cards
from labelsieve.review_app.journal import Journal
from labelsieve.review_app.live_order import LiveOrder

QUEUES = {
    "draw": "Random draw",
    "suspicious": "Most suspicious",
    "missing": "Missing labels",
    "label": "One label",
}
#: Bound on the share of right labels among those removed without a verdict.
ALPHA = 0.1
#: The second draw is from this share of the candidates.
LEAST_SUPPORTED = 0.2
#: Number of labels in the grid.
GRID_SIZE = 12
#: Rows closer than this share of the mean distance of two rows are kept apart, among this number of cards.
_NEAR, _KEPT_APART = 0.05, 4
_ANSWERS = {word: code for code, word in VERDICTS.items()}
_N_PREVIEWED = 100


class OutOfDateError(Exception):
    """A verdict from a page that does not show the current state."""


@dataclass(frozen=True)
class Request:
    """State of a page: a queue, the label of the queue "label", and cards to skip.

    `card` is the key of a card to show instead of the next one. `grid` holds the keys of the cards in the grid; it is
    empty for a new grid, and None for single cards.
    """

    queue: str = "draw"
    label: int = 0
    skipped: tuple[str, ...] = ()
    card: str | None = None
    grid: tuple[str, ...] | None = None


@dataclass(frozen=True)
class _Promises:
    """Result of the complete draws with some verdicts."""

    answers: bytes
    issues: LabelIssues
    correction: Correction | None


class ReviewSession:
    """A review of a dataset that is saved to a file.

    Parameters
    ----------
    dataset : Dataset
        Table with labels.
    file : Path
        Review file. It is continued if it exists.
    copy : Path
        File for the cleaned copy.
    options : dict
        Parameters of `LabelSupport`.
    n_drawn : int, default=50
        Number of labels in the first draw.
    random_state : int, default=0
        Seed of the draws.
    checked : Review or None, default=None
        Verdicts and draws to start a new file with.
    images : Path or None, default=None
        Folder of the images that cells name.
    arguments : sequence of str or None, default=None
        Command-line arguments that name the data, and those that set the options; None if there are none.
    progress : callable or None, default=None
        Function of a text that says what is being computed.
    """

    def __init__(
        self,
        dataset: Dataset,
        file: Path,
        copy: Path,
        *,
        options: dict[str, Any] | None = None,
        n_drawn: int = MIN_REVIEWED,
        random_state: int = 0,
        checked: Review | None = None,
        images: Path | None = None,
        arguments: tuple[Sequence[str], Sequence[str]] | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        say = progress or (lambda activity: None)
        self.dataset, self.copy = dataset, copy
        self._arguments, self._seed = arguments, random_state
        self._lock = RLock()
        self._journal = Journal(file, dataset)
        try:
            if self._journal.review is not None and checked is not None:
                raise DatasetError(f"{file}: exists already, so --checked cannot start it. Omit --checked.")
            review = self._journal.review or checked
            self.n_resumed = 0 if review is None else int((review.answers != OPEN).sum())
            if review is None or not any(draw.which == "wrong" for draw in review.draws):
                say("drawing labels")
                review = self._first_draw(review, n_drawn)
            say("checking the labels")
            self._model = ExplainedSupport(**(options or {})).fit(
                dataset.X, dataset.candidates, row_groups=dataset.groups
            )
            if self._model.kernel_ is None:
                raise DatasetError("a review needs a label that some but not all rows have, got none.")
            row_ids = range(dataset.X.shape[0])
            self._issues = rank_labels(
                self._model, which="both", label_names=dataset.label_names, row_ids=row_ids
            )
            assert self._issues.missing is not None  # `which` is "both"
            say("preparing the cards")
            self._orders = {
                "suspicious": LiveOrder(self._model, self._issues),
                "missing": LiveOrder(self._model, self._issues.missing),
            }
            self._cards = Cards(dataset, self._model, images)
            self._review = review
            self._width = len(dataset.label_names)
            self._place = {cell: place for place, cell in enumerate(self._cells(review).tolist())}
            if self._journal.review is None:
                self._journal.append(review)
        except BaseException:
            self._journal.close()
            raise
        #: Changes by a person, each a list of cells with their verdicts before it. Undo takes back the last one.
        self._history = [
            [(row * self._width + label, before)] for row, label, before in self._journal.changes
        ]
        self._shown: list[int] = []  # rows of the last cards with a verdict
        self.version = 0
        self.written: CleanedCopy | None = None
        self._promised: _Promises | None = None
        self._removable: tuple[int, Correction | None] = (-1, None)  # of a version
        self._cards.card(*self._parse(self._key(0)), "")  # computes the weights
        self._refresh()

    @property
    def file(self) -> Path:
        """Review file."""
        return self._journal.path

    @property
    def review(self) -> Review:
        """Labels reviewed so far, and those drawn."""
        with self._lock:
            return replace(self._review, answers=self._review.answers.copy())

    def close(self) -> None:
        """Release the review file."""
        with self._lock:
            self._journal.close()

    def image(self, row: int, column: int) -> tuple[Path, str] | None:
        """Return the file and type of the image that a cell names, if it may be shown."""
        return self._cards.image(row, column) if 0 <= row < self.dataset.X.shape[0] else None

    # Verdicts

    def judge(self, cards: Sequence[tuple[str, str]], verdict: str) -> None:
        """Save a verdict on some cards, given as key and the verdict that the page shows for it.

        Raises `OutOfDateError` if a card has another verdict by now.
        """
        with self._lock:
            cells = []
            for key, seen in cards:
                row, label = self._parse(key)
                cell = row * self._width + label
                if self._answer(cell) != _ANSWERS[seen]:
                    raise OutOfDateError
                if not any(cell in order for order in self._orders.values()) and cell not in self._place:
                    raise ValueError(f"no card {key!r}")
                cells.append(cell)
            if len(set(cells)) < len(cells):
                raise ValueError("cards must be different")
            before = [(cell, self._answer(cell)) for cell in cells]
            self._save([(cell, _ANSWERS[verdict]) for cell in cells])
            self._history.append(before)
            self._shown = [*self._shown, *(cell // self._width for cell in cells)][-_KEPT_APART:]

    def undo(self, number: int) -> str:
        """Take back change `number`, which must be the last one; return the key of its card."""
        with self._lock:
            if number != len(self._history) or not self._history:
                raise OutOfDateError
            self._save(self._history[-1])
            cell = self._history.pop()[0][0]
            self._shown = self._shown[:-1]
            return self._key_of(cell)

    def draw_next(self) -> None:
        """Draw labels from the least supported fifth, once the last draw is complete."""
        with self._lock:
            if not self._can_draw():
                raise OutOfDateError
            issues = replace(self._issues, review=self._review)
            review = issues.draw(MIN_REVIEWED, least_supported=LEAST_SUPPORTED, random_state=self._seed)
            new = review.take(np.flatnonzero(review.numbers == review.draws[-1].number))
            self._journal.append(replace(new, draws=review.draws[-1:]))
            # The order of the labels does not matter: later draws leave out the labels of earlier ones.
            self._review = review
            self._place = {cell: place for place, cell in enumerate(self._cells(review).tolist())}
            self._refresh()

    def write(self, *, with_removals: bool) -> CleanedCopy:
        """Write the cleaned copy; `with_removals` accepts the removals that are bound by the guarantee."""
        with self._lock:
            review, correction = self._review, self._removals()
            if with_removals and correction is not None and len(correction):
                n = len(correction)
                added = Review(
                    correction.rows,
                    correction.labels,
                    np.full(n, WRONG, dtype=np.int8),
                    np.zeros(n, dtype=bool),
                    np.zeros(n, dtype=np.intp),
                    (),
                )
                review = self._joined(review, added)
            self.written = write_cleaned(self.dataset, review, self.copy)
            self.version += 1
            return self.written

    # Content of a page

    def view(self, request: Request) -> dict[str, Any]:
        """Return the state that a page shows, as JSON-compatible values."""
        with self._lock:
            queue = request.queue if request.queue in QUEUES else "draw"
            label = min(max(request.label, 0), self._width - 1)
            found: dict[str, Any] = {
                "version": self.version,
                "queue": queue,
                "label": label,
                "queues": [
                    {
                        "id": name,
                        "name": title,
                        "left": self._n_left(name, label),
                        "flagged": self._orders[name].n_flagged() if name in self._orders else None,
                        "about": self._about(name),
                    }
                    for name, title in QUEUES.items()
                ],
                "draw": self._progress(),
                "counts": self._counts(),
                "answers": self._answers(),
                "last": self._last(),
                "finish": self._finish(),
                "card": None,
                "grid": None,
            }
            if queue == "label" and request.grid is not None:
                places = self._orders["suspicious"].first(label, GRID_SIZE)
                new = [self._key_of(self._cell_at("suspicious", place)) for place in places]
                found["grid"] = [self._card(key) for key in (request.grid or new)[:GRID_SIZE]]
            elif request.card is not None:
                found["card"] = self._card(request.card)
            else:
                cell = self._next(queue, label, set(request.skipped))
                found["card"] = None if cell is None else self._card(self._key_of(cell))
            return found

    def removals(self) -> list[dict[str, str]]:
        """Return the first labels that could be removed without a verdict."""
        with self._lock:
            found = self._removals()
            if found is None:
                return []
            return [
                {
                    "row": self._cards.row_name(int(row)),
                    "label": printable(self.dataset.label_names[label]),
                    "support": f"{self._issues.support[row, label]:.2f}",
                }
                for row, label in zip(found.rows[:_N_PREVIEWED], found.labels[:_N_PREVIEWED], strict=True)
            ]

    def labels(self) -> list[dict[str, Any]]:
        """Return the labels with candidates that vary, for the choice of one."""
        order = self._orders["suspicious"]
        total = np.bincount(order.labels, minlength=self._width)
        return [
            {"label": label, "name": printable(name), "n": int(total[label])}
            for label, name in enumerate(self.dataset.label_names)
            if total[label]
        ]

    def commands(self, *, with_removals: bool) -> list[str]:
        """Return the shell commands that write the cleaned copy."""
        if self._arguments is None:
            return []
        data, options = self._arguments
        file, commands = str(self.file), []
        apply = ["apply-review", *data]
        if with_removals:
            every = str(self.file.with_name(f"{self.file.stem}.all.csv"))
            which = ["--which", "both"] if self._review.is_missing.any() else []
            bound = ["--checked", file, "--remove-at", f"{ALPHA:.0%}", "-o", every]
            commands.append(["issues", *data, *options, *which, *bound])
            file, apply = every, [*apply, "--proposed"]
        # The review file is the last argument without a name.
        n_files = next((place for place, text in enumerate(data) if text.startswith("-")), len(data))
        apply.insert(1 + n_files, file)
        commands.append([*apply, "-o", str(self.copy)])
        return [shlex.join(["labelsieve", *command]) for command in commands]

    # Details

    def _first_draw(self, review: Review | None, n: int) -> Review:
        try:
            rows, labels = draw_candidates(self.dataset.candidates, n, random_state=self._seed)
        except ValueError as error:
            raise DatasetError(f"{self.dataset.source or self.dataset.name}: {error}") from None
        drawn = Review.of_draw(rows, labels)
        if review is None:
            return drawn
        number = 1 + max((draw.number for draw in review.draws), default=0)
        numbers = np.full(len(rows), number)
        return self._joined(replace(drawn, numbers=numbers, draws=(Draw(number, len(rows)),)), review)

    def _joined(self, first: Review, second: Review) -> Review:
        """Return the labels of two reviews; those of the second that the first has too give it their verdicts."""
        width = len(self.dataset.label_names)
        cells = first.rows * width + first.labels
        other = second.rows * width + second.labels
        answers = first.answers.copy()
        place = {cell: at for at, cell in enumerate(cells.tolist())}
        for at, cell in enumerate(other.tolist()):
            if cell in place and second.answers[at] != OPEN:
                answers[place[cell]] = second.answers[at]
        rest = second.take(np.flatnonzero(~np.isin(other, cells)))
        names = ("rows", "labels", "is_missing", "numbers")
        joined = {name: np.concatenate([getattr(first, name), getattr(rest, name)]) for name in names}
        return Review(
            answers=np.concatenate([answers, rest.answers]), draws=(*first.draws, *second.draws), **joined
        )

    def _cells(self, review: Review) -> np.ndarray:
        cells: np.ndarray = review.rows * len(self.dataset.label_names) + review.labels
        return cells

    def _key(self, place: int) -> str:
        return f"{self._review.rows[place]}-{self._review.labels[place]}"

    def _key_of(self, cell: int) -> str:
        return "{}-{}".format(*divmod(cell, self._width))

    def _parse(self, key: str) -> tuple[int, int]:
        row, _, label = key.partition("-")
        n_rows = self.dataset.X.shape[0]
        is_valid = row.isdecimal() and label.isdecimal() and len(key) < 30
        if not is_valid or int(row) >= n_rows or int(label) >= len(self.dataset.label_names):
            raise ValueError(f"no card {key[:30]!r}")
        return int(row), int(label)

    def _cell_at(self, queue: str, place: int) -> int:
        order = self._orders[queue]
        return int(order.rows[place]) * self._width + int(order.labels[place])

    def _answer(self, cell: int) -> int:
        place = self._place.get(cell)
        return OPEN if place is None else int(self._review.answers[place])

    def _card(self, key: str) -> dict[str, Any]:
        row, label = self._parse(key)
        return self._cards.card(row, label, VERDICTS[self._answer(row * self._width + label)])

    def _save(self, answers: Sequence[tuple[int, int]]) -> None:
        """Write verdicts to the file, then change the state."""
        new = [cell for cell, _ in answers if cell not in self._place]
        review = self._review
        if new:
            rows, labels = np.divmod(np.array(new), self._width)
            is_missing = np.array([cell in self._orders["missing"] for cell in new])
            added = Review(
                rows,
                labels,
                np.full(len(new), OPEN, dtype=np.int8),
                is_missing,
                np.zeros(len(new), dtype=np.intp),
                (),
            )
            review = self._joined(review, added)
        place = {**self._place, **{cell: len(self._place) + at for at, cell in enumerate(new)}}
        places = np.array([place[cell] for cell, _ in answers])
        given = review.answers.copy()
        given[places] = [answer for _, answer in answers]
        review = replace(review, answers=given)
        self._journal.append(review.take(places))
        self._review, self._place = review, place
        self._refresh()

    def _refresh(self) -> None:
        """Update the queues after a change."""
        self.version += 1
        self.written = None
        open_draws = [draw.number for draw in self._draws() if not self._review.is_complete(draw)]
        # Labels of an unfinished draw are asked only there, where the reasons are folded.
        is_taken = (self._review.answers != OPEN) | np.isin(self._review.numbers, open_draws)
        cells = self._cells(self._review)
        for order in self._orders.values():
            order.is_open[:] = True
            found = [order.position(cell) for cell in cells[is_taken].tolist()]
            order.is_open[[place for place in found if place is not None]] = False
            order.update(self._review)

    # Queues

    def _draws(self) -> list[Draw]:
        return [draw for draw in self._review.draws if draw.which == "wrong"]

    def _draw(self) -> Draw:
        """Return the draw of the queue: the first that is not complete, or the last one."""
        draws = self._draws()
        return next((draw for draw in draws if not self._review.is_complete(draw)), draws[-1])

    def _drawn_open(self) -> np.ndarray:
        is_open = (self._review.answers == OPEN) & (self._review.numbers == self._draw().number)
        return self._cells(self._review)[is_open]

    def _n_left(self, queue: str, label: int) -> int:
        if queue == "draw":
            return len(self._drawn_open())
        if queue == "label":
            return self._orders["suspicious"].n_open(label)
        return self._orders[queue].n_open()

    def _next(self, queue: str, label: int, skipped: set[str]) -> int | None:
        """Return the first card of a queue that is not skipped and not like the last ones."""
        if queue == "draw":
            cells = self._drawn_open().tolist()
        else:
            name = "missing" if queue == "missing" else "suspicious"
            order = self._orders[name]
            places = order.first(label if queue == "label" else None)
            cells = [self._cell_at(name, place) for place in places]
        waiting = [cell for cell in cells if self._key_of(cell) not in skipped] or cells
        if not waiting:
            return None
        head = waiting[:GRID_SIZE]
        is_near = self._is_near(np.array([cell // self._width for cell in head]))
        return int(head[int(is_near.argmin())])

    def _is_near(self, rows: np.ndarray) -> np.ndarray:
        """Return a mask of the rows that are like one of the last rows with a verdict."""
        if not self._shown:
            return np.zeros(len(rows), dtype=bool)
        scaling = self._model.linear_.features(self._model.asked_).scaling
        used = self._model._used_features
        Z, last = (
            dense(scaling.apply(self.dataset.X[part][:, used])) for part in (rows, np.array(self._shown))
        )
        distance = ((Z[:, None] - last) ** 2).sum(axis=2).min(axis=1)
        # Standardised rows are 2 d apart on average.
        is_near: np.ndarray = (distance < _NEAR * 2 * Z.shape[1]) | np.isin(rows, self._shown)
        return is_near

    def _about(self, queue: str) -> str:
        if queue == "draw":
            draw = self._draw()
            source = "all labels" if draw.is_of_all else f"the least supported {draw.share:.0%}"
            return (
                f"{draw.size} labels drawn at random from {source}. They tell how many labels are wrong, and which can "
                "be removed without a verdict."
            )
        return {
            "suspicious": "Finds wrong labels fastest. It does not tell how many there are.",
            "missing": "Rows without a label that the other rows predict.",
            "label": "All rows with one label, most suspicious first.",
        }[queue]

    def _progress(self) -> dict[str, Any]:
        draw = self._draw()
        return {
            "number": draw.number,
            "size": draw.size,
            "done": self._review.n_answered(draw),
            "complete": self._review.is_complete(draw),
            "can_draw": self._can_draw(),
        }

    def _can_draw(self) -> bool:
        """Return True if another draw would help: the last one is complete, and allows no removal."""
        removals = self._removals()
        return self._review.is_complete(self._draw()) and (removals is None or not len(removals))

    def _counts(self) -> dict[str, int]:
        answers, is_missing = self._review.answers, self._review.is_missing
        candidates = answers[~is_missing]
        return {
            "right": int((candidates == RIGHT).sum()),
            "wrong": int((candidates == WRONG).sum()),
            "unsure": int((candidates == UNSURE).sum()),
            "missing": int((answers[is_missing] == RIGHT).sum()),
            "not_missing": int((answers[is_missing] == WRONG).sum()),
        }

    def _last(self) -> dict[str, Any]:
        if not self._history:
            return {"number": 0, "text": "", "key": None}
        cells = self._history[-1]
        row, label = divmod(cells[0][0], self._width)
        verdict = VERDICTS[self._answer(cells[0][0])] or "no verdict"
        text = f"{verdict.capitalize()}: {printable(self.dataset.label_names[label])}, {self._cards.row_name(row)}"
        if len(cells) > 1:
            text = f"{verdict.capitalize()}: {len(cells)} rows"
        return {"number": len(self._history), "text": text, "key": self._key_of(cells[0][0])}

    # Answers

    def _promises(self) -> _Promises:
        """Return what the complete draws promise; computed again only if a verdict of a draw changed."""
        drawn = np.flatnonzero(self._review.numbers > 0)
        answers = self._review.answers[drawn].tobytes()
        if self._promised is None or self._promised.answers != answers:
            # Verdicts outside draws only take labels off the list, which `_removals` does.
            issues = replace(self._issues, review=self._review.take(drawn))
            correction = None
            if issues.complete_draws():
                with suppress(ValueError):  # too few labels, which the interval says
                    correction = issues.removable(ALPHA)
            self._promised = _Promises(answers, issues, correction)
        return self._promised

    def _removals(self) -> Correction | None:
        """Return the labels that could be removed without a verdict; None without a complete draw."""
        found = self._promises().correction
        if found is None or self._removable[0] == self.version:
            return self._removable[1] if found is not None else None
        decided = self._cells(self._review)[self._review.answers != OPEN]
        kept = np.flatnonzero(~np.isin(found.rows * self._width + found.labels, decided))
        self._removable = self.version, replace(found, rows=found.rows[kept], labels=found.labels[kept])
        return self._removable[1]

    def _answers(self) -> list[str]:
        """Return what the complete draws say about all labels, and how many could be removed, as sentences."""
        issues, removals = self._promises().issues, self._removals()
        if not issues.complete_draws():
            return []
        try:
            sentences = [issues.error_interval().describe("wrong")]
        except ValueError as error:  # too few labels
            sentences = [str(error)]
        if removals is not None and len(removals):
            sentences.append(wording.describe_correction(issues, removals))
        elif removals is not None:
            bound = f"{ALPHA:.0%} ({removals.n_reviewed} random reviews)"
            sentences.append(f"No label can be removed without a verdict at {bound}.")
        return sentences

    def _finish(self) -> dict[str, Any]:
        """Return what the summary needs to write the cleaned copy."""
        removals, written = self._removals(), self.written
        return {
            "copy": str(self.copy),
            "replaces": self.copy.exists(),
            "removable": 0 if removals is None else len(removals),
            "commands": [self.commands(with_removals=value) for value in (False, True)],
            "written": None
            if written is None
            else {"summary": written.summary, "notes": [f"{note}." for note in written.notes]},
        }
