"""Structure of sparse matrices: every format sound, every array damaged in turn."""

import numpy as np
import pytest
import scipy.sparse as sp

from broken_sparse import FAULTS, broken
from labelsieve._numerics.sparse import as_rows, check_structure, dense, is_sparse, with_short_indices

A = np.array([[0, 1, 0, 2], [3, 0, 0, 0], [0, 0, 4, 0], [0, 5, 0, 6], [0, 0, 0, 0], [7, 0, 0, 8.0]])
FORMATS = ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"]


@pytest.mark.parametrize("kind", ["matrix", "array"])
@pytest.mark.parametrize("form", FORMATS)
def test_sound_matrices_of_every_format_pass_and_stay_as_they_are(form, kind):
    make = getattr(sp, f"{form}_{kind}")
    for M in (make(A), make((3, 2)), make(np.kron(A, np.ones((2, 3))))):
        before = M.copy()
        check_structure(M, "X")
        assert (before != M).nnz == 0


def test_what_is_not_sparse_passes():
    for value in (A, A.tolist(), None, "text"):
        check_structure(value, "X")
        assert not is_sparse(value)


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csc_array])
@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_of_a_compressed_matrix_is_refused(fault, make):
    form = make.__name__[:3].upper()
    with pytest.raises(ValueError, match=rf"^y must be a sound sparse matrix\. Got {form} of shape"):
        check_structure(broken(A, fault, make), "y")


def test_faults_of_coo_and_bsr_are_refused():
    coo, short = sp.coo_array(A), sp.coo_array(A)
    coo.row[0] = 6
    short.data = short.data[1:]
    bsr = sp.bsr_array(np.kron(A, np.ones((2, 3))), blocksize=(2, 3))
    bsr.indices[1] = 4
    for broken_matrix in (coo, short, bsr):
        with pytest.raises(ValueError, match="must be a sound sparse matrix"):
            check_structure(broken_matrix, "X")


@pytest.mark.parametrize("kind", ["matrix", "array"])
@pytest.mark.parametrize("form", FORMATS)
def test_rows_can_be_taken_of_every_format(form, kind):
    rows = as_rows(getattr(sp, f"{form}_{kind}")(A), "X")
    assert rows.format == "csr"
    assert (rows[[4, 0]].toarray() == A[[4, 0]]).all()


def test_only_what_is_not_csr_is_converted_and_only_what_is_sound():
    for value in (A, A.tolist(), sp.csr_array(A)):
        assert as_rows(value, "X") is value
    with pytest.raises(ValueError, match=r"^Y must be a sound sparse matrix\. Got CSC"):
        as_rows(broken(A, "index negative", sp.csc_array), "Y")


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_matrix])
def test_indices_are_shortened_where_32_bits_suffice(make):
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


def test_dense_gives_the_array_itself_or_a_dense_copy():
    assert dense(A) is A
    assert (dense(sp.csc_array(A)) == A).all()
