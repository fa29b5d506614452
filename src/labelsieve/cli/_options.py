"""Options that several commands share, and checks of the files they name."""

from __future__ import annotations

import ast
import functools
import inspect
import math
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer
from rich.console import Console

from labelsieve._text import count, near, short
from labelsieve.cli import in_options
from labelsieve.cli._console import (
    Status,
    download_bars,
    lay_out,
    messages,
    progress,
    warnings_as_notes,
)
from labelsieve.cli._isolation import read_in_child_first
from labelsieve.datasets.catalog import CatalogEntry
from labelsieve.datasets.fetch import availability, fetch, find_entry, is_known, load
from labelsieve.inspection.review import id_column
from labelsieve.io import Dataset, DatasetError, read
from labelsieve.io.copies import can_copy
from labelsieve.io.frames import TABLE_FORMATS
from labelsieve.io.memory import limited_memory, memory_reason, parse_size
from labelsieve.io.mulan_xml import find_label_xml
from labelsieve.io.options import ROLES
from labelsieve.io.source import Source
from labelsieve.io.writing import WRITERS, replacing

_DATA = "Data options"
_COLUMNS_SHOWN = 40
_PLAIN_ROLES = ("number", "label")


def option(metavar: str, text: str, *names: str, panel: str | None = None, **limits: Any) -> Any:
    """Declare an option with a value. The help shows each panel in a separate section."""
    return typer.Option(*names, metavar=metavar, help=text, rich_help_panel=panel, **limits)


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only, and JSON with --json.")]
Jobs = Annotated[int | None, option("N", "Number of processes. Default: all cores.", "--jobs", "-j", min=1)]
Html = Annotated[Path | None, option("FILE", "HTML page to write, with interactive charts.")]
RowTruth = Annotated[
    bool | None,
    typer.Option(
        "--each-row-has-truth/--rows-may-lack-truth",
        help="Assume a right label in each row. Default: if each row has one.",
        rich_help_panel="Prediction options",
        show_default=False,
    ),
]
Kernel = Annotated[
    Literal["auto", "linear", "rbf"],
    option("KERNEL", "Kernel: auto, linear or rbf.", panel="Prediction options"),
]
UseLabels = Annotated[
    bool,
    typer.Option(
        "--use-labels/--no-labels",
        rich_help_panel="Prediction options",
        help="Use the other labels of a row.",
    ),
]
Checked = Annotated[Path | None, option("FILE", "Review file with your verdicts.")]


def prediction_options(kernel: str, use_labels: bool, row_truth: bool | None) -> dict[str, Any]:
    """Return the prediction options as parameters of `LabelSupport`."""
    truth: bool | str = "auto" if row_truth is None else row_truth
    return {"kernel": kernel, "use_labels": use_labels, "each_row_has_truth": truth}


def prediction_arguments(kernel: str, use_labels: bool, row_truth: bool | None) -> list[str]:
    """Return the command-line arguments that set the prediction options."""
    found = [] if kernel == "auto" else ["--kernel", kernel]
    if not use_labels:
        found.append("--no-labels")
    if row_truth is not None:
        found.append("--each-row-has-truth" if row_truth else "--rows-may-lack-truth")
    return found


@dataclass(frozen=True)
class DataOptions:
    """Data files and reading options, declared once for all commands."""

    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Data file, several parts of it, or a catalogue dataset."),
    ]
    labels: Annotated[
        str | None, option("COLUMNS", "Label columns: names, a pattern, the last N, or a file.")
    ] = None
    id: Annotated[str | None, option("COLUMN", "Column with the row names.", panel=_DATA)] = None
    ignore: Annotated[
        list[str] | None, option("COLUMNS", "Columns to leave out. Repeatable.", panel=_DATA)
    ] = None
    candidates: Annotated[
        str | None, option("COLUMNS", "Candidate label columns, if --labels holds true labels.", panel=_DATA)
    ] = None
    label_sep: Annotated[
        str | None, option("SEP", "Separator between tags in a cell, e.g. ';'.", panel=_DATA)
    ] = None
    text: Annotated[
        Literal["drop", "tfidf"] | None,
        option("HOW", "Free-text columns: drop or tfidf. Default: tfidf.", panel=_DATA),
    ] = None
    role: Annotated[
        list[str] | None,
        option("COLUMN=ROLE", f"Role of a column: {', '.join(ROLES)}. Repeatable.", panel=_DATA),
    ] = None
    nominal: Annotated[
        Literal["code", "onehot"] | None,
        option("ENCODING", "Encoding of categories: code or onehot.", panel=_DATA),
    ] = None
    missing: Annotated[
        Literal["error", "mean", "zero"] | None,
        option("HOW", "Missing values: error, mean or zero.", panel=_DATA),
    ] = None
    unknown: Annotated[
        str | None,
        option("TEXT", "Label cells that mean unknown, e.g. '?'.", panel=_DATA),
    ] = None
    merge: Annotated[
        list[str] | None,
        option("COLUMNS", "Label columns whose tags form one set. Repeatable.", panel=_DATA),
    ] = None
    label_names: Annotated[Path | None, option("FILE", "Names of labels that are codes.", panel=_DATA)] = None
    show: Annotated[
        list[str] | None, option("COLUMNS", "Columns to show with every row. Repeatable.", panel=_DATA)
    ] = None
    group: Annotated[
        str | None, option("COLUMN", "Column whose rows no split may separate.", panel=_DATA)
    ] = None
    max_memory: Annotated[
        str | None, option("SIZE", "Most memory to use, e.g. 8GB. Default: no limit.", panel=_DATA)
    ] = None

    def __post_init__(self) -> None:
        if len({os.path.realpath(file) for file in self.files}) < len(self.files):
            raise typer.BadParameter("must be different files, got the same file twice", param_hint="FILE")
        if self.label_sep is not None and not self.label_sep:
            raise typer.BadParameter("must be a character such as ';', got nothing", param_hint="--label-sep")
        self._memory_limit()
        for assignment in self.role or ():
            column, _, role = assignment.rpartition("=")
            if not column or role not in ROLES:
                raise typer.BadParameter(
                    f"must be COLUMN=ROLE with a role of {', '.join(ROLES)}, got {assignment!r}",
                    param_hint="--role",
                )

    def _memory_limit(self) -> int | None:
        try:
            return None if self.max_memory is None else parse_size(self.max_memory)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--max-memory") from None

    @property
    def given(self) -> dict[str, Any]:
        """Options with a value, as keyword arguments of `read`."""
        others = ("files", "max_memory")
        found = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in others}
        for name in ("ignore", "merge", "show"):
            if found[name] is not None and len(found[name]) == 1:
                found[name] = found[name][0]  # one name that may contain commas, or several names
        if self.label_sep is not None:
            found["label_sep"] = self.label_sep.replace("\\n", "\n").replace("\\t", "\t")
        roles = dict(assignment.rpartition("=")[::2] for assignment in found.pop("role") or ())
        given = {name: value for name, value in {**found, "roles": roles}.items() if value}
        return given if self.unknown is None else {**given, "unknown": self.unknown}  # it may be empty

    @property
    def arguments(self) -> list[str]:
        """Command-line arguments with the files and the options that have a value."""
        found = list(self.files)
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "files" or value is None:
                continue
            name = f"--{field.name.replace('_', '-')}"
            for text in value if isinstance(value, list) else [value]:
                found += [f"{name}={text}"] if text.startswith("-") or not text else [name, text]
        return found

    def with_id_of(self, review: Path | None) -> DataOptions:
        """Return the options with the row-name column of a review file."""
        if review is None:
            return self
        written = id_column(review)
        if written is None:  # rows are numbered
            return self
        if self.id not in (None, written):
            raise typer.BadParameter(
                f"{str(review)!r} names its rows by {written!r}, not by {self.id!r}", param_hint="--id"
            )
        return replace(self, id=written)

    def find_entry(self, console: Console, *, in_blocks: bool = False) -> CatalogEntry | None:
        """Return the catalogue entry, downloaded if necessary, or None for files.

        Data in blocks may be a folder. Catalogue datasets fit into memory, so they are never read in blocks.
        """
        if len(self.files) > 1 or (in_blocks and Path(self.files[0]).is_dir()) or _is_file(self.files[0]):
            return None
        entry = find_entry(self.files[0])
        if in_blocks:
            raise typer.BadParameter(
                f"is for files, and {entry.name} is a catalogue dataset", param_hint="--chunk-rows"
            )
        for name in self.given:
            option = {"roles": "role"}.get(name, name.replace("_", "-"))
            raise typer.BadParameter(
                f"is for files, and {entry.name} is a catalogue dataset", param_hint=f"--{option}"
            )
        if availability(entry.name) == "download":
            with download_bars(console) as bars:
                fetch(entry.name, progress=bars)
        return entry

    def read(self, console: Console, *, chunks: int | str | None = None) -> Dataset:
        """Read the files or load the catalogue dataset."""
        entry = self.find_entry(console, in_blocks=chunks is not None)
        if entry is not None:
            return load(entry.name)
        if chunks is None:
            risky = [file for file in (*self.files, self.labels, self.candidates) if file]
            read_in_child_first(risky, lambda: read(self.files, **self.given))
        dataset = read(self.files, chunks=chunks, **self.given)
        if not dataset.is_table:
            return dataset
        columns = tuple(column._replace(note=in_options(column.note)) for column in dataset.columns)
        return replace(dataset, columns=columns, notes=tuple(map(in_options, dataset.notes)))


def with_data_options(command: Callable[..., None], without: Collection[str] = ()) -> Callable[..., None]:
    """Add the data options, except `without`, to a command that takes them as one `DataOptions`."""
    hints = get_type_hints(DataOptions, include_extras=True)
    shared = [
        parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in inspect.signature(DataOptions).parameters.items()
        if name not in without
    ]
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        data = DataOptions(**{parameter.name: given.pop(parameter.name) for parameter in shared})
        with limited_memory(data._memory_limit()):
            try:
                command(data, **given)
            except MemoryError as error:  # described here, where the limit is known
                raise DatasetError(
                    f"not enough memory ({memory_reason(error)}). Use fewer rows or columns, or raise the limit."
                ) from error

    # Click parses arguments in this order. The help lists options in it too, and --labels comes first.
    ordered = [*shared, *(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own)]
    run.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    return run


@contextmanager
def reading(
    data: DataOptions, *, quiet: bool, chunks: int | str | None = None
) -> Iterator[tuple[Dataset, Console, Status]]:
    """Read the data, then show progress, notes and errors while they are used."""
    console = messages(quiet=quiet)
    with progress(console) as status:
        status(f"reading {Path(data.files[0]).name}")
        dataset = data.read(console, chunks=chunks)
        describe_columns(dataset, console)
        with warnings_as_notes(console), data_errors(dataset):
            yield dataset, console, status


def describe_columns(dataset: Dataset, console: Console, most: int = _COLUMNS_SHOWN) -> None:
    """Print the column roles of a table, unless all are numbers. Long lists show only columns with a note."""
    account = dataset.account()
    is_plain = not any(row["note"] or row["role"] not in _PLAIN_ROLES for row in account)
    if dataset.is_table and not is_plain:
        console.print(f"columns: {dataset.summary()}")
    for note in dataset.notes:
        console.print(f"note: {note}")
    if not dataset.is_table or is_plain:
        return
    if len(account) > most:
        account = [row for row in account if row["note"]][:most]
        rest = len(dataset.columns) - len(account)
        console.print(f"note: {count(rest, 'column')} not shown; use labelsieve datasets info FILE --json.")
    if account:
        columns: dict[str, list[object]] = {"column": [short(row["column"]) for row in account]}
        columns |= {name: [row[name] or "" for row in account] for name in ("role", "missing", "features")}
        if any(row["note"] for row in account):
            columns["note"] = [row["note"] for row in account]
        console.print(lay_out(console, columns, long="note"), soft_wrap=False)


def _is_file(target: str) -> bool:
    """Return True for a file and False for a catalogue name. Raise if a path does not exist."""
    path = Path(target)
    if path.exists() and not (
        path.is_dir() and is_known(target)
    ):  # a folder may share the name of a catalogue dataset
        return True
    if not path.suffix and len(path.parts) == 1:
        return False
    hint = "check the path, or list the catalogue with: labelsieve datasets."
    if path.parent.is_dir():
        meant = near(path.name, (entry.name for entry in path.parent.iterdir() if entry.is_file()))
        hint = hint if meant is None else f"did you mean {str(path.with_name(meant))!r}?"
    raise DatasetError(f"expected an existing file or a catalogue name, got {target!r}; {hint}")


@contextmanager
def data_errors(dataset: Dataset) -> Iterator[None]:
    """Raise errors of the methods as `DatasetError` with the name of the file."""
    source = dataset.source or dataset.name
    if dataset.X.shape[0] < 2:
        raise DatasetError(f"{source}: must have at least 2 rows, got 1 row.")
    try:
        yield
    except DatasetError:  # rows may be read during the fit
        raise
    except (ValueError, FloatingPointError) as error:
        # On the command line, both parameters are called -k.
        message = re.sub(r"n_(features_to_select|columns) must", "-k must", str(error))
        raise DatasetError(f"{source}: {message}") from error
    except MemoryError as error:
        raise DatasetError(
            f"{source}: the computation does not fit into memory ({memory_reason(error)}); use fewer rows or columns."
        ) from error


# Numbers on the command line


def parse_value(text: str) -> int | float | bool | str | None:
    """Parse a parameter value: a number, true, false, none, or text.

    Examples
    --------
    >>> [parse_value(text) for text in ("10", "1e-3", "inf", "true", "None", "minmax")]
    [10, 0.001, inf, True, None, 'minmax']
    """
    words = {"true": True, "false": False, "none": None, "inf": math.inf}
    if text.lower() in words:
        return words[text.lower()]
    with suppress(ValueError, SyntaxError):
        value = ast.literal_eval(text)
        if isinstance(value, (int, float)):
            return value
    return text


def parse_amount(text: str, option: str = "--features") -> int | float:
    """Parse a number or a fraction of features.

    Examples
    --------
    >>> parse_amount("20"), parse_amount("20%"), parse_amount("0.2")
    (20, 0.2, 0.2)
    """
    number = parse_value(text.removesuffix("%"))
    amount = number / 100 if text.endswith("%") and isinstance(number, (int, float)) else number
    is_number = isinstance(amount, int) and not isinstance(amount, bool) and amount >= 1
    is_fraction = isinstance(amount, float) and 0 < amount <= 1
    if not (is_number or is_fraction):
        raise typer.BadParameter(
            f"must be an integer such as 20 or a fraction such as 20%, got {text!r}", param_hint=option
        )
    return amount  # type: ignore[return-value]  # narrowed above


def parse_share(text: str, option: str) -> float:
    """Parse a share between 0 and 1, such as 10% or 0.1."""
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = math.nan
    if not 0 < share < 1:
        raise typer.BadParameter(
            f"must be between 0 and 100%, such as 10% or 0.1, got {text!r}", param_hint=option
        )
    return share


# Files to write


@contextmanager
def write_errors(path: Path, hint: str = "check the folder and the free disk space") -> Iterator[None]:
    """Raise an `OSError` as a `DatasetError` that names the file."""
    try:
        yield
    except OSError as error:
        raise DatasetError(f"{path}: cannot be written ({error}); {hint}.") from None


def write_text(path: Path, text: str) -> None:
    """Write a file atomically."""
    with write_errors(path), replacing(path) as stream:
        stream.write(text.encode())


def check_outputs(
    data: DataOptions,
    outputs: Mapping[str, Path | None],
    *,
    copy: str = "",
    reads: Sequence[Path | None] = (),
) -> None:
    """Reject outputs that cannot be written or would overwrite an input, before any work.

    `outputs` maps options to files. `copy` is the option whose file is a copy of the data, and `reads` are
    further input files.
    """
    sources = [str(source) for source in (*data.files, data.labels, data.candidates, *reads) if source]
    taken = {os.path.realpath(path) for source in sources for path in (source, _xml_next_to(source))}
    for option, output in outputs.items():
        if output is None:
            continue
        is_arff = option == copy and output.suffix.lower() == ".arff"
        for path in (output, *([output.with_suffix(".xml")] if is_arff else [])):
            real = os.path.realpath(path)
            complaint = ""
            if path.is_dir() or not os.path.isdir(os.path.dirname(real)):
                complaint = "must be a file in an existing folder"
            elif real in taken:
                complaint = "is already an input or another output"
            elif option == copy and not _is_writable(Path(sources[0]), output):
                complaint = f"must end in one of {', '.join(WRITERS)}"
            if complaint:
                raise typer.BadParameter(f"{str(path)!r} {complaint}", param_hint=option)
            taken.add(real)


def _is_writable(source: Path, output: Path) -> bool:
    """Return True if data can be written in this format, as numbers or as a copy of the table."""
    ending = output.suffix.lower()
    # The last suffix of a compressed file, such as .gz, is not a format we write.
    return ending in WRITERS or (
        ending in TABLE_FORMATS and ending == source.suffix.lower() and can_copy(source, output)
    )


def _xml_next_to(source: str) -> str:
    """Return the XML file that names the labels of a data file, or the file itself."""
    try:
        return str(find_label_xml(Source(source)) or source)
    except DatasetError:  # a catalogue name or a column pattern
        return source
