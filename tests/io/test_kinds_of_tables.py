"""Tests of tables of the shapes that people have: each is read right without options about its columns."""

import json

import numpy as np
import pandas as pd
import pytest

from kinds_of_tables import EMOTIONS, KINDS, emotions, pokemon, tickets
from labelsieve import audit
from labelsieve.io import DatasetError, read
from labelsieve.io.copies import write_corrected


def named(table):
    return {column.name: column for column in table.columns}


@pytest.mark.parametrize("form", ["frame", "csv", "json"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_column_is_taken_for_what_it_is(kind, form, tmp_path):
    made = KINDS[kind]()
    source = made.frame
    if form == "csv":
        if kind == "tickets in JSON":
            source = source.assign(
                **{
                    name: [json.dumps(cell) for cell in source[name]]
                    for name in ("labels", "user", "reactions")
                }
            )
        source.to_csv(tmp_path / "t.csv", index=False)
        source = tmp_path / "t.csv"
    elif form == "json":
        source.to_json(tmp_path / "t.json", orient="records")
        source = tmp_path / "t.json"
    table = read(source, **made.options)
    assert {column.name: column.role for column in table.columns} == made.roles
    assert set(table.label_names) == made.labels
    ranked = {"number", "boolean", "category", "date", "tags", "text"}
    assert {column.name for column in table.columns if column.features} == {
        name for name, role in made.roles.items() if role in ranked
    }


@pytest.mark.parametrize("kind", ["tickets in JSON", "newswire", "creatures with two types"])
def test_a_kind_of_table_is_audited(kind):
    made = KINDS[kind]()
    found = audit(read(made.frame, **made.options), fast=True)
    if kind == "creatures with two types":
        assert found.is_no_better_than_chance
    else:
        assert found.columns["column"][0] == "body"


def test_a_table_of_nothing_but_text_is_audited():
    frame = emotions(400).frame[["text", "labels"]]
    found = audit(read(frame), fast=True)
    assert found.selected == ["text"]
    contained = {name.removeprefix("text contains ") for name in found.columns["features"][0][:8]}
    assert len(contained & {"great", "amazing", "hate", "stupid", "happy", "fun", "maybe", "option"}) >= 4


# Labels


def test_codes_get_names_from_files_of_every_form(tmp_path):
    frame = emotions().frame
    forms = {
        "lines.txt": "\n".join(EMOTIONS),
        "pairs.csv": "code,name\n" + "\n".join(f"{code},{name}" for code, name in enumerate(EMOTIONS)),
        "list.json": json.dumps([*EMOTIONS]),
        "object.json": json.dumps({str(code): name for code, name in enumerate(EMOTIONS)}),
    }
    expected = read(frame).Y
    for name, content in forms.items():
        (tmp_path / name).write_text(content)
        found = read(frame, label_names=tmp_path / name)
        assert found.label_names == EMOTIONS
        np.testing.assert_array_equal(found.Y, expected)
    with pytest.raises(DatasetError, match="label_names"):
        read(frame, label_names={"x": "y"})
    one_based = frame.assign(
        labels=[",".join(str(int(code) + 1) for code in cell.split(",")) for cell in frame["labels"]]
    )
    assert read(one_based, label_names=[*EMOTIONS]).label_names == EMOTIONS


def test_merged_columns_are_one_set_of_tags(tmp_path):
    made = pokemon()
    table = read(made.frame, merge=["Type 1", "Type 2"])
    for place, name in enumerate(table.label_names):
        has_it = (made.frame["Type 1"] == name) | (made.frame["Type 2"] == name)
        np.testing.assert_array_equal(table.Y[:, place], has_it)
    # Corrections go to the column that has the tag, or to an empty one.
    made.frame.to_csv(tmp_path / "t.csv", index=False)
    table = read(tmp_path / "t.csv", **made.options)
    row = int(np.flatnonzero(made.frame["Type 2"].notna())[0])
    one, two = made.frame.loc[row, ["Type 1", "Type 2"]]
    other = int(np.flatnonzero(made.frame["Type 2"].isna() & (made.frame["Type 1"] != one))[0])
    at = table.label_names.index
    write_corrected(table, [(row, at(two))], [(other, at(one))], tmp_path / "clean.csv")
    clean = pd.read_csv(tmp_path / "clean.csv")
    assert clean.loc[row, "Type 1"] == one
    assert pd.isna(clean.loc[row, "Type 2"])
    assert clean.loc[other, "Type 2"] == one


def test_corrected_lists_of_objects_keep_their_objects(tmp_path):
    made = tickets()
    made.frame.to_json(tmp_path / "t.json", orient="records")
    table = read(tmp_path / "t.json")
    row = next(
        row for row, tags in enumerate(made.frame["labels"]) if [tag["name"] for tag in tags] == ["bug"]
    )
    bug, docs = table.label_names.index("bug"), table.label_names.index("docs")
    write_corrected(table, [(row, bug)], [(row, docs)], tmp_path / "clean.json")
    clean = json.loads((tmp_path / "clean.json").read_text())
    assert clean[row]["labels"] == [{"id": 4, "name": "docs", "color": "d73a4a"}]
    assert clean[row]["user"] == made.frame["user"][row]


def test_thousands_of_tags_that_occur_once_are_rejected():
    frame = pd.DataFrame(
        {"x": np.arange(900) % 7 * 0.5, "tags": [f"a~t{k}~u{k}" if k % 3 else "a~b" for k in range(900)]}
    )
    with pytest.raises(DatasetError, match="did you mean `label_sep`"):
        read(frame, labels="tags")
    with pytest.raises(DatasetError, match="did you mean `label_sep`"):
        read(frame.assign(tags=[cell.replace("~", ";") for cell in frame["tags"]]), labels="tags")
    assert len(read(frame, labels="tags", label_sep="~").label_names) == 1202


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        (["a b", "a", "b", "b c", "c", "a c", "a b c"] * 9, ("a", "b", "c")),
        (["a/b", "a", "b", "b/c", "c", "a/c"] * 9, ("a", "b", "c")),
        (["a\nb", "a", "b"] * 9, ("a", "b")),
        (["<c#><.net>", "<c#>", "<.net><sql>"] * 9, (".net", "c#", "sql")),
        (['{"a": 3, "b": 1}', '{"a": 3, "c": 2}'] * 9, ("a", "b", "c")),
        (["New York", "New Jersey", "Los Angeles"] * 9, ("Los Angeles", "New Jersey", "New York")),
        (["Extra Large", "Large", "Small", "Extra Small", "Medium"] * 9,
         ("Extra Large", "Extra Small", "Large", "Medium", "Small")),
        (["TCP/IP", "UDP", "DNS"] * 9, ("DNS", "TCP/IP", "UDP")),
        (["1,2", "1", "2,3", "3"] * 9, ("1", "2", "3")),
    ],
)  # fmt: skip
def test_separators_are_guessed(cells, labels):
    if cells[0].startswith("{"):
        cells = [json.loads(cell) for cell in cells]
    frame = pd.DataFrame({"x": np.arange(len(cells)) * 0.5, "tags": cells})
    assert read(frame, labels="tags").label_names == labels


# Vectors


def vectors(n_rows=60, n_numbers=10):
    return np.random.default_rng(0).normal(size=(n_rows, n_numbers)).round(3)


@pytest.mark.parametrize(
    "spell", [list, np.array, str, lambda row: json.dumps(row), lambda row: str(np.array(row))]
)
def test_lists_of_numbers_are_one_column(spell):
    given = vectors()
    cells = [spell(row.tolist()) for row in given]
    cells[3] = None
    table = read(pd.DataFrame({"e": pd.Series(cells, dtype=object), "tags": ["a;b", "b", "a"] * 20}))
    column = named(table)["e"]
    assert (column.role, column.n_missing, len(column.features)) == ("vector", 1, 10)
    np.testing.assert_allclose(np.delete(table.X, 3, axis=0), np.delete(given, 3, axis=0), atol=1e-8)
    np.testing.assert_allclose(table.X[3], np.delete(given, 3, axis=0).mean(axis=0))


def test_a_block_of_numbered_columns_is_one_column(tmp_path):
    given = vectors()
    frame = pd.DataFrame(given, columns=[f"emb_{k}" for k in range(10)])
    frame.insert(3, "size", np.arange(60) ** 2)
    frame["tags"] = ["a;b", "b", "a"] * 20
    frame.to_csv(tmp_path / "t.csv", index=False)
    table = read(tmp_path / "t.csv")
    assert table.column_names == ("emb_*", "size")
    assert table.feature_names[:2] == ("emb_0[0]", "emb_0[1]")
    np.testing.assert_allclose(table.X[:, np.flatnonzero(table.column_of == 0)], given)
    assert read(frame, roles={"emb_0": "number"}).n_columns == 11
    # Columns of one norm are an embedding, whatever their name.
    units = pd.DataFrame(given / np.linalg.norm(given, axis=1)[:, None], columns=[f"d{k}" for k in range(10)])
    assert read(units.assign(tags=frame["tags"])).n_columns == 1
    plain = pd.DataFrame(given, columns=[f"d{k}" for k in range(10)])
    assert read(plain.assign(tags=frame["tags"])).n_columns == 10


# Roles and what they say


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["90 min", "1h 30m", "2 hours"], [90, 90, 120]),
        (["PT1H5M", "PT45S", "P1D"], [65, 0.75, 1440]),
        (["1:30:00", "0:45:00", "2:00"], [90, 45, 120]),
        (["$1.2M", "$350K", "US$90"], [1.2e6, 3.5e5, 90]),
        (["Rs. 1,200", "₹350", "₹1,000"], [1200, 350, 1000]),
        (["4.1/5", "3.9 /5", "2/5"], [4.1, 3.9, 2]),
        (["10,000+", "500,000+", "1,000+"], [10_000, 500_000, 1000]),
        (["1.5 GB", "300 MB", "20 kB"], [1500, 300, 0.02]),
        (["12 kg", "300 g", "1 kg"], [12, 0.3, 1]),
        (["800 for two", "1,200 for two", "300 for two"], [800, 1200, 300]),
    ],
)
def test_numbers_with_units_are_numbers(cells, numbers):
    frame = pd.DataFrame({"x": cells * 5, "tags": ["a;b", "b", "a"] * 5})
    column = named(read(frame))["x"]
    assert column.role == "number"
    np.testing.assert_allclose(read(frame).X[:3, 0], numbers)


def test_units_that_cannot_be_converted_are_kept_apart():
    frame = pd.DataFrame({"x": ["90 min", "2 Seasons", "100 min", "1 Season"] * 5, "tags": ["a;b", "b"] * 10})
    table = read(frame)
    assert table.feature_names == ("x in min", "x is in min", "x in season", "x is in season")
    np.testing.assert_array_equal(
        table.X[:4], [[90, 1, 1.5, 0], [95, 0, 2, 1], [100, 1, 1.5, 0], [95, 0, 1, 1]]
    )


@pytest.mark.parametrize(
    "cells",
    [
        lambda k: f"https://a.org/{k % 9}",
        lambda k: f"user{k % 9}@mail.org",
        lambda k: f"{k % 9:x}f3a9c2e1b7d{k % 9:x}a08f",
        lambda k: f"photos/IMG {k % 9}.jpeg",
        lambda k: f"+49 30 {1234567 + k % 9}",
        lambda k: f"(0{k % 9}) 555-1234",
    ],
)
def test_identifiers_are_recognized_although_they_repeat(cells):
    frame = pd.DataFrame(
        {"c": [cells(k) for k in range(45)], "x": np.arange(45) * 0.5, "tags": ["a;b", "b", "a"] * 15}
    )
    column = named(read(frame))["c"]
    assert (column.role, column.features) == ("id", ())
    assert "roles={'c'" in column.note
    assert read(frame).id_column is None


def test_missing_values_are_features_of_every_role():
    rng = np.random.default_rng(0)
    gone = np.arange(60) % 4 == 1
    words = [" ".join(rng.choice(["sun", "rain", "wind", "snow", "fog"], 4)) + f" {k}" for k in range(60)]
    columns = {
        "number": rng.normal(size=60),
        "category": rng.choice(["a", "b", "c"], 60),
        "text": np.array(words, dtype=object),
        "tags": np.array(["a;b", "b", "b;a"] * 20, dtype=object),
    }
    frame = pd.DataFrame({name: pd.Series(cells).where(~gone, None) for name, cells in columns.items()})
    table = read(frame.assign(label=["a;b", "b", "a"] * 20), labels="label")
    for name in columns:
        feature = table.feature_names.index(f"{name} is missing")
        np.testing.assert_array_equal(np.asarray(table.X[:, [feature]].todense()).ravel(), gone)


# Rows


def ids(cells, **columns):
    n = len(cells)
    return pd.DataFrame(
        {"name": cells, "x": np.arange(n) * 0.5, **columns, "tags": (["a;b", "b", "a"] * n)[:n]}
    )


@pytest.mark.parametrize("cells", [["a", "b", "a", "c", "d", "e"], ["a", "b", "", "c", "d", "e"]])
def test_names_that_repeat_or_are_empty_are_shown(cells):
    table = read(ids(cells), id="name")
    assert list(table.row_ids) == list(range(6))
    assert table.context(1) == {"name": "b"}
    assert any("'name'" in note for note in table.notes)
    assert read(ids([*"abcdef"]), id="name").row_ids == tuple("abcdef")


def test_free_text_and_shown_columns_are_the_context_of_a_row():
    made = tickets()
    table = read(made.frame, show=["state", "labels"], ignore="number")
    context = table.context(3)
    assert list(context) == ["title", "labels", "state", "body"]
    assert context["body"] == made.frame["body"][3]
    assert context["labels"] == ", ".join(tag["name"] for tag in made.frame["labels"][3])
    with pytest.raises(DatasetError, match="'nothing'"):
        read(made.frame, show="nothing")


def test_repeated_rows_and_groups_are_joined():
    frame = ids([*"aabbcd"], size=[1.5, 2.5, 2.5, 3.5, 1.5, 9.5])
    frame["x"] = [1, 2, 2, 3, 1, 4]
    table = read(frame, group="name")
    # Rows 0 and 4 repeat, and so do 1 and 2, so that the groups a, b and c are connected.
    assert table.groups.tolist() == [0, 0, 0, 0, 0, 1]
    assert named(table)["name"].role == "id"
    assert read(frame, ignore="name").groups.tolist() == [0, 1, 1, 2, 0, 3]
    assert read(frame.drop(index=[1, 4]), ignore="name").groups is None
    with pytest.raises(DatasetError, match="'purple'"):
        read(frame, group="purple")
