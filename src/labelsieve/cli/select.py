"""``labelsieve select``: rank the features of a file."""

from __future__ import annotations

import io
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, RenderableType

from labelsieve._base import BaseSelector, check_parameters
from labelsieve._text import closest, count, csv_text, printable
from labelsieve.cli._blocks import check_block_usage, dask_cluster, parse_rows, size_hint
from labelsieve.cli._console import (
    PlainConsole,
    free_width,
    lay_out,
    messages,
    progress,
    results,
    short,
    typed,
    warnings_as_notes,
)
from labelsieve.cli._options import (
    DataOptions,
    Html,
    Quiet,
    check_outputs,
    data_errors,
    describe_columns,
    parse_amount,
    parse_value,
    with_data_options,
    write_errors,
    write_text,
)
from labelsieve.cli.methods import find_method
from labelsieve.inspection.audit import inspect_dataset
from labelsieve.inspection.ranking import Ranking
from labelsieve.inspection.result import Audit
from labelsieve.inspection.wording import arbitrary_note, size_note, stability_note
from labelsieve.io.copies import write_selected

EPILOG = """\
\b
Examples:
  labelsieve select data.csv --labels 'label_*' -k 20% --output ranking.csv
  labelsieve select data.csv --labels 2 -k auto --stability 30 --html page.html
  labelsieve select data.csv --labels 2 -k 2 --write-data small.csv
  labelsieve select data.arff --method pml-fsmir -p max_iter=500 --json
"""

#: The default method of `select` and `demo`.
DEFAULT_METHOD = "evidence"
#: How to learn more from the label check.
ADVICE = "Check some by hand: labelsieve issues FILE --draw 50 -o review.csv."
N_PERMUTATIONS = 199

_AUTOMATIC = "auto"
_ISSUES_SHOWN, _ISSUES_LISTED = 5, 20
_MORE = "More options"
# Below this width only one number per feature is shown.
_TWO_MEASURES = 60
_MIN_MEMBER = 12


class Format(StrEnum):
    """Formats of the ranking."""

    table = "table"
    csv = "csv"
    json = "json"


@with_data_options
def select(
    data: DataOptions,
    features: Annotated[
        str | None,
        typer.Option(
            "--features",
            "-k",
            metavar="K",
            help="Number to keep: an integer, a fraction (20%), or 'auto'. Default: half.",
        ),
    ] = None,
    method: Annotated[
        str, typer.Option("--method", "-m", metavar="NAME", help="Method, see labelsieve methods.")
    ] = DEFAULT_METHOD,
    stability: Annotated[
        int, typer.Option("--stability", metavar="N", min=0, help="Number of subsamples, e.g. 30.")
    ] = 0,
    check_labels: Annotated[
        bool, typer.Option("--check-labels", help="List the labels most likely to be wrong, too.")
    ] = False,
    html: Html = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON, like --format json.")] = False,
    quiet: Quiet = False,
    parameters: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            "-p",
            metavar="NAME=VALUE",
            rich_help_panel=_MORE,
            help="Parameter of the method. Repeatable.",
        ),
    ] = None,
    chunk_rows: Annotated[
        str | None,
        typer.Option(
            metavar="ROWS",
            rich_help_panel=_MORE,
            help="Rows per block, or 'auto', for large files.",
        ),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", rich_help_panel=_MORE, help="Dask cluster, with --chunk-rows."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            rich_help_panel=_MORE,
            help="File for the ranking: .csv, .json or text.",
        ),
    ] = None,
    form: Annotated[
        Format | None,
        typer.Option("--format", metavar="FORMAT", rich_help_panel=_MORE, help="table, csv or json."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", rich_help_panel=_MORE, help="List all features, not only the selected.")
    ] = False,
    data_copy: Annotated[
        Path | None,
        typer.Option(
            "--write-data",
            metavar="FILE",
            rich_help_panel=_MORE,
            help="Copy of the data with the selected features.",
        ),
    ] = None,
) -> None:
    """Select the features that matter for the labels.

    Non-numeric columns are encoded first. A column is ranked by its best encoded feature, and -k counts columns.
    """
    selector = _selector(method, parameters or [], features)
    form = _format(form, as_json, output)
    if stability == 1:
        raise typer.BadParameter("must be at least 2, e.g. 30", param_hint="--stability")
    choose_size = features == _AUTOMATIC
    chunks = None if chunk_rows is None else parse_rows(chunk_rows)
    if chunks is not None:
        needs_rows = {
            "--stability": stability,
            "--html": html,
            "--check-labels": check_labels,
            "--write-data": data_copy,
            "--text": data.text,
            "--role": data.role,
            "--label-sep": data.label_sep,
        }
        check_block_usage(selector, method, choose_size=choose_size, needs_rows=needs_rows)
    elif dask is not None:
        raise typer.BadParameter("needs --chunk-rows", param_hint="--dask")
    outputs = {"--output": output, "--write-data": data_copy, "--html": html}
    check_outputs(data, outputs, copy="--write-data")
    console = messages(quiet=quiet)
    hint = size_hint(data.files) if chunks is None else None
    if hint is not None:
        console.print(hint)
    with progress(console) as status:
        status(f"reading {Path(data.files[0]).name}")
        dataset = data.read(console, chunks=chunks)
        describe_columns(dataset, console)
        with warnings_as_notes(console), data_errors(dataset), dask_cluster(dask, console):
            found = inspect_dataset(
                dataset,
                selector,
                command="select",
                method=method,
                n_columns=_AUTOMATIC if choose_size else None,
                n_permutations=N_PERMUTATIONS if chunks is None else 0,
                n_resamples=stability,
                check_labels=check_labels,
                command_line=typed(),
                progress=status.advance,
            )
    ranking = found.ranking
    assert ranking is not None
    note_arbitrary(found, ranking, console)
    console.print(_headline(found, ranking))
    if data_copy is not None:
        with write_errors(data_copy):
            is_table = write_selected(dataset, [dataset.ranked[column] for column in ranking.kept], data_copy)
        if not is_table:
            console.print(
                f"note: {printable(data_copy)} holds encoded features, not the columns of the table."
            )
    if output is not None:
        write_text(output, _formatted(found, form, everything, PlainConsole(file=io.StringIO(), width=100)))
    if html is not None:
        write_text(html, found.to_html())
    if output is None:
        typer.echo(_formatted(found, form, everything, results()), nl=False)
    for written in filter(None, (output, html, data_copy)):
        console.print(f"wrote {printable(written)}")


def _format(form: Format | None, as_json: bool, output: Path | None) -> Format:
    """Return the format that was asked for, or that of the file ending."""
    if as_json and form not in (None, Format.json):
        raise typer.BadParameter("cannot be combined with --format", param_hint="--json")
    if as_json or form is not None:
        return form or Format.json
    ending = "" if output is None else output.suffix.lower().removeprefix(".")
    return Format(ending) if ending in {*Format} else Format.table


def _selector(method: str, assignments: Sequence[str], features: str | None) -> BaseSelector:
    """Build the method and check its parameters before any data are read."""
    chosen = find_method(method)
    known = chosen().get_params()
    parameters: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise typer.BadParameter(f"must be NAME=VALUE, got {assignment!r}", param_hint="--param")
        if name not in known:
            raise typer.BadParameter(
                f"{method} has no parameter {name!r}; {closest(name, known)}", param_hint="--param"
            )
        parameters[name] = parse_value(value)
    if features is not None:
        if "n_features_to_select" in parameters:
            raise typer.BadParameter("is also set by --param", param_hint="--features")
        if features != _AUTOMATIC:
            parameters["n_features_to_select"] = parse_amount(features)
    selector = chosen(**parameters)
    try:
        check_parameters(selector)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--param") from error
    return selector


def note_arbitrary(found: Audit, ranking: Ranking, console: Console) -> None:
    """Note how many of the selected columns say nothing about the labels."""
    if ranking.n_arbitrary and ranking.worth.max() > 0:  # if all are 0, the method warns
        enough = ranking.n_kept if found.size_curve is None else found.size_curve.enough
        example = f", such as -k {enough}" if enough < ranking.n_kept else ""
        console.print(f"note: {arbitrary_note(ranking, found.unit)} Ask for fewer{example}.")


def _headline(found: Audit, ranking: Ranking) -> str:
    rounds = "" if ranking.n_iter is None else f" in {ranking.n_iter} iterations"
    end = "" if ranking.objective is None else f"{'' if ranking.converged else 'not '}converged{rounds}, "
    dataset = found.dataset
    return (
        f"{printable(dataset.name)}: {count(dataset.X.shape[0], 'row')}, {count(dataset.n_columns, found.unit)}, "
        f"{count(len(dataset.label_names), 'label')}; {ranking.method}: {end}"
        f"{count(ranking.n_kept, found.unit)} selected"
    )


def _formatted(found: Audit, form: Format, everything: bool, console: Console) -> str:
    """Return the findings as text. Tables are laid out for `console`."""
    if form is Format.table:
        with console.capture() as captured:
            _print_tables(found, everything, console)
        return captured.get()
    if form is Format.csv:
        rows = [
            {name: "; ".join(value) if isinstance(value, list) else value for name, value in record.items()}
            for record in found.column_records(kept_only=not everything)
        ]
        return csv_text([tuple(rows[0]), *(tuple(row.values()) for row in rows)])
    return found.to_json(kept_only=not everything, n_issues=_ISSUES_LISTED)


def _print_tables(found: Audit, everything: bool, console: Console) -> None:
    console.print(ranking_table(found, console, everything=everything))
    console.print()
    if found.size_curve is not None:
        note = size_note(found.size_curve, found.dataset.n_columns, found.unit)
        console.print(_size_table(found, console), "", note, "", sep="\n")
    if found.stability is not None:
        console.print(_stability_table(found, console), "", stability_note(found), "", sep="\n")
    if found.label_issues is not None:
        caveat = found.label_issues.issues.caveat(ADVICE)
        console.print(issues_table(found, console, _ISSUES_SHOWN), "", caveat, sep="\n")


def ranking_table(
    found: Audit, console: Console, *, width: int | None = None, everything: bool = False
) -> RenderableType:
    """Draw rank, name and measures of the selected columns, or of all with the selected marked."""
    ranking = found.ranking
    assert ranking is not None
    width = width or console.width
    listed = ranking.order if everything else ranking.kept
    columns = {
        "rank": [str(ranking.places[column]) for column in listed],
        found.unit: [found.ranked_columns[column].name for column in listed],
    }
    for name in list(ranking.shown)[: None if width >= _TWO_MEASURES else 1]:
        # Evidence is a number like 55.8, a score has any size.
        form = "#.4g" if name == "score" else ".1f"
        columns[name] = [f"{ranking.shown[name][column]:{form}}" for column in listed]
    if everything:
        columns["selected"] = ["yes" if ranking.places[column] <= ranking.n_kept else "" for column in listed]
    if any(len(found.ranked_columns[column].features) > 1 for column in listed):
        free = free_width(width, columns)
        if free >= _MIN_MEMBER:
            columns["best part"] = [_best_part(found, ranking, column, free) for column in listed]
    return lay_out(width, columns, long=found.unit, bars=(console, ranking.shares[listed].tolist()))


def _best_part(found: Audit, ranking: Ranking, column: int, width: int) -> str:
    """Return the best feature of a column with several, without the name of the column."""
    of_table = found.ranked_columns[column]
    if len(of_table.features) < 2:
        return ""
    name = found.dataset.feature_names[ranking.best_feature[column]]
    return short(name.removeprefix(of_table.name).lstrip(":= "), width)


def issues_table(found: Audit, console: Console, n_shown: int) -> RenderableType:
    """Draw the labels with the least support."""
    listed = list(found.issue_records(n_shown))
    columns = {
        "row": [short(record["row"]) for record in listed],
        "label": [record["label"] for record in listed],
        "support": [f"{record['support']:.2f}" for record in listed],
    }
    if listed and "wrong" in listed[0]:
        columns["truth"] = ["wrong" if record["wrong"] else "right" for record in listed]
    title = f"labels to check first, of {found.n_candidates}"
    return lay_out(console.width, columns, long="label", title=title)


def _size_table(found: Audit, console: Console) -> RenderableType:
    curve = found.size_curve
    assert curve is not None
    columns = {
        f"{found.unit}s": [str(size) for size in curve.sizes],
        "precision": [f"{value:.3f}" for value in curve.mean],
        "spread": [f"{value:.3f}" for value in curve.spread],
        "selected": ["yes" if size == found.n_kept else "" for size in curve.sizes],
    }
    shares = (curve.mean / (curve.mean.max() or 1.0)).tolist()
    title = "average precision on held-out rows by size"
    return lay_out(console.width, columns, long=f"{found.unit}s", title=title, bars=(console, shares))


def _stability_table(found: Audit, console: Console) -> RenderableType:
    stability, ranking = found.stability, found.ranking
    assert stability is not None
    assert ranking is not None
    frequency, together = stability.frequency[ranking.kept], stability.group_frequency[ranking.kept]
    cells = {
        found.unit: [found.ranked_columns[column].name for column in ranking.kept],
        "selected": [f"{share:.0%}" for share in frequency],
        "95 % interval": [f"{low:.0%} to {high:.0%}" for low, high in stability.interval[ranking.kept]],
    }
    if (together > frequency).any():
        cells["or a substitute"] = [f"{share:.0%}" for share in together]
    title = f"selection frequency in {stability.n_resamples} subsamples"
    return lay_out(console.width, cells, long=found.unit, title=title, bars=(console, frequency.tolist()))
