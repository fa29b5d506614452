"""Rows on a dask cluster of real processes: the same numbers, whoever dies."""

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

from dask_cluster import running_scheduler
from forked_program import exit_code_of
from labelsieve import GMM, PMLFSMIR, RFS, EvidenceSelector, RandomRanking, SumF, SumMI
from labelsieve._blocks.blocks import MemoryBlocks, block_function
from labelsieve._blocks.collections import _active_client
from labelsieve._blocks.fold_log import FoldLog
from labelsieve.contract import check_chunked_equals_in_memory
from labelsieve.datasets import make_pml

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
delayed = pytest.importorskip("dask").delayed
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="processes are killed by signals"),
]

SIZES = (7, 2, 6, 5)
CUTS = np.cumsum((0, *SIZES))
X = np.random.default_rng(0).random((CUTS[-1], 3))
N_STEPS = 14


@block_function("X", gives=("U",))
def start(rows):
    return {"U": np.full((len(rows["X"]), 2), float(rows["first_row"]))}, 0


@block_function("X", "U", gives=("new",))
def move(rows, step, folder):
    """Note that a block was visited, then do something that depends on all visits before."""
    if folder is not None:
        visit = f"{rows['first_row']}-{os.getpid()}-{time.time_ns()}"
        (Path(folder) / visit).touch()
        time.sleep(0.02)
    U = np.sqrt(rows["U"] + step * rows["X"].sum(axis=1, keepdims=True))
    return {"new": U}, (U.sum(), len(U))


@block_function("X")
def fail_at_seven(rows):
    if rows["first_row"] == 7:
        raise ValueError("seven")
    time.sleep(0.5)
    return {}, 0


def descend(rows, n_steps=N_STEPS, folder=None, on_step=lambda i: None):
    """A little solver: what is shared follows from the parts before."""
    rows.fold(start)
    step, history = 1.0, []
    for i in range(n_steps):
        on_step(i)
        total, _ = rows.fold(move, step, folder)
        rows.rename({"before": "U", "U": "new"})
        step = 1 / (1 + total)
        history.append(total)
    return history


def in_memory(n_steps=N_STEPS):
    return descend(MemoryBlocks([{"X": X[a:b]} for a, b in pairwise(CUTS)]), n_steps)


def on_cluster(client, folder, n_blocks=None, **options):
    from labelsieve._blocks.cluster import ClusterBlocks

    blocks = {"X": [delayed(X[a:b]) for a, b in list(pairwise(CUTS))[:n_blocks]]}
    return ClusterBlocks(client, blocks, SIZES[:n_blocks], log=FoldLog(folder, "this"), **options)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two workers; a test that kills one starts another."""
    with running_scheduler(tmp_path_factory.mktemp("cluster")) as cluster:
        cluster.workers = [cluster.start_worker(), cluster.start_worker()]
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster.address) as client:
        client.wait_for_workers(len(cluster.workers), timeout=60)
        yield client


def kill_a_worker(cluster):
    worker = cluster.workers.pop(0)
    os.kill(worker.pid, signal.SIGKILL)
    cluster.workers.append(cluster.start_worker())


def test_columns_lie_side_by_side_and_only_the_last_checkpoint_stays(client, tmp_path):
    rows = on_cluster(client, tmp_path / "log", every=3)
    distributed.wait([block["X"] for block in rows.blocks])
    homes = [client.who_has([block["X"]])[block["X"].key] for block in rows.blocks]
    assert homes[0] == homes[1] != homes[2] == homes[3]
    with rows:
        assert descend(rows) == pytest.approx(in_memory(), rel=1e-12)
        # The start and fourteen steps: the last checkpoint was after the fifteenth fold.
        assert rows.log.n_saved == 15
        # In it are U, the one before, and the one that was just given.
        assert len(list(rows.log.folder.glob("*.npy"))) == 3 * len(SIZES)
        assert not list(rows.log.folder.glob("shared-*"))
    assert not rows.log.folder.exists()


def test_the_scheduler_does_not_remember_every_fold(client, tmp_path):
    n_tasks = []

    def count(i):
        # Sooner and later after a checkpoint.
        if i % 3 == 0:
            n_tasks.append(client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))

    with on_cluster(client, tmp_path / "log", n_blocks=2, every=5) as rows:
        descend(rows, 60, on_step=count)
    # Thirty folds have come across all there is between two checkpoints; released tasks may take a moment to go.
    assert max(n_tasks[10:]) <= max(n_tasks[:10]) + 10
    # A fold that gives columns makes nine tasks or so for two blocks.
    assert max(n_tasks) < 2 * 5 * 9


def test_an_error_in_a_block_is_raised_at_once_and_names_the_rows(client, tmp_path):
    with on_cluster(client, tmp_path / "log") as rows:
        with pytest.raises(ValueError, match="seven") as caught:
            rows.fold(fail_at_seven)
        assert caught.value.__notes__ == ["In the rows 7 to 8."]


@pytest.fixture
def short_start(monkeypatch):
    """Passes that repeat one another show nothing new, and each of them costs the scheduler what it costs."""
    monkeypatch.setattr("labelsieve.methods._fsmir.block_descent._WARM_UP", 2)
    monkeypatch.setattr("labelsieve.methods._fsmir.factorization._POWER_ITERATIONS", 1)


@pytest.mark.usefixtures("short_start")
def test_methods_with_checkpoints_give_the_scores_of_memory_and_leave_no_files(client, tmp_path):
    X, Y = make_pml(60, 8, n_informative=3, n_labels=4, random_state=0)
    lazy = [da.from_array(part, chunks=(35, -1)) for part in (X, Y)]
    folder = tmp_path / "checkpoint"
    for method in (EvidenceSelector(3), PMLFSMIR(tol=0.1), PMLFSMIR(solver="mu", tol=0.1)):
        fitted = method.fit(*lazy, checkpoint=str(folder)).scores_
        np.testing.assert_allclose(fitted, method.fit(X, Y).scores_, rtol=1e-9, err_msg=repr(method))
        assert not folder.exists()


@pytest.mark.usefixtures("short_start")
@pytest.mark.parametrize("method", [RandomRanking, SumF, SumMI, GMM, RFS, EvidenceSelector, PMLFSMIR])
def test_the_contract_holds_on_a_cluster(client, method):
    """Dense and sparse, in single and double precision, uneven blocks and one without candidates."""
    assert _active_client() is client, "lazy rows go to the cluster"
    check_chunked_equals_in_memory(method())


def test_a_folder_that_workers_do_not_see_is_noticed(client, tmp_path):
    class Hidden(type(tmp_path)):
        """Reaches the workers as a path of another machine would."""

        def __reduce__(self):
            return type(tmp_path), ("/nowhere", self.name)

    log = FoldLog(tmp_path / "log", "this")
    log.folder = Hidden(log.folder)
    from labelsieve._blocks.cluster import ClusterBlocks

    with pytest.raises(ValueError, match=r"All workers must see the folder .* Got 2 of 2 that do not, tcp"):
        ClusterBlocks(client, {}, SIZES, log=log)
    assert not (tmp_path / "log").exists()


def test_a_killed_worker_costs_only_what_it_held(cluster, client, tmp_path):
    visits = tmp_path / "visits"
    visits.mkdir()
    with on_cluster(client, tmp_path / "log", every=3) as rows:
        history = descend(rows, folder=str(visits), on_step=lambda i: i == 7 and kill_a_worker(cluster))
    assert history == pytest.approx(in_memory(), rel=1e-12)
    # Lost were two blocks, with the folds since the last checkpoint, at most two, and what was being visited.
    n_again = len(list(visits.iterdir())) - N_STEPS * len(SIZES)
    assert 0 < n_again <= 2 * (2 + 1)
    assert not rows.log.folder.exists()


def descend_and_die(address, folder):
    def die(i):
        if i == 8:
            os.kill(os.getpid(), signal.SIGKILL)

    with distributed.Client(address) as client:
        descend(on_cluster(client, folder, every=3), on_step=die)


def test_another_client_goes_on_where_one_was_killed(cluster, client, tmp_path):
    assert exit_code_of(descend_and_die, cluster.address, tmp_path / "log") == -signal.SIGKILL
    (tmp_path / "visits").mkdir()
    with on_cluster(client, tmp_path / "log", every=3) as rows:
        # The start and eight steps were done, nine folds, and saved after the ninth.
        assert rows.log.n_saved == 9
        assert descend(rows, folder=str(tmp_path / "visits")) == pytest.approx(in_memory(), rel=1e-12)
    assert len(list((tmp_path / "visits").iterdir())) == (N_STEPS - 8) * len(SIZES)
    assert not (tmp_path / "log").exists()


#: Fewer than it takes to converge: where the objective stands still, rounding decides which steps are taken.
N_ITERATIONS = 20


class OnIteration(logging.Handler):
    """Does something after every iteration of a fit that reports to the log."""

    def __init__(self, action):
        super().__init__()
        self.action = action

    def emit(self, record):
        self.action(record.iteration)


def descend_in_earnest(on_iteration=None, checkpoint=None):
    """Fit PML-FSMIR to a small problem: in memory, or, if somebody listens, on the cluster of the active client."""
    tables = make_pml(60, 8, n_informative=3, n_labels=4, random_state=0)
    options, handler = {}, OnIteration(on_iteration)
    if on_iteration:
        tables = [da.from_array(table, chunks=(30, -1)) for table in tables]
        options = {"checkpoint": checkpoint}
        logging.getLogger("labelsieve").addHandler(handler)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return PMLFSMIR(max_iter=N_ITERATIONS, tol=0, verbose=bool(on_iteration)).fit(*tables, **options)
    finally:
        logging.getLogger("labelsieve").removeHandler(handler)


def test_pml_fsmir_survives_a_killed_worker_and_leaves_no_tasks(cluster, client, tmp_path):
    n_tasks = []

    def act(iteration):
        n_tasks.append(client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))
        if iteration == 8:
            kill_a_worker(cluster)

    folder = tmp_path / "checkpoint"
    fitted, expected = descend_in_earnest(act, str(folder)), descend_in_earnest()
    np.testing.assert_allclose(fitted.scores_, expected.scores_, rtol=1e-9)
    np.testing.assert_allclose(fitted.objective_history_, expected.objective_history_, rtol=1e-9)
    assert len(n_tasks) == N_ITERATIONS
    # Forty folds, the warm-up among them, make nine tasks or so each; known are those since the last checkpoint, ten
    # folds ago at most, and those of a rejected step.
    assert max(n_tasks) < 20 * 9
    assert not folder.exists()


def fit_and_die(address, folder):
    with distributed.Client(address):
        descend_in_earnest(lambda iteration: iteration == 12 and os.kill(os.getpid(), signal.SIGKILL), folder)


def test_pml_fsmir_goes_on_where_its_client_was_killed(cluster, client, tmp_path):
    folder = str(tmp_path / "checkpoint")
    assert exit_code_of(fit_and_die, cluster.address, folder) == -signal.SIGKILL
    loaded = []
    fitted = descend_in_earnest(lambda iteration: loaded.append(os.path.exists(folder)), folder)
    assert len(loaded) == N_ITERATIONS
    assert all(loaded)
    np.testing.assert_allclose(fitted.scores_, descend_in_earnest().scores_, rtol=1e-9)
    assert not os.path.exists(folder)


@pytest.fixture
def strict_cluster(tmp_path):
    """A cluster that gives up a task with the first worker that it takes down."""
    with running_scheduler(tmp_path / "cluster", allowed_failures=0) as cluster:
        yield cluster


@pytest.fixture
def permits(tmp_path):
    """A folder with the permit to kill one worker."""
    folder = tmp_path / "permits"
    folder.mkdir()
    (folder / "0").touch()
    return folder


@block_function("X")
def murder(rows, permits):
    """Kill the worker as long as there are permits."""
    if rows["first_row"] == 7:
        for permit in Path(permits).iterdir():
            permit.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
    return {}, 1


def test_work_that_the_scheduler_gives_up_is_begun_again_but_not_forever(strict_cluster, permits, tmp_path):
    from labelsieve._blocks.cluster import LostWorkError

    with distributed.Client(strict_cluster.address) as client:
        with pytest.raises(ValueError, match=r"The cluster must have workers\. Got none\."):
            on_cluster(client, tmp_path / "none")
        assert not (tmp_path / "none").exists()
        # As a cluster does: for every worker that dies there is another one.
        for _ in range(4):
            strict_cluster.start_worker()
        client.wait_for_workers(4, timeout=60)
        with on_cluster(client, tmp_path / "log") as rows:
            assert rows.run(lambda rows: rows.fold(murder, str(permits))) == len(SIZES)
        for i in range(3):
            (permits / str(i)).touch()
        rows = on_cluster(client, tmp_path / "log")
        with pytest.raises(LostWorkError, match=r"lost its workers 3 times .* it goes on where it was"), rows:
            rows.run(lambda rows: rows.fold(murder, str(permits)))


@pytest.mark.parametrize("allowed_failures", [0, 3], ids=["given up", "stranded"])
def test_work_goes_on_with_another_worker_when_all_are_lost(allowed_failures, permits, tmp_path, monkeypatch):
    """Tasks that waited while there was no worker at all would wait forever for the one they were meant for."""
    monkeypatch.setattr("labelsieve._blocks.cluster._LOOK_SECONDS", 0.5)
    with running_scheduler(tmp_path / "cluster", allowed_failures) as cluster:
        worker = cluster.start_worker()

        def replace():
            worker.wait(60)
            time.sleep(0.5)
            cluster.start_worker()

        replacement = threading.Thread(target=replace)
        with distributed.Client(cluster.address) as client:
            client.wait_for_workers(1, timeout=60)
            replacement.start()
            with on_cluster(client, tmp_path / "log") as rows:
                assert rows.run(lambda rows: rows.fold(murder, str(permits))) == len(SIZES)
        replacement.join()
    assert not list(permits.iterdir())


def test_waiting_for_workers_ends(permits, tmp_path, monkeypatch):
    from labelsieve._blocks.cluster import LostWorkError

    monkeypatch.setattr("labelsieve._blocks.cluster._LOOK_SECONDS", 0.5)
    monkeypatch.setattr("labelsieve._blocks.cluster._PATIENCE_SECONDS", 1)
    with running_scheduler(tmp_path / "cluster") as cluster, distributed.Client(cluster.address) as client:
        cluster.start_worker()
        client.wait_for_workers(1, timeout=60)
        rows = on_cluster(client, tmp_path / "log")
        with (
            pytest.raises(LostWorkError, match=r"none came within 1 seconds\. Start some, then fit with"),
            rows,
        ):
            rows.run(lambda rows: rows.fold(murder, str(permits)))
