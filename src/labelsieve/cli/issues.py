"""``labelsieve issues``: the labels most likely to be wrong, and a file to review them in."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from labelsieve._text import count, printable
from labelsieve.cli._console import lay_out, messages, progress, results, short, typed, warnings_as_notes
from labelsieve.cli._options import (
    AsJson,
    Checked,
    DataOptions,
    Html,
    Quiet,
    check_outputs,
    describe_columns,
    with_data_options,
    write_text,
)
from labelsieve.cli.fitting import told_as_data_errors
from labelsieve.inspection.auditing.doubts import doubt_subject
from labelsieve.inspection.auditing.subject import Subject
from labelsieve.inspection.label_issues import ENOUGH_CHECKS, LabelIssues, draw_candidates, find_label_issues
from labelsieve.inspection.review import RowNames, issues_text, n_verdicts, places_text, read_review
from labelsieve.io import Dataset, DatasetError
from labelsieve.io.dataset import known_wrong

EPILOG = """\
\b
Examples:
  labelsieve issues data.csv --labels 'label_*' --id name --html page.html
  labelsieve issues data.csv --labels 5 --id name --draw 50 -o check.csv
  labelsieve issues data.csv --labels 5 --checked check.csv -o review.csv
  labelsieve apply-review data.csv review.csv --labels 5 -o clean.csv

In a review file the verdict is keep, remove or nothing. Random labels, as --draw picks them, give unbiased
probabilities.
"""

_SHOWN, _LABELS_SHOWN = 10, 20
_PREDICTION = "Prediction options"
_ADVICE = f"Check {ENOUGH_CHECKS} that --draw {ENOUGH_CHECKS} --output FILE picks, then give that file to --checked."


@with_data_options
def issues(
    data: DataOptions,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Review file: all labels, least supported first."
        ),
    ] = None,
    draw: Annotated[
        int | None,
        typer.Option("--draw", metavar="N", min=1, help="Write N random labels instead, e.g. 50."),
    ] = None,
    checked: Checked = None,
    worst: Annotated[
        int | None,
        typer.Option("--worst", "-n", metavar="N", min=1, help="Number of labels to list. Default: 10."),
    ] = None,
    html: Html = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    kernel: Annotated[
        Literal["auto", "linear", "rbf"],
        typer.Option(metavar="KERNEL", rich_help_panel=_PREDICTION, help="auto, linear or rbf."),
    ] = "auto",
    use_labels: Annotated[
        bool,
        typer.Option(
            "--use-labels/--no-labels", rich_help_panel=_PREDICTION, help="Use the other labels of a row."
        ),
    ] = True,
    each_row_has_truth: Annotated[
        bool,
        typer.Option("--each-row-has-truth", rich_help_panel=_PREDICTION, help="Every row has a true label."),
    ] = False,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, rich_help_panel=_PREDICTION, help="Random seed of --draw.")
    ] = 0,
) -> None:
    """List the labels most likely to be wrong.

    Every label is predicted from the other rows. "Least supported 2 %" means that only 2 % of all labels have less
    support. "Flagged" counts labels that are more likely wrong than right and have no verdict.
    """
    _check_usage(output, draw, checked, html)
    check_outputs(data, {"--output": output, "--html": html}, reads=[checked])
    data = data.with_id_of(checked)
    console = messages(quiet=quiet)
    with progress(console) as status:
        status(f"reading {Path(data.files[0]).name}")
        dataset = data.read(console)
        describe_columns(dataset, console)
        names = None if dataset.id_column is None else tuple(map(str, dataset.row_ids))
        ids = None if names is None else RowNames(str(dataset.id_column), names)
        if draw is not None:
            assert output is not None  # checked above
            with told_as_data_errors(dataset):
                rows, places = draw_candidates(dataset.candidates, draw, random_state=seed)
            write_text(output, places_text(rows, places, dataset.label_names, ids))
            few = "" if len(rows) >= ENOUGH_CHECKS else f" Probabilities need {ENOUGH_CHECKS}."
            console.print(
                f"wrote {count(len(rows), 'random label')} to {printable(output)}: write keep or remove into the "
                f"verdict column, then give the file to --checked.{few}"
            )
            return
        verdicts = None
        if checked is not None:
            verdicts = read_review(checked, dataset.label_names, ids, dataset.candidates).checked
            if not len(verdicts[0]):
                console.print(f"note: {printable(checked)} holds no verdict yet.")
        status("checking the labels")
        options: dict[str, Any] = {
            "kernel": kernel,
            "use_labels": use_labels,
            "each_row_has_truth": each_row_has_truth,
            "checked": verdicts,
        }
        with warnings_as_notes(console), told_as_data_errors(dataset):
            if html is None:
                found = find_label_issues(
                    dataset.X, dataset.candidates, label_names=dataset.label_names, **options
                )
            else:
                subject = Subject.of_dataset(dataset, names)
                doubts = doubt_subject(subject, **options)
                found = doubts.issues
    console.print(
        f"{printable(dataset.name)}: {count(dataset.X.shape[0], 'row')}, {count(dataset.X.shape[1], 'feature')}, "
        f"{count(len(dataset.label_names), 'label')}, {count(found.n_candidates, 'candidate')}"
    )
    if output is not None:
        write_text(output, issues_text(found, ids, worst))
    if html is not None:
        from labelsieve.inspection.page import page_of_issues

        write_text(html, page_of_issues(subject, doubts, advice=_ADVICE, command=typed()))
    if as_json:
        typer.echo(json.dumps(_as_dict(found, dataset, ids, worst or _SHOWN), indent=2, allow_nan=False))
    else:
        _print_tables(found, dataset, ids, worst or _SHOWN, results())
    for written in filter(None, (output, html)):
        console.print(f"wrote {printable(written)}")


def _check_usage(output: Path | None, draw: int | None, checked: Path | None, html: Path | None) -> None:
    """Reject combinations that cannot be meant, and an output that holds verdicts."""
    if draw is not None:
        for option, value in {"--html": html, "--checked": checked}.items():
            if value is not None:
                raise typer.BadParameter(f"cannot be combined with {option}", param_hint="--draw")
        if output is None:
            raise typer.BadParameter("needs --output, the file to write", param_hint="--draw")
    if output is None:
        return
    if output.suffix.lower() != ".csv":
        raise typer.BadParameter(f"{str(output)!r} must end in .csv", param_hint="--output")
    n_given = n_verdicts(output) if output.is_file() else 0
    if n_given:
        raise DatasetError(
            f"{output}: holds {count(n_given, 'verdict')}, which would be lost; write to another file and use this "
            "one with --checked."
        )


def _print_tables(
    found: LabelIssues, dataset: Dataset, ids: RowNames | None, n_shown: int, console: Console
) -> None:
    """Print the least supported labels without a verdict, and a summary by label."""
    shown = found.unchecked[:n_shown]
    if len(shown):
        rows, labels = found.rows[shown], found.labels[shown]
        columns = {
            "row": [short(row if ids is None else ids.names[row]) for row in rows],
            "label": [dataset.label_names[label] for label in labels],
        }
        if found.shown_probability is not None:
            columns["probability"] = [f"{value:.2f}" for value in found.shown_probability[rows, labels]]
        else:
            columns["least supported"] = [f"{percent:.3g} %" for percent in found.percentiles[shown]]
        wrong = known_wrong(dataset, rows, labels)
        if wrong is not None:
            columns["truth"] = ["wrong" if is_wrong else "right" for is_wrong in wrong]
        console.print(lay_out(console.width, columns, long="label", title="labels to check first"))
        console.print()
    every = sorted(found.by_label(), key=lambda summary: -summary.n_to_look_at)
    listed = every[:_LABELS_SHOWN]
    columns = {
        "label": [summary.label for summary in listed],
        "rows": [str(summary.n_candidates) for summary in listed],
        "flagged": [str(summary.n_to_look_at) for summary in listed],
    }
    if found.has_probabilities:
        columns["wrong, estimated"] = [f"{summary.share_wrong:.0%}" for summary in listed]
    title = "labels" if len(every) <= _LABELS_SHOWN else f"labels, {_LABELS_SHOWN} of {len(every)}"
    console.print(lay_out(console.width, columns, long="label", title=title))
    console.print()
    console.print(found.caveat(_ADVICE))


def _as_dict(found: LabelIssues, dataset: Dataset, ids: RowNames | None, n_listed: int) -> dict[str, Any]:
    """Return values for JSON."""
    places = found.unchecked[:n_listed]
    rows, labels = found.rows[places], found.labels[places]
    wrong = known_wrong(dataset, rows, labels)
    listed = []
    for at, (row, label) in enumerate(zip(rows.tolist(), labels.tolist(), strict=True)):
        one: dict[str, Any] = {
            "sample": row,
            "label": dataset.label_names[label],
            "rank": int(places[at]) + 1,
        }
        if ids is not None:
            one["id"] = ids.names[row]
        one["least_supported_percent"] = float(found.percentiles[places[at]])
        if found.shown_probability is not None:
            one["probability"] = float(found.shown_probability[row, label])
        if wrong is not None:
            one["wrong"] = bool(wrong[at])
        listed.append(one)
    unknown = set() if found.has_probabilities else {"share_wrong"}
    return {
        "data": dataset.name,
        "n_samples": dataset.X.shape[0],
        "n_labels": len(dataset.label_names),
        "n_candidates": found.n_candidates,
        "n_checked": found.n_checked,
        **({"share_wrong": found.share_wrong} if found.has_probabilities else {}),
        "caveat": found.caveat(_ADVICE),
        "candidates": listed,
        "labels": [
            {name: value for name, value in asdict(summary).items() if name not in unknown}
            for summary in found.by_label()
        ],
    }
