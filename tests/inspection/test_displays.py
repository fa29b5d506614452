"""Displays draw the numbers they are given."""

import subprocess
import sys

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
    choose_size,
    find_label_issues,
    selection_stability,
)
from labelsieve._figures import ACCENT
from labelsieve.datasets import load_digits_attributes, make_pml
from labelsieve.inspection.stability import SelectionStability


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def problem():
    return make_pml(n_samples=120, n_features=12, n_informative=4, shuffle=False, random_state=0)


def names_of(display):
    return [tick.get_text() for tick in display.ax_.get_yticklabels()]


def widths(bars):
    return [bar.get_width() for bar in bars]


def is_accented(bar):
    return bar.get_facecolor()[:3] == matplotlib.colors.to_rgb(ACCENT)


RANKING = {"ranking": [2, 1, 3], "worth": [5.0, 7.0, 1.0], "n_selected": 2}
STABILITY = {"frequency": [0.5, 1.0], "interval": [[0.2, 0.8], [0.7, 1.0]], "selected": [False, True]}
SIZES = {"sizes": [1, 2, 5], "scores": [[0.5, 0.8, 0.7], [0.5, 0.6, 0.7]]}
ISSUES = {"label_names": ["a", "b"], "n_candidates": [10, 20], "n_flagged": [1, 4]}
EVERY = [
    RankingDisplay(**RANKING),
    StabilityDisplay(**STABILITY),
    SizeCurveDisplay(**SIZES),
    LabelIssuesDisplay(**ISSUES),
    ConvergenceDisplay(objective=[3.0, 2.0, 1.5]),
]


@pytest.mark.parametrize("display", EVERY, ids=lambda display: type(display).__name__)
def test_every_display_draws_on_the_axes_it_gets(display):
    figure, axes = plt.subplots()
    assert display.plot(axes) is display
    assert display.ax_ is axes
    assert display.figure_ is figure
    assert display.plot().figure_ is not figure
    display.figure_.draw_without_rendering()


def test_without_matplotlib_every_display_says_so_in_one_sentence():
    displays = {
        "RankingDisplay": RANKING,
        "StabilityDisplay": STABILITY,
        "SizeCurveDisplay": SIZES,
        "LabelIssuesDisplay": ISSUES,
        "ConvergenceDisplay": {"objective": [1.0]},
    }
    program = f"""
import sys
sys.modules["matplotlib"] = None
import labelsieve
for name, numbers in {displays!r}.items():
    try:
        getattr(labelsieve, name)(**numbers).plot()
    except ImportError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    remedy = "needs matplotlib, which is not installed; pip install 'labelsieve[plot]'."
    assert done.stdout.splitlines() == [f"{name}.plot {remedy}" for name in displays]


def test_a_ranking_shows_scores_in_order(problem):
    X, Y = problem
    selector = SumF(3).fit(X, Y)
    display = RankingDisplay.from_estimator(selector, n_shown=5)
    order = np.argsort(selector.ranking_)[:5]
    assert names_of(display) == [f"x{column}" for column in order]
    assert_allclose(widths(display.bars_), selector.scores_[order])
    assert [is_accented(bar) for bar in display.bars_] == [True] * 3 + [False] * 2
    assert display.ax_.get_xlabel() == "score"


def test_a_ranking_shows_evidence_where_scores_are_places(problem):
    X, Y = problem
    selector = EvidenceSelector(3).fit(X, Y)
    names = [f"column {j}" for j in range(12)]
    display = RankingDisplay.from_estimator(selector, feature_names=names)
    order = np.argsort(selector.ranking_)
    assert names_of(display) == [names[column] for column in order]
    assert_allclose(widths(display.bars_), selector.evidence_[order])
    assert display.ax_.get_xlabel() == "evidence"


def test_names_are_drawn_as_they_are():
    names = ["cost in $ or $", "two\nlines", "long " * 20]
    display = RankingDisplay(ranking=[1, 2, 3], worth=[3, 2, 1], n_selected=1, feature_names=names).plot()
    assert names_of(display)[:2] == ["cost in $ or $", "two lines"]
    assert len(names_of(display)[2]) == 30
    assert not any(tick.get_parse_math() for tick in display.ax_.get_yticklabels())
    display.figure_.draw_without_rendering()


def test_stability_shows_frequencies_and_intervals(problem):
    X, Y = problem
    found = selection_stability(SumF(3), X, Y, n_resamples=6)
    display = StabilityDisplay.from_stability(found)
    table = found.to_frame()
    assert_allclose(widths(display.bars_), table["frequency"])
    by_name = {name: place for place, name in enumerate(found.feature_names)}
    shown = [by_name[name] for name in names_of(display)]
    assert_allclose(found.frequency[shown], table["frequency"])
    assert [is_accented(bar) for bar in display.bars_] == list(found.selected[shown])
    (segments,) = (lines.get_segments() for lines in display.errorbar_.lines[2])
    assert_allclose([segment[:, 0] for segment in segments], found.interval[shown], atol=1e-12)
    assert "6 halves" in display.ax_.get_xlabel()
    again = StabilityDisplay.from_estimator(SumF(3), X, Y, n_resamples=6)
    assert_allclose(widths(again.bars_), widths(display.bars_))


def test_stability_marks_substitutes_where_they_help():
    # The first two stand for one another: one of them is chosen on three of four halves, the third on the fourth.
    runs = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=bool)
    names = np.array(["a", "b", "c"], dtype=object)
    found = SelectionStability(names, np.array([True, False, False]), runs, group=np.array([0, 0, 1]))
    display = StabilityDisplay.from_stability(found)
    assert names_of(display) == ["a", "b", "c"]
    assert widths(display.bars_) == [0.5, 0.25, 0.25]
    assert_allclose(display.ticks_.get_data(), [[0.75, 0.75], [0, 1]])
    assert "substitute" in display.ax_.get_xlabel()
    assert EVERY[1].plot().ticks_ is None


def test_a_size_curve_shows_mean_and_spread():
    # Means 0.5, 0.7, 0.7 and deviations 0, 0.1, 0 over two folds; of equally good sizes the smaller is best.
    display = SizeCurveDisplay(**SIZES).plot()
    assert_allclose(display.line_.get_data(), [[1, 2, 5], [0.5, 0.7, 0.7]])
    (outline,) = (path.vertices for path in display.fill_between_.get_paths())
    corners = {(x, round(y, 9)) for x, y in outline}
    assert corners == {(1, 0.5), (2, 0.6), (2, 0.8), (5, 0.7)}
    assert "Best with 2" in display.ax_.get_title()


def test_a_size_curve_of_a_selector_is_that_of_choose_size(problem):
    X, Y = problem
    curve = choose_size(SumF(), X, Y, sizes=[1, 4, 12], cv=3)
    display = SizeCurveDisplay.from_estimator(SumF(), X, Y, sizes=[1, 4, 12], cv=3)
    assert_allclose(display.line_.get_data(), [curve.sizes, curve.mean])
    assert_allclose(SizeCurveDisplay.from_curve(curve).line_.get_ydata(), curve.mean)
    assert isinstance(display.curve, SizeCurve)


def test_label_issues_show_candidates_and_those_to_look_at():
    digits = load_digits_attributes()
    X, Y, candidates = digits.X[:300], digits.Y[:300], digits.candidates[:300]
    issues = find_label_issues(X, candidates, label_names=digits.label_names)
    display = LabelIssuesDisplay.from_issues(issues)
    by_label = {doubts.label: doubts for doubts in issues.by_label()}
    shown = [by_label[name] for name in names_of(display)]
    assert len(shown) == len(digits.label_names)
    assert widths(display.bars_) == [doubts.n_candidates for doubts in shown]
    assert widths(display.flagged_bars_) == sorted((doubts.n_flagged for doubts in shown), reverse=True)
    assert display.ticks_ is None
    assert "no count of errors" in display.ax_.get_xlabel()

    rows, labels = (places[:60] for places in np.nonzero(candidates))
    issues = find_label_issues(X, candidates, checked=(rows, labels, Y[rows, labels]))
    display = LabelIssuesDisplay.from_issues(issues, n_shown=4)
    by_label = {doubts.label: doubts for doubts in issues.by_label()}
    shown = [by_label[name] for name in names_of(display)]
    assert len(shown) == 4
    wrong = [doubts.share_wrong * doubts.n_candidates for doubts in shown]
    assert_allclose(display.ticks_.get_xdata(), wrong)


def test_convergence_shows_the_history_and_several_fits_beside_one_another(problem):
    X, Y = problem
    selector = RFS(3).fit(X, Y)
    display = ConvergenceDisplay.from_estimator(selector)
    assert_allclose(display.line_.get_ydata(), selector.objective_history_)
    assert_allclose(display.line_.get_xdata(), np.arange(selector.n_iter_ + 1))
    other = ConvergenceDisplay.from_estimator(RFS(3, alpha=2).fit(X, Y), name="alpha 2", ax=display.ax_)
    assert other.line_.get_color() != display.line_.get_color()
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["RFS", "alpha 2"]


def test_options_of_matplotlib_pass_through():
    assert ConvergenceDisplay(objective=[2.0, 1.0]).plot(color="green").line_.get_color() == "green"
    assert RankingDisplay(**RANKING).plot(height=0.3).bars_[0].get_height() == 0.3
    assert SizeCurveDisplay(**SIZES).plot(marker="x").line_.get_marker() == "x"


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: RankingDisplay(**{**RANKING, "worth": [1]}), "worth must have 3 entries. Got 1"),
        (lambda: RankingDisplay(**RANKING).plot(n_shown=0), "n_shown must be a whole number of at least 1"),
        (lambda: StabilityDisplay(**{**STABILITY, "selected": [True]}), "selected must have 2 entries"),
        (lambda: SizeCurveDisplay(sizes=[1, 2], scores=[0.5, 0.6]), "scores must have a row for every fold"),
        (lambda: LabelIssuesDisplay(**ISSUES, share_wrong=[0.5]), "share_wrong must have 2 entries"),
        (
            lambda: ConvergenceDisplay.from_estimator(SumF()),
            "selector must have objective_history_. Got SumF",
        ),
        (lambda: RankingDisplay.from_estimator(SumF()), "not fitted yet"),
    ],
)
def test_bad_numbers_are_refused_in_one_sentence(make, match):
    with pytest.raises(ValueError, match=match):  # NotFittedError is one too
        make()
