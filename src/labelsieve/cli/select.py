"""``labelsieve select``: rank the features of a file."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, RenderableType

from labelsieve._base import BaseSelector, check_parameters
from labelsieve._text import closest, count, csv_text, printable
from labelsieve.cli._console import (
    PlainConsole,
    free_width,
    lay_out,
    messages,
    progress,
    results,
    short,
    typed,
)
from labelsieve.cli._options import (
    DataOptions,
    Html,
    Quiet,
    check_outputs,
    describe_columns,
    parse_amount,
    parse_value,
    with_data_options,
    write_errors,
    write_text,
)
from labelsieve.cli.chunks import (
    ChunkRows,
    DaskAddress,
    check_usage,
    fit_in_blocks,
    parse_rows,
    size_hint,
)
from labelsieve.cli.fitting import ADVICE, DEFAULT_METHOD, fit
from labelsieve.cli.methods import find_method
from labelsieve.inspection.auditing.subject import Subject
from labelsieve.inspection.selection import RankedFeature, Selection
from labelsieve.io import Dataset, write
from labelsieve.io.tables.opening import kind_of
from labelsieve.io.tables.writing import write_columns
from labelsieve.methods._columns import ColumnSelector
from labelsieve.size_curve import SizeCurve

EPILOG = """\
\b
Examples:
  labelsieve select data.csv --labels 'label_*' -k 20% --output ranking.csv
  labelsieve select data.csv --labels 2 -k auto --stability 30 --html page.html
  labelsieve select data.csv --labels 2 -k 2 --write-data small.csv
  labelsieve select data.arff --method pml-fsmir -p max_iter=500 --json
"""

_AUTOMATIC = "auto"
_SUSPECTS_SHOWN = 5
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
    chunk_rows: ChunkRows = None,
    dask: DaskAddress = None,
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
    if chunks is None:
        if dask is not None:
            raise typer.BadParameter("needs --chunk-rows", param_hint="--dask")
    else:
        unwanted = {
            "--stability": stability > 0,
            "--html": html is not None,
            "--check-labels": check_labels,
            "--write-data": data_copy is not None,
        }
        check_usage(selector, method, choose_size=choose_size, unwanted=unwanted)
    check_outputs(data, {"--output": output, "--write-data": data_copy, "--html": html}, copy="--write-data")
    console = messages(quiet=quiet)
    hint = size_hint(data.files) if chunks is None else None
    if hint is not None:
        console.print(hint)
    with progress(console) as status:
        status(f"reading {Path(data.files[0]).name}")
        dataset = data.read(console, chunks=chunks)
        describe_columns(dataset, console)
        ids = None if dataset.id_column is None else tuple(map(str, dataset.row_ids))
        chosen = _of_columns(selector, dataset) if dataset.is_table else selector
        subject = None if html is None else Subject.of_dataset(dataset, ids)
        if chunks is None:
            found = fit(
                chosen,
                dataset,
                method,
                console,
                status,
                choose_size=choose_size,
                n_resamples=stability,
                table=dataset if dataset.is_table else None,
                ids=ids,
                subject=subject,
                check_labels=check_labels,
            )
        else:
            found = fit_in_blocks(
                selector, dataset, method, console, status, choose_size=choose_size, address=dask
            )
    console.print(_headline(found))
    if data_copy is not None:
        _write_copy(dataset, chosen.get_support(indices=True).tolist(), data_copy, console)
    if output is not None:
        write_text(output, _ranking(found, form, everything, PlainConsole(file=io.StringIO(), width=100)))
    if html is not None:
        from labelsieve.inspection.page import page_of_selection

        assert subject is not None
        write_text(html, page_of_selection(found, chosen, subject, command=typed()))
    if output is None:
        typer.echo(_ranking(found, form, everything, results()), nl=False)
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


def _of_columns(selector: BaseSelector, table: Dataset) -> ColumnSelector:
    return ColumnSelector(selector, table.column_of, selector.n_features_to_select)


def _write_copy(dataset: Dataset, kept: Sequence[int], path: Path, console: Console) -> None:
    """Write the data with the selected features or columns, as columns of the table if the format allows it."""
    if not dataset.is_table:
        write(dataset.keep_features(kept), path)
        return
    chosen = [dataset.ranked[place] for place in kept]
    if kind_of(path) is not None:
        named = [at for at, column in enumerate(dataset.columns) if column.role in ("id", "label")]
        with write_errors(path):
            write_columns(dataset, [*named, *chosen], path)
        return
    features = [feature for at in chosen for feature in dataset.columns[at].features]
    write(dataset.keep_features(features), path)
    console.print(f"note: {printable(path)} holds encoded features, not the columns of the table.")


def _headline(found: Selection) -> str:
    rounds = "" if found.n_iter is None else f" in {found.n_iter} iterations"
    end = "" if found.objective is None else f"{'' if found.converged else 'not '}converged{rounds}, "
    return (
        f"{printable(found.data)}: {count(found.n_samples, 'row')}, {count(found.n_features, found.unit)}, "
        f"{count(found.n_labels, 'label')}; {found.method}: {end}{count(len(found.selected), found.unit)} selected"
    )


def _ranking(found: Selection, form: Format, everything: bool, console: Console) -> str:
    """Return the ranking as text. A table is laid out for `console`."""
    if form is Format.table:
        with console.capture() as captured:
            _print_tables(found, everything, console)
        return captured.get()
    if form is Format.csv:
        listed = found.features if everything else found.selected
        rows = [
            {
                **feature.as_dict(),
                "selected": int(feature.selected),
                **({"members": "; ".join(feature.members)} if feature.members else {}),
            }
            for feature in listed
        ]
        return csv_text([tuple(rows[0]), *(tuple(row.values()) for row in rows)])
    return json.dumps(found.as_dict(all_features=everything), indent=2, allow_nan=False) + "\n"


def _print_tables(found: Selection, everything: bool, console: Console) -> None:
    console.print(ranking_table(found, console, everything=everything))
    console.print()
    if found.curve is not None:
        console.print(_size_table(found.curve, console, found.unit), "", found.size_note, "", sep="\n")
    if found.stability is not None:
        console.print(_stability_table(found, console), "", found.stability_note, "", sep="\n")
    if found.suspects:
        console.print(
            suspects_table(found, console, _SUSPECTS_SHOWN), "", f"{found.caveat} {ADVICE}", sep="\n"
        )


def ranking_table(
    found: Selection, console: Console, *, width: int | None = None, everything: bool = False
) -> RenderableType:
    """Draw rank, name and measures of the selected features, or of all with the selected marked."""
    listed = found.features if everything else found.selected
    width = width or console.width
    columns = {
        "rank": [str(feature.rank) for feature in listed],
        found.unit: [feature.name for feature in listed],
    }
    for name in found.measure_names[: None if width >= _TWO_MEASURES else 1]:
        # Evidence is a number like 55.8, a score has any size.
        form = "#.4g" if name == "score" else ".1f"
        columns[name] = [f"{feature.shown[name]:{form}}" for feature in listed]
    if everything:
        columns["selected"] = ["yes" if feature.selected else "" for feature in listed]
    if any(len(feature.members) > 1 for feature in listed):
        free = free_width(width, columns)
        if free >= _MIN_MEMBER:
            columns["best part"] = [_best_member(feature, free) for feature in listed]
    shares = [found.share(feature) for feature in listed]
    return lay_out(width, columns, long=found.unit, bars=(console, shares))


def _best_member(feature: RankedFeature, width: int) -> str:
    """Return the best feature of a column with several, without the name of the column."""
    if len(feature.members) < 2:
        return ""
    return short(feature.members[0].removeprefix(feature.name).lstrip(":= "), width)


def suspects_table(found: Selection, console: Console, n_shown: int) -> RenderableType:
    """Draw the labels with the least support."""
    listed = found.suspects[:n_shown]
    columns = {
        "row": [short(suspect.sample if suspect.id is None else suspect.id) for suspect in listed],
        "label": [suspect.label for suspect in listed],
        "support": [f"{suspect.support:.2f}" for suspect in listed],
    }
    if found.n_wrong is not None:
        columns["truth"] = ["wrong" if suspect.wrong else "right" for suspect in listed]
    title = f"labels to check first, of {found.n_candidates}"
    return lay_out(console.width, columns, long="label", title=title)


def _size_table(curve: SizeCurve, console: Console, unit: str) -> RenderableType:
    columns = {
        f"{unit}s": [str(size) for size in curve.sizes],
        "precision": [f"{value:.3f}" for value in curve.mean],
        "spread": [f"{value:.3f}" for value in curve.spread],
        "selected": ["yes" if size == curve.best else "" for size in curve.sizes],
    }
    shares = curve.mean / (curve.mean.max() or 1.0)
    title = "average precision on held-out rows by size"
    return lay_out(console.width, columns, long=f"{unit}s", title=title, bars=(console, shares.tolist()))


def _stability_table(found: Selection, console: Console) -> RenderableType:
    stability = found.stability
    assert stability is not None
    columns = [feature.column for feature in found.selected]
    chosen, with_substitutes = stability.frequency[columns], stability.group_frequency[columns]
    cells = {
        found.unit: [feature.name for feature in found.selected],
        "selected": [f"{share:.0%}" for share in chosen],
        "95 % interval": [f"{low:.0%} to {high:.0%}" for low, high in stability.interval[columns]],
    }
    if (with_substitutes > chosen).any():
        cells["or a substitute"] = [f"{share:.0%}" for share in with_substitutes]
    title = f"selection frequency in {stability.n_resamples} subsamples"
    return lay_out(console.width, cells, long=found.unit, title=title, bars=(console, chosen.tolist()))
