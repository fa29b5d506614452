import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from labelsieve import LabelSupport
from labelsieve._numerics.batches import batches
from labelsieve.inspection import _reviews as checks_module
from labelsieve.inspection._leave_one_out import explain_by_other_labels

X = np.array(
    [[0, 3, 1, 2], [1, 1, 0, 2], [4, 2, 0, 1], [5, 2, 1, 0], [2, 0, 1, 1], [3, 3, 0, 0]], dtype=float
)
Y = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 1], [1, 0, 1], [0, 1, 0]], dtype=float)
CHECKED = ([0, 2, 4, 1], [0, 2, 2, 1], [1, 0, 0, 1])


def problem(n_samples=60, n_features=5, n_labels=4, seed=0):
    """Labels that follow features and one another, with sparse features."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features)) * (rng.random((n_samples, n_features)) < 0.5)
    Y = (X[:, :n_labels] + 0.3 * rng.standard_normal((n_samples, n_labels)) > 0.3).astype(float)
    Y[:, 1] = np.maximum(Y[:, 0], rng.random(n_samples) < 0.2)
    return X, Y


# The worked example.


def test_linear_support_and_confidence_of_the_worked_example():
    model = LabelSupport(kernel="linear", each_row_has_truth=False).fit(X, Y)
    support = [
        [0.9541279523508172, 0.5827291117418436, -0.33221328756858187],
        [0.8125504815218199, 0.8602848530234768, 0.6607887173950958],
        [0.2598978516962485, 0.9191915533161363, 0.23052654953845253],
        [0.00602769713335962, 0.17593830047255293, 1.3520822964087604],
        [0.8778533023878764, 0.13045571123379243, 0.46193108656755555],
        [-0.0765006771459691, 0.7710291992200708, 0.7001155121660382],
    ]
    confidence = [
        [0.9887529394057255, 0, 0],
        [0.9460325988679591, 0.9620074238146024, 0],
        [0, 0.9794340743534787, 0.21914532052571667],
        [0, 0, 0.9990482164898643],
        [0.967449526537497, 0, 0.727505187372333],
        [0, 0.9305284793533912, 0],
    ]
    np.testing.assert_allclose(model.support_, support, rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.confidence_, confidence, rtol=0, atol=1e-12)
    assert (model.kernel_, model.label_penalty_, model.probability_) == ("linear", None, None)
    assert model.penalty_ == pytest.approx(0.6, abs=1e-12)
    assert model.press_ == pytest.approx(0.5854132735962253, abs=1e-12)
    assert model.rate_ == pytest.approx(0.18958536273902782, abs=1e-12)


def test_the_kernel_is_used_only_if_it_predicts_better():
    linear, rbf = (LabelSupport(kernel=kernel).fit(X, Y) for kernel in ("linear", "rbf"))
    assert rbf.press_ == pytest.approx(0.9112728549751368, abs=1e-9)
    assert rbf.penalty_ == pytest.approx(9.427844198186554e-05, rel=1e-12)
    automatic = LabelSupport().fit(X, Y)
    assert automatic.kernel_ == "linear"
    np.testing.assert_array_equal(automatic.support_, linear.support_)
    rng = np.random.default_rng(0)
    circle = rng.standard_normal((200, 2))
    inside = ((circle**2).sum(axis=1) < 1).astype(float)[:, None]
    assert LabelSupport().fit(circle, inside).kernel_ == "rbf"


def test_the_row_truth_assumption_raises_support_in_the_worked_example():
    model = LabelSupport(kernel="linear", each_row_has_truth=True).fit(X, Y)
    support = [
        [1.0, 0.5827291117418436, -0.33221328756858187],
        [0.8197390968123214, 0.8680336572995566, 0.6607887173950958],
        [0.2598978516962485, 0.9863741839470046, 0.2333781596451347],
        [0.00602769713335962, 0.17593830047255293, 1.3520822964087604],
        [0.9125372066260724, 0.13045571123379243, 0.47533338569557143],
        [-0.0765006771459691, 1.0, 0.7001155121660382],
    ]
    confidence = [
        [1.0, 0, 0],
        [0.9479762921061147, 0.9639839385002077, 0],
        [0, 0.9954195156372063, 0.22272201317466286],
        [0, 0, 1.0],
        [0.9761074386234739, 0, 0.7340157864078246],
        [0, 1.0, 0],
    ]
    np.testing.assert_allclose(model.support_, support, rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.confidence_, confidence, rtol=0, atol=1e-12)


# The closed forms against regressions that are fitted again without the row.


def left_out_predictions(Z, T, penalty):
    """Ridge regression with a free intercept, once for every row, without it."""
    n_samples, n_features = Z.shape
    ones = np.ones((n_samples, 1))
    design = np.hstack([ones, Z])
    costs = penalty * np.diag(np.r_[0.0, np.ones(n_features)])
    predictions = np.empty_like(T)
    for row in range(n_samples):
        rest = np.arange(n_samples) != row
        weights = np.linalg.solve(design[rest].T @ design[rest] + costs, design[rest].T @ T[rest])
        predictions[row] = design[row] @ weights
    return predictions


@pytest.mark.parametrize(("n_samples", "n_features"), [(40, 6), (15, 30), (20, 20), (20, 19)])
def test_the_prediction_equals_a_regression_without_the_row(n_samples, n_features):
    X, Y = problem(n_samples, n_features)
    model = LabelSupport(kernel="linear", use_labels=False).fit(X, Y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = left_out_predictions(Z, Y, model.penalty_)
    np.testing.assert_allclose(model.support_, expected, rtol=0, atol=1e-10)


def test_the_kernel_prediction_equals_a_regression_without_the_row():
    X, Y = problem(30, 4)
    model = LabelSupport(kernel="rbf", use_labels=False).fit(X, Y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    distance = ((Z[:, None] - Z[None]) ** 2).sum(axis=2)
    K = np.exp(-distance / np.median(distance[np.triu_indices(30, 1)]))
    centre = np.eye(30) - 1 / 30
    values, vectors = np.linalg.eigh(centre @ K @ centre)
    features = vectors[:, 1:] * np.sqrt(np.maximum(values[1:], 0))
    assert model.penalty_ / values.sum() == pytest.approx(
        min(
            (3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3),
            key=lambda p: press(features, Y, p * values.sum()),
        )
    )
    np.testing.assert_allclose(
        model.support_, left_out_predictions(features, Y, model.penalty_), rtol=0, atol=1e-9
    )


def press(Z, Y, penalty):
    """Squared errors of left-out rows, in units of the variance of each label."""
    return (((Y - left_out_predictions(Z, Y, penalty)) / Y.std(axis=0)) ** 2).mean()


@pytest.mark.parametrize(("n_samples", "n_features"), [(40, 6), (15, 30)])
def test_the_penalty_minimises_the_leave_one_out_error(n_samples, n_features):
    X, Y = problem(n_samples, n_features)
    model = LabelSupport(kernel="linear").fit(X, Y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    errors = {p: press(Z, Y, p * n_samples) for p in (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)}
    best = min(errors, key=errors.get)
    assert model.penalty_ == pytest.approx(best * n_samples)
    assert model.press_ == pytest.approx(errors[best], rel=1e-9)


def test_the_effect_of_other_labels_equals_regressions_without_the_row():
    rng = np.random.default_rng(3)
    R = rng.standard_normal((50, 1)) + rng.standard_normal((50, 4)) * [0.3, 0.5, 1.0, 2.0]
    found = R.copy()
    penalty = explain_by_other_labels(found)
    Z = (R - R.mean(axis=0)) / R.std(axis=0)

    def errors(penalty):
        left = np.empty_like(Z)
        for label in range(4):
            others = np.delete(Z, label, axis=1)
            predicted = left_out_predictions(others, Z[:, [label]], 50 * penalty)
            left[:, [label]] = Z[:, [label]] - predicted
        return left

    grid = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)
    assert penalty == min(grid, key=lambda candidate: (errors(candidate) ** 2).sum())
    np.testing.assert_allclose(found, errors(penalty) * R.std(axis=0), rtol=0, atol=1e-10)


def test_support_is_prediction_from_features_plus_prediction_from_labels():
    X, Y = problem()
    alone = LabelSupport(kernel="linear", use_labels=False).fit(X, Y)
    both = LabelSupport(kernel="linear").fit(X, Y)
    assert both.label_penalty_ is not None
    residuals = Y - alone.support_
    left = residuals.copy()
    explain_by_other_labels(left)
    np.testing.assert_allclose(both.support_, alone.support_ + residuals - left, rtol=0, atol=1e-12)


def test_unrelated_labels_are_not_used():
    R = np.random.default_rng(0).standard_normal((30, 5))
    R = np.linalg.qr(R - R.mean(axis=0))[0]  # not even correlated by chance
    before = R.copy()
    assert explain_by_other_labels(R) is None
    np.testing.assert_array_equal(R, before)


def test_a_residual_that_does_not_vary_is_explained():
    rng = np.random.default_rng(0)
    R = rng.standard_normal((40, 1)) + 0.1 * rng.standard_normal((40, 3))
    R[:, 2] = 0.25
    assert explain_by_other_labels(R) is not None
    np.testing.assert_array_equal(R[:, 2], 0)
    assert np.isfinite(R).all()


# The same data in another form.


def test_sparse_single_precision_and_frames_agree():
    for n_features in (5, 90):
        X, Y = problem(40, n_features)
        for kernel in ("linear", "rbf"):
            model = LabelSupport(kernel=kernel)
            expected = clone(model).fit(X, Y, some_checked(Y))
            for features, labels in (
                (sp.csr_matrix(X), Y),
                (sp.csc_array(X), sp.csr_matrix(Y)),
                (sp.csr_array(X), sp.csc_array(Y)),
                (pd.DataFrame(X), pd.DataFrame(Y)),
            ):
                found = clone(model).fit(features, labels, some_checked(Y))
                np.testing.assert_allclose(found.support_, expected.support_, atol=1e-9)
                np.testing.assert_allclose(found.confidence_, expected.confidence_, atol=1e-9)
                np.testing.assert_allclose(found.probability_, expected.probability_, atol=1e-9)
            single = clone(model).fit(X.astype(np.float32), Y)
            assert single.support_.dtype == np.float64
            np.testing.assert_allclose(single.support_, expected.support_, atol=1e-4)


def some_checked(Y):
    """The first candidates in turn right and wrong."""
    rows, labels = (places[:12] for places in np.nonzero(Y))
    return rows, labels, np.arange(12) % 2


def test_a_sparse_matrix_is_never_densified(monkeypatch):
    X, Y = problem(40, 5)
    sparse = sp.csr_array(X)
    whole = []
    monkeypatch.setattr(
        "labelsieve.inspection._leave_one_out.batches",
        lambda length, width: batches(length, width, 70),
    )
    original = sp.csr_array.toarray

    def toarray(self, *args, **options):
        if self.shape == X.shape:
            whole.append(self.shape)
        return original(self, *args, **options)

    monkeypatch.setattr(sp.csr_array, "toarray", toarray)
    LabelSupport(kernel="linear").fit(sparse, Y)
    assert not whole


def test_blocks_of_rows_change_nothing(monkeypatch):
    X, Y = problem(40, 5)
    Y[Y.sum(axis=1) == 0, 0] = 1
    whole = LabelSupport(each_row_has_truth=True).fit(X, Y, some_checked(Y))
    parts = ("_leave_one_out", "label_support", "_reviews")
    for module in ("_numerics.standardized", *(f"inspection.{part}" for part in parts)):
        monkeypatch.setattr(f"labelsieve.{module}.batches", lambda length, width: batches(length, width, 30))
    small = LabelSupport(each_row_has_truth=True).fit(X, Y, some_checked(Y))
    np.testing.assert_allclose(small.support_, whole.support_, rtol=0, atol=1e-12)
    np.testing.assert_allclose(small.confidence_, whole.confidence_, rtol=0, atol=1e-12)
    np.testing.assert_allclose(small.probability_, whole.probability_, rtol=0, atol=1e-12)


def test_scale_of_columns_and_order_of_rows_do_not_matter():
    X, Y = problem(50, 6)
    expected = LabelSupport().fit(X, Y).support_
    order = np.random.default_rng(1).permutation(50)
    np.testing.assert_allclose(LabelSupport().fit(X * 1e6 - 3, Y).support_, expected, atol=1e-8)
    np.testing.assert_allclose(LabelSupport().fit(X[order], Y[order]).support_, expected[order], atol=1e-9)
    np.testing.assert_allclose(
        LabelSupport().fit(X[:, ::-1], Y[:, ::-1]).support_, expected[:, ::-1], atol=1e-9
    )


def test_the_input_is_unchanged_and_a_second_fit_agrees():
    X, Y = problem()
    X_before, Y_before = X.copy(), Y.copy()
    model = LabelSupport(each_row_has_truth=False)
    first = model.fit(X, Y, some_checked(Y)).support_.copy()
    np.testing.assert_array_equal(model.fit(X, Y).support_, first)
    assert model.probability_ is None
    assert model.n_checked_ == 0
    np.testing.assert_array_equal(X, X_before)
    np.testing.assert_array_equal(Y, Y_before)


# Edges.


def test_constant_labels_are_their_own_support():
    X, Y = problem(40, 5, 3)
    wide = np.column_stack([np.ones(40), Y, np.zeros(40)])
    model, alone = LabelSupport().fit(X, wide), LabelSupport().fit(X, Y)
    for name in ("support_", "confidence_"):
        np.testing.assert_array_equal(getattr(model, name)[:, [0, 4]], wide[:, [0, 4]])
        np.testing.assert_array_equal(getattr(model, name)[:, 1:4], getattr(alone, name))
    assert model.rate_ == alone.rate_


def test_reviews_of_a_constant_label_are_kept_and_have_no_effect():
    X, Y = problem(40, 5, 3)
    rows, labels, answers = some_checked(Y)
    alone = LabelSupport().fit(X, Y, (rows, labels, answers))
    wide = np.column_stack([np.ones(40), Y])
    checked = np.r_[7, rows], np.r_[0, labels + 1], np.r_[0, answers]
    model = LabelSupport().fit(X, sp.csr_array(wide), checked)
    np.testing.assert_allclose(model.probability_[:, 1:], alone.probability_, atol=1e-12)
    np.testing.assert_array_equal(model.probability_[:, 0], np.arange(40) != 7)
    assert model.n_checked_ == 12


def test_only_constant_labels_leave_nothing_to_estimate():
    labels = np.column_stack([np.ones(6), np.zeros(6)])
    model = LabelSupport().fit(X, labels, ([2], [0], [0]))
    np.testing.assert_array_equal(model.support_, labels)
    np.testing.assert_array_equal(model.confidence_, labels)
    assert model.probability_[2, 0] == 0
    assert model.probability_.sum() == 5
    assert (model.kernel_, model.rate_, model.press_, model.n_checked_) == (None, None, None, 0)


@pytest.mark.parametrize("n_samples", [1, 2])
def test_labels_of_fewer_than_three_rows_are_their_own_support(n_samples):
    model = LabelSupport().fit(X[:n_samples], Y[:n_samples])
    np.testing.assert_array_equal(model.support_, Y[:n_samples])


def test_one_label_has_no_other_labels():
    X, Y = problem()
    with_labels = LabelSupport().fit(X, Y[:, :1])
    np.testing.assert_array_equal(
        with_labels.support_, LabelSupport(use_labels=False).fit(X, Y[:, :1]).support_
    )
    assert with_labels.label_penalty_ is None


def test_relations_of_too_many_labels_are_not_used(monkeypatch):
    X, Y = problem()
    monkeypatch.setattr("labelsieve.inspection.label_support._MAX_RELATED_LABELS", 3)
    model = LabelSupport().fit(X, Y)
    np.testing.assert_array_equal(model.support_, LabelSupport(use_labels=False).fit(X, Y).support_)


def test_features_that_do_not_vary_leave_the_mean_of_the_other_rows():
    Y = np.r_[np.ones((3, 1)), np.zeros((7, 1))]
    for X in (np.ones((10, 2)), np.full((10, 1), 0.1), sp.csr_array(np.full((10, 2), 1e9))):
        for kernel in ("linear", "rbf"):
            support = LabelSupport(kernel=kernel).fit(X, Y).support_
            np.testing.assert_allclose(support[:3], 2 / 9, atol=1e-12)
            np.testing.assert_allclose(support[3:], 3 / 9, atol=1e-12)


def test_a_kernel_of_mostly_equal_rows_separates_the_others():
    X = np.r_[np.zeros((30, 2)), np.random.default_rng(0).standard_normal((10, 2)) + 3]
    Y = np.r_[np.zeros((30, 1)), np.ones((10, 1))]
    support = LabelSupport(kernel="rbf").fit(X, Y).support_
    assert support[30:].min() > 0.5 > support[:30].max()


@pytest.mark.parametrize(
    "make",
    [
        lambda X, Y: (X * 1e100, Y),
        lambda X, Y: (X * 1e-100, Y),
        lambda X, Y: (X[:, [0, 1, 0, 1]], Y),
        lambda X, Y: (X, Y[:, [0, 0, 1]]),
        lambda X, Y: (X[:, :1], Y),
        lambda X, Y: (X, Y * (np.arange(len(X)) == 5)[:, None]),
        lambda X, Y: (np.column_stack([X, np.full(len(X), 7.0)]), Y),
    ],
)
def test_odd_data_give_finite_numbers(make):
    X, Y = problem(50, 5)
    features, labels = make(X, Y)
    labels[5, 0] = 1
    model = LabelSupport().fit(features, labels, ([5], [0], [1]))
    for values in (model.support_, model.confidence_, model.probability_):
        assert np.isfinite(values).all()
    assert ((model.confidence_ > 0) == (labels > 0)).all()


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("size", [2.0**-700, 2.0**700, 2.0**1020])
def test_features_whose_squares_overflow_or_underflow_agree(size, container):
    X, Y = problem()
    expected = LabelSupport().fit(container(X), Y).support_
    np.testing.assert_allclose(LabelSupport().fit(container(X * size), Y).support_, expected, atol=1e-12)


def test_the_row_truth_assumption_is_dropped_for_rows_without_candidates():
    X, Y = problem()
    Y[3] = 0
    n_empty = int((Y.sum(axis=1) == 0).sum())
    with pytest.warns(UserWarning, match=f"each_row_has_truth.*{n_empty} of 60"):
        stated = LabelSupport(each_row_has_truth=True).fit(X, Y)
    np.testing.assert_array_equal(stated.support_, LabelSupport().fit(X, Y).support_)


def test_the_only_candidate_of_a_row_is_right_if_rows_have_truth():
    X, Y = problem()
    Y[Y.sum(axis=1) == 0, 0] = 1
    Y[7] = [0, 0, 1, 0]
    model = LabelSupport(each_row_has_truth=True).fit(X, Y)
    assert model.support_[7, 2] >= 1
    assert model.confidence_[7, 2] == 1
    assert model.confidence_.max() <= 1


def test_the_row_truth_assumption_has_no_effect_if_all_rows_have_a_label():
    X, Y = problem()
    Y = np.column_stack([Y, np.ones(60)])
    np.testing.assert_array_equal(
        LabelSupport(each_row_has_truth=True).fit(X, Y).support_, LabelSupport().fit(X, Y).support_
    )


def test_wide_and_long_data_use_the_features_with_most_evidence(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 20))
    Y = (X[:, [3, 11]] > 0).astype(float)
    monkeypatch.setattr("labelsieve.inspection.label_support._MAX_SIDE", 15)
    monkeypatch.setattr("labelsieve.inspection.label_support._MAX_FEATURES", 2)
    model = LabelSupport().fit(X, Y)
    monkeypatch.undo()
    np.testing.assert_allclose(model.support_, LabelSupport().fit(X[:, [3, 11]], Y).support_, atol=1e-12)
    assert model.n_features_in_ == 20


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_landmarks_approximate_the_kernel_of_many_rows(monkeypatch, form):
    X, Y = problem(300, 5)
    exact = LabelSupport(kernel="rbf").fit(form(X), Y)
    monkeypatch.setattr("labelsieve.inspection._leave_one_out._MOST_EXACT_ROWS", 299)
    # All rows as landmarks are the kernel itself.
    same = LabelSupport(kernel="rbf").fit(form(X), Y)
    np.testing.assert_allclose(same.support_, exact.support_, atol=1e-6)
    monkeypatch.setattr("labelsieve.inspection._leave_one_out._N_LANDMARKS", 100)
    some = LabelSupport(kernel="rbf").fit(form(X), Y)
    assert np.corrcoef(some.support_.ravel(), exact.support_.ravel())[0, 1] > 0.98
    np.testing.assert_array_equal(some.support_, LabelSupport(kernel="rbf").fit(form(X), Y).support_)


@pytest.mark.parametrize(
    "parameters", [{"kernel": "poly"}, {"kernel": None}, {"use_labels": "yes"}, {"each_row_has_truth": 2}]
)
def test_invalid_parameters_raise(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        LabelSupport(**parameters).fit(X, Y)


# Checks.


def test_the_regression_on_reviews_is_at_its_minimum():
    X, Y = problem(200, 5)
    rng = np.random.default_rng(5)
    drawn = rng.permutation(int(Y.sum()))[:40]
    rows, labels = (places[drawn] for places in np.nonzero(Y))
    answers = (rng.random(40) < 0.6).astype(int)
    model = LabelSupport(use_labels=False).fit(X, Y, (rows, labels, answers))
    J, i, label = model.support_, *np.nonzero(Y)
    in_row, frequency = Y.sum(axis=1), Y.mean(axis=0)
    F = np.column_stack(
        [
            J[i, label],
            J[i, label],  # features alone
            np.log(in_row[i]),
            in_row[i] == 1,
            np.log(frequency / (1 - frequency))[label],
            np.quantile(J, 0.05, axis=0)[label],
        ]
    )
    F = (F - F.mean(axis=0)) / F.std(axis=0)
    A = np.column_stack([np.ones(len(F)), F, np.eye(4)[label]])
    regression = model.checked_model_
    solution = np.r_[regression.intercept, regression.weights, regression.label_effects]
    chance = 1 / (1 + np.exp(-A @ solution))
    at = [np.flatnonzero((i == a) & (label == b))[0] for a, b in zip(rows, labels, strict=True)]
    penalty = np.r_[0.1, np.full(6, 30.0), np.full(4, 10.0)]
    prior = np.r_[0, 1, np.zeros(9)]
    gradient = A[at].T @ (chance[at] - answers) + penalty * (solution - prior)
    np.testing.assert_allclose(gradient, 0, atol=1e-8)
    unchecked = np.ones(len(i), dtype=bool)
    unchecked[at] = False
    found = model.probability_[i, label]
    np.testing.assert_allclose(found[unchecked], chance[unchecked], atol=1e-10)
    np.testing.assert_array_equal(found[at], answers)


def test_no_reviews_give_no_probabilities():
    assert LabelSupport().fit(X, Y, checked=([], [], [])).probability_ is None
    assert LabelSupport().fit(X, Y, CHECKED).check(None).probability_ is None


def test_later_reviews_equal_reviews_passed_to_fit():
    X, Y = problem(40, 5, 3)
    Y = np.column_stack([np.ones(40), Y])
    at_once = LabelSupport().fit(X, Y, some_checked(Y))
    later = LabelSupport().fit(X, Y, ([0], [0], [0])).check(some_checked(Y))
    np.testing.assert_array_equal(later.probability_, at_once.probability_)
    assert later.n_checked_ == at_once.n_checked_ < 12
    with pytest.raises(ValueError, match="checked"):
        later.check((np.nonzero(Y == 0)[0][:1], np.nonzero(Y == 0)[1][:1], [1]))
    with pytest.raises(NotFittedError):
        LabelSupport().check(CHECKED)


def test_equal_verdicts_move_the_level_and_keep_results_finite():
    X, Y = problem()
    rows, labels, _ = some_checked(Y)
    all_right, all_wrong = (
        LabelSupport().fit(X, Y, (rows, labels, np.full(12, answer))).probability_ for answer in (True, False)
    )
    others = Y > 0
    others[rows, labels] = False
    assert (all_right[others] > all_wrong[others]).all()
    assert 0 < all_wrong[others].min() < all_right[others].max() < 1


def test_reviews_find_the_label_that_is_often_wrong():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 4))
    truth = (X[:, :2] > 0).astype(int)
    candidates = truth.copy()
    candidates[:, 1] |= X[:, 2] > 0  # as predictable as the truth
    rows, labels = np.nonzero(candidates)
    drawn = rng.permutation(len(rows))[:100]
    checked = rows[drawn], labels[drawn], truth[rows[drawn], labels[drawn]]
    probability = LabelSupport().fit(X, candidates, checked).probability_[rows, labels]
    assert probability[labels == 0].mean() > probability[labels == 1].mean() + 0.2
    assert probability.mean() == pytest.approx(truth[rows, labels].mean(), abs=0.1)


def test_reviews_of_the_least_supported_only_are_used_with_a_warning():
    X, Y = problem(200, 5)
    model = LabelSupport().fit(X, Y)
    rows, labels = np.nonzero(Y)
    order = np.argsort(model.support_[rows, labels])
    middle = 10 / len(rows)  # of the first twenty, half have less support
    for chosen, share in ((order[:20], middle), (order[-20:], 1 - middle)):
        checked = rows[chosen], labels[chosen], np.ones(20)
        with pytest.warns(UserWarning, match=f"{share:.0%}"):
            assert model.check(checked).probability_ is not None
    for seed in range(200):  # draws at random are not complained about
        drawn = np.random.default_rng(seed).permutation(len(rows))[:50]
        model.check((rows[drawn], labels[drawn], np.ones(50)))


def test_too_many_labels_have_no_label_effects(monkeypatch):
    X, Y = problem()
    monkeypatch.setattr(checks_module, "_MAX_LABEL_EFFECTS", 3)
    model = LabelSupport().fit(X, Y, some_checked(Y))
    np.testing.assert_array_equal(model.checked_model_.label_effects, np.zeros(4))
    assert np.isfinite(model.probability_).all()


@pytest.mark.parametrize(
    "checked",
    [
        ([0, 0], [0, 0], [1, 1]),
        ([0], [1], [1]),
        ([6], [0], [1]),
        ([-1], [0], [1]),
        ([0], [3], [1]),
        ([0.5], [0], [1]),
        ([0], ["red"], [1]),
        ([0], [0], [2]),
        ([0], [0], ["keep"]),
        ([0], [0], [0.5]),
        ([0, 1], [0], [1]),
        ([0], [0]),
        3,
        pd.DataFrame({"a": [0], "b": [0], "c": [1]}),
        pd.DataFrame({0: [0], 1: [0], 2: [1]}),
    ],
)
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_invalid_reviews_are_rejected(checked, container):
    with pytest.raises(ValueError, match="checked must"):
        LabelSupport().fit(X, container(Y), checked=checked)


@parametrize_with_checks([LabelSupport()])
def test_it_passes_the_estimator_checks(estimator, check):
    check(estimator)


def noisy_classes(n_samples=300, seed=0):
    """Features, one label per row with a fifth of the labels replaced, and the truth."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n_samples, 4))
    truth = features[:, :3].argmax(axis=1)
    given = np.where(rng.random(n_samples) < 0.2, rng.integers(0, 3, n_samples), truth)
    return features, np.eye(3, dtype=int)[given], given != truth


def test_with_one_label_per_row_other_labels_are_not_used():
    features, labels, is_wrong = noisy_classes()
    model = LabelSupport().fit(features, labels)
    assert model.has_one_label_per_row_
    assert not model.assumes_truth_
    assert model.label_penalty_ is None
    found = model.support_[labels > 0]
    assert roc_auc_score(~is_wrong, found) > 0.85
    assert (model.confidence_[labels > 0][is_wrong] < 0.5).mean() > 0.4


def test_a_right_candidate_is_assumed_only_if_every_row_has_candidates():
    rng = np.random.default_rng(0)
    features = rng.standard_normal((80, 3))
    labels = (features + rng.standard_normal((80, 3)) > 0).astype(int)
    labels[labels.sum(axis=1) == 0, 0] = 1
    assert LabelSupport().fit(features, labels).assumes_truth_
    assert not LabelSupport(each_row_has_truth=False).fit(features, labels).assumes_truth_
    labels[7] = 0
    assert not LabelSupport().fit(features, labels).assumes_truth_
    with pytest.warns(UserWarning, match="each_row_has_truth"):
        assert not LabelSupport(each_row_has_truth=True).fit(features, labels).assumes_truth_


def test_single_candidates_are_not_right_by_assumption_if_many_rows_have_one():
    rng = np.random.default_rng(0)
    features = rng.standard_normal((300, 3))
    labels = (features + 0.3 * rng.standard_normal((300, 3)) > 0.2).astype(int)
    labels[labels.sum(axis=1) == 0, 0] = 1
    single = labels.sum(axis=1) == 1
    assert 0.2 < single.mean() < 0.8
    plain = LabelSupport("linear", each_row_has_truth=False).fit(features, labels)
    auto = LabelSupport("linear").fit(features, labels)
    forced = LabelSupport("linear", each_row_has_truth=True).fit(features, labels)
    assert auto.assumes_truth_
    np.testing.assert_array_equal(auto.support_[single], plain.support_[single])
    np.testing.assert_array_equal(auto.support_[~single], forced.support_[~single])
    assert (forced.confidence_[single][labels[single] > 0] > 0.99).all()


def test_labels_that_the_features_do_not_predict_are_recognised():
    rng = np.random.default_rng(0)
    features = rng.standard_normal((400, 3))
    labels = np.column_stack(
        [features[:, 0] + rng.standard_normal(400) > 0.5, rng.random((400, 2)) < [0.3, 0.01]]
    )
    model = LabelSupport().fit(features, labels.astype(int))
    assert model.is_predicted_.tolist() == [True, False, False]
    assert model.auc_[0] > 0.7


def test_a_label_of_one_row_does_not_change_the_support_of_others():
    rng = np.random.default_rng(0)
    features = rng.standard_normal((100, 3))
    labels = (features + rng.standard_normal((100, 3)) > 0).astype(int)
    rare = np.zeros((100, 1), dtype=int)
    rare[17] = 1
    options = {"kernel": "linear", "each_row_has_truth": False}
    alone = LabelSupport(**options).fit(features, labels)
    beside = LabelSupport(**options).fit(features, np.hstack([labels, rare]))
    if alone.penalty_ == beside.penalty_:
        np.testing.assert_allclose(beside.support_[:, :3], alone.support_, atol=1e-10)
    else:
        assert np.corrcoef(beside.support_[17, :3], alone.support_[17, :3])[0, 1] > 0.99
