"""Dask cluster of real processes, for tests."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

import bench_runs as bench
from forked_program import ForkedProgram


@contextmanager
def running_scheduler(folder, allowed_failures=3):
    """Start a cluster without workers."""
    folder.mkdir(exist_ok=True)
    cluster = Cluster(folder, allowed_failures)
    try:
        cluster.start_scheduler()
        yield cluster
    finally:
        cluster.stop()


class Cluster:
    """Scheduler and workers in separate processes."""

    def __init__(self, folder, allowed_failures):
        self._folder = folder
        self._allowed_failures = allowed_failures
        self.workers = []

    def start_scheduler(self):
        file = self._folder / "scheduler.json"
        options = ["--host", "127.0.0.1", "--port", 0, "--no-dashboard", "--scheduler-file", file]
        self.scheduler = self._start("scheduler", *options)
        bench.wait_for(lambda: file.exists() and file.read_text().endswith("}"), self.scheduler)
        self.address = json.loads(file.read_text())["address"]

    def start_worker(self, *options, fresh=False):
        """Start a worker. A fresh one has not imported labelsieve, as if a user had started it by hand."""
        options = ["--nthreads", 1, "--no-dashboard", "--local-directory", self._folder, *options]
        self.workers.append(self._start("worker", self.address, "--no-nanny", *options, fresh=fresh))
        return self.workers[-1]

    def _start(self, *arguments, fresh=False):
        # With 0 allowed failures, dask gives up all tasks of a dead worker, including waiting ones.
        environment = {
            **os.environ,
            "PAUSE": "0.2",
            "CELLS": "started",
            # Workers need not profile themselves or monitor their event loops, both many times a second.
            "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
            "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(self._allowed_failures),
        }
        command = ["dask", *map(str, arguments)]
        if fresh:
            nowhere = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
            return subprocess.Popen(
                [sys.executable, "-m", *command], env=environment, cwd=self._folder, **nowhere
            )
        return ForkedProgram(command, self._folder, environment)

    def stop(self):
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()
