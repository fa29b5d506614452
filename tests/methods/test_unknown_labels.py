"""Unknown labels, NaN, against slow versions that use the known rows of one label at a time."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.feature_selection import f_classif

import labelsieve as ls
from labelsieve._blocks.collections import is_lazy
from labelsieve._candidates import TAKES_UNKNOWN, split_unknown
from labelsieve._numerics.candidate_precision import LabelScale, average_precision_rows
from labelsieve._numerics.scaling import Scaling
from labelsieve._row_problem import in_memory
from labelsieve.methods._evidence.choice import REDUNDANCIES, size_grid
from labelsieve.methods.evidence import _baseline

pytestmark = pytest.mark.filterwarnings("ignore:EvidenceSelector found no evidence")


def problem(seed=0, n_samples=120, n_features=12, n_labels=5, share=0.3):
    """Features, candidates with unknown entries, and the candidates."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features)) * (rng.random((n_samples, n_features)) < 0.7)
    Y = (X[:, :n_labels] + 0.8 * rng.normal(size=(n_samples, n_labels)) > 0.5).astype(float)
    return X, np.where(rng.random(Y.shape) < share, np.nan, Y), Y


def to_sparse(Y):
    """CSR with explicit NaN."""
    found = sp.csr_array(np.where(np.isnan(Y), 7.0, Y))
    found.data[found.data == 7] = np.nan
    return found


FORMS = {
    "dense": np.asarray,
    "float32": lambda Y: Y.astype(np.float32),
    "CSR": to_sparse,
    "CSC": lambda Y: to_sparse(Y).tocsc(),
    "COO": lambda Y: sp.coo_matrix(to_sparse(Y)),
    "frame": pd.DataFrame,
    "nullable integers": lambda Y: pd.DataFrame(Y).astype("Int64"),
    "nullable booleans": lambda Y: pd.DataFrame(Y).astype("boolean"),
    "objects": lambda Y: np.where(np.isnan(Y), None, Y),
    "frame of objects": lambda Y: pd.DataFrame(np.where(np.isnan(Y), None, Y)),
    "lists": lambda Y: np.where(np.isnan(Y), None, Y).tolist(),
}


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_of_labels_say_the_same(form):
    X, U, _ = problem()
    for selector in (ls.EvidenceSelector(4), ls.EvidenceSelector("auto"), ls.SumF()):
        expected = selector.fit(X, U).ranking_.copy()
        np.testing.assert_array_equal(selector.fit(X, FORMS[form](U)).ranking_, expected)
    support = ls.LabelSupport().fit(X, FORMS[form](U)).support_
    np.testing.assert_allclose(support, ls.LabelSupport().fit(X, U).support_, rtol=0, atol=1e-12)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("labels", ["dense", "CSR"])
def test_sum_f_is_that_of_the_known_rows(container, labels):
    X, U, Y = problem(1)
    U[:, 3] = Y[:, 3]  # one label is known everywhere
    X[:, 5] = 0
    X[0, 5], U[0] = 1, np.where(np.arange(5) < 3, np.nan, 1)  # constant in the known rows of three labels
    expected = np.zeros(12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for u in U.T:
            known = ~np.isnan(u)
            expected += np.nan_to_num(f_classif(X[known], u[known])[0])
    np.testing.assert_allclose(ls.SumF().fit(container(X), FORMS[labels](U)).scores_, expected, rtol=1e-9)


def test_two_known_rows_say_nothing():
    X, U, _ = problem(2)
    U[:, 0] = np.nan
    U[:2, 0] = 0, 1
    np.testing.assert_array_equal(ls.SumF().fit(X, U).scores_, ls.SumF().fit(X, U[:, 1:]).scores_)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_evidence_is_n_times_the_squared_correlation_of_the_known_rows(container):
    """The features are scaled by all rows: n r^2 of the imputed label, n_known r^2 but for the feature's variance."""
    X, U, _ = problem(3)
    selector = ls.EvidenceSelector(3, redundancy=np.inf, threshold=0.0).fit(container(X), U)
    expected = np.zeros(12)
    for u in U.T:
        known = ~np.isnan(u)
        deviation = u[known].std() * X.std(axis=0)
        covariance = ((X[known] - X[known].mean(axis=0)) * (u[known] - u[known].mean())[:, None]).mean(axis=0)
        expected += known.sum() * (covariance / deviation) ** 2
    np.testing.assert_allclose(selector.evidence_, expected * (1 + 1e-6), rtol=1e-9)


def test_the_mean_of_z2_over_permutations_is_one():
    X, U, _ = problem(4, n_samples=80, share=0.5)
    found = ls.evidence_test(X, U, n_permutations=4000, threshold=0.0).permuted / (12 * 5 * (1 + 1e-6))
    error = found.std() / np.sqrt(len(found))
    assert error < 0.005
    assert found.mean() == pytest.approx(80 / 79, abs=4 * error)


def precision_of_a_row(u, scores):
    known = ~np.isnan(u)
    u, scores = u[known], scores[known]
    if not u.any():
        return np.nan
    place = np.empty(len(u))
    place[np.argsort(-scores, kind="stable")] = np.arange(1, len(u) + 1)
    return np.mean([(place[u == 1] <= place[label]).sum() / place[label] for label in np.flatnonzero(u)])


def slow_precision(X, U, order, train, test, size):
    """Mean precision of the known labels of held-out rows, from one ridge regression per label."""
    features = order[:size]
    mean, deviation = X[train].mean(axis=0), X[train].std(axis=0)
    Z = ((X - mean) / deviation)[:, features]
    target = np.where(np.isnan(U[train]), np.nanmean(U[train], axis=0), U[train])
    A = Z[train].T @ Z[train] + 0.1 * train.sum() * np.eye(size)
    weights = np.linalg.solve(A, Z[train].T @ (target - target.mean(axis=0)))
    predicted = np.round(Z[test] @ weights + target.mean(axis=0), 10)
    rows = [precision_of_a_row(u, scores) for u, scores in zip(U[test], predicted, strict=True)]
    return np.nanmean(rows)


@pytest.mark.parametrize("labels", ["dense", "CSR"])
@pytest.mark.parametrize("size", [4, "auto"])
def test_inner_folds_score_the_known_labels_of_held_out_rows(size, labels):
    X, U, _ = problem(5)
    folds = np.random.default_rng(1).permutation(120) % 5
    selector = ls.EvidenceSelector(size, n_folds=5)
    Y = validated(FORMS[labels](U))
    result = selector._solve_rows(in_memory(X, Y), folds=folds)
    sizes = [4] if size == 4 else size_grid(12, 1000).tolist()
    expected = np.empty((5, len(REDUNDANCIES), len(sizes)))
    for fold in range(5):
        train, test = folds != fold, folds == fold
        for i, redundancy in enumerate(REDUNDANCIES):
            ranked = ls.EvidenceSelector(max(1, min(7, max(sizes))), redundancy=redundancy).fit(
                X[train], U[train]
            )
            order = np.argsort(ranked.ranking_)
            for j, k in enumerate(sizes):
                expected[fold, i, j] = slow_precision(X, U, order, train, test, k)
    chosen = sizes.index(result.n_selected) if size == "auto" else 0
    np.testing.assert_allclose(result.extra["cv_scores"], expected[:, :, chosen], atol=1e-12)


def validated(Y):
    """A validated label matrix."""
    return sp.csr_matrix(Y) if sp.issparse(Y) else np.asarray(Y, dtype=float)


def test_the_baseline_leaves_out_unknown_labels():
    _, U, _ = problem(6)
    folds = np.arange(120) % 3
    expected = np.mean(
        [
            np.nanmean(
                [precision_of_a_row(u, np.nanmean(U[folds != fold], axis=0)) for u in U[folds == fold]]
            )
            for fold in range(3)
        ]
    )
    assert _baseline(U, folds, 3) == pytest.approx(expected, abs=1e-12)
    assert _baseline(sp.csr_matrix(to_sparse(U)), folds, 3) == pytest.approx(expected, abs=1e-12)


def test_precision_is_that_of_the_row_without_its_unknown_labels():
    _, U, _ = problem(7)
    scores = np.random.default_rng(0).normal(size=U.shape).round(1)
    expected = [precision_of_a_row(u, s) for u, s in zip(U, scores, strict=True)]
    np.testing.assert_allclose(average_precision_rows(U, scores), expected, rtol=1e-12)


def add_unknown_label(U, at=2):
    return np.insert(U, at, np.nan, axis=1)


@pytest.mark.parametrize("form", ["dense", "CSR"])
def test_a_label_that_is_unknown_everywhere_is_like_none(form):
    X, U, Y = problem(8)
    for labels in (U, Y):
        more = FORMS[form](add_unknown_label(labels))
        for selector in (ls.EvidenceSelector("auto"), ls.EvidenceSelector(4), ls.SumF()):
            expected = selector.fit(X, FORMS[form](labels)).scores_.copy()
            np.testing.assert_allclose(selector.fit(X, more).scores_, expected, rtol=1e-12)
        kept = [0, 1, 3, 4, 5]
        found, expected = ls.LabelSupport().fit(X, more), ls.LabelSupport().fit(X, labels)
        np.testing.assert_allclose(found.support_[:, kept], expected.support_, atol=1e-12)
        assert not found.confidence_[:, 2].any()
        found, expected = (ls.evidence_test(X, Z, n_permutations=39) for Z in (more, FORMS[form](labels)))
        np.testing.assert_allclose(found.permuted, expected.permuted, rtol=1e-12)


def test_all_known_is_the_same_bit_by_bit():
    X, _, Y = problem(9)
    for labels in (Y.astype(np.uint8), sp.csr_matrix(Y)):
        for selector in (ls.EvidenceSelector("auto"), ls.SumF()):
            expected = selector.fit(X, Y).scores_.tobytes()
            assert selector.fit(X, labels).scores_.tobytes() == expected
    assert split_unknown(Y)[0] is Y
    scale = LabelScale.learn(Y)
    assert scale.deviation.tobytes() == np.sqrt(Y.mean(axis=0) * (1 - Y.mean(axis=0))).tobytes()


def test_the_scale_is_that_of_the_imputed_label():
    _, U, _ = problem(10)
    filled, known = split_unknown(U)
    scale = LabelScale.learn(U)
    np.testing.assert_allclose(scale.mean, filled.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(scale.deviation, filled.std(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(known, ~np.isnan(U))
    np.testing.assert_allclose(1 / Scaling.learn(filled, "standard", centre=True).factor, scale.deviation)


def test_selection_stability_takes_unknown_labels():
    X, U, _ = problem(11)
    for selector in (ls.SumF(3), ls.EvidenceSelector(3)):
        found = ls.selection_stability(selector, X, U, n_resamples=6)
        assert found.runs.sum(axis=1).tolist() == [3] * 6
        assert found.frequency[:5].sum() > 2
    index = ls.ColumnSelector(ls.EvidenceSelector(), np.arange(12) // 2, "auto").fit(X, U)
    assert index.n_features_ == index.size_curve_.best


def others():
    X, U, Y = problem(12)
    yield from (
        lambda method=method: method().fit(X, U)
        for method in (ls.PMLFSMIR, ls.GMM, ls.RFS, ls.SumMI, ls.RandomRanking, ls.MDMR)
    )
    yield lambda: ls.choose_size(ls.SumF(), X, U)
    yield lambda: ls.choose_size(ls.EvidenceSelector(), X, to_sparse(U))
    yield lambda: ls.selection_stability(ls.GMM(3), X, U)
    yield lambda: ls.classify.LabelwiseSVM().fit(X, U)
    yield lambda: ls.pml_cross_validate(ls.classify.LabelwiseSVM(), X, U, Y, cv=3)
    yield lambda: ls.pml_cross_validate(ls.classify.LabelwiseSVM(), X, Y, U, cv=3)
    yield from (lambda metric=metric: metric.function(U, Y) for metric in ls.METRICS.values())


@pytest.mark.parametrize("call", list(others()))
def test_everything_else_names_what_takes_unknown_labels(call):
    with pytest.raises(ValueError) as caught:
        call()
    assert TAKES_UNKNOWN in str(caught.value)


def test_rows_in_blocks_must_be_known():
    da = pytest.importorskip("dask.array")
    X, U, _ = problem(13)
    lazy = [da.from_array(part, chunks=(40, -1)) for part in (X, U)]
    assert all(map(is_lazy, lazy))
    for selector in (ls.SumF(), ls.EvidenceSelector(3)):
        with pytest.raises(ValueError, match="with all rows in memory") as caught:
            selector.fit(*lazy)
        assert TAKES_UNKNOWN in str(caught.value)


def test_missing_classes_are_rejected():
    X, _, Y = problem(14)
    classes = np.where(Y[:, :1] > 0, 3.0, 2.0)
    classes[4] = np.nan
    for labels in (classes, classes.ravel()):
        with pytest.raises(ValueError):
            ls.SumF().fit(X, labels)
