"""`unknown`: label cells that say that a label was not annotated."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from labelsieve.cli import main
from labelsieve.io import Dataset, DatasetError, read, write
from labelsieve.io.copies import write_corrected

#: Two label columns; ? is unknown.
CELLS = {"size": [1.5, 2, 4, 3, 7], "a": ["1", "?", "0", "1", "?"], "b": ["0", "1", "?", "1", "0"]}
EXPECTED = np.array([[1, 0], [np.nan, 1], [0, np.nan], [1, 1], [np.nan, 0]])
NOTE = "3 of 10 labels are unknown"


def table(**changes):
    return pd.DataFrame({**CELLS, **changes})


def write_csv(frame, path):
    frame.to_csv(path, index=False)


def write_json(frame, path):
    path.write_text(json.dumps(frame.to_dict("records")))


def write_arff(frame, path):
    lines = ["@relation t", "@attribute size numeric", "@attribute a {0,1}", "@attribute b {0,1}", "@data"]
    path.write_text("\n".join([*lines, *(",".join(map(str, row)) for row in frame.to_numpy())]) + "\n")


def write_sparse_arff(frame, path):
    lines = ["@relation t", "@attribute size numeric", "@attribute a {0,1}", "@attribute b {0,1}", "@data"]
    rows = [
        "{" + ",".join(f"{i} {cell}" for i, cell in enumerate(row) if cell != "0") + "}"
        for row in frame.to_numpy()
    ]
    path.write_text("\n".join([*lines, *rows]) + "\n")


FORMATS = {
    ".csv": write_csv,
    ".json": write_json,
    ".xlsx": lambda frame, path: frame.to_excel(path, index=False),
    ".parquet": lambda frame, path: frame.to_parquet(path),
    ".arff": write_arff,
    "_sparse.arff": write_sparse_arff,
}


def labels_of(data):
    return data.Y.toarray() if sp.issparse(data.Y) else data.Y


@pytest.mark.parametrize("ending", FORMATS)
def test_every_format(ending, tmp_path):
    path = tmp_path / f"t{ending}"
    FORMATS[ending](table(), path)
    data = read(path, labels="a,b", unknown="?")
    np.testing.assert_array_equal(labels_of(data), EXPECTED)
    assert data.notes == (NOTE,)
    with pytest.raises(DatasetError, match="unknown="):
        read(path, labels="a,b")


@pytest.mark.parametrize(
    ("a", "unknown"),
    [
        (["yes", "unsure", "no", "yes", "unsure"], "unsure"),
        (["1", "-1", "0", "1", "-1.0"], "-1"),
        ([1, -1, 0, 1, -1], "-1"),
        ([1.0, np.nan, 0.0, 1.0, np.nan], ""),
        ([1.0, np.nan, 0.0, 1.0, np.nan], "?"),
        ([True, None, False, True, None], ""),
        (["1", "", "0", "1", " "], ""),
        (pd.array([1, None, 0, 1, None], dtype="Int64"), ""),
        (pd.array([True, None, False, True, None], dtype="boolean"), ""),
        (pd.Categorical(["1", "?", "0", "1", "?"]), "?"),
    ],
)
def test_spellings_in_frames(a, unknown):
    data = read(table(a=a, b=[0, 1, 1, 1, 0]), ["a", "b"], unknown=unknown)
    np.testing.assert_array_equal(data.Y[:, 0], EXPECTED[:, 0])
    assert data.columns[1].note == "2 unknown"


def test_empty_cells_of_a_column_that_only_says_yes():
    """They mean no as ever, unless they are what means unknown."""
    frame = table(a=["x", "?", "", "x", "?"], b=["0", "1", "1", "1", "0"])
    data = read(frame, ["a", "b"], unknown="?")
    np.testing.assert_array_equal(data.Y[:, 0], EXPECTED[:, 0])
    assert read(frame.replace("?", ""), ["a", "b"]).Y[:, 0].tolist() == [1, 0, 0, 1, 0]
    np.testing.assert_array_equal(read(frame, ["a", "b"], unknown="").Y[:, 0], [1, 0, np.nan, 1, 0])


def test_an_unknown_cell_of_tags_leaves_all_tags_unknown():
    frame = table(a=["p;q", "unsure", "", "q", "p"]).drop(columns="b")
    data = read(frame, "a", unknown="unsure", label_sep=";")
    assert data.label_names == ("p", "q")
    np.testing.assert_array_equal(data.Y, [[1, 1], [np.nan, np.nan], [0, 0], [0, 1], [1, 0]])


def test_numbers_that_mean_unknown_in_arff(tmp_path):
    for kind in ("numeric", "{-1,0,1}"):
        path = tmp_path / "t.arff"
        rows = ["1.5,1,0", "2,-1,1", "4,0,1"]
        header = [
            "@relation t",
            "@attribute size numeric",
            f"@attribute a {kind}",
            "@attribute b {0,1}",
            "@data",
        ]
        path.write_text("\n".join([*header, *rows]) + "\n")
        assert labels_of(read(path, 2, unknown="-1"))[:, 0].tolist()[::2] == [1, 0]
        assert np.isnan(labels_of(read(path, 2, unknown="-1"))[1, 0])


def test_a_second_file_of_labels(tmp_path):
    table().drop(columns=["a", "b"]).to_csv(tmp_path / "x.csv", index=False)
    table().drop(columns="size").to_csv(tmp_path / "y.csv", index=False)
    data = read(tmp_path / "x.csv", tmp_path / "y.csv", unknown="?")
    np.testing.assert_array_equal(labels_of(data), EXPECTED)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("ending", [".csv", ".arff", ".npz"])
def test_copies_keep_unknown_labels(ending, is_sparse, tmp_path):
    Y = EXPECTED.copy()
    if is_sparse:
        Y = sp.csr_array(np.where(np.isnan(Y), 7, Y))
        Y.data[Y.data == 7] = np.nan
    X = np.arange(10.0).reshape(5, 2)
    data = Dataset(sp.csr_array(X) if is_sparse else X, Y)
    write(data, tmp_path / f"t{ending}")
    again = read(tmp_path / f"t{ending}", **({} if ending == ".npz" else {"unknown": "?"}))
    np.testing.assert_array_equal(labels_of(again), EXPECTED)
    assert again.notes == (NOTE,)
    with pytest.raises(DatasetError, match="svmlight"):
        write(data, tmp_path / "t.svm")
    assert not (tmp_path / "t.svm").exists()


def test_a_dataset_counts_known_labels_only():
    data = Dataset(np.eye(5), EXPECTED)
    figures = data.describe()
    assert figures.label_counts == {"label0": 2, "label1": 2}
    assert figures.cardinality == 4 / 5
    assert figures.density == pytest.approx(4 / 7)
    assert "nan" not in f"{figures} {data!r} {data._repr_html_()}".lower()
    assert np.isnan(data.to_pandas()["label:label0"].iloc[1])
    with pytest.raises(DatasetError, match="0 and 1"):
        Dataset(np.eye(5), np.where(np.isnan(EXPECTED), np.inf, EXPECTED))


def test_corrected_copies_keep_unknown_labels(tmp_path):
    path = tmp_path / "t.csv"
    write_csv(table(a=["1", "-1", "0", "1", "-1"], b=["0", "1", "-1", "1", "0"]), path)
    data = read(path, "a,b", unknown="-1")
    write_corrected(data, [(0, 0), (1, 1)], [(2, 0)], tmp_path / "clean.csv")
    found = pd.read_csv(tmp_path / "clean.csv", dtype=str)
    assert found["a"].tolist() == ["0", "-1", "1", "1", "-1"]
    assert found["b"].tolist() == ["0", "0", "-1", "1", "0"]


def test_the_option_is_for_files_with_cells(tmp_path):
    write(Dataset(np.eye(3), np.eye(3)), tmp_path / "t.npz")
    write_csv(table(), tmp_path / "t.csv")
    with pytest.raises(DatasetError, match="unknown"):
        read(tmp_path / "t.npz", unknown="?")
    pytest.importorskip("dask")
    with pytest.raises(DatasetError, match="in blocks"):
        read(tmp_path / "t.csv", labels="a,b", unknown="?", chunks=2)


@pytest.mark.parametrize("unknown", ["?", ""])
def test_commands_take_the_option(unknown, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)).round(3)
    labels = np.where(rng.random((60, 2)) < 0.3, unknown, (X[:, :2] > 0).astype(int).astype(str))
    frame = pd.DataFrame(np.column_stack([X, labels]), columns=[*"xyz", "label:a", "label:b"])
    frame.to_csv("t.csv", index=False)
    n_unknown = int((labels == unknown).sum())

    def run(*arguments):
        code = main([*arguments, "--unknown", unknown])
        return code, *capsys.readouterr()

    code, _, err = run("issues", "t.csv", "-o", "review.csv")
    assert code == 0, err
    assert f"note: {n_unknown} of 120 labels are unknown" in err
    review = pd.read_csv("review.csv", dtype=str, keep_default_na=False)
    assert len(review) == (labels == "1").sum()
    review.loc[0, "verdict"] = "wrong"
    review.to_csv("review.csv", index=False)
    code, _, err = run("apply-review", "t.csv", "review.csv", "-o", "clean.csv")
    assert code == 0, err
    cleaned = pd.read_csv("clean.csv", dtype=str, keep_default_na=False).to_numpy()[:, 3:]
    assert cleaned[cleaned != labels].tolist() == ["0"]
    _, out, _ = run("select", "t.csv", "-k", "2", "--json")
    assert json.loads(out)["n_kept"] == 2
    code, _, err = run("select", "t.csv", "-k", "2", "-m", "gmm")
    assert code == 1
    assert "EvidenceSelector" in err
