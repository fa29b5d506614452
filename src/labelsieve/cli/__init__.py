"""The command line. Exit codes: 0 done, 1 bad data, 2 bad usage, 3 done but cells failed, 130 interrupted."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from labelsieve import __version__
from labelsieve._text import one_line
from labelsieve.bench import RunError, RunInterrupted
from labelsieve.cli import bench, datasets, demo, methods, report, select
from labelsieve.cli.console import in_options
from labelsieve.datasets.dataset import DatasetError

root_epilog = """\
Examples:

labelsieve demo

labelsieve methods pml-fsmir

labelsieve select data.csv --labels 'label_*' -k 20%

labelsieve select data.arff -k 10 --write-data small.arff
"""

app = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings={"max_content_width": 100})
app.command(epilog=demo.EPILOG)(demo.demo)
app.command(epilog=select.EPILOG)(select.select)
app.command(epilog=methods.EPILOG)(methods.methods)
app.add_typer(datasets.app, name="datasets")
app.add_typer(bench.app, name="bench")
app.command(epilog=report.EPILOG)(report.report)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"labelsieve {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True, epilog=root_epilog)
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Select features on partial multi-label data: which matter when the labels cannot be trusted."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(args: list[str] | None = None) -> int:
    """Run the command line; returns 0 when done, 1 for bad data, 2 for bad usage."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a name the terminal cannot show must not end the program
            stream.reconfigure(errors="backslashreplace")
    try:
        code = app(args=args, prog_name="labelsieve", standalone_mode=False) or 0
        sys.stdout.flush()
    except DatasetError as error:
        return _fail(in_options(str(error)), 1)
    except RunError as error:
        return _fail(str(error), 1)
    except RunInterrupted as stop:
        return _fail(str(stop), 130)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted.", 130)
    except (BrokenPipeError, SystemExit):
        # Typer and rich answer a closed pipe by SystemExit.
        _abandon_output()
        return 141
    except OSError as error:  # standard output itself may be a file on a full disk
        _abandon_output()
        return _fail(f"{error}; check the files and free space.", 1)
    except Exception as error:
        # Typer carries a click of its own in some versions and not in others; its errors know how to speak.
        if hasattr(error, "format_message"):
            return _fail(error.format_message(), 2)
        if os.environ.get("LABELSIEVE_DEBUG"):
            raise
        return _fail(
            f"labelsieve failed unexpectedly ({type(error).__name__}: {error}); please report it, with "
            "what LABELSIEVE_DEBUG=1 in front of the command shows.",
            1,
        )
    return _fail("interrupted.", 130) if code == 130 else code


def _abandon_output() -> None:
    """Let what standard output did not take go nowhere, or Python complains again when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int) -> int:
    print(f"error: {one_line(message)}", file=sys.stderr)
    return code
