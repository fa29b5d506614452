"""Runs that are killed, starved, interrupted and damaged end with the results of an undisturbed one."""

import json
import os
import pickle
import pty
import re
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import bench_runs as bench
import damage_results
import kill_runs
import quick_cells
from labelsieve.bench import RunError, RunInterrupted, runner
from labelsieve.bench.config import load_experiment
from labelsieve.bench.repair import repair
from labelsieve.bench.results import read_results
from labelsieve.bench.status import read_status
from labelsieve.bench.store import Store

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


@pytest.mark.slow(seconds=30)
def test_kills_leave_exactly_the_results_of_an_undisturbed_run(undisturbed, project):
    kill_runs.kill_and_finish(*project, undisturbed[1], n_kills=2, cells="forked")


@pytest.mark.parametrize("moment", ["while it computes", "while it waits"])
def test_workers_do_not_outlive_a_killed_runner(project, moment):
    config, folder = project
    if moment == "while it computes":
        process = bench.start(config, "--jobs", 2, pause=600, cells="started")
        bench.wait_for(lambda: len(bench.workers_of(process)) == 2, process)
        time.sleep(1)
    else:
        process = bench.start(config, "--jobs", 1, pause=0.2, cells="started")
        bench.wait_for_cells(folder, process)
        os.kill(process.pid, signal.SIGSTOP)  # no new cells: the workers finish theirs and wait
        time.sleep(1)
    bench.kill(process)
    bench.wait_until_all_are_gone(process)


def test_a_process_that_nobody_listens_to_ends_without_a_word(project):
    """As when a run is stopped while it starts processes."""
    program = f"import sys; sys.path[:] = {sys.path!r}; import labelsieve.bench.process as p; p.serve(2)"
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as process:
        process.stdout.close()
        pickle.dump(load_experiment(project[0]), process.stdin)
        process.stdin.flush()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_a_killed_worker_costs_nothing_but_time(undisturbed, project):
    config, folder = project
    process, let_go = bench.start_and_hold(config, "--jobs", 2)
    os.kill(bench.workers_of(process)[0], signal.SIGKILL)
    let_go()
    _, err = process.communicate(timeout=240)
    assert process.returncode == 0
    assert len(re.findall("was killed by SIGKILL, .*; it is tried again at the end", err)) == 1
    assert bench.stored(folder) == undisturbed[1]


@pytest.mark.parametrize(("jobs", "deadly"), [(1, "Babbling"), (2, "Deadly")])
def test_a_method_that_kills_its_process_fails_alone(tmp_path, jobs, deadly):
    methods = f'"own_methods:Slow", "own_methods:{deadly}", "own_methods:Leaver", "sum-f"'
    config, folder = small_project(tmp_path, methods, folds=2)
    _, err = bench.inside(config, "--jobs", jobs, code=3)
    cells = read_results(folder).cells
    assert "5 of 8 cells are done, 8 computed now, with 8 rankings" in err
    died, *left = sorted((cell.method, cell.error) for cell in cells if cell.status == "failed")
    assert died[0] == f"own_methods:{deadly}"
    assert died[1].startswith("WorkerDied: the process of the cell was killed by SIGKILL, twice")
    assert left == [("own_methods:Leaver", "SystemExit: enough")] * 2
    assert [cell.error for cell in cells].count(None) == 5


# Interrupted


@pytest.mark.parametrize(
    ("jobs", "moment", "order"),
    [(1, "cells", "SIGINT"), (2, "start", "SIGINT"), (2, "cells", "SIGTERM")],
)
def test_an_interrupt_says_how_to_go_on_and_leaves_no_process(undisturbed, project, jobs, moment, order):
    config, folder = project
    if moment == "cells":
        process, _ = bench.start_and_hold(config, "--jobs", jobs)
    else:
        process = bench.start(config, "--jobs", jobs, pause=0.3, cells="started")
        bench.wait_for(lambda: bench.workers_of(process), process)
    os.killpg(process.pid, getattr(signal, order))  # as a terminal or the system does
    out, err = process.communicate(timeout=60)
    assert process.returncode == {"SIGINT": 130, "SIGTERM": 143}[order]
    n_finished = len(bench.finished(folder))
    assert bench.without_progress(err) == (
        f"error: stopped; {n_finished} of {bench.N_SMALL} cells are finished and stored; "
        f"go on with: labelsieve bench run small.toml --jobs {jobs}\n"
    )
    assert out == ""
    bench.wait_until_all_are_gone(process)
    if jobs == 1:
        bench.here(config)
        assert bench.stored(folder) == undisturbed[1]


def test_a_cell_that_is_stored_when_the_interrupt_comes_counts(project, monkeypatch):
    config, folder = project
    record = Store.record

    def record_and_stop(*arguments, **options):
        record(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, "record", record_and_stop)
    with (
        quick_cells.one_job_here(),
        pytest.raises(RunInterrupted, match=r"^stopped; 1 of 72 cells are finished and stored"),
    ):
        runner.run(load_experiment(config), folder)


# Moved, deleted


@pytest.mark.parametrize("what", ["the folder is renamed", "the file is renamed", "the file is deleted"])
def test_results_that_go_elsewhere_while_a_run_writes_stop_it(undisturbed, project, what):
    config, folder = project
    process, let_go = bench.start_and_hold(
        config, "--jobs", 1, cells="forked" if what == "the folder is renamed" else "here"
    )
    elsewhere = folder.with_name("elsewhere")
    if what == "the folder is renamed":
        folder.rename(elsewhere)
    elif what == "the file is renamed":
        (folder / "results.sqlite").rename(folder / "other.sqlite")
    else:
        (folder / "results.sqlite").unlink()
    let_go()
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (1, "")
    bench.wait_until_all_are_gone(process)
    place = "runs/small/results.sqlite"
    if what == "the file is deleted":
        assert bench.without_progress(err) == (
            f"error: {place}: the file was deleted while the run went on, and the finished cells with it; restore it "
            "if you can, then run the same command again.\n"
        )
        return
    if what == "the file is renamed":
        assert bench.without_progress(err) == (
            f"error: {place}: the file was moved to {folder / 'other.sqlite'} while the run went on; the finished "
            "cells are there. Move it back, then run the same command again.\n"
        )
        assert read_status(folder / "other.sqlite").datasets[0].done > 0
        return
    assert bench.without_progress(err) == (
        f"error: {place}: the file was moved to {elsewhere / 'results.sqlite'} while the run went on; the finished "
        f"cells are there. Move it back, or go on with --out {elsewhere}\n"
    )
    known = bench.finished(elsewhere)
    assert not folder.exists()
    out, _ = bench.here(config, "--json", "--out", elsewhere)
    assert json.loads(out)["computed"] == bench.N_SMALL - len(known)
    assert bench.stored(elsewhere) == undisturbed[1]
    assert known.items() <= bench.finished(elsewhere).items()


# Full, read-only, shared


def test_a_full_disk_stops_the_run_until_there_is_room(undisturbed, project, tmp_path):
    config, _ = project
    folder = tmp_path / "disk" / "run"
    with bench.small_disk(tmp_path / "disk", "200k") as remount:
        message = bench.fails(config, "--jobs", 1, "--out", folder, cells="here")
        assert "database or disk is full; finished cells are safe. Check free space" in message
        known = bench.finished(folder)
        assert 0 < len(known) < bench.N_SMALL
        remount("size=8m")
        bench.here(config, "--out", folder)
        assert bench.stored(folder) == undisturbed[1]
        assert known.items() <= bench.finished(folder).items()


def test_a_read_only_folder_is_told_in_one_sentence(undisturbed, project, tmp_path):
    config, _ = project
    disk = tmp_path / "disk"
    with bench.small_disk(disk, "8m") as remount:
        shutil.copytree(undisturbed[2], disk / "run")
        remount("ro")
        new = bench.fails(config, "--out", disk / "new")
        assert re.search(r"cannot be written \(.*Read-only file system.*\); choose another folder", new)
        assert "Check free space and permissions" in bench.fails(config, "--out", disk / "run")
        assert read_status(disk / "run").datasets[0].done == bench.N_SMALL
        assert len(read_results(disk / "run").cells) == bench.N_SMALL


def test_a_second_runner_is_sent_away_and_the_first_goes_on(undisturbed, project):
    config, folder = project
    first, let_go = bench.start_and_hold(config, "--jobs", 1, cells="here")
    assert "another run is writing there; wait for it" in bench.fails(config)
    assert first.poll() is None
    let_go()
    first.communicate(timeout=240)
    assert first.returncode == 0
    assert bench.stored(folder) == undisturbed[1]


def test_of_two_runners_that_start_together_one_wins(undisturbed, project):
    config, folder = project
    both = [bench.start(config, "--jobs", 1, pause=0.1, cells="here") for _ in range(2)]
    errors = [process.communicate(timeout=240)[1] for process in both]
    assert sorted(process.returncode for process in both) == [0, 1]
    assert sum("another run is writing there" in err for err in errors) == 1
    assert bench.stored(folder) == undisturbed[1]


# Damaged


@pytest.fixture(scope="module")
def results_file(tmp_path_factory):
    """A results file with cells that are done and cells that failed."""
    return damage_results.make_results(tmp_path_factory.mktemp("damaged"))


def flips(path):
    """Bits in every region of the file: every column of every table in the first, the middle and the last row."""
    for name, offsets in damage_results.places(path).items():
        for number, place in enumerate(dict.fromkeys((offsets[0], offsets[len(offsets) // 2], offsets[-1]))):
            # The highest as well where text is shown in a message: it is no UTF-8 then.
            for bit in {(place + number) % 8, *([7] if name.startswith("sqlite_master") else [])}:
                yield name, lambda data, place=place, bit=bit: damage_results.flip(data, place, bit)


def test_every_region_of_a_file_is_damaged_by_the_test(results_file):
    regions = set(damage_results.places(results_file))
    with closing(sqlite3.connect(results_file)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for row in database.execute(f"PRAGMA table_info({table})"):
                assert f"{table}.{row[1]}: type" in regions
        stored = {
            f"{table}.{row[1]}" for table in tables for row in database.execute(f"PRAGMA table_info({table})")
        }
    # Of these every value is the number of its row, none, 0 or 1: written in its place or its type.
    assert stored - {name.removesuffix(": value") for name in regions} == {
        "runs.number",
        "datasets.position",
        "plan.position",
        "plan.draw",
        "plan.seed",
        "plan.obstacle",
        "rankings.run",
        "rankings.converged",
        "judgements.run",
        "judgements.error",
        "judgements.traceback",
    }


@pytest.mark.parametrize("kind", ["flip", "overwrite", "cut"])
def test_damage_anywhere_is_told_and_nothing_altered_is_shown(results_file, tmp_path, kind):
    rng = np.random.default_rng(0)
    damages = {
        "flip": list(flips(results_file)),
        "overwrite": [(str(n), lambda data: damage_results.overwrite(data, rng)) for n in range(60)],
        "cut": [(str(n), lambda data: damage_results.cut(data, rng)) for n in range(60)],
    }[kind]
    counts, odd = damage_results.survey(results_file, tmp_path, damages)
    assert odd == []
    assert counts["damaged"] > 0


def forget_what_was_altered(path):
    with Store(path, writer=True) as store:
        store.forget(store.read().altered)


def complaint(action, path):
    """What an action says if it refuses; any other exception is a mistake."""
    try:
        action(path)
    except RunError as error:
        return str(error)
    return ""


#: Files that are repaired of every kind of damage; ``python tests/damage_results.py`` reads thousands.
N_DAMAGED = 6


@pytest.mark.parametrize("kind", ["flip", "overwrite", "cut"])
def test_no_altered_cell_survives_a_run_or_a_repair(results_file, tmp_path, kind):
    true = bench.stored(results_file.parent)
    every = list(flips(results_file))
    n_saved = []
    for seed in range(N_DAMAGED):
        rng = np.random.default_rng(seed)
        copy = tmp_path / str(seed)
        copy.mkdir()
        path = copy / "results.sqlite"
        data = bytearray(results_file.read_bytes())
        if kind == "flip":
            every[len(every) * seed // N_DAMAGED][1](data)
        else:
            getattr(damage_results, kind)(data, rng)
        path.write_bytes(data)
        refusal = complaint(forget_what_was_altered, path)
        if refusal:
            assert "bench repair" in refusal
            hopeless = complaint(repair, path)
            assert re.search("^$|no cell can be read; move the file away", hopeless)
            if hopeless:
                continue
            with Store(path, writer=True) as store:
                assert store.read().n_altered == 0
        left = bench.stored(copy)
        for part in ("rankings", "cells", "scores"):
            assert set(left[part]) <= set(true[part])
        n_saved.append(len(left["rankings"]) + len(left["cells"]))
    n_stored = len(true["rankings"]) + len(true["cells"])
    assert sum(n_saved) > (0.2 if kind == "cut" else 0.6) * N_DAMAGED * n_stored


def test_a_damaged_file_is_repaired_and_the_run_completes_it(undisturbed, complete):
    config, folder = complete
    size = (folder / "results.sqlite").stat().st_size
    with (folder / "results.sqlite").open("r+b") as file:
        file.seek(size // 2)
        file.write(np.random.default_rng(1).bytes(20_000))
    message = bench.fails(config)
    assert message.endswith("save what can be read with: labelsieve bench repair runs/small")
    stale = folder / "results.sqlite-journal"
    stale.touch()
    out, _ = bench.inside(folder, verb="repair")
    assert not stale.exists()  # it must not meet the new file
    saved = int(re.match(r"(\d+) cells saved to .*; the damaged file is now .*\.damaged-1\n", out)[1])
    assert 0 < saved < bench.N_SMALL
    known = bench.finished(folder)
    # A judgement whose ranking is lost counts as lost, but stays when the same ranking comes out again.
    n_judged = len(keys_of(folder, "judgements"))
    assert saved <= n_judged
    out, _ = bench.here(config, "--json")
    assert json.loads(out)["computed"] == bench.N_SMALL - n_judged
    assert bench.stored(folder) == undisturbed[1]
    assert known.items() <= bench.finished(folder).items()


def alter(folder, *statements):
    """Change a results file behind the program's back."""
    with closing(sqlite3.connect(folder / "results.sqlite")) as database, database:
        for statement, *values in statements:
            database.execute(statement, values)


def keys_of(folder, table):
    with bench.reading(folder) as database:
        return [key for (key,) in database.execute(f"SELECT key FROM {table} ORDER BY key")]


def test_judgements_that_were_altered_are_made_again_of_the_rankings_that_are_there(undisturbed, complete):
    config, folder = complete
    keys = keys_of(folder, "judgements")
    alter(
        folder,
        ("UPDATE scores SET value = value + 1e-15 WHERE key = ? AND metric = 'coverage'", keys[0]),
        ("UPDATE judgements SET notes = '[\"\"]' WHERE key = ?", keys[1]),
        ("DELETE FROM scores WHERE key = ? AND metric = 'coverage'", keys[2]),
        ("DELETE FROM judgements WHERE key = ?", keys[3]),
    )
    _, err = bench.here(config)
    assert "4 stored cells were altered; they are computed again." in err
    assert "72 of 72 cells are done, 4 computed now, with 0 rankings" in err
    assert bench.stored(folder) == undisturbed[1]


def test_rankings_that_were_altered_are_made_again_and_their_judgements_stay(undisturbed, complete):
    config, folder = complete
    known = bench.finished(folder)
    with bench.reading(folder) as database:
        keys = [key for (key,) in database.execute("SELECT key FROM rankings WHERE ranking IS NOT NULL")]
    alter(
        folder,
        ("UPDATE rankings SET notes = '[\"\"]' WHERE key = ?", keys[0]),
        ("UPDATE rankings SET ranking = zeroblob(40) WHERE key = ?", keys[1]),
        ("DELETE FROM rankings WHERE key = ?", keys[2]),
    )
    assert read_status(folder).datasets[0].missing == 3
    cells = {cell.key for cell in read_results(folder).cells}
    assert not cells & set(keys[:3])
    _, err = bench.here(config)
    assert "3 stored cells were altered; they are computed again." in err
    # The same rankings come out again, so what was made of them is right still.
    assert "72 of 72 cells are done, 0 computed now, with 3 rankings" in err
    assert bench.stored(folder) == undisturbed[1]
    assert bench.finished(folder) == known


def test_a_judgement_of_another_ranking_is_made_again(undisturbed, complete):
    config, folder = complete
    with bench.reading(folder) as database:
        (key,) = database.execute("SELECT key FROM rankings WHERE ranking IS NOT NULL").fetchone()
    order = np.arange(10, dtype="<i4").tobytes()
    # As if the method had ranked otherwise, and its judgement were from before.
    damage_results.forge(
        folder / "results.sqlite", "UPDATE rankings SET ranking = ? WHERE key = ?", order, key
    )
    assert read_status(folder).datasets[0].missing == 1
    _, err = bench.here(config)
    assert "72 of 72 cells are done, 1 computed now, with 0 rankings" in err
    results = read_results(folder)
    index = next(number for number, cell in enumerate(results.cells) if cell.key == key)
    assert any(score.cell == index for score in results.scores)


@pytest.mark.parametrize(
    ("statement", "value"),
    [
        ("UPDATE rankings SET ranking = ? WHERE ranking IS NOT NULL", b"\x00\x00\x00"),
        ("UPDATE rankings SET ranking = ? WHERE ranking IS NOT NULL", b"\xff\xff\xff\x7f" * 10),
        ("UPDATE rankings SET objective = ? WHERE ranking IS NOT NULL", b"\x00"),
        ("UPDATE rankings SET params = ?", "[" * 100_000),
        ("UPDATE rankings SET params = ?", "7"),
        ("UPDATE rankings SET notes = ?", "7"),
        ("UPDATE judgements SET notes = ?", "7"),
        ("UPDATE runs SET environment = ?", "[" * 100_000),
        ("UPDATE runs SET environment = ?", "[]"),
        ("UPDATE runs SET configuration = ?", '{"a":' * 100_000),
        ("UPDATE runs SET configuration = ?", "7"),
        ("UPDATE datasets SET facts = ?", "{}"),
        ("UPDATE datasets SET facts = ?", "[" * 100_000),
        ("UPDATE plan SET dataset = ?", "elsewhere"),
        ("UPDATE plan SET method = ?", "nobody"),
        ("UPDATE plan SET judge = ?", "nobody"),
    ],
)
def test_forged_contents_are_told_in_one_sentence(results_file, tmp_path, statement, value):
    path = tmp_path / "results.sqlite"
    shutil.copy(results_file, path)
    damage_results.forge(path, statement, value)
    assert re.search(r"the file is damaged \(.*\); save what can be read with", complaint(read_results, path))
    assert re.search("^$|the file is damaged", complaint(read_status, path))


def test_a_results_file_cannot_name_a_folder_elsewhere(results_file, tmp_path):
    path = tmp_path / "results.sqlite"
    shutil.copy(results_file, path)
    damage_results.forge(path, "UPDATE runs SET configuration = json_set(configuration, '$.name', ?)", "..")
    assert re.search(r"name: letters, digits.*, got '\.\.'", complaint(read_results, path))


def test_a_results_file_is_not_executed_without_trust(results_file, tmp_path):
    """Neither shown nor tried again: what it names is not even imported."""
    path = tmp_path / "results.sqlite"
    shutil.copy(results_file, path)
    bench.make_project(tmp_path)
    (tmp_path / "trap.py").write_text(
        "from pathlib import Path\nPath(__file__).with_name('sprung').touch()\n"
    )

    def rename(before, after):
        for table, column in (("runs", "configuration"), ("plan", "method")):
            damage_results.forge(
                path, f"UPDATE {table} SET {column} = replace({column}, ?, ?)", before, after
            )

    rename("own_methods:Broken", "trap:Trap")
    damage_results.forge(
        path, "UPDATE runs SET configuration = json_set(configuration, '$.folder', ?)", str(tmp_path)
    )
    assert read_status(path).failures
    assert read_results(path).cells
    assert (
        "imports own_methods:Slow, trap:Trap, which runs that code; if you trust this file, add"
        in bench.fails(tmp_path, verb="retry-failed")
    )
    assert not (tmp_path / "sprung").exists()
    rename("trap:Trap", "subprocess:Popen")
    message = bench.fails(tmp_path, "--trust", verb="retry-failed")
    assert "methods: a class with fit was expected, got 'subprocess:Popen'; name such a class." in message


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
    bench.here(config)
    assert bench.stored(folder) == undisturbed[1]


# Changed


def small_project(tmp_path, methods='"own_methods:Slow", "sum-mi"', more="", seeds="[0]", folds=4):
    """As many cells a method and seed as folds."""
    text = f"""
    folds = {folds}
    seeds = {seeds}
    datasets = [{{ name = "small", path = "small.csv", labels = "label_*" }}]
    methods = [{methods}]
    {more}
    """
    return bench.make_project(tmp_path, text), tmp_path / "runs" / "small"


def test_a_changed_configuration_is_noticed(tmp_path):
    config, folder = small_project(tmp_path)
    bench.here(config)
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
    damage_results.forge(folder / "results.sqlite", "UPDATE runs SET configuration = ?", "[1]")
    small_project(tmp_path, methods='"sum-mi"')
    assert "the configuration changed (name, " in bench.fails(config)


def test_a_changed_data_file_is_noticed(tmp_path):
    config, _ = small_project(tmp_path, methods='"sum-mi"')
    bench.here(config)
    bench.write_data(tmp_path, seed=1)
    assert "the data of small changed since the last run, so 4 finished cells would no longer" in bench.fails(
        config
    )
    assert "4 of 4 cells are done, 4 computed now" in bench.here(config, "--accept-changes")[1]


def test_other_methods_and_their_order_change_no_result(tmp_path):
    config, folder = small_project(tmp_path)
    bench.here(config)
    before = bench.stored(folder)
    small_project(tmp_path, methods='"sum-f", "sum-mi", "random-ranking", "own_methods:Slow"')
    out, _ = bench.here(config, "--json")
    assert json.loads(out) == {
        "folder": "runs/small",
        "planned": 24,
        "done": 24,
        "failed": 0,
        "computed": 16,
        "ranked": 16,
    }
    after = bench.stored(folder)
    assert set(before["cells"]) < set(after["cells"])
    bench.here(config, "--out", "alone")  # all computed together, in the other order
    assert bench.stored(tmp_path / "alone") == after


def test_results_do_not_depend_on_the_number_of_jobs(tmp_path):
    text = """
    folds = 2
    datasets = ["planted"]
    methods = ["mifs", "drmfs"]
    references = ["random-ranking", "rfs", "all-features"]
    """
    config = bench.make_project(tmp_path, text)
    bench.here(config, "--out", "alone")
    bench.inside(config, "--jobs", 2, "--out", "together")
    assert bench.stored(tmp_path / "alone") == bench.stored(tmp_path / "together")


# Failing, and taking too much


def test_a_failing_method_is_recorded_shown_and_tried_again(tmp_path):
    config, folder = small_project(tmp_path, methods='"own_methods:Broken", "sum-f"')
    _, err = bench.here(config, code=3)
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
    assert bench.fails(folder, verb="retry-failed") == (
        f"error: {folder.name}: its configuration imports own_methods:Broken, which runs that code; if you trust this "
        "file, add --trust."
    )
    assert "8 of 8 cells are done, 4 computed now" in bench.here(folder, "--trust", verb="retry-failed")[1]
    assert len(known) == 4  # a ranking that failed has no judgement
    assert known.items() <= bench.finished(folder).items()


def running(process):
    """The command of a process; nothing if it is gone or nobody has taken notice of its end."""
    try:
        return Path("/proc", process, "cmdline").read_bytes()
    except OSError:
        return b""


def test_cells_that_take_too_much_fail_and_succeed_with_higher_limits(tmp_path):
    methods = '"own_methods:Endless", "own_methods:Deaf", "sum-f", "own_methods:Hungry", "sum-mi"'
    config, folder = small_project(tmp_path, methods, more="[limits]\nseconds = 5\nmemory_mib = 150", folds=2)
    _, err = bench.inside(config, "--jobs", 2, code=3)
    assert "it is tried again" not in err
    cells = read_results(folder).cells
    failed = {cell.method: cell for cell in cells if cell.status == "failed"}
    deaf, endless, hungry = (failed.pop(f"own_methods:{name}") for name in ("Deaf", "Endless", "Hungry"))
    assert not failed
    too_long = (
        "LimitExceeded: took more than 5 seconds; raise limits.seconds and run again with --retry-failed"
    )
    assert (endless.error, deaf.error) == (too_long, too_long)
    assert hungry.error == (
        "LimitExceeded: took more than 150 MiB of memory; raise limits.memory_mib and run again with "
        "--retry-failed"
    )
    assert "in _wait" in endless.traceback
    assert endless.traceback.endswith("in <module>\n")  # told to the end
    assert re.search(r'own_methods\.py", line \d+ in fit', deaf.traceback)  # though it was in compiled code
    child = (tmp_path / "child").read_text()
    bench.wait_for(lambda: b"sleep" not in running(child))
    assert [cell.status for cell in cells].count("done") == 7
    (tmp_path / "mended").touch()
    small_project(tmp_path, methods, more="[limits]\nmemory_mib = 1500", folds=2)
    assert "10 of 10 cells are done, 3 computed now" in bench.inside(config, "--jobs", 1, "--retry-failed")[1]


# Told to the user


def test_names_and_errors_cannot_steer_the_terminal(tmp_path):
    text = """
    folds = 2
    datasets = [{ name = "sm\\u001b[2Jall", path = "small.csv", labels = "label_*" }]
    methods = ["sum-f", { name = "bad\\u202e", method = "own_methods:Rude" }]
    """
    config = bench.make_project(tmp_path, text)
    _, err = bench.here(config, code=3)
    shown, _ = bench.inside(tmp_path / "runs" / "small", verb="status")
    for told in (err, shown):
        assert "bad\\u202e: RuntimeError: \\x1b]0;owned\\x07" in told
        assert "sm\\x1b[2Jall" in told
        assert not set(told) & set("\x1b\x07\u202e")
    out, _ = bench.inside(tmp_path / "runs" / "small", "--json", verb="status")
    assert out.isascii()
    assert json.loads(out)["datasets"][0]["name"] == "sm\x1b[2Jall"


def test_folders_whose_names_are_no_text_or_ring_a_bell(tmp_path):
    """As arguments they are part of the stored command, too."""
    config, _ = small_project(tmp_path, methods='"sum-f"', folds=2)
    name = "caf\udce9\x07"
    assert "2 of 2 cells are done" in bench.finish(config, "--jobs", 1, "--out", name, cells="here")[1]
    assert read_results(tmp_path / name).runs[0].command.endswith("--out 'caf\\udce9\x07'")
    out, _ = bench.inside(tmp_path / name, verb="repair")
    assert out == "nothing is wrong with caf\\udce9\\x07/results.sqlite; it stays as it is\n"
    alter(tmp_path / name, ("UPDATE judgements SET seconds = -1",))
    out, _ = bench.inside(tmp_path / name, verb="repair")
    assert out.startswith("0 cells saved to caf\\udce9\\x07/results.sqlite")


def test_a_terminal_shows_a_bar_for_every_data_set_with_the_time_left(project):
    config, _ = project
    ours, theirs = pty.openpty()
    process = bench.start(config, "--jobs", 1, terminal=os.ttyname(theirs), cells="here")
    shown = b""
    while process.poll() is None or select.select([ours], [], [], 0)[0]:
        if select.select([ours], [], [], 0.2)[0]:
            shown += os.read(ours, 65536)
    os.close(theirs)
    os.close(ours)
    assert process.returncode == 0
    text = shown.decode()
    assert re.search(r"small .*\d+/72 about \d+ s left", text)
    assert re.search(r"small .*72/72 finished", text)
    assert "72 of 72 cells are done, 72 computed now, with 48 rankings; results in runs/small" in text


def test_without_a_terminal_there_are_lines_and_with_quiet_or_json_only_what_was_asked_for(complete):
    config, _ = complete
    assert bench.finish(config) == (
        "",
        "72 of 72 cells were finished before.\n"
        "72 of 72 cells are done, 0 computed now; results in runs/small\n"
        "next: labelsieve report runs/small\n",
    )
    assert bench.inside(config, "--quiet") == ("", "")
    out, err = bench.inside(config, "--quiet", "--json")
    assert (json.loads(out)["done"], err) == (72, "")
