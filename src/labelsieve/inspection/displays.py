"""Displays of findings in the manner of scikit-learn: ``from_...``, ``plot``, ``ax_``, ``figure_``.

Drawing needs matplotlib.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from labelsieve._base import check_count
from labelsieve._figures import ACCENT, FAINT, INK
from labelsieve._ranked import RankedFeatures
from labelsieve._text import one_line
from labelsieve.inspection.label_issues import LabelIssues
from labelsieve.inspection.size_choice import choose_size
from labelsieve.inspection.stability import STABLE, SelectionStability, selection_stability
from labelsieve.size_curve import SizeCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D

__all__ = [
    "ConvergenceDisplay",
    "LabelIssuesDisplay",
    "RankingDisplay",
    "SizeCurveDisplay",
    "StabilityDisplay",
]

_LONGEST_NAME = 30


class _Display:
    """Base of the displays: draws on given or new axes."""

    ax_: Axes
    figure_: Figure | SubFigure

    def _begin(self, ax: Axes | None, n_rows: int | None = None) -> Axes:
        """Set ``ax_`` and ``figure_``; without axes, make a figure with room for `n_rows` bars."""
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise ImportError(
                f"{type(self).__name__}.plot needs matplotlib, which is not installed; "
                "pip install 'labelsieve[plot]'."
            ) from None
        if ax is None:
            size = (6, 4) if n_rows is None else (6, 1.2 + 0.22 * n_rows)
            _, ax = plt.subplots(figsize=size, layout="constrained")
        self.ax_ = ax
        self.figure_ = ax.figure
        return ax

    def _begin_bars(
        self, ax: Axes | None, names: Sequence[object], order: np.ndarray
    ) -> tuple[Axes, np.ndarray]:
        """Begin a chart with a named bar for each entry of `order`, the first on top; return the bar positions."""
        ax = self._begin(ax, len(order))
        rows = np.arange(len(order))
        # Names come from data: a dollar sign does not start a formula.
        ax.set_yticks(rows, [_shortened(names[place]) for place in order], parse_math=False)
        ax.set_ylim(len(order) - 0.4, -0.6)
        return ax, rows


class RankingDisplay(_Display):
    """Bar chart of the best features, selected ones in colour.

    Parameters
    ----------
    ranking : array-like of int of shape (n_features,)
        Rank of every feature, 1 is best.
    worth : array-like of shape (n_features,)
        Length of each bar.
    n_selected : int
        Number of selected features.
    feature_names : sequence of str or None, default=None
        Names of the features; None gives ``x0, x1, ...``.
    measure : str, default="score"
        Name of the worth.

    Attributes
    ----------
    ax_ : Axes
        The axes.
    figure_ : Figure
        The figure around them.
    bars_ : BarContainer
        The bars, best feature first.

    Examples
    --------
    >>> from labelsieve import RankingDisplay, SumF
    >>> from labelsieve.datasets import make_pml
    >>> X, Y = make_pml(shuffle=False, random_state=0)
    >>> display = RankingDisplay.from_estimator(SumF(5).fit(X, Y), n_shown=10)
    >>> sorted(tick.get_text() for tick in display.ax_.get_yticklabels()[:5])  # the planted ones
    ['x0', 'x1', 'x2', 'x3', 'x4']
    """

    def __init__(
        self,
        *,
        ranking: Any,
        worth: Any,
        n_selected: int,
        feature_names: Sequence[str] | None = None,
        measure: str = "score",
    ) -> None:
        self.ranking = np.asarray(ranking)
        self.worth = np.asarray(worth)
        _check_lengths(len(self.ranking), worth=worth)
        self.n_selected = n_selected
        self.feature_names = _feature_names(feature_names, len(self.ranking))
        self.measure = measure

    @classmethod
    def from_estimator(
        cls,
        selector: Any,
        *,
        feature_names: Sequence[str] | None = None,
        n_shown: int = 20,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the features of a fitted selector.

        Parameters
        ----------
        selector : BaseSelector
            A fitted selector. The bars show its ``evidence_`` if it has any, else its ``scores_``.
        feature_names : sequence of str or None, default=None
            Names of the features; None takes those of the fit.
        n_shown, ax, **kwargs
            As in `plot`.
        """
        check_is_fitted(selector, "ranking_")
        found = RankedFeatures.of(selector, feature_names)
        display = cls(
            ranking=found.ranking,
            worth=found.worth,
            n_selected=found.n_selected,
            feature_names=found.names,
            measure=found.measure,
        )
        return display.plot(ax, n_shown=n_shown, **kwargs)

    def plot(self, ax: Axes | None = None, *, n_shown: int = 20, **kwargs: Any) -> Self:
        """Draw the best features.

        Parameters
        ----------
        ax : Axes or None, default=None
            Axes to draw on; None makes a figure.
        n_shown : int, default=20
            Largest number of features to draw.
        **kwargs
            Options of matplotlib's ``barh``.
        """
        check_count(n_shown, "n_shown", least=1)
        order = np.argsort(self.ranking, kind="stable")[:n_shown]
        ax, rows = self._begin_bars(ax, self.feature_names, order)
        colors = [ACCENT if place < self.n_selected else FAINT for place in rows]
        self.bars_ = ax.barh(rows, self.worth[order], **{"color": colors, "height": 0.7, **kwargs})
        ax.set(
            xlabel=self.measure,
            title=f"{self.n_selected} of {len(self.ranking)} features selected",
        )
        return self


class StabilityDisplay(_Display):
    """Bar chart of selection frequencies with intervals; features selected on all rows in colour.

    A thick tick marks how often the feature or one of its substitutes is selected, if that is more often. The dotted
    line at 60 % is where features count as stable.

    Parameters
    ----------
    frequency : array-like of shape (n_features,)
        Selection frequency of each feature.
    interval : array-like of shape (n_features, 2)
        Lower and upper end of the interval of each.
    selected : array-like of bool of shape (n_features,)
        Features selected on all rows.
    group_frequency : array-like of shape (n_features,) or None, default=None
        Share of the subsamples that select each feature or one of its substitutes.
    feature_names : sequence of str or None, default=None
        Names of the features; None gives ``x0, x1, ...``.
    n_resamples : int or None, default=None
        Number of subsamples, for the axis label.

    Attributes
    ----------
    ax_ : Axes
        The axes.
    figure_ : Figure
        The figure around them.
    bars_ : BarContainer
        The bars, most frequent feature first.
    errorbar_ : ErrorbarContainer
        The intervals.
    ticks_ : Line2D or None
        Frequencies with substitutes, if larger.

    Examples
    --------
    >>> from labelsieve import StabilityDisplay, SumF
    >>> from labelsieve.datasets import make_pml
    >>> X, Y = make_pml(n_samples=400, shuffle=False, random_state=0)
    >>> display = StabilityDisplay.from_estimator(SumF(5), X, Y, n_resamples=10)
    >>> sorted(tick.get_text() for tick in display.ax_.get_yticklabels()[:5])
    ['x0', 'x1', 'x2', 'x3', 'x4']
    """

    def __init__(
        self,
        *,
        frequency: Any,
        interval: Any,
        selected: Any,
        group_frequency: Any = None,
        feature_names: Sequence[str] | None = None,
        n_resamples: int | None = None,
    ) -> None:
        self.frequency = np.asarray(frequency)
        self.interval = np.asarray(interval)
        self.selected = np.asarray(selected, dtype=bool)
        self.group_frequency = None if group_frequency is None else np.asarray(group_frequency)
        n_features = len(self.frequency)
        _check_lengths(n_features, interval=interval, selected=selected, group_frequency=group_frequency)
        self.feature_names = _feature_names(feature_names, n_features)
        self.n_resamples = n_resamples

    @classmethod
    def from_estimator(
        cls,
        selector: Any,
        X: Any,
        Y: Any,
        *,
        n_resamples: int = 30,
        random_state: Any = 0,
        n_jobs: int | None = None,
        feature_names: Sequence[str] | None = None,
        n_shown: int = 20,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Fit a selector to subsamples and draw how often it selects each feature.

        Parameters
        ----------
        selector, X, Y, n_resamples, random_state, n_jobs
            As in `selection_stability`.
        feature_names, n_shown, ax, **kwargs
            As in `from_stability`.
        """
        stability = selection_stability(
            selector, X, Y, n_resamples=n_resamples, random_state=random_state, n_jobs=n_jobs
        )
        return cls.from_stability(stability, feature_names=feature_names, n_shown=n_shown, ax=ax, **kwargs)

    @classmethod
    def from_stability(
        cls,
        stability: SelectionStability,
        *,
        feature_names: Sequence[str] | None = None,
        n_shown: int = 20,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the result of `selection_stability`.

        Parameters
        ----------
        stability : SelectionStability
            The result.
        feature_names : sequence of str or None, default=None
            Names of the features; None takes those of the result.
        n_shown, ax, **kwargs
            As in `plot`.
        """
        display = cls(
            frequency=stability.frequency,
            interval=stability.interval,
            selected=stability.selected,
            group_frequency=stability.group_frequency,
            feature_names=stability.feature_names.tolist() if feature_names is None else feature_names,
            n_resamples=stability.n_resamples,
        )
        return display.plot(ax, n_shown=n_shown, **kwargs)

    def plot(self, ax: Axes | None = None, *, n_shown: int = 20, **kwargs: Any) -> Self:
        """Draw the most frequent features; among equals, those selected on all rows first.

        Parameters
        ----------
        ax : Axes or None, default=None
            Axes to draw on; None makes a figure.
        n_shown : int, default=20
            Largest number of features to draw.
        **kwargs
            Options of matplotlib's ``barh``.
        """
        check_count(n_shown, "n_shown", least=1)
        order = np.lexsort((~self.selected, -self.frequency))[:n_shown]
        ax, rows = self._begin_bars(ax, self.feature_names, order)
        frequency, (lower, upper) = self.frequency[order], self.interval[order].T
        colors = [ACCENT if chosen else FAINT for chosen in self.selected[order]]
        self.bars_ = ax.barh(rows, frequency, **{"height": 0.7, "alpha": 0.75, "color": colors, **kwargs})
        # Rounding may put an end on the wrong side of a frequency of 0 or 1.
        reach = np.maximum([frequency - lower, upper - frequency], 0)
        self.errorbar_ = ax.errorbar(frequency, rows, xerr=reach, fmt="none", ecolor=INK, elinewidth=1)
        ax.set_xlim(0, 1.02)
        ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        self.ticks_ = None
        remark = ""
        if self.group_frequency is not None:
            together = self.group_frequency[order]
            helped = together > frequency
            if helped.any():
                self.ticks_ = _draw_ticks(ax, together[helped], rows[helped])
                remark = "; tick: it or a substitute"
        ax.axvline(STABLE, color=INK, linewidth=1, linestyle=":")
        halves = "halves" if self.n_resamples is None else f"{self.n_resamples} halves"
        ax.set(xlabel=f"chosen on {halves} of the rows{remark}", title="How sure is each feature")
        return self


class LabelIssuesDisplay(_Display):
    """Bar chart of the candidates of each label, flagged ones in colour.

    If enough candidates were reviewed, a tick marks the estimated number of wrong ones. Otherwise the coloured part
    is a review order, not an error count.

    Parameters
    ----------
    label_names : sequence of str
        Names of the labels.
    n_candidates : array-like of int of shape (n_labels,)
        Number of candidates of each label.
    n_flagged : array-like of int of shape (n_labels,)
        Number of flagged candidates without a verdict.
    share_wrong : array-like of shape (n_labels,) or None, default=None
        Estimated share of wrong candidates; None if unknown.

    Attributes
    ----------
    ax_ : Axes
        The axes.
    figure_ : Figure
        The figure around them.
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
    >>> display = LabelIssuesDisplay.from_issues(issues)
    >>> int(sum(bar.get_width() for bar in display.bars_)) == issues.n_candidates
    True
    """

    def __init__(
        self, *, label_names: Sequence[str], n_candidates: Any, n_flagged: Any, share_wrong: Any = None
    ) -> None:
        _check_lengths(
            len(label_names), n_candidates=n_candidates, n_flagged=n_flagged, share_wrong=share_wrong
        )
        self.label_names = list(label_names)
        self.n_candidates = np.asarray(n_candidates)
        self.n_flagged = np.asarray(n_flagged)
        self.share_wrong = None if share_wrong is None else np.asarray(share_wrong)

    @classmethod
    def from_issues(
        cls, issues: LabelIssues, *, n_shown: int = 20, ax: Axes | None = None, **kwargs: Any
    ) -> Self:
        """Draw the result of `find_label_issues`.

        Parameters
        ----------
        issues : LabelIssues
            The result.
        n_shown, ax, **kwargs
            As in `plot`.
        """
        labels = issues.by_label()
        display = cls(
            label_names=[label.label for label in labels],
            n_candidates=[label.n_candidates for label in labels],
            n_flagged=[label.n_flagged for label in labels],
            share_wrong=[label.share_wrong for label in labels] if issues.has_probabilities else None,
        )
        return display.plot(ax, n_shown=n_shown, **kwargs)

    def plot(self, ax: Axes | None = None, *, n_shown: int = 20, **kwargs: Any) -> Self:
        """Draw the labels with the most flagged candidates.

        Parameters
        ----------
        ax : Axes or None, default=None
            Axes to draw on; None makes a figure.
        n_shown : int, default=20
            Largest number of labels to draw.
        **kwargs
            Options of matplotlib's ``barh`` for the flagged candidates.
        """
        check_count(n_shown, "n_shown", least=1)
        order = np.argsort(-self.n_flagged, kind="stable")[:n_shown]
        ax, rows = self._begin_bars(ax, self.label_names, order)
        n_candidates = self.n_candidates[order]
        self.bars_ = ax.barh(rows, n_candidates, color=FAINT, alpha=0.4, height=0.7, label="candidates")
        style = {"color": ACCENT, "height": 0.7, "label": "to look at", **kwargs}
        self.flagged_bars_ = ax.barh(rows, self.n_flagged[order], **style)
        self.ticks_ = None
        if self.share_wrong is None:
            ax.set_xlabel("candidates (to look at: no count of errors)")
        else:
            ax.set_xlabel("candidates")
            self.ticks_ = _draw_ticks(ax, self.share_wrong[order] * n_candidates, rows, "wrong, estimated")
        ax.set_title(f"{self.n_flagged.sum()} of {self.n_candidates.sum()} candidates are flagged", pad=26)
        # Above the chart, because it would cover bars.
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, frameon=False)
        return self


class SizeCurveDisplay(_Display):
    """Precision on held-out rows by number of features, with the spread over the folds as a band.

    The solid line marks the best size, the dotted one the smallest size within the spread.

    Parameters
    ----------
    sizes : array-like of int of shape (n_sizes,)
        Numbers of features, ascending.
    scores : array-like of shape (n_folds, n_sizes)
        Score of every fold and size; higher is better.

    Attributes
    ----------
    ax_ : Axes
        The axes.
    figure_ : Figure
        The figure around them.
    line_ : Line2D
        The mean over the folds.
    fill_between_ : PolyCollection
        The band.

    Examples
    --------
    >>> from labelsieve import SizeCurveDisplay
    >>> display = SizeCurveDisplay(sizes=[1, 2, 5], scores=[[0.5, 0.8, 0.7], [0.5, 0.6, 0.7]]).plot()
    >>> display.line_.get_ydata()
    array([0.5, 0.7, 0.7])
    """

    def __init__(self, *, sizes: Any, scores: Any) -> None:
        self.curve = SizeCurve(np.asarray(sizes), np.asarray(scores))
        if self.curve.scores.ndim != 2 or self.curve.scores.shape[1] != len(self.curve.sizes):
            raise ValueError(
                f"scores must have a row for every fold and a column for each of the {len(self.curve.sizes)} sizes. "
                f"Got shape {self.curve.scores.shape!r}. Transpose it, or give the sizes it belongs to."
            )

    @classmethod
    def from_estimator(
        cls,
        selector: Any,
        X: Any,
        Y: Any,
        *,
        sizes: Sequence[int] | None = None,
        cv: Any = 5,
        random_state: Any = 0,
        n_jobs: int | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Cross-validate the number of features and draw the curve.

        Parameters
        ----------
        selector, X, Y, sizes, cv, random_state, n_jobs
            As in `choose_size`.
        ax, **kwargs
            As in `plot`.
        """
        curve = choose_size(selector, X, Y, sizes=sizes, cv=cv, random_state=random_state, n_jobs=n_jobs)
        return cls.from_curve(curve, ax=ax, **kwargs)

    @classmethod
    def from_curve(cls, curve: SizeCurve, *, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw a computed curve: from `choose_size`, a selector's ``size_curve_`` or an audit.

        Parameters
        ----------
        curve : SizeCurve
            The curve.
        ax, **kwargs
            As in `plot`.
        """
        return cls(sizes=curve.sizes, scores=curve.scores).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : Axes or None, default=None
            Axes to draw on; None makes a figure.
        **kwargs
            Options of matplotlib's ``plot``.
        """
        ax, curve = self._begin(ax), self.curve
        style = {"color": ACCENT, "linewidth": 2, "marker": "o", "markersize": 4, **kwargs}
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
        return self


class ConvergenceDisplay(_Display):
    """Objective of a fit by iteration. Draw several fits on the same axes to compare them.

    Parameters
    ----------
    objective : array-like of shape (n_iter + 1,)
        Objective at the start and after every iteration.
    estimator_name : str or None, default=None
        Name of the curve in the legend.

    Attributes
    ----------
    ax_ : Axes
        The axes.
    figure_ : Figure
        The figure around them.
    line_ : Line2D
        The curve.

    Examples
    --------
    >>> from labelsieve import ConvergenceDisplay, RFS
    >>> from labelsieve.datasets import make_pml
    >>> X, Y = make_pml(random_state=0)
    >>> selector = RFS(5).fit(X, Y)
    >>> display = ConvergenceDisplay.from_estimator(selector)
    >>> len(display.line_.get_ydata()) == selector.n_iter_ + 1
    True
    """

    def __init__(self, *, objective: Any, estimator_name: str | None = None) -> None:
        self.objective = np.asarray(objective)
        self.estimator_name = estimator_name

    @classmethod
    def from_estimator(
        cls, selector: Any, *, name: str | None = None, ax: Axes | None = None, **kwargs: Any
    ) -> Self:
        """Draw the objective of a fitted selector.

        Parameters
        ----------
        selector : BaseSelector
            A fitted selector with ``objective_history_``.
        name : str or None, default=None
            Name of the curve; None takes the name of the class.
        ax, **kwargs
            As in `plot`.
        """
        if not hasattr(selector, "objective_history_"):
            raise ValueError(
                f"selector must have objective_history_. Got {type(selector).__name__} without it. Fit it first, or "
                "take a method that minimises by iterations, such as RFS."
            )
        display = cls(objective=selector.objective_history_, estimator_name=name or type(selector).__name__)
        return display.plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the objective.

        Parameters
        ----------
        ax : Axes or None, default=None
            Axes to draw on; None makes a figure.
        **kwargs
            Options of matplotlib's ``plot``.
        """
        is_first = ax is None or not ax.lines
        ax = self._begin(ax)
        style: dict[str, Any] = {"linewidth": 2, "label": self.estimator_name}
        if is_first:  # further curves take the colour cycle of the axes
            style["color"] = ACCENT
        (self.line_,) = ax.plot(np.arange(len(self.objective)), self.objective, **{**style, **kwargs})
        ax.locator_params(axis="x", integer=True)
        ax.set(xlabel="iteration", ylabel="objective")
        if ax.get_legend_handles_labels()[1]:
            ax.legend()
        return self


def _draw_ticks(ax: Axes, values: np.ndarray, rows: np.ndarray, label: str | None = None) -> Line2D:
    """Mark a value on each of some bars."""
    look: dict[str, Any] = {"color": INK, "markersize": 9, "markeredgewidth": 2, "linestyle": "none"}
    (ticks,) = ax.plot(values, rows, marker="|", label=label, **look)
    return ticks


def _check_lengths(expected: int, **given: Any) -> None:
    """Raise if a sequence does not have the expected length."""
    for parameter, values in given.items():
        if values is not None and len(values) != expected:
            raise ValueError(
                f"{parameter} must have {expected} entries. Got {len(values)}. Give one for each."
            )


def _feature_names(names: Sequence[str] | None, n_features: int) -> list[str]:
    """Return the names of the features, by default ``x0, x1, ...``."""
    _check_lengths(n_features, feature_names=names)
    return [f"x{j}" for j in range(n_features)] if names is None else list(names)


def _shortened(name: object) -> str:
    """Shorten a name to leave room for the bars."""
    text = one_line(name)
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"
