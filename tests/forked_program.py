"""Programs in processes of their own that need not import everything first.

A server, started at the first need, has imported what runs and clusters need and forks. From there on they are
processes like any other: with a session, an environment, streams and an end of their own.
"""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path

_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(
    [
        "labelsieve.cli.bench",
        "labelsieve.bench.runner",
        "labelsieve.report",
        # Imported for clusters, if dask is installed.
        "distributed.cli.dask_worker",
        "dask.array",
        "labelsieve.bench.cluster",
    ]
)


class ForkedProgram:
    """A command line in a folder and an environment; used like `subprocess.Popen`.

    It writes to two files, or to the terminal of that name.
    """

    def __init__(self, command, folder, environment, terminal=None):
        self._streams = tempfile.mkdtemp()
        weakref.finalize(self, shutil.rmtree, self._streams, ignore_errors=True)
        outputs = [terminal or os.path.join(self._streams, name) for name in ("out", "err")]
        self._process = _SERVER.Process(
            target=_run, args=(command, str(folder), environment, outputs), daemon=True
        )
        self._process.start()
        self.pid = self._process.pid

    @property
    def returncode(self):
        return self._process.exitcode

    poll = returncode.fget

    def wait(self, timeout=None):
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout)
        return self.returncode

    def kill(self):
        self._process.kill()

    def communicate(self, timeout=None):
        """Wait for the end; returns what was written to the two streams."""
        self.wait(timeout)
        return tuple(
            Path(self._streams, name).read_text(encoding="utf-8", errors="surrogateescape")
            for name in ("out", "err")
        )


def _run(command, folder, environment, outputs):
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, output in enumerate(outputs, start=1):
        os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT), number)
    if os.isatty(1):  # the server's own streams know that they are files
        sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
    # Also where the tests run in the background of a shell, which lets its processes ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv[:] = command
    from quick_cells import computed  # here, for it imports this module

    with computed(environment["CELLS"]):
        sys.exit({"labelsieve": _labelsieve, "dask": _dask}[command[0]]())


def _labelsieve():
    from labelsieve.cli import main

    return main(sys.argv[1:])


def _dask():
    import dask
    from dask.cli import run_cli

    dask.config.refresh()  # the server read its own environment
    run_cli()
