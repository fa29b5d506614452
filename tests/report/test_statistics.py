"""Rank tests against Demsar's worked example, scipy and scikit-posthocs."""

import math

import numpy as np
import pytest
import scikit_posthocs
from scipy import stats

from labelsieve.report.statistics import (
    average_ranks,
    bonferroni_dunn_cd,
    friedman,
    holm,
    iman_davenport,
    nemenyi_cd,
    nemenyi_p_values,
    rank_methods,
    win_tie_loss,
)

# Demsar (2006), Table 6: AUC and ranks of C4.5, C4.5+m, C4.5+cf and C4.5+m+cf on 14 datasets. The table
# rounds to three digits: the 0.975 and 0.975 of the thirteenth row were different, and ranked 2 and 3.
DEMSAR_AUC = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.975, 0.975 - 1e-9],
        [0.957, 0.978, 0.946, 0.970],
    ]
)
DEMSAR_RANKS = np.array(
    [
        [4, 3, 2, 1],
        [1, 2, 3, 4],
        [4, 1, 2, 3],
        [4, 1, 3, 2],
        [4, 2, 3, 1],
        [1, 2.5, 4, 2.5],
        [3, 2, 4, 1],
        [2.5, 2.5, 4, 1],
        [4, 3, 2, 1],
        [2.5, 2.5, 2.5, 2.5],
        [4, 2.5, 1, 2.5],
        [3, 2, 4, 1],
        [4, 1, 2, 3],
        [3, 1, 4, 2],
    ]
)


@pytest.fixture
def results():
    """Ten datasets, five methods, rounded so that there are ties."""
    rng = np.random.default_rng(0)
    return np.round(rng.random((10, 5)) + np.array([0, 0.1, 0.2, 0.3, 0.6]), 1)


def test_ranks_of_the_worked_example():
    np.testing.assert_array_equal(rank_methods(DEMSAR_AUC), DEMSAR_RANKS)
    np.testing.assert_allclose(average_ranks(DEMSAR_AUC), [3.143, 2.000, 2.893, 1.964], atol=5e-4)


def test_lower_is_better_reverses_the_ranks(results):
    np.testing.assert_array_equal(rank_methods(results, "lower"), rank_methods(-results, "higher"))
    np.testing.assert_allclose(average_ranks(results) + average_ranks(results, "lower"), 6)


def test_friedman_of_the_worked_example():
    # Section 3.2.2: chi2_F = 9.28 and F_F = 3.69; the critical value of F(3, 39) at 0.05 is 2.85.
    assert friedman(DEMSAR_RANKS, correct_ties=False).statistic == pytest.approx(9.28, abs=0.005)
    result = iman_davenport(DEMSAR_RANKS, correct_ties=False)
    assert result.statistic == pytest.approx(3.69, abs=0.005)
    assert result.p_value == pytest.approx(stats.f.sf(result.statistic, 3, 39))
    assert result.p_value < 0.05


@pytest.mark.parametrize("table", ["worked example", "random"])
def test_friedman_with_ties_equals_scipy(table, results):
    values = DEMSAR_AUC if table == "worked example" else results
    expected = stats.friedmanchisquare(*values.T)
    assert friedman(rank_methods(values)) == pytest.approx((expected.statistic, expected.pvalue))


def test_perfect_agreement_and_ties_have_p_values():
    agreed = np.tile([1, 2, 3], (6, 1))
    # 12 * 6 / (3 * 4) * ((1 - 2)^2 + (3 - 2)^2): the largest possible value, n_datasets * (n_methods - 1).
    assert friedman(agreed).statistic == pytest.approx(12)
    # Each of the other datasets agrees with the first by chance with probability 1 / k!.
    n_datasets, n_methods = np.shape(agreed)
    statistic, p_value = iman_davenport(agreed)
    assert statistic == np.inf
    assert p_value == pytest.approx(math.factorial(n_methods) ** (1 - n_datasets))
    tied = np.full((6, 3), 2.0)
    assert friedman(tied) == (0, 1)
    assert iman_davenport(tied) == (0, 1)


@pytest.mark.parametrize(("alpha", "expected"), [(0.05, 1.25), (0.10, 1.12)])
def test_nemenyi_difference_of_the_worked_example(alpha, expected):
    assert nemenyi_cd(4, 14, alpha=alpha) == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize(
    ("n_methods", "nemenyi", "bonferroni_dunn"),
    # Demsar (2006), Table 5: critical values at 0.05 for 2 to 10 classifiers.
    [(2, 1.960, 1.960), (3, 2.343, 2.241), (4, 2.569, 2.394), (6, 2.850, 2.576), (10, 3.164, 2.773)],
)
def test_critical_values_of_the_table(n_methods, nemenyi, bonferroni_dunn):
    error = np.sqrt(n_methods * (n_methods + 1) / 6)
    assert nemenyi_cd(n_methods, 1) / error == pytest.approx(nemenyi, abs=1.1e-3)
    assert bonferroni_dunn_cd(n_methods, 1) / error == pytest.approx(bonferroni_dunn, abs=1.1e-3)


@pytest.mark.parametrize("table", ["worked example", "random"])
def test_nemenyi_equals_scikit_posthocs(table, results):
    values = DEMSAR_AUC if table == "worked example" else results
    expected = scikit_posthocs.posthoc_nemenyi_friedman(values).to_numpy()
    np.testing.assert_allclose(nemenyi_p_values(rank_methods(values)), expected, atol=1e-6)


def test_p_value_at_the_critical_difference_is_alpha():
    # Two methods: the better one wins every time but `losses`, so average ranks differ by 1 - 2 losses / n.
    ranks = np.array([[1.0, 2.0]] * 9 + [[2.0, 1.0]] * 2)
    difference = 7 / 11
    p_value = nemenyi_p_values(ranks)[0, 1]
    assert nemenyi_cd(2, 11, alpha=p_value) == pytest.approx(difference, rel=1e-6)
    # With two methods, there is only one comparison.
    assert bonferroni_dunn_cd(2, 11, alpha=p_value) == pytest.approx(difference, rel=1e-6)


def test_holm_equals_scikit_posthocs_on_the_tests_against_all():
    values = np.random.default_rng(2).normal(size=(12, 4)) + np.array([0, 0.5, 1, 2])
    upper = np.triu_indices(4, k=1)
    plain, adjusted = (
        scikit_posthocs.posthoc_conover_friedman(values, p_adjust=method).to_numpy()[upper]
        for method in (None, "holm")
    )
    np.testing.assert_allclose(holm(plain), adjusted)


def test_holm_by_hand():
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1, and never smaller than the one before.
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_array_equal(holm([0.9, 0.8]), [1, 1])
    assert len(holm([])) == 0


def test_win_tie_loss_of_the_worked_example():
    # C4.5+m against C4.5 in Table 6: worse on two datasets, equal on two, better on ten.
    comparison = win_tie_loss(DEMSAR_AUC[:, 1], DEMSAR_AUC[:, 0])
    assert comparison[:3] == (10, 2, 2)
    assert comparison.p_value < 0.05
    assert win_tie_loss(DEMSAR_AUC[:, 1], DEMSAR_AUC[:, 0], "lower")[:3] == (2, 2, 10)


def test_ties_do_not_change_the_p_value():
    # Three differences, the smallest negative: the rank sum 1 or less has 2 of 8 sign patterns, on both sides.
    assert win_tie_loss([3, 2, -1, 0, 0], [0] * 5) == (2, 2, 1, 0.5)


def test_equal_methods_are_not_different():
    assert win_tie_loss([0.5, 0.7], [0.5, 0.7]) == (0, 2, 0, 1.0)


@pytest.mark.parametrize(
    ("function", "arguments", "named"),
    [
        (rank_methods, ([1, 2, 3],), r"\(3,\)"),
        (average_ranks, ([[0.5, np.nan]],), "NaN"),
        (rank_methods, ([[0.5, 0.6]], "max"), "'max'"),
        (friedman, (DEMSAR_AUC,), "rank_methods"),
        (iman_davenport, ([[1, 2]],), "got 1"),
        (nemenyi_cd, (1, 5), "got 1"),
        (holm, ([0.5, 1.5],), "1.5"),
    ],
)
def test_bad_tables_are_rejected(function, arguments, named):
    with pytest.raises(ValueError, match=named):
        function(*arguments)
