"""Inject faults into fits on a dask cluster. Each fit must give the right result or one clear error.

python tests/cluster_faults.py          every fault once
python tests/cluster_faults.py 5        every fault five times
"""

import logging
import os
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path
from threading import Thread

import dask.array as da
import numpy as np
from distributed import Client

from dask_cluster import running_scheduler
from labelsieve import EvidenceSelector
from labelsieve.datasets import make_pml

X, Y = make_pml(2000, 30, n_labels=6, random_state=0)
N_ROWS = 250


def slowly(block, error=None, block_info=None):
    """Return a block after a delay, so that the fit is still running when the fault happens."""
    time.sleep(0.5)
    if error is not None and block_info[0]["chunk-location"][0] == 3:
        raise error
    return block


def kill_worker(cluster, number=0):
    cluster.workers[number].kill()


def replace_only_worker(cluster):
    kill_worker(cluster)
    time.sleep(3)
    cluster.start_worker()


def replace_both_workers(cluster):
    replace_only_worker(cluster)
    kill_worker(cluster, 1)


def pause_worker(cluster):
    os.kill(cluster.workers[0].pid, signal.SIGSTOP)
    time.sleep(10)
    os.kill(cluster.workers[0].pid, signal.SIGCONT)


def terminate(process):
    os.kill(process.pid, signal.SIGTERM)


#: Name -> initial number of workers, options of `slowly`, fault during the fit, and expected errors. If there
#: are none, the result must equal that of a fit in memory.
FAULTS = {
    "one of two workers killed": (2, {}, kill_worker, ()),
    "one of two workers terminated": (2, {}, lambda c: terminate(c.workers[0]), ()),
    "both workers killed in turn, one joins": (2, {}, replace_both_workers, ()),
    "only worker killed, another joins": (1, {}, replace_only_worker, ()),
    "only worker killed, none joins": (1, {}, kill_worker, ("LostClusterError",)),
    "worker paused for 10 s": (2, {}, pause_worker, ()),
    "scheduler killed": (2, {}, lambda c: c.scheduler.kill(), ("LostClusterError",)),
    "scheduler terminated": (2, {}, lambda c: terminate(c.scheduler), ("LostClusterError",)),
    "no worker": (0, {}, lambda c: None, ("LostClusterError",)),
    "worker with too little memory": (-1, {}, lambda c: None, ("LostClusterError", "MemoryError")),
    "a block cannot be read": (2, {"error": OSError("gone")}, lambda c: None, ("OSError",)),
    "a block has NaN": (2, {"nan": True}, lambda c: None, ("ValueError",)),
}


def fit_under(n_workers, options, fault, folder):
    """Return the fitted estimator, or the error of the fit."""
    with running_scheduler(folder) as cluster:
        for _ in range(abs(n_workers)):
            cluster.start_worker(*(("--memory-limit", "60MB") if n_workers < 0 else ()))
        with Client(cluster.address, timeout=30) as client:
            if n_workers:
                client.wait_for_workers(abs(n_workers), timeout=60)
            rows = X.copy()
            rows[-1, 0] = np.nan if options.get("nan") else rows[-1, 0]
            lazy = da.from_array(rows, chunks=(N_ROWS, -1)).map_blocks(
                slowly, options.get("error"), dtype=X.dtype, meta=X[:0]
            )
            injector = Thread(target=lambda: (time.sleep(1.5), fault(cluster)))
            injector.start()
            try:
                return EvidenceSelector(5).fit(lazy, da.from_array(Y, chunks=(N_ROWS, -1)))
            except Exception as error:
                return error
            finally:
                injector.join()
                client.close(timeout=2)


def main(n_times):
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)  # dask logs a traceback for each lost connection
    expected = EvidenceSelector(5).fit(X, Y)
    n_wrong = 0
    for name, (n_workers, options, fault, errors) in FAULTS.items():
        for _ in range(n_times):
            start = time.monotonic()
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                found = fit_under(n_workers, options, fault, Path(folder))
            if isinstance(found, Exception):
                good = type(found).__name__ in errors
                outcome = f"{type(found).__name__}: {found}"
            else:
                good = not errors and np.array_equal(found.ranking_, expected.ranking_)
                outcome = "same ranking as in memory" if good else "different ranking or missing error"
            n_wrong += not good
            print(f"{'ok' if good else 'WRONG':5} {time.monotonic() - start:5.1f} s  {name}: {outcome[:120]}")
    sys.exit(n_wrong > 0)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
