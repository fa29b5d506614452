"""``labelsieve audit``: four answers about a table in one run, in the terminal and as a page to explore."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from labelsieve._base import share_of
from labelsieve._text import printable
from labelsieve.cli.console import messages, results, typed
from labelsieve.cli.fitting import progress, told_as_data_errors, warnings_as_notes
from labelsieve.cli.opening import LabelSep, Role, TableOptions, open_data
from labelsieve.cli.opening import Text as TextColumns
from labelsieve.cli.select import parse_amount
from labelsieve.cli.tables import lay_out
from labelsieve.cli.target import (
    Candidates,
    Files,
    Identifier,
    Ignore,
    Labels,
    check_targets,
    find_target,
    naming_column,
    reading_options,
    refuse_repeated,
    refuse_without_jinja,
    told_if_unwritable,
)
from labelsieve.inspection.auditing.result import Audit
from labelsieve.inspection.auditing.run import audit_subject
from labelsieve.inspection.auditing.wording import CHANCE, answers, headline
from labelsieve.inspection.review import read_review

EPILOG = """\
Examples:

labelsieve audit tickets.csv --labels tags --html audit.html

labelsieve audit data.csv --labels 'label_*' --id name --fast

labelsieve audit data.csv --labels 2 -k 3 --json

labelsieve audit data.csv --labels 'label_*' --id name --checked check.csv --html audit.html

Without checked candidates the labels to doubt are an order, no count of errors: labelsieve issues FILE --draw 50 picks
candidates to check.
"""

_SHOWN = 5
_AUTOMATIC = "auto"


def audit(
    files: Files,
    labels: Labels = None,
    candidates: Candidates = None,
    label_sep: LabelSep = None,
    identifier: Identifier = None,
    ignore: Ignore = None,
    text: TextColumns = None,
    role: Role = None,
    columns: Annotated[
        str,
        typer.Option(
            "--features", "-k", help="How many columns to keep: a number, a share such as 20%, or 'auto'."
        ),
    ] = _AUTOMATIC,
    fast: Annotated[
        bool, typer.Option("--fast", help="Fewer subsamples (10, not 30) and permutations (39, not 199).")
    ] = False,
    checked: Annotated[
        Path | None, typer.Option("--checked", help="Review file whose verdicts to learn from.")
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Seed of folds, subsamples and permutations.")
    ] = 0,
    html: Annotated[Path | None, typer.Option("--html", help="Write the page to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a summary.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No notes, no progress; errors only.")] = False,
) -> None:
    """Tell which columns of a table matter, how many, how surely, and which labels look wrong.

    What is ranked are the columns of your table: the categories of a code or the parts of a date count as one.
    """
    refuse_repeated(files)
    amount = None if columns == _AUTOMATIC else parse_amount(columns)
    wishes = TableOptions.of(label_sep, text, role)
    refuse_without_jinja(html)
    check_targets((*files, labels, candidates, checked), {"--html": html}, data="")
    options = reading_options(labels=labels, candidates=candidates, ignore=ignore)
    column = naming_column(identifier, checked)
    console = messages(quiet=quiet)
    entry = find_target(files, options, console)
    with progress(console, has_steps=True) as name_activity:
        name_activity(f"reading {printable(Path(files[0]).name)}")
        opened = open_data(files, entry, options, wishes, column)
        opened.tell(console, is_coded=entry is None)
        subject = opened.subject
        verdicts = None
        if checked is not None:
            verdicts = read_review(checked, subject.label_names, opened.ids, subject.Y).checked
        with warnings_as_notes(console), told_as_data_errors(opened.dataset):
            found = audit_subject(
                subject,
                n_columns=share_of(len(subject.columns), amount) if isinstance(amount, float) else amount,
                checked=verdicts,
                fast=fast,
                random_state=seed,
                progress=lambda done, total, activity: name_activity(activity, done, total),
                command=typed(),
            )
        if html is not None:
            name_activity("drawing the page")
            with told_if_unwritable(html):
                found.to_html(html)
    if as_json:
        typer.echo(found.to_json(), nl=False)
    else:
        _print_summary(found, results())
    if html is not None:
        console.print(f"wrote {printable(html)}")


def _print_summary(found: Audit, console: Console) -> None:
    """Print the four answers, the first columns and the first labels to doubt: one screen."""
    console.print(Text(headline(found), style="bold"))
    if found.is_no_better_than_chance:
        console.print()
        console.print(Text(" ".join(CHANCE).format(p=found.chance.p_value), style="bold"))
    for answer in answers(found):
        console.print()
        console.print(Text(answer.question, style="bold"))
        console.print(Padding(Text.assemble((answer.gist, "bold"), answer.rest), (0, 0, 0, 2), expand=False))
    console.print()
    console.print(_columns_table(found, console), "", sep="\n")
    issues = found.doubts.issues
    first = issues.unchecked[:_SHOWN]
    if len(first) and not found.is_no_better_than_chance:
        console.print(_doubts_table(found, console), "", sep="\n")
    console.print(issues.caveat())


def _columns_table(found: Audit, console: Console) -> Any:
    first = [found.column_record(int(column)) for column in found.ranking.order[:_SHOWN]]
    cells = {
        "rank": [str(column["rank"]) for column in first],
        "column": [column["column"] for column in first],
        "holds": [column["role"] for column in first],
        "evidence": [f"{column['evidence']:.0f}" for column in first],
    }
    if found.steadiness.n_resamples:
        cells["chosen"] = [f"{column['frequency']:.0%}" for column in first]
    return lay_out(console.width, cells, long="column", title="columns that matter most")


def _doubts_table(found: Audit, console: Console) -> Any:
    issues, reasons, subject = found.doubts.issues, found.doubts.reasons, found.subject
    listed = found.doubts.listed[:_SHOWN]
    rows, labels = issues.rows[listed], issues.labels[listed]
    why = [
        f"{subject.columns[reasons.columns[place, 0]].name} = {subject.cell(int(row), int(reasons.columns[place, 0]))}"
        for place, row in enumerate(rows)
    ]
    cells = {
        "row": [printable(issues.row_ids[row])[:24] for row in rows],
        "label": [printable(issues.label_names[label])[:30] for label in labels],
        "support": [f"{value:.2f}" for value in issues.support[rows, labels]],
        "strongest reason against it": why,
    }
    return lay_out(
        console.width, cells, long="strongest reason against it", title="candidate labels to doubt first"
    )
