"""Tasks for Label Studio, and its JSON export.

Every task asks about one label of one row. Its data hold the columns of a review file, so that draws survive. The
labeling interface needs a text named ``question`` and choices named ``verdict`` with the values right, wrong and
unsure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pandas import DataFrame

from labelsieve import __version__
from labelsieve._text import printable
from labelsieve.inspection.label_issues import LabelIssues
from labelsieve.io.dataset import Dataset
from labelsieve.io.source import Source

_QUESTION, _VERDICT = "question", "verdict"
#: Columns of a review file that are not part of the data of a task.
_LEFT_OUT = (_VERDICT, "rank", "support", "probability")


def write_tasks(table: DataFrame, dataset: Dataset, issues: LabelIssues | None = None) -> str:
    """Return the lines of a review file as tasks in JSON; with `issues`, they have predictions and scores.

    Larger scores look more like errors. They are estimated probabilities of an error if enough labels were reviewed.
    """
    tasks = [_task(record, dataset, issues) for record in table.to_dict("records")]
    return json.dumps(tasks, ensure_ascii=False, indent=1) + "\n"


def _task(record: dict[str, Any], dataset: Dataset, issues: LabelIssues | None) -> dict[str, Any]:
    row, label, is_missing = record["sample"], record["label"], record["issue"] == "missing"
    name = printable(str(dataset.row_ids[row]))
    question = f"Does {name} lack the label {label}?" if is_missing else f"Is {label} right for {name}?"
    cells = [
        f"{printable(column.name)}: {printable(dataset.cell(row, position))}"
        for position, column in enumerate(dataset.columns)
        if column.role not in ("label", "ignored") and (column.features or dataset.is_table)
    ]
    data = {name: value for name, value in record.items() if name not in _LEFT_OUT}
    task: dict[str, Any] = {"data": {_QUESTION: question, "columns": "\n".join(cells), **data}}
    if record[_VERDICT]:
        task["annotations"] = [{"result": [_choice(record[_VERDICT])]}]
    if issues is not None:
        score = _score(issues, row, dataset.label_names.index(label), is_missing=is_missing)
        is_right = (score >= 0.5) == is_missing  # a missing label is right if the row should have it
        task["predictions"] = [
            {
                "model_version": f"labelsieve {__version__}",
                "score": round(score, 4),
                "result": [_choice("right" if is_right else "wrong")],
            }
        ]
    return task


def _score(issues: LabelIssues, row: int, label: int, *, is_missing: bool) -> float:
    """Return a number from 0 to 1 that is larger for labels that look more like errors."""
    if is_missing:
        return min(max(float(issues.support[row, label]), 0.0), 1.0)
    shown = issues.confidence if issues.shown_probability is None else issues.shown_probability
    return 1 - float(shown[row, label])


def _choice(verdict: str) -> dict[str, Any]:
    return {"from_name": _VERDICT, "to_name": _QUESTION, "type": "choices", "value": {"choices": [verdict]}}


def read_tasks(source: Source) -> list[dict[str, str]]:
    """Read a JSON export as lines of a review file. The last annotation of a task that was not cancelled counts."""
    try:
        tasks = json.loads(source.text)
        if not isinstance(tasks, list):
            raise ValueError("expected a list of tasks")
        return [
            {**{name: str(value) for name, value in task["data"].items()}, _VERDICT: _verdict_of(task)}
            for task in tasks
        ]
    except (AttributeError, KeyError, IndexError, RecursionError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise source.error(
            f"must be a JSON export of Label Studio with the tasks of labelsieve issues, got an error ({reason})"
        ) from None


def _verdict_of(task: dict[str, Any]) -> str:
    """Return the verdict of a task, or "" if it has none."""
    given = list(_given(task))
    return str(given[-1]) if given else ""


def _given(task: dict[str, Any]) -> Iterator[str]:
    for annotation in task.get("annotations") or ():
        if annotation.get("was_cancelled"):
            continue
        for result in annotation["result"]:
            if result.get("from_name") == _VERDICT:
                yield result["value"]["choices"][0]
