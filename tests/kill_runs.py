"""Kill a real run again and again, and check that it ends with the results of an undisturbed one.

``python tests/kill_runs.py 20`` spreads twenty kill -9 over a run.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

import bench_runs as bench


def kill_and_finish(config, folder, expected, n_kills):
    """Kill the run at moments spread over it; no finished cell may be lost or computed again."""
    permits = config.parent / "permits"
    permits.mkdir()
    known = {}
    for number in range(n_kills):
        process = bench.start(config, "--jobs", 2, permits=permits)
        # The last fold is not finished without permits.
        wanted = number * (bench.N_SMALL - 6) // (n_kills - 1)
        if number % 4 == 0:  # while processes start
            bench.wait_for(lambda process=process: bench.workers_of(process), process)
        while len(bench.finished(folder)) < wanted:
            assert process.poll() is None, "ended before it was killed"
            (permits / "permit").touch()
            time.sleep(0.02)
        time.sleep(0.01 * (number % 3))
        assert process.poll() is None, "ended before it was killed"
        bench.kill(process)
        now = bench.finished(folder)
        assert known.items() <= now.items()
        known = now
    out, _ = bench.here(config, "--json")
    assert json.loads(out)["computed"] == bench.N_SMALL - len(known)
    assert bench.stored(folder) == expected
    assert known.items() <= bench.finished(folder).items()


def main(n_kills):
    with tempfile.TemporaryDirectory() as name:
        _, expected, _ = bench.undisturbed_run(Path(name, "undisturbed"))
        config = bench.make_project(Path(name, "killed"))
        kill_and_finish(config, config.parent / "runs" / "small", expected, n_kills)
    print(f"{n_kills} kills: all {bench.N_SMALL} cells as in an undisturbed run, none lost or computed again")


if __name__ == "__main__":
    main(int(sys.argv[1]))
