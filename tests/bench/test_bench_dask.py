"""Runs on a dask cluster of real processes give the same results, even if workers die."""

import os
import re
import signal
import time

import pytest

import bench_runs as bench
from dask_cluster import running_scheduler
from labelsieve.bench import RunError
from labelsieve.bench.config import load_experiment
from labelsieve.bench.runner import Observer, run

distributed = pytest.importorskip("distributed")
dask_blocks = pytest.importorskip("labelsieve._blocks.cluster")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="finds processes in /proc"),
]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Results of a run without a cluster."""
    return bench.undisturbed_run(tmp_path_factory.mktemp("undisturbed"))[1]


@pytest.fixture
def cluster(tmp_path, request):
    with running_scheduler(tmp_path / "cluster", getattr(request, "param", 3)) as cluster:
        yield cluster


@pytest.mark.slow(seconds=20)
def test_a_killed_cluster_worker_costs_only_time(undisturbed, cluster, tmp_path):
    config = bench.make_project(tmp_path / "project")
    folder = tmp_path / "project" / "runs" / "small"
    workers = [cluster.start_worker(), cluster.start_worker()]
    process = bench.start(config, "--dask", cluster.address)
    bench.wait_for_cells(folder, process)
    os.kill(workers[0].pid, signal.SIGKILL)
    _, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    # No log messages of dask are shown.
    assert len(bench.without_progress(err).splitlines()) == 2
    assert bench.stored(folder) == undisturbed


@pytest.mark.slow(seconds=20)
def test_a_run_continues_locally_after_the_scheduler_is_killed(undisturbed, cluster, tmp_path):
    config = bench.make_project(tmp_path / "project")
    folder = tmp_path / "project" / "runs" / "small"
    cluster.start_worker()
    process = bench.start(config, "--dask", cluster.address)
    bench.wait_for_cells(folder, process)
    os.kill(cluster.scheduler.pid, signal.SIGKILL)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1, err
    assert re.fullmatch(rf"error: --dask: .*'{cluster.address}'.*\n", bench.without_progress(err))
    known = bench.finished(folder)
    assert 0 < len(known) < bench.N_SMALL
    assert "--dask" in bench.fails(config, "--dask", cluster.address)
    bench.here(config)
    assert bench.stored(folder) == undisturbed
    assert known.items() <= bench.finished(folder).items()


def small_project(tmp_path, *references, more=""):
    """Write an experiment whose user-defined references are named like their classes."""
    bad = ", ".join(f'{{ name = "{name}", method = "own_methods:{name}" }}' for name in references)
    text = f"""
    folds = 2
    datasets = [{{ name = "small", path = "small.csv", labels = "label_*" }}]
    methods = ["sum-f", "sum-mi"]
    references = ["no-features", {bad}]
    {more}
    """
    return bench.make_project(tmp_path / "project", text)


@pytest.mark.slow(seconds=20)
def test_cells_that_crash_or_exceed_limits_do_not_kill_the_worker(cluster, tmp_path):
    config = small_project(tmp_path, "Deadly", "Deaf", more="[limits]\nseconds = 5")
    worker = cluster.start_worker(fresh=True)
    _, err = bench.inside(config, "--dask", cluster.address, code=3)
    assert worker.poll() is None
    assert len(re.findall("failed: .* Deadly: WorkerDied: .*SIGKILL", err)) == 1
    assert len(re.findall("failed: .* Deaf: LimitExceeded: .*5 seconds", err)) == 1
    assert err.count("failed: ") == 2
    assert "8 of 10" in err


@pytest.mark.slow(seconds=30)
@pytest.mark.parametrize("cluster", [0], indirect=True, ids=["one death is enough"])
def test_a_cell_that_kills_every_worker_fails_alone(cluster, tmp_path):
    config = small_project(tmp_path, "Murderous")
    process = bench.start(config, "--dask", cluster.address)
    # Like a real cluster, start a new worker for every worker that dies.
    workers = []
    while process.poll() is None:
        living = [worker for worker in workers if worker.poll() is None]
        workers = [*living, *(cluster.start_worker() for _ in range(2 - len(living)))]
        time.sleep(0.1)
    _, err = process.communicate()
    assert process.returncode == 3, err
    assert err.count("failed: ") == 1
    assert "Murderous: WorkerDied: " in err
    assert "7 of 8" in err


@pytest.mark.slow(seconds=20)
def test_a_cluster_without_workers_and_an_interrupt_give_one_error(cluster, tmp_path):
    config = bench.make_project(tmp_path / "project")
    folder = tmp_path / "project" / "runs" / "small"
    assert cluster.address in bench.fails(config, "--dask", cluster.address)
    cluster.start_worker()
    process = bench.start(config, "--dask", cluster.address)
    bench.wait_for_cells(folder, process)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    n_finished = len(bench.finished(folder))
    command = f"labelsieve bench run small.toml --dask {cluster.address}"
    assert re.fullmatch(rf"error: .* {n_finished} of 72 .*{command}\n", bench.without_progress(err))


@pytest.mark.slow(seconds=20)
def test_cells_are_handed_out_gradually_and_a_lost_worker_is_reported(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(dask_blocks, "_PATIENCE_SECONDS", 3.0)
    experiment = load_experiment(bench.make_project(tmp_path / "project"))
    cluster.start_worker()
    n_submitted = n_finished = most_waiting = 0
    submit = distributed.Client.submit

    def counting(client, *arguments, **options):
        nonlocal n_submitted, most_waiting
        n_submitted += 1
        most_waiting = max(most_waiting, n_submitted - n_finished)
        return submit(client, *arguments, **options)

    class Killer(Observer):
        def finished(self, cell, result):
            nonlocal n_finished
            n_finished += 1
            if n_finished == 4:
                cluster.workers[0].kill()

    monkeypatch.setattr(distributed.Client, "submit", counting)
    start = time.monotonic()
    with bench.fresh_modules(), pytest.raises(RunError, match="no running worker"):
        run(experiment, tmp_path / "run", Killer(), dask=cluster.address)
    assert time.monotonic() - start < 60
    assert 4 <= n_finished == len(bench.finished(tmp_path / "run"))
    assert most_waiting <= 2  # for the single thread of the worker
