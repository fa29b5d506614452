"""Intervals and corrections: worked examples, invariants, coverage and error rates by simulation, bad input."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from labelsieve import audit, draw_candidates, find_label_issues
from labelsieve.datasets import make_pml
from labelsieve.inspection.guarantees import (
    assisted_interval,
    assisted_share,
    audit_list,
    clopper_pearson,
    correctable,
    exact_interval,
    guess_weight,
    hypergeometric_interval,
    korn_graubard,
    sum_intervals,
)
from labelsieve.inspection.wording import describe_correction

OPEN = np.array([-0.3, -0.2, -0.1, 0, 0.1, 0.2, 0.5, 0.8])
REVIEWED = np.array([-0.25, -0.15, 0.05, 0.15, 0.3, 0.4, 0.6, 0.7, 0.9])
IS_RIGHT = np.array([0, 0, 0, 1, 0, 1, 1, 1, 1], dtype=bool)


# Intervals


def test_worked_intervals():
    assert hypergeometric_interval(12, 50, 1000, 0.95) == (133, 378)
    assert hypergeometric_interval(0, 50, 1000, 0.95) == (0, 69)
    np.testing.assert_allclose(
        clopper_pearson(12, 50, 0.95), (0.13060991619745732, 0.3816907481040382), rtol=1e-10
    )
    np.testing.assert_allclose(clopper_pearson(0, 50, 0.95), (0, 0.07112173646419764), rtol=1e-10)
    y, guess = np.array([1, 1, 0, 0, 0, 1, 0, 0]), np.array([0.9, 0.6, 0.4, 0.1, 0.2, 0.5, 0.3, 0.1])
    assert guess_weight(y.astype(float), guess) == pytest.approx(1.5839243498817965, rel=1e-10)
    found = assisted_share(y, guess, np.append(guess, np.linspace(0, 1, 24)), 0.95)
    expected = (0.5086436170212767, 0.25354363763873233, 0.7604606956878102)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_the_worked_interval_of_strata():
    n_wrong, m = np.array([8, 3, 1, 0]), np.array([12, 13, 12, 13])
    share = (n_wrong / m).mean()
    smoothed = (n_wrong + 0.5) / (m + 1)
    variance = ((1 - m / 250) * smoothed * (1 - smoothed) / (m - 1)).sum() / 16
    assert share == pytest.approx(0.24519230769230768, rel=1e-10)
    np.testing.assert_allclose(
        korn_graubard(share, variance, 50, 46, 0.95), (0.14640339453012985, 0.3685168627994593), atol=1e-10
    )


def test_degrees_of_freedom_count_at_both_ends():
    """Without errors, the interval is that of fewer reviews: the squared ratio of the quantiles of t."""
    ratio = (stats.t.ppf(0.975, 11) / stats.t.ppf(0.975, 10)) ** 2
    expected = clopper_pearson(0, 12 * ratio, 0.95)
    np.testing.assert_allclose(korn_graubard(0.0, 0.1, 12, 10, 0.95), expected, rtol=1e-9)
    np.testing.assert_allclose(korn_graubard(1.0, 0.1, 12, 10, 0.95), 1 - np.array(expected)[::-1], rtol=1e-9)


def test_the_assisted_interval_respects_what_was_seen():
    guess = np.tile([0.2, 0.8], 8)
    drawn, is_error = np.arange(14), np.arange(14) < 13
    found = assisted_interval(is_error, np.zeros(14, bool), guess, drawn, 0.95)
    assert found.low >= 13 / 16
    assert found.high <= 15 / 16


def test_ties_in_the_support_do_not_depend_on_the_order(noisy):
    X, candidates, truth = noisy
    X = np.repeat(X[:40], 10, axis=0)  # ten rows each with the same support from the features
    Y = np.repeat(candidates[:40], 10, axis=0)
    order = np.random.default_rng(0).permutation(400)
    rows, labels = draw_candidates(Y, 60)
    answers = np.repeat(truth[:40], 10, axis=0)[rows, labels]
    found = find_label_issues(X, Y, checked=(rows, labels, answers), kernel="linear")
    place = np.argsort(order)
    again = find_label_issues(X[order], Y[order], checked=(place[rows], labels, answers), kernel="linear")
    first, second = (issues.error_interval(method="assisted") for issues in (found, again))
    assert (first.low, first.high) == pytest.approx((second.low, second.high), abs=1e-9)


def test_a_total_adds_two_intervals():
    listed, others = exact_interval(12, 0, 50, 500, 0.975), exact_interval(1, 1, 50, 9500, 0.975)
    found = sum_intervals(0.95, listed, others)
    assert (found.n_low, found.n_high) == (listed.n_low + others.n_low, listed.n_high + others.n_high)
    assert found.share == pytest.approx((0.24 * 500 + 9500 / 49) / 10_000)
    assert (found.n_reviewed, found.n_errors, found.n_unsure, found.level) == (100, 13, 1, 0.95)


@pytest.mark.parametrize(("n_labels", "n_reviewed"), [(60, 60), (500, 40), (37, 12)])
def test_the_exact_interval_is_that_of_a_search_over_all_numbers(n_labels, n_reviewed):
    for n_errors in range(0, n_reviewed + 1, 5):
        possible = [
            k
            for k in range(n_errors, n_labels - n_reviewed + n_errors + 1)
            if stats.hypergeom.sf(n_errors - 1, n_labels, k, n_reviewed) > 0.025
            and stats.hypergeom.cdf(n_errors, n_labels, k, n_reviewed) > 0.025
        ]
        low, high = hypergeometric_interval(n_errors, n_reviewed, n_labels, 0.95)
        assert (low, high) == (possible[0], possible[-1])
        mirrored = hypergeometric_interval(n_reviewed - n_errors, n_reviewed, n_labels, 0.95)
        assert mirrored == (n_labels - high, n_labels - low)
        binomial = clopper_pearson(n_errors, n_reviewed, 0.95)
        assert low >= np.floor(binomial[0] * n_labels) - 1
        assert high <= np.ceil(binomial[1] * n_labels) + 1


def test_more_reviews_at_the_same_share_narrow_the_interval():
    widths = [
        np.subtract(*hypergeometric_interval(m // 5, m, 1000, 0.95)[::-1]) for m in (20, 50, 100, 500, 1000)
    ]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] == 0


def test_unsure_verdicts_widen_the_interval_at_both_ends():
    sure, unsure = exact_interval(10, 0, 50, 1000, 0.95), exact_interval(10, 5, 50, 1000, 0.95)
    assert (sure.n_low, sure.share) == (unsure.n_low, 0.2)
    assert unsure.n_high == exact_interval(15, 0, 50, 1000, 0.95).n_high > sure.n_high
    guess = np.random.default_rng(0).random(1000)
    is_error, is_unsure = np.arange(50) < 10, (np.arange(50) >= 10) & (np.arange(50) < 15)
    wide = assisted_interval(is_error, is_unsure, guess, np.arange(50), 0.95)
    narrow = assisted_interval(is_error, is_unsure & False, guess, np.arange(50), 0.95)
    assert wide.low == pytest.approx(narrow.low)
    assert wide.high > narrow.high


@pytest.mark.parametrize("method", ["exact", "assisted"])
def test_intervals_hold_the_true_number(method):
    rng = np.random.default_rng(0)
    n_labels, n_reviewed, n_runs = 400, 40, 600
    score = rng.random(n_labels)
    is_error = rng.random(n_labels) < 0.6 * (1 - score)
    n_held, widths = 0, []
    for _ in range(n_runs):
        drawn = rng.permutation(n_labels)[:n_reviewed]
        if method == "exact":
            found = exact_interval(int(is_error[drawn].sum()), 0, n_reviewed, n_labels, 0.9)
        else:
            found = assisted_interval(is_error[drawn], np.zeros(n_reviewed, bool), 1 - score, drawn, 0.9)
        n_held += found.n_low <= is_error.sum() <= found.n_high
        widths.append(found.high - found.low)
        assert found.n_errors <= found.n_low <= found.n_high <= n_labels - n_reviewed + found.n_errors
    assert n_held / n_runs >= 0.9 - 2 * np.sqrt(0.09 / n_runs)
    assert np.mean(widths) < 0.3


# Corrections


@pytest.mark.parametrize(
    ("alpha", "n_chosen", "estimate"), [(0.1, 0, None), (0.2, 5, 0.16), (0.3, 6, 4 / 15)]
)
def test_worked_corrections(alpha, n_chosen, estimate):
    chosen, found = correctable(OPEN, REVIEWED, IS_RIGHT, alpha)
    assert chosen.tolist() == [True] * n_chosen + [False] * (8 - n_chosen)
    assert found == (None if estimate is None else pytest.approx(estimate, rel=1e-10))


def benjamini_hochberg(score_open, score_reviewed, is_right, alpha):
    """Conformal p-values and Benjamini-Hochberg, with fractions."""
    m, n = len(score_reviewed), len(score_open)
    right = score_reviewed[is_right]
    p_values = [Fraction(1 + int((right <= s).sum()), m + 1) for s in score_open]
    ordered, alpha = sorted(p_values), Fraction(alpha).limit_denominator(100)
    passed = [k for k in range(1, n + 1) if ordered[k - 1] <= alpha * k / n]
    return [p <= ordered[passed[-1] - 1] if passed else False for p in p_values]


@pytest.mark.parametrize("seed", range(30))
def test_corrections_are_those_of_benjamini_and_hochberg(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(5, 60)), int(rng.integers(5, 30))
    # Rounded scores have ties.
    score_open, score_reviewed = np.round(rng.standard_normal(n), 1), np.round(rng.standard_normal(m), 1)
    is_right = rng.random(m) < 0.5 + 0.4 * np.tanh(score_reviewed)
    before = np.zeros(n, dtype=bool)
    for alpha in (0.05, 0.1, 0.2, 0.5):
        chosen, _ = correctable(score_open, score_reviewed, is_right, alpha)
        assert chosen.tolist() == benjamini_hochberg(score_open, score_reviewed, is_right, alpha)
        assert chosen[before].all()  # nested in alpha
        np.testing.assert_array_equal(
            correctable(np.exp(score_open), np.exp(score_reviewed), is_right, alpha)[0], chosen
        )
        before = chosen


def test_an_exact_boundary_is_not_lost_to_rounding():
    chosen, estimate = correctable(np.arange(43.0), np.full(9, 100.0), np.ones(9, bool), 0.1)
    assert chosen.all()
    assert estimate == pytest.approx(0.1)


def test_nothing_is_removed_if_all_reviewed_are_right_and_everything_if_none_is():
    assert not correctable(OPEN, np.full(20, -1.0), np.ones(20, bool), 0.5)[0].any()
    assert correctable(OPEN, REVIEWED, np.zeros(9, bool), 0.1)[0].all()
    assert not correctable(OPEN, REVIEWED, np.zeros(9, bool), 0.09)[0].any()


def test_the_share_of_mistakes_is_bounded_on_average():
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(400):
        score = rng.standard_normal(300)
        is_right = rng.random(300) < stats.norm.cdf(2 * score + 1)
        drawn = np.zeros(300, bool)
        drawn[rng.permutation(300)[:60]] = True
        chosen, _ = correctable(score[~drawn], score[drawn], is_right[drawn], 0.2)
        shares.append(is_right[~drawn][chosen].mean() if chosen.any() else 0.0)
    assert np.mean(shares) <= 0.2 + 2 * np.std(shares) / 20
    assert np.mean(shares) > 0.05  # it does remove


@pytest.mark.parametrize(
    ("n_reviewed", "expected"), [(29, (-1, 0, 1)), (50, (-1, 1, 4)), (60, (0, 1, 6)), (100, (1, 4, 12))]
)
def test_the_audit_of_a_list_of_a_thousand(n_reviewed, expected):
    found = [audit_list(0, n_reviewed, 1000, alpha, 0.05).most_right for alpha in (0.05, 0.1, 0.2)]
    assert tuple(found) == expected
    assert not audit_list(expected[2] + 1, n_reviewed, 1000, 0.2, 0.05).passes
    assert audit_list(max(expected[2], 0), n_reviewed, 1000, 0.2, 0.05).passes


# On label issues


@pytest.fixture(scope="module")
def noisy():
    """Features, candidates with wrong and missing labels, and the truth."""
    X, truth = make_pml(n_samples=400, n_features=12, n_informative=6, n_labels=5, noise=0.0, random_state=0)
    rng = np.random.default_rng(1)
    candidates = np.where(rng.random(truth.shape) < 0.15, 1, truth)
    candidates[(rng.random(truth.shape) < 0.1) & (truth == 1)] = 0
    return X, candidates, truth


def reviewed(noisy, n=50):
    X, candidates, truth = noisy
    rows, labels = draw_candidates(candidates, n)
    return find_label_issues(X, candidates, checked=(rows, labels, truth[rows, labels]), which="both")


def test_the_interval_of_a_table_holds_its_number_of_wrong_labels(noisy):
    _, candidates, truth = noisy
    issues = reviewed(noisy)
    n_wrong = int(((candidates == 1) & (truth == 0)).sum())
    exact, assisted = issues.error_interval(), issues.error_interval(method="assisted")
    assert exact.n_low <= n_wrong <= exact.n_high
    assert assisted.n_low <= n_wrong <= assisted.n_high
    assert assisted.high - assisted.low < exact.high - exact.low
    summary = issues.label_summary()
    shown = summary.dropna(subset=["low"])
    assert len(shown)
    assert (shown["low"] <= shown["high"]).all()


def test_removals_are_unreviewed_nested_and_mostly_wrong(noisy):
    _, candidates, truth = noisy
    issues = reviewed(noisy, 100)
    small, large = issues.removable(0.1), issues.removable(0.3)
    assert 0 < len(small) <= len(large)
    assert set(zip(small.rows, small.labels, strict=True)) <= set(zip(large.rows, large.labels, strict=True))
    assert (candidates[large.rows, large.labels] == 1).all()
    assert truth[large.rows, large.labels].mean() < 0.4
    review = issues.review
    seen = set(zip(review.rows, review.labels, strict=True))
    assert not seen & set(zip(large.rows, large.labels, strict=True))
    assert issues.audit_list(0.9).passes


def test_a_second_draw_is_from_the_least_supported_and_leaves_out_the_first(noisy):
    X, candidates, truth = noisy
    issues = reviewed(noisy)
    review = issues.draw(40, least_supported=0.2)
    new = review.open
    assert len(new) == 40
    assert len(set(zip(review.rows, review.labels, strict=True))) == 90
    limit = np.quantile(issues.support[issues.rows, issues.labels], 0.2)
    assert issues.support[review.rows[new], review.labels[new]].max() <= limit + 1e-9
    again = find_label_issues(
        X, candidates, checked=review.answer(truth[review.rows[new], review.labels[new]])
    )
    found = again.removable(0.2)
    assert (found.n_attempts, found.n_reviewed) == (2, 40)
    # The interval is still that of the first draw.
    assert again.error_interval() == issues.error_interval()


def test_two_hundred_reviews_are_split_between_ranking_and_calibration(noisy):
    found = reviewed(noisy, 220).removable(0.2)
    assert found.n_reviewed == 110


def test_missing_labels_come_first_and_can_be_added(noisy):
    X, candidates, truth = noisy
    issues = find_label_issues(X, candidates, which="missing")
    is_missing = truth[issues.rows, issues.labels] == 1
    assert (candidates[issues.rows, issues.labels] == 0).all()
    assert issues.n_labels == (candidates == 0).sum()
    assert is_missing[:30].mean() > 3 * is_missing.mean()
    review = issues.draw(50, n_suggested=60)
    answers = truth[review.rows, review.labels]
    found = find_label_issues(X, candidates, which="missing", checked=review.answer(answers))
    interval = found.error_interval()
    n_in_list = int(is_missing[: interval.n_labels].sum())
    assert interval.n_low <= n_in_list <= interval.n_high
    added = found.addable(0.5)
    assert (candidates[added.rows, added.labels] == 0).all()
    with pytest.raises(ValueError, match="addable"):
        found.removable()
    with pytest.raises(ValueError, match="candidates"):
        reviewed(noisy).addable()


@pytest.mark.parametrize(("n_rows", "expected"), [(400, 113), (4000, 500)])
def test_missing_labels_are_drawn_from_a_tenth_and_at_most_500(noisy, n_rows, expected):
    X, candidates, _ = noisy
    X, candidates = np.tile(X, (n_rows // 400, 1)), np.tile(candidates, (n_rows // 400, 1))
    (draw,) = find_label_issues(X, candidates, which="missing", kernel="linear").draw().draws
    assert draw.n_suggested == min(expected, (candidates == 0).sum() // 10) == expected
    assert draw.size == 50


def test_the_total_of_missing_labels_needs_reviews_of_the_others(noisy):
    X, candidates, truth = noisy
    n_missing, n_absent = int(((candidates == 0) & (truth == 1)).sum()), int((candidates == 0).sum())

    def reviewed_as(review):
        answers = truth[review.rows[review.open], review.labels[review.open]]
        return find_label_issues(X, candidates, which="missing", checked=review.answer(answers))

    once = reviewed_as(find_label_issues(X, candidates, which="missing").draw())
    total, listed = once.total_interval(), once.error_interval()
    assert total.n_labels == n_absent
    assert total.n_low == listed.n_low <= n_missing <= total.n_high
    assert total.n_high == listed.n_high + n_absent - listed.n_labels
    review = once.draw(is_unlisted=True)
    new, list_of = review.open, set(zip(once.rows[:113], once.labels[:113], strict=True))
    assert not list_of & set(zip(review.rows[new], review.labels[new], strict=True))
    assert (candidates[review.rows[new], review.labels[new]] == 0).all()
    twice = reviewed_as(review)
    assert twice.error_interval() == listed
    assert len(twice.addable(0.5)) == len(once.addable(0.5))
    found = twice.total_interval()
    assert found.n_low <= n_missing <= found.n_high < total.n_high / 2
    assert found.n_labels == n_absent
    with pytest.raises(ValueError, match="error_interval"):
        reviewed(noisy).total_interval()


def test_a_short_draw_before_a_long_one_does_not_count(noisy):
    X, candidates, truth = noisy
    first = reviewed(noisy, 9)
    assert first.complete_draws() == []
    review = first.draw(40, least_supported=0.2)
    answers = truth[review.rows[review.open], review.labels[review.open]]
    issues = find_label_issues(X, candidates, checked=review.answer(answers))
    found = issues.removable(0.2)
    assert (found.n_reviewed, found.n_attempts) == (40, 1)
    assert describe_correction(issues, found)
    with pytest.raises(ValueError, match="at least 10"):
        issues.error_interval()


def test_incomplete_draws_promise_nothing(noisy):
    X, candidates, _ = noisy
    review = find_label_issues(X, candidates).draw(50)
    issues = find_label_issues(X, candidates, checked=review)
    for ask in (issues.error_interval, issues.removable, issues.audit_list):
        with pytest.raises(ValueError, match="0 of 50"):
            ask()
    with pytest.raises(ValueError, match="No candidate label was reviewed"):
        find_label_issues(X, candidates).removable()


def test_few_or_chosen_reviews_promise_nothing(noisy):
    X, candidates, truth = noisy
    with pytest.raises(ValueError, match="at least 10"):
        reviewed(noisy, 9).error_interval()
    issues = find_label_issues(X, candidates)
    rows, labels = issues.rows[:60], issues.labels[:60]
    with pytest.warns(UserWarning, match="not a random draw"):
        worst = find_label_issues(X, candidates, checked=(rows, labels, truth[rows, labels]))
    for ask in (worst.error_interval, worst.removable):
        with pytest.raises(ValueError, match="not a random draw"):
            ask()
    assert "low" not in worst.label_summary()
    with pytest.warns(UserWarning, match="not a random draw"):
        found = audit(X, candidates, checked=(rows, labels, truth[rows, labels]), fast=True)
    assert "interval" not in found.to_dict()
    assert "not a random draw" in found.summary()


@pytest.mark.parametrize("alpha", [0, 1, -1, np.nan])
def test_bounds_are_between_0_and_1(noisy, alpha):
    issues = reviewed(noisy)
    for ask in (issues.removable, issues.audit_list):
        with pytest.raises(ValueError, match="alpha"):
            ask(alpha)
    with pytest.raises(ValueError, match="level"):
        issues.error_interval(level=alpha)
    with pytest.raises(ValueError, match="method"):
        issues.error_interval(method="normal")


def test_one_label_is_enough():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 3))
    truth = (X[:, [0]] > 0).astype(int)
    candidates = np.maximum(truth, rng.random((120, 1)) < 0.2).astype(int)
    rows, labels = draw_candidates(candidates, 40)
    issues = find_label_issues(X, candidates, checked=(rows, labels, truth[rows, labels]))
    assert issues.error_interval().n_low <= (candidates - truth).sum() <= issues.error_interval().n_high


def test_which_must_be_known(noisy):
    with pytest.raises(ValueError, match="which"):
        find_label_issues(*noisy[:2], which="all")
