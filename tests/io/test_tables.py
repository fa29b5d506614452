"""Tests of tables: roles, features, labels, copies and commands."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import issparse

from conftest import run
from labelsieve import ColumnSelector, EvidenceSelector, SumF, choose_size, selection_stability
from labelsieve._numerics.candidate_precision import ridge_precision
from labelsieve.io import DatasetError, read
from labelsieve.io.column_types import TypedColumn
from labelsieve.io.copies import write_corrected
from labelsieve.io.features import MAX_CATEGORIES, encode
from labelsieve.io.options import ReadOptions


@pytest.fixture
def frame():
    """Sixty rows. The label hot depends on the temperature, and cold on the place."""
    rng = np.random.default_rng(0)
    hot, cold = rng.random((2, 60)) < 0.5
    return pd.DataFrame(
        {
            "row": [f"r{number}" for number in range(60)],
            "temperature": np.where(np.arange(60) % 8 == 5, np.nan, hot + 0.1 * rng.random(60)),
            "place": np.where(cold, "north", rng.choice(["south", "east"], 60)),
            "noise": rng.normal(size=60),
            "tags": [
                ";".join(name for name, on in (("hot", h), ("cold", c)) if on)
                for h, c in zip(hot, cold, strict=True)
            ],
        }
    )


def encoded(columns, names, text="drop"):
    return encode(columns, names, ReadOptions(text=text), DatasetError)


def named(table):
    return {column.name: column for column in table.columns}


# Roles


def test_tags_that_differ_only_in_case_are_named(frame):
    words = ["Rock;pop", "rock", "ROCK;Pop", "jazz"]
    assert "Pop, pop; ROCK, Rock, rock" in named(read(frame.assign(tags=words * 15)))["tags"].note
    assert "case" not in named(read(frame))["tags"].note


@pytest.mark.parametrize("dash", ["-", "--", "—"])
def test_dashes_between_numbers_are_missing(frame, dash):
    sizes = [dash if row % 5 == 0 else f"{row / 7:.2f}" for row in range(60)]
    column = named(read(frame.assign(size=sizes)))["size"]
    assert (column.role, column.n_missing) == ("number", 12)
    assert repr(dash) in column.note


@pytest.mark.parametrize(
    ("cells", "role"),
    [
        (("low", "-", "high"), "category"),
        (("1", "-", "many", "2"), "category"),
        (("-", "--"), "category"),
        (("01", "-", "02"), "category"),
        (("a;b", "-", "b;c"), "tags"),
    ],
)
def test_dashes_next_to_words_are_words(frame, cells, role):
    table = read(frame.assign(grade=[cells[row % len(cells)] for row in range(60)]), labels="tags")
    assert (named(table)["grade"].role, named(table)["grade"].n_missing) == (role, 0)


def test_a_dash_is_a_tag_in_a_label_column(frame):
    table = read(frame.assign(tags=["1", "-", "2"] * 20), labels="tags")
    assert table.label_names == ("-", "1", "2")


# Features


def test_features_and_columns_refer_to_each_other(frame):
    table = read(frame)
    for place, column in enumerate(table.columns):
        assert all(table.column_of[feature] == place for feature in column.features)
    assert (
        sum(len(column.features) for column in table.columns) == table.X.shape[1] == len(table.feature_names)
    )
    assert table.column_names == ("temperature", "place", "noise")
    assert np.isfinite(table.X).all()


def test_missing_numbers_become_the_median_with_an_indicator(frame):
    table = read(frame)
    column = named(table)["temperature"]
    given = frame["temperature"].to_numpy()
    assert column.n_missing == np.isnan(given).sum() >= 5
    value, missing = (table.X[:, feature] for feature in column.features)
    np.testing.assert_array_equal(value, np.where(np.isnan(given), np.nanmedian(given), given))
    np.testing.assert_array_equal(missing, np.isnan(given))
    assert table.feature_names[column.features[1]] == "temperature is missing"


def test_categories_become_one_feature_each_and_two_of_them_one(frame):
    table = read(frame.assign(side=np.where(frame["noise"] > 0, "left", "right")))
    columns = named(table)
    assert [table.feature_names[at] for at in columns["place"].features] == [
        "place=east",
        "place=north",
        "place=south",
    ]
    assert [table.feature_names[at] for at in columns["side"].features] == ["side=right"]
    north = table.feature_names.index("place=north")
    np.testing.assert_array_equal(table.X[:, north], frame["place"] == "north")


def test_rare_categories_are_merged_and_their_number_is_limited():
    cells = np.array(["a"] * 300 + ["b"] * 295 + [f"rare {k}" for k in range(5)], dtype=object)
    found = encoded({0: TypedColumn("category", cells)}, ["c"])
    assert found.names == ["c=a", "c=b", "c=(other)"]
    np.testing.assert_array_equal(found.X[:, 2], [0] * 595 + [1] * 5)
    cells = np.array([f"c{k % 200}" for k in range(2000)], dtype=object)
    assert len(encoded({0: TypedColumn("category", cells)}, ["c"]).names) == MAX_CATEGORIES


def test_dates_are_split_into_calendar_features():
    moments = np.array(["1789-07-14T06:00", "2024-02-29T18:00", "2024-03-02T00:00"], dtype="datetime64[s]")
    found = encoded({0: TypedColumn("date", moments)}, ["d"])
    parts = dict(zip(found.names, found.X.T, strict=True))
    days = np.array(["1789-07-14", "2024-02-29", "2024-03-02"], dtype="datetime64[D]").astype(int)
    np.testing.assert_allclose(parts["d: days since 1970"], np.add(days, [0.25, 0.75, 0]))
    assert parts["d: weekday"].tolist() == [1, 3, 5]  # Tuesday, Thursday, Saturday
    assert parts["d: weekend"].tolist() == [0, 0, 1]
    np.testing.assert_allclose(parts["d: hour, sine"], [1, -1, 0], atol=1e-12)
    np.testing.assert_allclose(parts["d: month, cosine"], np.cos(2 * np.pi * np.array([6, 1, 2]) / 12))


def test_words_and_pairs_of_words_become_features(frame):
    rng = np.random.default_rng(1)
    words = np.array(["sun", "rain", "wind", "snow", "fog", "hail", "frost", "storm"])
    texts = [" ".join(rng.permutation(words)[:5]) for _ in range(60)]
    table = read(frame.assign(report=texts))
    column = named(table)["report"]
    assert column.role == "text"
    names = [table.feature_names[feature] for feature in column.features]
    assert {f"report contains {word}" for word in words} < set(names)
    pair = next(name for name in names if name.count(" ") == 3).removeprefix("report contains ")
    weights = table.X[:, [names.index(f"report contains {pair}") + column.features[0]]].toarray().ravel()
    np.testing.assert_array_equal(weights > 0, [pair in text for text in texts])
    assert not named(read(frame.assign(report=texts), text="drop"))["report"].features


def test_many_sparse_features_stay_sparse_and_are_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    texts = np.array(
        [" ".join(rng.choice([*"abcdefgh"], 2, replace=False)) * 2 for _ in range(50)], dtype=object
    )
    kinds = np.array([f"k{k % 9}" for k in range(50)], dtype=object)
    columns = {
        0: TypedColumn("text", np.array([text.replace(" ", " w") for text in texts], dtype=object)),
        1: TypedColumn("category", kinds),
        2: TypedColumn("number", np.where(np.arange(50) < 40, 0.0, 1.5)),
    }
    sparse = encoded(columns, ["t", "c", "n"], "tfidf")
    assert issparse(sparse.X)
    monkeypatch.setattr("labelsieve.io.features._MAX_SPARSE_DENSITY", 0)
    dense = encoded(columns, ["t", "c", "n"], "tfidf")
    assert sparse.names == dense.names
    np.testing.assert_array_equal(sparse.X.toarray(), dense.X)


# Roles and labels


def test_given_roles_override_inferred_ones(frame):
    table = read(frame, roles={"place": "ignored", "row": "category", "noise": "id"})
    assert {name: column.role for name, column in named(table).items()} == {
        "row": "category", "temperature": "number", "place": "ignored", "noise": "id", "tags": "label",
    }  # fmt: skip
    assert read(frame, id="noise").id_column == "noise"
    assert named(read(frame, ignore=["place", "noi*"]))["noise"].role == "ignored"
    assert read(frame, roles={"place": "label"}).label_names == ("east", "north", "south")


@pytest.mark.parametrize(
    "spell",
    [
        lambda tags: tags,
        lambda tags: tags.replace(";", "|"),
        lambda tags: json.dumps(tags.split(";") if tags else []),
        lambda tags: repr(tags.split(";") if tags else []),
        lambda tags: tags.split(";") if tags else [],
        lambda tags: set(tags.split(";")) if tags else set(),
        lambda tags: np.array(tags.split(";") if tags else []),
    ],
)
def test_tags_are_read_in_every_spelling(frame, spell):
    table = read(frame.assign(tags=[spell(tags) for tags in frame["tags"]]), labels="tags")
    assert table.label_names == ("cold", "hot")
    expected = [[name in tags.split(";") for name in ("cold", "hot")] for tags in frame["tags"]]
    np.testing.assert_array_equal(table.Y, expected)


def test_label_columns_of_yes_and_no(frame):
    both = frame.assign(
        label_hot=frame["tags"].str.contains("hot").astype(int),
        label_cold=np.where(frame["tags"].str.contains("cold"), "yes", "no"),
    ).drop(columns="tags")
    for labels in ("label_*", 2, ["label_hot", "label_cold"], None):
        table = read(both, labels=labels)
        assert table.label_names == ("label_hot", "label_cold")
        np.testing.assert_array_equal(table.Y[:, 1], frame["tags"].str.contains("cold"))


def test_a_cross_next_to_a_tick_means_no(frame):
    is_hot = frame["tags"].str.contains("hot")
    ticked = frame.assign(hot=np.where(is_hot, "✓", "✗"))
    np.testing.assert_array_equal(read(ticked, labels=["hot", "tags"], label_sep=";").Y[:, -1], is_hot)
    with pytest.raises(DatasetError, match="'hot' has"):
        read(ticked.replace({"hot": "✓"}, ""), labels=["hot", "tags"], label_sep=";")


def test_rows_without_names_are_numbered(frame):
    assert read(frame).row_ids[:2] == ("r0", "r1")
    assert list(read(frame.drop(columns="row")).row_ids[:2]) == [0, 1]
    assert read(frame.set_index("row")).row_ids[:2] == ("r0", "r1")
    assert read(frame.set_index("place")).row_ids[:2] == ("r0", "r1")


def test_durations_are_numbers(frame):
    spans = pd.to_timedelta(np.arange(60) ** 2 + 0.5, unit="s").where(np.arange(60) != 3)
    column = named(read(frame.assign(span=spans)))["span"]
    assert (column.role, column.n_missing) == ("number", 1)


def test_a_polars_frame_is_a_table(frame):
    polars = pytest.importorskip("polars")
    found = read(polars.from_pandas(frame))
    np.testing.assert_array_equal(found.X, read(frame).X)


@pytest.mark.parametrize("cells", ["tyty", "xyty", "fnnf", "tyzt", "xy_t"])
def test_letters_that_all_mean_yes_or_all_no_are_tags(cells):
    letters = [None if cell == "_" else cell for cell in cells]
    found = read(pd.DataFrame({"size": [1.0, 2, 4, 3], "a": letters, "b": [1, 0, 0, 1]}), labels=["a", "b"])
    expected = sorted({letter for letter in letters if letter})
    assert found.label_names == (*(f"a={letter}" for letter in expected), "b")
    assert found.candidates[:, :-1].tolist() == [[cell == letter for letter in expected] for cell in letters]


@pytest.mark.parametrize(
    ("cells", "note"),
    [
        (["t", "F", "f", "T"], "t is yes, f is no"),  # word: ok
        (["y", "n", "y", "y"], "y is yes, n is no"),  # word: ok
        (["x", None, None, "X"], "x is yes; 2 empty cells treated as no"),
        (["yes", "No", "no", "yes"], ""),
        (["1", "1.0", "1", "1"], ""),
    ],
)
def test_a_note_names_the_letters_that_mean_yes_and_no(cells, note):
    found = read(pd.DataFrame({"size": [1.0, 2, 4, 3], "a": cells, "b": [1, 0, 0, 1]}), labels=["a", "b"])
    assert found.label_names == ("a", "b")
    assert {column.name: column.note for column in found.columns}["a"] == note


def test_labels_in_scientific_notation_are_zero_and_one(tmp_path):
    Y = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    # savetxt writes %.18e by default.
    X = [[0.5, 1.5], [2.5, 0.5], [3.5, 2.5]]
    np.savetxt(tmp_path / "t.csv", np.hstack([X, Y]), delimiter=",", header="x,z,a,b", comments="")
    np.testing.assert_array_equal(read(tmp_path / "t.csv", labels=2).Y, Y)


def test_arrays_with_labels_give_a_dataset(frame):
    with pytest.raises(DatasetError, match="labels"):
        read([[1, 2]])
    X = frame[["noise"]]
    found = read(X, labels=[{"hot"} if value > 0 else set() for value in frame["noise"]])
    assert (found.feature_names, found.label_names) == (("noise",), ("hot",))
    np.testing.assert_array_equal(found.Y.ravel(), frame["noise"] > 0)


# Columns are selected


def test_a_column_is_ranked_by_its_best_feature(frame):
    table = read(frame)
    found = ColumnSelector(SumF(), table.column_of, 2).fit(table.X, table.Y)
    best = {
        place: min(found.selector_.ranking_[feature] for feature in table.columns[place].features)
        for place in table.ranked
    }
    order = sorted(table.ranked, key=best.get)
    assert found.columns_[np.argsort(found.ranking_)].tolist() == order
    assert {table.columns[place].name for place in found.columns_[found.get_support()]} == {
        "temperature",
        "place",
    }
    order, ends = found.feature_order()
    assert sorted(order) == list(range(table.X.shape[1]))
    first = table.columns[found.columns_[np.argmin(found.ranking_)]].features
    assert set(order[: ends[0]]) == set(first)
    assert ends[-1] == table.X.shape[1]


def test_sizes_count_columns_with_all_their_features(frame):
    table = read(frame)
    train, test = np.arange(60) % 3 > 0, np.arange(60) % 3 == 0
    split = [(np.flatnonzero(train), np.flatnonzero(test))]
    curve = choose_size(ColumnSelector(SumF(), table.column_of), table.X, table.Y, cv=split)
    assert curve.sizes.tolist() == [1, 2, 3]
    ranked = ColumnSelector(SumF(), table.column_of).fit(table.X[train], table.Y[train])
    for size, score in zip(curve.sizes, curve.scores[0], strict=True):
        chosen = ranked.columns_[ranked.ranking_ <= size]
        features = np.flatnonzero(np.isin(table.column_of, chosen))
        parts = (table.X[train], table.Y[train], table.X[test], table.Y[test])
        precision = ridge_precision(*parts, features, np.array([len(features)]))
        assert score == pytest.approx(np.nanmean(precision))


def test_one_feature_per_column_changes_nothing(frame):
    X, Y = frame[["noise"]].to_numpy() * [[1.0, 2.0]] + [0.0, 1.0], read(frame).Y
    X = np.column_stack([X, read(frame).X])
    plain, by_column = SumF(), ColumnSelector(SumF(), np.arange(X.shape[1]))
    np.testing.assert_array_equal(by_column.fit(X, Y).ranking_, plain.fit(X, Y).ranking_)
    np.testing.assert_array_equal(choose_size(by_column, X, Y).scores, choose_size(plain, X, Y).scores)


def test_subsamples_select_columns(frame):
    table = read(frame)
    found = selection_stability(
        ColumnSelector(EvidenceSelector(), table.column_of, 2), table.X, table.Y, n_resamples=10
    )
    assert found.runs.shape == (10, table.n_columns)
    assert found.frequency[[0, 1]].min() > 0.8


@pytest.mark.parametrize("wanted", [0, 4, 9])
def test_selecting_too_many_columns_is_rejected(frame, wanted):
    table = read(frame)
    with pytest.raises(ValueError, match="3"):
        ColumnSelector(SumF(), table.column_of, wanted).fit(table.X, table.Y)


def test_columns_of_another_table_are_rejected(frame):
    table = read(frame)
    with pytest.raises(ValueError, match="column"):
        ColumnSelector(SumF(), table.column_of[1:]).fit(table.X, table.Y)


# On the command line


def test_features_are_written_if_columns_cannot_be(frame, capsys, plain_terminal):
    frame.to_csv("mine.csv", index=False)
    code, _, err = run(capsys, "select", "mine.csv", "-k", "2", "--write-data", "small.npz")
    assert code == 0
    assert "note: small.npz" in err


@pytest.mark.parametrize(
    ("options", "spell", "ending"),
    [
        ({"label_sep": "/"}, "/".join, "csv"),
        ({"label_sep": " and "}, " and ".join, "csv"),
        ({}, lambda tags: str(np.array(tags)) if tags else "", "csv"),
        ({}, json.dumps, "csv"),
        ({}, list, "parquet"),
    ],
    ids=["slash", "word", "numpy", "JSON", "list"],
)
def test_a_review_removes_tags_in_any_notation(frame, plain_terminal, options, spell, ending):
    tags = [[tag for tag in cell.split(";") if tag] for cell in frame["tags"]]
    spelled = frame.assign(tags=[spell(cell) for cell in tags])
    spelled.to_csv("t.csv", index=False) if ending == "csv" else spelled.to_parquet("t.parquet")
    table = read(f"t.{ending}", labels="tags", **options)
    row, label = tags.index(["hot", "cold"]), table.label_names.index("hot")
    write_corrected(table, [(row, label)], [], Path(f"clean.{ending}"))
    cleaned = read(f"clean.{ending}", labels="tags", **options)
    expected = np.array(table.Y)
    expected[row, label] = 0
    np.testing.assert_array_equal(cleaned.Y, expected)
    pd.testing.assert_frame_equal(cleaned.frame.iloc[:, :-1], table.frame.iloc[:, :-1])


def test_a_review_empties_the_cell_of_a_number(frame, plain_terminal):
    frame.assign(tags=np.arange(60) % 3 + 1).to_parquet("t.parquet")
    write_corrected(read("t.parquet", labels="tags"), [(4, 1)], [], Path("clean.parquet"))
    cleaned = pd.read_parquet("clean.parquet")["tags"]
    assert np.flatnonzero(cleaned.isna()).tolist() == [4]
    np.testing.assert_array_equal(cleaned.drop(4), np.delete(np.arange(60) % 3 + 1, 4))


def test_a_tag_that_cannot_be_removed_is_reported(frame, plain_terminal):
    frame.assign(tags=frame["tags"].str.encode("utf-8")).to_parquet("t.parquet")
    table = read("t.parquet", labels="tags")
    row, label = (int(found[0]) for found in np.nonzero(table.Y))
    with pytest.raises(DatasetError, match="by hand"):
        write_corrected(table, [(row, label)], [], Path("clean.parquet"))
    assert not Path("clean.parquet").exists()


def test_rankings_escape_formulas_and_copies_keep_them(capsys, tmp_path, frame):
    path, ranking, copy = (str(tmp_path / name) for name in ("mine.csv", "ranking.csv", "copy.csv"))
    frame.assign(place=frame["place"].replace("north", "=1+1")).rename(columns={"place": "@place"}).to_csv(
        path, index=False
    )
    outputs = ("-o", ranking, "--write-data", copy)
    assert run(capsys, "select", path, "--labels", "tags", "-k", "3", *outputs)[0] == 0
    assert ",'@place," in Path(ranking).read_text(encoding="utf-8")
    kept = pd.read_csv(copy)
    assert "=1+1" in set(kept["@place"])
