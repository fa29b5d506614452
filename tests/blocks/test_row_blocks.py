"""Blocks of rows: in memory, streamed and on a cluster they come to the same."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from labelsieve._blocks.blocks import MemoryBlocks, add, block_function, stack
from labelsieve._blocks.fold_log import FoldLog
from labelsieve._blocks.streamed import StreamedBlocks


@block_function("X", "U", gives=("U",))
def move(rows, step):
    U = rows["U"] + step * rows["X"].sum(axis=1, keepdims=True)
    return {"U": U}, (U.sum(), len(U))


@block_function("X", gives=("U",))
def start(rows):
    return {"U": np.full((len(rows["X"]), 1), float(rows["first_row"]))}, 0


@block_function("X", gives=("X",))
def double(rows):
    return {"X": 2 * rows["X"]}, None


@block_function("X")
def fail_at_seven(rows):
    if rows["first_row"] == 7:
        raise ValueError("seven")
    return {}, 0


X = np.arange(30.0).reshape(15, 2)
SIZES = (7, 2, 6)
CUTS = np.cumsum((0, *SIZES))


def memory_blocks():
    return MemoryBlocks([{"X": X[a:b]} for a, b in pairwise(CUTS)])


class Reader:
    """Reads rows of an array, and counts."""

    def __init__(self, a, b):
        self.rows = slice(a, b)
        self.n_read = 0

    def __call__(self, names):
        self.n_read += "X" in names
        return {"X": X[self.rows]} if "X" in names else {}


def streamed_blocks(**options):
    return StreamedBlocks([Reader(a, b) for a, b in pairwise(CUTS)], SIZES, **options)


BACKENDS = {
    "memory": lambda folder: memory_blocks(),
    "streamed": lambda folder: streamed_blocks(),
    "streamed with a log": lambda folder: streamed_blocks(log=FoldLog(folder / "log", "this")),
}


@pytest.fixture(params=BACKENDS)
def rows(request, tmp_path):
    return BACKENDS[request.param](tmp_path)


def test_a_fold_is_a_sum_over_all_rows_and_keeps_what_is_given(rows):
    rows.derive(double)
    rows.fold(start)
    rows.rename({"before": "U", "U": "U"})
    total, n_rows = rows.fold(move, 3)
    expected = np.repeat(CUTS[:-1], SIZES) + 6 * X.sum(axis=1)
    assert n_rows == 15
    assert total == pytest.approx(expected.sum())
    np.testing.assert_array_equal(_all_rows(rows, "U")[:, 0], expected)
    np.testing.assert_array_equal(_all_rows(rows, "before")[:, 0], np.repeat(CUTS[:-1], SIZES))


def test_a_fold_that_fails_keeps_nothing_and_names_the_rows(rows):
    rows.fold(start)
    with pytest.raises(ValueError, match="seven") as caught:
        rows.fold(fail_at_seven)
    assert "rows 7 to 8" in caught.value.__notes__[0]
    np.testing.assert_array_equal(_all_rows(rows, "U")[:, 0], np.repeat(CUTS[:-1], SIZES))


def _all_rows(rows, name):
    @block_function(name)
    def take(block):
        return {}, (block[name],)

    return np.concatenate(rows.fold(take, combine=lambda a, b: a + b))


def test_streamed_blocks_read_only_what_is_needed():
    rows = streamed_blocks()
    rows.fold(start)
    assert [load.n_read for load in rows.loaders] == [1, 1, 1]
    _all_rows(rows, "U")
    assert [load.n_read for load in rows.loaders] == [1, 1, 1]


def test_block_functions_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(move)) is move


def test_add_takes_named_and_sparse_parts_and_leaves_the_second_alone():
    second = np.ones(2)
    total = add((np.zeros(2), sp.eye(2, format="csr")), (second, sp.eye(2, format="csr")))
    np.testing.assert_array_equal(total[0], 1)
    np.testing.assert_array_equal(total[1].toarray(), 2 * np.eye(2))
    assert (second == 1).all()


class Crash(Exception):
    pass


def _descend(rows, n_steps, crash_after=None):
    """A little solver: what is shared follows from the parts before."""
    rows.fold(start)
    step, history = 1.0, []
    for i in range(n_steps):
        if i == crash_after:
            raise Crash
        total, _ = rows.fold(move, step)
        rows.rename({"U": "U"})
        step = 1 / (1 + total)
        history.append(total)
    return history


@pytest.mark.parametrize("crash_after", [0, 1, 4])
def test_a_fit_that_died_goes_on_without_visiting_the_rows_again(tmp_path, crash_after):
    expected = _descend(memory_blocks(), 6)
    with pytest.raises(Crash):
        _descend(streamed_blocks(log=FoldLog(tmp_path, "this")), 6, crash_after)
    again = streamed_blocks(log=FoldLog(tmp_path, "this"))
    assert _descend(again, 6) == expected
    assert again.loaders[0].n_read == 6 - crash_after
    again.close()
    assert not tmp_path.exists()


def test_a_folder_of_something_else_is_refused(tmp_path):
    FoldLog(tmp_path / "a", "this")
    with pytest.raises(ValueError, match="another one, with other data or parameters"):
        FoldLog(tmp_path / "a", "that")
    (tmp_path / "thesis.txt").write_text("")
    with pytest.raises(ValueError, match="must be empty"):
        FoldLog(tmp_path, "this")


def test_only_the_columns_of_the_last_fold_stay_on_disk(tmp_path):
    rows = streamed_blocks(log=FoldLog(tmp_path, "this"))
    _descend(rows, 5)
    assert len(list(tmp_path.glob("U-*.npy"))) == len(SIZES)
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_blocks_are_stacked_in_their_order_in_the_wider_type(kind):
    parts = [kind(X[first:stop]) for first, stop in pairwise(CUTS)]
    parts[1] = parts[1].astype(np.float32)
    whole = stack(parts)
    assert whole.dtype == np.float64
    np.testing.assert_array_equal(whole.toarray() if sp.issparse(whole) else whole, X)
