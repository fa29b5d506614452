"""EvidenceSelector: worked example, direct computation and edge cases."""

import logging
import tracemalloc
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from labelsieve import ColumnSelector, EvidenceSelector, choose_size
from labelsieve._blocks.blocks import MemoryBlocks
from labelsieve._numerics.candidate_precision import ridge_precision
from labelsieve._row_problem import check_rows, in_memory
from labelsieve.datasets import make_pml
from labelsieve.methods import evidence as module
from labelsieve.methods._evidence.choice import best_pair, most_stable, size_grid
from labelsieve.methods._evidence.passes import products_of_columns, summarize
from labelsieve.methods._evidence.problem import FormedGram, Rows
from labelsieve.methods.evidence import BUDGET

REDUNDANCIES = (np.inf, 1.0, 0.0)

# Six rows, four features and three labels, small enough to compute by hand.
X_SMALL = np.array(
    [[0, 3, 1, 2], [1, 1, 0, 2], [4, 2, 0, 1], [5, 2, 1, 0], [2, 0, 1, 1], [3, 3, 0, 0]], float
)
Y_SMALL = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 1], [1, 0, 1], [0, 1, 0]], float)


def solve(X, Y, n_selected, redundancy=None, **options):
    """Solve with the defaults. Return the order of the features and the result."""
    result = solve_rows(in_memory(X, Y), n_selected, redundancy, **options)
    return np.argsort(-result.scores, kind="stable"), result


def solve_blocks(X, Y, sizes, n_selected, **options):
    """Solve with the rows in several blocks."""
    cuts = pairwise(np.cumsum([0, *sizes]))
    rows = check_rows(MemoryBlocks([{"X": X[a:b], "Y": Y[a:b]} for a, b in cuts]))
    return solve_rows(rows, n_selected, **options)


def solve_rows(rows, n_selected, redundancy=None, *, folds=None, budget=BUDGET, **options):
    """Solve for rows in blocks. If the number of features or the redundancy is None, it is chosen."""
    size, redundancy = ("auto" if value is None else value for value in (n_selected, redundancy))
    selector = EvidenceSelector(size, redundancy=redundancy, **options)
    return selector._solve_rows(rows, folds=folds, budget=budget)


def nothing():
    """Likely features of a search, which are unknown."""
    return np.empty(0, dtype=int)


def problem(seed, n_samples=120, n_features=15, n_labels=6, density=1.0):
    """Make correlated features, and labels that depend on some of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features)) @ (
        np.eye(n_features) + 0.3 * rng.normal(size=(n_features,) * 2)
    )
    X *= rng.random(X.shape) < density
    Y = (X[:, :4] @ rng.normal(size=(4, n_labels)) + rng.normal(size=(n_samples, n_labels)) > 1).astype(float)
    return X, Y


def standardized(M):
    deviation = M.std(axis=0)
    return (M - M.mean(axis=0)) / np.where(deviation > 1e-12 * np.abs(M).max(axis=0), deviation, np.inf)


def direct(X, Y, redundancy, n_steps, threshold=4.0, ridge=1.0):
    """Run the greedy search from its definition, with regressions on the selected features at every step."""
    n = len(X)
    Z, T = standardized(X), standardized(Y[:, (Y.min(axis=0) < 1) & (Y.max(axis=0) > 0)])
    G, C = Z.T @ Z + ridge * n * np.eye(X.shape[1]), Z.T @ T

    def evidence(j, S):
        a, c = G[j, j], C[j]
        if S:
            weights = np.linalg.solve(G[np.ix_(S, S)], G[S, j])
            a, c = a - G[j, S] @ weights, c - weights @ C[S]
        e = (1 + ridge) * c**2 / max(a, 1e-10)
        return np.maximum(e - threshold, 0).sum() + 1e-6 * e.sum()

    alone = np.array([evidence(j, []) for j in range(X.shape[1])])
    if np.isinf(redundancy):
        return np.argsort(-alone, kind="stable"), alone, alone
    S, reached = [], np.zeros(X.shape[1])
    while True:
        free = [j for j in range(X.shape[1]) if j not in S]
        for j in free:
            reached[j] = evidence(j, S) + redundancy * alone[j]
        if len(S) == n_steps:
            return np.array(S + sorted(free, key=lambda j: -reached[j])), reached, alone
        S.append(max(free, key=lambda j: reached[j]))


class TestWorkedExample:
    @pytest.mark.parametrize(
        ("redundancy", "order", "criterion"),
        [
            (np.inf, [2, 0, 3, 1], [2.0000073333333335, 0.6285789142857147, 5e-06, 2.7804878048780484e-06]),
            (
                1.0,
                [2, 0, 3, 1],
                [4.000014666666667, 1.0979578593931139, 6.605738976061118e-6, 5.023961335180661e-6],
            ),
            (
                0.0,
                [2, 0, 1, 3],
                [2.0000073333333335, 0.4693789451073992, 2.386937159406737e-06, 1.4622753469569947e-06],
            ),
        ],
    )
    def test_order_and_criterion(self, redundancy, order, criterion):
        found, result = solve(X_SMALL, Y_SMALL, 4, redundancy)
        assert found.tolist() == order
        np.testing.assert_allclose(result.extra["criterion"][order], criterion, rtol=0, atol=1e-12)

    def test_redundancy_is_chosen_by_the_held_out_rows(self):
        order, result = solve(X_SMALL, Y_SMALL, 2, folds=np.arange(6) % 3)
        assert result.extra["redundancy"] == 0
        assert order.tolist() == [2, 0, 1, 3]
        expected = [2.0000073333333335, 0.4693789451073992, 2.386937159406737e-06, 1.6057389760611186e-06]
        np.testing.assert_allclose(result.extra["criterion"][order], expected, rtol=0, atol=1e-12)
        # Precisions of the rows for inf, 1 and 0. Fold 0 contains rows 0 and 3, and so on.
        by_row = np.array(
            [
                [1 / 3, 1 / 3, 1],
                [7 / 12, 1, 1],
                [5 / 6, 5 / 6, 5 / 6],
                [1, 1, 1],
                [1, 1, 1],
                [1 / 3, 1 / 2, 1 / 2],
            ]
        )
        np.testing.assert_allclose(
            result.extra["cv_scores"], (by_row[:3] + by_row[3:]) / 2, rtol=0, atol=1e-12
        )
        np.testing.assert_allclose(result.extra["cv_gap"], [5 / 24, 1 / 9, 0], rtol=0, atol=1e-12)
        # 1.64 standard errors are at least 0.17, which is more than 1% of the best mean, 8/9.
        np.testing.assert_allclose(result.extra["cv_allowed"], [0.08 / 9, 0.08 / 9, 0], rtol=0, atol=1e-12)

    def test_ties_choose_the_most_stable_redundancy_and_zero_tolerance_the_best(self):
        folds = np.arange(6) % 3
        assert solve(X_SMALL, Y_SMALL, 1, folds=folds)[1].extra["redundancy"] == np.inf
        assert solve(X_SMALL, Y_SMALL, 2, folds=folds, tolerance=0.0)[1].extra["redundancy"] == 0


class TestAgainstTheDirectComputation:
    @pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.csc_matrix])
    @pytest.mark.parametrize("ridge", [1.0, 0.1, 0.0])
    @pytest.mark.parametrize("redundancy", [np.inf, 1.0, 0.3, 0.0])
    def test_order_criterion_and_evidence(self, redundancy, ridge, container):
        for seed in range(3):
            X, Y = problem(seed, density=0.4)
            X[:, 6], Y[:, 2] = 3.0, 1.0
            order, reached, alone = direct(X, Y, redundancy, 7, threshold=2.5, ridge=ridge)
            found, result = solve(container(X), Y, 7, redundancy, threshold=2.5, ridge=ridge)
            assert found.tolist() == order.tolist()
            np.testing.assert_allclose(result.extra["evidence"], alone, rtol=1e-9)
            np.testing.assert_allclose(result.extra["criterion"], reached, rtol=1e-9)

    @pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
    def test_cross_validation_equals_fits_to_the_inner_training_rows(self, container):
        X, Y = problem(1, n_samples=70, density=0.5)
        Y[5:, 4] = 0  # varies in some training parts only
        Y[::7] = 0  # rows without candidates
        folds = np.random.default_rng(3).permutation(70) % 4
        precision = np.full((70, 3), np.nan)
        for fold in range(4):
            train, test = folds != fold, folds == fold
            for i, redundancy in enumerate(REDUNDANCIES):
                order = direct(X[train], Y[train], redundancy, 5)[0]
                precision[test, i] = ridge_precision(X[train], Y[train], X[test], Y[test], order, [5])[:, 0]
        for form in (True, False):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(module, "is_gram_cheaper", lambda *_, form=form, **__: form)
                _, result = solve(container(X), Y, 5, folds=folds, n_folds=4)
            expected = [np.nanmean(precision[folds == fold], axis=0) for fold in range(4)]
            np.testing.assert_allclose(result.extra["cv_scores"], expected, atol=1e-12)
            scored = precision[~np.isnan(precision[:, 0])]
            gap = scored.mean(axis=0).max() - scored.mean(axis=0)
            np.testing.assert_allclose(result.extra["cv_gap"], gap, atol=1e-12)

    def test_the_size_curve_equals_a_fit_at_every_size(self):
        X, Y = problem(2, n_samples=60)
        folds = np.arange(60) % 5
        _, result = solve(X, Y, None, folds=folds)
        curve = result.extra["size_curve"]
        assert curve.sizes.tolist() == size_grid(15, 1000).tolist() == [1, 2, 3, 4, 5, 6, 7, 9, 15]
        scores = np.empty((3, 5, 9))
        for i, redundancy in enumerate(REDUNDANCIES):
            for fold in range(5):
                train, test = folds != fold, folds == fold
                order = direct(X[train], Y[train], redundancy, 9)[0]
                rows = ridge_precision(X[train], Y[train], X[test], Y[test], order, curve.sizes)
                scores[i, fold] = np.nanmean(rows, axis=0)
        mean = scores.mean(axis=1)
        best = np.argwhere(mean >= mean.max() - 1e-12)
        chosen, size = min(best.tolist(), key=lambda pair: (pair[1], pair[0]))
        np.testing.assert_allclose(curve.scores, scores[chosen], atol=1e-12)
        assert result.n_selected == curve.sizes[size]
        assert result.extra["redundancy"] == REDUNDANCIES[chosen]
        np.testing.assert_allclose(result.extra["cv_scores"], scores[:, :, size].T, atol=1e-12)
        np.testing.assert_allclose(result.extra["cv_gap"], mean[chosen, size] - mean[:, size], atol=1e-12)


class TestWaysToTheGramMatrix:
    @pytest.mark.parametrize("n_selected", [6, None])
    @pytest.mark.parametrize("seed", range(3))
    def test_full_on_demand_and_sparse_products_agree(self, seed, n_selected, monkeypatch):
        X, Y = problem(seed, n_samples=90, n_features=40, density=0.3)
        found = []
        for features, form in ((X, True), (X, False), (sp.csr_matrix(X), False), (sp.csc_array(X), False)):
            monkeypatch.setattr(module, "is_gram_cheaper", lambda *_, form=form, **__: form)
            found.append(solve(features, sp.csr_matrix(Y), n_selected))
        (order, expected), *others = found
        for other, result in others:
            assert other.tolist() == order.tolist()
            for name in ("evidence", "criterion", "cv_scores", "redundancy"):
                np.testing.assert_allclose(result.extra[name], expected.extra[name], rtol=1e-9)

    def test_a_feature_that_varies_only_in_held_out_rows_keeps_its_precision(self):
        X, Y = problem(4)
        X[0, 3], X[1, 4] = 1e9, 1e13  # row 0 and 1 are held out
        X[2:, 4] = 1.0
        held_out = np.arange(120) < 30
        Z = standardized(X[30:])
        for form in (True, False):
            rows = Rows(in_memory(X, Y), held_out.astype(int))
            rows.whole(form_gram=form)
            gram = rows.without(1).gram
            assert isinstance(gram, FormedGram) == form
            np.testing.assert_allclose(next(gram.blocks([np.arange(15)])), Z.T @ Z, atol=1e-9)
            np.testing.assert_allclose(gram.column(3, nothing), Z.T @ Z[:, 3], atol=1e-9)
            np.testing.assert_array_equal(gram.column(4, nothing), 0)


class TestInvariances:
    @pytest.mark.parametrize("redundancy", REDUNDANCIES)
    def test_order_of_rows_and_scale_of_columns_do_not_matter(self, redundancy):
        X, Y = problem(6)
        rng = np.random.default_rng(0)
        order, expected = solve(X, Y, 6, redundancy)
        rows = rng.permutation(len(X))
        for other in (
            solve(X[rows], Y[rows], 6, redundancy),
            solve(X * 10.0 ** rng.integers(-6, 6, size=15), Y, 6, redundancy),
            solve(-X + 3, Y, 6, redundancy),
        ):
            assert other[0].tolist() == order.tolist()
            np.testing.assert_allclose(other[1].extra["criterion"], expected.extra["criterion"], rtol=1e-9)

    @pytest.mark.parametrize("n_selected", [6, None])
    def test_columns_and_labels_can_be_permuted(self, n_selected):
        X, Y = problem(7)
        rng = np.random.default_rng(0)
        order, expected = solve(X, Y, n_selected)
        columns, labels = rng.permutation(15), rng.permutation(6)
        permuted, result = solve(X[:, columns], Y[:, labels], n_selected)
        assert columns[permuted].tolist() == order.tolist()
        assert result.extra["redundancy"] == expected.extra["redundancy"]
        np.testing.assert_allclose(result.extra["evidence"], expected.extra["evidence"][columns], rtol=1e-9)

    def test_extreme_scales_change_nothing(self):
        X, Y = problem(9)
        order, expected = solve(X, Y, 6)
        # Powers of two, because other factors round the values.
        for exponent in (-900, 900):
            found, result = solve(np.ldexp(X, exponent), Y, 6)
            assert found.tolist() == order.tolist()
            np.testing.assert_array_equal(result.extra["criterion"], expected.extra["criterion"])
            result = solve_blocks(np.ldexp(X, exponent), Y, (50, 70), 6)
            np.testing.assert_array_equal(result.scores, expected.scores)
        assert solve(sp.csr_matrix(X * 1e300), Y, 6)[0].tolist() == order.tolist()


class TestOddData:
    def test_constant_features_come_last_by_column(self):
        X, Y = problem(10)
        X[:, [9, 2]] = [4.0, 0.0]
        for n_selected, redundancy in ((5, None), (14, 0.0), (15, 1.0), (3, np.inf)):
            order, result = solve(X, Y, n_selected, redundancy)
            assert order[-2:].tolist() == [2, 9]
            np.testing.assert_array_equal(result.extra["evidence"][[2, 9]], 0)

    def test_a_copy_keeps_part_of_its_evidence(self):
        X, Y = problem(11)
        for ridge, share in ((1.0, 1 / 3), (0.1, 1 / 21)):
            best = np.argmax(solve(X, Y, 1, 0.0, threshold=0.0)[1].scores)
            twins = np.column_stack([X, X[:, best]])
            order, result = solve(twins, Y, 1, 0.0, threshold=0.0, ridge=ridge)
            evidence, criterion = result.extra["evidence"], result.extra["criterion"]
            assert order[0] == best  # of equal features the first column
            assert criterion[15] == pytest.approx(share * evidence[15], rel=1e-9)

    @pytest.mark.parametrize("ridge", [0.0, 1.0])
    @pytest.mark.parametrize("redundancy", [0.0, 1.0])
    def test_repeated_features_never_divide_by_zero(self, redundancy, ridge):
        X, Y = problem(12, n_samples=10)
        order, result = solve(np.hstack([X, X, X]), Y, 45, redundancy, ridge=ridge)
        assert sorted(order) == list(range(45))
        assert np.isfinite(result.extra["criterion"]).all()

    @pytest.mark.parametrize("copies", [2, 7])
    def test_equal_features_are_selected_in_column_order(self, copies):
        X, Y = problem(13, n_features=9, n_labels=11)
        for redundancy in REDUNDANCIES:
            order, _ = solve(np.tile(X, copies), Y, 5, redundancy)
            for j in range(9):
                places = [order.tolist().index(j + 9 * copy) for copy in range(copies)]
                assert places == sorted(places)

    def test_features_after_the_last_step_are_ranked_by_their_criterion(self):
        X, Y = problem(20)
        order, reached, _ = direct(X, Y, 0.0, 4)
        found, result = solve(X, Y, 9, 0.0, max_steps=4)
        assert found.tolist() == order.tolist()
        np.testing.assert_allclose(result.extra["criterion"], reached, rtol=1e-9)
        assert (np.diff(result.extra["criterion"][found[4:]]) <= 0).all()

    @pytest.mark.parametrize("labels", [np.ones((20, 3)), np.eye(20)[:, :0]])
    @pytest.mark.parametrize("n_selected", [2, None])
    @pytest.mark.parametrize("redundancy", [None, *REDUNDANCIES])
    def test_constant_labels_keep_the_column_order(self, labels, n_selected, redundancy):
        X = np.random.default_rng(0).normal(size=(20, 5))
        order, result = solve(X, labels, n_selected, redundancy)
        assert order.tolist() == [0, 1, 2, 3, 4]
        assert result.extra["redundancy"] == (np.inf if redundancy is None else redundancy)

    @pytest.mark.parametrize(
        ("X", "Y"), [(np.ones((8, 3)), np.eye(8)[:, :4]), (np.eye(8)[:, :3], np.ones((8, 2)))]
    )
    def test_missing_evidence_gives_a_warning(self, X, Y):
        with pytest.warns(UserWarning, match="no evidence") as caught:
            assert EvidenceSelector().fit(X, Y).ranking_.tolist() == [1, 2, 3]
        assert caught[0].filename == __file__  # where fit was called

    @pytest.mark.parametrize(
        ("shape", "n_selected", "n_folds", "expected"),
        [((5, 15), 3, 2, 3), ((9, 15), 3, 5, 3), ((40, 15), 15, 3, 15), ((5, 15), None, 3, 7)],
        ids=["few rows", "few rows for the folds", "all features", "few rows, no size"],
    )
    def test_redundancy_needs_enough_rows_and_features_to_be_chosen(
        self, shape, n_selected, n_folds, expected
    ):
        X, Y = problem(17, n_samples=40)
        _, result = solve(X[: shape[0]], Y[: shape[0]], n_selected, n_folds=n_folds)
        assert (result.n_selected or n_selected, result.extra["redundancy"]) == (expected, 1)
        assert not {"cv_scores", "size_curve"} & set(result.extra)

    def test_the_smallest_table(self):
        X, Y = problem(17)
        # Seven rows give three folds, one feature is selected, and a single label always ranks first.
        assert solve(X[:7], Y[:7], None)[1].extra["size_curve"].scores.shape[0] == 3
        for n_selected in (1, None):
            assert solve(X[:, :1], Y, n_selected)[1].n_selected == 1
        assert solve(X, Y[:, :1], 5)[1].extra["redundancy"] == np.inf


class TestMemory:
    def test_rare_labels_are_dropped_if_memory_is_short(self):
        X, Y = problem(21)
        Y[:, 3] = np.arange(120) < 4
        _, without = solve(X, np.delete(Y, 3, axis=1), 4, 0.0)
        _, enough = solve(X, Y, 4, 0.0, budget=8 * 15 * (2 * 6 + 4))
        _, short = solve(X, Y, 4, 0.0, budget=8 * 15 * (2 * 6 + 4) - 1)
        assert not np.allclose(enough.extra["evidence"], without.extra["evidence"])
        np.testing.assert_allclose(short.extra["evidence"], without.extra["evidence"])

    @pytest.mark.parametrize(
        ("redundancy", "n_products"), [(0.0, 16), (None, 22), (np.inf, 6)], ids=["steps", "folds", "filter"]
    )
    def test_too_large_problems_raise(self, redundancy, n_products):
        X, Y = problem(22)
        needed = 8 * 15 * n_products
        assert len(solve(X, Y, 4, redundancy, budget=needed)[0]) == 15
        with pytest.raises(ValueError, match=f"{needed} bytes"):
            solve(X, Y, 4, redundancy, budget=needed - 1)

    def test_sparse_features_are_never_made_dense(self):
        rng = np.random.default_rng(0)
        # 1500 x 60000 would need 720 MB as a dense matrix, and all pairs 29 GB.
        words = rng.integers(60_000, size=(1500, 6))
        X = sp.csr_matrix((rng.random(9000), words.ravel(), np.arange(0, 9001, 6)), shape=(1500, 60_000))
        X.sum_duplicates()
        Y = (rng.random((1500, 3)) < 0.3).astype(float)
        tracemalloc.start()
        try:
            solve(X, Y, 8)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 60e6


class TestSelector:
    def test_attributes_of_a_choice_exist_only_after_a_choice(self):
        X, Y = problem(25)
        selector = EvidenceSelector("auto").fit(X, Y)
        assert selector.n_features_ == selector.size_curve_.best == selector.get_support().sum()
        assert selector.size_curve_.scores.shape == (5, len(selector.size_curve_.sizes))
        assert selector.cv_scores_.shape == (5, 3)
        selector.set_params(n_features_to_select=4).fit(X, Y)
        assert not hasattr(selector, "size_curve_")
        shapes = [getattr(selector, f"cv_{name}_").shape for name in ("scores", "gap", "allowed")]
        assert shapes == [(3, 3), (3,), (3,)]
        selector.set_params(redundancy=1).fit(X, Y)
        assert not any(name.startswith("cv_") for name in vars(selector))
        selector.set_params(n_features_to_select="auto").fit(X, Y)
        assert selector.redundancy_ == 1
        assert selector.size_curve_.best == selector.n_features_
        assert not hasattr(selector, "cv_scores_")
        selector.set_params(n_folds=7).fit(X, Y)
        assert selector.size_curve_.scores.shape[0] == 7

    def test_the_seed_affects_only_the_folds(self):
        X, Y = problem(26)
        selector = EvidenceSelector(4, random_state=1).fit(X, Y)
        folds = np.random.default_rng(1).permutation(120) % 3
        np.testing.assert_array_equal(selector.cv_scores_, solve(X, Y, 4, folds=folds)[1].extra["cv_scores"])
        fixed = (EvidenceSelector(4, redundancy=0.5, random_state=seed).fit(X, Y) for seed in (0, 1))
        first, second = (selector.criterion_ for selector in fixed)
        np.testing.assert_array_equal(first, second)

    def test_progress_is_logged(self, caplog):
        X, Y = problem(28)
        with caplog.at_level(logging.INFO, "labelsieve"):
            EvidenceSelector(2, redundancy="auto", tolerance=0, verbose=1).fit(X, Y)
        messages = [record.getMessage() for record in caplog.records]
        assert messages[:3] == [f"inner fold {fold} of 3" for fold in (1, 2, 3)]


class TestChoice:
    folds = np.arange(4) % 2

    def test_rounding_errors_do_not_decide(self):
        precision = np.full((4, 3), [0.3, 0.1 + 0.2, 0.2])
        assert 0.1 + 0.2 > 0.3
        precision = summarize(precision[:, :, None], self.folds, 2)
        choice = most_stable(precision, REDUNDANCIES, 5, tolerance=0.0)
        assert (choice.redundancy, choice.n_selected) == (np.inf, 5)
        pair = best_pair(precision, REDUNDANCIES, np.array([5]))
        assert (pair.redundancy, pair.n_selected) == (np.inf, 5)

    def test_ties_choose_the_smaller_size_then_the_more_stable_redundancy(self):
        precision = np.full((4, 3, 3), 0.5)
        precision[:, 1, 1] = precision[:, 2, 1] = precision[:, 0, 2] = 0.9
        choice = best_pair(summarize(precision, self.folds, 2), REDUNDANCIES, np.array([2, 4, 8]))
        assert (choice.redundancy, choice.n_selected) == (1, 4)

    def test_the_loss_for_stability_is_at_most_the_standard_error(self):
        rng = np.random.default_rng(0)
        best = 0.5 + 0.1 * rng.random(1000)
        # A loss of 0.001 in every row is significant, but not a mean loss of 0.001.
        surely, unsurely = best - 0.001, best - 0.001 + 0.05 * np.tile([1, -1], 500)
        folds = np.arange(1000) % 3
        for worse, expected in ((surely, 0.0), (unsurely, np.inf)):
            precision = summarize(np.column_stack([worse, best - 0.3, best])[:, :, None], folds, 3)
            choice = most_stable(precision, REDUNDANCIES, 5, tolerance=1.64)
            assert choice.redundancy == expected
            np.testing.assert_allclose(choice.attributes["cv_gap"], [0.001, 0.3, 0], atol=1e-12)
        assert choice.attributes["cv_allowed"][0] == pytest.approx(1.64 * 0.05 / np.sqrt(1000))

    def test_rows_without_precision_do_not_count(self):
        precision = np.array([[np.nan] * 3, [0.4, 0.5, 0.6], [np.nan] * 3, [np.nan] * 3])[:, :, None]
        found = summarize(precision, np.array([0, 1, 1, 2]), 3)
        choice = most_stable(found, REDUNDANCIES, 5, tolerance=1.64)
        assert choice.redundancy == 0
        np.testing.assert_array_equal(choice.attributes["cv_scores"], [[0, 0, 0], [0.4, 0.5, 0.6], [0, 0, 0]])
        found = summarize(precision[:1], np.array([0]), 1)
        assert most_stable(found, REDUNDANCIES, 5, tolerance=0.0).redundancy == np.inf


def test_the_grid_of_sizes():
    assert size_grid(1, 1000).tolist() == [1]
    assert size_grid(2, 1000).tolist() == [1, 2]
    assert size_grid(100, 1000).tolist() == [1, 2, 3, 4, 6, 9, 14, 20, 29, 41, 60, 100]
    assert size_grid(5000, 1000)[-2:].tolist() == [3000, 5000]
    assert size_grid(5001, 1000)[-2:].tolist() == [534, 1000]
    assert size_grid(5001, 9000)[-1] == 3001


class TestRowsInBlocks:
    @pytest.mark.parametrize("container", [np.asarray, np.float32, sp.csr_matrix])
    @pytest.mark.parametrize("n_selected", [6, None])
    @pytest.mark.parametrize("form", [True, False])
    def test_several_blocks_give_the_result_of_one(self, form, n_selected, container, monkeypatch):
        monkeypatch.setattr(module, "is_gram_cheaper", lambda *_, **__: form)
        X, Y = problem(3, n_features=40, density=0.4)
        X[:, 6], Y[:, 2], Y[:40, 1] = 3.0, 1.0, 0
        X, Y = container(X), sp.csr_matrix(Y)
        _, expected = solve(X, Y, n_selected)
        for sizes in ((17,) * 7 + (1,), (1, 60, 59), (120,)):
            result = solve_blocks(X, Y, sizes, n_selected)
            np.testing.assert_array_equal(result.scores, expected.scores)
            assert result.n_selected == expected.n_selected
            for name, value in expected.extra.items():
                pair = (result.extra[name], value)
                found, value = (part.scores for part in pair) if name == "size_curve" else pair
                np.testing.assert_allclose(found, value, rtol=1e-9, atol=1e-12)

    def test_a_pass_prefetches_likely_columns(self, monkeypatch):
        X, Y = problem(5, n_samples=200, n_features=300)
        asked = []
        visit = MemoryBlocks.fold

        def count(rows, function, *shared, **options):
            if function is products_of_columns:
                asked.append(shared[2].tolist())
            return visit(rows, function, *shared, **options)

        monkeypatch.setattr(MemoryBlocks, "fold", count)
        monkeypatch.setattr(module, "is_gram_cheaper", lambda *_, **__: False)
        solve_blocks(X, Y, (100, 100), 40, tolerance=0.0)
        in_blocks = asked.copy()
        asked.clear()
        solve(X, Y, 40, tolerance=0.0)
        # In memory, columns are computed one by one, each once for all searches in all folds.
        assert {len(features) for features in asked} == {1}
        needed = {feature for features in asked for feature in features}
        assert len(needed) == len(asked) > 64
        # In blocks, every pass except the last fetches 64 new columns.
        fetched = [feature for features in in_blocks for feature in features]
        assert {len(features) for features in in_blocks[:-1]} == {64}
        assert len(fetched) == len(set(fetched))
        assert needed <= set(fetched)
        assert len(in_blocks) < len(asked) / 10

    def test_a_small_cache_keeps_the_most_recently_used_columns(self, monkeypatch):
        monkeypatch.setattr("labelsieve.methods._evidence.problem._KEPT", 3 * 15 * 4)
        monkeypatch.setattr(module, "is_gram_cheaper", lambda *_, **__: False)
        X, Y = problem(5)
        _, expected = solve(X, Y, 8)
        np.testing.assert_array_equal(solve_blocks(X, Y, (60, 60), 8).scores, expected.scores)


# Features to keep, and evidence by label


@pytest.mark.parametrize("redundancy", ["auto", 0.0, 1.0, np.inf])
def test_kept_features_are_selected_first_and_the_others_given_them(redundancy):
    X, Y = make_pml(n_samples=150, n_features=12, n_informative=4, shuffle=False, random_state=0)
    frame = pd.DataFrame(X).add_prefix("f")
    selector = EvidenceSelector(5, keep=["f11", 9], redundancy=redundancy).fit(frame, Y)
    assert set(np.flatnonzero(selector.ranking_ <= 2)) == {9, 11}
    assert selector.get_support()[[9, 11]].all()
    assert selector.get_support().sum() == 5
    if redundancy == np.inf:
        plain = EvidenceSelector(3, redundancy=np.inf).fit(X, Y)
        assert set(selector.get_support(indices=True)) == {9, 11, *plain.get_support(indices=True)}


def test_a_kept_copy_makes_its_original_redundant():
    X, Y = make_pml(n_samples=200, n_features=6, n_informative=3, shuffle=False, random_state=0)
    X = np.column_stack([X, X[:, 0] + 1e-6 * X[:, 5]])
    best = EvidenceSelector(3, redundancy=0.0, ridge=0.1).fit(X, Y)
    kept = EvidenceSelector(3, redundancy=0.0, ridge=0.1, keep=[6]).fit(X, Y)
    assert best.get_support()[0] != best.get_support()[6]
    assert kept.get_support()[6]
    assert not kept.get_support()[0]


def test_the_automatic_number_is_at_least_the_number_of_kept_features():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 8))
    Y = (X[:, :1] > 0).astype(int)
    selector = EvidenceSelector("auto", keep=range(3, 8)).fit(X, Y)
    assert selector.n_features_ >= 5
    assert selector.get_support()[3:].all()
    assert selector.size_curve_.sizes.min() == 5


@pytest.mark.parametrize("keep", [[12], [-1], ["f3"], [0.5]])
def test_unknown_features_cannot_be_kept(keep):
    X, Y = make_pml(n_samples=40, n_features=12, random_state=0)
    with pytest.raises(ValueError, match="keep"):
        EvidenceSelector(5, keep=keep).fit(X, Y)


def test_more_features_than_selected_cannot_be_kept():
    X, Y = make_pml(n_samples=40, n_features=12, random_state=0)
    with pytest.raises(ValueError, match="at least the number of features in keep"):
        EvidenceSelector(2, keep=[0, 1, 2]).fit(X, Y)


@pytest.mark.parametrize("keep", [["f4", "f5"], [4, 5]])
def test_features_are_kept_when_numbers_of_features_are_compared(keep):
    X, Y = make_pml(n_samples=80, n_features=8, random_state=0)
    frame = pd.DataFrame(X).add_prefix("f")
    curve = choose_size(EvidenceSelector(keep=keep), frame, Y, sizes=[1, 3, 8])
    np.testing.assert_array_equal(curve.sizes, [2, 3, 8])
    expected = choose_size(EvidenceSelector(keep=[4, 5]), X, Y, sizes=[2, 3, 8])
    np.testing.assert_array_equal(curve.mean, expected.mean)


@pytest.mark.parametrize("n_columns", [2, 3, "auto"])
@pytest.mark.parametrize("keep", [["a", "b", "c"], [0, 1, 2], ["b"]])
def test_columns_with_kept_features_are_selected(keep, n_columns):
    X, Y = make_pml(n_samples=80, n_features=8, random_state=0)
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    column_of = [0, 0, 0, 3, 4, 5, 5, 7]
    found = ColumnSelector(EvidenceSelector(keep=keep), column_of, n_columns).fit(frame, Y)
    assert found.ranking_[0] == 1
    assert found.get_support()[0]
    if n_columns != "auto":
        assert found.get_support().sum() == n_columns


def test_columns_are_chosen_given_all_features_of_the_kept_columns():
    X, Y = make_pml(n_samples=80, n_features=8, random_state=0)
    column_of = np.array([0, 0, 0, 1, 2, 3, 4, 5])
    options = {"keep": [0, 1, 2], "redundancy": 0.0}
    found = ColumnSelector(EvidenceSelector(**options), column_of, 4).fit(X, Y)
    features = EvidenceSelector(6, **options).fit(X, Y)
    # Three features of the first column, and three other columns with one feature each.
    np.testing.assert_array_equal(
        np.sort(found.get_support(indices=True)), np.unique(column_of[features.get_support()])
    )


def test_more_columns_than_selected_cannot_be_kept():
    X, Y = make_pml(n_samples=40, n_features=4, n_informative=2, random_state=0)
    with pytest.raises(ValueError, match="number of columns in keep"):
        ColumnSelector(EvidenceSelector(keep=[0, 3]), [0, 0, 1, 2], 1).fit(X, Y)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_label_evidence_adds_up_to_the_evidence(container):
    X, Y = make_pml(n_samples=150, n_features=12, random_state=0)
    Y = np.column_stack([Y, np.ones(len(Y), dtype=int)])
    X = X * (X > 0)
    selector = EvidenceSelector(5).fit(container(X), Y)
    assert selector.label_evidence_.shape == (Y.shape[1], 12)
    assert not selector.label_evidence_[-1].any()
    for feature in range(12):
        for label in range(Y.shape[1] - 1):
            z2 = len(X) * np.corrcoef(X[:, feature], Y[:, label])[0, 1] ** 2
            assert selector.label_evidence_[label, feature] == pytest.approx(max(z2 - 4, 0), abs=1e-8)
    np.testing.assert_allclose(selector.label_evidence_.sum(axis=0), selector.evidence_, rtol=1e-3, atol=1e-3)
