"""Which features come first, and what each is worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from labelsieve._base import check_count
from labelsieve._figures import ACCENT, FAINT
from labelsieve._ranked import RankedFeatures
from labelsieve.inspection.displays._canvas import Display, check_lengths, name_rows, named_features

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["RankingDisplay"]


class RankingDisplay(Display):
    """The best features as bars, those selected in colour.

    Parameters
    ----------
    ranking : array-like of int of shape (n_features,)
        Place of every feature, 1 is best.
    worth : array-like of shape (n_features,)
        What each is worth: the lengths of the bars.
    n_selected : int
        How many are selected.
    feature_names : sequence of str or None, default=None
        Names of the features; None gives ``x0, x1, ...``.
    measure : str, default="score"
        What the worth is called.

    Attributes
    ----------
    ax_ : Axes
        Where it is drawn.
    figure_ : Figure
        The figure around it.
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
        n_features = len(self.ranking)
        check_lengths(n_features, worth=worth)
        self.n_selected = n_selected
        self.feature_names = named_features(feature_names, n_features)
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
            A fitted selector. Bars are its ``evidence_`` where it has any, whose scores are places, else ``scores_``.
        feature_names : sequence of str or None, default=None
            Names of the features; None takes those of the fit.
        n_shown, ax, **kwargs
            As in `plot`.

        Returns
        -------
        RankingDisplay
            What is drawn.
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
            Where to draw; None makes a figure.
        n_shown : int, default=20
            How many features, or all if there are fewer.
        **kwargs
            For the ``barh`` of matplotlib.

        Returns
        -------
        self : RankingDisplay
            With ``ax_``, ``figure_`` and ``bars_``.
        """
        check_count(n_shown, "n_shown", least=1)
        order = np.argsort(self.ranking, kind="stable")[:n_shown]
        ax = self._begin(ax, len(order))
        rows = name_rows(ax, [self.feature_names[column] for column in order])
        colors = [ACCENT if place < self.n_selected else FAINT for place in rows]
        self.bars_ = ax.barh(rows, self.worth[order], **{"color": colors, "height": 0.7, **kwargs})
        ax.set(
            xlabel=self.measure,
            title=f"{self.n_selected} of {len(self.ranking)} features selected",
        )
        return self
