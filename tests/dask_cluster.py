"""A dask cluster of real processes, for tests."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import bench_runs as bench
import labelsieve


@contextmanager
def running_scheduler(folder, allowed_failures=3):
    """A cluster that has no workers yet."""
    folder.mkdir(exist_ok=True)
    cluster = Cluster(folder, allowed_failures)
    try:
        cluster.start_scheduler()
        yield cluster
    finally:
        cluster.stop()


class Cluster:
    """A scheduler and workers as somebody would start them by hand."""

    def __init__(self, folder, allowed_failures):
        self._folder = folder
        self._allowed_failures = allowed_failures
        self._log = (folder / "cluster.log").open("w")
        self._processes = []

    def start_scheduler(self):
        file = self._folder / "scheduler.json"
        options = ["--host", "127.0.0.1", "--port", 0, "--no-dashboard", "--scheduler-file", file]
        self.scheduler = self._start("scheduler", *options)
        bench.wait_for(lambda: file.exists() and file.read_text().endswith("}"), self.scheduler)
        self.address = json.loads(file.read_text())["address"]

    def start_worker(self):
        options = ["--nthreads", 1, "--no-dashboard", "--local-directory", self._folder]
        return self._start("worker", self.address, "--no-nanny", *options)

    def _start(self, *arguments):
        # Functions of tests run on the workers too.
        sources = (Path(labelsieve.__file__).parents[1], Path(__file__).parent)
        # With 0, one dead worker makes dask give up every task that it had, also those that waited.
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, sources)),
            "PAUSE": "0.2",
            # Nobody looks at the samples that workers take of themselves a hundred times a second.
            "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(self._allowed_failures),
        }
        command = [sys.executable, "-m", "dask", *map(str, arguments)]
        process = subprocess.Popen(
            command,
            env=environment,
            cwd=self._folder,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        self._processes.append(process)
        return process

    def stop(self):
        for process in self._processes:
            process.kill()
            process.wait()
        self._log.close()
