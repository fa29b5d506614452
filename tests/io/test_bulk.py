"""Numbers read in bulk are those that Python reads one by one."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from labelsieve.io.readers import bulk

DECIMALS = st.from_regex(r"-?[0-9]{0,18}(\.[0-9]{0,18})?(e-?[0-9]{1,3})?", fullmatch=True)
WORDS = st.one_of(
    DECIMALS, st.sampled_from(["nan", "inf", "-", ".", "", "1.2.3", "--1", "+1", "0x1", "1_0", "1-2"])
)


def python_pairs(tokens):
    """What `pairs` must return, number by number; None if one is no number."""
    try:
        return [(int(index), bulk.number(value)) for index, value in tokens]
    except ValueError:
        return None


@given(st.lists(st.tuples(st.integers(0, 10**17).map(str), WORDS), min_size=1, max_size=60))
@example([("0", "1")] * 40 + [("1", "1e-5")])
@example([("0", "0.1")] * 40 + [("7", "1.2.3")])
@example([("3", "-0.000000000000001"), ("00000004", "999999999999999")])
def test_pairs_are_what_python_reads(tokens):
    text = " ".join(f"{index}:{value}" for index, value in tokens).encode()
    expected, got = python_pairs(tokens), bulk.pairs(text, b":", b" ")
    if expected is None:
        assert got is None
    elif got is not None:  # None only asks for the slower way
        np.testing.assert_array_equal(got[0], [float(index) for index, _ in expected])
        np.testing.assert_array_equal(got[1], [value for _, value in expected])


@given(st.lists(st.decimals(-(10**7), 10**7, places=6), min_size=1, max_size=30))
def test_plain_decimals_always_go_the_fast_way(values):
    text = ",".join(f"{index} {value}" for index, value in enumerate(values)).encode()
    index, got = bulk.pairs(text, b" ", b",")
    assert index.dtype == np.int64
    assert got.tolist() == [float(value) for value in values]


@pytest.mark.parametrize(
    "text",
    [b"1", b"1:2:3 4", b"1:2 3", b"1:2  3:4", b":2", b"1:", b"a:1", b"1:2 ", b" 1:2", b"-1:2", b"1.5:2 :3"],
)
def test_text_that_is_not_strictly_pairs_is_left_to_the_slow_reader(text):
    found = bulk.pairs(text, b":", b" ")
    assert found is None or not bulk.valid_indices(found[0], np.array([found[0].size]), 10)


def test_a_table_needs_the_same_number_of_fields_in_every_line():
    np.testing.assert_array_equal(bulk.table(b"1,2\n\n3,nan\n", b",", 2), [[1, 2], [3, np.nan]])
    assert bulk.table(b"1,2,3\n4\n", b",", 2) is None
    assert bulk.table(b"1,x\n", b",", 2) is None
    assert bulk.table(b"1\t\t2\n", b"\t", 3) is None


@pytest.mark.parametrize(
    ("index", "counts", "valid"),
    [
        ([0, 2, 1], [2, 1], True),
        ([2, 0, 1], [2, 1], True),
        ([0, 0], [1, 1], True),
        ([1, 1], [0, 2, 0], False),
        ([1, 0, 1], [3], False),
        ([0, 3], [2], False),
        ([-1, 0], [2], False),
        ([0.5], [1], False),
        ([np.nan], [1], False),
        ([], [0, 0], True),
    ],
)
def test_indices_must_be_whole_in_range_and_different_within_their_row(index, counts, valid):
    assert bulk.valid_indices(np.array(index, dtype=float), np.array(counts), 3) == valid


def test_underscores_do_not_make_numbers():
    with pytest.raises(ValueError, match="1_000"):
        bulk.number("1_000")
