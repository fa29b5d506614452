"""Slow, direct computations and independent solvers that several tests compare with."""

import clarabel
import numpy as np
import scipy.sparse as sp
from sklearn.metrics import mutual_info_score

from graph_examples import numerical_gradient

#: Worked example of the FPML, PARTICLE and PML-LC families: six rows, three features, three labels.
X_RANKED = np.array(
    [[1, 0.2, 0.1], [0.2, 1, 0.1], [0.2, 0.1, 1], [0.9, 0.1, 0.3], [0.1, 0.8, 0.4], [0.4, 0.3, 0.9]]
)
Y_RANKED = np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1], [1, 0, 0], [1, 1, 1], [1, 0, 1]], dtype=float)


def bits(a, b):
    """Mutual information of two columns."""
    return mutual_info_score(a, b) / np.log(2)


def conditional_bits(a, b, given):
    """Mutual information of two columns, given a third."""
    return sum(np.mean(given == g) * bits(a[given == g], b[given == g]) for g in np.unique(given))


def solve_cone_program(P, q, A, b, cones):
    """Minimise x'Px / 2 + q'x with b - Ax in the cones, by Clarabel."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    P, A = sp.csc_matrix(sp.triu(sp.csc_array(P))), sp.csc_matrix(A)
    return clarabel.DefaultSolver(P, np.asarray(q), A, np.asarray(b), cones, settings).solve()


def check_multiplicative_update(name, new, old, negative, positive, objective, weight=1):
    """The update is the ratio of the two parts of the objective's gradient."""
    gradient = 2 * weight * (positive - negative)
    np.testing.assert_allclose(gradient, numerical_gradient(objective, old), atol=2e-6, err_msg=name)
    np.testing.assert_allclose(new, old * negative / positive, rtol=1e-12, err_msg=name)
