"""``labelsieve issues``: list labels that may be wrong or missing, and write them to a review file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from labelsieve._text import count, short
from labelsieve.cli._console import command_line, lay_out, results
from labelsieve.cli._options import (
    AsJson,
    DataOptions,
    Html,
    Kernel,
    Quiet,
    RowTruth,
    UseLabels,
    check_outputs,
    option,
    parse_share,
    prediction_options,
    reading,
    with_data_options,
    write_text,
)
from labelsieve.cli._tables import ADVICE, issues_table
from labelsieve.inspection._reviews import OPEN, Review
from labelsieve.inspection.audit import inspect_dataset
from labelsieve.inspection.guarantees import Correction
from labelsieve.inspection.label_issues import (
    MIN_REVIEWED,
    LabelIssues,
    draw_candidates,
    find_label_issues,
)
from labelsieve.inspection.label_studio import write_tasks
from labelsieve.inspection.result import Audit
from labelsieve.inspection.review import (
    issues_to_csv,
    issues_to_frame,
    n_verdicts,
    read_review,
    review_to_csv,
    review_to_frame,
)
from labelsieve.inspection.wording import assumption, describe_correction, describe_guarantees, headline
from labelsieve.io import Dataset, DatasetError

EPILOG = """\
\b
Examples:
  labelsieve issues data.csv --labels 'label_*' --id name --html page.html
  labelsieve issues data.csv --labels 5 --draw 50 -o review.csv
  labelsieve issues data.csv --labels 5 --checked review.csv --remove-at 10% -o all.csv
  labelsieve apply-review data.csv all.csv --labels 5 -o clean.csv

Verdicts are right (the row should have the label), wrong, unsure or empty. A completely reviewed draw tells how many
labels are wrong, and which can be removed without review.
"""

_SHOWN, _LABELS_SHOWN = 10, 20
_PREDICTION = "Prediction options"
_REVIEW = "Review options"


@with_data_options
def issues(
    data: DataOptions,
    output: Annotated[
        Path | None,
        option("FILE", "Review file to write, most likely errors first.", "--output", "-o"),
    ] = None,
    form: Annotated[
        Literal["csv", "label-studio"],
        option("FORMAT", "Format of the review file: csv or label-studio.", "--format"),
    ] = "csv",
    which: Annotated[
        Literal["wrong", "missing", "both"],
        option("KIND", "Labels to list: wrong, missing or both."),
    ] = "wrong",
    worst: Annotated[
        int | None, option("N", "Number of labels to list. Default: 10.", "--worst", "-n", min=1)
    ] = None,
    html: Html = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    draw: Annotated[
        int | None, option("N", "Random labels to write instead, e.g. 50.", min=1, panel=_REVIEW)
    ] = None,
    least_supported: Annotated[
        str | None, option("SHARE", "Draw from the least supported share, e.g. 20%.", panel=_REVIEW)
    ] = None,
    unlisted: Annotated[
        bool,
        typer.Option(
            "--unlisted",
            rich_help_panel=_REVIEW,
            help="Draw from the absent labels outside the list of the best supported ones.",
        ),
    ] = False,
    checked: Annotated[Path | None, option("FILE", "Review file with your verdicts.", panel=_REVIEW)] = None,
    remove_at: Annotated[
        str | None,
        option("SHARE", "Propose removals; largest share of mistakes.", panel=_REVIEW),
    ] = None,
    add_at: Annotated[
        str | None,
        option("SHARE", "Propose additions; largest share of mistakes.", panel=_REVIEW),
    ] = None,
    kernel: Kernel = "auto",
    use_labels: UseLabels = True,
    row_truth: RowTruth = None,
    seed: Annotated[int, option("N", "Random seed of --draw.", min=0, panel=_PREDICTION)] = 0,
) -> None:
    """List labels that may be wrong or missing.

    A model of the other rows predicts each label. Support near 1 speaks for a label, support near 0 against
    it. Flagged labels are more likely errors than not and have no verdict.
    """
    share = None if least_supported is None else parse_share(least_supported, "--least-supported")
    bounds = {
        kind: None if text is None else parse_share(text, name)
        for kind, name, text in (("wrong", "--remove-at", remove_at), ("missing", "--add-at", add_at))
    }
    _check_usage(output, form, draw, checked, html, bounds, least_supported)
    if unlisted and (draw is None or which != "missing"):
        raise typer.BadParameter("needs --which missing and --draw", param_hint="--unlisted")
    if draw is not None and which == "both":
        raise typer.BadParameter("must be wrong or missing with --draw, got 'both'", param_hint="--which")
    kinds = _kinds(which, bounds)
    check_outputs(data, {"--output": output, "--html": html}, reads=[checked])
    data = data.with_id_of(checked)
    prediction = prediction_options(kernel, use_labels, row_truth)
    with reading(data, quiet=quiet) as (dataset, console, status):
        review = None if checked is None else read_review(checked, dataset)
        if draw is not None:
            assert output is not None  # checked above
            drawn = _draw(dataset, review, which, draw, share, unlisted, seed, prediction)
            if form == "csv":
                write_text(output, review_to_csv(drawn, dataset))
            else:
                write_text(output, write_tasks(review_to_frame(drawn, dataset), dataset))
            few = (
                ""
                if which == "missing" or len(drawn.open) >= MIN_REVIEWED
                else f" At least {MIN_REVIEWED} verdicts are needed for probabilities."
            )
            console.print(
                f"wrote {count(len(drawn.open), 'random label')} to {output}. Write right, wrong or unsure into the "
                f"verdict column, then pass the file to --checked.{few}"
            )
            return
        if review is not None and (review.answers == OPEN).all():
            console.print(f"note: {checked} contains no verdicts yet.")
        found = inspect_dataset(
            dataset,
            command="issues",
            check_labels=True,
            checked=review,
            label_options={**prediction, "which": kinds, "n_listed": worst},
            command_line=command_line(),
            progress=status.advance,
        )
        assert found.label_issues is not None
        listed = found.label_issues.issues
        corrections = _corrections(listed, bounds)
    console.print(headline(found))
    if output is not None:
        proposed = list(corrections.values())
        if form == "csv":
            write_text(output, issues_to_csv(listed, dataset, worst, proposed))
        else:
            write_text(
                output, write_tasks(issues_to_frame(listed, dataset, worst, proposed), dataset, listed)
            )
    if html is not None:
        write_text(html, found.to_html())
    if as_json:
        typer.echo(found.to_json(n_issues=worst or _SHOWN), nl=False)
    else:
        for part in filter(None, (listed, listed.missing)):
            is_asked = bounds[part.which] is not None
            _print_tables(
                found,
                part,
                worst or _SHOWN,
                results(quiet=quiet),
                corrections.get(part.which),
                is_asked=is_asked,
            )
    for written in filter(None, (output, html)):
        console.print(f"wrote {written}")


def _kinds(which: str, bounds: dict[str, float | None]) -> str:
    """Return the kinds of labels to rank: those asked for and those that a bound is about."""
    kinds = {kind for kind, bound in bounds.items() if bound is not None} | {which}
    return kinds.pop() if len(kinds) == 1 else "both"


def _draw(
    dataset: Dataset,
    review: Review | None,
    which: str,
    n: int,
    share: float | None,
    is_unlisted: bool,
    seed: int,
    prediction: dict[str, Any],
) -> Review:
    """Draw labels to review; a first draw from all candidates does not need their support."""
    if review is None and which == "wrong" and share is None:
        return Review.of_draw(*draw_candidates(dataset.candidates, n, random_state=seed))
    issues = find_label_issues(
        dataset.X,
        dataset.candidates,
        which=which,
        checked=review,
        row_groups=dataset.groups,
        label_names=dataset.label_names,
        row_ids=range(dataset.X.shape[0]),
        **prediction,
    )
    return issues.draw(n, least_supported=share or 1.0, is_unlisted=is_unlisted, random_state=seed)


def _corrections(issues: LabelIssues, bounds: dict[str, float | None]) -> dict[str, Correction]:
    """Compute the corrections within the bounds, by kind, if there are complete draws."""
    found = {}
    for part in filter(None, (issues, issues.missing)):
        bound = bounds[part.which]
        if bound is not None and part.complete_draws():
            found[part.which] = part.removable(bound) if part.which == "wrong" else part.addable(bound)
    return found


def _check_usage(
    output: Path | None,
    form: str,
    draw: int | None,
    checked: Path | None,
    html: Path | None,
    bounds: dict[str, float | None],
    least_supported: str | None,
) -> None:
    """Reject options that exclude each other, and an output file that contains verdicts."""
    if draw is not None:
        for option, value in {
            "--html": html,
            "--remove-at": bounds["wrong"],
            "--add-at": bounds["missing"],
        }.items():
            if value is not None:
                raise typer.BadParameter(f"cannot be combined with {option}", param_hint="--draw")
        if output is None:
            raise typer.BadParameter("needs --output", param_hint="--draw")
    elif least_supported is not None:
        raise typer.BadParameter("needs --draw", param_hint="--least-supported")
    for option, kind in {"--remove-at": "wrong", "--add-at": "missing"}.items():
        if bounds[kind] is not None and checked is None:
            raise typer.BadParameter("needs --checked", param_hint=option)
    if output is None:
        return
    ending = ".csv" if form == "csv" else ".json"
    if output.suffix.lower() != ending:
        raise typer.BadParameter(f"{str(output)!r} must end in {ending}", param_hint="--output")
    n_given = n_verdicts(output) if output.is_file() else 0
    if n_given:
        raise DatasetError(
            f"{output}: contains {count(n_given, 'verdict')} that would be overwritten; write to another "
            "file and pass this one to --checked."
        )


def _print_tables(
    found: Audit,
    issues: LabelIssues,
    n_shown: int,
    console: Console,
    correction: Correction | None,
    *,
    is_asked: bool,
) -> None:
    """Print the labels to review first, a summary by label, and what the reviewed labels promise."""
    is_missing = issues.which == "missing"
    console.print(issues_table(found, console, n_shown, missing=is_missing), "", sep="\n")
    by_label = issues.label_summary()
    every = by_label.sort_values("n_flagged", ascending=False, kind="stable")
    first = every.head(_LABELS_SHOWN)
    columns = {"label": first["label"].map(short).tolist()}
    if not is_missing:
        columns["rows"] = first["n_candidates"].tolist()
    columns["flagged"] = first["n_flagged"].tolist()
    if "share_wrong" in first:
        columns["estimated wrong"] = first["share_wrong"].map("{:.0%}".format).tolist()
    if "low" in first:
        columns["95% interval"] = [
            "" if low != low else f"{low:.0%} to {high:.0%}"
            for low, high in zip(first["low"], first["high"], strict=True)
        ]
    title = "labels" if len(every) <= _LABELS_SHOWN else f"{_LABELS_SHOWN} of {len(every)} labels"
    console.print(lay_out(console, columns, long="label", title=title), "", sep="\n")
    for text in (
        describe_guarantees(issues, is_asked=is_asked),
        describe_correction(issues, correction) if correction is not None else "",
        issues.caveat(ADVICE),
        "" if is_missing or found.label_issues is None else assumption(found.label_issues),
    ):
        if text:
            console.print(text)
