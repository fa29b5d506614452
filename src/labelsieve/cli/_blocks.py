"""Files larger than memory: what ``labelsieve select --chunk-rows`` accepts, and the cluster it may use."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import typer
from rich.console import Console

from labelsieve import METHODS
from labelsieve._base import BaseSelector, BlockSelector
from labelsieve.io import DatasetError
from labelsieve.methods.evidence import EvidenceSelector

_GB = 1e9


def parse_rows(text: str) -> int | str:
    """Read a number of rows, or 'auto'."""
    if text == "auto":
        return text
    if not text.isdecimal() or not int(text):
        raise typer.BadParameter(
            f"must be a number of rows such as 50000, or auto, got {text!r}", param_hint="--chunk-rows"
        )
    return int(text)


def check_block_usage(
    selector: BaseSelector, method: str, *, choose_size: bool, needs_rows: Mapping[str, object]
) -> None:
    """Reject what needs all rows at once, before any data are read; `needs_rows` are values of options by name."""
    if not isinstance(selector, BlockSelector):
        able = ", ".join(slug for slug, kind in METHODS.items() if issubclass(kind, BlockSelector))
        raise typer.BadParameter(
            f"{method} needs all rows at once; with --chunk-rows use one of {able}", param_hint="--method"
        )
    for option, value in needs_rows.items():
        if value:
            raise typer.BadParameter("needs all rows at once and excludes --chunk-rows", param_hint=option)
    if choose_size and not isinstance(selector, EvidenceSelector):
        raise typer.BadParameter(
            f"'auto' of {method} needs all rows at once; give a number", param_hint="--features"
        )


@contextmanager
def dask_cluster(address: str | None, console: Console) -> Iterator[None]:
    """Run fits on a cluster, if an address is given."""
    if address is None:
        yield
        return
    try:
        from labelsieve._blocks.cluster import LostClusterError, connect
    except ImportError:
        raise DatasetError("--dask needs dask; pip install 'labelsieve[dask]'.") from None
    try:
        with connect(address) as client:
            console.print(f"note: the dashboard of the cluster is at {client.dashboard_link}")
            yield
    except LostClusterError as error:
        raise DatasetError(f"--dask: {error}") from None


def size_hint(files: Sequence[str], console: Console) -> None:
    """Note that files which would take much of the memory can be read in blocks."""
    with suppress(
        AttributeError, OSError, ValueError
    ):  # a name of the catalogue, or a system that does not tell
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        n_bytes = sum(os.path.getsize(file) for file in files)
        if 0 < memory / 4 < n_bytes:
            console.print(
                f"note: {files[0]} takes {n_bytes / _GB:.1f} GB and this machine has {memory / _GB:.1f} GB of memory; "
                "--chunk-rows auto reads it in blocks of rows."
            )
