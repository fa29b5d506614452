"""``labelsieve audit``: four answers about a table in one run, in the terminal and as a page to explore."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

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
from labelsieve.inspection.audit import audit as audit_dataset
from labelsieve.inspection.result import Audit
from labelsieve.inspection.review import read_review
from labelsieve.inspection.wording import answers, banner, headline

EPILOG = """\
Examples:

labelsieve audit tickets.csv --labels tags --html audit.html

labelsieve audit data.csv --labels 'label_*' --id name --fast

labelsieve audit data.csv --labels 2 -k 3 --json

labelsieve audit data.csv --labels 'label_*' --id name --checked check.csv --html audit.html

Label issues are a review order, not an error count. labelsieve issues FILE --draw 50 picks labels to review; with their
verdicts, --checked gives probabilities.
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
    """Audit a table: rank columns, choose how many to keep, check stability, flag label errors.

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
        dataset, verdicts = opened.dataset, None
        if checked is not None:
            verdicts = read_review(checked, dataset.label_names, opened.ids, dataset.candidates).checked
        with warnings_as_notes(console), told_as_data_errors(dataset):
            found = audit_dataset(
                dataset,
                n_columns=amount,
                checked=verdicts,
                fast=fast,
                random_state=seed,
                progress=lambda done, total, activity: name_activity(activity, done, total),
                command_line=typed(),
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
    """Print the answers, the first columns and the least supported labels: one screen."""
    console.print(Text(headline(found), style="bold"))
    warning = banner(found)
    if warning is not None:
        console.print()
        console.print(Text(" ".join(warning), style="bold"))
    for answer in answers(found):
        console.print()
        console.print(Text(answer.question, style="bold"))
        console.print(Padding(Text.assemble((answer.gist, "bold"), answer.rest), (0, 0, 0, 2), expand=False))
    console.print()
    console.print(_columns_table(found, console), "", sep="\n")
    first = list(found.issue_records(_SHOWN))
    if first and warning is None:
        console.print(_issues_table(first, console), "", sep="\n")
    assert found.label_issues is not None
    console.print(found.label_issues.issues.caveat())


def _columns_table(found: Audit, console: Console) -> Any:
    first = found.column_records()[:_SHOWN]
    cells = {
        "rank": [str(column["rank"]) for column in first],
        "column": [column["column"] for column in first],
        "holds": [column["role"] for column in first],
        "evidence": [f"{column['evidence']:.0f}" for column in first],
    }
    if found.stability is not None:
        cells["selected"] = [f"{column['frequency']:.0%}" for column in first]
    return lay_out(console.width, cells, long="column", title="columns that matter most")


def _issues_table(first: list[dict[str, Any]], console: Console) -> Any:
    why = [
        f"{record['reasons'][0]['column']} = {record['reasons'][0]['value']}" if record["reasons"] else ""
        for record in first
    ]
    cells = {
        "row": [printable(record["row"])[:24] for record in first],
        "label": [printable(record["label"])[:30] for record in first],
        "support": [f"{record['support']:.2f}" for record in first],
        "strongest reason against it": why,
    }
    return lay_out(
        console.width, cells, long="strongest reason against it", title="least supported candidate labels"
    )
