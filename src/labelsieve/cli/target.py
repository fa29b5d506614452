"""What the user points at: data in files or the catalogue, and places to write to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from labelsieve.cli.downloads import download_bars
from labelsieve.datasets.catalog import CatalogEntry
from labelsieve.datasets.dataset import Dataset
from labelsieve.datasets.errors import DatasetError
from labelsieve.datasets.fetch import availability, fetch, find_entry, is_known, load
from labelsieve.datasets.options import OptionError, ReadOptions
from labelsieve.datasets.reading import read_files

# Options of the commands that read a file.
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
    str | None, typer.Option(help="Columns that are neither, such as an identifier: names or a pattern.")
]
Nominal = Annotated[
    str | None, typer.Option(help="Text columns become 'code' (numbers, the default) or 'onehot'.")
]
Missing = Annotated[str | None, typer.Option(help="Missing values: 'error' (the default), 'mean' or 'zero'.")]


def reading_options(**given: str | None) -> ReadOptions:
    """The options of `read` as the user gave them, checked; None stands for one that was not given."""
    try:
        return ReadOptions.of(**given)
    except OptionError as error:
        raise typer.BadParameter(
            f"{error.value!r} is none of {', '.join(error.choices)}", param_hint=f"--{error.option}"
        ) from None


def find_target(targets: list[str], options: ReadOptions, console: Console) -> CatalogEntry | None:
    """The entry of the catalogue that is meant, downloaded if it is not here yet; None if these are files."""
    if len(targets) > 1 or _is_file(targets[0]):
        return None
    entry = find_entry(targets[0])
    for name in options.given:
        raise typer.BadParameter(f"the catalogue knows the {name} of {entry.name}", param_hint=f"--{name}")
    if availability(entry.name) == "download":
        with download_bars(console) as bars:
            fetch(entry.name, progress=bars)
    return entry


def open_target(targets: list[str], entry: CatalogEntry | None, options: ReadOptions) -> Dataset:
    """Load what `find_target` found, or read the files."""
    return read_files(targets, options) if entry is None else load(entry.name)


@contextmanager
def told_if_unwritable(path: Path) -> Iterator[None]:
    """Turn a disk's or folder's refusal into the one line the user reads."""
    try:
        yield
    except OSError as error:
        raise DatasetError(f"{path}: cannot be written ({error}); check the folder and free space.") from None


def _is_file(target: str) -> bool:
    """Tell a file from a catalogue name; what looks like a path must exist."""
    path = Path(target)
    if path.is_file():  # a folder may well be called like the data set it holds
        return True
    if path.is_dir() and not is_known(target):
        raise DatasetError(f"{target} is a folder; give the data file inside it.")
    if path.suffix or len(path.parts) > 1:
        raise DatasetError(
            f"an existing file or a name of the catalogue was expected, got {target!r}; check the path, "
            "or choose from: labelsieve datasets."
        )
    return False
