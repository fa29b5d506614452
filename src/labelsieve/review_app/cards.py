"""Contents of a card: a row laid out for reading, a label in question, and reasons for and against it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from labelsieve._numerics.candidates import fill_unknown, known_entries
from labelsieve._numerics.sparse import by_columns, dense, entries, is_sparse
from labelsieve._text import printable
from labelsieve.inspection.explanations import ExplainedSupport
from labelsieve.io import Dataset
from labelsieve.io.dataset import show_value, shown_cell

#: Endings of images that browsers show, and their types. SVG is not among them: it can contain scripts.
IMAGE_TYPES = {
    ".avif": "image/avif",
    ".bmp": "image/bmp",
    ".gif": "image/gif",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
}
#: Texts from this length on get a paragraph of their own.
_LONG_TEXT = 80
#: Number of short values next to each other, and below a button.
_MOST_FACTS, _MOST_FOLDED = 12, 300
_N_REASONS, _N_WORDS = 3, 3
#: Smallest effect on the support that counts as a reason.
_LEAST_EFFECT = 0.01
#: A number is compared with this share of the other rows, those with the closest values.
_SIMILAR = 0.1


class Cards:
    """Builder of the cards of a dataset, as JSON-compatible values.

    `folder` holds the images that may be shown; None shows none.
    """

    def __init__(self, dataset: Dataset, model: ExplainedSupport, folder: Path | None) -> None:
        self._dataset, self._model = dataset, model
        self._folder = None if folder is None else folder.resolve()
        known = known_entries(dataset.candidates)
        self._has = by_columns(fill_unknown(dataset.candidates))
        self._known = None if known is None else by_columns(known)
        self._X = by_columns(dataset.X)
        self._last_row: tuple[int, list[Any]] = -1, []
        self._role = {position: column.role for position, column in enumerate(dataset.columns)}

    def card(self, row: int, label: int, verdict: str) -> dict[str, Any]:
        """Return a card; `verdict` is the one so far, or ""."""
        has = entries(self._has, np.full(self._has.shape[1], row), np.arange(self._has.shape[1])) > 0
        names = self._dataset.label_names
        return {
            "key": f"{row}-{label}",
            "kind": "wrong" if has[label] else "missing",
            "row": self.row_name(row),
            "named": not isinstance(self._dataset.row_ids, range),
            "label": printable(names[label]),
            "verdict": verdict,
            "others": [printable(names[other]) for other in np.flatnonzero(has) if other != label],
            "reasons": self.reasons(row, label),
            **self._content(row, label),
        }

    def row_name(self, row: int) -> str:
        """Return the name of a row, or its number."""
        name = self._dataset.row_ids[row]
        return f"row {row}" if isinstance(self._dataset.row_ids, range) else printable(str(name))

    # Columns

    def _content(self, row: int, label: int) -> dict[str, Any]:
        """Return images, long texts, and short values, those of the most important columns first."""
        images: list[dict[str, Any]] = []
        texts: list[dict[str, str]] = []
        facts: list[list[str]] = []
        for position in self._order_of_columns(row, label):
            column = self._dataset.columns[position]
            is_image = self.image(row, position) is not None
            if not is_image and (column.name == self._dataset.id_column or len(facts) > _MOST_FOLDED):
                continue
            cell = self._cell(row, position)
            if cell is None:
                continue
            name = printable(column.name)
            if is_image:
                images.append({"name": name, "column": position})
            elif len(cell) >= _LONG_TEXT or "\n" in cell:
                texts.append({"name": name, "text": "\n".join(map(printable, cell.split("\n")))})
            else:
                facts.append([name, printable(cell)])
        # Values next to an image are mostly measured from it.
        shown = 0 if images and len(facts) > _MOST_FACTS else _MOST_FACTS
        return {
            "images": images,
            "texts": texts,
            "facts": facts[:shown],
            "more": facts[shown : shown + _MOST_FOLDED],
        }

    def _order_of_columns(self, row: int, label: int) -> Sequence[int]:
        """Return the columns to show: in the order of the table, or the most important first if they are many."""
        dataset = self._dataset
        if not dataset.is_table and is_sparse(dataset.X):  # words of a text, for example
            values = np.abs(dense(dataset.X[[row]]).ravel())
            present = np.flatnonzero(values)
            return present[np.argsort(-values[present], kind="stable")].tolist()
        asked = [position for position in dataset.shown if self._role[position] != "label"]
        left_out = {*asked, *(part for column in dataset.columns for part in column.block[1:])}
        others = (
            position for position, role in self._role.items() if role != "label" and position not in left_out
        )
        shown = [*asked, *others]
        if len(shown) <= _MOST_FACTS:
            return shown
        importance = np.zeros(len(dataset.columns))
        features, weights = self._model.weights_of(label)
        np.maximum.at(importance, dataset.column_of[features], np.abs(weights))
        return sorted(shown, key=lambda position: (position not in asked, -importance[position]))

    def _cell(self, row: int, position: int) -> str | None:
        """Return the text of a cell; None if it is empty."""
        dataset, column = self._dataset, self._dataset.columns[position]
        if dataset.frame is None:
            return dataset.cell(row, position) if column.features else None
        raw = shown_cell(self._raw(row)[position])
        if isinstance(raw, str) and column.role != "number":
            return raw.strip() or None
        shown = dataset.cell(row, position) if column.role in ("number", "vector") else show_value(raw)
        return None if shown == "missing" else shown

    def image(self, row: int, position: int) -> tuple[Path, str] | None:
        """Return the file and type of the image that a cell names; None if it names no image that may be shown.

        Links are followed first, so that the image really is below the folder.
        """
        is_shown = self._dataset.frame is not None and self._role.get(position) not in (None, "label")
        if self._folder is None or not is_shown:
            return None
        name = self._raw(row)[position]
        if not isinstance(name, str) or Path(name).suffix.lower() not in IMAGE_TYPES:
            return None
        try:
            path = (self._folder / name.strip()).resolve(strict=True)
            is_shown = path.is_relative_to(self._folder) and path.is_file()
        except (OSError, ValueError, RuntimeError):  # too long, with a NUL byte, or a loop of links
            return None
        kind = IMAGE_TYPES.get(path.suffix.lower())
        return (path, kind) if is_shown and kind is not None else None

    def _raw(self, row: int) -> list[Any]:
        """Return the cells of a row as written. A card reads many cells of one row."""
        if self._last_row[0] != row:
            assert self._dataset.frame is not None  # only tables have cells
            self._last_row = row, self._dataset.frame.iloc[row].tolist()
        return self._last_row[1]

    # Reasons

    def reasons(self, row: int, label: int) -> dict[str, list[dict[str, Any]]]:
        """Return the strongest reasons for and against a label, with counts of other rows."""
        features, effects, of_labels = self._model.effects_on(row, label)
        own_column = self._dataset.column_of[features]
        total = np.bincount(own_column, effects, len(self._dataset.columns))
        truth = dense(self._has[:, [label]]).ravel() > 0
        others = np.ones(len(truth), dtype=bool)
        if self._known is not None:
            others = dense(self._known[:, [label]]).ravel() > 0
        others[row] = False
        base = truth[others].mean() if others.any() else 0.0
        found: dict[str, list[dict[str, Any]]] = {}
        for side, sign in (("for", 1), ("against", -1)):
            listed = [(sign * total[column], column, None) for column in np.argsort(-sign * total)[:8]]
            listed += [(sign * of_labels[other], None, other) for other in np.argsort(-sign * of_labels)[:3]]
            reasons: list[dict[str, Any]] = []
            for effect, column, other in sorted(listed, key=lambda entry: -entry[0]):
                if effect < _LEAST_EFFECT or len(reasons) == _N_REASONS:
                    break
                if other is not None:
                    reason = self._label_reason(row, int(other))
                else:
                    own = own_column == column
                    reason = self._column_reason(row, int(column), features[own], sign * effects[own])
                if reason is None:
                    continue
                text, words, group, rows = reason
                name = None if column is None else printable(self._dataset.columns[int(column)].name)
                rows &= others
                n, k = int(rows.sum()), int((truth & rows).sum())
                detail = ""
                if n and sign * (k / n - base) > 0:
                    has = "have" if sign > 0 else "do not have"
                    detail = (
                        f"{k if sign > 0 else n - k} of {n} other rows with {group} {has} {self._name(label)}"
                    )
                reasons.append({"text": text, "column": name, "words": words, "detail": detail})
            found[side] = reasons
        return found

    def _name(self, label: int) -> str:
        return printable(self._dataset.label_names[label])

    def _label_reason(self, row: int, other: int) -> tuple[str, list[str], str, np.ndarray]:
        """Return a reason by another label: text, no words, name of the group, and rows of the group."""
        has = dense(self._has[:, [other]]).ravel() > 0
        name = self._name(other)
        if has[row]:
            return f"also has {name}", [], name, has
        return f"does not have {name}", [], f"no {name}", ~has

    def _column_reason(
        self, row: int, position: int, features: np.ndarray, effects: np.ndarray
    ) -> tuple[str, list[str], str, np.ndarray] | None:
        """Return a reason by a column: text, words in the row, name of the group, and rows of the group."""
        column = self._dataset.columns[position]
        name, role = printable(column.name), column.role
        values = dense(self._X[:, features])
        if role == "text":
            present = [at for at in np.argsort(-effects) if effects[at] > 0 and values[row, at] > 0]
            if not present:
                return None
            prefix = f"{column.name} contains "
            chosen = present[:_N_WORDS]
            words = [
                printable(self._dataset.feature_names[features[at]].removeprefix(prefix)) for at in chosen
            ]
            group = "this word" if len(words) == 1 else "one of these words"
            rows = np.any(values[:, chosen] > 0, axis=1)
            return f"{name} contains {', '.join(words)}", words, group, rows
        shown = self._cell(row, position)
        text = f"{name} is missing" if shown is None else f"{name} = {printable(shown)}"
        is_number = role in ("number", "date") and len(np.unique(values[:, effects.argmax()])) > _MOST_FACTS
        if not is_number:
            return text, [], "this value", np.all(values == values[row], axis=1)
        distance = np.abs(values[:, effects.argmax()] - values[row, effects.argmax()])
        n_similar = max(1, round(_SIMILAR * len(distance)))
        return text, [], "similar values", distance <= np.partition(distance, n_similar)[n_similar]
