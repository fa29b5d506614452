"""One self-contained HTML page about an audit. Needs jinja2."""

from __future__ import annotations

from labelsieve import __version__
from labelsieve.auditing.findings import Findings
from labelsieve.auditing.page_data import page_data
from labelsieve.auditing.wording import CHANCE, answers, counted, notes
from labelsieve.pages import render

__all__ = ["render_page"]

#: The script of the page, in the order in which its parts build on each other.
_SCRIPTS = tuple(
    f"audit/{name}.js"
    for name in ("dom", "state", "curve", "columns", "map", "labels", "doubts", "drawer", "start")
)


def render_page(audit: Findings) -> str:
    """Return the page: four answers in words, then the evidence for each to explore."""
    issues = audit.doubts.issues
    n_rows, n_columns, n_labels = audit.subject.shape
    n_features = len(audit.subject.feature_names)
    derived = f" giving {counted(n_features, 'feature')}" if n_features > n_columns else ""
    facts = [
        counted(n_rows, "row"),
        counted(n_columns, "column") + derived,
        counted(n_labels, "label"),
        counted(issues.n_candidates, "candidate label"),
    ]
    return render(
        "audit.html",
        scripts=_SCRIPTS,
        data=page_data(audit),
        inline_styles=False,
        generator=f"labelsieve {__version__}",
        title=audit.subject.name,
        facts=facts,
        answers=answers(audit),
        chance=[text.format(p=audit.chance.p_value) for text in CHANCE]
        if audit.is_no_better_than_chance
        else None,
        cuts=audit.cuts,
        notes=notes(audit),
        is_checked=issues.has_probabilities,
        is_linear=audit.doubts.kernel == "linear",
        has_halves=audit.steadiness.n_resamples > 0,
        best=audit.curve.best,
        provenance=audit.provenance,
    )
