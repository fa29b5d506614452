"""Check that fits on blocks of rows give the same scores as fits on the whole table."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from labelsieve._blocks.blocks import MemoryBlocks
from labelsieve._row_problem import check_rows
from labelsieve.datasets import make_pml


def check_chunked_equals_in_memory(selector):
    da = pytest.importorskip("dask.array")
    X, Y = make_pml(60, 8, n_informative=3, n_labels=4, density=0.5, random_state=0)
    # One block has no candidates and a constant feature.
    X[14:21, 0], Y[14:21] = 1.0, 0
    # Rounding can change the number of iterations. Few iterations also save time, as each reads all blocks.
    for name, value in (("max_iter", 3), ("random_state", 0)):
        if name in selector.get_params():
            selector.set_params(**{name: value})
    even, uneven = (20, 20, 20), (14, 7, 29, 10)
    for dtype, tolerance, cuts in ((np.float64, 1e-9, (even, uneven)), (np.float32, 1e-3, (uneven,))):
        for container in (np.asarray, sp.csr_matrix):
            features = container(X.astype(dtype))
            expected = quiet(clone(selector).fit, features, Y).scores_
            for sizes in cuts:
                blocks = [{"X": features[a:b], "Y": Y[a:b]} for a, b in pairwise(np.cumsum([0, *sizes]))]
                lazy = [da.from_array(table, chunks=(sizes, -1), asarray=False) for table in (features, Y)]
                for scores in (
                    quiet(clone(selector)._solve_rows, check_rows(MemoryBlocks(blocks))).scores,
                    quiet(clone(selector).fit, *lazy).scores_,
                ):
                    np.testing.assert_allclose(
                        scores, expected, rtol=0, atol=tolerance * np.abs(expected).max()
                    )


def quiet(call, *given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*given)
