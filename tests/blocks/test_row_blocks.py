"""Blocks of rows in memory and streamed."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from labelsieve._blocks.blocks import MemoryBlocks, add, stack
from labelsieve._blocks.streamed import StreamedBlocks, lazy_rows


def move(X, U, step):
    U = U + step * X.sum(axis=1, keepdims=True)
    return U, (U.sum(), len(U))


def start(X, rows):
    return np.full((rows.stop - rows.start, 1), float(rows.start)), 0


def double(X):
    return 2 * X


def fail_at_seven(X, rows):
    if rows.start == 7:
        raise ValueError("seven")
    return 0


X = np.arange(30.0).reshape(15, 2)
SIZES = (7, 2, 6)
CUTS = np.cumsum((0, *SIZES))


def memory_blocks():
    return MemoryBlocks([{"X": X[a:b]} for a, b in pairwise(CUTS)])


N_READ = Counter()


def read_rows(first, stop):
    N_READ[int(first)] += 1
    return X[first:stop]


def streamed_blocks():
    delayed = pytest.importorskip("dask").delayed
    N_READ.clear()
    parts = [delayed(read_rows, pure=False)(first, stop) for first, stop in pairwise(CUTS)]
    column = lazy_rows(parts, SIZES, X[:0]).to_delayed().ravel()
    return StreamedBlocks({"X": column}, SIZES)


BACKENDS = {"memory": memory_blocks, "streamed": streamed_blocks}


@pytest.fixture(params=BACKENDS)
def rows(request):
    return BACKENDS[request.param]()


def test_fold_sums_over_all_rows_and_keeps_columns(rows):
    rows.derive(double, ["X"], gives="X")
    rows.fold(start, ["X", "rows"], gives="U")
    rows.rename({"before": "U", "U": "U"})
    total, n_rows = rows.fold(move, ["X", "U"], 3, gives="U")
    expected = np.repeat(CUTS[:-1], SIZES) + 6 * X.sum(axis=1)
    assert n_rows == 15
    assert total == pytest.approx(expected.sum())
    np.testing.assert_array_equal(_all_rows(rows, "U")[:, 0], expected)
    np.testing.assert_array_equal(_all_rows(rows, "before")[:, 0], np.repeat(CUTS[:-1], SIZES))


def test_failed_fold_keeps_no_column_and_names_the_rows(rows):
    rows.fold(start, ["X", "rows"], gives="U")
    with pytest.raises(ValueError, match="seven") as caught:
        rows.fold(fail_at_seven, ["X", "rows"])
    assert "rows 7 to 8" in caught.value.__notes__[0].lower()
    np.testing.assert_array_equal(_all_rows(rows, "U")[:, 0], np.repeat(CUTS[:-1], SIZES))


def _all_rows(rows, name):
    return np.concatenate(rows.fold(lambda column: [column], [name]))


def test_streamed_blocks_read_only_needed_columns():
    rows = streamed_blocks()
    rows.fold(start, ["X", "rows"], gives="U")
    _all_rows(rows, "U")
    assert list(N_READ.values()) == [1, 1, 1]
    _all_rows(rows, "X")
    assert list(N_READ.values()) == [2, 2, 2]


def test_add_takes_tuples_and_sparse_parts_and_does_not_change_the_second():
    second = np.ones(2)
    total = add((np.zeros(2), sp.eye(2, format="csr")), (second, sp.eye(2, format="csr")))
    np.testing.assert_array_equal(total[0], 1)
    np.testing.assert_array_equal(total[1].toarray(), 2 * np.eye(2))
    assert (second == 1).all()


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_stack_keeps_order_and_promotes_dtype(kind):
    parts = [kind(X[first:stop]) for first, stop in pairwise(CUTS)]
    parts[1] = parts[1].astype(np.float32)
    whole = stack(parts)
    assert whole.dtype == np.float64
    np.testing.assert_array_equal(whole.toarray() if sp.issparse(whole) else whole, X)
