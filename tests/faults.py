"""Let the n-th operation on files of a folder fail, for every n."""

import builtins
import io
import os
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

#: Methods of open files, and functions of `os`, that may fail.
_METHODS = ("read", "readline", "readlines", "write", "writelines", "flush", "truncate", "close")
_FUNCTIONS = ("fsync", "mkdir", "rename", "replace", "write")


class Faults:
    """Counter of operations on files of a folder, of which one raises an error."""

    def __init__(self, folder, fatal=0, error=None):
        self._folder, self._fatal, self._error = os.path.realpath(folder), fatal, error
        #: Number of operations so far.
        self.n_operations = 0

    def check(self):
        """Count an operation, and raise if it is the fatal one."""
        self.n_operations += 1
        if self.n_operations == self._fatal:
            raise self._error

    def concerns(self, path):
        """Return True for a path, or a descriptor of a file, in the folder."""
        if isinstance(path, int):
            path = os.readlink(f"/proc/self/fd/{path}")
        path = os.path.realpath(os.fspath(path))
        return isinstance(path, str) and path.startswith(self._folder)


class _File:
    """Open file whose operations are counted."""

    def __init__(self, file, faults):
        self._file, self._faults = file, faults

    def __getattr__(self, name):
        found = getattr(self._file, name)
        if name not in _METHODS:
            return found

        def method(*arguments):
            try:
                self._faults.check()
            except BaseException:
                if name == "close":
                    self._file.close()
                raise
            return found(*arguments)

        return method

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.close()
        else:
            self._file.close()

    def __iter__(self):
        return iter(self._file)


@contextmanager
def failing(folder, fatal=0, error=None):
    """Raise `error` at the operation number `fatal`. Yield the counter."""
    faults, opened = Faults(folder, fatal, error), io.open

    def open_file(path, mode="r", *arguments, **options):
        if not faults.concerns(path):
            return opened(path, mode, *arguments, **options)
        faults.check()
        return _File(opened(path, mode, *arguments, **options), faults)

    def counted(function):
        def call(path, *arguments, **options):
            if faults.concerns(path):
                faults.check()
            return function(path, *arguments, **options)

        return call

    with ExitStack() as stack:
        for module in (builtins, io):
            stack.enter_context(patch.object(module, "open", open_file))
        for name in _FUNCTIONS:
            stack.enter_context(patch.object(os, name, counted(getattr(os, name))))
        yield faults


def contents(folder):
    """Return the content of every file in a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()
    }


def every_failure(folder, prepare, act, errors):
    """Call `act` in a prepared folder once for every operation and error; yield what remains.

    Yields tuples of the operation, the error that was injected, the outcome of `act` (an exception if it raised one),
    the files before, the files of an undisturbed call, and the files afterwards.
    """
    prepare()
    before = contents(folder)
    with failing(folder) as counter:
        act()
    complete = contents(folder)
    for error in errors:
        for number in range(1, counter.n_operations + 1):
            prepare()
            with failing(folder, number, error) as faults:
                try:
                    outcome = act()
                except BaseException as raised:
                    outcome = raised
            assert faults.n_operations >= number
            yield number, error, outcome, before, complete, contents(folder)
