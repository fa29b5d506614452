"""What the user points at: data in files or the catalogue, and places to write to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from labelsieve.cli.downloads import download_bars
from labelsieve.datasets.catalog import CatalogEntry
from labelsieve.datasets.dataset import Dataset
from labelsieve.datasets.errors import DatasetError
from labelsieve.datasets.fetch import availability, fetch, find_entry, is_known, load
from labelsieve.datasets.reading import read

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

_CHOICES = {"nominal": ("code", "onehot"), "missing": ("error", "mean", "zero")}


def open_target(targets: list[str], **options: Any) -> tuple[Dataset, CatalogEntry | None]:
    """Read files, or load a data set of the catalogue; `options` are those of `read`."""
    entry, given = _settle(targets, options)
    if entry is None:
        return read([Path(target) for target in targets], **given), None
    return load(entry.name), entry


def download_target(targets: list[str], console: Console, **options: Any) -> None:
    """Download the files of a data set of the catalogue that are not here yet, showing the progress."""
    entry, _ = _settle(targets, options)
    if entry is not None and availability(entry.name) == "download":
        with download_bars(console) as bars:
            fetch(entry.name, progress=bars)


def _settle(targets: list[str], options: dict[str, Any]) -> tuple[CatalogEntry | None, dict[str, Any]]:
    """The entry that is meant, if the target is none of files, and the options given, checked."""
    given = {name: value for name, value in options.items() if value is not None}
    for name, value in given.items():
        choices = _CHOICES.get(name)
        if choices is not None and value not in choices:
            raise typer.BadParameter(f"{value!r} is none of {', '.join(choices)}", param_hint=f"--{name}")
    entry = None if len(targets) > 1 or _is_file(targets[0]) else find_entry(targets[0])
    if entry is not None and given:
        name = next(iter(given))
        raise typer.BadParameter(f"the catalogue knows the {name} of {entry.name}", param_hint=f"--{name}")
    return entry, given


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
