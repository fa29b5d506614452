"""Selections on halves of the rows, counted once more in a plain loop; intervals against scipy."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import binomtest
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectFwe, SelectKBest, f_classif

from broken_sparse import broken
from labelsieve import MDMR, RFS, EvidenceSelector, SumF, selection_stability
from labelsieve.datasets import make_pml
from labelsieve.inspection.stability import SelectionStability, kuncheva_stability, substitute_groups

SELECTORS = {"sum-f": SumF(4), "mdmr": MDMR(4)}


@pytest.fixture(scope="module")
def problem():
    return make_pml(n_samples=81, n_features=24, n_informative=4, random_state=3)


def by_hand(selector, X, Y, n_resamples, seed):
    """Masks of a selector on pairs of halves of shuffled rows; one row of an odd number is left out."""
    rng = np.random.default_rng(seed)
    half = len(X) // 2
    runs = []
    while len(runs) < n_resamples:
        rows = rng.permutation(len(X))
        runs += [
            selector.fit(X[part], Y[part]).get_support() for part in (rows[:half], rows[half : 2 * half])
        ]
    return np.array(runs[:n_resamples])


@pytest.mark.parametrize("n_resamples", [2, 7, 30])
@pytest.mark.parametrize("slug", SELECTORS)
def test_frequencies_equal_those_of_fits_to_subsamples(problem, slug, n_resamples):
    X, Y = problem
    found = selection_stability(SELECTORS[slug], X, Y, n_resamples=n_resamples, random_state=5)
    # Other orders of the same rows give the same selection.
    np.testing.assert_array_equal(found.runs, by_hand(SELECTORS[slug], X, Y, n_resamples, 5))
    np.testing.assert_array_equal(found.frequency, found.runs.mean(axis=0))
    np.testing.assert_array_equal(found.selected, SELECTORS[slug].fit(X, Y).get_support())
    assert found.n_resamples == n_resamples
    assert found.n_selected == 4
    assert found.index == pytest.approx(kuncheva_stability(found.runs))


def test_planted_features_are_stable_and_random_ones_are_not():
    X, Y = make_pml(n_samples=400, n_features=40, n_informative=4, shuffle=False, random_state=0)
    found = selection_stability(SumF(4), X, Y)
    assert np.flatnonzero(found.frequency >= 0.6).tolist() == [0, 1, 2, 3]
    assert found.n_stable == 4
    assert found.index > 0.8
    shuffled = np.random.default_rng(0).permutation(400)
    assert selection_stability(SumF(4), X, Y[shuffled]).index < 0.3


def test_intervals_are_wilson_intervals():
    n_runs = 30
    runs = np.arange(n_runs)[:, None] < np.arange(n_runs + 1)
    found = SelectionStability(np.arange(31).astype(str), runs[0], runs, np.arange(31))
    for hits, (lower, upper) in enumerate(found.interval):
        expected = binomtest(hits, n_runs).proportion_ci(method="wilson")
        assert (lower, upper) == pytest.approx((expected.low, expected.high), abs=1e-14)
    assert found.interval[0, 0] == 0
    assert found.interval[30, 1] == 1


def test_the_random_bound_is_that_of_stability_selection():
    selected = np.arange(50) < 10
    found = SelectionStability(
        np.arange(50).astype(str), selected, np.array([selected, ~selected]), np.arange(50)
    )
    # 10^2 / ((2 * 0.6 - 1) * 50)
    assert found.expected_by_chance == pytest.approx(10)
    assert found.n_stable == 0


def test_a_selected_substitute_counts_for_a_feature(problem):
    X, Y = problem
    rng = np.random.default_rng(0)
    best = int(np.argmax(SumF().fit(X, Y).scores_))
    twin = -5 * X[:, best] + 0.3 * X[:, best].std() * rng.normal(size=len(X))
    X = np.column_stack([X, twin])
    assert abs(np.corrcoef(X[:, best], twin)[0, 1]) > 0.9
    for features in (X, sp.csr_matrix(X), pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])):
        found = selection_stability(SumF(1), features, Y, n_resamples=20)
        pair = [best, X.shape[1] - 1]
        assert 0 < found.frequency[pair].min() < found.frequency[pair].max() < 1
        np.testing.assert_array_equal(found.group_frequency[pair], found.runs[:, pair].any(axis=1).mean())
        assert found.substitutes(best).tolist() == [X.shape[1] - 1]
        others = np.delete(np.arange(X.shape[1]), pair)
        np.testing.assert_array_equal(found.group_frequency[others], found.frequency[others])
        assert all(found.substitutes(feature).size == 0 for feature in others)


def test_features_that_are_never_selected_have_no_substitutes():
    X, Y = make_pml(n_samples=60, n_features=10, random_state=0)
    worst = int(np.argmin(SumF().fit(X, Y).scores_))
    X = np.column_stack([X, X[:, worst]])
    found = selection_stability(SumF(2), X, Y, n_resamples=4)
    assert found.frequency[[worst, 10]].tolist() == [0, 0]
    assert found.substitutes(worst).size == 0


def test_only_some_features_are_compared():
    X = np.random.default_rng(0).normal(size=(30, 3))
    X = np.column_stack([X, X])
    assert substitute_groups(X, np.array([0, 3, 4])).tolist() == [0, 1, 2, 0, 4, 5]


def test_the_frame_lists_the_most_stable_features_first(problem):
    X, Y = problem
    names = [f"gene {j}" for j in range(X.shape[1])]
    found = selection_stability(SumF(4), pd.DataFrame(X, columns=names), Y, n_resamples=8)
    table = found.to_frame()
    columns = "feature selected frequency lower upper substitutes frequency_with_substitutes"
    assert list(table) == columns.split()
    assert sorted(table["feature"]) == sorted(names)
    assert (np.diff(table["frequency"]) <= 0).all()
    row = table.set_index("feature").loc["gene 3"]
    assert row["frequency"] == found.frequency[3]
    assert (row["lower"], row["upper"]) == tuple(found.interval[3])
    assert selection_stability(SumF(4), X, Y, n_resamples=2).feature_names[:2].tolist() == ["x0", "x1"]


def test_size_and_redundancy_are_chosen_once_on_all_rows(problem):
    X, Y = problem
    whole = EvidenceSelector("auto").fit(X, Y)
    found = selection_stability(EvidenceSelector("auto"), X, Y, n_resamples=6)
    settled = EvidenceSelector(whole.n_features_, redundancy=whole.redundancy_)
    np.testing.assert_array_equal(found.runs, by_hand(settled, X, Y, 6, 0))
    np.testing.assert_array_equal(found.selected, whole.get_support())


def test_a_scikit_learn_selector_is_accepted():
    X, Y = make_pml(n_labels=1, random_state=0)
    found = selection_stability(SelectKBest(f_classif, k=3), X, Y[:, 0], n_resamples=4)
    assert (found.runs.sum(axis=1) == 3).all()


@pytest.mark.parametrize("as_features", [np.asarray, sp.csr_matrix])
def test_an_empty_selection_is_accepted(as_features):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)
    found = selection_stability(SelectFwe(alpha=1e-9), as_features(X), y, n_resamples=4)
    assert (found.n_selected, found.index, found.expected_by_chance) == (0, 1.0, 0.0)
    assert found.group_frequency.tolist() == found.frequency.tolist() == [0.0, 0.0, 0.0]


def test_classes_may_be_strings_and_missing_from_a_subsample(problem):
    X, _ = problem
    classes = np.where(X[:, 0] > 0.5, "large", "small")
    classes[0] = "only here"
    found = selection_stability(SumF(2), X, classes, n_resamples=4)
    assert found.frequency[0] == 1


def test_warnings_of_subsamples_are_given_once(problem):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        selection_stability(RFS(4, max_iter=1), *problem, n_resamples=4)
    # One for the fit to all rows, one for all subsamples.
    assert [issubclass(warning.category, ConvergenceWarning) for warning in caught] == [True, False]
    assert "4 of 4" in str(caught[1].message)


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (3, {}, "X must have at least 4 rows, two for each half. Got 3."),
        (20, {"n_resamples": 1}, r"n_resamples .*got 1\."),
        (20, {"n_resamples": 2.5}, r"n_resamples .*got 2\.5"),
    ],
)
def test_bad_input_raises(problem, rows, options, message):
    X, Y = problem
    with pytest.raises(ValueError, match=f"^{message}"):
        selection_stability(SumF(2), X[:rows], Y[:rows], **options)


@pytest.mark.filterwarnings("ignore:Constructing a DIA matrix")
@pytest.mark.parametrize("form", ["bsr", "coo", "csc", "dia", "dok", "lil"])
def test_every_sparse_format_gives_the_frequencies_of_csr(problem, form):
    expected, found = (
        selection_stability(
            SumF(4), *(getattr(sp, f"{kind}_matrix")(part) for part in problem), n_resamples=6
        )
        for kind in ("csr", form)
    )
    np.testing.assert_array_equal(found.frequency, expected.frequency)


@pytest.mark.parametrize("role", ["X", "Y"])
def test_broken_sparse_matrices_are_rejected(problem, role):
    given = dict(zip("XY", problem, strict=True))
    given[role] = broken(given[role], "index too large")
    with pytest.raises(ValueError, match=f"^{role} .*sparse"):
        selection_stability(SelectKBest(k=2), **given)


def test_a_subsample_without_candidates_raises(problem):
    X, Y = problem
    Y = np.zeros_like(Y)
    Y[0, 0] = 1
    for labels in (Y, sp.csr_matrix(Y)):
        with pytest.raises(ValueError, match="candidates"):
            selection_stability(SumF(2), X, labels)
