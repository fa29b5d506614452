"""Classifiers compared with scikit-learn, and ML-kNN compared with its paper written as loops."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from broken_sparse import broken
from labelsieve.classify import LabelFrequency, LabelwiseSVM, MLkNN

# The dual solver, which labelsieve does not use, with a small tolerance.
EXACT_LINEAR = LinearSVC(dual=True, tol=1e-8, random_state=0, max_iter=1_000_000)

CLASSIFIERS = [LabelwiseSVM(), LabelwiseSVM("rbf"), MLkNN(n_neighbors=3), LabelFrequency()]


@pytest.fixture
def problem():
    """Make sixty rows with zeros in every column, four labels, and two labels of a single class."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((60, 5)) < 0.5, 0, rng.gamma(2.0, size=(60, 5)))
    Y = (X[:, :4] + 0.5 * rng.normal(size=(60, 4)) > 1).astype(int)
    return X, np.column_stack([Y, np.zeros(60, dtype=int), np.ones(60, dtype=int)])


@parametrize_with_checks(CLASSIFIERS)
@pytest.mark.filterwarnings("ignore")  # the checks provoke warnings on purpose
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (LabelwiseSVM(), EXACT_LINEAR),
        (LabelwiseSVM("rbf"), SVC()),
        (LabelwiseSVM("rbf", C=3.0, gamma=0.7), SVC(C=3.0, gamma=0.7)),
    ],
    ids=["linear", "rbf", "rbf options"],
)
def test_svm_equals_scaling_and_one_versus_rest(problem, ours, theirs):
    X, Y = problem
    scaler = MinMaxScaler().fit(X[:40])
    reference = OneVsRestClassifier(theirs).fit(scaler.transform(X[:40]), Y[:40, :4])
    machine = clone(ours).fit(X[:40], Y[:40, :4])
    expected = reference.decision_function(scaler.transform(X[40:]))
    np.testing.assert_allclose(machine.decision_function(X[40:]), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(
        machine.predict(X[40:]), reference.predict(scaler.transform(X[40:])).astype(int)
    )


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_one_class_labels_rank_below_all_others(problem, kernel):
    X, Y = problem
    machine = LabelwiseSVM(kernel).fit(X, Y)
    scores = machine.decision_function(X)
    assert (scores[:, 4:].max(axis=1) < scores[:, :4].min(axis=1)).all()
    assert (scores[:, 4:] < 0).all()
    predicted = machine.predict(X)
    assert not predicted[:, 4].any()
    assert predicted[:, 5].all()
    np.testing.assert_array_equal(predicted[:, :4], scores[:, :4] > 0)


@pytest.mark.filterwarnings("ignore:Label .* is present in all training examples:UserWarning")
@pytest.mark.filterwarnings("ignore:Label not .* is present in all training examples:UserWarning")
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_constant_equals_one_versus_rest_for_one_class_labels(problem, kernel):
    X, Y = problem
    theirs = EXACT_LINEAR if kernel == "linear" else SVC()
    scaled = MinMaxScaler().fit_transform(X)
    reference = OneVsRestClassifier(theirs).fit(scaled, Y)
    machine = LabelwiseSVM(kernel, one_class="constant").fit(X, Y)
    np.testing.assert_allclose(
        machine.decision_function(X), reference.decision_function(scaled), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_array_equal(machine.predict(X), reference.predict(scaled))


def test_svm_scores_one_class_labels_only():
    machine = LabelwiseSVM().fit(np.eye(3), np.array([[1, 0], [1, 0], [1, 0]]))
    np.testing.assert_array_equal(machine.decision_function(np.eye(3)), np.full((3, 2), -1.0))
    np.testing.assert_array_equal(machine.predict(np.eye(3)), [[1, 0]] * 3)


def test_svm_that_does_not_converge_warns(problem):
    X, Y = problem
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        LabelwiseSVM(max_iter=1).fit(X, Y[:, :1])


def slow_ml_knn(X, Y, X_new, k, s):
    """Compute posterior probabilities by Eqs. 1 to 5 of Zhang and Zhou (2007), one label at a time."""
    n_rows, n_labels = Y.shape
    posterior = np.zeros((len(X_new), n_labels))

    def count(point, label, leave_out=None):
        others = [i for i in range(n_rows) if i != leave_out]
        nearest = sorted(others, key=lambda i: np.linalg.norm(X[i] - point))[:k]
        return sum(Y[i, label] for i in nearest)

    for label in range(n_labels):
        prior = (s + Y[:, label].sum()) / (2 * s + n_rows)
        positive, negative = [0] * (k + 1), [0] * (k + 1)
        for i in range(n_rows):
            (positive if Y[i, label] else negative)[count(X[i], label, leave_out=i)] += 1
        for row, point in enumerate(X_new):
            j = count(point, label)
            with_label = prior * (s + positive[j]) / (s * (k + 1) + sum(positive))
            without = (1 - prior) * (s + negative[j]) / (s * (k + 1) + sum(negative))
            posterior[row, label] = with_label / (with_label + without)
    return posterior


@pytest.mark.parametrize(("k", "s"), [(1, 1.0), (5, 1.0), (10, 0.3)])
def test_ml_knn_equals_its_paper(k, s):
    rng = np.random.default_rng(1)
    X, Y = rng.random((40, 3)), (rng.random((40, 4)) < [0.5, 0.2, 0.05, 0.9]).astype(int)
    X_new = rng.random((8, 3))
    model = MLkNN(n_neighbors=k, smoothing=s, scale=None).fit(X, Y)
    expected = slow_ml_knn(X, Y, X_new, k, s)
    np.testing.assert_allclose(1 / (1 + np.exp(-model.decision_function(X_new))), expected, rtol=1e-10)
    np.testing.assert_array_equal(model.predict(X_new), expected > 0.5)


def test_row_is_not_its_own_neighbour_even_among_duplicates():
    # In three pairs of equal rows, the only neighbour of a row is its duplicate, which has the opposite label.
    X = np.repeat([[0.0], [1.0], [2.0]], 2, axis=0)
    Y = np.array([[0], [1], [0], [1], [0], [1]])
    model = MLkNN(n_neighbors=1).fit(X, Y)
    # The prior odds are even. No row with the label has a neighbour with it, but all other rows do, so the
    # probabilities are (1 + 0) / (2 + 3) and (1 + 3) / (2 + 3).
    np.testing.assert_allclose(model.log_odds_, [[np.log(4), np.log(1 / 4)]])


def test_ml_knn_breaks_ties_equally_for_dense_and_sparse_features():
    rng = np.random.default_rng(2)
    # Short texts have few distinct words, so many distances are equal.
    X, Y = (rng.random((200, 30)) < 0.08).astype(float) * 0.1, (rng.random((200, 5)) < 0.3).astype(int)
    dense, sparse = MLkNN().fit(X[:150], Y[:150]), MLkNN().fit(sp.csr_matrix(X[:150]), Y[:150])
    np.testing.assert_array_equal(dense.log_odds_, sparse.log_odds_)
    scores = dense.decision_function(X[150:])
    np.testing.assert_array_equal(scores, sparse.decision_function(sp.csr_matrix(X[150:])))
    alone = np.vstack([dense.decision_function(row[None]) for row in X[150:]])
    np.testing.assert_array_equal(scores, alone)


def test_ml_knn_raises_with_too_few_rows():
    with pytest.raises(ValueError, match=r"n_neighbors .*n_samples=5.* 5"):
        MLkNN(n_neighbors=5).fit(np.eye(5), np.eye(5, dtype=int))


def test_label_frequency_ignores_features(problem):
    X, Y = problem
    model = LabelFrequency().fit(X, Y)
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, np.tile(Y.mean(axis=0) - 0.5, (60, 1)))
    np.testing.assert_array_equal(model.predict(X), np.tile(Y.mean(axis=0) > 0.5, (60, 1)))


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=repr)
def test_sparse_and_dense_input_give_equal_scores(problem, classifier, monkeypatch):
    Y = problem[1]
    # With a zero in every column, dense and sparse features have the same scaling.
    X = np.vstack([np.zeros(5), np.random.default_rng(0).random((59, 5))])
    dense = clone(classifier).fit(X, Y)
    with monkeypatch.context() as patch:
        patch.setattr(sp.csr_matrix, "toarray", _only_labels(sp.csr_matrix.toarray, X.shape))
        sparse = clone(classifier).fit(sp.csr_matrix(X), sp.csr_matrix(Y))
        scores = sparse.decision_function(sp.csr_matrix(X))
    np.testing.assert_allclose(scores, dense.decision_function(X), rtol=1e-3, atol=1e-3)


def _only_labels(toarray, shape):
    """Return a version of toarray that fails for features, which must stay sparse."""

    def guarded(self, *args, **kwargs):
        assert self.shape != shape, "the features were made dense"
        return toarray(self, *args, **kwargs)

    return guarded


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=repr)
def test_scaling_is_learned_from_the_training_rows_only(problem, classifier):
    X, Y = problem
    model = clone(classifier).fit(X[:40], Y[:40])
    alone = np.vstack([model.decision_function(row[None]) for row in X[40:]])
    np.testing.assert_allclose(model.decision_function(X[40:]), alone, rtol=1e-12, atol=1e-12)


def test_negative_labels_raise():
    with pytest.raises(ValueError, match="-1"):
        LabelwiseSVM().fit(np.eye(2), np.array([[-1, 1], [1, -1]]))


def test_invalid_parameters_raise(problem):
    with pytest.raises(ValueError, match="'one_class' parameter"):
        LabelwiseSVM(one_class="drop").fit(*problem)
    with pytest.raises(ValueError, match="'smoothing' parameter"):
        MLkNN(smoothing=0).fit(*problem)


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=repr)
def test_invalid_sparse_matrices_raise(problem, classifier):
    X, Y = problem
    fitted = clone(classifier).fit(X, Y)
    bad_X, bad_Y = broken(X, "index too large"), broken(Y, "index too large")
    for call in (
        lambda: clone(classifier).fit(bad_X, Y),
        lambda: clone(classifier).fit(X, bad_Y),
        lambda: fitted.predict(bad_X),
        lambda: fitted.decision_function(bad_X),
        lambda: fitted.score(X, bad_Y),
    ):
        with pytest.raises(ValueError, match="sparse"):
            call()


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=repr)
def test_64_bit_indices_and_duplicate_entries_give_equal_scores(problem, classifier):
    X, Y = (sp.csr_matrix(part) for part in problem)
    expected = clone(classifier).fit(X, Y).decision_function(X)
    long_X, long_Y = X.copy(), Y.copy()
    for M in (long_X, long_Y):
        M.indices, M.indptr = M.indices.astype(np.int64), M.indptr.astype(np.int64)
    halves = sp.csr_matrix((np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), X.indptr * 2), shape=X.shape)
    for features, labels in ((long_X, long_Y), (halves, Y)):
        model = clone(classifier).fit(features, labels)
        np.testing.assert_array_equal(model.decision_function(features), expected)
    assert long_X.indices.dtype == np.int64
    assert halves.nnz == 2 * X.nnz
