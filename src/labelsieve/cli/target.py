"""What the user points at: data in files or the catalogue, and places to write to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from labelsieve._pages import missing_packages
from labelsieve._text import count, near, printable
from labelsieve.cli.downloads import download_bars
from labelsieve.datasets.catalog import CatalogEntry
from labelsieve.datasets.fetch import availability, fetch, find_entry, is_known, load
from labelsieve.inspection.review import id_column
from labelsieve.io.copies import can_copy
from labelsieve.io.dataset import Dataset
from labelsieve.io.errors import DatasetError
from labelsieve.io.frames import TABLE_FORMATS
from labelsieve.io.mulan_xml import find_label_xml
from labelsieve.io.options import OptionError, ReadOptions
from labelsieve.io.reading import read_files
from labelsieve.io.source import Source
from labelsieve.io.writing import WRITERS

# Argument and options of the commands that read a file.
Files = Annotated[
    list[str],
    typer.Argument(metavar="FILE", help="Data file, its parts, or a name of the catalogue."),
]
Labels = Annotated[
    str | None,
    typer.Option(
        help="Label columns: names, a pattern, the number of last columns, an XML file or second table."
    ),
]
Candidates = Annotated[
    str | None, typer.Option(help="Candidate label columns or a second table, if there is a truth too.")
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(help="Columns that are neither features nor labels: names or a pattern; repeatable."),
]
Nominal = Annotated[
    str | None, typer.Option(help="Text columns become 'code' (numbers, the default) or 'onehot'.")
]
Missing = Annotated[str | None, typer.Option(help="Missing values: 'error' (the default), 'mean' or 'zero'.")]
Identifier = Annotated[
    str | None,
    typer.Option("--id", metavar="COLUMN", help="Column that names the rows; else they are numbered from 0."),
]

_CODED_SHOWN = 5
_MOST_COMPARED = 10_000


def reading_options(*, ignore: list[str] | None = None, **given: Any) -> ReadOptions:
    """The options of `read` as the user gave them, checked; None stands for one that was not given."""
    # One text may be a name with commas in it, or several names.
    left_out = ignore[0] if ignore and len(ignore) == 1 else ignore or None
    try:
        return ReadOptions(ignore=left_out, **given)
    except OptionError as error:
        raise typer.BadParameter(
            f"{error.value!r} is none of {', '.join(error.choices)}", param_hint=f"--{error.option}"
        ) from None


def find_target(
    targets: list[str], options: ReadOptions, console: Console, *, in_blocks: bool = False
) -> CatalogEntry | None:
    """The entry of the catalogue that is meant, downloaded if it is not here yet; None if these are files.

    What is read in blocks may be a folder, but not an entry: these fit into memory.
    """
    if len(targets) > 1 or (in_blocks and Path(targets[0]).is_dir()) or _is_file(targets[0]):
        return None
    entry = find_entry(targets[0])
    if in_blocks:
        raise typer.BadParameter(f"{entry.name} fits into memory; leave it out", param_hint="--chunk-rows")
    for name in options.given:
        raise typer.BadParameter(f"the catalogue knows the {name} of {entry.name}", param_hint=f"--{name}")
    if availability(entry.name) == "download":
        with download_bars(console) as bars:
            fetch(entry.name, progress=bars)
    return entry


def open_target(
    targets: list[str],
    entry: CatalogEntry | None,
    options: ReadOptions,
    *,
    chunks: int | str | None = None,
) -> Dataset:
    """Load what `find_target` found, or read the files."""
    return read_files(targets, options, chunks=chunks) if entry is None else load(entry.name)


@contextmanager
def told_if_unwritable(path: Path, way_out: str = "check the folder and free space") -> Iterator[None]:
    """Turn a disk's or folder's refusal into the one line the user reads."""
    try:
        yield
    except OSError as error:
        raise DatasetError(f"{path}: cannot be written ({error}); {way_out}.") from None


def _is_file(target: str) -> bool:
    """Tell a file from a catalogue name; what looks like a path must exist."""
    path = Path(target)
    if path.is_file():  # a folder may well be called like the data set it holds
        return True
    if path.is_dir() and not is_known(target):
        raise DatasetError(f"{target} is a folder; give the data file inside it.")
    if target == "-" or (path.exists() and not path.is_dir()):  # readers come back to the start of a file
        raise DatasetError(
            f"{target}: standard input and other pipes are not read; save the data to a file first."
        )
    if path.suffix or len(path.parts) > 1:
        meant = near(path.name, _files_beside(path))
        way_out = "check the path, or choose from: labelsieve datasets."
        if meant is not None:
            way_out = f"did you mean {str(path.with_name(meant))!r}?"
        raise DatasetError(
            f"an existing file or a name of the catalogue was expected, got {target!r}; {way_out}"
        )
    return False


def _files_beside(path: Path) -> list[str]:
    """Names of the files in the folder of a path, of very many the first; none where it cannot be listed."""
    try:
        with os.scandir(path.parent) as entries:
            # Of a link in a circle `entry.is_file` makes an error.
            return [entry.name for entry in islice(entries, _MOST_COMPARED) if os.path.isfile(entry.path)]
    except OSError:
        return []


def naming_column(given: str | None, review: Path | None) -> str | None:
    """The column that names the rows, from the option or from the review file that is used."""
    written = None if review is None else id_column(review)
    if given is not None and review is not None and given != written:
        has = "numbers its rows" if written is None else f"names its rows by {written!r}"
        raise typer.BadParameter(f"{str(review)!r} {has}, not by {given!r}", param_hint="--id")
    return given or written


def coding_note(nominal: Sequence[str]) -> str:
    """Say which columns were text."""
    shown = [*map(printable, nominal[:_CODED_SHOWN]), *("...",) * (len(nominal) > _CODED_SHOWN)]
    return (
        f"note: categories were coded 0, 1, 2, ... in {count(len(nominal), 'column')}: {', '.join(shown)}; "
        "--nominal onehot makes a feature of each."
    )


def refuse_repeated(files: Sequence[str]) -> None:
    """Refuse the same file given twice."""
    if len({os.path.realpath(file) for file in files}) < len(files):
        raise typer.BadParameter("the same file is given twice", param_hint="FILE")


def refuse_without_jinja(html: Path | None) -> None:
    """Refuse a page that cannot be made."""
    if html is not None and missing_packages(["jinja2"]):
        raise typer.BadParameter("needs jinja2; pip install 'labelsieve[report]'", param_hint="--html")


def check_targets(
    sources: Sequence[str | Path | None], targets: dict[str, Path | None], *, data: str
) -> None:
    """Refuse, before any work, to write where nothing can be written or over the data.

    Targets are the files to write by option; `data` is the option of the one that is a data file. None is no file.
    """
    read = [str(source) for source in sources if source is not None]
    taken = {os.path.realpath(path) for source in read for path in (source, _xml_beside(source))}
    for option, target in targets.items():
        if target is None:
            continue
        is_data = option == data
        beside = [target.with_suffix(".xml")] if is_data and target.suffix.lower() == ".arff" else []
        for path in (target, *beside):
            real = os.path.realpath(path)
            complaint = ""
            if path.is_dir() or not os.path.isdir(os.path.dirname(real)):
                complaint = "is not a file in an existing folder"
            elif real in taken:
                complaint = "is read or written already"
            elif is_data and not _is_writable(Path(read[0]), target):
                complaint = f"must end in one of {', '.join(WRITERS)}"
            if complaint:
                raise typer.BadParameter(f"{str(path)!r} {complaint}", param_hint=option)
            taken.add(real)


def _is_writable(source: Path, target: Path) -> bool:
    """Whether data can be written to a file with such an ending: as numbers, or as the table it came from."""
    ending = target.suffix.lower()
    if ending in WRITERS:
        return True
    # A compressed file ends like its compression, which is not written.
    return ending in TABLE_FORMATS and ending == source.suffix.lower() and can_copy(source, target)


def _xml_beside(source: str) -> str:
    """The XML file that the reader finds beside a data file, or the file itself."""
    try:
        return str(find_label_xml(Source(source)) or source)
    except DatasetError:  # a name of the catalogue, a pattern of columns, or a file that `read` will refuse
        return source
