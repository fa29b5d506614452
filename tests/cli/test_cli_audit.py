"""Tests of `labelsieve audit`."""

import json

import numpy as np
import pandas as pd
import pytest

from labelsieve.cli import main


@pytest.fixture
def table(tmp_path):
    """Tickets with a name, a category that determines two tags, numbers and a missing value."""
    rng = np.random.default_rng(0)
    channel = rng.choice(["mail", "phone", "web"], 150)
    urgency = rng.standard_normal(150)
    tags = [
        ";".join(["call"] * int(c == "phone") + ["form"] * int(c == "web") + ["late"] * int(u > 0.3))
        for c, u in zip(channel, urgency, strict=True)
    ]
    frame = pd.DataFrame(
        {
            "ticket": [f"TCK-{number:03}" for number in range(150)],
            "channel": channel,
            "urgency": urgency.round(3),
            "noise": rng.standard_normal(150).round(3),
            "tags": tags,
        }
    )
    frame.loc[3, "noise"] = None
    frame.loc[7, "tags"] = "call;form;late"
    path = tmp_path / "tickets.csv"
    frame.to_csv(path, index=False)
    return path


def test_the_four_answers_fit_one_screen_and_use_row_names(capsys, table):
    assert main(["audit", str(table), "--labels", "tags"]) == 0
    shown = capsys.readouterr()
    for question in (
        "Which columns matter?",
        "How many should you keep?",
        "How reliable",
        "Which labels look wrong?",
    ):
        assert question in shown.out
    assert "channel" in shown.out
    assert "TCK-007" in shown.out
    assert len(shown.out.splitlines()) <= 48
    assert "Traceback" not in shown.err


def test_json_and_page_have_the_same_findings(capsys, table, tmp_path):
    page = tmp_path / "audit.html"
    assert main(["audit", str(table), "--labels", "tags", "--json", "--html", str(page), "-k", "2"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {column["column"] for column in found["columns"]} == {"channel", "urgency", "noise"}
    assert [column["kept"] for column in found["columns"]] == [True, True, False]
    assert {column["column"] for column in found["columns"][:2]} == {"channel", "urgency"}
    assert "TCK-007" in {candidate["row"] for candidate in found["label_issues"][:5]}
    text = page.read_text("utf-8")
    for answer in found["answers"]:
        assert answer["question"] in text
    assert "SHA-256" in text


def test_verdicts_of_a_review_give_percentages(capsys, table, tmp_path):
    review = tmp_path / "check.csv"
    frame = pd.read_csv(table, keep_default_na=False)
    pairs = [(row, tag) for row, tags in enumerate(frame.tags) for tag in tags.split(";") if tag]
    drawn = np.random.default_rng(0).permutation(len(pairs))[:60]
    rows = [
        {
            "id:ticket": frame.ticket[pairs[i][0]],
            "label": pairs[i][1],
            "verdict": "wrong" if i % 5 == 0 else "right",
            "draw": "1:all",
            "planned": 60,
        }
        for i in drawn
    ]
    pd.DataFrame(rows).to_csv(review, index=False)
    assert main(["audit", str(table), "--labels", "tags", "--checked", str(review), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "share_wrong" in found["labels"][0]
    assert "60 reviewed" in found["answers"][3]["answer"]


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (["--labels", "tags", "-k", "9"], 1, "-k must be an integer from 1 to 3"),
        (["--labels", "tags", "-k", "many"], 2, "'many'"),
        (["--labels", "nothing"], 1, "'nothing'"),
        (["--labels", "tags", "--html", "no/such/folder.html"], 2, "'no/such/folder.html'"),
    ],
)
def test_errors_are_one_line(capsys, table, arguments, code, named):
    assert main(["audit", str(table), *arguments]) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert named in shown.err.strip().splitlines()[-1]


def test_catalogue_datasets_can_be_audited(capsys):
    assert main(["audit", "digits", "--fast", "-k", "5"]) == 0
    assert "You asked for 5" in capsys.readouterr().out
