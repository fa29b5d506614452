"""Tests of the published files. `tests/datasets/test_fetch.py` checks their sizes."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from labelsieve.datasets import load
from labelsieve.io import read, write

FOLDER = os.environ.get("LABELSIEVE_DATA")
pytestmark = pytest.mark.skipif(not FOLDER, reason="LABELSIEVE_DATA is not set to the folder of datasets")


def test_birds_has_two_nominal_features_and_samples_without_labels():
    data = load("birds")
    assert data.nominal == ("hasSegments", "location")
    assert data.describe().n_without_labels == 294
    assert "Swainson's Thrush" in data.label_names
    hot = read([Path(FOLDER, "birds", f"birds-{part}.arff") for part in ("train", "test")], nominal="onehot")
    assert hot.X.shape[1] == 260 - 2 + 2 + 12
    assert "location=17" in hot.feature_names


def test_the_description_finds_constant_and_duplicate_features():
    assert len(load("languagelog").describe().duplicate_features) == 85
    assert load("languagelog").describe().n_without_labels == 207
    assert len(load("slashdot").describe().labels_without_positives) == 2
    corel = load("corel5k")
    assert sum(count == 1 for count in corel.describe().label_counts.values()) == 27
    columns = {tuple(np.flatnonzero(column)) for column in corel.Y.toarray().T}
    assert corel.Y.shape[1] - len(columns) == 3
    # The XML file of CHD_49 lists the labels in another order than the columns. Column order wins.
    assert load("chd_49").label_names == tuple(f"label{index}" for index in range(1, 7))


def test_mirflickr_is_what_scipy_reads():
    data = load("mirflickr")
    theirs = scipy.io.loadmat(Path(FOLDER, "mirflickr", "mirflickr.mat"))
    np.testing.assert_array_equal(data.X, theirs["data"])
    np.testing.assert_array_equal(data.Y, theirs["target"].T)
    np.testing.assert_array_equal(data.Y_candidates, theirs["partial_labels"].T)
    assert f"{data.describe().candidate_cardinality:.2f}" == "3.35"


@pytest.mark.parametrize(
    ("name", "ending"), [("birds", "arff"), ("birds", "csv"), ("slashdot", "arff"), ("corel5k", "npz")]
)
def test_real_data_survive_a_round_trip(name, ending, tmp_path):
    data = load(name)
    write(data, tmp_path / f"{name}.{ending}")
    back = read(tmp_path / f"{name}.{ending}")
    dense = [part.toarray() if sp.issparse(part) else part for part in (data.X, back.X, data.Y, back.Y)]
    np.testing.assert_array_equal(dense[0], dense[1])
    np.testing.assert_array_equal(dense[2], dense[3])
    assert (back.feature_names, back.label_names) == (data.feature_names, data.label_names)
    assert set(back.nominal) == set(data.nominal)
