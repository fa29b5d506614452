"""Runs that are killed, starved, interrupted and damaged end with the results of an undisturbed one."""

import json
import os
import pty
import re
import select
import shutil
import signal
import sqlite3
import subprocess
import time
from contextlib import closing, contextmanager

import numpy as np
import pytest

import bench_runs as bench
from labelsieve.bench import RunError
from labelsieve.bench.config import load_experiment
from labelsieve.bench.data import describe, load_dataset
from labelsieve.bench.plan import plan
from labelsieve.bench.repair import repair
from labelsieve.bench.results import read_results
from labelsieve.bench.status import read_status
from labelsieve.bench.store import Store
from labelsieve.bench.workers import run_locally

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="finds processes in /proc"),
]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The experiment's configuration, its results, and the folder that holds them."""
    return bench.undisturbed_run(tmp_path_factory.mktemp("undisturbed"))


@pytest.fixture
def project(undisturbed, tmp_path):
    """A copy of the experiment that was not run yet, and the folder its results will be in."""
    config = bench.make_project(tmp_path / "project")
    return config, config.parent / "runs" / "small"


@pytest.fixture
def complete(undisturbed, project):
    """A copy of the experiment and its results."""
    config, folder = project
    shutil.copytree(undisturbed[2], folder)
    return config, folder


# Killed


def test_twenty_kills_leave_exactly_the_results_of_an_undisturbed_run(undisturbed, project):
    config, folder = project
    rng = np.random.default_rng(20)
    known = {}
    for number in range(20):
        process = bench.start(config, "--jobs", 2, pause=0.3, stdout=subprocess.DEVNULL, stderr=None)
        if number % 5 < 3:  # at any moment, mostly while processes start
            time.sleep(rng.uniform(0, 2.5))
        else:  # while cells finish
            bench.wait_for_cells(folder, process, more_than=len(known))
            time.sleep(rng.uniform(0, 0.4))
        assert process.poll() is None, "came to its end before it was killed"
        bench.kill(process)
        now = bench.finished(folder)
        assert known.items() <= now.items()
        known = now
    out, _ = bench.finish(config, "--jobs", 2, "--json")
    assert json.loads(out)["computed"] == bench.N_SMALL - len(known)
    assert bench.stored(folder) == undisturbed[1]
    assert known.items() <= bench.finished(folder).items()


@pytest.mark.parametrize("moment", ["while it computes", "while it waits"])
def test_workers_do_not_outlive_a_killed_runner(project, moment):
    config, folder = project
    pause = 600 if moment == "while it computes" else 0.2
    process = bench.start(config, "--jobs", 2, pause=pause, stdout=None, stderr=None)
    if moment == "while it computes":
        bench.wait_for(lambda: len(bench.workers_of(process)) == 2, process)
        time.sleep(1)
    else:
        bench.wait_for_cells(folder, process)
        os.kill(process.pid, signal.SIGSTOP)  # no new cells: the workers finish theirs and wait
        time.sleep(1)
    bench.kill(process)
    bench.wait_until_all_are_gone(process)


def test_a_killed_worker_costs_nothing_but_time(undisturbed, project):
    config, folder = project
    process = bench.start(config, "--jobs", 2, pause=0.2)
    bench.wait_for_cells(folder, process)
    os.kill(bench.workers_of(process)[0], signal.SIGKILL)
    _, err = process.communicate(timeout=240)
    assert process.returncode == 0
    assert len(re.findall("was killed by SIGKILL, .*; it is tried again at the end", err)) == 1
    assert bench.stored(folder) == undisturbed[1]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_method_that_kills_its_process_fails_alone(tmp_path, jobs):
    text = """
    folds = 2
    datasets = [{ name = "small", path = "small.csv", labels = "label_*" }]
    methods = ["own_methods:Slow", "own_methods:Deadly", "own_methods:Leaver", "sum-f"]
    """
    config = bench.make_project(tmp_path, text)
    _, err = bench.inside(config, "--jobs", jobs, code=3)
    assert "4 of 8 cells are done, 8 computed now" in err
    cells = read_results(tmp_path / "runs" / "small").cells
    errors = {cell.method: cell.error for cell in cells}
    assert errors["own_methods:Slow"] is errors["sum-f"] is None
    assert errors["own_methods:Deadly"].startswith(
        "WorkerDied: the process of the cell was killed by SIGKILL, twice"
    )
    assert errors["own_methods:Leaver"] == "SystemExit: enough"
    assert [cell.status for cell in cells].count("failed") == 4


# Interrupted


@pytest.mark.parametrize(("jobs", "moment"), [(1, "cells"), (2, "cells"), (2, "start")])
def test_an_interrupt_says_how_to_go_on_and_leaves_no_process(undisturbed, project, jobs, moment):
    config, folder = project
    process = bench.start(config, "--jobs", jobs, pause=0.3)
    if moment == "cells":
        bench.wait_for_cells(folder, process)
    else:
        bench.wait_for(lambda: bench.workers_of(process), process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    n_finished = len(bench.finished(folder))
    assert err == (
        f"error: stopped; {n_finished} of {bench.N_SMALL} cells are finished and stored; "
        f"go on with: labelsieve bench run small.toml --jobs {jobs}\n"
    )
    assert out == ""
    bench.wait_until_all_are_gone(process)
    if jobs == 1:
        bench.finish(config, "--jobs", 2)
        assert bench.stored(folder) == undisturbed[1]


# Full, read-only, shared


@contextmanager
def small_disk(folder, size):
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small file system cannot be mounted here")
    try:
        yield lambda option: subprocess.run(["mount", "-o", f"remount,{option}", str(folder)], check=True)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_stops_the_run_until_there_is_room(undisturbed, project, tmp_path):
    config, _ = project
    folder = tmp_path / "disk" / "run"
    with small_disk(tmp_path / "disk", "200k") as remount:
        message = bench.fails(config, "--jobs", 2, "--out", folder)
        assert "database or disk is full; finished cells are safe. Check free space" in message
        known = bench.finished(folder)
        assert 0 < len(known) < bench.N_SMALL
        remount("size=8m")
        bench.finish(config, "--jobs", 2, "--out", folder)
        assert bench.stored(folder) == undisturbed[1]
        assert known.items() <= bench.finished(folder).items()


def test_a_read_only_folder_is_told_in_one_sentence(undisturbed, project, tmp_path):
    config, _ = project
    disk = tmp_path / "disk"
    with small_disk(disk, "8m") as remount:
        shutil.copytree(undisturbed[2], disk / "run")
        remount("ro")
        new = bench.fails(config, "--out", disk / "new")
        assert re.search(r"cannot be written \(.*Read-only file system.*\); choose another folder", new)
        assert "Check free space and permissions" in bench.fails(config, "--out", disk / "run")
        assert read_status(disk / "run").datasets[0].done == bench.N_SMALL
        assert len(read_results(disk / "run").cells) == bench.N_SMALL


def test_a_second_runner_is_sent_away_and_the_first_goes_on(undisturbed, project):
    config, folder = project
    first = bench.start(config, "--jobs", 2, pause=0.3)
    bench.wait_for_cells(folder, first)
    assert "another run is writing there; wait for it" in bench.fails(config)
    assert first.poll() is None
    first.communicate(timeout=240)
    assert first.returncode == 0
    assert bench.stored(folder) == undisturbed[1]


def test_of_two_runners_that_start_together_one_wins(undisturbed, project):
    config, folder = project
    both = [bench.start(config, "--jobs", 1, pause=0.1) for _ in range(2)]
    errors = [process.communicate(timeout=240)[1] for process in both]
    assert sorted(process.returncode for process in both) == [0, 1]
    assert sum("another run is writing there" in err for err in errors) == 1
    assert bench.stored(folder) == undisturbed[1]


# Damaged


def overwrite(path, rng):
    with path.open("r+b") as file:
        file.seek(int(rng.integers(200, path.stat().st_size - 300)))
        file.write(rng.bytes(300))


def cut_off(path, rng):
    os.truncate(path, int(rng.integers(100, path.stat().st_size)))


def flip_a_bit(path, rng):
    place = int(rng.integers(100, path.stat().st_size))
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ (1 << int(rng.integers(8)))]))


def forget_what_was_altered(path):
    with Store(path, writer=True) as store:
        store.forget(store.altered())


def complaint(action, path):
    """What an action says if it refuses; any other exception is a mistake."""
    try:
        action(path)
    except RunError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("damage", [overwrite, cut_off, flip_a_bit])
def test_damage_anywhere_is_noticed_and_no_altered_cell_survives(undisturbed, tmp_path, damage):
    _, results, folder = undisturbed
    true_cells, true_scores = set(results["cells"]), set(results["scores"])
    n_saved = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        copy = tmp_path / str(seed)
        copy.mkdir()
        path = copy / "results.sqlite"
        shutil.copy(folder / "results.sqlite", path)
        damage(path, rng)
        for read in (read_status, read_results):
            assert re.search(
                "^$|labelsieve bench repair|choose another folder|expected", complaint(read, copy)
            )
        refusal = complaint(forget_what_was_altered, path)
        if "bench repair" in refusal:
            hopeless = complaint(repair, path)
            assert re.search("^$|no cell can be read; move the file away", hopeless)
            if hopeless:
                continue
            with Store(path, writer=True) as store:
                assert store.altered() == []
        elif refusal:
            assert "choose another folder" in refusal
            continue
        with closing(sqlite3.connect(path)) as database:
            n_scores = dict(database.execute("SELECT key, COUNT(*) FROM scores GROUP BY key"))
            keys = {key for (key,) in database.execute("SELECT key FROM cells")}
        left = bench.stored(copy)
        assert set(left["cells"]) <= true_cells
        assert set(left["scores"]) <= true_scores
        assert keys == set(n_scores)
        n_saved.append(len(keys))
    assert sum(n_saved) > (0.3 if damage is cut_off else 0.8) * 25 * bench.N_SMALL


def test_a_damaged_file_is_repaired_and_the_run_completes_it(undisturbed, complete):
    config, folder = complete
    size = (folder / "results.sqlite").stat().st_size
    with (folder / "results.sqlite").open("r+b") as file:
        file.seek(size // 2)
        file.write(np.random.default_rng(1).bytes(20_000))
    message = bench.fails(config)
    assert message.endswith("save what can be read with: labelsieve bench repair runs/small")
    out, _ = bench.inside(folder, verb="repair")
    saved = int(re.match(r"(\d+) cells saved to .*; the damaged file is now .*\.damaged-1\n", out)[1])
    assert 0 < saved < bench.N_SMALL
    known = bench.finished(folder)
    out, _ = bench.finish(config, "--jobs", 2, "--json")
    assert json.loads(out)["computed"] == bench.N_SMALL - saved
    assert bench.stored(folder) == undisturbed[1]
    assert known.items() <= bench.finished(folder).items()


def test_values_that_were_altered_are_computed_again(undisturbed, complete):
    config, folder = complete
    with closing(sqlite3.connect(folder / "results.sqlite")) as database, database:
        keys = [key for (key,) in database.execute("SELECT key FROM cells ORDER BY key LIMIT 4")]
        database.execute(
            "UPDATE scores SET value = value + 1e-15 WHERE key = ? AND metric = 'coverage'", keys[:1]
        )
        database.execute("UPDATE cells SET notes = '[\"\"]' WHERE key = ?", keys[1:2])
        database.execute("DELETE FROM scores WHERE key = ? AND metric = 'coverage'", keys[2:3])
        database.execute("DELETE FROM cells WHERE key = ?", keys[3:4])
    _, err = bench.inside(config)
    assert "4 stored cells were altered; they are computed again." in err
    assert "72 of 72 cells are done, 4 computed now" in err
    assert bench.stored(folder) == undisturbed[1]


def test_files_that_are_no_results_are_left_alone(undisturbed, project):
    config, folder = project
    folder.mkdir(parents=True)
    path = folder / "results.sqlite"
    path.write_text("dear diary, " * 500)
    assert "the file is damaged (file is not a database)" in bench.fails(config)
    assert "no cell can be read; move the file away and run again" in bench.fails(folder, verb="repair")
    assert path.read_text().startswith("dear diary")
    path.unlink()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE guests (name TEXT)")
    assert "not a results file of labelsieve; choose another folder" in bench.fails(config)
    path.unlink()
    path.touch()
    with pytest.raises(RunError, match="no results in it yet"):
        read_status(folder)
    bench.inside(config, "--jobs", 2)
    assert bench.stored(folder) == undisturbed[1]


# Changed


def small_project(tmp_path, methods='"own_methods:Slow", "sum-mi"', more="", seeds="[0]"):
    """Four cells a method and seed."""
    text = f"""
    folds = 4
    seeds = {seeds}
    datasets = [{{ name = "small", path = "small.csv", labels = "label_*" }}]
    methods = [{methods}]
    {more}
    """
    return bench.make_project(tmp_path, text), tmp_path / "runs" / "small"


def test_a_changed_configuration_is_noticed(tmp_path):
    config, folder = small_project(tmp_path)
    bench.inside(config)
    before = bench.stored(folder)
    small_project(tmp_path, more="[sizes]\npercent = [30]")
    message = bench.fails(config)
    assert (
        "the configuration changed (sizes) since the last run, so 8 finished cells would no longer" in message
    )
    assert "undo the change, choose another folder with --out, or go on with --accept-changes" in message
    small_project(tmp_path, methods='"sum-mi"')
    assert "the configuration changed (methods) since the last run, so 4 finished cells" in bench.fails(
        config
    )
    _, err = bench.inside(config, "--accept-changes")
    assert "4 of 4 cells are done, 0 computed now" in err
    assert "4 cells belong to an earlier configuration" in bench.inside(folder, verb="status")[0]
    small_project(tmp_path)  # undone: everything is there still
    assert "8 of 8 cells are done, 0 computed now" in bench.inside(config)[1]
    assert bench.stored(folder) == before


def test_a_changed_data_file_is_noticed(tmp_path):
    config, _ = small_project(tmp_path, methods='"sum-mi"')
    bench.finish(config)
    bench.write_data(tmp_path, seed=1)
    assert (
        "the data of small changed since the last run, so 4 finished cells would no longer"
        in bench.finish(config, code=1)[1]
    )
    assert "4 of 4 cells are done, 4 computed now" in bench.finish(config, "--accept-changes")[1]


def test_other_methods_and_their_order_change_no_result(tmp_path):
    config, folder = small_project(tmp_path)
    bench.inside(config)
    before = bench.stored(folder)
    small_project(tmp_path, methods='"sum-f", "sum-mi", "random-ranking", "own_methods:Slow"')
    out, _ = bench.inside(config, "--json")
    assert json.loads(out) == {"folder": "runs/small", "planned": 24, "done": 24, "failed": 0, "computed": 16}
    after = bench.stored(folder)
    assert set(before["cells"]) < set(after["cells"])
    bench.inside(config, "--out", "alone")  # all computed together, in the other order
    assert bench.stored(tmp_path / "alone") == after


def test_results_do_not_depend_on_the_number_of_jobs(tmp_path):
    text = """
    folds = 2
    datasets = ["planted"]
    methods = ["mifs", "drmfs"]
    references = ["random-ranking", "rfs", "all-features"]
    """
    config = bench.make_project(tmp_path, text)
    found = []
    for jobs in (1, 2, 3):
        bench.inside(config, "--jobs", jobs, "--out", f"jobs{jobs}")
        found.append(bench.stored(tmp_path / f"jobs{jobs}"))
    assert found[0] == found[1] == found[2]


# Failing, and taking too much


def test_a_failing_method_is_recorded_shown_and_tried_again(tmp_path):
    config, folder = small_project(tmp_path, methods='"own_methods:Broken", "sum-f"')
    _, err = bench.inside(config, code=3)
    assert "failed: small, flip 0.2, seed 0, fold 0, own_methods:Broken: RuntimeError: out of luck" in err
    assert "4 cells failed; see: labelsieve bench status runs/small; try again with: labelsieve bench" in err
    known = bench.finished(folder)
    shown, _ = bench.inside(folder, verb="status")
    assert "failed: small, flip 0.2, seed 0, fold 3, own_methods:Broken: RuntimeError: out of luck" in shown
    status = json.loads(bench.inside(folder, "--json", verb="status")[0])
    assert status["datasets"][0]["failed"] == 4
    assert 'raise RuntimeError("out of\\nluck")' in status["failures"][0]["traceback"]
    # Without being asked, nothing is tried again, but it still counts as failed.
    assert "4 of 8 cells are done, 0 computed now" in bench.inside(config, code=3)[1]
    (tmp_path / "mended").touch()
    assert "8 of 8 cells are done, 4 computed now" in bench.inside(folder, verb="retry-failed")[1]
    done = {cell.key for cell in read_results(folder).cells if cell.method == "sum-f"}
    assert {key: known[key] for key in done}.items() <= bench.finished(folder).items()


def test_cells_that_take_too_much_fail_and_succeed_with_higher_limits(tmp_path):
    methods = '"own_methods:Endless", "sum-f", "own_methods:Hungry", "sum-mi"'
    config, folder = small_project(tmp_path, methods, more="[limits]\nseconds = 1.5\nmemory_mib = 150")
    bench.inside(config, "--jobs", 1, code=3)
    cells = read_results(folder).cells
    errors = {cell.method: cell.error for cell in cells}
    assert errors["own_methods:Endless"] == (
        "LimitExceeded: took more than 1.5 seconds; raise limits.seconds and run again with --retry-failed"
    )
    assert errors["own_methods:Hungry"] == (
        "LimitExceeded: took more than 150 MiB of memory; raise limits.memory_mib and run again with "
        "--retry-failed"
    )
    assert "in _wait" in next(cell.traceback for cell in cells if cell.method == "own_methods:Endless")
    assert [cell.status for cell in cells] == ["failed", "done"] * 8
    (tmp_path / "mended").touch()
    small_project(tmp_path, methods, more="[limits]\nmemory_mib = 1500")
    assert "16 of 16 cells are done, 8 computed now" in bench.inside(config, "--retry-failed")[1]


def test_a_process_that_does_not_answer_is_killed_at_last(tmp_path):
    config, _ = small_project(tmp_path, '"own_methods:Deaf", "sum-f"', more="[limits]\nseconds = 1")
    experiment = load_experiment(config)
    spec = experiment.datasets[0]
    facts = describe(spec, load_dataset(spec, experiment.folder), experiment)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        cells = plan(experiment, {"small": facts})[:2]
    remarks = []
    found = {
        cell.method.name: result.error
        for cell, result in run_locally(experiment, cells, 1, remarks.append, grace=9)
    }
    assert found["sum-f"] is None
    assert found["own_methods:Deaf"].startswith(
        "LimitExceeded: took more than 1 seconds; raise limits.seconds"
    )
    assert remarks == []


# Told to the user


def test_a_terminal_shows_a_bar_for_every_data_set_with_the_time_left(project):
    config, _ = project
    ours, theirs = pty.openpty()
    process = bench.start(config, "--jobs", 2, stdin=theirs, stdout=theirs, stderr=theirs, encoding=None)
    os.close(theirs)
    shown = b""
    while process.poll() is None or select.select([ours], [], [], 0)[0]:
        if select.select([ours], [], [], 0.2)[0]:
            try:
                shown += os.read(ours, 65536)
            except OSError:  # how Linux says that the other end was closed
                break
    os.close(ours)
    assert process.wait() == 0
    text = shown.decode()
    assert re.search(r"small .*\d+/72 about \d+ s left", text)
    assert re.search(r"small .*72/72 finished", text)
    assert "72 of 72 cells are done, 72 computed now; results in runs/small" in text


def test_without_a_terminal_there_are_lines_and_with_quiet_or_json_only_what_was_asked_for(complete):
    config, _ = complete
    assert bench.finish(config) == (
        "",
        "72 of 72 cells were finished before.\n"
        "72 of 72 cells are done, 0 computed now; results in runs/small\n"
        "next: labelsieve report runs/small\n",
    )
    assert bench.finish(config, "--quiet") == ("", "")
    out, err = bench.finish(config, "--quiet", "--json")
    assert (json.loads(out)["done"], err) == (72, "")
