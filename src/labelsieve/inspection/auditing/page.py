"""One self-contained HTML page about a table: all that an audit found, or what was asked for. Needs jinja2."""

from __future__ import annotations

import datetime

from labelsieve import __version__
from labelsieve._pages import render
from labelsieve.inspection.auditing.contents import Columns, Contents, Sizes
from labelsieve.inspection.auditing.findings import Findings
from labelsieve.inspection.auditing.page_data import page_data
from labelsieve.inspection.auditing.wording import CHANCE, answers, facts, notes

__all__ = ["of_audit", "render_page"]


def of_audit(audit: Findings) -> Contents:
    """Everything that an audit found."""
    ranking, issues = audit.ranking, audit.doubts.issues
    return Contents(
        command="audit",
        subject=audit.subject,
        facts=facts(audit.subject, issues.n_candidates),
        answers=answers(audit),
        notes=notes(
            audit.subject,
            audit.doubts,
            has_columns=True,
            has_sizes=True,
            has_halves=audit.steadiness.n_resamples > 0,
        ),
        provenance=audit.provenance,
        columns=Columns(
            ranking=ranking,
            n_kept=audit.n_kept,
            steadiness=audit.steadiness,
            measure="evidence",
            worth=ranking.column_evidence,
            sizes=Sizes(ranking.curve, ranking.random, ranking.without),
        ),
        doubts=audit.doubts,
        banner=(CHANCE[0], CHANCE[1].format(p=audit.chance.p_value))
        if audit.is_no_better_than_chance
        else None,
    )


def render_page(contents: Contents) -> str:
    """Return the page: answers in words, then the evidence for each to explore."""
    columns, doubts = contents.columns, contents.doubts
    sizes = None if columns is None else columns.sizes
    return render(
        "audit.html",
        scripts=_scripts(contents),
        data=page_data(contents),
        generator=f"labelsieve {__version__}",
        command=contents.command,
        title=contents.subject.name,
        facts=contents.facts,
        answers=contents.answers,
        banner=contents.banner,
        pictures=contents.pictures,
        notes=contents.notes,
        measure=None if columns is None else columns.measure,
        has_halves=columns is not None and columns.steadiness.n_resamples > 0,
        halves_for=None if columns is None else columns.halves_for,
        best=None if sizes is None else sizes.curve.best,
        is_doubted=doubts is not None,
        is_checked=doubts is not None and doubts.issues.has_probabilities,
        is_curved=doubts is not None and doubts.kernel == "rbf",
        provenance={
            **contents.provenance,
            "Written": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        },
    )


def _scripts(contents: Contents) -> tuple[str, ...]:
    """The script of the page, in the order in which its parts build on each other; without parts that nothing needs."""
    columns = contents.columns
    parts = {
        "dom": True,
        "state": True,
        "curve": columns is not None and columns.sizes is not None,
        "columns": columns is not None,
        "map": columns is not None,
        "labels": contents.doubts is not None,
        "doubts": contents.doubts is not None,
        "drawer": True,
        "start": True,
    }
    return tuple(f"audit/{name}.js" for name, is_needed in parts.items() if is_needed)
