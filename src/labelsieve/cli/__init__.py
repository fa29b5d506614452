"""The command line.

Exit codes: 0 done, 1 bad data, 2 bad usage, 3 done but cells failed, 130 interrupted, 141 nobody reads the output,
143 terminated.
"""

from __future__ import annotations

import os
import sys
import threading
from importlib import import_module
from typing import Annotated

import typer

from labelsieve import __version__
from labelsieve._text import one_line
from labelsieve.cli.termination import raising_terminated

root_epilog = """\
Examples:

labelsieve demo

labelsieve audit data.csv --labels 'label_*' --html audit.html

labelsieve methods pml-fsmir

labelsieve select data.csv --labels 'label_*' -k 20%

labelsieve select data.arff -k 10 --write-data small.arff

labelsieve issues data.csv --labels 'label_*' --id name --output review.csv
"""

#: Every command is the module of its name; the sentence is the first of its own help.
COMMANDS = {
    "demo": "Select pixels of handwritten digits: real data, no download.",
    "audit": "Tell which columns of a table matter, how many, how surely, and which labels look wrong.",
    "select": "Select the features that matter for the labels of a data set.",
    "issues": "List the candidate labels to doubt first, and write a file to review them in.",
    "apply-review": "Write the data without the candidate labels that a review removes.",
    "methods": "List the methods, or explain one.",
    "report": "Write the report of a run: a page to explore, tables, and figures if asked for.",
    "datasets": "List, describe and fetch data sets.",
    "bench": "Run experiments: resumable, one cell at a time.",
}


def main(args: list[str] | None = None) -> int:
    """Run the command line; returns 0 when done, 1 for bad data, 2 for bad usage."""
    _mend_streams()
    terminated = threading.Event()
    try:
        with raising_terminated(terminated):
            run = _program(sys.argv[1:] if args is None else args)
            code: int = run(args=args, prog_name="labelsieve", standalone_mode=False) or 0
            sys.stdout.flush()
            if code == 130:  # what typer makes of a KeyboardInterrupt in some versions; in others, Abort
                raise KeyboardInterrupt
    except (BrokenPipeError, SystemExit):
        # Typer and rich answer a closed pipe by SystemExit.
        _abandon_output()
        return 141
    except (Exception, KeyboardInterrupt) as error:
        _abandon_output()
        message, code = _account(error, terminated=terminated.is_set())
        print(f"error: {one_line(message)}", file=sys.stderr)
    return code


def _mend_streams() -> None:
    """Make both streams take whatever is written: some programs are started without one, others cannot show a name."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed from the start; a file opened later must not take its place either
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  # for good
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _program(args: list[str]) -> typer.Typer:
    """Declare the commands; only the one that is called is imported, the others lend the help their sentence."""
    app = typer.Typer(
        add_completion=False, rich_markup_mode=None, context_settings={"max_content_width": 100}
    )
    app.callback(invoke_without_command=True, epilog=root_epilog)(root)
    called = next((word for word in args if not word.startswith("-")), None)
    for name, sentence in COMMANDS.items():
        if name != called:
            app.command(name, help=sentence)(lambda: None)
            continue
        function = name.replace("-", "_")
        module = import_module(f"labelsieve.cli.{function}")
        if hasattr(module, "app"):  # a command with commands of its own
            app.add_typer(module.app, name=name)
        else:
            app.command(epilog=module.EPILOG)(getattr(module, function))
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"labelsieve {__version__}")
        raise typer.Exit


def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Select features on partial multi-label data: which matter when the labels cannot be trusted."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _account(error: BaseException, *, terminated: bool) -> tuple[str, int]:
    """Say what ended the program, and the exit code; what nobody foresaw asks for a report."""
    from labelsieve.bench import RunError, RunInterrupted

    if isinstance(error, (KeyboardInterrupt, typer.Abort, RunInterrupted)):
        ending = "terminated; nothing half-written is left." if terminated else "interrupted."
        return str(error) or ending, 143 if terminated else 130
    # Typer carries a click of its own in some versions and not in others; its errors know how to speak.
    if hasattr(error, "format_message"):
        return error.format_message(), 2
    from labelsieve.cli.console import in_options
    from labelsieve.io.errors import DatasetError

    if isinstance(error, DatasetError):
        return error.spelled(in_options), 1
    if isinstance(error, RunError):
        return str(error), 1
    if isinstance(error, OSError):  # standard output itself may be a file on a full disk
        return f"{error}; check the files and free space.", 1
    if os.environ.get("LABELSIEVE_DEBUG"):
        raise error
    return (
        f"labelsieve failed unexpectedly ({type(error).__name__}: {error}); please report it, with "
        "what LABELSIEVE_DEBUG=1 in front of the command shows.",
        1,
    )


def _abandon_output() -> None:
    """Let what standard output did not take go nowhere, or Python complains again when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
