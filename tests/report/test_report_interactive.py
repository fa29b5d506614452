"""What the charts of a page are given to draw."""

import json

import numpy as np
import pytest
from test_report_analysis import PAPER_DATASETS, PAPER_METHODS, noisy, ranked

from labelsieve.report.analysis.paper import paper_values
from labelsieve.report.analysis.run_analysis import analyse
from labelsieve.report.interactive.charts import page_charts
from synthetic_runs import make_summary


def test_a_chart_draws_the_numbers_of_its_run():
    run = make_summary(
        noisy(), references=("no-features",), classifiers=("linear-svm", "ml-knn"), datasets=("one", "two")
    )
    analysis = analyse(run)
    made = page_charts(analysis)
    assert [one["name"] for one in made["series"]] == ["a", "b", "no-features"]
    chart = made["charts"]["curves"]
    assert [choice["options"] for choice in chart["choices"]] == [
        ["Ranking loss ↓", "Average precision ↑"],
        ["one", "two"],
        ["linear-svm", "ml-knn"],
    ]
    assert chart["choices"][0]["better"] == ["lower", "higher"]
    assert len(chart["panels"]) == 2 * 2 * 2
    # Second metric, first data set, second judge; second method.
    row = chart["panels"]["1,0,1"]["rows"][1]
    curve = run.curves["one", "flip 0.2", "b", "ml-knn", "average_precision"]
    assert row["x"] == curve.n_features.tolist()
    np.testing.assert_allclose(row["y"], curve.values, rtol=1e-3)
    np.testing.assert_allclose(row["e"], curve.fold_std, rtol=1e-3)
    # What has no sizes is a level.
    assert chart["panels"]["1,0,1"]["rows"][2]["x"] is None


def test_ranks_are_those_of_the_tables():
    names = ("b", "a", "c")
    analysis = analyse(make_summary(ranked(names), methods=("a", "b", "c"), datasets=("one", "two", "ten")))
    chart = page_charts(analysis)["charts"]["ranks"]
    overall = chart["panels"]["0"]
    assert {place: row["main"] for place, row in overall["rows"].items()} == {1: 1.0, 0: 2.0, 2: 3.0}
    assert overall["items"] == ["Ranking loss ↓", "Average precision ↑"]
    assert chart["panels"]["1"]["rows"][2] == {"main": 3.0, "items": [3.0] * 3}
    assert chart["panels"]["1"]["items"] == ["one", "two", "ten"]
    assert chart["band"] == pytest.approx(analysis.main.nemenyi_cd)


def test_at_first_the_best_and_the_control_are_shown():
    names = tuple("abcdefgh")
    references = ("no-features", "all-features", "sum-f", "sum-mi")
    run = make_summary(
        ranked((*names, *references)), methods=names, references=references, metrics=("ranking_loss",), control="h"
    )  # fmt: skip
    series = page_charts(analyse(run))["series"]
    assert [one["name"] for one in series if one["first"]] == [*"abcdh", *references[:3]]
    assert [one["name"] for one in series if one["control"]] == ["h"]
    assert [one["name"] for one in series if one["reference"]] == list(references)


def test_ours_and_theirs_stand_side_by_side_for_every_judge():
    def value(method, metric, dataset, classifier, **_):
        return paper_values()[metric, dataset, method][0] + 0.5 * (classifier == "other")

    run = make_summary(
        value,
        datasets=PAPER_DATASETS,
        methods=PAPER_METHODS,
        metrics=("ranking_loss",),
        classifiers=("one", "other"),
        n_folds=1,
    )
    panels = page_charts(analyse(run))["charts"]["paper"]["panels"]
    for key, shift in (("0,0", 0), ("0,1", 0.5)):
        row = panels[key]["rows"][3]
        np.testing.assert_allclose(np.array(row["y"]) - row["x"], shift, atol=1e-3)
    assert panels["0,0"]["items"] == list(PAPER_DATASETS)


def test_sweeps_of_one_and_of_two_parameters_are_lines():
    sweeps = {f"m alpha={value:g}": {"alpha": value} for value in (0.1, 1.0)}
    sweeps |= {
        f"m alpha={first:g} beta={second:g}": {"alpha": first, "beta": second}
        for first in (0.1, 1.0)
        for second in (1.0, 10.0)
    }

    def value(method, dataset, **_):
        numbers = [float(part.partition("=")[2]) for part in method.split()[1:]]
        return sum(numbers) / 100 + 0.1 * (dataset == "two")

    run = make_summary(value, methods=(), sweeps=sweeps, metrics=("ranking_loss",))
    charts = page_charts(analyse(run))["charts"]
    single, double = charts["sensitivity"], charts["settings"]
    assert single["panels"]["0,0,0"]["rows"][1] == {"x": [0.1, 1.0], "y": [0.101, 0.11]}
    assert [one["name"] for one in double["series"]] == ["beta = 1", "beta = 10"]
    # Means over two data sets, the second of which has 0.1 more.
    assert double["panels"]["0,0,0"]["rows"][1] == {"x": [0.1, 1.0], "y": [0.151, 0.16]}


def test_gaps_and_hostile_names_are_json():
    run = make_summary(
        noisy(),
        datasets=("one", "\x1b[2J"),
        methods=("a", "</script>\u202e"),
        ablation=("whole", "part"),
        noises=(("flip 0.2", 0.2), ("flip 0.4", 0.4)),
        references=("random-ranking",),
        n_folds=1,  # no deviation over folds
        skip=lambda dataset, method, **_: (dataset, method) == ("one", "a"),
    )
    made = page_charts(analyse(run))
    text = json.dumps(made, allow_nan=False)
    assert "\\u001b" not in text
    assert [one["name"] for one in made["series"]][1] == "</script>\\u202e"
    assert set(made["charts"]) >= {"curves", "noise", "ablation", "costs", "convergence"}
    first = made["charts"]["curves"]["panels"]["0,0,0"]["rows"]
    assert 0 not in first
    assert first[1]["e"] == [None, None]
