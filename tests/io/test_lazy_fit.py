"""Dask arrays and dataframes instead of arrays: the same scores, names kept, and what cannot be used is said."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from labelsieve import (
    PMLFSMIR,
    PMLLC,
    RFS,
    EvidenceSelector,
    LabelSupport,
    SumF,
    SumMI,
    choose_size,
    evidence_test,
    find_label_issues,
    selection_stability,
)
from labelsieve._blocks.streamed import StreamedBlocks
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
    with pytest.raises(ValueError, match=r"X must have the 8 features of fit\. Got 5"):
        fitted.transform(lazy(X[:, :5]))


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("method", [SumF, EvidenceSelector, PMLFSMIR])
def test_blocks_without_rows_change_nothing(method, container):
    chunks = ((0, 10, 0, 50), -1)
    features = da.from_array(container(X), chunks=chunks, asarray=False)
    fitted = method(3, **({"tol": 0.1} if method is PMLFSMIR else {})).fit(features, Y)
    expected = clone(fitted).fit(container(X), Y)
    np.testing.assert_allclose(fitted.scores_, expected.scores_, rtol=1e-9)
    with pytest.raises(ValueError, match=r"X must have at least 2 rows\. Got 0"):
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
    # Names of an earlier fit do not stay.
    assert not hasattr(fitted.fit(lazy(X), lazy(Y)), "feature_names_in_")
    assert list(fitted.label_names_in_) == ["y0", "y1", "y2", "y3"]


@pytest.mark.parametrize("labels", [Y, sp.csc_matrix(Y), Y.tolist()], ids=["array", "sparse", "list"])
def test_labels_may_lie_in_memory(labels):
    fitted = SumMI().fit(lazy(X), labels)
    np.testing.assert_allclose(fitted.scores_, SumMI().fit(X, Y).scores_, rtol=1e-12)


def _with_nan():
    holed = X.copy()
    holed[40, 2] = np.nan
    return holed


COUNTS = Y.copy()
COUNTS[58, 1] = 3

WRONG = {
    "cut columns": (
        lambda: (da.from_array(X, chunks=(20, 3)), lazy(Y, 20)),
        r"^X must be cut into blocks of rows only\. Got 3 chunks of columns\. Use X = X\.rechunk\(\{1: -1\}\)\.$",
    ),
    "unknown sizes": (
        lambda: (lazy(X)[lazy(X)[:, 0] > 0], lazy(Y)),
        r"^The chunks of X must have known sizes\. Got unknown ones\. Call X\.compute_chunk_sizes\(\) first\.$",
    ),
    "other cuts": (
        lambda: (lazy(X), lazy(Y, 20)),
        r"^X and y must be cut into the same blocks of rows\. Got 4 blocks of 9 to 17 rows and 3 blocks of 20 to 20 "
        r"rows\. Use y = y\.rechunk\(\{0: X\.chunks\[0\]\}\)\.$",
    ),
    "other length": (
        lambda: (lazy(X), Y[:-1]),
        r"^X and y must have the same number of rows\. Got 60 and 59\.$",
    ),
    "classes": (
        lambda: (lazy(X), da.from_array(Y[:, 0], chunks=17)),
        r"^y must have rows and columns where the rows come in blocks\. Got 1 dimension\(s\)\. Give 0/1 candidates of "
        r"shape \(n_samples, n_labels\), one-hot encoded",
    ),
    "one feature": (
        lambda: (da.from_array(X[:, 0], chunks=17), lazy(Y)),
        r"^X must have rows and columns .* Give features of shape \(n_samples, n_features\)\.$",
    ),
    "NaN in a later block": (
        lambda: (lazy(_with_nan()), lazy(Y)),
        r"^Input X contains NaN\. \(In the rows 34 to 50\.\)$",
    ),
    "counts in the last block": (
        lambda: (lazy(X), lazy(COUNTS)),
        r"^y must be .*\(In the rows 51 to 59\.\)$",
    ),
    "no candidate at all": (lambda: (lazy(X), lazy(0 * Y)), r"^y must .*candidate"),
    "dense and sparse": (
        lambda: (da.concatenate([lazy(X[:20]), lazy(sp.csr_matrix(X[20:]))]), Y),
        r"^The blocks of X must be all dense or all sparse\. Got both\.",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_used_is_said_with_the_remedy(case):
    make, message = WRONG[case]
    with pytest.raises(ValueError, match=message):
        SumF().fit(*make())


def test_methods_that_need_all_rows_say_so():
    with pytest.raises(
        TypeError,
        match=r"^PMLLC needs all rows at once and got a dask array\. Use X\.compute\(\) .* one of: EvidenceSelector",
    ):
        PMLLC().fit(lazy(X), lazy(Y))
    with pytest.raises(ValueError, match=r"^checkpoint is for features that do not lie in memory"):
        SumF().fit(X, Y, checkpoint="somewhere")


def test_a_checkpoint_folder_outlives_failures_but_not_the_fit(tmp_path):
    folder = tmp_path / "checkpoint"
    fails = {"now": True}

    def fail_later(block):
        # Both passes before the first iteration of RFS read every block; later ones fail while told to.
        fails["n_read"] = fails.get("n_read", 0) + 1
        if fails["now"] and fails["n_read"] > 30:
            raise OSError("the disk is gone")
        return block

    rows = lazy(X).map_blocks(fail_later, meta=X[:0])
    with pytest.raises(OSError, match="the disk is gone"):
        RFS().fit(rows, lazy(Y), checkpoint=str(folder))
    assert (folder / "saved.json").exists()
    before = fails["n_read"]
    fails["now"] = False
    fitted = RFS().fit(rows, lazy(Y), checkpoint=str(folder))
    np.testing.assert_allclose(fitted.scores_, RFS().fit(X, Y).scores_, rtol=1e-9)
    # What was done before the failure was not read again, but for the look at the data in all four blocks.
    again = fails["n_read"] - before
    fails["n_read"] = 0
    RFS().fit(rows, lazy(Y))
    assert again <= fails["n_read"] - 28 + 4
    assert not folder.exists()
    with pytest.raises(ValueError, match="contains NaN"):
        SumF().fit(lazy(_with_nan()), lazy(Y), checkpoint=str(folder))
    assert not folder.exists(), "there is nothing to go on with"


def test_a_checkpoint_of_other_data_of_the_same_shapes_is_refused_and_kept(tmp_path):
    folder = tmp_path / "checkpoint"
    fails = {"now": True, "n_read": 0}

    def fail_later(block):
        fails["n_read"] += 1
        if fails["now"] and fails["n_read"] > 30:
            raise OSError("the disk is gone")
        return block

    def read(features):
        return lazy(features).map_blocks(fail_later, meta=X[:0])

    with pytest.raises(OSError, match="the disk is gone"):
        RFS().fit(read(X), lazy(Y), checkpoint=str(folder))
    fails["now"] = False
    changed, relabelled, moved = X.copy(), Y.copy(), np.vstack([X[17:34], X[:17], X[34:]])
    changed[40, 2] += 1e-12
    relabelled[3, 1] = 1 - relabelled[3, 1]
    for features, labels in ((changed, Y), (X, relabelled), (moved, Y), (sp.csr_matrix(X), Y)):
        with pytest.raises(ValueError, match=r"Got those of another one, with other data or parameters\."):
            RFS().fit(lazy(features), lazy(labels), checkpoint=str(folder))
    assert (folder / "saved.json").exists()
    # Whoever asks for something else with the same data is told so before these are read.
    n_read = fails["n_read"]
    with pytest.raises(ValueError, match="other data or parameters"):
        RFS(tol=0.1).fit(read(X), lazy(Y), checkpoint=str(folder))
    assert fails["n_read"] == n_read
    RFS().fit(read(X), lazy(Y), checkpoint=str(folder))
    assert not folder.exists()


NEED_ALL_ROWS = {
    "find_label_issues": find_label_issues,
    "LabelSupport": LabelSupport().fit,
    "selection_stability": partial(selection_stability, SumF()),
    "evidence_test": evidence_test,
    "choose_size": partial(choose_size, SumF()),
}


@pytest.mark.parametrize("name", NEED_ALL_ROWS)
def test_what_needs_all_rows_says_so(name):
    message = (
        rf"^{name} needs all rows at once and got a dask array\. Use X\.compute\(\) and y\.compute\(\) if they fit "
        r"into memory, or a sample of the rows\.$"
    )
    for features, labels in ((lazy(X), lazy(Y)), (X, lazy(Y)), (lazy(X), Y)):
        with pytest.raises(TypeError, match=message):
            NEED_ALL_ROWS[name](features, labels)


def test_a_column_of_all_rows_is_made_of_the_data_when_it_is_asked_for():
    from labelsieve._row_problem import check_rows

    cuts = list(pairwise((0, 17, 34, 60)))
    loaders = [lambda names, a=a, b=b: {"X": X[a:b], "Y": sp.csr_matrix(Y[a:b])} for a, b in cuts]
    rows = StreamedBlocks(loaders, [b - a for a, b in cuts])
    check_rows(rows)
    column = rows.gather("Y")
    rows.close()
    assert column.chunks == ((17, 17, 26), (4,))
    np.testing.assert_array_equal(np.vstack([block.compute().toarray() for block in column.blocks]), Y)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_very_many_labels_are_counted_in_batches_with_the_same_scores(monkeypatch, container):
    from labelsieve.methods import gmm, sum_f, sum_mi

    methods = (gmm.GMM(), sum_f.SumF(), sum_mi.SumMI())
    expected = [method.fit(X, Y).scores_ for method in methods]
    # Room for one label, or for two.
    monkeypatch.setattr(information, "_MOST_COUNTS", 8 * 4 + 1)
    monkeypatch.setattr(sum_f, "_LARGEST_EXCESS", 2 * 8)
    for method, scores in zip(methods, expected, strict=True):
        np.testing.assert_allclose(method.fit(X, container(Y)).scores_, scores, rtol=1e-12)
