"""How the objective of a fit went down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from labelsieve._figures import ACCENT
from labelsieve.inspection.displays._canvas import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ConvergenceDisplay"]


class ConvergenceDisplay(Display):
    """The objective over the iterations. Several fits of one problem go onto the same axes.

    Parameters
    ----------
    objective : array-like of shape (n_iter + 1,)
        The objective at the start and after every iteration.
    estimator_name : str or None, default=None
        Name of the curve in the legend.

    Attributes
    ----------
    ax_ : Axes
        Where it is drawn.
    figure_ : Figure
        The figure around it.
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

        Returns
        -------
        ConvergenceDisplay
            What is drawn.
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
            Where to draw; None makes a figure.
        **kwargs
            For the ``plot`` of matplotlib.

        Returns
        -------
        self : ConvergenceDisplay
            With ``ax_``, ``figure_`` and ``line_``.
        """
        first = ax is None or not ax.lines
        ax = self._begin(ax)
        # The first curve has the colour of the other displays, those beside it the colours of the axes.
        style: dict[str, Any] = {"linewidth": 2, "label": self.estimator_name}
        if first:
            style["color"] = ACCENT
        (self.line_,) = ax.plot(np.arange(len(self.objective)), self.objective, **{**style, **kwargs})
        ax.locator_params(axis="x", integer=True)
        ax.set(xlabel="iteration", ylabel="objective")
        if ax.get_legend_handles_labels()[1]:
            ax.legend()
        return self
