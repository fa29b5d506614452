"""The published files give the published figures."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from labelsieve.io import read, write

FOLDER = os.environ.get("LABELSIEVE_DATA")
pytestmark = pytest.mark.skipif(not FOLDER, reason="LABELSIEVE_DATA does not name the folder of data sets")

# Files, n x d x q and cardinality to the published number of digits.
PUBLISHED = {
    "birds": (["birds/birds-train.arff", "birds/birds-test.arff"], (645, 260, 19), "1.014"),
    "cal500": (["cal500/cal500.arff"], (502, 68, 174), "26.044"),
    "chd_49": (["chd_49/CHD_49.arff"], (555, 49, 6), "2.580"),
    "corel5k": (["corel5k/Corel5k-sparse.arff"], (5000, 499, 374), "3.522"),
    "languagelog": (["languagelog/Langlog.arff"], (1460, 1004, 75), "1.180"),
    "slashdot": (["slashdot/SLASHDOT-F.arff"], (3782, 1079, 22), "1.181"),
    "water_quality": (["water_quality/Water_quality.arff"], (1060, 16, 14), "5.073"),
    "yeast": (["yeast/yeast.arff"], (2417, 103, 14), "4.237"),
    "mirflickr": (["mirflickr/mirflickr.mat"], (5000, 100, 7), "1.77"),
}


def published(name):
    return read([Path(FOLDER, file) for file in PUBLISHED[name][0]])


@pytest.mark.parametrize("name", PUBLISHED)
def test_shape_and_cardinality_are_the_published_ones(name):
    _, shape, cardinality = PUBLISHED[name]
    figures = published(name).describe()
    assert (figures.n_samples, figures.n_features, figures.n_labels) == shape
    assert f"{figures.cardinality:.{len(cardinality.split('.')[1])}f}" == cardinality


def test_birds_has_two_nominal_features_and_samples_without_labels():
    data = published("birds")
    assert data.nominal == ("hasSegments", "location")
    assert data.describe().n_without_labels == 294
    assert "Swainson's Thrush" in data.label_names
    paths = [Path(FOLDER, file) for file in PUBLISHED["birds"][0]]
    hot = read(paths, nominal="onehot")
    assert hot.X.shape[1] == 260 - 2 + 2 + 12
    assert "location=17" in hot.feature_names


def test_oddities_of_the_files_are_found():
    assert len(published("languagelog").describe().duplicate_features) == 85
    assert published("languagelog").describe().n_without_labels == 207
    assert len(published("slashdot").describe().labels_without_positives) == 2
    corel = published("corel5k")
    assert sum(count == 1 for count in corel.describe().label_counts.values()) == 27
    columns = {tuple(np.flatnonzero(column)) for column in corel.Y.toarray().T}
    assert corel.Y.shape[1] - len(columns) == 3
    # The XML of CHD_49 names the labels in another order than the columns, which is the order kept.
    assert published("chd_49").label_names == tuple(f"label{index}" for index in range(1, 7))


def test_mirflickr_is_what_scipy_reads():
    data = published("mirflickr")
    theirs = scipy.io.loadmat(Path(FOLDER, "mirflickr", "mirflickr.mat"))
    np.testing.assert_array_equal(data.X, theirs["data"])
    np.testing.assert_array_equal(data.Y, theirs["target"].T)
    np.testing.assert_array_equal(data.Y_candidates, theirs["partial_labels"].T)
    assert f"{data.describe().candidate_cardinality:.2f}" == "3.35"


@pytest.mark.parametrize(
    ("name", "ending"), [("birds", "arff"), ("birds", "csv"), ("slashdot", "arff"), ("corel5k", "npz")]
)
def test_real_data_survive_a_round_trip(name, ending, tmp_path):
    data = published(name)
    write(data, tmp_path / f"{name}.{ending}")
    back = read(tmp_path / f"{name}.{ending}")
    dense = [part.toarray() if sp.issparse(part) else part for part in (data.X, back.X, data.Y, back.Y)]
    np.testing.assert_array_equal(dense[0], dense[1])
    np.testing.assert_array_equal(dense[2], dense[3])
    assert (back.feature_names, back.label_names) == (data.feature_names, data.label_names)
    assert set(back.nominal) == set(data.nominal)
