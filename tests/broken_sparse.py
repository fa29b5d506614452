"""Invalid sparse matrices, each of which could crash compiled code."""

import numpy as np
import scipy.sparse as sp


def broken(M, fault, make=sp.csr_array):
    """Return a compressed copy of a dense matrix with one fault that scipy does not detect."""
    M = make(M)
    FAULTS[fault][0](M)
    return M


def _set_index(value):
    def damage(M):
        M.indices[len(M.indices) // 2] = value

    return damage


def _set_indptr(change):
    def damage(M):
        M.indptr = change(M.indptr.copy())

    return damage


def _set_values(M):
    M.data = M.data[:-1]


def _swap(indptr):
    middle = len(indptr) // 2
    indptr[middle : middle + 2] = indptr[-1], 0
    return indptr


#: Name -> function that makes the fault, and a pattern of the error message.
FAULTS = {
    "index too large": (_set_index(10**6), ""),
    "index negative": (_set_index(-3), ""),
    "indptr too long": (_set_indptr(lambda p: np.append(p, p[-1])), ""),
    "indptr too short": (_set_indptr(lambda p: p[:-1]), ""),
    "indptr not from 0": (_set_indptr(lambda p: np.maximum(p, 1)), ""),
    "indptr decreasing": (_set_indptr(_swap), ""),
    "indptr beyond the entries": (_set_indptr(lambda p: p * 1000), ""),
    "values missing": (_set_values, ""),
}
