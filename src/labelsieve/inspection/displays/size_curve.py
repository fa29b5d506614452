"""How many features are enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from labelsieve._figures import ACCENT, INK
from labelsieve.inspection.displays._canvas import Display
from labelsieve.inspection.size_choice import choose_size
from labelsieve.size_curve import SizeCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.lines import Line2D

__all__ = ["SizeCurveDisplay"]


class SizeCurveDisplay(Display):
    """Precision on held-out rows by the number of features, its spread over the folds as a band.

    The solid line stands at the best size, the dotted one at the smallest that is hardly worse.

    Parameters
    ----------
    sizes : array-like of int of shape (n_sizes,)
        Numbers of features, ascending.
    scores : array-like of shape (n_folds, n_sizes)
        Score of every fold and size; higher is better.

    Attributes
    ----------
    ax_ : Axes
        Where it is drawn.
    figure_ : Figure
        The figure around it.
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
        """Judge by cross-validation how many features a selector should keep, and draw it.

        Parameters
        ----------
        selector, X, Y, sizes, cv, random_state, n_jobs
            As in `choose_size`.
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        SizeCurveDisplay
            What is drawn.
        """
        curve = choose_size(selector, X, Y, sizes=sizes, cv=cv, random_state=random_state, n_jobs=n_jobs)
        return cls.from_curve(curve, ax=ax, **kwargs)

    @classmethod
    def from_curve(cls, curve: SizeCurve, *, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw a curve that is there: of `choose_size`, ``size_curve_`` of a selector or ``curve`` of an audit.

        Parameters
        ----------
        curve : SizeCurve
            The curve.
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        SizeCurveDisplay
            What is drawn.
        """
        return cls(sizes=curve.sizes, scores=curve.scores).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : Axes or None, default=None
            Where to draw; None makes a figure.
        **kwargs
            For the ``plot`` of matplotlib.

        Returns
        -------
        self : SizeCurveDisplay
            With ``ax_``, ``figure_``, ``line_`` and ``fill_between_``.
        """
        ax = self._begin(ax)
        curve = self.curve
        self.line_, self.fill_between_ = _draw_curve(ax, curve, **kwargs)
        ax.axvline(curve.best, color=INK, linewidth=1)
        ax.axvline(curve.enough, color=INK, linewidth=1, linestyle=":")
        ax.set(
            xlabel="features",
            ylabel="average precision on held-out rows",
            title=f"Best with {curve.best}, hardly worse with {curve.enough}",
        )
        return self


def _draw_curve(ax: Axes, curve: SizeCurve, **kwargs: Any) -> tuple[Line2D, PolyCollection]:
    """Draw the means and, as a band, their spread, over sizes on a logarithmic axis."""
    style = {"color": ACCENT, "linewidth": 2, "marker": "o", "markersize": 4, **kwargs}
    (line,) = ax.plot(curve.sizes, curve.mean, **style)
    band = ax.fill_between(
        curve.sizes,
        curve.mean - curve.spread,
        curve.mean + curve.spread,
        color=line.get_color(),
        alpha=0.2,
        linewidth=0,
    )
    ax.set_xscale("log")
    ax.locator_params(axis="x", subs=(1, 2, 5))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    return line, band
