"""Run cells in this process: for tests of anything but processes."""

import pickle
from contextlib import contextmanager, nullcontext
from unittest.mock import patch

from labelsieve.bench import cells, runner


def computed(where):
    """Compute cells in processes that are "started", or "here" with a single job."""
    return {"here": one_job_here, "started": nullcontext}[where]()


@contextmanager
def one_job_here():
    """Let runs with a single job compute their cells in this process; everything is pickled as it would be."""
    run_locally = runner.run_locally

    def run_here(experiment, planned, jobs, remark):
        if jobs > 1:
            yield from run_locally(experiment, planned, jobs, remark)
            return
        experiment = pickle.loads(pickle.dumps(experiment))
        for cell in planned:
            result = cells.evaluate(experiment, pickle.loads(pickle.dumps(cell)))
            yield cell, pickle.loads(pickle.dumps(result))

    with patch.object(runner, "run_locally", run_here):
        yield
