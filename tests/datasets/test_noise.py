import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from broken_sparse import FAULTS, broken
from labelsieve.datasets import noise
from labelsieve.datasets.noise import add_candidates, draw_distinct
from labelsieve.io.errors import DatasetError

EVERY_MODEL = [("flip", 0.2), ("flip", 0.9), ("relative", 0.6), ("count", 3), ("instance", 0.2)]


def labelled(n_samples=400, n_labels=30, density=0.1, seed=0):
    """Labels, and features that show them."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((n_samples, n_labels)) < density).astype(int)
    X = rng.random((n_samples, 12)) + Y @ rng.random((n_labels, 12))
    return X, Y


def candidates(Y, model, rate, X, seed=0):
    return add_candidates(Y, model, rate=rate, X=X if model == "instance" else None, random_state=seed)


@pytest.mark.parametrize(("model", "rate"), EVERY_MODEL)
def test_true_labels_always_stay_candidates(model, rate):
    X, Y = labelled()
    C = candidates(Y, model, rate, X)
    assert np.all(C[Y == 1] == 1)
    assert set(np.unique(C)) == {0, 1}


@pytest.mark.parametrize(("model", "rate"), EVERY_MODEL)
def test_same_seed_gives_same_candidates_and_another_seed_others(model, rate):
    X, Y = labelled()
    first = candidates(Y, model, rate, X, seed=7)
    np.testing.assert_array_equal(first, candidates(Y, model, rate, X, seed=7))
    np.testing.assert_array_equal(first, candidates(Y, model, rate, X, seed=np.random.default_rng(7)))
    assert np.any(first != candidates(Y, model, rate, X, seed=8))


@pytest.mark.parametrize(("model", "rate"), EVERY_MODEL)
@pytest.mark.parametrize(
    "container", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.lil_matrix]
)
def test_sparse_labels_give_the_candidates_of_dense_ones(model, rate, container):
    X, Y = labelled()
    result = candidates(container(Y), model, rate, X)
    assert type(result) is (sp.csr_array if issubclass(container, sp.sparray) else sp.csr_matrix)
    assert result.has_canonical_format
    np.testing.assert_array_equal(result.toarray(), candidates(Y, model, rate, X))


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.float32])
def test_the_dtype_is_kept(dtype):
    _, Y = labelled()
    assert add_candidates(Y.astype(dtype), random_state=0).dtype == dtype
    assert add_candidates(sp.csr_array(Y.astype(dtype)), random_state=0).dtype == dtype


def test_sparse_features_give_the_candidates_of_dense_ones():
    X, Y = labelled()
    X[X < 0.6] = 0
    dense = add_candidates(Y, "instance", rate=0.3, X=X, random_state=0)
    from_sparse = add_candidates(Y, "instance", rate=0.3, X=sp.csr_array(X), random_state=0)
    # The similarities agree to rounding only, and a draw next to its threshold may fall the other way.
    assert np.mean(dense != from_sparse) < 1e-3


@pytest.mark.parametrize(("model", "rate"), EVERY_MODEL)
def test_the_caller_keeps_his_labels(model, rate):
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
def test_the_share_of_flipped_labels_is_the_rate(model, rate):
    X, Y = labelled(n_samples=3000)
    C = candidates(Y, model, rate, X)
    n_irrelevant = np.sum(Y == 0)
    # Independent draws with mean `rate`: five standard deviations of their average at most.
    assert abs(np.mean(C[Y == 0]) - rate) <= 5 * np.sqrt(rate * (1 - rate) / n_irrelevant)


@pytest.mark.parametrize("rate", [0.2, 0.7])
def test_flips_are_as_frequent_for_every_label_and_in_every_row(rate):
    _, Y = labelled(n_samples=4000)
    C = add_candidates(Y, rate=rate, random_state=3)
    for axis in (0, 1):
        n_irrelevant = np.sum(Y == 0, axis=axis)
        z = (np.sum(C > Y, axis=axis) - rate * n_irrelevant) / np.sqrt(rate * (1 - rate) * n_irrelevant)
        assert np.abs(z).max() < 5
        assert 0.5 < z.var() < 1.5  # the spread of independent flips, neither fixed counts nor clumps


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.5, 1.0, 2.5, 1e300])
def test_relative_adds_the_rounded_share_of_the_true_labels(rate):
    _, Y = labelled()
    Y[:5] = 0
    Y[5] = 1
    C = add_candidates(Y, "relative", rate=rate, random_state=0)
    for true, row in zip(Y, C, strict=True):
        assert row.sum() - true.sum() == min(round(rate * true.sum()), len(true) - true.sum())


@pytest.mark.parametrize("rate", [0, 1, 4, 29, 10**30])
def test_count_adds_that_many_labels_or_all_there_are(rate):
    _, Y = labelled()
    C = add_candidates(Y, "count", rate=rate, random_state=0)
    np.testing.assert_array_equal((C - Y).sum(axis=1), np.minimum(min(rate, 30), (Y == 0).sum(axis=1)))


@pytest.mark.parametrize("rate", [1, 2, 3])
def test_every_set_of_absent_labels_is_as_likely(rate):
    n_samples = 12_000
    Y = np.tile([0, 1, 0, 0, 1, 0], (n_samples, 1))
    C = add_candidates(Y, "count", rate=rate, random_state=0)
    sets = list(itertools.combinations([0, 2, 3, 5], rate))
    expected = n_samples / len(sets)
    for chosen in sets:
        other = [label for label in (0, 2, 3, 5) if label not in chosen]
        seen = np.sum(np.all(C[:, chosen] == 1, axis=1) & np.all(C[:, other] == 0, axis=1))
        assert abs(seen - expected) < 5 * np.sqrt(expected)


def test_labels_that_look_alike_are_confused_more_often():
    # Label 0 and its twin 1 raise the same features, label 2 raises others.
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, size=3000)
    Y = np.eye(3, dtype=int)[kind]
    X = rng.random((3000, 6))
    X[:, :3] += 2.0 * (kind <= 1)[:, None]
    X[:, 3:] += 2.0 * (kind == 2)[:, None]
    C = add_candidates(Y, "instance", rate=0.2, X=X, random_state=0)
    twin, stranger = C[kind == 0][:, 1].mean(), C[kind == 0][:, 2].mean()
    assert twin > 2 * stranger
    assert abs(C[Y == 0].mean() - 0.2) < 5 * np.sqrt(0.16 / 6000)


def test_instance_noise_takes_constant_features_and_labels_without_positives():
    X, Y = labelled(n_samples=2000)
    X[:, 0] = 1e8
    Y[:, 3] = 0
    C = add_candidates(Y, "instance", rate=0.3, X=X, random_state=0)
    assert abs(C[Y == 0].mean() - 0.3) < 5 * np.sqrt(0.21 / np.sum(Y == 0))
    flat = add_candidates(Y, "instance", rate=0.3, X=np.ones_like(X), random_state=0)
    assert abs(flat[Y == 0].mean() - 0.3) < 5 * np.sqrt(0.21 / np.sum(Y == 0))


@pytest.mark.parametrize(("model", "rate"), EVERY_MODEL)
def test_blocks_of_a_few_cells_keep_every_property(model, rate, monkeypatch):
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
def test_nothing_in_gives_nothing_out(shape, container):
    assert add_candidates(container(np.zeros(shape)), random_state=0).shape == shape


def test_explicit_zeros_and_repeated_entries_of_sparse_labels_are_understood():
    Y = sp.csr_array(([1.0, 0.0, 0.5, 0.5], [0, 1, 2, 2], [0, 2, 4]), shape=(2, 3))
    np.testing.assert_array_equal(add_candidates(Y, rate=0.0).toarray(), [[1, 0, 0], [0, 0, 1]])


def test_drawn_sets_are_distinct_sorted_and_of_the_size_asked():
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
        ([[1, -1], [-1, 1]], "only 0 and 1. Got -1. Threshold"),
        ([[0.2, 1.0]], "only 0 and 1. Got 0.2"),
        ([[0.0, np.nan]], "only 0 and 1. Got nan"),
        ([["TRUE", "FALSE"]], "numbers 0 and 1. Got dtype '<U5'"),
        ([0, 1, 1], r"Got 1 dimension\(s\). One-hot"),
        (sp.csr_array([[2, 0]]), "only 0 and 1. Got 2"),
    ],
)
def test_labels_that_are_not_zero_and_one_are_refused(Y, message):
    with pytest.raises(DatasetError, match=message):
        add_candidates(Y)


@pytest.mark.parametrize(
    ("model", "rate", "message"),
    [
        ("swap", 0.2, "model must be one of flip, relative, count, instance. Got 'swap'"),
        ("flip", 1.5, r"lie in \[0, 1\] for model='flip'. Got 1.5"),
        ("flip", float("nan"), r"lie in \[0, 1\]"),
        ("flip", "0.2", "rate must be a number. Got '0.2'"),
        ("flip", True, "rate must be a number. Got True"),
        ("relative", -0.1, "finite and >= 0"),
        ("relative", float("inf"), "finite and >= 0"),
        ("count", 0.2, "integer >= 0 for model='count'. Got 0.2"),
        ("count", -1, "integer >= 0"),
        ("instance", 0.2, "needs the features: pass X"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(model, rate, message):
    with pytest.raises(ValueError, match=message):
        add_candidates([[1, 0]], model, rate=rate)


def test_features_are_refused_where_they_are_not_used_or_do_not_fit():
    with pytest.raises(ValueError, match="used by model='instance' only"):
        add_candidates([[1, 0]], X=[[1.0]])
    with pytest.raises(DatasetError, match=r"same number of rows. Got 2 and 1"):
        add_candidates([[1, 0]], "instance", X=[[1.0], [2.0]])


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize("fault", FAULTS)
def test_broken_sparse_matrices_are_refused_before_anything_follows_their_indices(fault, make):
    Y = np.eye(6, dtype=int)
    message = FAULTS[fault][1].replace("column", "row" if make is sp.csc_matrix else "column")
    with pytest.raises(ValueError, match=f"^Y .*sparse.*{message}"):
        add_candidates(broken(Y, fault, make))
    with pytest.raises(ValueError, match=f"^X .*sparse.*{message}"):
        add_candidates(Y, "instance", X=broken(Y, fault, make))


def test_a_random_state_of_scikit_learn_is_a_seed_that_moves_on():
    Y = np.eye(20, dtype=int)
    state = np.random.RandomState(3)
    first, second = (add_candidates(Y, random_state=state) for _ in range(2))
    np.testing.assert_array_equal(add_candidates(Y, random_state=np.random.RandomState(3)), first)
    assert (first != second).any()


@pytest.mark.parametrize("seed", [-1, "seed", 0.5])
def test_what_is_no_seed_is_refused(seed):
    with pytest.raises(
        ValueError, match=f"random_state must be None, an integer of at least 0 .* Got {seed!r}"
    ):
        add_candidates(np.eye(3), random_state=seed)
