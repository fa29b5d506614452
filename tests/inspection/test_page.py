"""The page of an audit, and its sentences."""

import json
from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from html_page import HtmlPage
from labelsieve import EvidenceSelector, SumF
from labelsieve.inspection import wording
from labelsieve.inspection.audit import inspect_dataset
from labelsieve.inspection.stability import EvidenceTest, SelectionStability
from labelsieve.io import Dataset

HOSTILE = ("<script>alert(1)</script>", 'a"onload="x', "{{ 7 * 7 }}", "&amp;", "plain")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X = rng.random((40, 5))
    Y = (X[:, :2] > 0.5).astype(int)
    candidates = np.maximum(Y, rng.random(Y.shape) < 0.2)
    return Dataset(X, Y, candidates, feature_names=HOSTILE, label_names=("</td>", "<b>"), name="<i>data")


@pytest.fixture(scope="module")
def selected(data):
    """Selection of another method, with label issues."""
    return inspect_dataset(data, SumF(5), command="select", method="sum-f", check_labels=True)


@pytest.fixture(scope="module")
def automatic(data):
    """Selection of the default method with an automatic size and subsamples."""
    found = inspect_dataset(data, EvidenceSelector(), command="select", n_columns="auto", n_resamples=4)
    return replace(found, evidence_test=EvidenceTest(0.05, 10.0, np.zeros(19)))


@pytest.fixture(scope="module")
def issues(data):
    return inspect_dataset(data, command="issues", check_labels=True)


def parts(html):
    """The words of a page and its data; checks that nothing is loaded."""
    page = HtmlPage(html)
    assert not any("//" in address for address in page.addresses)
    return " ".join(page.text.split()), json.loads(page.data)


def test_names_from_data_are_only_text(selected, issues):
    words, data = parts(selected.to_html())
    assert "<i>data" in words
    assert sorted(column["n"] for column in data["columns"]) == sorted(HOSTILE)
    assert [label["n"] for label in data["labels"]] == ["</td>", "<b>"]
    words, data = parts(issues.to_html())
    assert [label["n"] for label in data["labels"]] == ["</td>", "<b>"]
    assert {column["n"] for column in data["columns"]} <= set(HOSTILE)


def test_escape_sequences_are_escaped(selected):
    """Names of data cannot hold them, the name of a file can."""
    page = replace(selected, dataset=replace(selected.dataset, name="\x1b[31mred\u202e")).to_html()
    assert r"\x1b[31mred\u202e" in page
    assert not set("\x1b\u202e") & set(page)


def test_the_page_ranks_by_the_score_of_the_method_and_shows_the_evidence(selected, data):
    _, shown = parts(selected.to_html())
    ranking = selected.ranking
    assert shown["measure"] == "score"
    assert [column["n"] for column in shown["columns"]] == selected.selected
    np.testing.assert_allclose(
        [column["e"] for column in shown["columns"]], ranking.scores[ranking.order], rtol=1e-3
    )
    # z² is n r², whatever the method.
    r = np.corrcoef(data.X[:, ranking.order[0]], data.candidates[:, 0])[0, 1]
    assert shown["columns"][0]["z"][0] == pytest.approx(10 * 40 * r * abs(r), abs=0.51)


def test_parts_that_were_not_computed_are_not_on_the_page(selected, automatic, issues):
    page = selected.to_html()
    words, data = parts(page)
    assert "curve" not in data
    assert 'id="kept"' not in page
    assert "--stability" in words
    words, data = parts(issues.to_html())
    assert not {"curve", "kept", "measure"} & set(data)
    assert "Which labels look wrong?" in words
    assert words.count("How many should you keep?") == 0
    words, data = parts(automatic.to_html())
    assert "rows" not in data
    assert "--check-labels" in words


def test_size_and_stability_are_on_the_page_if_requested(automatic):
    words, shown = parts(automatic.to_html())
    curve, stability = automatic.size_curve, automatic.stability
    assert shown["curve"]["k"] == curve.sizes.tolist()
    np.testing.assert_allclose(shown["curve"]["folds"], curve.scores, atol=1e-4)
    assert shown["best"] == shown["kept"] == curve.best
    for column, number in zip(shown["columns"], automatic.ranking.order, strict=True):
        assert column["b"] == stability.places[:, number].tolist()
    assert "not significant" not in words
    chance = replace(automatic, evidence_test=EvidenceTest(0.3, 10.0, np.zeros(19)))
    assert "not significant" in parts(chance.to_html())[0]


def test_selections_without_a_ranking_show_their_number(data):
    found = inspect_dataset(data, SumF(2), command="select", method="sum-f", n_resamples=4)
    assert parts(found.to_html())[1]["asked"] is None
    found = replace(found, stability=replace(found.stability, places=None))
    _, shown = parts(found.to_html())
    assert shown["asked"] == 2
    for column, number in zip(shown["columns"], found.ranking.order, strict=True):
        assert [place <= 2 for place in column["b"]] == found.stability.runs[:, number].tolist()


def test_columns_that_only_column_order_selected_are_noted(selected):
    def ranked(**attributes):
        selector = copy(selected.ranking.selector)
        vars(selector).update(attributes)
        return replace(selected.ranking, selector=selector)

    assert ranked(scores_=np.ones(5)).n_arbitrary == 0
    ranking = ranked(scores_=np.where(selected.ranking.places > 3, 0.0, 1.0))
    assert ranking.n_arbitrary == 2
    assert wording.arbitrary_note(ranking, "feature") in replace(selected, ranking=ranking).to_html()
    method = EvidenceSelector().fit(selected.dataset.X, selected.dataset.candidates)
    assert ranked(evidence_=np.full(5, 3e-9), selector_=method).shares.max() == 0


def test_labels_that_all_rows_have_are_on_the_page():
    rng = np.random.default_rng(0)
    full = Dataset(rng.random((20, 3)), np.ones((20, 2)), name="full")
    _, data = parts(inspect_dataset(full, command="issues", check_labels=True).to_html())
    assert [label["look"] for label in data["labels"]] == [0, 0]
    assert data["columns"] == []
    assert data["rows"]["b"] == [1000] * len(data["rows"]["i"])


def test_stable_columns_are_compared_with_chance(automatic):
    runs = np.zeros((4, 400), dtype=bool)
    runs[:, :2] = True
    runs[:2, 2] = runs[2:, 3] = True
    stability = SelectionStability(np.arange(400).astype(str), runs[0], runs, np.arange(400))
    # Two are selected in all subsamples, two in half of them; 3^2 / (0.2 * 400) = 0.1125 is at most 0.2.
    note = wording.stability_note(replace(automatic, stability=stability))
    assert note.startswith("2 features")
    assert "60%" in note
    assert "0.2 of them" in note
