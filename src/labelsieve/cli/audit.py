"""``labelsieve audit``: rank columns, choose how many to keep, check stability, flag label errors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from labelsieve._text import printable
from labelsieve.cli._console import lay_out, messages, progress, results, short, typed, warnings_as_notes
from labelsieve.cli._options import (
    AsJson,
    Checked,
    DataOptions,
    Html,
    Quiet,
    check_outputs,
    data_errors,
    describe_columns,
    parse_amount,
    with_data_options,
    write_errors,
)
from labelsieve.inspection.audit import audit as audit_dataset
from labelsieve.inspection.result import Audit
from labelsieve.inspection.review import read_review
from labelsieve.inspection.wording import answers, banner, headline

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
        verdicts = None if checked is None else read_review(checked, dataset).checked
        with warnings_as_notes(console), data_errors(dataset):
            found = audit_dataset(
                dataset,
                n_columns=amount,
                checked=verdicts,
                fast=fast,
                random_state=seed,
                progress=status.advance,
                command_line=typed(),
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


def _columns_table(found: Audit, console: Console) -> RenderableType:
    first = found.column_records()[:_SHOWN]
    cells = {
        "rank": [str(column["rank"]) for column in first],
        "column": [column["column"] for column in first],
        "role": [column["role"] for column in first],
        "evidence": [f"{column['evidence']:.0f}" for column in first],
    }
    if found.stability is not None:
        cells["selected"] = [f"{column['frequency']:.0%}" for column in first]
    return lay_out(console.width, cells, long="column", title="most important columns")


def _issues_table(first: list[dict[str, Any]], console: Console) -> RenderableType:
    against = [record["reasons"][0] if record["reasons"] else None for record in first]
    cells = {
        "row": [short(record["row"]) for record in first],
        "label": [short(record["label"], 30) for record in first],
        "support": [f"{record['support']:.2f}" for record in first],
        "strongest reason against it": [
            "" if reason is None else f"{reason['column']} = {reason['value']}" for reason in against
        ],
    }
    return lay_out(console.width, cells, long="strongest reason against it", title="labels to check first")
