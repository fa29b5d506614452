import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from html_page import HtmlPage
from labelsieve.bench import RunError
from labelsieve.bench.config import Conventions
from labelsieve.report.analysis import analyse
from labelsieve.report.findings import N_MAIN, find, missing_parts
from labelsieve.report.page import make_report, render_report
from labelsieve.report.paper import correlate_orders, shared_cells
from labelsieve.report.statistics import bonferroni_dunn_cd, holm, nemenyi_cd, nemenyi_p_values
from labelsieve.report.summary import summarise
from synthetic_runs import PAPER_DATASETS, PAPER_METHODS, PRINTED, make_results, make_summary, noisy, ranked

# aggregation


def test_a_table_cell_is_the_mean_and_std_over_the_sizes_of_means_over_folds():
    values = {(0, 10.0): 0.2, (1, 10.0): 0.4, (0, 20.0): 0.6, (1, 20.0): 0.8}
    run = make_summary(lambda fold, size, **_: values[fold, size], datasets=("one",), methods=("a",))
    main = analyse(run).main
    # Means over folds 0.3 and 0.7; their mean 0.5, their standard deviation sqrt(2 * 0.2^2 / 1).
    np.testing.assert_allclose(main.table("ranking_loss"), [[0.5]])
    np.testing.assert_allclose(main.table("ranking_loss", "std"), [[np.sqrt(0.08)]])


def test_draws_and_seeds_are_averaged_like_folds():
    run = make_summary(
        lambda seed, draw, **_: 0.1 * seed + 0.4 * draw, references=("random-ranking",), seeds=(0, 2)
    )
    table = analyse(run).main.table("ranking_loss")
    # Seeds 0 and 2 give a mean of 0.1, draws 0 and 1 a mean of 0.2.
    np.testing.assert_allclose(table["random-ranking"], 0.3)
    np.testing.assert_allclose(table["a"], 0.1)


# ranks and tests


@pytest.fixture(scope="module")
def full():
    """Analysis of a run with the size of the paper's experiment."""
    return analyse(
        make_summary(noisy(), datasets=PAPER_DATASETS, methods=PAPER_METHODS, references=("random-ranking",))
    )


def test_ranks_and_tests_agree_with_scipy(full):
    main = full.main
    for metric, ranks in main.ranks.items():
        values = main.table(metric).to_numpy()[:, :9] * (1 if metric == "ranking_loss" else -1)
        np.testing.assert_allclose(ranks, stats.rankdata(values, axis=1))
        tested, known = main.tests.loc[metric], stats.friedmanchisquare(*values.T)
        assert tested["friedman"] == pytest.approx(known.statistic)
        assert tested["friedman_p"] == pytest.approx(known.pvalue)
        np.testing.assert_allclose(main.pairs[metric], nemenyi_p_values(ranks))
        p_values = [stats.wilcoxon(values[:, 0], values[:, column]).pvalue for column in range(1, 9)]
        duels = main.duels[main.duels["metric"] == metric]
        assert duels["p_value"].tolist() == pytest.approx(p_values)
        assert duels["adjusted"].tolist() == pytest.approx(holm(p_values).tolist())


def test_the_overall_rank_is_the_mean_over_metrics_and_datasets(full):
    expected = np.mean(list(full.main.ranks.values()), axis=(0, 1))
    assert full.main.overall == pytest.approx(dict(zip(PAPER_METHODS, expected, strict=True)))
    assert list(full.main.overall.values()) == sorted(full.main.overall.values())


def test_references_are_ranked_with_the_methods_but_not_tested(full):
    assert tuple(full.main.ranked_methods) == PAPER_METHODS
    assert round(full.main.nemenyi_cd, 2) == 4.25 == round(nemenyi_cd(9, 8), 2)
    assert round(full.main.bonferroni_dunn_cd, 2) == 3.74 == round(bonferroni_dunn_cd(9, 8), 2)
    assert set(full.main.among_all) == {*PAPER_METHODS, "random-ranking"}
    # The ranks of ten entries sum to 55.
    assert sum(full.main.among_all.values()) == pytest.approx(55)


def test_win_tie_loss_counts_are_for_the_control():
    run = make_summary(ranked(("b", "a")), control="b")
    counts = ["method", "wins", "ties", "losses"]
    assert analyse(run).main.duels.loc[0, counts].tolist() == ["a", 2, 0, 0]
    assert analyse(run, control="a").main.duels.loc[0, counts].tolist() == ["b", 0, 0, 2]


@pytest.mark.parametrize("shape", [{"datasets": ("one",)}, {"methods": ("a",)}])
def test_without_two_datasets_and_two_methods_there_are_no_tests(shape):
    main = analyse(make_summary(noisy(), **shape)).main
    assert main.tests.empty
    assert main.nemenyi_cd is None
    assert main.no_tests


# incomplete runs


def test_a_dataset_without_results_of_a_method_is_not_ranked():
    run = make_summary(
        noisy(),
        datasets=("one", "two", "three"),
        fails=lambda dataset, method, fold, **_: (dataset, method, fold) == ("two", "b", 1),
    )
    analysis = analyse(run)
    assert analysis.main.ranked_datasets == ["one", "three"]
    table = analysis.main.table("ranking_loss")
    assert table.isna().to_numpy().tolist() == [[False, False], [False, True], [False, False]]
    assert "11 of 12" in missing_parts(analysis)[0]
    (failure,) = analysis.facts.failures
    assert (failure["dataset"], failure["method"]) == ("two", "b")
    assert failure["cells"] == ["two, flip 0.2, seed 0, fold 1, b"]
    (gap,) = analysis.facts.coverage.gaps
    assert (gap["done"], gap["failed"], gap["planned"]) == (1, 1, 2)


def test_a_method_without_results_on_most_datasets_is_not_ranked():
    run = make_summary(
        noisy(),
        datasets=("one", "two", "three"),
        methods=("a", "b", "c"),
        skip=lambda dataset, method, **_: method == "c" and dataset != "one",
    )
    analysis = analyse(run)
    assert analysis.main.ranked_methods == ["a", "b"]
    assert analysis.main.ranked_datasets == ["one", "two", "three"]
    assert "14 of 18" in missing_parts(analysis)[0]
    untouched = analyse(make_summary(noisy(), skip=lambda dataset, **_: dataset == "two"))
    assert len(missing_parts(untouched)) > 1
    altered = replace(make_results(lambda **_: 0.5), n_altered=2)
    assert len(missing_parts(analyse(summarise(altered)))) == 1


@pytest.mark.parametrize("what", ["skip", "fails"])
def test_a_run_without_finished_cells_is_rejected(what):
    with pytest.raises(RunError, match="none of 8"):
        analyse(make_summary(noisy(), **{what: lambda **_: True}))


# findings


def has_finding(analysis, *parts):
    """Return True if one finding contains all the names and numbers."""
    return any(set(parts) <= set(re.findall(r"[\w+-]+(?:\.\d+)?", text)) for text in find(analysis))


def test_findings_name_the_best_method_and_significant_differences():
    names = tuple("abcd")
    run = make_summary(
        ranked((*names, "sum-f")),
        datasets=tuple(map(str, range(10))),
        methods=names,
        references=("sum-f",),
        metrics=("ranking_loss",),
    )
    analysis = analyse(run)
    assert has_finding(analysis, "a", "1.00", "b", "2.00", "c", "d")
    # Ranks 1 to 4 on ten agreeing datasets: the critical difference is 2.569 sqrt(4 * 5 / 60) = 1.48.
    assert has_finding(analysis, "1.48")
    assert has_finding(analyse(run, control="d"), "d", "a", "b", "1.38")
    assert missing_parts(analysis) == []


def test_a_report_opens_with_three_findings_and_shows_all():
    report = make_report(make_summary(noisy(), datasets=("1", "2", "3"), references=("sum-f", "no-features")))
    page = HtmlPage(render_report(report))
    assert len(report.findings) > N_MAIN == 3
    (more,) = (section.texts for section in report.sections if section.anchor == "more-findings")
    assert more == report.findings[N_MAIN:]
    assert all(text in page.text for text in report.findings)


def test_methods_that_beat_a_reference_are_counted():
    run = make_summary(
        ranked(("a", "random-ranking", "b", "no-features", "sum-f")),
        references=("random-ranking", "no-features", "sum-f"),
    )
    challenges = analyse(run).main.challenges.groupby(["reference", "method"])["wins"].sum()
    assert challenges["random-ranking"].to_dict() == {"a": 4, "b": 0}
    assert challenges["no-features"].to_dict() == {"a": 4, "b": 4}
    assert has_finding(analyse(run), "random-ranking", "no-features", "sum-f")


# behaviour


def test_costs_are_means_and_the_largest_memory():
    cost = analyse(make_summary(noisy())).facts.costs[0]
    # Folds take 0.5 and 1.5 s, 10 and 11 MiB, 10 and 12 iterations; the first converges.
    assert {**cost, "dataset": "one", "method": "a"} == cost
    assert [cost[name] for name in ("seconds", "peak_mib", "n_iter", "converged")] == [1.0, 11.0, 11.0, 0.5]


def test_stability_distinguishes_stable_and_random_rankings():
    run = make_summary(noisy(), references=("random-ranking", "all-features"), n_folds=20, n_features=100)
    found = {stability["method"]: stability["index"] for stability in analyse(run).facts.stability}
    assert found["a"] == {"kuncheva": 1.0, "nogueira": 1.0, "jaccard": 1.0}
    assert abs(found["random-ranking"]["kuncheva"]) < 0.1
    assert "all-features" not in found


# variation


def test_tables_show_the_usual_noise_and_curves_all():
    noises = (("flip 0", 0.0), ("flip 0.2", 0.2), ("flip 0.4", 0.4))
    run = make_summary(lambda noise, **_: float(noise.split()[1]), noises=noises)
    analysis = analyse(run)
    np.testing.assert_allclose(analysis.main.table("ranking_loss"), 0.2)
    assert list(analysis.others) == ["noise flip 0", "noise flip 0.4"]
    assert set(analysis.noise["model"]) == {"flip"}
    assert analysis.noise["rate"].tolist()[:3] == [0.0, 0.2, 0.4]
    assert analysis.noise["value"].tolist() == pytest.approx(analysis.noise["rate"].tolist())


def test_variants_are_compared_if_there_are_no_methods():
    variants = ("whole", "no graph")
    analysis = analyse(make_summary(ranked(variants), methods=(), ablation=variants))
    assert tuple(analysis.main.ranked_methods) == variants
    assert has_finding(analysis, "whole", "no", "graph", "4")
    np.testing.assert_allclose(analysis.ablations["linear-svm", "ranking_loss"], [[0, 0.1], [0, 0.1]])


def test_sweeps_become_grids_by_parameter():
    sweeps = {
        "m alpha=1": {"alpha": 1.0},
        "m alpha=10": {"alpha": 10.0},
        **{f"m alpha={a} beta={b}": {"alpha": a, "beta": b} for a in (1, 2) for b in (3, 4, 5)},
    }
    run = make_summary(
        lambda method, **_: 10.0 if method.endswith("=10") else len(method), methods=(), sweeps=sweeps
    )
    found = analyse(run).sweeps
    found = found[(found["dataset"] == "one") & (found["metric"] == "ranking_loss")]
    single, double = found[found["parameters"] == "alpha"], found[found["parameters"] == "alpha × beta"]
    assert list(zip(single["setting"], single["value"], strict=True)) == [
        ("alpha = 1.0", len("m alpha=1")),
        ("alpha = 10.0", 10.0),
    ]
    assert list(zip(double["first"], double["second"], strict=True)) == [
        (a, b) for a in (1, 2) for b in (3, 4, 5)
    ]
    assert has_finding(analyse(run), "m", "alpha", "1.0")


# the paper


def check(run):
    """Return the cells shared with the paper."""
    return shared_cells(analyse(run).main)


@pytest.mark.parametrize(
    "part",
    [
        {"noises": (("flip 0.2", 0.2), ("flip 0.4", 0.4))},
        {"methods": PAPER_METHODS[1:]},
        {"methods": (*PAPER_METHODS, "mine")},
    ],
    ids=("a noise more", "a method less", "a method more"),
)
def test_only_the_papers_experiment_is_compared_with_the_paper(part):
    run = make_summary(noisy(), **{"datasets": PAPER_DATASETS, "methods": PAPER_METHODS, **part}, n_folds=1)
    assert len(check(run))
    assert not analyse(run).papers


def test_only_shared_cells_are_compared_with_the_paper():
    run = make_summary(noisy(), datasets=("birds", "mine"), methods=("pml-fsmir", "new", "mifs"))
    found = check(run)
    assert set(found["dataset"]) == {"birds"}
    assert set(found["method"]) == {"pml-fsmir", "mifs"}
    assert correlate_orders(found, "spearman").isna().all()
    assert check(make_summary(noisy())).empty


def test_the_order_of_the_methods_is_correlated_with_the_paper():
    methods = ("pml-fsmir", "pml-lc", "mifs", "fpml")
    run = make_summary(noisy(), datasets=("birds",), methods=methods)
    theirs = [PRINTED["ranking_loss", "birds", method] for method in methods]
    ours = analyse(run).main.table("ranking_loss").loc["birds"]
    for method, known in (("spearman", stats.spearmanr), ("kendall", stats.kendalltau)):
        found = correlate_orders(check(run), method)["ranking_loss", "birds"]
        assert found == pytest.approx(known(ours, theirs).statistic)


def test_renamed_methods_and_other_coverage_are_not_compared_with_the_paper():
    run = make_summary(
        lambda **_: 0.5, datasets=PAPER_DATASETS[:2], methods=PAPER_METHODS[:4], metrics=("coverage",)
    )
    assert len(check(run)) == 8
    first, *others = run.experiment.methods
    renamed = (first.model_copy(update={"method": "sum-f"}), *others)
    assert len(check(replace(run, experiment=run.experiment.model_copy(update={"methods": renamed})))) == 6
    counting = (Conventions(name="counting", coverage="count"),)
    other = run.experiment.model_copy(update={"conventions": counting})
    assert check(replace(run, experiment=other)).empty


def test_gains_are_measured_with_and_without_the_other_part():
    """The full method is compared with all variants, and variants with those that differ in one part."""
    sets = {
        "1+2+3": {},
        "1+2": {"third": False},
        "2+3": {"first": False},
        "2": {"first": False, "third": False},
    }
    # The first part gains 0.1 and the third loses 0.01. Equal sums must tie exactly.
    run = make_summary(
        lambda method, **_: 0.5 - 0.1 * ("1" in method) + 0.01 * ("3" in method),
        methods=(),
        ablation=tuple(sets),
        variants=sets,
        metrics=("ranking_loss",),
    )
    groups = analyse(run).effects.groupby(["fuller", "lesser"])
    gains = {pair: group["gain"].tolist() for pair, group in groups}
    assert gains == {
        ("1+2+3", "1+2"): [-0.01, -0.01],
        ("1+2+3", "2+3"): [0.1, 0.1],
        ("1+2+3", "2"): [0.09, 0.09],
        ("1+2", "2"): [0.1, 0.1],
        ("2+3", "2"): [-0.01, -0.01],
    }
    sets = groups["sets"].first()
    assert sets["1+2", "2"] == "first = false"
    assert sets["1+2+3", "2"] == "first = false, third = false"


# rounding and special cases


def test_results_that_differ_in_the_last_bit_tie():
    nearly = {"a": 0.1 + 0.2, "b": 0.3}
    run = make_summary(lambda method, **_: nearly[method])
    assert analyse(run).main.overall == {"a": 1.5, "b": 1.5}


def test_a_size_of_all_features_does_not_affect_stability():
    some, whole = (
        analyse(make_summary(lambda **_: 0.5, sizes=sizes)).facts.stability
        for sizes in ((10.0, 20.0), (10.0, 20.0, 100.0))
    )
    assert some == whole


def test_a_run_of_sweeps_alone_shows_them_first():
    sweeps = {f"m alpha={value:g}": {"alpha": value} for value in (1.0, 2.0)}
    alone = make_summary(lambda **_: 0.5, methods=(), references=("sum-f",), sweeps=sweeps)
    beside = make_summary(lambda **_: 0.5, references=("sum-f",), sweeps=sweeps)
    assert make_report(alone).sections[0].anchor == "sensitivity"
    assert make_report(beside).sections[0].anchor == "ranks"
