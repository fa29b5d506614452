"""``labelsieve issues``: which least supported candidate labels, and a file to review them in."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from labelsieve._text import count, printable
from labelsieve.cli.console import messages, results, typed
from labelsieve.cli.fitting import progress, told_as_data_errors, warnings_as_notes
from labelsieve.cli.opening import LabelSep, Role, TableOptions, Text, open_data
from labelsieve.cli.tables import lay_out, short
from labelsieve.cli.target import (
    Candidates,
    Files,
    Identifier,
    Ignore,
    Labels,
    Missing,
    Nominal,
    check_targets,
    find_target,
    naming_column,
    reading_options,
    refuse_repeated,
    refuse_without_jinja,
    told_if_unwritable,
)
from labelsieve.inspection.audit import inspect_dataset
from labelsieve.inspection.label_issues import ENOUGH_CHECKS, LabelIssues, draw_candidates
from labelsieve.inspection.review import (
    RowNames,
    issues_text,
    n_verdicts,
    places_text,
    read_review,
)
from labelsieve.inspection.wording import headline
from labelsieve.io import Dataset, DatasetError
from labelsieve.io.dataset import known_wrong
from labelsieve.io.writing import replacing

EPILOG = """\
Examples:

labelsieve issues data.csv --labels 'label_*' --ignore name

labelsieve issues data.csv --labels 5 --id name --output review.csv

labelsieve issues data.csv --labels 5 --id name --html page.html

labelsieve issues data.csv --labels 5 --id name --draw 50 --output check.csv

labelsieve issues data.csv --labels 5 --id name --checked check.csv --output review.csv

labelsieve apply-review data.csv review.csv --labels 5 --id name -o clean.csv

In a review file the verdict is keep, remove or nothing. Random candidates, as --draw picks them, make probabilities;
the doubtful ones alone would paint too dark a picture.
"""

_SHOWN, _LABELS_SHOWN = 10, 20
_ADVICE = f"Check {ENOUGH_CHECKS} that --draw {ENOUGH_CHECKS} --output FILE picks, then give that file to --checked."


class Kernel(StrEnum):
    """How the features predict labels."""

    auto = "auto"
    linear = "linear"
    rbf = "rbf"


def issues(
    files: Files,
    labels: Labels = None,
    candidates: Candidates = None,
    ignore: Ignore = None,
    nominal: Nominal = None,
    missing: Missing = None,
    identifier: Identifier = None,
    label_sep: LabelSep = None,
    text: Text = None,
    role: Role = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write all candidates, worst first, to this CSV file for review."
        ),
    ] = None,
    draw: Annotated[
        int | None,
        typer.Option(
            "--draw",
            metavar="N",
            min=1,
            help="Write N random candidates instead, for a first check; 50 are enough.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Which random candidates --draw picks.")] = 0,
    checked: Annotated[
        Path | None, typer.Option("--checked", help="Review file whose verdicts to learn from.")
    ] = None,
    worst: Annotated[
        int | None,
        typer.Option(
            "--worst",
            "-n",
            metavar="N",
            min=1,
            help="List N candidates that nobody checked, here (10 unless given) and in the file (all).",
        ),
    ] = None,
    kernel: Annotated[
        Kernel, typer.Option("--kernel", help="How the features predict; 'auto' takes what predicts better.")
    ] = Kernel.auto,
    use_labels: Annotated[
        bool, typer.Option("--use-labels/--no-labels", help="Whether to ask the other labels of a row too.")
    ] = True,
    each_row_has_truth: Annotated[
        bool,
        typer.Option("--each-row-has-truth", help="State that every row has a right candidate, if it is so."),
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write a page to explore, with reasons.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No notes, no progress; errors only.")] = False,
) -> None:
    """List the least supported candidate labels, and write a file to review them in.

    Every candidate is predicted from the other rows by features and labels. "Least supported 2 %" says that a candidate
    is among the 2 % that the prediction supports least; "flagged" counts the candidates of a label that look rather
    wrong than right and have no verdict.
    """
    _check_usage(files, output, draw, checked, html)
    check_targets((*files, labels, candidates, checked), {"--output": output, "--html": html}, data="")
    options = reading_options(
        labels=labels, candidates=candidates, ignore=ignore, nominal=nominal, missing=missing
    )
    wishes = TableOptions.of(label_sep, text, role)
    column = naming_column(identifier, checked)
    _spare_verdicts(output)
    console = messages(quiet=quiet)
    entry = find_target(files, options, console)
    with progress(console) as name_activity:
        name_activity(f"reading {printable(Path(files[0]).name)}")
        data = open_data(files, entry, options, wishes, column)
        data.tell(console, is_coded=entry is None and options.nominal != "onehot")
        dataset, ids = data.dataset, data.ids
        if draw is not None:
            assert output is not None  # --draw asks for it
            with told_as_data_errors(dataset):
                rows, places = draw_candidates(dataset.candidates, draw, random_state=seed)
            _write(output, places_text(rows, places, dataset.label_names, ids))
            console.print(_drawn(len(rows), output))
            return
        review = (
            None if checked is None else read_review(checked, dataset.label_names, ids, dataset.candidates)
        )
        if checked is not None and review is not None and not len(review.checked[0]):
            console.print(
                f"note: {printable(checked)} holds no verdict yet; write keep or remove into its verdict column."
            )
        name_activity("asking the other rows")
        with warnings_as_notes(console), told_as_data_errors(dataset):
            audit = inspect_dataset(
                dataset,
                command="issues",
                check_labels=True,
                checked=None if review is None else review.checked,
                label_options={
                    "kernel": kernel.value,
                    "use_labels": use_labels,
                    "each_row_has_truth": each_row_has_truth,
                    "n_listed": worst,
                },
                command_line=typed(),
            )
    assert audit.label_issues is not None
    found = audit.label_issues.issues
    console.print(headline(audit))
    if output is not None:
        _write(output, issues_text(found, ids, worst))
    if html is not None:
        _write(html, audit.to_html())
    if as_json:
        typer.echo(audit.to_json(n_issues=worst or _SHOWN), nl=False)
    else:
        _print_tables(found, dataset, ids, worst or _SHOWN, results())
    for written in filter(None, (output, html)):
        console.print(f"wrote {printable(written)}")


def _check_usage(
    files: Sequence[str], output: Path | None, draw: int | None, checked: Path | None, html: Path | None
) -> None:
    """Refuse what cannot be meant or done, whatever the data."""
    refuse_repeated(files)
    refuse_without_jinja(html)
    if draw is not None and html is not None:
        raise typer.BadParameter("give one of --draw and --html, not both", param_hint="--draw")
    if draw is not None and output is None:
        raise typer.BadParameter("needs --output, the file to write them to", param_hint="--draw")
    if draw is not None and checked is not None:
        raise typer.BadParameter("give one of --draw and --checked, not both", param_hint="--draw")
    if output is not None and output.suffix.lower() != ".csv":
        raise typer.BadParameter(f"{str(output)!r} must end in .csv", param_hint="--output")


def _spare_verdicts(output: Path | None) -> None:
    """Refuse to overwrite the work of a person."""
    if output is None or not output.is_file():
        return
    n_given = n_verdicts(output)
    if n_given:
        raise DatasetError(
            f"{output}: holds {count(n_given, 'verdict')}, which would be lost; name another file, and use them with "
            "--checked."
        )


def _write(path: Path, text: str) -> None:
    with told_if_unwritable(path), replacing(path) as stream:
        stream.write(text.encode())
        stream.flush()


def _drawn(n_drawn: int, output: Path) -> str:
    few = "" if n_drawn >= ENOUGH_CHECKS else f" Probabilities need {ENOUGH_CHECKS}."
    return (
        f"wrote {count(n_drawn, 'random candidate')} to {printable(output)}: write keep or remove into the verdict "
        f"column, then give the file to --checked.{few}"
    )


def _print_tables(
    found: LabelIssues, dataset: Dataset, ids: RowNames | None, n_shown: int, console: Console
) -> None:
    """Print the worst candidates that nobody checked, the labels, and what to make of them."""
    shown = found.unchecked[:n_shown]
    if len(shown):
        rows, labels = found.rows[shown], found.labels[shown]
        columns = {"sample": [str(row) for row in rows]}
        if ids is not None:
            columns = {"id": [short(ids.names[row]) for row in rows]}
        columns["label"] = [dataset.label_names[label] for label in labels]
        if found.shown_probability is not None:
            columns["chance right"] = [f"{value:.2f}" for value in found.shown_probability[rows, labels]]
        else:
            columns["least supported"] = [f"{percent:.3g} %" for percent in found.percentiles[shown]]
        wrong = known_wrong(dataset, rows, labels)
        if wrong is not None:
            columns["truth"] = ["wrong" if is_wrong else "right" for is_wrong in wrong]
        console.print(lay_out(console.width, columns, long="label", title="least supported candidate labels"))
        console.print()
    listed = sorted(found.by_label(), key=lambda label: -label.n_flagged)
    columns = {
        "label": [label.label for label in listed[:_LABELS_SHOWN]],
        "candidates": [str(label.n_candidates) for label in listed[:_LABELS_SHOWN]],
        "flagged": [str(label.n_flagged) for label in listed[:_LABELS_SHOWN]],
    }
    if found.has_probabilities:
        columns["wrong, estimated"] = [f"{label.share_wrong:.0%}" for label in listed[:_LABELS_SHOWN]]
    title = "labels" if len(listed) <= _LABELS_SHOWN else f"labels, {_LABELS_SHOWN} of {len(listed)}"
    console.print(lay_out(console.width, columns, long="label", title=title))
    console.print()
    console.print(found.caveat(_ADVICE))
