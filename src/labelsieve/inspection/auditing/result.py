"""What an audit found, ready to be shown: sentences, JSON and a page."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

from labelsieve.inspection.auditing.findings import Findings
from labelsieve.inspection.auditing.page import of_audit, render_page
from labelsieve.inspection.auditing.wording import answers, summary
from labelsieve.io.writing import replacing

__all__ = ["Audit"]

#: Height of the page in a notebook.
_NOTEBOOK_HEIGHT = 720


class Audit(Findings):
    """Four answers about one table. `labelsieve.audit` makes it; print it for a summary.

    Attributes
    ----------
    columns, sizes, labels, doubtful : DataFrame
        The columns in order, the size curve, the labels, and the candidates to doubt first with reasons; need pandas.
    n_kept : int
        How many columns to keep: as asked for, else the number with the best precision.
    selected : list of str
        Their names, best first.
    is_no_better_than_chance : bool
        Whether shuffled labels give as much evidence.

    Examples
    --------
    >>> from labelsieve import audit
    >>> from labelsieve.datasets import make_pml
    >>> X, Y = make_pml(n_samples=200, n_features=12, n_informative=3, n_labels=4, random_state=0)
    >>> found = audit(X, Y)
    >>> [answer["question"] for answer in found.to_dict()["answers"]][:2]
    ['Which columns matter?', 'How many to keep?']
    >>> found.is_no_better_than_chance
    False
    """

    def to_dict(self) -> dict[str, Any]:
        """Return all findings as values JSON can hold."""
        n_rows, n_columns, n_labels = self.subject.shape
        return {
            "data": self.subject.name,
            "n_rows": n_rows,
            "n_columns": n_columns,
            "n_features": len(self.subject.feature_names),
            "n_labels": n_labels,
            "n_candidates": self.doubts.issues.n_candidates,
            "answers": [{"question": answer.question, "answer": answer.plain} for answer in answers(self)],
            "chance": {
                "p_value": self.chance.p_value,
                "no_better": self.is_no_better_than_chance,
                "evidence": self.chance.total,
                "n_shuffles": len(self.chance.shuffled),
            },
            "n_kept": self.n_kept,
            "best": self.curve.best,
            "enough": self.curve.enough,
            "size_curve": self.size_records(),
            "n_resamples": self.steadiness.n_resamples,
            "columns": [self.column_record(column) for column in self.ranking.order],
            "labels": self.label_records(),
            "doubtful": list(self.doubt_records()),
            "caveat": self.doubts.issues.caveat(),
            "provenance": dict(self.provenance),
        }

    def to_json(self, path: Any = None) -> str:
        """Return all findings as JSON, and write them to `path` if one is given."""
        text = json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"
        return _written(text, path)

    def to_html(self, path: Any = None) -> str:
        """Return the page, and write it to `path` if one is given; needs jinja2."""
        return _written(render_page(of_audit(self)), path)

    def summary(self) -> str:
        """Say in one screen what was found."""
        return summary(self)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        n_rows, n_columns, n_labels = self.subject.shape
        sizes = f"{n_rows} rows, {n_columns} columns, {n_labels} labels"
        return f"Audit({self.subject.name!r}: {sizes}, keep {self.n_kept})"

    def _repr_html_(self) -> str:
        # In a frame of its own the page keeps its policy, and its styles stay off the notebook.
        return (
            f'<iframe title="labelsieve audit" sandbox="allow-scripts allow-downloads allow-modals" '
            f'style="width: 100%; height: {_NOTEBOOK_HEIGHT}px; border: 0" '
            f'srcdoc="{html.escape(self.to_html())}"></iframe>'
        )


def _written(text: str, path: Any) -> str:
    """Write a text to a file, whole or not at all, if there is one; returns the text."""
    if path is not None:
        with replacing(Path(path)) as stream:
            stream.write(text.encode())
    return text
