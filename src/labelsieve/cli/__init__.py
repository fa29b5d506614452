"""The command line.

Exit codes: 0 success, 1 invalid data, 2 invalid usage, 3 some benchmark cells failed, 129 hung up,
130 interrupted, 141 closed output pipe, 143 terminated.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from labelsieve import __version__
from labelsieve._text import one_line
from labelsieve.bench import RunError, RunInterrupted, require_packages

EPILOG = """\
\b
Examples:
  labelsieve demo
  labelsieve audit data.csv --labels 'label_*' --html audit.html
  labelsieve select data.csv --labels 'label_*' -k 20%
  labelsieve issues data.csv --labels 'label_*' --id name --output review.csv
  labelsieve methods pml-fsmir
"""

#: Commands with the first line of their help. Each is defined in the module of the same name.
COMMANDS = {
    "demo": "Audit a built-in table of tagged animals.",
    "audit": "Rank columns, choose how many to keep, and flag label errors.",
    "select": "Select the features that matter for the labels.",
    "issues": "List labels that may be wrong or missing.",
    "review": "Review labels in the browser.",
    "apply-review": "Remove the wrong labels of a review and add the missing ones.",
    "methods": "List the methods or explain one.",
    "report": "Report the results of a run as a page, tables and figures.",
    "datasets": "List, describe and download datasets.",
    "bench": "Run resumable experiments.",
}


class Command(TyperCommand):
    """Command with one help section per panel, common options first."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line, with metavars for arguments."""
        arguments = [param for param in self.get_params(ctx) if param.param_type_name == "argument"]
        return ["[OPTIONS]", *(str(param.metavar) for param in arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options without a panel, then one section per panel."""
        params: list[Any] = self.get_params(ctx)
        arguments = [param for param in params if param.param_type_name == "argument"]
        sections = {"Options": [(param.metavar, param.help) for param in arguments]}
        for param in params:
            if param not in arguments:
                panel = param.rich_help_panel or "Options"
                sections.setdefault(panel, []).append(param.get_help_record(ctx))
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def main(args: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # the terminal may not support all characters
    received: list[int] = []
    try:
        with raise_on_signals(received):
            run = _program(sys.argv[1:] if args is None else args)
            code: int = run(args=args, prog_name="labelsieve", standalone_mode=False) or 0
            print(end="", flush=True)
            if code == 130:  # typer turns KeyboardInterrupt into this code or into Abort
                raise KeyboardInterrupt
    except (BrokenPipeError, SystemExit):  # typer and rich raise SystemExit for a closed pipe
        _discard_output()
        return 141
    except (Exception, KeyboardInterrupt) as error:
        _discard_output()
        message, code = _describe(error, received)
        print(f"error: {one_line(message)}", file=sys.stderr)
    return code


def _program(args: list[str]) -> typer.Typer:
    """Declare all commands but import only the one that is called."""
    app = typer.Typer(
        add_completion=False, rich_markup_mode=None, context_settings={"max_content_width": 100}
    )
    app.callback(invoke_without_command=True, epilog=EPILOG)(root)
    called = next((word for word in args if not word.startswith("-")), None)
    for name, sentence in COMMANDS.items():
        if name != called:
            app.command(name, help=sentence)(lambda: None)
            continue
        if name in ("bench", "report"):
            require_packages()
        function = name.replace("-", "_")
        module = import_module(f"labelsieve.cli.{function}")
        if hasattr(module, "app"):  # a command with subcommands
            app.add_typer(module.app, name=name)
        else:
            app.command(name, cls=Command, epilog=module.EPILOG)(getattr(module, function))
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
    """Select features and find wrong labels in partial multi-label data."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


class Terminated(KeyboardInterrupt):
    """Interruption by SIGTERM or SIGHUP."""


@contextmanager
def raise_on_signals(received: list[int]) -> Iterator[None]:
    """Raise `Terminated` on the first SIGTERM or SIGHUP, so that the program cleans up as after Ctrl-C.

    The signal number is appended to `received`. Signals are left alone if the calling program handles or ignores
    them, as under nohup, and outside the main thread, which alone can handle them.
    """

    def handle(number: int, frame: object) -> None:
        # A system may signal both the process and its group. The second signal must not stop the cleanup,
        # and it may interrupt this function, so `received` has no lock.
        if not received:
            received.append(number)
            raise Terminated

    in_main_thread = threading.current_thread() is threading.main_thread()
    handled = [
        number
        for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM))
        if in_main_thread and signal.getsignal(number) is signal.SIG_DFL
    ]
    for number in handled:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)


def _describe(error: BaseException, received: list[int]) -> tuple[str, int]:
    """Return the message and the exit code of an error, or of the first received signal."""
    if isinstance(error, (KeyboardInterrupt, typer.Abort, RunInterrupted)):
        ending = "terminated. No incomplete files were written." if received else "interrupted."
        return str(error) or ending, 128 + received[0] if received else 130

    from labelsieve.io.errors import DatasetError  # imports pandas
    from labelsieve.io.memory import lacks_memory, memory_reason

    if hasattr(error, "format_message"):  # usage error of click or of the copy inside typer
        return error.format_message(), 2
    if isinstance(error, DatasetError):
        return in_options(str(error)), 1
    if isinstance(error, RunError):
        return str(error), 1
    if lacks_memory(error):
        return (
            f"not enough memory ({memory_reason(error)}). Use fewer rows or columns, or raise the limit.",
            1,
        )
    if isinstance(error, OSError):  # for example, standard output is a file on a full disk
        return f"{error}. Check the files and the free disk space.", 1
    if os.environ.get("LABELSIEVE_DEBUG"):
        raise error
    return (
        f"labelsieve failed unexpectedly ({type(error).__name__}: {error}). Run the command again with "
        "LABELSIEVE_DEBUG=1 and report its output.",
        1,
    )


def in_options(message: str) -> str:
    """Replace parameters of `read` in a message with command-line options.

    Examples
    --------
    >>> in_options("check `label_sep`, or use `ignore='bird id'` or `roles={'size': 'number'}`.")
    "check --label-sep, or use --ignore 'bird id' or --role size=number."
    """

    def option(found: re.Match[str]) -> str:
        name = {"chunks": "chunk-rows", "roles": "role"}.get(found[1], found[1].replace("_", "-"))
        if found[2] is None:
            return f"--{name}"
        value = ast.literal_eval(found[2])
        if isinstance(value, dict):
            value = " ".join(f"{column}={role}" for column, role in value.items())
        return f"--{name} {shlex.quote(str(value))}"

    text = r"'[^'`\\]*'"
    return re.sub(rf"`([a-z_]+)(?:=({text}|-?\d+|{{{text}: {text}}}))?`", option, message)


def _discard_output() -> None:
    """Discard unwritten output, because Python would fail again when it flushes at exit."""
    try:
        print(end="", flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
