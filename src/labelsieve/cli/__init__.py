"""The command line."""

from __future__ import annotations

import sys

import typer

from labelsieve.cli import datasets
from labelsieve.datasets.dataset import DatasetError

app = typer.Typer(no_args_is_help=True, add_completion=False)
app.add_typer(datasets.app, name="datasets")


@app.callback()
def root() -> None:
    """Select features on partial multi-label data."""


def main(args: list[str] | None = None) -> int:
    """Run the command line; returns 0 when done, 1 for bad data, 2 for bad usage."""
    try:
        return app(args=args, standalone_mode=False) or 0
    except DatasetError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except Exception as error:
        # Typer carries a click of its own in some versions and not in others; its errors know how to speak.
        if not hasattr(error, "format_message"):
            raise
        print(f"error: {error.format_message()}", file=sys.stderr)
        return 2
