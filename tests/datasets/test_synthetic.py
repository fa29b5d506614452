import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_selection import f_classif
from sklearn.linear_model import LinearRegression

from labelsieve.datasets.synthetic import make_pml


def summed_f(X, Y):
    """Sum the F statistic over the labels, as a simple univariate selector."""
    return sum(f_classif(X, label)[0] for label in Y.T)


def test_returns_two_matrices_and_the_truth_on_request():
    X, Y = make_pml(random_state=0)
    assert X.shape == (200, 20)
    assert Y.shape == (200, 5)
    with_truth = make_pml(random_state=0, return_truth=True)
    assert len(with_truth) == 4
    np.testing.assert_array_equal(with_truth[0], X)
    np.testing.assert_array_equal(with_truth[1], Y)


@pytest.mark.parametrize("density", [1.0, 0.2])
def test_sparse_and_dense_problems_are_equal(density):
    options = {"density": density, "n_redundant": 3, "return_truth": True, "random_state": 4}
    dense = make_pml(**options)
    sparse = make_pml(**options, sparse=True)
    for matrix, expected in zip(sparse[:3], dense[:3], strict=True):
        assert isinstance(matrix, sp.csr_array)
        assert matrix.has_sorted_indices
        np.testing.assert_array_equal(matrix.toarray(), expected)
    np.testing.assert_array_equal(sparse[3], dense[3])


@pytest.mark.parametrize("density", [1.0, 0.2])
def test_features_are_in_the_unit_interval_and_labels_are_binary(density):
    X, Y, Y_true, _ = make_pml(
        n_samples=2000, n_redundant=4, density=density, return_truth=True, random_state=1
    )
    assert X.min() >= 0
    assert X.max() <= 1
    assert set(np.unique(Y)) == set(np.unique(Y_true)) == {0, 1}
    independent = X[:, np.mean(X > 0, axis=0) < 1.25 * density]
    assert abs(np.mean(independent > 0) - density) < 5 * np.sqrt(density / independent.size) + 1e-12


@pytest.mark.parametrize("n_labels", [2, 5, 30])
@pytest.mark.parametrize("label_correlation", [0.0, 0.3, 1.0])
def test_every_row_has_a_true_label_and_no_label_is_constant(n_labels, label_correlation):
    Y_true = make_pml(
        n_labels=n_labels, label_correlation=label_correlation, return_truth=True, random_state=0
    )[2]
    assert Y_true.sum(axis=1).min() >= 1
    assert np.all((Y_true.mean(axis=0) > 0) & (Y_true.mean(axis=0) < 1))


def test_label_density_is_a_minimum_and_exact_for_a_single_label():
    assert make_pml(1000, n_labels=1, return_truth=True, random_state=0)[2].mean() == 0.3
    densities = make_pml(1000, label_density=0.1, return_truth=True, random_state=0)[2].mean(axis=0)
    assert np.all(densities >= 0.1)


def test_noise_changes_only_the_candidates():
    noisy = make_pml(3000, noise=0.4, return_truth=True, random_state=2)
    clean = make_pml(3000, noise=0.0, return_truth=True, random_state=2)
    np.testing.assert_array_equal(clean[1], clean[2])
    for part in (0, 2, 3):
        np.testing.assert_array_equal(noisy[part], clean[part])
    irrelevant = noisy[2] == 0
    assert np.all(noisy[1] >= noisy[2])
    assert abs(noisy[1][irrelevant].mean() - 0.4) < 5 * np.sqrt(0.24 / irrelevant.sum())


@pytest.mark.parametrize(("model", "rate"), [("relative", 1.0), ("count", 2), ("instance", 0.2)])
def test_all_noise_models_are_supported(model, rate):
    Y, Y_true = make_pml(noise_model=model, noise=rate, return_truth=True, random_state=0)[1:3]
    assert np.all(Y_true <= Y)
    assert Y.sum() > Y_true.sum()


@pytest.mark.parametrize("seed", range(5))
def test_a_univariate_selector_finds_the_informative_features(seed):
    X, Y, _, informative = make_pml(1000, return_truth=True, random_state=seed)
    np.testing.assert_array_equal(np.sort(np.argsort(-summed_f(X, Y))[:5]), informative)


@pytest.mark.parametrize("seed", range(5))
def test_a_multivariate_selector_finds_the_informative_features(seed):
    X, Y, _, informative = make_pml(1000, return_truth=True, random_state=seed)
    weights = np.linalg.norm(LinearRegression().fit(X, Y).coef_, axis=0)
    np.testing.assert_array_equal(np.sort(np.argsort(-weights)[:5]), informative)


def test_every_informative_feature_is_relevant_to_every_label():
    X, _, Y_true, informative = make_pml(3000, return_truth=True, random_state=0)
    for label in Y_true.T:
        assert f_classif(X[:, informative], label)[1].max() < 1e-6
    others = np.setdiff1d(np.arange(20), informative)
    # p-values below 1e-4 are very unlikely in 75 tests of a true null hypothesis.
    assert min(f_classif(X[:, others], label)[1].min() for label in Y_true.T) > 1e-4


def test_redundant_features_are_explained_by_informative_ones():
    X = make_pml(500, n_informative=5, n_redundant=6, shuffle=False, random_state=0)[0]
    fit = LinearRegression().fit(X[:, :5], X[:, 5:11])
    residual = X[:, 5:11] - fit.predict(X[:, :5])
    assert np.all(1 - residual.var(axis=0) / X[:, 5:11].var(axis=0) > 0.9)
    assert np.all(residual.var(axis=0) > 0)


def test_label_correlation_increases_the_correlation_of_labels():
    def mean_correlation(value):
        found = []
        for seed in range(20):
            Y_true = make_pml(
                400, n_informative=8, label_correlation=value, return_truth=True, random_state=seed
            )[2]
            found.append(np.corrcoef(Y_true.T)[np.triu_indices(5, 1)].mean())
        return np.mean(found)

    low, middle, high = map(mean_correlation, (0.0, 0.5, 1.0))
    assert low + 0.1 < middle < high - 0.1


def test_without_shuffling_the_informative_features_come_first():
    X, _, _, informative = make_pml(shuffle=False, return_truth=True, random_state=0)
    np.testing.assert_array_equal(informative, np.arange(5))
    mixed, _, _, places = make_pml(return_truth=True, random_state=0)
    assert not np.array_equal(places, informative)
    # The columns are equal up to their order.
    np.testing.assert_array_equal(np.sort(mixed.sum(axis=0)), np.sort(X.sum(axis=0)))


def test_same_seed_gives_the_same_problem():
    first, second = make_pml(random_state=3), make_pml(random_state=np.random.default_rng(3))
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])
    assert np.any(make_pml(random_state=4)[0] != first[0])


def test_smallest_problem_is_valid():
    X, Y = make_pml(1, 1, n_informative=1, n_labels=1, random_state=0)
    assert X.shape == Y.shape == (1, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_samples": 0}, "n_samples .* got 0"),
        ({"n_features": 2.0}, "n_features .* got 2.0"),
        ({"n_informative": True}, "n_informative .* got True"),
        ({"n_labels": "5"}, "n_labels .* got '5'"),
        ({"n_informative": 15, "n_redundant": 6}, r"n_features=20.* 15 \+ 6"),
        ({"label_density": 1.0}, r"label_density .*\(0, 1\).* 1.0"),
        ({"label_correlation": -0.1}, r"label_correlation .*\[0, 1\]"),
        ({"density": 0}, r"density .*\(0, 1\].* 0"),
        ({"density": float("nan")}, "density .* nan"),
        ({"noise": 2.0}, r"rate .*\[0, 1\].* 2.0"),
        ({"noise_model": "swap"}, "model .* 'swap'"),
    ],
)
def test_invalid_parameters_raise(options, message):
    with pytest.raises(ValueError, match=message):
        make_pml(**options)
