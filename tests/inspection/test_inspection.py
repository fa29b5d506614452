import base64
import csv
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from conftest import run
from labelsieve import PMLFSMIR, EvidenceSelector, SumF, evidence_test, selection_stability
from labelsieve.inspection.auditing.doubts import doubt_subject
from labelsieve.inspection.auditing.subject import Subject
from labelsieve.inspection.page import page_of_issues, page_of_selection
from labelsieve.inspection.pixels import draw_selected_pixels, draw_suspects
from labelsieve.inspection.selection import summarise
from labelsieve.inspection.stability import EvidenceTest, SelectionStability
from labelsieve.io import Dataset, write
from labelsieve.size_curve import SizeCurve

HOSTILE = ("<script>alert(1)</script>", 'a"onload="x', "{{ 7 * 7 }}", "&amp;", "plain")


@pytest.fixture
def data():
    rng = np.random.default_rng(1)
    X = rng.random((40, 5))
    Y = (X[:, :2] > 0.5).astype(int)
    candidates = np.maximum(Y, rng.random(Y.shape) < 0.2)
    return Dataset(X, Y, candidates, feature_names=HOSTILE, label_names=("</td>", "<b>"), name="<i>data")


@pytest.fixture
def selector(data):
    return PMLFSMIR(n_features_to_select=5).fit(data.X, data.candidates)


@pytest.fixture
def subject(data):
    return Subject.of_dataset(data)


@pytest.fixture
def found(data, selector, subject):
    return summarise(selector, data, "pml-fsmir", converged=True, subject=subject, check_labels=True)


def parts(page):
    """The words of a page and its data; checks that elements nest and that nothing is loaded."""
    parser = Strict()
    parser.feed(page)
    assert parser.open == []
    assert not any("//" in address for address in parser.addresses)
    return " ".join(parser.text.split()), json.loads(parser.data)


class Strict(HTMLParser):
    """Checks that elements nest, and collects text, data and addresses."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.data, self.addresses = [], "", "", []

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "link", "br", "input", "col", "img"):
            self.open.append("json" if ("type", "application/json") in attributes else tag)
        assert "style" not in dict(attributes)
        self.addresses += [value for name, value in attributes if name in ("src", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop().replace("json", "script") == tag

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_data(self, data):
        if "json" in self.open:
            self.data += data
        elif not {"style", "script"} & set(self.open):
            self.text += data


def test_names_from_data_are_text_and_nothing_else(found, selector, subject):
    words, data = parts(page_of_selection(found, selector, subject))
    assert "<i>data" in words
    assert sorted(column["n"] for column in data["columns"]) == sorted(HOSTILE)
    assert [label["n"] for label in data["labels"]] == ["</td>", "<b>"]
    words, data = parts(page_of_issues(subject, found.doubts, advice="Look."))
    assert [label["n"] for label in data["labels"]] == ["</td>", "<b>"]
    assert {column["n"] for column in data["columns"]} <= set(HOSTILE)


def test_escape_sequences_are_shown_not_sent(found, selector, subject):
    """Names of data cannot hold them, the name of a file can."""
    html = page_of_selection(found, selector, replace(subject, name="\x1b[31mred\u202e"))
    assert r"\x1b[31mred\u202e" in html
    assert not set("\x1b\u202e") & set(html)


def test_the_page_ranks_by_the_score_of_the_method_and_shows_the_evidence(found, selector, subject):
    words, data = parts(page_of_selection(found, selector, subject))
    assert data["measure"] == "score"
    assert [column["n"] for column in data["columns"]] == [feature.name for feature in found.features]
    scores = [feature.score for feature in found.features]
    np.testing.assert_allclose([column["e"] for column in data["columns"]], scores, rtol=1e-3)
    # z² is n r², whatever the method.
    first = found.features[0].column
    r = np.corrcoef(subject.X[:, first], subject.Y[:, 0])[0, 1]
    assert data["columns"][0]["z"][0] == pytest.approx(10 * 40 * r * abs(r), abs=0.51)
    assert "pml-fsmir, converged in" in words
    assert "5 are kept: -k auto tries" in words


def test_what_nobody_asked_for_is_not_on_the_page(found, selector, subject, settled):
    html = page_of_selection(found, selector, subject)
    words, data = parts(html)
    assert "curve" not in data
    assert 'id="kept"' not in html
    assert "Not resampled: --stability 30" in words
    assert "Half of the rows say less" not in words
    words, data = parts(page_of_issues(subject, found.doubts, advice="Look."))
    assert not {"curve", "kept", "measure"} & set(data)
    assert "Columns that matter" not in words
    assert "Evidence is association" not in words
    assert "Which labels look wrong?" in words
    assert words.count("How many to keep?") == 0


def test_size_and_stability_are_on_the_page_if_they_were_asked(data, settled, subject):
    selector = EvidenceSelector("auto").fit(data.X, data.candidates)
    words, shown = parts(page_of_selection(settled, selector, subject))
    assert shown["curve"]["k"] == settled.curve.sizes.tolist()
    np.testing.assert_allclose(shown["curve"]["folds"], settled.curve.scores, atol=1e-4)
    assert shown["best"] == shown["kept"] == settled.curve.best
    assert shown["asked"] == len(settled.selected)
    for column, feature in zip(shown["columns"], settled.features, strict=True):
        chosen = [place <= shown["asked"] for place in column["b"]]
        assert chosen == settled.stability.runs[:, feature.column].tolist()
    assert settled.size_note in words
    assert "come back on at least 90% of 4 halves" in words
    assert "no better than chance" not in words
    doubtful = replace(settled, chance=replace(settled.chance, p_value=0.3))
    assert "This ranking is no better than chance." in page_of_selection(doubtful, selector, subject)


def test_the_truth_is_told_where_it_is_known(found, selector, subject):
    words, _ = parts(page_of_selection(found, selector, subject))
    assert f"of the first 20, {found.listed_wrong} are wrong" in words
    words, _ = parts(page_of_selection(replace(found, n_wrong=None), selector, subject))
    assert "The truth is known" not in words


def test_reasons_do_not_change_what_is_doubted(data, selector, found):
    plain = summarise(selector, data, "pml-fsmir", converged=True, check_labels=True)
    assert plain.doubts is None
    assert [(s.sample, s.label) for s in plain.suspects] == [(s.sample, s.label) for s in found.suspects]
    assert found.doubts.reasons.columns.shape[1] == 3


def test_features_that_only_column_order_selected_are_told(found, selector, subject):
    features = tuple(replace(feature, score=1.0) for feature in found.features)
    assert "column order" not in page_of_selection(replace(found, features=features), selector, subject)
    features = (*features[:3], *(replace(feature, score=0.0) for feature in features[3:]))
    page = page_of_selection(replace(found, features=features), selector, subject)
    assert "2 of the 5 selected features have the score 0" in page


def test_substitutes_are_those_that_the_halves_know(data):
    X = np.column_stack([data.X, -data.X[:, 0]])
    twins = Dataset(X, data.Y, data.Y_candidates, name="twins")
    subject, selector = Subject.of_dataset(twins), SumF(2).fit(X, twins.candidates)
    stability = selection_stability(selector, X, twins.candidates, n_resamples=4)
    found = summarise(
        selector,
        twins,
        "sum-f",
        converged=True,
        subject=subject,
        chance=evidence_test(X, twins.candidates),
        stability=stability,
    )
    _, shown = parts(page_of_selection(found, selector, subject))
    place = {column["n"]: number for number, column in enumerate(shown["columns"])}
    assert shown["columns"][place["x0"]]["s"] == [[place["x5"], -1.0]]
    assert shown["columns"][place["x5"]]["s"] == [[place["x0"], -1.0]]
    # Without halves all columns are compared.
    _, shown = parts(page_of_selection(replace(found, stability=None), selector, subject))
    assert shown["columns"][place["x0"]]["s"] == [[place["x5"], -1.0]]


def test_labels_that_no_row_lacks_have_a_page_too():
    rng = np.random.default_rng(0)
    full = Dataset(rng.random((20, 3)), np.ones((20, 2)), name="full")
    subject = Subject.of_dataset(full)
    words, data = parts(page_of_issues(subject, doubt_subject(subject), advice="Look."))
    assert "of 40 candidates none looks rather wrong" in words
    assert data["columns"] == []
    assert data["rows"]["b"] == [1000] * len(data["rows"]["i"])


def test_pictures_of_the_data_are_in_the_page_as_they_are(found, selector, subject):
    picture = draw_selected_pixels(found, np.ones((1, 5)))
    page = page_of_selection(found, selector, subject, pictures=[picture])
    embedded = re.search(r'<img src="data:image/png;base64,([^"]*)" alt="([^"]*)">', page)
    assert base64.b64decode(embedded[1]) == picture.png()
    assert embedded[2] == picture.description


@pytest.mark.usefixtures("plain_terminal")
def test_a_ranking_in_csv_takes_no_orders_from_names(capsys):
    rng = np.random.default_rng(0)
    X = rng.random((20, 3))
    names = ("=1+1", "@cmd", "a,b")
    write(Dataset(X, X[:, :1] > 0.5, feature_names=names, label_names=("label",)), Path("odd.csv"))
    code, out, err = run(capsys, "select", "odd.csv", "--format", "csv", "--all")
    assert code == 0, err
    assert {row["name"] for row in csv.DictReader(io.StringIO(out))} == {"'=1+1", "'@cmd", "a,b"}


def test_suspects_are_drawn_five_in_a_row(found):
    images = np.zeros((40, 2, 2))
    picture = draw_suspects(found.suspects[:7], images)
    drawn = [axes.get_title() for axes in picture.figure.axes if axes.axison]
    assert drawn == [f"{suspect.label}?" for suspect in found.suspects[:7]]


def test_sparse_labels_give_the_same_findings(data, selector, found):
    sparse = Dataset(
        data.X,
        sp.csr_array(data.Y),
        sp.csr_array(data.Y_candidates),
        feature_names=data.feature_names,
        label_names=data.label_names,
        name=data.name,
    )
    again = PMLFSMIR(n_features_to_select=5).fit(sparse.X, sparse.candidates)
    other = summarise(again, sparse, "pml-fsmir", converged=True, check_labels=True)
    assert [s.sample for s in other.suspects] == [s.sample for s in found.suspects]
    assert [s.wrong for s in other.suspects] == [s.wrong for s in found.suspects]
    np.testing.assert_allclose(
        [s.support for s in other.suspects], [s.support for s in found.suspects], atol=1e-10
    )


def test_wrong_candidates_are_counted_over_all(data, found):
    assert found.n_wrong == (data.Y_candidates - data.Y).sum()


@pytest.fixture
def settled(data):
    """What the default method finds when it chooses the size itself, and halves of the rows are asked."""
    selector = EvidenceSelector("auto").fit(data.X, data.candidates)
    stability = selection_stability(selector, data.X, data.candidates, n_resamples=4)
    chance = EvidenceTest(0.05, 10.0, np.zeros(19))
    return summarise(
        selector,
        data,
        "evidence",
        converged=True,
        chance=chance,
        stability=stability,
        subject=Subject.of_dataset(data),
    )


def test_steady_features_are_told_with_what_chance_explains(settled):
    n_features = 400
    runs = np.zeros((4, n_features), dtype=bool)
    runs[:, :2] = True
    runs[:2, 2] = runs[2:, 3] = True

    def told(twins=()):
        group = np.arange(n_features)
        group[list(twins)] = min(twins, default=0)
        stability = SelectionStability(settled.stability.feature_names, runs[0], runs, group)
        return replace(settled, stability=stability, n_features=n_features)

    # Two are chosen on all halves, two on half of them; 3^2 / (0.2 * 400) = 0.1125 is at most 0.2.
    expected = (
        "2 features are chosen by 60% of the halves or more; chance alone explains 0.2 of them on average"
    )
    assert told().stability_note == f"{expected} at most."
    first = settled.selected[0]
    twin = next(feature for feature in settled.features if not feature.selected)
    found = told([first.column, twin.column]).as_dict()["stability"]["features"]
    assert found[0]["substitutes"] == [twin.name]
    assert all(feature["substitutes"] == [] for feature in found[1:])


def test_what_is_shown_of_a_feature_is_its_evidence_where_there_is_any(settled, found):
    assert settled.measure_names == ("evidence", "criterion")
    assert found.measure_names == ("score",)
    assert settled.features[0].as_dict().keys() == {
        "rank",
        "name",
        "score",
        "evidence",
        "criterion",
        "selected",
    }


def test_how_many_are_enough_is_said_in_a_sentence(settled):
    sizes = np.array([1, 2, 5])
    flat = replace(settled, curve=SizeCurve(sizes, np.array([[0.5, 0.8, 0.85], [0.5, 0.8, 0.77]])))
    assert flat.size_note == (
        "The best precision, 0.810, is that of 5 of 5 features; 2 are within the spread of the folds: 0.800."
    )
    steep = replace(settled, curve=SizeCurve(sizes, np.array([[0.5, 0.8, 0.9], [0.5, 0.8, 0.9]])))
    assert steep.size_note == (
        "The best precision, 0.900, is that of 5 of 5 features; no smaller number comes within the spread of the folds."
    )


def test_features_without_evidence_have_no_bar(settled):
    faint = replace(settled.features[0], measures={"evidence": 3e-6, "criterion": 3e-6})
    assert settled.share(faint) == 0
    assert max(map(settled.share, settled.features)) == 1
