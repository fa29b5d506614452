"""``labelsieve issues``: list the labels most likely to be wrong and write them to a review file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from labelsieve._text import count, short
from labelsieve.cli._console import command_line, lay_out, results
from labelsieve.cli._options import (
    AsJson,
    Checked,
    DataOptions,
    Html,
    Quiet,
    check_outputs,
    option,
    reading,
    with_data_options,
    write_text,
)
from labelsieve.cli._tables import ADVICE, issues_table
from labelsieve.inspection.audit import inspect_dataset
from labelsieve.inspection.label_issues import MIN_REVIEWED, LabelIssues, draw_candidates
from labelsieve.inspection.result import Audit
from labelsieve.inspection.review import candidates_to_csv, issues_to_csv, n_verdicts, read_review
from labelsieve.inspection.wording import headline
from labelsieve.io import DatasetError

EPILOG = """\
\b
Examples:
  labelsieve issues data.csv --labels 'label_*' --id name --html page.html
  labelsieve issues data.csv --labels 5 --id name --draw 50 -o check.csv
  labelsieve issues data.csv --labels 5 --checked check.csv -o review.csv
  labelsieve apply-review data.csv review.csv --labels 5 -o clean.csv

The verdict in a review file is keep, remove or empty. Verdicts on random labels from --draw give unbiased
probabilities.
"""

_SHOWN, _LABELS_SHOWN = 10, 20
_PREDICTION = "Prediction options"


@with_data_options
def issues(
    data: DataOptions,
    output: Annotated[
        Path | None,
        option("FILE", "Review file to write: all labels, least supported first.", "--output", "-o"),
    ] = None,
    draw: Annotated[int | None, option("N", "Random labels to write instead, e.g. 50.", min=1)] = None,
    checked: Checked = None,
    worst: Annotated[
        int | None, option("N", "Number of labels to list. Default: 10.", "--worst", "-n", min=1)
    ] = None,
    html: Html = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    kernel: Annotated[
        Literal["auto", "linear", "rbf"], option("KERNEL", "Kernel: auto, linear or rbf.", panel=_PREDICTION)
    ] = "auto",
    use_labels: Annotated[
        bool,
        typer.Option(
            "--use-labels/--no-labels",
            rich_help_panel=_PREDICTION,
            help="Use the other labels of a row.",
        ),
    ] = True,
    each_row_has_truth: Annotated[
        bool,
        typer.Option(
            "--each-row-has-truth",
            rich_help_panel=_PREDICTION,
            help="Assume at least one true label per row.",
        ),
    ] = False,
    seed: Annotated[int, option("N", "Random seed of --draw.", min=0, panel=_PREDICTION)] = 0,
) -> None:
    """List the labels most likely to be wrong.

    A model of the other rows predicts each label. Support near 1 speaks for a label, support near 0 against
    it. Flagged labels are more likely wrong than right and have no verdict.
    """
    _check_usage(output, draw, checked, html)
    check_outputs(data, {"--output": output, "--html": html}, reads=[checked])
    data = data.with_id_of(checked)
    with reading(data, quiet=quiet) as (dataset, console, status):
        if draw is not None:
            assert output is not None  # checked above
            rows, labels = draw_candidates(dataset.candidates, draw, random_state=seed)
            write_text(output, candidates_to_csv(rows, labels, dataset))
            few = (
                ""
                if len(rows) >= MIN_REVIEWED
                else f" At least {MIN_REVIEWED} verdicts are needed for probabilities."
            )
            console.print(
                f"wrote {count(len(rows), 'random label')} to {output}. Write keep or remove into the "
                f"verdict column, then pass the file to --checked.{few}"
            )
            return
        verdicts = None if checked is None else read_review(checked, dataset).checked
        if verdicts is not None and not len(verdicts[0]):
            console.print(f"note: {checked} contains no verdicts yet.")
        found = inspect_dataset(
            dataset,
            command="issues",
            check_labels=True,
            checked=verdicts,
            label_options={
                "kernel": kernel,
                "use_labels": use_labels,
                "each_row_has_truth": each_row_has_truth,
                "n_listed": worst,
            },
            command_line=command_line(),
            progress=status.advance,
        )
    assert found.label_issues is not None
    listed = found.label_issues.issues
    console.print(headline(found))
    if output is not None:
        write_text(output, issues_to_csv(listed, dataset, worst))
    if html is not None:
        write_text(html, found.to_html())
    if as_json:
        typer.echo(found.to_json(n_issues=worst or _SHOWN), nl=False)
    else:
        _print_tables(found, listed, worst or _SHOWN, results())
    for written in filter(None, (output, html)):
        console.print(f"wrote {written}")


def _check_usage(output: Path | None, draw: int | None, checked: Path | None, html: Path | None) -> None:
    """Reject options that cannot be combined, and an output file that contains verdicts."""
    if draw is not None:
        for option, value in {"--html": html, "--checked": checked}.items():
            if value is not None:
                raise typer.BadParameter(f"cannot be combined with {option}", param_hint="--draw")
        if output is None:
            raise typer.BadParameter("needs --output", param_hint="--draw")
    if output is None:
        return
    if output.suffix.lower() != ".csv":
        raise typer.BadParameter(f"{str(output)!r} must end in .csv", param_hint="--output")
    n_given = n_verdicts(output) if output.is_file() else 0
    if n_given:
        raise DatasetError(
            f"{output}: contains {count(n_given, 'verdict')} that would be overwritten; write to another "
            "file and pass this one to --checked."
        )


def _print_tables(found: Audit, issues: LabelIssues, n_shown: int, console: Console) -> None:
    """Print the least supported labels without a verdict and a summary by label."""
    console.print(issues_table(found, console, n_shown), "", sep="\n")
    every = found.labels.sort_values("n_flagged", ascending=False, kind="stable")
    first = every.head(_LABELS_SHOWN)
    columns = {
        "label": first["label"].map(short).tolist(),
        "rows": first["n_candidates"].tolist(),
        "flagged": first["n_flagged"].tolist(),
    }
    if issues.has_probabilities:
        columns["estimated wrong"] = first["share_wrong"].map("{:.0%}".format).tolist()
    title = "labels" if len(every) <= _LABELS_SHOWN else f"{_LABELS_SHOWN} of {len(every)} labels"
    console.print(lay_out(console, columns, long="label", title=title), "", sep="\n")
    console.print(issues.caveat(ADVICE))
