"""PML-FSMIR on dask arrays: the same scores as in memory for all options, lazy confidences."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from labelsieve import PMLFSMIR
from labelsieve.datasets import make_pml

da = pytest.importorskip("dask.array")

X, Y = make_pml(60, 8, n_informative=3, n_labels=4, density=0.5, random_state=0)
ROWS = (7, 14, 1, 38)


def lazy(table, rows=ROWS):
    return da.from_array(table, chunks=(rows, -1), asarray=False)


def fit(X, Y, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return PMLFSMIR(**{"max_iter": 15, **parameters}).fit(X, Y)


@pytest.mark.parametrize("many", [60, 25], ids=["all rows", "sample"])
@pytest.mark.parametrize(
    "parameters",
    [
        {"solver": "cd"},
        {"solver": "mu"},
        {"solver": "mu", "w_update": "printed", "init": "nndsvd"},
        {"solver": "cd", "init": "random", "random_state": 3},
        {"solver": "mu", "init": "random", "random_state": 3, "n_components": 4},
        {"mi_estimator": "binned", "n_bins": 3},
        {"reconstruct_labels": False, "reconstruct_weights": False, "scale": None},
    ],
    ids=str,
)
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_scores_match_those_in_memory_for_all_options(monkeypatch, container, parameters, many):
    monkeypatch.setattr("labelsieve.methods._fsmir.block_descent._MANY_ROWS", many)
    features, labels = container(abs(X)), container(Y)
    expected = fit(features, labels, max_iter=5, **parameters)
    fitted = fit(lazy(features), lazy(labels), max_iter=5, **parameters)
    assert fitted.n_iter_ == expected.n_iter_
    for name in ("scores_", "coef_", "label_information_", "objective_history_"):
        np.testing.assert_allclose(
            getattr(fitted, name), getattr(expected, name), rtol=1e-9, atol=1e-12, err_msg=name
        )


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_confidences_are_lazy_and_match_those_in_memory(container):
    labels = container(Y)
    fitted, expected = fit(lazy(X), lazy(labels)), fit(X, labels)
    confidence = fitted.label_confidence_
    assert isinstance(confidence, da.Array)
    assert confidence.chunks == (ROWS, (4,))
    blocks = [block.compute() for block in confidence.blocks]
    assert all(sp.issparse(block) == sp.issparse(labels) for block in blocks)
    whole, found = (
        matrix.toarray() if sp.issparse(labels) else matrix
        for matrix in (
            expected.label_confidence_,
            sp.vstack(blocks) if sp.issparse(labels) else np.vstack(blocks),
        )
    )
    np.testing.assert_array_equal(found, whole)
    kept = fitted.transform(lazy(X))
    assert isinstance(kept, da.Array)
    np.testing.assert_array_equal(kept.compute(), expected.transform(X))


def test_empty_blocks_do_not_matter():
    expected = fit(X, Y)
    cut = (30, 0, 30)
    np.testing.assert_allclose(fit(lazy(X, cut), lazy(Y, cut)).scores_, expected.scores_, rtol=1e-9)
    sparse = fit(lazy(sp.csr_matrix(abs(X)), cut), lazy(sp.csr_matrix(Y), cut))
    np.testing.assert_allclose(sparse.scores_, fit(sp.csr_matrix(abs(X)), Y).scores_, rtol=1e-9)


def test_too_many_distinct_confidences_raise(monkeypatch):
    # The confidences of four labels are sums of up to three numbers, so some labels have more than
    # five distinct values.
    monkeypatch.setattr("labelsieve.methods._fsmir.labels._MAX_SYMBOLS", 5)
    with pytest.raises(ValueError, match="binned"):
        fit(lazy(X), lazy(Y))
    fit(lazy(X), lazy(Y), mi_estimator="binned")
    fit(X, Y)


def test_negative_features_in_a_later_block_are_rejected():
    shifted = abs(X)
    shifted[50, 2] = -0.5
    with pytest.raises(ValueError, match=r"minimum of -0\.5"):
        fit(lazy(shifted), lazy(Y), scale=None)
    with pytest.raises(ValueError, match=r"minimum of -0\.5"):
        fit(lazy(sp.csr_matrix(shifted)), lazy(Y))
