"""``labelsieve select``: rank the features of a file."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from labelsieve._base import BaseSelector, check_parameters
from labelsieve._text import closest, count, csv_text, printable
from labelsieve.cli.chunks import (
    ChunkRows,
    DaskAddress,
    check_usage,
    fit_in_blocks,
    parse_rows,
    size_hint,
)
from labelsieve.cli.console import PlainConsole, messages, results, typed
from labelsieve.cli.copies import write_copy
from labelsieve.cli.fitting import (
    ADVICE,
    DEFAULT_METHOD,
    note_arbitrary,
    progress,
    told_as_data_errors,
    warnings_as_notes,
)
from labelsieve.cli.methods import find_method
from labelsieve.cli.opening import LabelSep, Role, TableOptions, Text, open_data
from labelsieve.cli.tables import issues_table, ranking_table, size_table, stability_table
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
    reading_options,
    refuse_repeated,
    refuse_without_jinja,
    told_if_unwritable,
)
from labelsieve.inspection.audit import inspect_dataset
from labelsieve.inspection.result import Audit
from labelsieve.inspection.wording import size_note, stability_note
from labelsieve.io.writing import replacing

EPILOG = """\
Examples:

labelsieve select data.csv --labels 'label_*' --ignore name

labelsieve select data.csv --labels 2 -k auto --stability 30

labelsieve select data.csv --labels 2 -k 3 --output ranking.csv

labelsieve select data.arff -k 20% --method pml-fsmir -p max_iter=500 --json

labelsieve select data.csv --labels 2 -k 2 --write-data small.csv

labelsieve select data.csv --labels 2 --html page.html

labelsieve select data.csv --labels 'label_*' -k 5 --chunk-rows auto
"""

_AUTOMATIC = "auto"
_ISSUES_SHOWN, _ISSUES_LISTED = 5, 20
_N_PERMUTATIONS = 199


class Format(StrEnum):
    """Forms of the ranking."""

    table = "table"
    csv = "csv"
    json = "json"


def select(
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
    method: Annotated[str, typer.Option("--method", "-m", help="See: labelsieve methods.")] = DEFAULT_METHOD,
    parameters: Annotated[
        list[str] | None,
        typer.Option(
            "--param", "-p", metavar="NAME=VALUE", help="Set a parameter of the method; repeatable."
        ),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            "--features",
            "-k",
            help="How many to select: a number, a share such as 20%, or 'auto' (the data decide); half unless given.",
        ),
    ] = None,
    stability: Annotated[
        int,
        typer.Option(
            "--stability",
            metavar="N",
            min=0,
            help="Select on N random halves of the rows too, say 30: how often is each feature chosen?",
        ),
    ] = 0,
    form: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="Form of the ranking; unless given, that of the ending of --output, else 'table'.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Same as --format json.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write the ranking to this file: as CSV or JSON if it ends in .csv or .json.",
        ),
    ] = None,
    data_copy: Annotated[
        Path | None,
        typer.Option("--write-data", help="Write the data with the selected features only to this file."),
    ] = None,
    check_labels: Annotated[
        bool, typer.Option("--check-labels", help="List the candidate labels that look wrong, too.")
    ] = False,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page to explore.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="List all features, not the selected only.")
    ] = False,
    chunk_rows: ChunkRows = None,
    dask: DaskAddress = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No notes, no progress; errors only.")] = False,
) -> None:
    """Select the features that matter for the labels of a data set.

    Candidate labels are used where the data has them, otherwise all labels are taken as candidates. In the ranking,
    evidence is what a feature says about the labels by itself; the criterion is what it was worth when it was taken,
    beside the features before it.

    Of a table of anything but numbers the columns are ranked, each by the best of the features made of it, and -k
    counts columns. What every column was taken for is said, and --role overrules it.
    """
    selector = _selector(method, parameters or [], features)
    form = _form(form, as_json, output)
    _check_usage(files, html, stability)
    choose_size = features == _AUTOMATIC
    chunks = None if chunk_rows is None else parse_rows(chunk_rows)
    if chunks is None:
        if dask is not None:
            raise typer.BadParameter("is for --chunk-rows; give both", param_hint="--dask")
    else:
        unwanted = {
            "--stability": stability > 0,
            "--html": html is not None,
            "--check-labels": check_labels,
            "--write-data": data_copy is not None,
        }
        check_usage(selector, method, choose_size=choose_size, unwanted=unwanted)
    outputs = {"--output": output, "--write-data": data_copy, "--html": html}
    check_targets((*files, labels, candidates), outputs, data="--write-data")
    options = reading_options(
        labels=labels, candidates=candidates, ignore=ignore, nominal=nominal, missing=missing
    )
    wishes = TableOptions.of(label_sep, text, role)
    console = messages(quiet=quiet)
    entry = find_target(files, options, console, in_blocks=chunks is not None)
    hint = size_hint(files) if entry is None and chunks is None else None
    if hint is not None:
        console.print(hint)
    with progress(console, has_steps=chunks is None) as name_activity:
        name_activity(f"reading {printable(Path(files[0]).name)}")
        data = open_data(files, entry, options, wishes, identifier, chunks=chunks)
        data.tell(console, is_coded=entry is None and options.nominal != "onehot")
        dataset = data.dataset
        if chunks is None:
            with warnings_as_notes(console), told_as_data_errors(dataset):
                found = inspect_dataset(
                    dataset,
                    selector,
                    command="select",
                    method=method,
                    n_columns=_AUTOMATIC if choose_size else None,
                    n_permutations=_N_PERMUTATIONS,
                    n_resamples=stability,
                    check_labels=check_labels,
                    command_line=typed(),
                    progress=lambda done, total, activity: name_activity(activity, done, total),
                )
            note_arbitrary(found, console)
        else:
            found = fit_in_blocks(
                selector, dataset, method, console, name_activity, choose_size=choose_size, address=dask
            )
    console.print(_headline(found))
    texts: dict[Path, str] = {}
    if output is not None:
        file_console = PlainConsole(file=io.StringIO(), width=100)
        texts[output] = _ranking(found, form, everything, file_console)
    if html is not None:
        texts[html] = found.to_html()
    with ExitStack() as unfinished:  # files take their places at its end, so one that fails leaves none
        _write(texts, unfinished)
        if data_copy is not None:
            assert found.ranking is not None
            note = write_copy(data, sorted(found.ranking.kept.tolist()), data_copy)
            if note:
                console.print(note)
    if output is None:
        typer.echo(_ranking(found, form, everything, results()), nl=False)
    for written in filter(None, (output, html, data_copy)):
        console.print(f"wrote {printable(written)}")


def _write(texts: Mapping[Path, str], unfinished: ExitStack) -> None:
    """Write files; each takes its place when `unfinished` ends."""
    for path, text in texts.items():
        unfinished.enter_context(told_if_unwritable(path))
        stream = unfinished.enter_context(replacing(path))
        stream.write(text.encode())
        stream.flush()


def _form(form: Format | None, as_json: bool, output: Path | None) -> Format:
    """The form of the ranking, asked for in one of two ways, or by the ending of the file."""
    if as_json and form not in (None, Format.json):
        raise typer.BadParameter("give one of --json and --format, not both", param_hint="--json")
    if as_json or form is not None:
        return form or Format.json
    ending = "" if output is None else output.suffix.lower().removeprefix(".")
    return Format(ending) if ending in {*Format} else Format.table


def _selector(method: str, assignments: Sequence[str], features: str | None) -> BaseSelector:
    """Build the method with the user's parameters, checked before any data is read."""
    chosen = find_method(method)
    known = chosen().get_params()
    parameters: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise typer.BadParameter(f"NAME=VALUE was expected, got {assignment!r}", param_hint="--param")
        if name not in known:
            raise typer.BadParameter(
                f"{method} has no parameter {name!r}; {closest(name, known)}", param_hint="--param"
            )
        parameters[name] = parse_value(value)
    if features is not None:
        if "n_features_to_select" in parameters:
            raise typer.BadParameter("n_features_to_select is set by --param too", param_hint="--features")
        if features != _AUTOMATIC:
            parameters["n_features_to_select"] = parse_amount(features)
    selector = chosen(**parameters)
    try:
        check_parameters(selector)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--param") from error
    return selector


def parse_value(text: str) -> int | float | bool | str | None:
    """Read a value as Python would write it; what is no number, truth value or None stays text.

    Examples
    --------
    >>> [parse_value(text) for text in ("10", "1e-3", "inf", "true", "None", "minmax")]
    [10, 0.001, inf, True, None, 'minmax']
    """
    words = {"true": True, "false": False, "none": None, "inf": math.inf}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        if math.isfinite(value):
            return value
    return text


def parse_amount(text: str) -> int | float:
    """Read a number of features or a share of them."""
    number = parse_value(text.removesuffix("%"))
    amount = number / 100 if text.endswith("%") and isinstance(number, (int, float)) else number
    is_number = isinstance(amount, int) and not isinstance(amount, bool) and amount >= 1
    is_share = isinstance(amount, float) and 0 < amount <= 1
    if not (is_number or is_share):
        raise typer.BadParameter(
            f"a number such as 20, a share such as 0.2 or 20%, or auto was expected, got {text!r}",
            param_hint="--features",
        )
    return amount  # type: ignore[return-value]  # narrowed above


def _check_usage(files: Sequence[str], html: Path | None, n_halves: int) -> None:
    """Refuse what cannot be meant or done, whatever the data."""
    refuse_repeated(files)
    if n_halves == 1:
        raise typer.BadParameter("needs two halves or more, such as 30", param_hint="--stability")
    refuse_without_jinja(html)


def _headline(found: Audit) -> str:
    """Say in one line what was done."""
    ranking, dataset = found.ranking, found.dataset
    assert ranking is not None
    rounds = "" if ranking.n_iter is None else f" in {ranking.n_iter} iterations"
    end = "" if ranking.objective is None else f"{'' if ranking.converged else 'not '}converged{rounds}, "
    return (
        f"{printable(dataset.name)}: {count(dataset.X.shape[0], 'row')}, {count(dataset.n_columns, found.unit)}, "
        f"{count(len(dataset.label_names), 'label')}; {ranking.method}: {end}"
        f"{count(ranking.n_kept, found.unit)} selected"
    )


def _ranking(found: Audit, form: Format, everything: bool, console: Console) -> str:
    """Return the ranking as text; a table is laid out for `console`."""
    if form is Format.table:
        with console.capture() as captured:
            console.print(ranking_table(found, console, everything=everything))
            console.print()
            if found.size_curve is not None:
                note = size_note(found.size_curve, found.dataset.n_columns, found.unit)
                console.print(size_table(found.size_curve, console, found.unit), "", note, "", sep="\n")
            if found.stability is not None:
                console.print(stability_table(found, console), "", stability_note(found), "", sep="\n")
            if found.label_issues is not None:
                caveat = found.label_issues.issues.caveat(ADVICE)
                console.print(issues_table(found, console, _ISSUES_SHOWN), "", caveat, sep="\n")
        return captured.get()
    if form is Format.csv:
        columns = found.column_records(kept_only=not everything)
        names = ["rank", "column", "role", "score", *(found.ranking.measures if found.ranking else ())]
        rows = [
            (*(column[name] for name in names), int(column["kept"]), "; ".join(column["features"]))
            for column in columns
        ]
        return csv_text([(*names, "selected", "features"), *rows])
    return found.to_json(kept_only=not everything, n_issues=_ISSUES_LISTED)
