"""Displays draw the numbers they are given."""

import subprocess
import sys
from types import SimpleNamespace

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose

from labelsieve import (
    RFS,
    ConvergenceDisplay,
    EvidenceSelector,
    LabelIssuesDisplay,
    RankingDisplay,
    SizeCurve,
    SizeCurveDisplay,
    StabilityDisplay,
    SumF,
    find_label_issues,
    selection_stability,
)
from labelsieve._figures import ACCENT
from labelsieve.datasets import load_digits_attributes, make_pml
from labelsieve.inspection.stability import SelectionStability

X, Y = make_pml(n_samples=120, n_features=12, n_informative=4, shuffle=False, random_state=0)
CURVE = SizeCurve(np.array([1, 2, 5]), np.array([[0.5, 0.8, 0.7], [0.5, 0.6, 0.7]]))


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    plt.close("all")


def names_of(display):
    return [tick.get_text() for tick in display.ax_.get_yticklabels()]


def widths(bars):
    return [bar.get_width() for bar in bars]


def is_accented(bar):
    return bar.get_facecolor()[:3] == matplotlib.colors.to_rgb(ACCENT)


@pytest.mark.parametrize(
    "make",
    [
        lambda: RankingDisplay(SumF(3).fit(X, Y)),
        lambda: StabilityDisplay(selection_stability(SumF(3), X, Y, n_resamples=2)),
        lambda: SizeCurveDisplay(CURVE),
        lambda: LabelIssuesDisplay(find_label_issues(X, Y)),
        lambda: ConvergenceDisplay(RFS(3).fit(X, Y)),
    ],
)
def test_every_display_draws_on_the_axes_it_gets(make):
    display = make()
    figure, axes = plt.subplots()
    assert display.plot(axes) is display
    assert display.ax_ is axes
    assert display.figure_ is figure
    assert display.plot().figure_ is not figure
    display.figure_.draw_without_rendering()


def test_without_matplotlib_an_error_names_the_extra():
    program = """
import sys
sys.modules["matplotlib"] = None
import labelsieve
try:
    labelsieve.SizeCurveDisplay(None).plot()
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "-m pip install matplotlib" in done.stdout


def test_a_ranking_shows_scores_in_order():
    selector = SumF(3).fit(X, Y)
    display = RankingDisplay(selector).plot(n_shown=5, height=0.3)
    order = np.argsort(selector.ranking_)[:5]
    assert names_of(display) == [f"x{column}" for column in order]
    assert_allclose(widths(display.bars_), selector.scores_[order])
    assert [is_accented(bar) for bar in display.bars_] == [True] * 3 + [False] * 2
    assert display.ax_.get_xlabel() == "score"
    assert display.bars_[0].get_height() == 0.3


def test_a_ranking_shows_evidence_where_scores_are_places():
    selector = EvidenceSelector(3).fit(X, Y)
    names = [f"column {j}" for j in range(12)]
    display = RankingDisplay(selector, feature_names=names).plot()
    order = np.argsort(selector.ranking_)
    assert names_of(display) == [names[column] for column in order]
    assert_allclose(widths(display.bars_), selector.evidence_[order])
    assert display.ax_.get_xlabel() == "evidence"


def test_names_are_drawn_unchanged():
    names = ["cost in $ or $", "two\nlines", "long " * 20]
    selector = SumF(1).fit(X[:, :3], Y)
    selector.ranking_ = np.array([1, 2, 3])
    display = RankingDisplay(selector, feature_names=names).plot()
    assert names_of(display)[:2] == ["cost in $ or $", "two lines"]
    assert len(names_of(display)[2]) == 30
    assert not any(tick.get_parse_math() for tick in display.ax_.get_yticklabels())
    display.figure_.draw_without_rendering()


def test_stability_shows_frequencies_and_intervals():
    found = selection_stability(SumF(3), X, Y, n_resamples=6)
    display = StabilityDisplay(found).plot()
    by_name = {name: place for place, name in enumerate(found.feature_names)}
    shown = [by_name[name] for name in names_of(display)]
    assert_allclose(widths(display.bars_), found.to_frame()["frequency"])
    assert_allclose(widths(display.bars_), found.frequency[shown])
    assert [is_accented(bar) for bar in display.bars_] == list(found.selected[shown])
    (segments,) = (lines.get_segments() for lines in display.errorbar_.lines[2])
    assert_allclose([segment[:, 0] for segment in segments], found.interval[shown], atol=1e-12)


@pytest.mark.parametrize(("group", "expected"), [([0, 0, 1], [[0.75, 0.75], [0, 1]]), ([0, 1, 2], None)])
def test_stability_marks_substitutes_where_they_help(group, expected):
    runs = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=bool)
    names = np.array(["a", "b", "c"], dtype=object)
    found = SelectionStability(names, np.array([True, False, False]), runs, group=np.array(group))
    display = StabilityDisplay(found).plot()
    assert names_of(display) == ["a", "b", "c"]
    assert widths(display.bars_) == [0.5, 0.25, 0.25]
    if expected is None:
        assert display.ticks_ is None
    else:
        assert_allclose(display.ticks_.get_data(), expected)


def test_a_size_curve_shows_mean_and_spread():
    # Means 0.5, 0.7, 0.7 and deviations 0, 0.1, 0 over two folds; of equally good sizes the smaller is best.
    display = SizeCurveDisplay(CURVE).plot(marker="x")
    assert_allclose(display.line_.get_data(), [[1, 2, 5], [0.5, 0.7, 0.7]])
    assert display.line_.get_marker() == "x"
    (outline,) = (path.vertices for path in display.fill_between_.get_paths())
    corners = {(x, round(y, 9)) for x, y in outline}
    assert corners == {(1, 0.5), (2, 0.6), (2, 0.8), (5, 0.7)}
    assert "Best with 2" in display.ax_.get_title()


def test_label_issues_show_candidates_and_flagged_ones():
    digits = load_digits_attributes()
    X, Y, candidates = digits.X[:300], digits.Y[:300], digits.candidates[:300]
    issues = find_label_issues(X, candidates, label_names=digits.label_names)
    display = LabelIssuesDisplay(issues).plot()
    shown = issues.label_summary().set_index("label").loc[names_of(display)]
    assert len(shown) == len(digits.label_names)
    assert widths(display.bars_) == shown["n_candidates"].tolist()
    assert widths(display.flagged_bars_) == sorted(shown["n_flagged"], reverse=True)
    assert display.ticks_ is None

    rows, labels = (places[:60] for places in np.nonzero(candidates))
    issues = find_label_issues(X, candidates, checked=(rows, labels, Y[rows, labels]))
    display = LabelIssuesDisplay(issues).plot(n_shown=4)
    shown = issues.label_summary().set_index("label").loc[names_of(display)]
    assert len(shown) == 4
    assert_allclose(display.ticks_.get_xdata(), shown["share_wrong"] * shown["n_candidates"])


def test_convergence_shows_the_history_of_several_fits():
    selector = RFS(3).fit(X, Y)
    display = ConvergenceDisplay(selector).plot()
    assert_allclose(display.line_.get_ydata(), selector.objective_history_)
    assert_allclose(display.line_.get_xdata(), np.arange(selector.n_iter_ + 1))
    other = ConvergenceDisplay(RFS(3, alpha=2).fit(X, Y), name="alpha 2").plot(display.ax_)
    assert other.line_.get_color() != display.line_.get_color()
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["RFS", "alpha 2"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: RankingDisplay(SumF(1).fit(X, Y), feature_names=["only one"]).plot(),
        lambda: RankingDisplay(SumF(1).fit(X, Y)).plot(n_shown=0),
        lambda: RankingDisplay(SumF()),
        lambda: ConvergenceDisplay(SimpleNamespace()),
    ],
)
def test_bad_input_is_rejected(make):
    with pytest.raises(ValueError):  # NotFittedError is one too
        make()
