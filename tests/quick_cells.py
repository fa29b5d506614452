"""Runs that do not wait for processes to import everything: for tests of anything but their start."""

import os
import pickle
import subprocess
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from unittest.mock import patch

import forked_program
from forked_python import ForkedPython
from labelsieve.bench import cells, process, runner


def computed(where):
    """Compute cells in processes that are "forked" or, as users have them, "started"; or "here" with a single job."""
    return {"here": one_job_here, "forked": forked_cells, "started": nullcontext}[where]()


@contextmanager
def one_job_here():
    """Let runs with a single job compute their cells in this process.

    What would pass between processes has to be what can.
    """
    run_locally = runner.run_locally

    def run_here(experiment, tasks, jobs, remark):
        if jobs > 1:
            yield from run_locally(experiment, tasks, jobs, remark)
            return
        experiment = pickle.loads(pickle.dumps(experiment))
        for task in tasks:
            result = cells.evaluate(experiment, pickle.loads(pickle.dumps(task)))
            yield task, pickle.loads(pickle.dumps(result))

    with patch.object(runner, "run_locally", run_here):
        yield


@contextmanager
def forked_cells():
    """Let the processes of cells be forked ones, where the system tells which files a process has open."""
    parts = {"PIPE": subprocess.PIPE, "TimeoutExpired": subprocess.TimeoutExpired}

    def popen(*arguments, **options):
        return ForkedPython(forked_program.nursery(), *arguments, **options)

    forked = patch.object(process, "subprocess", SimpleNamespace(Popen=popen, **parts))
    with forked if os.path.exists("/proc/self/fd") else nullcontext():
        yield
