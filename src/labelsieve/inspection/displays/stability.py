"""How often halves of the rows choose each feature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from labelsieve._base import check_count
from labelsieve._figures import ACCENT, FAINT, INK
from labelsieve.inspection.displays._canvas import (
    Display,
    check_lengths,
    draw_ticks,
    name_rows,
    named_features,
)
from labelsieve.inspection.stability import STABLE, SelectionStability, selection_stability

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer, ErrorbarContainer

__all__ = ["StabilityDisplay"]


class StabilityDisplay(Display):
    """How often each feature is chosen, with intervals; those chosen on all rows in colour.

    A thick tick is how often the feature or one of its substitutes is chosen, if more often; the dotted line is at
    60 %, from where on features count as steady.

    Parameters
    ----------
    frequency : array-like of shape (n_features,)
        Share of the halves of the rows on which each feature is chosen.
    interval : array-like of shape (n_features, 2)
        Lower and upper end of the interval of each.
    selected : array-like of bool of shape (n_features,)
        What is chosen on all rows.
    group_frequency : array-like of shape (n_features,) or None, default=None
        Share of the halves on which each feature or one of its substitutes is chosen.
    feature_names : sequence of str or None, default=None
        Names of the features; None gives ``x0, x1, ...``.
    n_resamples : int or None, default=None
        How many halves there were, for the title.

    Attributes
    ----------
    ax_ : Axes
        Where it is drawn.
    figure_ : Figure
        The figure around it.
    bars_ : BarContainer
        The bars, the feature chosen most often first.
    errorbar_ : ErrorbarContainer
        The intervals.
    ticks_ : Line2D or None
        How often the feature or one of its substitutes is chosen, where that is more often.

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
        check_lengths(
            n_features,
            interval=interval,
            selected=selected,
            group_frequency=group_frequency,
        )
        self.feature_names = named_features(feature_names, n_features)
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
        """Fit a selector to halves of the rows and draw how often it chooses each feature.

        Parameters
        ----------
        selector, X, Y, n_resamples, random_state, n_jobs
            As in `selection_stability`.
        feature_names, n_shown, ax, **kwargs
            As in `from_stability`.

        Returns
        -------
        StabilityDisplay
            What is drawn.
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
        """Draw what `selection_stability` found.

        Parameters
        ----------
        stability : SelectionStability
            What it found.
        feature_names : sequence of str or None, default=None
            Names of the features; None takes those it found.
        n_shown, ax, **kwargs
            As in `plot`.

        Returns
        -------
        StabilityDisplay
            What is drawn.
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
        """Draw the features that are chosen most often; of equals those chosen on all rows first.

        Parameters
        ----------
        ax : Axes or None, default=None
            Where to draw; None makes a figure.
        n_shown : int, default=20
            How many features, or all if there are fewer.
        **kwargs
            For the ``barh`` of matplotlib.

        Returns
        -------
        self : StabilityDisplay
            With ``ax_``, ``figure_``, ``bars_``, ``errorbar_`` and ``ticks_``.
        """
        check_count(n_shown, "n_shown", least=1)
        order = np.lexsort((~self.selected, -self.frequency))[:n_shown]
        ax = self._begin(ax, len(order))
        rows = name_rows(ax, [self.feature_names[column] for column in order])
        frequency = self.frequency[order]
        colors = [ACCENT if chosen else FAINT for chosen in self.selected[order]]
        self.bars_, self.errorbar_ = _draw_shares(
            ax, rows, frequency, self.interval[order], **{"color": colors, **kwargs}
        )
        self.ticks_ = None
        remark = ""
        if self.group_frequency is not None:
            together = self.group_frequency[order]
            helped = together > frequency
            if helped.any():
                self.ticks_ = draw_ticks(ax, together[helped], rows[helped])
                remark = "; tick: it or a substitute"
        ax.axvline(STABLE, color=INK, linewidth=1, linestyle=":")
        halves = "halves" if self.n_resamples is None else f"{self.n_resamples} halves"
        ax.set(xlabel=f"chosen on {halves} of the rows{remark}", title="How sure is each feature")
        return self


def _draw_shares(
    ax: Axes, rows: np.ndarray, frequency: np.ndarray, interval: np.ndarray, **kwargs: Any
) -> tuple[BarContainer, ErrorbarContainer]:
    """Draw shares as bars with their intervals, on an axis up to 100 %."""
    bars = ax.barh(rows, frequency, **{"height": 0.7, "alpha": 0.75, **kwargs})
    lower, upper = interval.T
    # Rounding may put an end on the wrong side of a frequency of 0 or 1.
    reach = np.maximum([frequency - lower, upper - frequency], 0)
    ends = ax.errorbar(frequency, rows, xerr=reach, fmt="none", ecolor=INK, elinewidth=1)
    ax.set_xlim(0, 1.02)
    ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    return bars, ends
