"""What the user points at: data in files or the catalogue, and places to write to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from labelsieve.datasets.catalog import CatalogEntry
from labelsieve.datasets.dataset import Dataset, DatasetError
from labelsieve.datasets.fetch import find_entry, load
from labelsieve.datasets.reading import read


def open_target(targets: list[str], **options: Any) -> tuple[Dataset, CatalogEntry | None]:
    """Read files, or load a data set of the catalogue; `options` are those of `read`."""
    given = {name: value for name, value in options.items() if value is not None}
    entry = None if len(targets) > 1 or _is_file(targets[0]) else find_entry(targets[0])
    if entry is None:
        return read([Path(target) for target in targets], **given), None
    if given:
        name = next(iter(given))
        raise typer.BadParameter(f"the catalogue knows the {name} of {entry.name}", param_hint=f"--{name}")
    return load(entry.name), entry


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
    if path.suffix or len(path.parts) > 1:
        raise DatasetError(f"an existing file or a name of the catalogue was expected, got {target!r}.")
    return False
