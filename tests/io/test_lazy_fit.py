"""Tests of fits on dask arrays and dataframes: same scores, same names and clear errors."""

import re
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from labelsieve import (
    PMLFSMIR,
    PMLLC,
    EvidenceSelector,
    LabelSupport,
    SumF,
    SumMI,
    choose_size,
    evidence_test,
    find_label_issues,
    selection_stability,
)
from labelsieve._blocks.collections import open_rows
from labelsieve._numerics import information
from labelsieve.datasets import make_pml

da = pytest.importorskip("dask.array")

X, Y = make_pml(60, 8, n_informative=3, n_labels=4, random_state=0)


def lazy(table, rows=17):
    return da.from_array(table, chunks=(rows, -1), asarray=False)


def test_transform_of_dask_arrays_is_lazy_and_keeps_sparse_blocks():
    fitted = SumF(n_features_to_select=3).fit(lazy(X), lazy(Y))
    kept = fitted.transform(lazy(X))
    assert isinstance(kept, da.Array)
    np.testing.assert_array_equal(kept.compute(), fitted.transform(X))
    sparse = fitted.transform(lazy(sp.csr_matrix(X)))
    block = sparse.blocks[0].compute()
    assert sp.issparse(block)
    np.testing.assert_array_equal(block.toarray(), X[:17, fitted.get_support()])
    with pytest.raises(ValueError, match="8 features"):
        fitted.transform(lazy(X[:, :5]))


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("method", [SumF, EvidenceSelector, PMLFSMIR])
def test_blocks_without_rows_change_nothing(method, container):
    chunks = ((0, 10, 0, 50), -1)
    features = da.from_array(container(X), chunks=chunks, asarray=False)
    fitted = method(3, **({"tol": 0.1} if method is PMLFSMIR else {})).fit(features, Y)
    expected = clone(fitted).fit(container(X), Y)
    np.testing.assert_allclose(fitted.scores_, expected.scores_, rtol=1e-9)
    with pytest.raises(ValueError, match="at least 2 rows"):
        method(3).fit(features[:0], lazy(Y)[:0])


def test_dask_dataframes_keep_their_names():
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    features = pd.DataFrame(X, columns=[f"feature {j}" for j in range(8)])
    labels = pd.DataFrame(Y, columns=[f"label {j}" for j in range(4)])
    frames = [dd.from_pandas(frame, npartitions=4) for frame in (features, labels)]
    fitted = SumF(n_features_to_select=3).fit(*frames)
    np.testing.assert_allclose(fitted.scores_, SumF().fit(X, Y).scores_, rtol=1e-12)
    assert list(fitted.feature_names_in_) == list(features)
    assert list(fitted.label_names_in_) == list(labels)
    kept = fitted.transform(frames[0])
    assert list(kept.columns) == list(fitted.get_feature_names_out())
    pd.testing.assert_frame_equal(kept.compute(), features[list(kept.columns)])
    # A fit discards the names of an earlier one.
    assert not hasattr(fitted.fit(lazy(X), lazy(Y)), "feature_names_in_")
    assert list(fitted.label_names_in_) == ["y0", "y1", "y2", "y3"]


@pytest.mark.parametrize("labels", [Y, sp.csc_matrix(Y), Y.tolist()], ids=["array", "sparse", "list"])
def test_labels_may_be_in_memory(labels):
    fitted = SumMI().fit(lazy(X), labels)
    np.testing.assert_allclose(fitted.scores_, SumMI().fit(X, Y).scores_, rtol=1e-12)


def _with_nan():
    holed = X.copy()
    holed[40, 2] = np.nan
    return holed


COUNTS = Y.copy()
COUNTS[58, 1] = 3

#: Input that a fit rejects, and a key in the error.
WRONG = {
    "split columns": (lambda: (da.from_array(X, chunks=(20, 3)), lazy(Y, 20)), "X = X.rechunk({1: -1})"),
    "unknown sizes": (lambda: (lazy(X)[lazy(X)[:, 0] > 0], lazy(Y)), "X.compute_chunk_sizes()"),
    "other chunks": (lambda: (lazy(X), lazy(Y, 20)), "y = y.rechunk({0: X.chunks[0]})"),
    "other length": (lambda: (lazy(X), Y[:-1]), "60 and 59"),
    "classes": (lambda: (lazy(X), da.from_array(Y[:, 0], chunks=17)), "one-hot"),
    "one feature": (lambda: (da.from_array(X[:, 0], chunks=17), lazy(Y)), "(n_samples, n_features)"),
    "NaN in a later block": (lambda: (lazy(_with_nan()), lazy(Y)), "rows 34 to 50"),
    "counts in the last block": (lambda: (lazy(X), lazy(COUNTS)), "rows 51 to 59"),
    "no candidate at all": (lambda: (lazy(X), lazy(0 * Y)), "candidate"),
    "dense and sparse": (
        lambda: (da.concatenate([lazy(X[:20]), lazy(sp.csr_matrix(X[20:]))]), Y),
        "X.map_blocks(scipy.sparse.csr_matrix)",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_invalid_input_is_rejected(case):
    make, key = WRONG[case]
    with pytest.raises(ValueError, match=re.escape(key)):
        SumF().fit(*make())


def test_methods_that_need_all_rows_raise():
    with pytest.raises(TypeError, match="EvidenceSelector"):
        PMLLC().fit(lazy(X), lazy(Y))


def test_a_task_that_features_and_labels_share_runs_once_per_pass():
    n_read = []

    def read(block):
        n_read.append(len(block))
        return block

    table = lazy(np.hstack([X, Y])).map_blocks(read, meta=X[:0])
    fitted = SumF().fit(table[:, :8], table[:, 8:])
    assert n_read == 2 * [17, 17, 17, 9], "one pass that checks, one that fits"
    np.testing.assert_allclose(fitted.scores_, SumF().fit(X, Y).scores_, rtol=1e-12)


NEED_ALL_ROWS = {
    "find_label_issues": find_label_issues,
    "LabelSupport": LabelSupport().fit,
    "selection_stability": partial(selection_stability, SumF()),
    "evidence_test": evidence_test,
    "choose_size": partial(choose_size, SumF()),
}


@pytest.mark.parametrize("name", NEED_ALL_ROWS)
def test_functions_that_need_all_rows_raise(name):
    for features, labels in ((lazy(X), lazy(Y)), (X, lazy(Y)), (lazy(X), Y)):
        with pytest.raises(TypeError, match=name):
            NEED_ALL_ROWS[name](features, labels)


def test_a_gathered_column_is_computed_from_the_data_on_request():
    from labelsieve._row_problem import check_rows

    rows = open_rows(lazy(X), lazy(sp.csr_matrix(Y)))
    check_rows(rows)
    column = rows.gather("Y")
    assert column.chunks == ((17, 17, 17, 9), (4,))
    np.testing.assert_array_equal(np.vstack([block.compute().toarray() for block in column.blocks]), Y)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_very_many_labels_are_counted_in_batches_with_the_same_scores(monkeypatch, container):
    from labelsieve.methods import gmm, sum_f, sum_mi

    methods = (gmm.GMM(), sum_f.SumF(), sum_mi.SumMI())
    expected = [method.fit(X, Y).scores_ for method in methods]
    # Memory for one label, or for two.
    monkeypatch.setattr(information, "_MOST_COUNTS", 8 * 4 + 1)
    monkeypatch.setattr(sum_f, "_MAX_SUMS", 2 * 8)
    for method, scores in zip(methods, expected, strict=True):
        np.testing.assert_allclose(method.fit(X, container(Y)).scores_, scores, rtol=1e-12)
