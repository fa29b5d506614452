"""``labelsieve select``: rank the features of a file."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console, RenderableType

from labelsieve import METHODS
from labelsieve._base import BaseSelector, BlockSelector, check_parameters
from labelsieve._text import closest, count, csv_text, install_command, short
from labelsieve.cli._console import PlainConsole, command_line, lay_out, messages, results
from labelsieve.cli._options import (
    AsJson,
    DataOptions,
    Html,
    Quiet,
    check_outputs,
    option,
    parse_amount,
    parse_share,
    parse_value,
    reading,
    with_data_options,
    write_errors,
    write_text,
)
from labelsieve.cli._tables import ADVICE, issues_table, ranking_table
from labelsieve.cli.methods import find_method
from labelsieve.inspection.audit import inspect_dataset
from labelsieve.inspection.ranking import Ranking
from labelsieve.inspection.result import Audit
from labelsieve.inspection.stability import SelectionStability
from labelsieve.inspection.wording import answers, headline, stability_note, warnings
from labelsieve.io import Dataset, DatasetError
from labelsieve.io.column_choice import named_columns
from labelsieve.io.copies import write_selected
from labelsieve.methods._evidence.choice import SizeCurve
from labelsieve.methods.evidence import EvidenceSelector

EPILOG = """\
\b
Examples:
  labelsieve select data.csv --labels 'label_*' -k 20% --output ranking.csv
  labelsieve select data.csv --labels 2 -k auto --stability 30 --html page.html
  labelsieve select data.csv --labels 2 -k 2 --write-data small.csv
  labelsieve select data.arff --method pml-fsmir -p max_iter=500 --json
"""

DEFAULT_METHOD = "evidence"
N_PERMUTATIONS = 199

_AUTOMATIC = "auto"
_ISSUES_SHOWN, _ISSUES_LISTED = 5, 20
_COLUMNS_PER_LABEL = 3
_MORE = "More options"


@with_data_options
def select(
    data: DataOptions,
    features: Annotated[
        str | None,
        option(
            "K",
            "Columns to keep: an integer, a fraction (20%), or 'auto' (cross-validated). Default: auto with the "
            "method evidence, otherwise half.",
            "--features",
            "-k",
        ),
    ] = None,
    method: Annotated[
        str, option("NAME", "Method (see labelsieve methods).", "--method", "-m")
    ] = DEFAULT_METHOD,
    keep: Annotated[
        list[str] | None,
        option("COLUMNS", "Columns to select in any case: names or patterns. Repeatable."),
    ] = None,
    stability: Annotated[int, option("N", "Number of subsamples for a stability check, e.g. 30.", min=0)] = 0,
    fdr: Annotated[
        str | None,
        option("SHARE", "Test each column; bound on the share of wrong columns, e.g. 10%."),
    ] = None,
    check_labels: Annotated[
        bool, typer.Option("--check-labels", help="Also list the labels most likely to be wrong.")
    ] = False,
    html: Html = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    parameters: Annotated[
        list[str] | None,
        option("NAME=VALUE", "Method parameter. Repeatable.", "--param", "-p", panel=_MORE),
    ] = None,
    chunk_rows: Annotated[
        str | None, option("ROWS", "Number of rows per block for large files, or 'auto'.", panel=_MORE)
    ] = None,
    dask: Annotated[str | None, option("ADDRESS", "Dask scheduler for --chunk-rows.", panel=_MORE)] = None,
    output: Annotated[
        Path | None,
        option("FILE", "File for the ranking: .csv, .json or plain text.", "--output", "-o", panel=_MORE),
    ] = None,
    everything: Annotated[
        bool,
        typer.Option("--all", rich_help_panel=_MORE, help="List all features, not just the selected ones."),
    ] = False,
    by_label: Annotated[
        bool,
        typer.Option("--by-label", rich_help_panel=_MORE, help="Also list the best columns of each label."),
    ] = False,
    data_copy: Annotated[
        Path | None,
        option("FILE", "Data file to write, with only the selected columns.", "--write-data", panel=_MORE),
    ] = None,
) -> None:
    """Select the features that matter for the labels.

    Non-numeric columns are encoded first. A column is ranked by its best encoded feature, and -k counts
    columns.
    """
    if (
        features is None
        and method == DEFAULT_METHOD
        and not any(parameter.startswith("n_features_to_select=") for parameter in parameters or [])
    ):
        features = _AUTOMATIC
    selector = _selector(method, parameters or [], features)
    if keep and not isinstance(selector, EvidenceSelector):
        raise typer.BadParameter(f"needs the method evidence, got {method!r}", param_hint="--keep")
    if stability == 1:
        raise typer.BadParameter("must be 0 or at least 2, got 1", param_hint="--stability")
    share_wrong = None if fdr is None else parse_share(fdr, "--fdr")
    choose_size = features == _AUTOMATIC
    chunks = None if chunk_rows is None else _parse_rows(chunk_rows)
    if chunks is not None:
        needs_rows = {
            "--stability": stability,
            "--fdr": fdr,
            "--html": html,
            "--check-labels": check_labels,
            "--by-label": by_label,
            "--write-data": data_copy,
            "--text": data.text,
            "--role": data.role,
            "--label-sep": data.label_sep,
        }
        _check_block_usage(selector, method, choose_size=choose_size, needs_rows=needs_rows)
    elif dask is not None:
        raise typer.BadParameter("needs --chunk-rows", param_hint="--dask")
    outputs = {"--output": output, "--write-data": data_copy, "--html": html}
    check_outputs(data, outputs, copy="--write-data")
    if chunks is None:
        _hint_at_blocks(data.files, messages(quiet=quiet))
    with (
        reading(data, quiet=quiet, chunks=chunks) as (dataset, console, status),
        _dask_cluster(dask, console),
    ):
        if keep:
            selector.set_params(keep=_features_of(dataset, keep))
        found = inspect_dataset(
            dataset,
            selector,
            command="select",
            method=method,
            n_columns=_AUTOMATIC if choose_size else None,
            n_permutations=N_PERMUTATIONS if chunks is None else 0,
            n_resamples=stability,
            fdr=share_wrong,
            check_labels=check_labels,
            command_line=command_line(),
            progress=status.advance,
        )
    ranking = found.ranking
    assert ranking is not None
    note_warnings(found, console)
    console.print(f"{headline(found)}, {count(ranking.n_kept, found.unit)} selected")
    if data_copy is not None:
        with write_errors(data_copy):
            is_table = write_selected(dataset, [dataset.ranked[column] for column in ranking.kept], data_copy)
        if not is_table:
            console.print(f"note: {data_copy} contains encoded features, not the original columns.")
    if html is not None:
        write_text(html, found.to_html())
    if output is None and (as_json or not quiet):
        ending = ".json" if as_json else ""
        typer.echo(_formatted(found, ranking, ending, everything, by_label, results()), nl=False)
    elif output is not None:
        ending = ".json" if as_json else output.suffix.lower()
        plain = PlainConsole(file=io.StringIO(), width=100)
        write_text(output, _formatted(found, ranking, ending, everything, by_label, plain))
    for written in filter(None, (output, html, data_copy)):
        console.print(f"wrote {written}")


def _features_of(dataset: Dataset, columns: list[str]) -> list[int]:
    """Return the features of columns, given by names or patterns."""
    chosen = named_columns(
        dataset.column_names, columns, lambda text: DatasetError(f"--keep: {text}."), "kept"
    )
    return np.flatnonzero(np.isin(dataset.column_of, [dataset.ranked[place] for place in chosen])).tolist()


def _parse_rows(text: str) -> int | str:
    """Parse a number of rows or 'auto'."""
    if text == "auto":
        return text
    if not text.isdecimal() or not int(text):
        raise typer.BadParameter(
            f"must be a number of rows such as 50000 or 'auto', got {text!r}", param_hint="--chunk-rows"
        )
    return int(text)


def _check_block_usage(
    selector: BaseSelector, method: str, *, choose_size: bool, needs_rows: Mapping[str, object]
) -> None:
    """Reject, before reading, a method or an option of `needs_rows` that needs all rows at once."""
    if not isinstance(selector, BlockSelector):
        known = ", ".join(slug for slug, kind in METHODS.items() if issubclass(kind, BlockSelector))
        raise typer.BadParameter(
            f"must be one of {known} with --chunk-rows, got {method!r}", param_hint="--method"
        )
    given = next((name for name, value in needs_rows.items() if value), None)
    if given is not None:
        raise typer.BadParameter(
            "needs all rows at once, so it cannot be combined with --chunk-rows", param_hint=given
        )
    if choose_size and not isinstance(selector, EvidenceSelector):
        raise typer.BadParameter(
            f"must be a number if {method} runs with --chunk-rows, got 'auto'", param_hint="--features"
        )


@contextmanager
def _dask_cluster(address: str | None, console: Console) -> Iterator[None]:
    """Run fits on a Dask cluster if `address` is given."""
    if address is None:
        yield
        return
    try:
        from labelsieve._blocks.cluster import LostClusterError, connect
    except ImportError:
        command = install_command("dask", "distributed")
        raise DatasetError(f"--dask needs dask. Install it: {command}") from None
    # Without this, a traceback is logged before the error below.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    try:
        with connect(address) as client:
            console.print(f"note: the cluster dashboard is at {client.dashboard_link}")
            yield
    except LostClusterError as error:
        raise DatasetError(f"--dask: {error}") from None


def _hint_at_blocks(files: Sequence[str], console: Console) -> None:
    """Suggest --chunk-rows for files larger than a quarter of the memory."""
    # A catalogue name has no file size, and some systems do not report their memory.
    with suppress(AttributeError, OSError, ValueError):
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        n_bytes = sum(os.path.getsize(file) for file in files)
        if 0 < memory / 4 < n_bytes:
            console.print(
                f"note: {files[0]} takes {n_bytes / 1e9:.1f} GB and this machine has {memory / 1e9:.1f} GB "
                "of memory. To read it in blocks of rows, add --chunk-rows auto."
            )


def _selector(method: str, assignments: Sequence[str], features: str | None) -> BaseSelector:
    """Create the method and check its parameters before reading data."""
    chosen = find_method(method)
    known = chosen().get_params()
    parameters: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise typer.BadParameter(f"must be NAME=VALUE, got {assignment!r}", param_hint="--param")
        if name == "keep":
            raise typer.BadParameter("keep needs names of columns: use --keep", param_hint="--param")
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


def note_warnings(found: Audit, console: Console) -> None:
    """Print the warnings about a selection, except those raised and printed before."""
    for text in warnings(found):
        if text not in found.warnings:
            console.print(f"note: {text}")


def _formatted(
    found: Audit, ranking: Ranking, ending: str, everything: bool, by_label: bool, console: Console
) -> str:
    """Format the findings for a file suffix. Tables fit the width of `console`."""
    if ending == ".json":
        return found.to_json(kept_only=not everything, n_issues=_ISSUES_LISTED, by_label=by_label)
    if ending == ".csv":
        shown = found.columns if everything else found.columns.head(ranking.n_kept)
        return csv_text(shown.map(lambda cell: "; ".join(cell) if isinstance(cell, list) else cell))
    with console.capture() as captured:
        console.print(ranking_table(found, ranking, console, everything=everything), "", sep="\n")
        if by_label:
            console.print(_label_table(found, console), "", sep="\n")
        if found.controlled is not None:
            console.print(found.controlled.summary(), "", sep="\n")
        if found.size_curve is not None:
            _, size, *_ = answers(found)
            console.print(_size_table(found, found.size_curve, console), "", size.plain, "", sep="\n")
        if found.stability is not None:
            table = _stability_table(found, found.stability, ranking, console)
            console.print(table, "", stability_note(found), "", sep="\n")
        if found.label_issues is not None:
            caveat = found.label_issues.issues.caveat(ADVICE)
            console.print(issues_table(found, console, _ISSUES_SHOWN), "", caveat, sep="\n")
    return captured.get()


def _label_table(found: Audit, console: Console) -> RenderableType:
    """Lay out the columns with the most evidence for each label."""
    best = found.best_columns(_COLUMNS_PER_LABEL)
    columns = {
        "label": [short(label) for label in best],
        f"{found.unit}s with the most evidence (z²)": [
            ", ".join(f"{short(name)} ({z2:.0f})" for name, z2 in of_label) or "none above noise"
            for of_label in best.values()
        ],
    }
    return lay_out(console, columns, long=list(columns)[1], title=f"{found.unit}s by label")


def _size_table(found: Audit, curve: SizeCurve, console: Console) -> RenderableType:
    columns = {
        f"{found.unit}s": [str(size) for size in curve.sizes],
        "precision": [f"{value:.3f}" for value in curve.mean],
        "spread": [f"{value:.3f}" for value in curve.spread],
        "selected": ["yes" if size == found.n_kept else "" for size in curve.sizes],
    }
    bars = (curve.mean / (curve.mean.max() or 1.0)).tolist()
    title = f"cross-validated average precision by number of {found.unit}s"
    return lay_out(console, columns, long=f"{found.unit}s", title=title, bars=bars)


def _stability_table(
    found: Audit, stability: SelectionStability, ranking: Ranking, console: Console
) -> RenderableType:
    frequency, together = stability.frequency[ranking.kept], stability.group_frequency[ranking.kept]
    columns = {
        found.unit: [short(found.ranked_columns[column].name) for column in ranking.kept],
        "selected": [f"{value:.0%}" for value in frequency],
        "95% interval": [f"{low:.0%} to {high:.0%}" for low, high in stability.interval[ranking.kept]],
    }
    if (together > frequency).any():
        columns["or a substitute"] = [f"{value:.0%}" for value in together]
    title = f"selection frequency in {stability.n_resamples} subsamples"
    return lay_out(console, columns, long=found.unit, title=title, bars=frequency.tolist())
