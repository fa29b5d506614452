"""Where the candidates to doubt lie: label by label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from labelsieve._base import check_count
from labelsieve._figures import ACCENT, FAINT
from labelsieve.inspection.displays._canvas import Display, check_lengths, draw_ticks, name_rows
from labelsieve.inspection.label_issues import LabelIssues

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LabelIssuesDisplay"]


class LabelIssuesDisplay(Display):
    """How many candidates each label has, and how many of them to look at.

    Where enough candidates were checked, a tick is the estimated number of wrong ones. Without checks nobody knows it:
    the coloured part is the size of a pile to look at, no count of errors.

    Parameters
    ----------
    label_names : sequence of str
        Names of the labels.
    n_candidates : array-like of int of shape (n_labels,)
        Candidates of each.
    n_flagged : array-like of int of shape (n_labels,)
        Those of them that look rather wrong than right and were not checked.
    share_wrong : array-like of shape (n_labels,) or None, default=None
        Estimated share of wrong candidates; None if unknown.

    Attributes
    ----------
    ax_ : Axes
        Where it is drawn.
    figure_ : Figure
        The figure around it.
    bars_ : BarContainer
        All candidates of each label; the label with the most to look at first.
    flagged_bars_ : BarContainer
        Those to look at.
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
        check_lengths(
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
        """Draw what `find_label_issues` found.

        Parameters
        ----------
        issues : LabelIssues
            What it found.
        n_shown, ax, **kwargs
            As in `plot`.

        Returns
        -------
        LabelIssuesDisplay
            What is drawn.
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
        """Draw the labels with the most candidates are flagged.

        Parameters
        ----------
        ax : Axes or None, default=None
            Where to draw; None makes a figure.
        n_shown : int, default=20
            How many labels, or all if there are fewer.
        **kwargs
            For the ``barh`` of matplotlib that draws those to look at.

        Returns
        -------
        self : LabelIssuesDisplay
            With ``ax_``, ``figure_``, ``bars_``, ``flagged_bars_`` and ``ticks_``.
        """
        check_count(n_shown, "n_shown", least=1)
        order = np.argsort(-self.n_flagged, kind="stable")[:n_shown]
        ax = self._begin(ax, len(order))
        rows = name_rows(ax, [self.label_names[label] for label in order])
        self.bars_ = ax.barh(
            rows, self.n_candidates[order], color=FAINT, alpha=0.4, height=0.7, label="candidates"
        )
        style = {"color": ACCENT, "height": 0.7, "label": "to look at", **kwargs}
        self.flagged_bars_ = ax.barh(rows, self.n_flagged[order], **style)
        self.ticks_ = None
        if self.share_wrong is not None:
            wrong = self.share_wrong[order] * self.n_candidates[order]
            self.ticks_ = draw_ticks(ax, wrong, rows, "wrong, estimated")
        is_known = self.share_wrong is not None
        ax.set_xlabel("candidates" if is_known else "candidates (to look at: no count of errors)")
        ax.set_title(f"{self.n_flagged.sum()} of {self.n_candidates.sum()} candidates are flagged", pad=26)
        # Above the bars, of which it would cover some.
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, frameon=False)
        return self
