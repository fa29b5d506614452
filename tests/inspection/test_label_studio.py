"""Tests of tasks for Label Studio and of its export."""

import json

import numpy as np
import pytest

from conftest import run
from labelsieve import find_label_issues
from labelsieve.inspection.label_studio import write_tasks
from labelsieve.inspection.review import issues_to_csv, issues_to_frame, n_verdicts, read_review
from labelsieve.io import Dataset, DatasetError, read, write

NAMES = ("a b", "=1+1", "naïve 東京")


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3)).round(2)
    Y = (X + 0.3 * rng.normal(size=X.shape) > 0.2).astype(int)
    names = [f"row <{k}>" for k in range(80)]
    return Dataset(X, Y_candidates=Y, label_names=NAMES, row_ids=names, id_column="name")


def exported(tasks, choose, **more):
    """The export of Label Studio after a person gave verdicts; `choose` maps the data of a task to a verdict."""
    found = []
    for number, task in enumerate(tasks, start=1):
        verdict = choose(task["data"])
        result = [
            {
                "id": "x1",
                "from_name": "comment",
                "to_name": "question",
                "type": "textarea",
                "value": {"text": ["?"]},
            }
        ]
        if verdict:
            choices = {"choices": [verdict]}
            result += [{"id": "x2", "from_name": "verdict", "to_name": "question", "type": "choices",
                        "origin": "manual", "value": choices}]  # fmt: skip
        found.append(
            {
                "id": number,
                "data": task["data"],
                "annotations": [
                    {"id": number, "completed_by": 1, "was_cancelled": False, "result": result, **more}
                ],
                "predictions": task.get("predictions", []),
                "total_annotations": 1,
            }
        )
    return found


def test_tasks_ask_about_one_label_each_and_larger_scores_look_more_like_errors(data):
    issues = find_label_issues(data.X, data.candidates, which="both", label_names=NAMES)
    tasks = json.loads(write_tasks(issues_to_frame(issues, data), data, issues))
    wrong = [task for task in tasks if task["data"]["issue"] == "wrong"]
    missing = [task for task in tasks if task["data"]["issue"] == "missing"]
    assert len(wrong) == data.candidates.sum()
    assert len(missing) == data.candidates.size - data.candidates.sum()
    for task, row, label in zip(wrong, issues.rows, issues.labels, strict=True):
        assert task["data"]["sample"] == row
        assert task["data"]["question"] == f"Is {NAMES[label]} right for row <{row}>?"
        assert f"x0: {data.X[row, 0]:.3g}" in task["data"]["columns"]
        (prediction,) = task["predictions"]
        assert prediction["score"] == pytest.approx(1 - issues.confidence[row, label], abs=1e-4)
        (result,) = prediction["result"]
        assert (result["from_name"], result["to_name"], result["type"]) == ("verdict", "question", "choices")
        assert result["value"]["choices"] == ["wrong" if prediction["score"] >= 0.5 else "right"]
    scores = [task["predictions"][0]["score"] for task in missing]
    assert scores == sorted(scores, reverse=True)
    assert missing[0]["predictions"][0]["result"][0]["value"]["choices"] == ["right"]
    assert missing[0]["data"]["question"].startswith("Does row <")


def test_verdicts_come_back(data, tmp_path):
    issues = find_label_issues(data.X, data.candidates, which="both", label_names=NAMES)
    tasks = json.loads(write_tasks(issues_to_frame(issues, data), data, issues))
    verdicts = ("right", "wrong", "unsure", "")
    path = tmp_path / "export.json"
    path.write_text(json.dumps(exported(tasks, lambda task: verdicts[task["sample"] % 4])))
    review = read_review(path, data)
    codes = np.array([1, 0, 2, -1])
    np.testing.assert_array_equal(review.answers, codes[review.rows % 4])
    assert len(review.rows) == data.candidates.size
    assert n_verdicts(path) == (review.answers >= 0).sum()
    # The next tasks keep them.
    checked = find_label_issues(data.X, data.candidates, checked=review, label_names=NAMES)
    again = tmp_path / "again.json"
    again.write_text(write_tasks(issues_to_frame(checked, data), data, checked))
    table = tmp_path / "again.csv"
    table.write_text(issues_to_csv(checked, data))
    for name in ("rows", "labels", "answers", "is_missing", "numbers"):
        np.testing.assert_array_equal(
            getattr(read_review(again, data), name), getattr(read_review(table, data), name)
        )


def test_the_last_annotation_that_was_not_cancelled_counts(data, tmp_path):
    issues = find_label_issues(data.X, data.candidates, label_names=NAMES)
    (task,) = json.loads(write_tasks(issues_to_frame(issues, data).head(1), data, issues))
    first, second, skipped = (
        exported([task], lambda _, verdict=verdict: verdict, was_cancelled=verdict == "unsure")[0][
            "annotations"
        ][0]
        for verdict in ("right", "wrong", "unsure")
    )
    path = tmp_path / "export.json"
    path.write_text(json.dumps([{**task, "annotations": [first, second, skipped]}]))
    assert read_review(path, data).answers.tolist() == [0]


@pytest.mark.parametrize(
    "content",
    [
        "{}", "[1]", "[{}]", "not json", '[{"data": 5}]', '[{"data": {}, "annotations": [{"result": 1}]}]',
        '[{"data": {"sample": 0, "label": "purple", "issue": "wrong"}}]',
        '[{"data": {"sample": 9999, "label": "a b", "issue": "wrong"}}]',
    ],
)  # fmt: skip
def test_other_exports_are_one_error(data, tmp_path, content):
    path = tmp_path / "export.json"
    path.write_text(content)
    with pytest.raises(DatasetError, match=r"export\.json"):
        read_review(path, data)


def test_the_whole_way_from_the_command_line(data, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write(data, tmp_path / "data.csv", row_names=("name", list(data.row_ids)))
    options = ["data.csv", "--id", "name"]
    assert run(capsys, "issues", *options, "--draw", "50", "--format", "label-studio", "-o", "t.json")[0] == 0
    tasks = json.loads((tmp_path / "t.json").read_text())
    assert len(tasks) == 50
    assert all("predictions" not in task for task in tasks)  # they would sway the verdicts
    (tmp_path / "export.json").write_text(json.dumps(exported(tasks, lambda task: "wrong")))
    code, out, _ = run(capsys, "issues", *options, "--checked", "export.json")
    assert code == 0
    assert "50 reviewed at random, 50 wrong" in " ".join(out.split())
    assert run(capsys, "apply-review", *options, "export.json", "-o", "clean.csv")[0] == 0
    before, after = (read(tmp_path / name, id="name").candidates.sum() for name in ("data.csv", "clean.csv"))
    assert before - after == 50
    code, _, err = run(capsys, "issues", *options, "--format", "label-studio", "-o", "t.csv")
    assert code == 2
    assert ".json" in err
