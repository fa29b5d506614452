"""PML-FSMIR of dask arrays: the scores of memory with every switch, confidences when asked for, fits that go on."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from labelsieve import PMLFSMIR
from labelsieve._blocks.fold_log import FoldLog
from labelsieve._blocks.streamed import StreamedBlocks
from labelsieve.datasets import make_pml
from labelsieve.methods._fsmir.start import settle_generator

da = pytest.importorskip("dask.array")

X, Y = make_pml(60, 8, n_informative=3, n_labels=4, density=0.5, random_state=0)
ROWS = (7, 14, 1, 38)


def lazy(table, rows=ROWS):
    return da.from_array(table, chunks=(rows, -1), asarray=False)


def fit(X, Y, checkpoint=None, **parameters):
    options = {} if checkpoint is None else {"checkpoint": str(checkpoint)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return PMLFSMIR(**{"max_iter": 15, **parameters}).fit(X, Y, **options)


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
def test_every_switch_gives_the_scores_of_memory(monkeypatch, container, parameters, many):
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
def test_confidences_are_made_of_the_labels_when_they_are_asked_for(container):
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


def test_an_empty_block_changes_nothing():
    expected = fit(X, Y)
    cut = (30, 0, 30)
    np.testing.assert_allclose(fit(lazy(X, cut), lazy(Y, cut)).scores_, expected.scores_, rtol=1e-9)
    sparse = fit(lazy(sp.csr_matrix(abs(X)), cut), lazy(sp.csr_matrix(Y), cut))
    np.testing.assert_allclose(sparse.scores_, fit(sp.csr_matrix(abs(X)), Y).scores_, rtol=1e-9)


def test_too_many_distinct_confidences_are_refused_with_the_remedy(monkeypatch):
    # Confidences of four labels are sums of up to three numbers: some more than five per label, but not in all rows.
    monkeypatch.setattr("labelsieve.methods._fsmir.symbols._MOST_SYMBOLS", 5)
    with pytest.raises(ValueError, match=r"at most 5 distinct .* Got more\. Use mi_estimator='binned'\.$"):
        fit(lazy(X), lazy(Y))
    fit(lazy(X), lazy(Y), mi_estimator="binned")
    fit(X, Y)


def test_negative_features_in_a_later_block_are_refused():
    shifted = abs(X)
    shifted[50, 2] = -0.5
    with pytest.raises(ValueError, match=r"minimum of -0\.5\. To mend it, use scale='minmax'"):
        fit(lazy(shifted), lazy(Y), scale=None)
    with pytest.raises(
        ValueError, match=r"when it is sparse\. Got a minimum of -0\.5\. To mend it, shift or clip"
    ):
        fit(lazy(sp.csr_matrix(shifted)), lazy(Y))


@pytest.mark.parametrize("solver", ["cd", "mu"])
def test_a_fit_that_failed_goes_on_from_its_checkpoint(tmp_path, solver):
    folder = tmp_path / "checkpoint"
    reads = []

    def read(block):
        reads.append(len(reads))
        if len(reads) == limit:
            raise OSError("the disk is gone")
        return block

    limit = None
    features = lazy(X).map_blocks(read, meta=X[:0])
    fit(features, lazy(Y), solver=solver)
    needed, limit = len(reads), len(reads) - 20
    reads.clear()
    with pytest.raises(OSError, match="the disk is gone"):
        fit(features, lazy(Y), folder, solver=solver)
    limit = None
    reads.clear()
    fitted = fit(features, lazy(Y), folder, solver=solver)
    np.testing.assert_allclose(fitted.scores_, fit(X, Y, solver=solver).scores_, rtol=1e-9)
    # The data are looked at again, and the failed pass is read again from its first block.
    assert len(reads) <= 20 + 2 * len(ROWS) + 1 < needed
    assert not folder.exists()


def test_a_fit_that_goes_on_draws_the_numbers_of_the_one_that_began(tmp_path):
    """Without a seed, another process would have another generator."""
    states = []
    for _ in range(2):
        rng = np.random.default_rng()
        rows = StreamedBlocks([lambda names: {}] * 2, [3, 4], log=FoldLog(tmp_path / "log", "this"))
        settle_generator(rows, rng)
        states.append(rng.bit_generator.state)
    assert states[0] == states[1]
