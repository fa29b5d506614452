"""Displays of findings in the manner of scikit-learn: ``plot``, ``ax_``, ``figure_``. Drawing needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from labelsieve._base import RankedFeatures, check_count
from labelsieve._figures import ACCENT, FAINT, INK
from labelsieve._text import install_command, short
from labelsieve.inspection.label_issues import LabelIssues
from labelsieve.inspection.stability import STABLE, SelectionStability
from labelsieve.methods._evidence.choice import SizeCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D

_LONGEST_NAME = 30


class _Display:
    """Base of the displays: draws on given or new axes."""

    ax_: Axes
    figure_: Figure | SubFigure

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : Axes or None, default=None
            Axes to draw on; None makes a figure.
        **kwargs
            Options of matplotlib's ``plot``.
        """
        self._draw(self._open(ax, 4), kwargs)
        return self

    def _draw(self, ax: Axes, style: dict[str, Any]) -> None:
        raise NotImplementedError

    def _open(self, ax: Axes | None, height: float) -> Axes:
        """Set ``ax_`` and ``figure_``; without axes, make a figure."""
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise ImportError(
                f"{type(self).__name__}.plot needs matplotlib, which is not installed; "
                f"install it: {install_command('matplotlib')}."
            ) from None
        if ax is None:
            _, ax = plt.subplots(figsize=(6, height), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax


class _BarDisplay(_Display):
    """Base of the bar charts."""

    def plot(self, ax: Axes | None = None, *, n_shown: int = 20, **kwargs: Any) -> Self:
        """Draw the first bars, the first on top.

        Parameters
        ----------
        ax : Axes or None, default=None
            Axes to draw on; None makes a figure.
        n_shown : int, default=20
            Largest number of bars.
        **kwargs
            Options of matplotlib's ``barh`` for the coloured bars.
        """
        check_count(n_shown, "n_shown", minimum=1)
        names = [short(name, _LONGEST_NAME) for name in self._names()[:n_shown]]
        ax, rows = self._open(ax, 1.2 + 0.22 * len(names)), np.arange(len(names))
        # Names come from data: a dollar sign does not start a formula.
        ax.set_yticks(rows, names, parse_math=False)
        ax.set_ylim(len(names) - 0.4, -0.6)
        self._draw_bars(ax, rows, {"height": 0.7, **kwargs})
        return self

    def _names(self) -> Sequence[object]:
        """Return the names of all bars, in order."""
        raise NotImplementedError

    def _draw_bars(self, ax: Axes, rows: np.ndarray, style: dict[str, Any]) -> None:
        """Draw the first bars, one at each of the positions `rows`."""
        raise NotImplementedError


class RankingDisplay(_BarDisplay):
    """Bar chart of the best features, selected ones in colour.

    Parameters
    ----------
    selector : BaseSelector
        A fitted selector. The bars show its ``evidence_`` if it has any, else its ``scores_``.
    feature_names : sequence of str or None, default=None
        Names of the features; None takes those of the fit.

    Attributes
    ----------
    ax_ : Axes
        The axes.
    figure_ : Figure
        The figure that contains the axes.
    bars_ : BarContainer
        The bars, best feature first.

    Examples
    --------
    >>> from labelsieve import RankingDisplay, SumF
    >>> from labelsieve.datasets import make_pml
    >>> X, Y = make_pml(shuffle=False, random_state=0)
    >>> display = RankingDisplay(SumF(5).fit(X, Y)).plot(n_shown=10)
    >>> sorted(tick.get_text() for tick in display.ax_.get_yticklabels()[:5])  # the planted ones
    ['x0', 'x1', 'x2', 'x3', 'x4']
    """

    def __init__(self, selector: Any, *, feature_names: Sequence[str] | None = None) -> None:
        check_is_fitted(selector, "ranking_")
        self.features = RankedFeatures.of(selector, feature_names)

    def _names(self) -> Sequence[object]:
        return self.features.names

    def _draw_bars(self, ax: Axes, rows: np.ndarray, style: dict[str, Any]) -> None:
        features = self.features
        colors = [ACCENT if place < features.n_selected else FAINT for place in rows]
        self.bars_ = ax.barh(rows, features.worth[rows], **{"color": colors, **style})
        title = f"{features.n_selected} of {len(features.names)} features selected"
        ax.set(xlabel=features.measure, title=title)


class StabilityDisplay(_BarDisplay):
    """Bar chart of selection frequencies with intervals; features selected on all rows in colour.

    A thick tick marks how often the feature or one of its substitutes is selected, if that is more often. The dotted
    line at 60 % is where features count as stable.

    Parameters
    ----------
    stability : SelectionStability
        The result of `selection_stability`, or of an audit.
    feature_names : sequence of str or None, default=None
        Names of the features; None takes those of the result.

    Attributes
    ----------
    ax_ : Axes
        The axes.
    figure_ : Figure
        The figure that contains the axes.
    bars_ : BarContainer
        The bars, most frequent feature first.
    errorbar_ : ErrorbarContainer
        The intervals.
    ticks_ : Line2D or None
        Frequencies with substitutes, if larger.

    Examples
    --------
    >>> from labelsieve import StabilityDisplay, SumF, selection_stability
    >>> from labelsieve.datasets import make_pml
    >>> X, Y = make_pml(n_samples=400, shuffle=False, random_state=0)
    >>> display = StabilityDisplay(selection_stability(SumF(5), X, Y, n_resamples=10)).plot()
    >>> sorted(tick.get_text() for tick in display.ax_.get_yticklabels()[:5])
    ['x0', 'x1', 'x2', 'x3', 'x4']
    """

    def __init__(self, stability: SelectionStability, *, feature_names: Sequence[str] | None = None) -> None:
        self.stability = stability
        # Of equally frequent features, those selected on all rows come first.
        self.order = np.lexsort((~stability.selected, -stability.frequency))
        self.feature_names = list(stability.feature_names if feature_names is None else feature_names)
        if len(self.feature_names) != len(self.order):
            raise ValueError(
                f"feature_names must have {len(self.order)} entries, got {len(self.feature_names)}."
            )

    def _names(self) -> Sequence[object]:
        return [self.feature_names[feature] for feature in self.order]

    def _draw_bars(self, ax: Axes, rows: np.ndarray, style: dict[str, Any]) -> None:
        found, order = self.stability, self.order[rows]
        frequency, (lower, upper) = found.frequency[order], found.interval[order].T
        colors = [ACCENT if chosen else FAINT for chosen in found.selected[order]]
        self.bars_ = ax.barh(rows, frequency, **{"alpha": 0.75, "color": colors, **style})
        # Rounding may put an end on the wrong side of a frequency of 0 or 1.
        reach = np.maximum([frequency - lower, upper - frequency], 0)
        self.errorbar_ = ax.errorbar(frequency, rows, xerr=reach, fmt="none", ecolor=INK, elinewidth=1)
        ax.set_xlim(0, 1.02)
        ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        together = found.group_frequency[order]
        helped = together > frequency
        self.ticks_ = _draw_ticks(ax, together[helped], rows[helped]) if helped.any() else None
        remark = "" if self.ticks_ is None else "; tick: it or a substitute"
        ax.axvline(STABLE, color=INK, linewidth=1, linestyle=":")
        ax.set(
            xlabel=f"selected in {found.n_resamples} subsamples{remark}",
            title="Selection frequency of each feature",
        )


class LabelIssuesDisplay(_BarDisplay):
    """Bar chart of the candidates of each label, flagged ones in colour.

    If enough candidates were reviewed, a tick marks the estimated number of wrong ones. Otherwise the coloured part
    is a review order, not an error count.

    Parameters
    ----------
    issues : LabelIssues
        The result of `find_label_issues`.

    Attributes
    ----------
    ax_ : Axes
        The axes.
    figure_ : Figure
        The figure that contains the axes.
    bars_ : BarContainer
        All candidates of each label, the label with the most flagged ones first.
    flagged_bars_ : BarContainer
        Flagged candidates.
    ticks_ : Line2D or None
        Estimated numbers of wrong candidates.

    Examples
    --------
    >>> from labelsieve import LabelIssuesDisplay, find_label_issues
    >>> from labelsieve.datasets import make_pml
    >>> X, Y = make_pml(random_state=0)
    >>> issues = find_label_issues(X, Y)
    >>> display = LabelIssuesDisplay(issues).plot()
    >>> int(sum(bar.get_width() for bar in display.bars_)) == issues.n_candidates
    True
    """

    def __init__(self, issues: LabelIssues) -> None:
        self.issues = issues
        summary = issues.label_summary()
        self.labels = summary.sort_values("n_flagged", ascending=False, kind="stable")

    def _names(self) -> Sequence[object]:
        return self.labels["label"].tolist()

    def _draw_bars(self, ax: Axes, rows: np.ndarray, style: dict[str, Any]) -> None:
        every, first = self.labels, self.labels.iloc[rows]
        self.bars_ = ax.barh(
            rows, first["n_candidates"], color=FAINT, alpha=0.4, height=0.7, label="candidates"
        )
        self.flagged_bars_ = ax.barh(
            rows, first["n_flagged"], **{"color": ACCENT, "label": "flagged", **style}
        )
        self.ticks_ = None
        if "share_wrong" in first:
            wrong = (first["share_wrong"] * first["n_candidates"]).to_numpy()
            self.ticks_ = _draw_ticks(ax, wrong, rows, "wrong, estimated")
        ax.set_xlabel("candidates" if "share_wrong" in first else "candidates (flagged: not an error count)")
        n_flagged, n_candidates = every["n_flagged"].sum(), every["n_candidates"].sum()
        ax.set_title(f"{n_flagged} of {n_candidates} candidates are flagged", pad=26)
        # Above the chart, because it would cover bars.
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, frameon=False)


class SizeCurveDisplay(_Display):
    """Precision on held-out rows by number of features, with the spread over the folds as a band.

    The solid line marks the best size, the dotted one the smallest size within the spread.

    Parameters
    ----------
    curve : SizeCurve
        The curve: from `choose_size`, a selector's ``size_curve_`` or an audit.

    Attributes
    ----------
    ax_ : Axes
        The axes.
    figure_ : Figure
        The figure that contains the axes.
    line_ : Line2D
        The mean over the folds.
    fill_between_ : PolyCollection
        The band.

    Examples
    --------
    >>> from labelsieve import SizeCurveDisplay, SumF, choose_size
    >>> from labelsieve.datasets import make_pml
    >>> curve = choose_size(SumF(), *make_pml(random_state=0))
    >>> display = SizeCurveDisplay(curve).plot()
    >>> bool((display.line_.get_ydata() == curve.mean).all())
    True
    """

    def __init__(self, curve: SizeCurve) -> None:
        self.curve = curve

    def _draw(self, ax: Axes, style: dict[str, Any]) -> None:
        curve = self.curve
        style = {"color": ACCENT, "linewidth": 2, "marker": "o", "markersize": 4, **style}
        (self.line_,) = ax.plot(curve.sizes, curve.mean, **style)
        low, high = curve.mean - curve.spread, curve.mean + curve.spread
        self.fill_between_ = ax.fill_between(
            curve.sizes, low, high, color=self.line_.get_color(), alpha=0.2, linewidth=0
        )
        ax.set_xscale("log")
        ax.locator_params(axis="x", subs=(1, 2, 5))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.minorticks_off()
        ax.axvline(curve.best, color=INK, linewidth=1)
        ax.axvline(curve.enough, color=INK, linewidth=1, linestyle=":")
        ax.set(
            xlabel="features",
            ylabel="average precision on held-out rows",
            title=f"Best with {curve.best}, hardly worse with {curve.enough}",
        )


class ConvergenceDisplay(_Display):
    """Objective of a fit by iteration. Draw several fits on the same axes to compare them.

    Parameters
    ----------
    selector : BaseSelector
        A fitted selector with ``objective_history_``.
    name : str or None, default=None
        Name of the curve in the legend; None takes the name of the class.

    Attributes
    ----------
    ax_ : Axes
        The axes.
    figure_ : Figure
        The figure that contains the axes.
    line_ : Line2D
        The curve.

    Examples
    --------
    >>> from labelsieve import ConvergenceDisplay, RFS
    >>> from labelsieve.datasets import make_pml
    >>> X, Y = make_pml(random_state=0)
    >>> selector = RFS(5).fit(X, Y)
    >>> display = ConvergenceDisplay(selector).plot()
    >>> len(display.line_.get_ydata()) == selector.n_iter_ + 1
    True
    """

    def __init__(self, selector: Any, *, name: str | None = None) -> None:
        if not hasattr(selector, "objective_history_"):
            raise ValueError(
                f"selector must have objective_history_, got {type(selector).__name__} without it. Fit it first, or "
                "take a method that minimises by iterations, such as RFS."
            )
        self.objective = selector.objective_history_
        self.name = name or type(selector).__name__

    def _draw(self, ax: Axes, style: dict[str, Any]) -> None:
        # Further curves take the colour cycle of the axes.
        first = {} if ax.lines else {"color": ACCENT}
        style = {"linewidth": 2, "label": self.name, **first, **style}
        (self.line_,) = ax.plot(np.arange(len(self.objective)), self.objective, **style)
        ax.locator_params(axis="x", integer=True)
        ax.set(xlabel="iteration", ylabel="objective")
        ax.legend()


def _draw_ticks(ax: Axes, values: np.ndarray, rows: np.ndarray, label: str | None = None) -> Line2D:
    """Mark a value on each of some bars."""
    look: dict[str, Any] = {"color": INK, "markersize": 9, "markeredgewidth": 2, "linestyle": "none"}
    (ticks,) = ax.plot(values, rows, marker="|", label=label, **look)
    return ticks
