"""The same cells on a dask cluster of real processes: the same numbers, whoever dies."""

import os
import re
import signal
import time

import pytest

import bench_runs as bench
from dask_cluster import running_scheduler

pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="finds processes in /proc"),
]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Results of processes of this machine."""
    return bench.undisturbed_run(tmp_path_factory.mktemp("undisturbed"))[1]


@pytest.fixture
def cluster(tmp_path, request):
    with running_scheduler(tmp_path / "cluster", getattr(request, "param", 3)) as cluster:
        yield cluster


@pytest.mark.slow(seconds=20)
def test_a_killed_worker_of_a_cluster_costs_nothing_but_time(undisturbed, cluster, tmp_path):
    config = bench.make_project(tmp_path / "project")
    folder = tmp_path / "project" / "runs" / "small"
    workers = [cluster.start_worker(), cluster.start_worker()]
    process = bench.start(config, "--dask", cluster.address)
    bench.wait_for_cells(folder, process)
    os.kill(workers[0].pid, signal.SIGKILL)
    _, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    # Nothing of dask's own notes, whatever happened.
    assert re.sub(r"\d+ of 72 cells; .*\n", "", err) == (
        "72 of 72 cells are done, 72 computed now, with 48 rankings; results in runs/small\n"
        "next: labelsieve report runs/small\n"
    )
    assert bench.stored(folder) == undisturbed


@pytest.mark.slow(seconds=20)
def test_a_scheduler_that_is_killed_is_told_and_the_run_goes_on_anywhere(undisturbed, cluster, tmp_path):
    config = bench.make_project(tmp_path / "project")
    folder = tmp_path / "project" / "runs" / "small"
    cluster.start_worker()
    process = bench.start(config, "--dask", cluster.address)
    bench.wait_for_cells(folder, process)
    os.kill(cluster.scheduler.pid, signal.SIGKILL)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1, err
    assert bench.without_progress(err) == (
        f"error: --dask: the scheduler at '{cluster.address}' is gone; finished cells are stored. Start it again, "
        "then run the same command.\n"
    )
    known = bench.finished(folder)
    assert 0 < len(known) < bench.N_SMALL
    message = bench.fails(config, "--dask", cluster.address)
    assert re.search(r"--dask: No scheduler answered at", message)
    bench.here(config)
    assert bench.stored(folder) == undisturbed
    assert known.items() <= bench.finished(folder).items()


def small_project(tmp_path, *references, more=""):
    """Of its references, each named like its class, one of two cells fails."""
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
def test_cells_that_kill_their_process_or_take_too_long_fail_alone_and_the_worker_lives_on(cluster, tmp_path):
    config = small_project(tmp_path, "Deadly", "Deaf", more="[limits]\nseconds = 5")
    worker = cluster.start_worker(fresh=True)
    _, err = bench.inside(config, "--dask", cluster.address, code=3)
    assert worker.poll() is None
    died = "failed: .* Deadly: WorkerDied: the process of the cell was killed by SIGKILL, twice"
    assert len(re.findall(died, err)) == 1
    assert len(re.findall("failed: .* Deaf: LimitExceeded: took more than 5 seconds", err)) == 1
    assert err.count("failed: ") == 2
    assert "8 of 10 cells are done, 10 computed now" in err


@pytest.mark.slow(seconds=30)
@pytest.mark.parametrize("cluster", [0], indirect=True, ids=["one death is enough"])
def test_a_cell_that_kills_every_worker_fails_alone(cluster, tmp_path):
    config = small_project(tmp_path, "Murderous")
    process = bench.start(config, "--dask", cluster.address)
    # As a cluster does: for every worker that dies a new one is started.
    workers = []
    while process.poll() is None:
        living = [worker for worker in workers if worker.poll() is None]
        workers = [*living, *(cluster.start_worker() for _ in range(2 - len(living)))]
        time.sleep(0.1)
    _, err = process.communicate()
    assert process.returncode == 3, err
    assert err.count("failed: ") == 1
    assert (
        "Murderous: WorkerDied: 1 worker of the cluster died with the cell, twice; out of memory, or" in err
    )
    assert "7 of 8 cells are done, 8 computed now" in err


@pytest.mark.slow(seconds=20)
def test_a_cluster_without_workers_and_an_interrupt_are_told_in_one_sentence(cluster, tmp_path):
    config = bench.make_project(tmp_path / "project")
    folder = tmp_path / "project" / "runs" / "small"
    message = bench.fails(config, "--dask", cluster.address)
    assert re.search("--dask: the scheduler at .* has no workers; start some", message)
    cluster.start_worker()
    process = bench.start(config, "--dask", cluster.address)
    bench.wait_for_cells(folder, process)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    n_finished = len(bench.finished(folder))
    assert bench.without_progress(err) == (
        f"error: stopped; {n_finished} of 72 cells are finished and stored; "
        f"continue with: labelsieve bench run small.toml --dask {cluster.address}\n"
    )
