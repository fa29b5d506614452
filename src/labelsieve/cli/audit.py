"""``labelsieve audit``: rank columns, choose how many to keep, check stability, flag label errors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from labelsieve._base import share_of
from labelsieve._text import printable
from labelsieve.cli._console import lay_out, messages, progress, results, short, typed, warnings_as_notes
from labelsieve.cli._options import (
    AsJson,
    Checked,
    DataOptions,
    Html,
    Quiet,
    check_outputs,
    describe_columns,
    parse_amount,
    with_data_options,
    write_errors,
)
from labelsieve.cli.fitting import told_as_data_errors
from labelsieve.inspection.auditing.result import Audit
from labelsieve.inspection.auditing.run import audit_subject
from labelsieve.inspection.auditing.subject import Subject
from labelsieve.inspection.auditing.wording import CHANCE, answers, headline
from labelsieve.inspection.review import RowNames, read_review

EPILOG = """\
\b
Examples:
  labelsieve audit tickets.csv --labels tags --html audit.html
  labelsieve audit data.csv --labels 2 -k 3 --fast --json
  labelsieve audit data.csv --labels 'label_*' --id name --checked check.csv
"""

_SHOWN = 5
_AUTOMATIC = "auto"


@with_data_options
def audit(
    data: DataOptions,
    columns: Annotated[
        str,
        typer.Option(
            "--features", "-k", metavar="K", help="Columns to keep: an integer, a fraction (20%), or 'auto'."
        ),
    ] = _AUTOMATIC,
    fast: Annotated[
        bool, typer.Option("--fast", help="Use 10 subsamples instead of 30, and fewer permutations.")
    ] = False,
    checked: Checked = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Random seed.")] = 0,
    html: Html = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Rank columns, choose how many to keep, flag label errors.

    Columns are ranked as they are in your table: the categories of a column or the parts of a date count as one.
    """
    amount = None if columns == _AUTOMATIC else parse_amount(columns)
    check_outputs(data, {"--html": html}, reads=[checked])
    data = data.with_id_of(checked)
    console = messages(quiet=quiet)
    with progress(console) as status:
        status(f"reading {Path(data.files[0]).name}")
        dataset = data.read(console)
        describe_columns(dataset, console)
        names = None if dataset.id_column is None else tuple(map(str, dataset.row_ids))
        subject = Subject.of_dataset(dataset, names)
        verdicts = None
        if checked is not None:
            ids = None if names is None else RowNames(str(dataset.id_column), names)
            verdicts = read_review(checked, subject.label_names, ids, subject.Y).checked
        with warnings_as_notes(console), told_as_data_errors(dataset):
            found = audit_subject(
                subject,
                n_columns=share_of(len(subject.columns), amount) if isinstance(amount, float) else amount,
                checked=verdicts,
                fast=fast,
                random_state=seed,
                progress=status.advance,
                command=typed(),
            )
        if html is not None:
            status("writing the page")
            with write_errors(html):
                found.to_html(html)
    if as_json:
        typer.echo(found.to_json(), nl=False)
    else:
        _print_summary(found, results())
    if html is not None:
        console.print(f"wrote {printable(html)}")


def _print_summary(found: Audit, console: Console) -> None:
    """Print the four answers, the first columns and the first flagged labels on one screen."""
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
    if len(issues.unchecked) and not found.is_no_better_than_chance:
        console.print(_issues_table(found, console), "", sep="\n")
    console.print(issues.caveat())


def _columns_table(found: Audit, console: Console) -> Any:
    first = [found.column_record(int(column)) for column in found.ranking.order[:_SHOWN]]
    cells = {
        "rank": [str(column["rank"]) for column in first],
        "column": [column["column"] for column in first],
        "role": [column["role"] for column in first],
        "evidence": [f"{column['evidence']:.0f}" for column in first],
    }
    if found.steadiness.n_resamples:
        cells["selected"] = [f"{column['frequency']:.0%}" for column in first]
    return lay_out(console.width, cells, long="column", title="most important columns")


def _issues_table(found: Audit, console: Console) -> Any:
    issues, reasons, subject = found.doubts.issues, found.doubts.reasons, found.subject
    listed = found.doubts.listed[:_SHOWN]
    rows, labels = issues.rows[listed], issues.labels[listed]
    why = [
        f"{subject.columns[reasons.columns[place, 0]].name} = {subject.cell(int(row), int(reasons.columns[place, 0]))}"
        for place, row in enumerate(rows)
    ]
    cells = {
        "row": [short(issues.row_ids[row]) for row in rows],
        "label": [short(issues.label_names[label], 30) for label in labels],
        "support": [f"{value:.2f}" for value in issues.support[rows, labels]],
        "strongest reason against it": why,
    }
    return lay_out(console.width, cells, long="strongest reason against it", title="labels to check first")
