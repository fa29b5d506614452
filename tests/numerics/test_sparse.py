"""Checks of sparse matrices, with every format and with every kind of invalid index."""

import numpy as np
import pytest
import scipy.sparse as sp

from broken_sparse import FAULTS, broken
from labelsieve._numerics.sparse import as_rows, check_structure, dense, is_sparse, with_short_indices

A = np.array([[0, 1, 0, 2], [3, 0, 0, 0], [0, 0, 4, 0], [0, 5, 0, 6], [0, 0, 0, 0], [7, 0, 0, 8.0]])
FORMATS = ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"]


@pytest.mark.parametrize("kind", ["matrix", "array"])
@pytest.mark.parametrize("form", FORMATS)
def test_valid_matrices_of_every_format_pass_unchanged(form, kind):
    make = getattr(sp, f"{form}_{kind}")
    for M in (make(A), make((3, 2)), make(np.kron(A, np.ones((2, 3))))):
        before = M.copy()
        check_structure(M, "X")
        assert (before != M).nnz == 0


def test_other_objects_pass():
    for value in (A, A.tolist(), None, "text"):
        check_structure(value, "X")
        assert not is_sparse(value)


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csc_array])
@pytest.mark.parametrize("fault", FAULTS)
def test_invalid_compressed_matrices_raise(fault, make):
    form = make.__name__[:3].upper()
    with pytest.raises(ValueError, match=rf"^y .*{form} of shape"):
        check_structure(broken(A, fault, make), "y")


def test_invalid_coo_and_bsr_matrices_raise():
    coo, short = sp.coo_array(A), sp.coo_array(A)
    coo.row[0] = 6
    short.data = short.data[1:]
    bsr = sp.bsr_array(np.kron(A, np.ones((2, 3))), blocksize=(2, 3))
    bsr.indices[1] = 4
    for broken_matrix in (coo, short, bsr):
        with pytest.raises(ValueError, match=r"^X "):
            check_structure(broken_matrix, "X")


@pytest.mark.parametrize("kind", ["matrix", "array"])
@pytest.mark.parametrize("form", FORMATS)
def test_every_format_is_converted_to_csr(form, kind):
    rows = as_rows(getattr(sp, f"{form}_{kind}")(A), "X")
    assert rows.format == "csr"
    assert (rows[[4, 0]].toarray() == A[[4, 0]]).all()


def test_csr_and_dense_are_not_converted_and_invalid_matrices_raise():
    for value in (A, A.tolist(), sp.csr_array(A)):
        assert as_rows(value, "X") is value
    with pytest.raises(ValueError, match=r"^Y .*CSC"):
        as_rows(broken(A, "index negative", sp.csc_array), "Y")


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_matrix])
def test_indices_are_converted_to_32_bits_if_possible(make):
    M = make(A)
    assert with_short_indices(M) is M
    assert with_short_indices(A) is A
    M.indices, M.indptr = M.indices.astype(np.int64), M.indptr.astype(np.int64)
    short = with_short_indices(M)
    assert isinstance(short, make)
    assert short.indices.dtype == short.indptr.dtype == np.int32
    assert (dense(short) == A).all()
    assert M.indices.dtype == np.int64
    wide = make((2, 2**40)) if make is sp.csr_array else make((2**40, 2))
    assert with_short_indices(wide) is wide


def test_dense_returns_arrays_unchanged_and_converts_sparse_ones():
    assert dense(A) is A
    assert (dense(sp.csc_array(A)) == A).all()
