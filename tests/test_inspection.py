import csv
import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from conftest import run
from labelsieve import PMLFSMIR, EvidenceSelector, LabelSupport, selection_stability
from labelsieve.datasets import Dataset, write
from labelsieve.inspection.figures import (
    draw_convergence,
    draw_selected_pixels,
    draw_size_curve,
    draw_stability,
    draw_suspects,
)
from labelsieve.inspection.page import render_page, write_page
from labelsieve.inspection.selection import summarise
from labelsieve.size_curve import SizeCurve
from labelsieve.stability import SelectionStability

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
def found(data, selector):
    return summarise(selector, data, "pml-fsmir", converged=True)


class Strict(HTMLParser):
    """Checks that elements nest, and collects text and addresses."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.addresses = [], "", []

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)
        self.addresses += [
            value for name, value in attributes if name in ("src", "href", "xlink:href", "style")
        ]

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data


def test_names_from_data_are_text_and_nothing_else(found):
    page = Strict()
    page.feed(render_page(found))
    assert page.open == []
    assert "script" not in page.open
    for name in (*HOSTILE, "</td>", "<i>data"):
        assert name in page.text


def test_the_page_needs_no_other_file(found):
    html = render_page(found)
    page = Strict()
    page.feed(html)
    assert not any("//" in address for address in page.addresses)
    assert "<script" not in html
    assert "@import" not in html


def test_the_page_may_load_and_run_nothing(found):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', render_page(found))[1]
    assert policy.startswith("default-src 'none';")
    assert "script-src 'none'" in policy
    assert "base-uri 'none'; form-action 'none'" in policy


def test_escape_sequences_are_shown_not_sent(found):
    """Names of data cannot hold them, the name of a file can."""
    html = render_page(replace(found, data="\x1b[31mred\u202e"))
    assert r"\x1b[31mred\u202e" in html
    assert not set("\x1b\u202e") & set(html)


@pytest.mark.usefixtures("plain_terminal")
def test_a_ranking_in_csv_takes_no_orders_from_names(capsys):
    rng = np.random.default_rng(0)
    X = rng.random((20, 3))
    names = ("=1+1", "@cmd", "a,b")
    write(Dataset(X, X[:, :1] > 0.5, feature_names=names, label_names=("label",)), Path("odd.csv"))
    code, out, err = run(capsys, "select", "odd.csv", "--format", "csv", "--all")
    assert code == 0, err
    assert {row["name"] for row in csv.DictReader(io.StringIO(out))} == {"'=1+1", "'@cmd", "a,b"}


def test_the_page_is_the_same_for_the_same_findings(found):
    assert render_page(found) == render_page(found)


def test_figures_take_the_colour_of_the_page_and_leave_its_styles_alone(found):
    svg = draw_convergence(found).svg()
    assert svg.startswith("<svg")
    assert "currentColor" in svg
    assert "<style" not in svg
    assert not re.search(r'^<svg[^>]*(?:width|height)="', svg)


def test_a_method_without_iterations_has_a_page_too(found):
    suspects = tuple(replace(suspect, wrong=None) for suspect in found.suspects)
    plain = replace(found, objective=None, n_iter=None, suspects=suspects, truth=None)
    html = render_page(plain)
    assert "iterations" not in html
    assert "<svg" not in html
    assert "The truth is known" not in html


def test_the_text_counts_what_the_table_lists(found):
    html = render_page(found)
    listed = re.findall(r"<td>(wrong|right)</td>", html)
    assert f"{listed.count('wrong')} of these {len(listed)} are wrong" in html


def test_features_that_only_column_order_selected_are_told(found):

    features = tuple(replace(feature, score=1.0) for feature in found.features)
    assert "column order" not in render_page(replace(found, features=features))
    features = (*features[:3], *(replace(feature, score=0.0) for feature in features[3:]))
    assert "2 of the 5 selected features have the score 0" in render_page(replace(found, features=features))


def test_long_rankings_end_with_how_many_more():
    rng = np.random.default_rng(0)
    X = rng.random((30, 150))
    wide = Dataset(X, X[:, :2] > 0.5, name="wide")
    selector = PMLFSMIR(n_features_to_select=130).fit(wide.X, wide.candidates)
    html = render_page(summarise(selector, wide, "pml-fsmir", converged=True))
    assert "And 30 more." in html


def test_the_page_is_written_whole_or_not_at_all(found, tmp_path, monkeypatch):
    target = tmp_path / "page.html"
    write_page(found, target)
    first = target.read_bytes()
    monkeypatch.setattr("os.replace", lambda *args: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        write_page(found, target, title="other")
    assert target.read_bytes() == first
    assert list(tmp_path.iterdir()) == [target]


def test_what_stands_on_white_is_dark_on_a_dark_page_too(found):
    """What has no colour of its own, as black has none in SVG, takes that of the page."""
    images = np.ones((40, 2, 3))
    ranks = draw_selected_pixels(found, images[0]).svg()
    assert re.findall(r"<text[^>]*#111111[^>]*>(\d)<", ranks) == ["1", "2", "3", "4", "5"]
    pixels = re.findall(r"<path[^>]*stroke:#fff[^>]*>", draw_suspects(found.suspects[:1], images).svg())
    assert ["fill:#" in pixel for pixel in pixels] == [True] * 6


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
    other = summarise(again, sparse, "pml-fsmir", converged=True)
    assert [s.sample for s in other.suspects] == [s.sample for s in found.suspects]
    assert [s.wrong for s in other.suspects] == [s.wrong for s in found.suspects]
    np.testing.assert_allclose(
        [s.support for s in other.suspects], [s.support for s in found.suspects], atol=1e-10
    )


def test_the_truth_is_judged_over_all_candidates(data, found):
    from sklearn.metrics import roc_auc_score

    candidate = data.Y_candidates == 1
    assert found.truth.n_wrong == (data.Y_candidates - data.Y).sum()
    support = LabelSupport().fit(data.X, data.Y_candidates).support_
    assert found.truth.support_auc == pytest.approx(roc_auc_score(data.Y[candidate], support[candidate]))


@pytest.fixture
def settled(data):
    """What the default method finds when it chooses the size itself, and halves of the rows are asked."""
    selector = EvidenceSelector("auto").fit(data.X, data.candidates)
    stability = selection_stability(selector, data.X, data.candidates, n_resamples=4)
    return summarise(selector, data, "evidence", converged=True, p_value=0.3, stability=stability)


def test_the_page_shows_what_was_asked_about_size_and_stability(settled):
    page = Strict()
    page.feed(render_page(settled))
    assert page.open == []
    for said in (
        "No better than chance",
        "How many are enough?",
        "How sure is that?",
        "evidence",
        "criterion",
    ):
        assert said in page.text
    assert "No better than chance" not in render_page(replace(settled, p_value=0.05))


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
    assert expected in render_page(told())
    first = settled.selected[0]
    twin = next(feature for feature in settled.features if not feature.selected)
    found = told([first.column, twin.column]).as_dict()["stability"]["features"]
    assert found[0]["substitutes"] == [twin.name]
    assert all(feature["substitutes"] == [] for feature in found[1:])


def test_figures_say_in_words_what_they_show(settled):
    curve = draw_size_curve(settled)
    assert f"{settled.curve.mean.max():.3f} at {settled.curve.best}, the most" in curve.description
    bars = draw_stability(settled)
    assert [label.get_text() for label in bars.figure.axes[0].get_yticklabels()] == [
        feature.name for feature in settled.selected
    ]
    widths = [bar.get_width() for bar in bars.figure.axes[0].patches]
    np.testing.assert_allclose(widths, settled.stability.frequency[[f.column for f in settled.selected]])


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
