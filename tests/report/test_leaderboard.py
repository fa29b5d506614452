"""Ranks, tests and duels of several runs on one page."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from conftest import fails, run
from labelsieve.bench import RunError
from labelsieve.report.leaderboard import find, render_leaderboard, studies
from labelsieve.report.statistics import nemenyi_cd
from labelsieve.report.summary_file import merge_summaries, read_summary, write_summary
from synthetic_runs import make_summary, noisy, ranked

BASE = {
    "datasets": ("one", "two", "ten"),
    "noises": (("flip 0.2", 0.2), ("flip 0.4", 0.4)),
    "classifiers": ("linear-svm", "ml-knn"),
}
METHODS = ("a", "b", "evidence", "c")


def part(value=None, **options):
    return make_summary(value or noisy(), **{**BASE, **options})


def saved(summary, path):
    """Write a summary whose last run has the configuration of its experiment."""
    last = replace(summary.facts.runs[-1], configuration=summary.experiment.as_dict())
    write_summary(replace(summary, facts=replace(summary.facts, runs=(last,))), path)
    return str(path)


@pytest.fixture(scope="module")
def pooled():
    """Study of two runs with other methods on the same datasets."""
    parts = [
        ("first", part(methods=("a", "b"), references=("evidence", "all-features"))),
        ("second", part(methods=("evidence", "c"), references=("random-ranking",))),
    ]
    (study,) = studies(parts)
    return study


def test_merged_runs_of_other_methods_equal_one_run_of_all():
    references = ("all-features", "random-ranking")
    whole = part(methods=METHODS, references=references)
    parts = [
        ("first", part(methods=("a", "b"), references=("evidence", *references))),
        ("second", part(methods=("evidence", "c"), references=references)),
    ]
    found = merge_summaries(parts)
    assert [method.name for method in found.experiment.methods] == list(METHODS)
    assert found.references == references
    key = list(found.scores.columns[:5])
    ours, theirs = (one.scores.sort_values(key, ignore_index=True) for one in (found, whole))
    assert ours.equals(theirs)
    for name in ("datasets", "conditions", "usual_noise", "classifiers", "metrics"):
        assert getattr(found.facts, name) == getattr(whole.facts, name)
    costs = {(cost["dataset"], cost["method"]): cost for cost in whole.facts.costs}
    assert len(found.facts.costs) == len(costs)
    assert all(costs[cost["dataset"], cost["method"]] == cost for cost in found.facts.costs)
    assert found.facts.coverage.complete


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_results_of_another_run_fill_gaps(order):
    broken = part(methods=("a", "b"), fails=lambda dataset, method, **_: (dataset, method) == ("two", "a"))
    parts = [("broken", broken), ("whole", part(methods=("a",)))]
    assert broken.facts.coverage.gaps
    found = merge_summaries([parts[place] for place in order])
    coverage = found.facts.coverage
    assert coverage.complete
    assert "Incomplete" in studies(parts[:1])[0].settings
    assert "Incomplete" not in studies(parts)[0].settings
    assert (coverage.n_failed, coverage.gaps, found.facts.failures) == (0, (), ())
    # Two noises, folds and classifiers are counted once.
    assert coverage.n_planned == broken.facts.coverage.n_planned - 8 + parts[1][1].facts.coverage.n_planned
    whole = part(methods=("a", "b"))
    assert len(found.means) == len(whole.means)
    assert found.scores["mean"].sum() == pytest.approx(whole.scores["mean"].sum())


def test_gaps_that_nobody_fills_remain():
    broken = part(methods=("a",), fails=lambda dataset, **_: dataset == "two")
    coverage = merge_summaries([("x", broken), ("y", broken)]).facts.coverage
    assert len(coverage.gaps) == 2  # one for each noise
    assert {gap["dataset"] for gap in coverage.gaps} == {"two"}
    assert not coverage.complete


def test_the_same_name_for_other_methods_or_data_is_an_error():
    first, second = part(methods=("a", "b")), part(methods=("c",), references=("a",))
    (other,) = (spec for spec in second.experiment.references)
    changed = second.experiment.model_copy(
        update={"references": (other.model_copy(update={"params": {"k": 1}}),)}
    )
    with pytest.raises(RunError, match="'a'"):
        studies([("first", first), ("second", replace(second, experiment=changed))])
    datasets = tuple(replace(facts, checksum="0" * 64) for facts in second.facts.datasets)
    with pytest.raises(RunError, match="'one'"):
        studies(
            [("first", first), ("second", replace(second, facts=replace(second.facts, datasets=datasets)))]
        )


def test_means_over_other_seeds_cannot_be_merged():
    with pytest.raises(RunError, match="seeds"):
        merge_summaries([("x", part(methods=("a",))), ("y", part(methods=("b",), seeds=(0, 1)))])


def test_runs_with_other_settings_are_other_studies():
    parts = [
        ("x", part(methods=("a", "b"))),
        ("y", part(methods=("a", "c"), n_folds=3)),
        ("z", part(methods=("c", "d"), seeds=(0, 1))),
        ("more", part(methods=("c",), datasets=("new",))),
        ("ablation", part(methods=(), ablation=("whole", "less"), variants={"whole": {}, "less": {"k": 1}})),
    ]
    found = studies(parts)
    assert [study.methods for study in found] == [("a", "b", "c"), ("a", "c"), ("c", "d")]
    assert found[0].names["dataset"] == ("one", "two", "ten", "new")
    with pytest.raises(RunError):
        studies(parts[-1:])


# ranks


def slow_ranks(study, **chosen):
    """Average ranks within a dataset first, one value after the other."""
    scores = study.summary.scores
    for name, choice in chosen.items():
        scores = scores[scores[name] == choice]
    value = {tuple(row[:5]): row[5] for row in scores.itertuples(index=False)}
    places = {(noise, judge, metric) for _, noise, _, judge, metric in value}
    datasets = {key[0] for key in value}
    found = {}
    for method in study.methods:
        means = []
        for dataset in datasets:
            ranks = []
            for noise, judge, metric in places:
                ours = value[dataset, noise, method, judge, metric]
                others = [value[dataset, noise, name, judge, metric] for name in study.methods]
                better = sum(o < ours if metric == "ranking_loss" else o > ours for o in others)
                ranks.append(better + (1 + sum(o == ours for o in others)) / 2)
            means.append(np.mean(ranks))
        found[method] = np.mean(means)
    return found


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"classifier": "ml-knn"},
        {"dataset": "two", "noise": "flip 0.4"},
        {"metric": "ranking_loss", "classifier": "linear-svm", "noise": "flip 0.2"},
    ],
)
def test_ranks_agree_with_a_slow_version(pooled, chosen):
    standing = pooled.standing(**chosen)
    expected = slow_ranks(pooled, **chosen)
    assert set(standing.ranks) == set(pooled.methods)
    for name, rank in standing.ranks.items():
        assert rank == pytest.approx(expected[name])
    assert list(standing.ranks.values()) == sorted(standing.ranks.values())
    n_datasets = 1 if "dataset" in chosen else 3
    assert standing.cd == (None if n_datasets == 1 else nemenyi_cd(6, 3))


def test_datasets_count_alike_whatever_their_number_of_noises():
    # On "one" a is best with one noise; on "two" b is best with two noises.
    def value(dataset, method, metric, **_):
        is_good = (method == "a") == (dataset == "one")
        return float(is_good) if metric == "average_precision" else float(not is_good)

    parts = [
        ("x", part(value, methods=("a", "b"), datasets=("one",), noises=BASE["noises"][:1])),
        ("y", part(value, methods=("a", "b"), datasets=("two",))),
    ]
    (study,) = studies(parts)
    assert study.standing().ranks == {"a": 1.5, "b": 1.5}


def test_methods_with_missing_results_are_left_out(pooled):
    parts = [
        ("x", part(methods=("a", "b", "c"))),
        ("y", part(methods=("mine",), datasets=("two",), noises=BASE["noises"][:1])),
    ]
    (study,) = studies(parts)
    standing = study.standing()
    assert (list(standing.left_out), len(standing.ranks)) == (["mine"], 3)
    assert set(study.standing(dataset="two", noise="flip 0.2").ranks) == {"a", "b", "c", "mine"}
    assert study.standing(dataset="two").left_out == ("mine",)


def test_a_dataset_of_few_methods_counts_only_if_chosen():
    parts = [
        ("x", part(methods=("a", "b", "c"))),
        ("y", part(methods=("mine", "a"), datasets=("new",))),
        ("z", part(methods=("d",), datasets=("one",))),
    ]
    (study,) = studies(parts)
    assert study.standing().datasets == ("one", "two", "ten")
    assert set(study.standing().ranks) == {"a", "b", "c"}
    assert set(study.standing(dataset="new").ranks) == {"a", "mine"}


def test_a_dataset_that_many_methods_lack_counts_only_if_chosen():
    parts = [
        ("x", part(methods=("a", "b", "c"))),
        ("y", part(methods=("d", "e"), datasets=("one", "two"))),
    ]
    (study,) = studies(parts)  # 2 datasets with 5 methods are more than 3 with 3
    assert study.standing().datasets == ("one", "two")
    assert set(study.standing().ranks) == {"a", "b", "c", "d", "e"}
    assert set(study.standing(dataset="ten").ranks) == {"a", "b", "c"}
    assert study.standing(dataset="ten").left_out == ("d", "e")
    assert find(study)[0][-1].endswith("no results there: ten.")


def test_duels_count_small_differences_as_ties():
    lead = {"one": 0.001, "two": 0.0009, "ten": -0.5}

    def value(dataset, method, metric, **_):
        good = 0.5 + (lead[dataset] if method == "a" else 0)
        return good if metric == "average_precision" else 1 - good

    (study,) = studies([("x", part(value, methods=("a", "evidence")))])
    # Two metrics, two noises and two classifiers on each dataset.
    assert study.duels("evidence") == {"a": (8, 8, 8), "evidence": (0, 24, 0)}
    assert study.duels("a", dataset="ten")["evidence"] == (8, 0, 0)


# words


def test_findings_name_leaders_and_where_evidence_loses():
    def value(dataset, method, metric, noise, **_):
        order = (
            ["evidence", "b", "c", "a"]
            if dataset != "two" and noise == "flip 0.2"
            else ["a", "evidence", "b", "c"]
        )
        return ranked(order)(method=method, metric=metric)

    (study,) = studies([("x", part(value, methods=METHODS, classifiers=("linear-svm",)))])
    main, details = find(study)
    ranks = study.standing().ranks
    assert list(ranks) == ["evidence", "a", "b", "c"]
    assert (
        f"evidence leads 4 methods and references on 3 datasets (average rank {ranks['evidence']:.2f})"
        in main[0]
    )
    assert f"{nemenyi_cd(4, 3):.2f}" in main[0]
    assert "a (8 to 4)" in main[1]
    assert "evidence leads on 2 of 3 datasets; a on two." in details[0]
    assert "flip 0.4: a (1.00, evidence 2.00)" in details[1]


def test_the_data_of_the_page_are_the_values(pooled):
    found = json.loads(json.dumps(pooled.as_dict()))
    names = [one["name"] for one in found["methods"]]
    assert tuple(names) == pooled.methods
    assert [one["reference"] for one in found["methods"]] == [
        name in ("all-features", "random-ranking") for name in names
    ]
    scores = pooled.summary.scores.set_index(["dataset", "noise", "classifier", "metric", "method"])["mean"]
    assert len(found["cells"]) == 3 * 2 * 2 * 2
    for dataset, noise, judge, metric, _, values in found["cells"]:
        place = (
            found["datasets"][dataset],
            found["noises"][noise],
            found["classifiers"][judge],
            found["metrics"][metric]["name"],
        )
        for name, value in zip(names, values, strict=True):
            assert scores[(*place, name)] == value
    assert {(names[cost[0]], found["datasets"][cost[1]]) for cost in found["costs"]} == set(
        product(names, BASE["datasets"])
    )


def test_the_page_escapes_names_of_runs():
    study = studies([("x", part(methods=("<script>alert(1)</script>", "b")))])
    assert "<script>alert" not in render_leaderboard(study)


# command


def test_the_command_prints_ranks_and_writes_a_page(capsys, tmp_path, plain_terminal):
    first = saved(part(methods=("a", "evidence"), references=("all-features",)), tmp_path / "x.csv.gz")
    second = saved(part(methods=("mine",)), tmp_path / "y.csv.gz")
    page = tmp_path / "board.html"
    code, out, _ = run(capsys, "bench", "leaderboard", first, second, "--html", str(page), "--json")
    assert code == 0
    (study,) = json.loads(out)["studies"]
    assert set(study["ranks"]["ml-knn"]) == {"a", "evidence", "all-features", "mine"}
    code, out, _ = run(capsys, "bench", "leaderboard", first, second, "--html", str(page))
    assert code == 0
    for name, rank in study["ranks"]["linear-svm"].items():
        assert any(line.split()[:2] == [name, f"{rank:.2f}"] for line in out.splitlines())
    assert page.read_text("utf-8").count("<table") == 1


def test_merged_files_can_be_read_again(capsys, tmp_path, plain_terminal):
    first = saved(part(methods=("a",)), tmp_path / "x.csv.gz")
    second = saved(part(methods=("b",)), tmp_path / "y.csv.gz")
    out = tmp_path / "both.csv.gz"
    assert run(capsys, "bench", "merge", first, second, "--out", str(out))[0] == 0
    (pooled,) = studies(
        [("x", read_summary(tmp_path / "x.csv.gz")), ("y", read_summary(tmp_path / "y.csv.gz"))]
    )
    (merged,) = studies([("both", read_summary(out))])
    assert merged.standing() == pooled.standing()


def test_a_leaderboard_without_methods_gives_one_error(capsys, tmp_path, plain_terminal):
    sweep = saved(part(methods=(), references=("all-features",)), tmp_path / "x.csv.gz")
    fails(capsys, 1, "bench", "leaderboard", sweep, "--html", str(tmp_path / "page.html"))
    assert not (tmp_path / "page.html").exists()
