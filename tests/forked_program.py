"""The command line in processes of their own that need not import everything first.

A server, started at the first need, has imported what runs need and forks. From there on they are processes like
any other: with a session, an environment, streams and an end of their own.
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
_SERVER.set_forkserver_preload(["labelsieve.cli.bench", "labelsieve.bench.runner", "labelsieve.report"])


class ForkedProgram:
    """``labelsieve`` with arguments, in a folder and an environment; used like `subprocess.Popen`."""

    def __init__(self, arguments, folder, environment):
        self._streams = tempfile.mkdtemp()
        weakref.finalize(self, shutil.rmtree, self._streams, ignore_errors=True)
        self._process = _SERVER.Process(
            target=_run, args=(arguments, str(folder), environment, self._streams), daemon=True
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
            raise subprocess.TimeoutExpired("labelsieve", timeout)
        return self.returncode

    def communicate(self, timeout=None):
        """Wait for the end; returns what was written to the two streams."""
        self.wait(timeout)
        return tuple(
            Path(self._streams, name).read_text(encoding="utf-8", errors="surrogateescape")
            for name in ("out", "err")
        )


def _run(arguments, folder, environment, streams):
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(Path(streams, name), os.O_WRONLY | os.O_CREAT), number)
    # Also where the tests run in the background of a shell, which lets its processes ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv[:] = ["labelsieve", *arguments]
    from labelsieve.cli import main

    sys.exit(main(arguments))
