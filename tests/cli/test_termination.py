"""SIGTERM, which systems send to end a program: told in a sentence, cleaned up as after Ctrl-C."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from conftest import RUN
from labelsieve.cli import main
from labelsieve.cli.termination import Terminated, raising_terminated

pytestmark = pytest.mark.usefixtures("plain_terminal")


@pytest.mark.skipif(os.name != "posix", reason="sends SIGTERM")
@pytest.mark.parametrize("n_signals", [1, 2])  # those who ask often ask twice
def test_a_terminated_program_says_so_and_leaves_nothing(table, n_signals):
    program = f"import sys; from labelsieve.cli import main; {RUN}"
    # A fit without end: more iterations than anyone waits for, and no tolerance.
    endless = [
        "--method",
        "pml-fsmir",
        "-p",
        "verbose=1",
        "-p",
        "max_iter=1000000000",
        "-p",
        "tol=0",
        "--output",
        "ranking.csv",
    ]
    command = [sys.executable, "-c", program, "select", table, "--labels", "2", *endless]
    before = sorted(os.listdir())
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr.readline().startswith("iteration 1 of")  # now it is at work
        for _ in range(n_signals):
            process.send_signal(signal.SIGTERM)
        out, err = process.communicate()
    assert (process.returncode, out) == (143, "")
    assert err.splitlines()[-1] == "error: terminated; nothing half-written is left."
    assert "Traceback" not in err
    assert sorted(os.listdir()) == before


def test_termination_is_an_interrupt_once():
    came = threading.Event()
    with raising_terminated(came):
        with pytest.raises(KeyboardInterrupt) as caught:
            signal.raise_signal(signal.SIGTERM)
        assert caught.type is Terminated
        assert came.is_set()
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_handler_of_the_calling_program_stays(capsys):
    def own(number, frame):
        raise AssertionError("nobody sent a signal")

    before = signal.signal(signal.SIGTERM, own)
    try:
        assert main(["--version"]) == 0
        assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGTERM, before)


def test_the_command_line_runs_outside_the_main_thread(capsys):
    codes = []
    thread = threading.Thread(target=lambda: codes.append(main(["--version"])))
    thread.start()
    thread.join()
    assert codes == [0]
