"""A Python that has imported everything already, for processes that run cells.

Started as users start them they spend two seconds on imports. Here a nursery, itself forked from a process that has
done so, forks them; from there on they are processes like any other, with the pipes, the environment and the group
that they were asked for. What differs: their parent is not who asked for them, but a process that waits for them
and tells how they ended.
"""

import fcntl
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import threading
import traceback
from contextlib import suppress
from pathlib import Path

# Far above the numbers that anybody asks for.
_HIGH = 500
_NUMBER = struct.Struct("i")
#: What the system calls them.
NAME = "forked cells"


class ForkedPython:
    """Used like `subprocess.Popen` of ``[python, "-P", "-c", program]``, as far as cells need it."""

    def __init__(self, nursery, command, *, stdin, stdout, env, pass_fds, process_group):
        assert (stdin, stdout, process_group) == (subprocess.PIPE, subprocess.PIPE, 0)
        commands, self.stdin = _pipe()
        self.stdout, answers = _pipe()
        self._fate, fate = socket.socketpair()
        request = pickle.dumps((command[-1], os.getcwd(), env, (0, 1, 2, *pass_fds)))
        with commands, answers, fate:
            files = [fate.fileno(), commands.fileno(), answers.fileno(), 2, *pass_fds]
            socket.send_fds(nursery, [request], files)
        (self.pid,) = _NUMBER.unpack(self._fate.recv(_NUMBER.size))
        self._ended = threading.Event()
        threading.Thread(target=self._wait_for_the_end, daemon=True).start()

    def _wait_for_the_end(self):
        with self._fate:
            (status,) = _NUMBER.unpack(self._fate.recv(_NUMBER.size))
        self.returncode = os.waitstatus_to_exitcode(status)
        self._ended.set()

    def poll(self):
        return self.returncode if self._ended.is_set() else None

    def wait(self, timeout=None):
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired("a forked Python", timeout)
        return self.returncode

    def send_signal(self, number):
        if not self._ended.is_set():
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


def _pipe():
    """The ends of a pipe as files."""
    reading, writing = os.pipe()
    return os.fdopen(reading, "rb"), os.fdopen(writing, "wb")


def tend(requests):
    """Be a nursery: fork for whoever asks, until nobody can."""
    os.setpgid(0, 0)  # deaf to what is meant for who asks
    while True:
        request, files, *_ = socket.recv_fds(requests, 1 << 20, 16)
        if not request:
            os._exit(0)
        if os.fork() == 0:
            if os.fork() == 0:
                _wait_for(request, files)
            os._exit(0)  # so that nobody has to wait for the one that waits
        os.wait()
        for file in files:
            os.close(file)


def _wait_for(request, files):
    child = os.fork()
    if child == 0:
        _run(request, files)
    _close_all_but({files[0]})
    _, status = os.waitpid(child, 0)
    with suppress(BrokenPipeError):  # who asked for it was killed
        os.write(files[0], _NUMBER.pack(status))
    os._exit(0)


def _run(request, files):
    program, folder, environment, numbers = pickle.loads(request)
    os.setpgid(0, 0)
    os.write(files[0], _NUMBER.pack(os.getpid()))
    # Out of the way first: a number that is asked for may be that of another file.
    copies = [fcntl.fcntl(file, fcntl.F_DUPFD, _HIGH) for file in files[1:]]
    for number, copy in zip(numbers, copies, strict=True):
        os.dup2(copy, number)
    _close_all_but(numbers)
    Path("/proc/self/comm").write_text(NAME)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[:] = ["-c"]
    try:
        exec(program, {"__name__": "__main__"})
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _close_all_but(files):
    for file in map(int, os.listdir("/proc/self/fd")):
        if file not in files:
            with suppress(OSError):  # the one that the folder was read with
                os.close(file)
