"""Tests of the notebook views of objects, and of the tour notebook."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
import sklearn

import labelsieve
from labelsieve import EvidenceSelector, SumF, draw_candidates, find_label_issues
from labelsieve.datasets import load_digits_attributes, make_pml
from labelsieve.io import Dataset

TOUR = Path(__file__).parents[2] / "docs" / "notebooks" / "tour.ipynb"


def test_a_fitted_selector_shows_its_features_below_the_diagram(planted):
    pd = pytest.importorskip("pandas")
    selector = SumF(2)
    assert "features selected" not in selector._repr_html_()
    selector.fit(pd.DataFrame(planted.X, columns=planted.feature_names), planted.candidates)
    for shown in (selector._repr_html_(), selector._repr_mimebundle_()["text/html"]):
        diagram, _, findings = shown.partition("2 of 5 features selected")
        assert "sk-container" in diagram
        best, second = np.argsort(selector.ranking_)[:2]
        first_row = rf"<td>1</td><td>{re.escape(planted.feature_names[best])}</td><td>([\d.]+)</td>"
        shown_score = re.search(first_row, findings)[1]
        assert float(shown_score) == pytest.approx(selector.scores_[best], rel=1e-3)
        assert planted.feature_names[second] in findings
        assert findings.count("<tr>") == 3


def test_names_are_escaped_and_long_lists_are_cut():
    pd = pytest.importorskip("pandas")
    X, Y = make_pml(n_features=30, random_state=0)
    frame = pd.DataFrame(X, columns=[f"<script>{j}" for j in range(30)])
    shown = EvidenceSelector(25).fit(frame, Y)._findings_html()
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    assert "<th>evidence</th>" in shown
    assert shown.count("<tr>") == 11
    assert "and 15 more" in shown


def test_no_html_if_scikit_learn_shows_text():
    X, Y = make_pml(random_state=0)
    selector = SumF(2).fit(X, Y)
    with sklearn.config_context(display="text"):
        assert not hasattr(selector, "_repr_html_")
        assert list(selector._repr_mimebundle_()) == ["text/plain"]


def test_a_dataset_shows_its_labels_by_frequency(planted):
    shown = planted._repr_html_()
    assert "60 samples x 5 features" in shown
    assert "<i>" not in shown
    for name, label in (("label_a", 0), ("label_&lt;i&gt;b", 1)):
        true, candidates = planted.Y[:, label].sum(), planted.Y_candidates[:, label].sum()
        assert f"<tr><td>{name}</td><td>{true}</td><td>{candidates}</td></tr>" in shown
    empty = (planted.Y_candidates.sum(axis=1) == 0).sum()
    assert f"{empty} rows without a label" in shown


def test_a_dataset_with_many_labels_shows_the_frequent_ones():
    Y = np.tril(np.ones((15, 15)))  # label j has 15 - j rows
    shown = Dataset(np.eye(15), Y)._repr_html_()
    assert "<tr><td>label9</td><td>6</td></tr>" in shown
    assert "label10" not in shown
    assert "and 5 rarer labels; 0 rows without a label" in shown


def test_a_lazy_dataset_is_shown_without_reading_rows():
    da = pytest.importorskip("dask.array")

    def fail(block):
        raise AssertionError("rows were read")

    X = da.zeros((6, 2), chunks=(3, 2)).map_blocks(fail, dtype=float, meta=np.zeros((0, 0)))
    Y = da.ones((6, 2), chunks=(3, 2)).map_blocks(fail, dtype=float, meta=np.zeros((0, 0)))
    shown = Dataset(X, Y_candidates=Y)._repr_html_()
    assert "2 blocks of rows" in shown
    assert "label1" in shown


def test_label_issues_show_the_least_supported_labels_and_their_limits():
    digits = load_digits_attributes()
    X, Y, candidates = digits.X[:300], digits.Y[:300], digits.candidates[:300]
    ids = [f"<{i}>" for i in range(300)]
    issues = find_label_issues(X, candidates, row_ids=ids, label_names=digits.label_names)
    shown = issues._repr_html_()
    for row, label in zip(issues.rows[:10], issues.labels[:10], strict=True):
        assert f"<td>&lt;{row}&gt;</td><td>{digits.label_names[label]}</td>" in shown
    assert shown.count("<tr>") == 11
    assert "not a probability" in shown
    rows, labels = draw_candidates(candidates, 60)
    issues = find_label_issues(X, candidates, checked=(rows, labels, Y[rows, labels]))
    shown = issues._repr_html_()
    place = issues.unchecked[0]
    probability = issues.probability[issues.rows[place], issues.labels[place]]
    assert f"<td>{probability:.2f}</td>" in shown
    assert "60 reviewed" in shown


def test_the_tour_runs_and_shows_every_display(monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    tour = nbformat.read(TOUR, as_version=4)
    nbformat.validate(tour)
    assert not any(cell.get("outputs") for cell in tour.cells)
    monkeypatch.delenv("MPLBACKEND", raising=False)  # the kernel has its own
    monkeypatch.setenv("PYTHONPATH", str(Path(labelsieve.__file__).parents[1]), prepend=os.pathsep)
    nbclient.NotebookClient(tour, timeout=60, kernel_name="python3").execute()
    kinds = {
        cell.source: {kind for output in cell.outputs for kind in output.get("data", {})}
        for cell in tour.cells
        if cell.cell_type == "code"
    }
    names = (
        "RankingDisplay",
        "StabilityDisplay",
        "SizeCurveDisplay",
        "LabelIssuesDisplay",
        "ConvergenceDisplay",
    )
    for name in names:
        assert any(f"{name}(" in text and "image/png" in shown for text, shown in kinds.items()), name
    for last_line in ("animals", "selector", "issues", "found"):
        assert any(
            text.splitlines()[-1] == last_line and "text/html" in shown for text, shown in kinds.items()
        ), last_line
    assert not any(
        output.output_type == "stream" for cell in tour.cells for output in cell.get("outputs", [])
    )
