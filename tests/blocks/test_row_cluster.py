"""Fits on a dask cluster of real processes give the same numbers if a process dies, or one clear error."""

import logging
import os
import signal
import threading
import time
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from chunked_rows import check_chunked_equals_in_memory
from dask_cluster import running_scheduler
from labelsieve import GMM, PMLFSMIR, RFS, EvidenceSelector, RandomRanking, SumF, SumMI
from labelsieve._blocks.blocks import MemoryBlocks
from labelsieve._blocks.collections import _active_client
from labelsieve.datasets import make_pml

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="processes are killed by signals"),
]

SIZES = (7, 2, 6, 5)
CUTS = np.cumsum((0, *SIZES))
X = np.random.default_rng(0).random((CUTS[-1], 3))
N_STEPS = 6


def start(rows):
    return np.full((rows.stop - rows.start, 2), float(rows.start)), 0


def move(X, U, step):
    U = np.sqrt(U + step * X.sum(axis=1, keepdims=True))
    return U, (U.sum(), len(U))


def fail_at_seven(rows):
    if rows.start == 7:
        raise ValueError("seven")
    time.sleep(0.5)
    return 0


def kill_worker(X, rows, permits):
    """Kill the worker once per permit file."""
    if rows.start == 7:
        for permit in Path(permits).iterdir():
            permit.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
    return 1


def wait_for_long(X):
    time.sleep(120)
    return 0


def descend(rows, on_step=lambda i: None):
    """Run a small solver whose shared values depend on earlier results."""
    rows.fold(start, ["rows"], gives="U")
    step, history = 1.0, []
    for i in range(N_STEPS):
        on_step(i)
        total, _ = rows.fold(move, ["X", "U"], step, gives="new")
        rows.rename({"before": "U", "U": "new"})
        step = 1 / (1 + total)
        history.append(total)
    return history


def in_memory():
    return descend(MemoryBlocks([{"X": X[a:b]} for a, b in pairwise(CUTS)]))


def on_cluster(client):
    from labelsieve._blocks.cluster import ClusterBlocks

    return ClusterBlocks(client, {"X": da.from_array(X, chunks=(SIZES, 3)).to_delayed().ravel()}, SIZES)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Start a cluster with two workers. A test that kills one must start another."""
    with running_scheduler(tmp_path_factory.mktemp("cluster")) as cluster:
        for _ in range(2):
            cluster.start_worker()
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster.address) as client:
        client.wait_for_workers(len(cluster.workers), timeout=60)
        yield client


def kill_a_worker(cluster):
    worker = cluster.workers.pop(0)
    os.kill(worker.pid, signal.SIGKILL)
    cluster.start_worker()


def test_blocks_are_distributed_evenly_and_released(client):
    rows = on_cluster(client)
    futures = [block["X"] for block in rows.blocks]
    distributed.wait(futures)
    holders = [holder for (holder,) in client.who_has(futures).values()]
    assert {holders.count(holder) for holder in holders} == {2}
    assert descend(rows) == in_memory()
    del rows, futures
    deadline = time.monotonic() + 30
    while client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_errors_in_a_block_are_raised_with_its_rows(client):
    with pytest.raises(ValueError, match="seven") as caught:
        on_cluster(client).fold(fail_at_seven, ["rows"])
    assert "rows 7 to 8" in caught.value.__notes__[0]


@pytest.fixture
def short_start(monkeypatch):
    """Skip repeated passes, which take time on the scheduler."""
    monkeypatch.setattr("labelsieve.methods._fsmir.block_descent.WARM_UP", 2)
    monkeypatch.setattr("labelsieve.methods._fsmir.factorization._POWER_ITERATIONS", 1)


@pytest.mark.usefixtures("short_start")
@pytest.mark.parametrize("method", [RandomRanking, SumF, SumMI, GMM, RFS, EvidenceSelector, PMLFSMIR])
def test_cluster_scores_equal_in_memory_scores(client, method):
    """Fit dense and sparse features of both precisions, in uneven blocks, one of them without candidates."""
    assert _active_client() is client
    check_chunked_equals_in_memory(method())


def test_results_are_equal_after_a_worker_is_killed(cluster, client):
    rows = on_cluster(client)
    assert descend(rows, lambda i: i == 3 and kill_a_worker(cluster)) == in_memory()


#: Too few to converge, because rounding affects the steps near the optimum.
N_ITERATIONS = 12


class OnIteration(logging.Handler):
    """Handler that calls a function after every iteration of a fit."""

    def __init__(self, action):
        super().__init__()
        self.action = action

    def emit(self, record):
        self.action(record.iteration)


def fit_pml_fsmir(tables, on_iteration=lambda i: None):
    handler = OnIteration(on_iteration)
    logging.getLogger("labelsieve").addHandler(handler)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return PMLFSMIR(max_iter=N_ITERATIONS, tol=0, verbose=1).fit(*tables)
    finally:
        logging.getLogger("labelsieve").removeHandler(handler)


@pytest.mark.usefixtures("short_start")
def test_pml_fsmir_scores_are_equal_after_a_worker_is_killed(cluster, client):
    tables = make_pml(60, 8, n_informative=3, n_labels=4, random_state=0)
    lazy = [da.from_array(table, chunks=(30, -1)) for table in tables]
    fitted = fit_pml_fsmir(lazy, lambda i: i == 6 and kill_a_worker(cluster))
    expected = fit_pml_fsmir(tables)
    np.testing.assert_allclose(fitted.scores_, expected.scores_, rtol=1e-9)
    np.testing.assert_allclose(fitted.objective_history_, expected.objective_history_, rtol=1e-9)


@pytest.fixture
def permits(tmp_path):
    """Make a folder with one permit file, to kill one worker."""
    folder = tmp_path / "permits"
    folder.mkdir()
    (folder / "0").touch()
    return folder


def test_task_that_kills_its_worker_raises(permits, tmp_path):
    from labelsieve._blocks.cluster import LostClusterError

    with running_scheduler(tmp_path / "cluster", allowed_failures=0) as cluster:
        for _ in range(2):
            cluster.start_worker()
        with distributed.Client(cluster.address) as client:
            client.wait_for_workers(2, timeout=60)
            with pytest.raises(LostClusterError, match="memory"):
                on_cluster(client).fold(kill_worker, ["X", "rows"], str(permits))


def test_fit_continues_when_the_only_worker_is_replaced(permits, tmp_path):
    with running_scheduler(tmp_path / "cluster") as cluster:
        worker = cluster.start_worker()

        def replace():
            worker.wait(60)
            time.sleep(0.5)
            cluster.start_worker()

        replacement = threading.Thread(target=replace)
        with distributed.Client(cluster.address) as client:
            client.wait_for_workers(1, timeout=60)
            replacement.start()
            assert on_cluster(client).fold(kill_worker, ["X", "rows"], str(permits)) == len(SIZES)
        replacement.join()
    assert not list(permits.iterdir())


def test_fit_without_workers_raises(permits, tmp_path, monkeypatch):
    from labelsieve._blocks.cluster import _CHECK_SECONDS, _PATIENCE_SECONDS, LostClusterError

    assert _PATIENCE_SECONDS + _CHECK_SECONDS < 60
    monkeypatch.setattr("labelsieve._blocks.cluster._CHECK_SECONDS", 0.2)
    monkeypatch.setattr("labelsieve._blocks.cluster._PATIENCE_SECONDS", 1.0)
    with running_scheduler(tmp_path / "cluster") as cluster, distributed.Client(cluster.address) as client:
        cluster.start_worker()
        client.wait_for_workers(1, timeout=60)
        with pytest.raises(LostClusterError, match="worker"):
            on_cluster(client).fold(kill_worker, ["X", "rows"], str(permits))


def test_lost_scheduler_raises(tmp_path):
    from labelsieve._blocks.cluster import LostClusterError

    with running_scheduler(tmp_path / "cluster") as cluster:
        cluster.start_worker()
        client = distributed.Client(cluster.address, timeout=5, set_as_default=False)
        client.wait_for_workers(1, timeout=60)
        with client.as_current():
            rows = on_cluster(client)
            assert descend(rows) == in_memory()
            threading.Timer(0.5, cluster.scheduler.kill).start()
            with pytest.raises(LostClusterError, match=f"scheduler at {cluster.address}"):
                rows.fold(wait_for_long, ["X"])
        client.close(timeout=1)
