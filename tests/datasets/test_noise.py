import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from broken_sparse import FAULTS, broken
from labelsieve.datasets import noise
from labelsieve.datasets.noise import add_candidates, draw_distinct
from labelsieve.io.errors import DatasetError

ADDING_MODELS = [
    ("flip", 0.2),
    ("flip", 0.9),
    ("relative", 0.6),
    ("count", 3),
    ("instance", 0.2),
    ("label", 0.2),
]
EVERY_MODEL = [*ADDING_MODELS, ("missing", 0.3)]


def labelled(n_samples=400, n_labels=30, density=0.1, seed=0):
    """Make labels, and features that depend on them."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((n_samples, n_labels)) < density).astype(int)
    X = rng.random((n_samples, 12)) + Y @ rng.random((n_labels, 12))
    return X, Y


def candidates(Y, model, rate, X, seed=0):
    return add_candidates(Y, model, rate=rate, X=X if model == "instance" else None, random_state=seed)


@pytest.mark.parametrize(("model", "rate"), ADDING_MODELS)
def test_true_labels_remain_candidates(model, rate):
    X, Y = labelled()
    C = candidates(Y, model, rate, X)
    assert np.all(C[Y == 1] == 1)
    assert set(np.unique(C)) == {0, 1}


@pytest.mark.parametrize(("model", "rate"), EVERY_MODEL)
def test_candidates_depend_only_on_the_seed(model, rate):
    X, Y = labelled()
    first = candidates(Y, model, rate, X, seed=7)
    np.testing.assert_array_equal(first, candidates(Y, model, rate, X, seed=7))
    np.testing.assert_array_equal(first, candidates(Y, model, rate, X, seed=np.random.default_rng(7)))
    assert np.any(first != candidates(Y, model, rate, X, seed=8))


@pytest.mark.parametrize(("model", "rate"), EVERY_MODEL)
@pytest.mark.parametrize(
    "container", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.lil_matrix]
)
def test_sparse_and_dense_labels_give_equal_candidates(model, rate, container):
    X, Y = labelled()
    result = candidates(container(Y), model, rate, X)
    assert type(result) is (sp.csr_array if issubclass(container, sp.sparray) else sp.csr_matrix)
    assert result.has_canonical_format
    np.testing.assert_array_equal(result.toarray(), candidates(Y, model, rate, X))


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.float32])
def test_dtype_is_kept(dtype):
    _, Y = labelled()
    assert add_candidates(Y.astype(dtype), random_state=0).dtype == dtype
    assert add_candidates(sp.csr_array(Y.astype(dtype)), random_state=0).dtype == dtype


def test_sparse_and_dense_features_give_equal_candidates():
    X, Y = labelled()
    X[X < 0.6] = 0
    dense = add_candidates(Y, "instance", rate=0.3, X=X, random_state=0)
    from_sparse = add_candidates(Y, "instance", rate=0.3, X=sp.csr_array(X), random_state=0)
    # Similarities differ by rounding errors, which can change a few draws close to their thresholds.
    assert np.mean(dense != from_sparse) < 1e-3


@pytest.mark.parametrize(("model", "rate"), EVERY_MODEL)
def test_input_labels_do_not_change(model, rate):
    X, Y = labelled()
    S = sp.csr_array(Y)
    kept_Y, kept_S, kept_X = Y.copy(), S.copy(), X.copy()
    candidates(Y, model, rate, X)
    candidates(S, model, rate, X)
    np.testing.assert_array_equal(Y, kept_Y)
    np.testing.assert_array_equal(X, kept_X)
    for part in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(S, part), getattr(kept_S, part))


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.2, 0.5, 0.77, 1.0])
@pytest.mark.parametrize("model", ["flip", "instance"])
def test_fraction_of_flipped_labels_equals_the_rate(model, rate):
    X, Y = labelled(n_samples=3000)
    C = candidates(Y, model, rate, X)
    n_irrelevant = np.sum(Y == 0)
    # At most five standard deviations of the mean of independent draws.
    assert abs(np.mean(C[Y == 0]) - rate) <= 5 * np.sqrt(rate * (1 - rate) / n_irrelevant)


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_missing_drops_a_fraction_of_the_true_labels(rate):
    _, Y = labelled(n_samples=3000)
    C = add_candidates(Y, "missing", rate=rate, random_state=0)
    assert np.all(C <= Y)
    assert abs(1 - C[Y == 1].mean() - rate) <= 5 * np.sqrt(rate * (1 - rate) / Y.sum())


def test_labels_differ_in_their_rates():
    Y = np.zeros((2000, 400), dtype=int)
    rates = add_candidates(Y, "label", rate=0.2, random_state=0).mean(axis=0)
    # The beta distribution with parameters 1 and 4 has mean 0.2 and standard deviation 0.163.
    assert rates.mean() == pytest.approx(0.2, abs=0.03)
    assert rates.std() == pytest.approx(0.163, abs=0.02)
    for rate in (0.0, 1.0):
        assert np.all(add_candidates(Y, "label", rate=rate, random_state=0) == rate)


@pytest.mark.parametrize("rate", [0.2, 0.7])
def test_flips_are_equally_frequent_for_all_labels_and_rows(rate):
    _, Y = labelled(n_samples=4000)
    C = add_candidates(Y, rate=rate, random_state=3)
    for axis in (0, 1):
        n_irrelevant = np.sum(Y == 0, axis=axis)
        z = (np.sum(C > Y, axis=axis) - rate * n_irrelevant) / np.sqrt(rate * (1 - rate) * n_irrelevant)
        assert np.abs(z).max() < 5
        assert 0.5 < z.var() < 1.5  # the variance of independent flips


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.5, 1.0, 2.5, 1e300])
def test_relative_adds_a_rounded_multiple_of_the_true_labels(rate):
    _, Y = labelled()
    Y[:5] = 0
    Y[5] = 1
    C = add_candidates(Y, "relative", rate=rate, random_state=0)
    for true, row in zip(Y, C, strict=True):
        assert row.sum() - true.sum() == min(round(rate * true.sum()), len(true) - true.sum())


@pytest.mark.parametrize("rate", [0, 1, 4, 29, 10**30])
def test_count_adds_the_given_number_of_labels_or_all(rate):
    _, Y = labelled()
    C = add_candidates(Y, "count", rate=rate, random_state=0)
    np.testing.assert_array_equal((C - Y).sum(axis=1), np.minimum(min(rate, 30), (Y == 0).sum(axis=1)))


@pytest.mark.parametrize("rate", [1, 2, 3])
def test_sets_of_absent_labels_are_equally_likely(rate):
    n_samples = 12_000
    Y = np.tile([0, 1, 0, 0, 1, 0], (n_samples, 1))
    C = add_candidates(Y, "count", rate=rate, random_state=0)
    sets = list(itertools.combinations([0, 2, 3, 5], rate))
    expected = n_samples / len(sets)
    for chosen in sets:
        other = [label for label in (0, 2, 3, 5) if label not in chosen]
        count = np.sum(np.all(C[:, chosen] == 1, axis=1) & np.all(C[:, other] == 0, axis=1))
        assert abs(count - expected) < 5 * np.sqrt(expected)


def test_instance_noise_prefers_similar_labels():
    # Labels 0 and 1 raise the same features, label 2 raises others.
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, size=3000)
    Y = np.eye(3, dtype=int)[kind]
    X = rng.random((3000, 6))
    X[:, :3] += 2.0 * (kind <= 1)[:, None]
    X[:, 3:] += 2.0 * (kind == 2)[:, None]
    C = add_candidates(Y, "instance", rate=0.2, X=X, random_state=0)
    similar, different = C[kind == 0][:, 1].mean(), C[kind == 0][:, 2].mean()
    assert similar > 2 * different
    assert abs(C[Y == 0].mean() - 0.2) < 5 * np.sqrt(0.16 / 6000)


def test_instance_noise_accepts_constant_features_and_labels_without_positives():
    X, Y = labelled(n_samples=2000)
    X[:, 0] = 1e8
    Y[:, 3] = 0
    C = add_candidates(Y, "instance", rate=0.3, X=X, random_state=0)
    assert abs(C[Y == 0].mean() - 0.3) < 5 * np.sqrt(0.21 / np.sum(Y == 0))
    flat = add_candidates(Y, "instance", rate=0.3, X=np.ones_like(X), random_state=0)
    assert abs(flat[Y == 0].mean() - 0.3) < 5 * np.sqrt(0.21 / np.sum(Y == 0))


@pytest.mark.parametrize(("model", "rate"), ADDING_MODELS)
def test_small_blocks_satisfy_the_noise_model(model, rate, monkeypatch):
    monkeypatch.setattr(noise, "_BLOCK_CELLS", 40)
    X, Y = labelled(n_samples=900)
    C = candidates(Y, model, rate, X)
    np.testing.assert_array_equal(C, candidates(sp.csr_array(Y), model, rate, X).toarray())
    assert np.all(C >= Y)
    if model in ("flip", "instance"):
        assert abs(C[Y == 0].mean() - rate) < 5 * np.sqrt(rate * (1 - rate) / np.sum(Y == 0))


def test_sparse_labels_are_never_made_dense():
    # As a dense matrix of bytes this would need 40 GB.
    n_samples, n_labels = 20_000, 2_000_000
    columns = np.random.default_rng(0).integers(0, n_labels, size=n_samples)
    Y = sp.csr_array(
        (np.ones(n_samples, np.int8), columns, np.arange(n_samples + 1)), shape=(n_samples, n_labels)
    )
    C = add_candidates(Y, "flip", rate=1e-5, random_state=0)
    extra = C.nnz - Y.nnz
    expected = 1e-5 * n_samples * (n_labels - 1)
    assert abs(extra - expected) < 5 * np.sqrt(expected)
    assert C.multiply(Y).nnz == Y.nnz


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_empty_labels_give_empty_candidates(shape, container):
    assert add_candidates(container(np.zeros(shape)), random_state=0).shape == shape


def test_sparse_labels_may_have_explicit_zeros_and_duplicate_entries():
    Y = sp.csr_array(([1.0, 0.0, 0.5, 0.5], [0, 1, 2, 2], [0, 2, 4]), shape=(2, 3))
    np.testing.assert_array_equal(add_candidates(Y, rate=0.0).toarray(), [[1, 0, 0], [0, 0, 1]])


def test_drawn_sets_are_distinct_sorted_and_of_the_given_size():
    rng = np.random.default_rng(0)
    available = rng.integers(0, 50, size=500)
    counts = rng.integers(0, available + 1)
    rows, numbers = draw_distinct(counts, available, rng)
    np.testing.assert_array_equal(np.bincount(rows, minlength=500), counts)
    assert np.all(numbers < available[rows])
    keys = rows * 50 + numbers
    assert np.all(np.diff(keys) > 0)


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        ([[1, -1], [-1, 1]], "Y .* got -1"),
        ([[0.2, 1.0]], "Y .* got 0.2"),
        ([[0.0, np.nan]], "Y .* got nan"),
        ([["TRUE", "FALSE"]], "Y .* '<U5'"),
        ([0, 1, 1], "Y .* got 1 dimension"),
        (sp.csr_array([[2, 0]]), "Y .* got 2"),
    ],
)
def test_labels_other_than_zero_and_one_raise(Y, message):
    with pytest.raises(DatasetError, match=message):
        add_candidates(Y)


@pytest.mark.parametrize(
    ("model", "rate", "message"),
    [
        ("swap", 0.2, "model .*flip, relative, count, instance.* 'swap'"),
        ("flip", 1.5, r"rate .*\[0, 1\].*'flip'.* 1.5"),
        ("flip", float("nan"), r"rate .*\[0, 1\].* nan"),
        ("flip", "0.2", "rate .* '0.2'"),
        ("flip", True, "rate .* True"),
        ("relative", -0.1, "rate .* -0.1"),
        ("relative", float("inf"), "rate .* inf"),
        ("count", 0.2, "rate .*'count'.* 0.2"),
        ("count", -1, "rate .* -1"),
        ("instance", 0.2, "X .*'instance'"),
    ],
)
def test_invalid_parameters_raise(model, rate, message):
    with pytest.raises(ValueError, match=message):
        add_candidates([[1, 0]], model, rate=rate)


def test_unused_or_inconsistent_features_raise():
    with pytest.raises(ValueError, match=r"X .*'instance'"):
        add_candidates([[1, 0]], X=[[1.0]])
    with pytest.raises(DatasetError, match=r"X and Y .* 2 and 1"):
        add_candidates([[1, 0]], "instance", X=[[1.0], [2.0]])


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize("fault", FAULTS)
def test_invalid_sparse_matrices_raise(fault, make):
    Y = np.eye(6, dtype=int)
    message = FAULTS[fault][1].replace("column", "row" if make is sp.csc_matrix else "column")
    with pytest.raises(ValueError, match=f"^Y .*sparse.*{message}"):
        add_candidates(broken(Y, fault, make))
    with pytest.raises(ValueError, match=f"^X .*sparse.*{message}"):
        add_candidates(Y, "instance", X=broken(Y, fault, make))


def test_random_state_advances_between_calls():
    Y = np.eye(20, dtype=int)
    state = np.random.RandomState(3)
    first, second = (add_candidates(Y, random_state=state) for _ in range(2))
    np.testing.assert_array_equal(add_candidates(Y, random_state=np.random.RandomState(3)), first)
    assert (first != second).any()


@pytest.mark.parametrize("seed", [-1, "seed", 0.5])
def test_invalid_seed_raises(seed):
    with pytest.raises(ValueError, match=f"random_state .* {seed!r}"):
        add_candidates(np.eye(3), random_state=seed)
