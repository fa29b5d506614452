"""``labelsieve audit``: rank columns, choose how many to keep, and flag label errors."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from labelsieve._text import short
from labelsieve.cli._console import command_line, lay_out, results
from labelsieve.cli._options import (
    AsJson,
    Checked,
    DataOptions,
    Html,
    Quiet,
    RowTruth,
    check_outputs,
    option,
    parse_amount,
    reading,
    with_data_options,
    write_text,
)
from labelsieve.cli._tables import ADVICE, best_feature, error_rates, issues_table
from labelsieve.inspection.audit import audit as audit_dataset
from labelsieve.inspection.result import Audit
from labelsieve.inspection.review import read_review
from labelsieve.inspection.wording import answers, assumption, banner, headline

EPILOG = """\
\b
Examples:
  labelsieve audit tickets.csv --labels tags --html audit.html
  labelsieve audit data.csv --labels 2 -k 3 --fast --json
  labelsieve audit data.csv --labels 'label_*' --id name --checked check.csv
"""

_SHOWN, _MISSING_SHOWN = 5, 3
_AUTOMATIC = "auto"


@with_data_options
def audit(
    data: DataOptions,
    columns: Annotated[
        str,
        option(
            "K",
            "Number of columns to keep: an integer, a fraction (20%), or 'auto' (cross-validated).",
            "--features",
            "-k",
        ),
    ] = _AUTOMATIC,
    fast: Annotated[
        bool,
        typer.Option(
            "--fast", help="Use fewer subsamples (10 instead of 30) and permutations (39 instead of 199)."
        ),
    ] = False,
    checked: Checked = None,
    row_truth: RowTruth = None,
    seed: Annotated[int, option("N", "Random seed.", min=0)] = 0,
    html: Html = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Rank columns, choose how many to keep, and flag label errors.

    The ranking counts the columns of your table: all categories of a column or all parts of a date are one
    column.
    """
    amount = None if columns == _AUTOMATIC else parse_amount(columns)
    check_outputs(data, {"--html": html}, reads=[checked])
    data = data.with_id_of(checked)
    with reading(data, quiet=quiet) as (dataset, console, status):
        found = audit_dataset(
            dataset,
            n_columns=amount,
            checked=None if checked is None else read_review(checked, dataset),
            each_row_has_truth="auto" if row_truth is None else row_truth,
            fast=fast,
            random_state=seed,
            progress=status.advance,
            command_line=command_line(),
        )
        if html is not None:
            status("writing the page")
            write_text(html, found.to_html())
    if as_json:
        typer.echo(found.to_json(), nl=False)
    else:
        print_summary(found, results(quiet=quiet))
    if html is not None:
        console.print(f"wrote {html}")


def print_summary(found: Audit, console: Console) -> None:
    """Print the four answers, the best columns and the labels to review first."""
    console.print(Text(headline(found), style="bold"))
    warning = banner(found)
    if warning is not None:
        console.print()
        console.print(Text(" ".join(warning), style="bold"))
    for answer in answers(found):
        console.print()
        console.print(Text(answer.question, style="bold"))
        console.print(Padding(Text.assemble((answer.gist, "bold"), answer.rest), (0, 0, 0, 2), expand=False))
    first = found.columns.head(_SHOWN)
    columns = {
        "rank": first["rank"].tolist(),
        "column": first["column"].map(short).tolist(),
        "role": first["role"].tolist(),
        "evidence": first["evidence"].map("{:.0f}".format).tolist(),
    }
    assert found.ranking is not None
    if found.controlled is not None:
        columns["q"] = error_rates(found.controlled, found.ranking.order[:_SHOWN])["q"]
    order = found.ranking.order[:_SHOWN]
    if any(len(found.ranked_columns[column].features) > 1 for column in order):
        columns["best feature"] = [best_feature(found, found.ranking, column) for column in order]
    if found.stability is not None:
        n_subsamples = found.stability.n_resamples
        columns["selected"] = [
            f"{frequency * n_subsamples:.0f} of {n_subsamples}" for frequency in first["frequency"]
        ]
    table = lay_out(console, columns, long="column", title="most important columns")
    console.print("", table, "", sep="\n")
    assert found.label_issues is not None
    if warning is None:
        console.print(issues_table(found, console, _SHOWN), "", sep="\n")
        if found.label_issues.missing is not None and found.label_issues.missing.n_flagged:
            console.print(issues_table(found, console, _MISSING_SHOWN, missing=True), "", sep="\n")
    console.print(found.label_issues.issues.caveat(ADVICE), assumption(found.label_issues))
