"""Runs that are killed, interrupted or damaged end with the results of an undisturbed run."""

import json
import os
import pty
import re
import resource
import select
import shutil
import signal
import sqlite3
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import bench_runs as bench
import damage_results
import kill_runs
import power_loss
from labelsieve.bench import RunError
from labelsieve.bench.results import read_results, read_status
from labelsieve.bench.store import FILE_NAME, Store
from labelsieve.cli import main

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="finds processes in /proc"),
]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Configuration of an experiment and its results."""
    return bench.undisturbed_run(tmp_path_factory.mktemp("undisturbed"))


@pytest.fixture
def project(tmp_path):
    """Experiment that has not been run, and its run folder."""
    config = bench.make_project(tmp_path / "project")
    return config, config.parent / "runs" / "small"


@pytest.fixture
def complete(undisturbed, project):
    """Copy of a finished experiment."""
    config, folder = project
    shutil.copytree(undisturbed[2], folder)
    return config, folder


def small_project(tmp_path, methods='"own_methods:Slow", "sum-mi"', more="", folds=4):
    """Write an experiment with one cell per method and fold."""
    text = f"""
    folds = {folds}
    datasets = [{{ name = "small", path = "small.csv", labels = "label_*" }}]
    methods = [{methods}]
    {more}
    """
    return bench.make_project(tmp_path, text), tmp_path / "runs" / "small"


# Killed


@pytest.mark.slow(seconds=30)
def test_kills_leave_exactly_the_results_of_an_undisturbed_run(undisturbed, project):
    kill_runs.kill_and_finish(*project, undisturbed[1], n_kills=2)


def test_workers_do_not_outlive_a_killed_runner(project):
    process = bench.start(project[0], "--jobs", 2, pause=600)
    bench.wait_for(lambda: len(bench.workers_of(process)) == 2, process)
    time.sleep(1)
    bench.kill(process)
    bench.wait_until_all_are_gone(process)


def test_a_killed_worker_costs_only_time(undisturbed, project):
    config, folder = project
    process, let_go = bench.start_and_hold(config, "--jobs", 2)
    os.kill(bench.workers_of(process)[0], signal.SIGKILL)
    let_go()
    _, err = process.communicate(timeout=240)
    assert process.returncode == 0
    assert err.count("SIGKILL") == 1
    assert bench.stored(folder) == undisturbed[1]


def test_a_method_that_kills_its_process_does_not_affect_the_others(tmp_path):
    methods = '"own_methods:Slow", "own_methods:Deadly", "own_methods:Leaver", "sum-f"'
    config, folder = small_project(tmp_path, methods, folds=2)
    out, _ = bench.inside(config, "--jobs", 2, "--json", code=3)
    assert (json.loads(out)["done"], json.loads(out)["computed"]) == (5, 8)
    cells = read_results(folder).cells
    errors = cells[cells["error"].notna()].groupby("method")["error"].unique()
    (died,), (left,) = errors["own_methods:Deadly"], errors["own_methods:Leaver"]
    assert re.match("WorkerDied: .*SIGKILL", died)
    assert left == "SystemExit: enough"


# Interrupted


@pytest.mark.parametrize(("moment", "order"), [("start", "SIGINT"), ("cells", "SIGTERM")])
def test_an_interrupt_shows_how_to_continue_and_leaves_no_process(undisturbed, project, moment, order):
    config, folder = project
    if moment == "cells":
        process, _ = bench.start_and_hold(config, "--jobs", 2)
    else:
        process = bench.start(config, "--jobs", 2, pause=0.3)
        bench.wait_for(lambda: bench.workers_of(process), process)
    os.killpg(process.pid, getattr(signal, order))  # as a terminal or the system does
    out, err = process.communicate(timeout=60)
    assert process.returncode == {"SIGINT": 130, "SIGTERM": 143}[order]
    n_finished = len(bench.finished(folder))
    expected = rf"error: .* {n_finished} of {bench.N_SMALL} .*labelsieve bench run small.toml --jobs 2\n"
    assert re.fullmatch(expected, bench.without_progress(err))
    assert out == ""
    bench.wait_until_all_are_gone(process)
    bench.here(config)
    assert bench.stored(folder) == undisturbed[1]


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace records the writes")
def test_a_power_loss_at_any_write_costs_no_stored_cell():
    outcomes = power_loss.main(n_random=0)
    assert outcomes["all acknowledged results, and no other"] > 500


# Full, read-only, shared


def test_a_full_disk_stops_the_run_until_there_is_room(undisturbed, project, tmp_path):
    config, _ = project
    folder = tmp_path / "disk" / "run"
    with bench.small_disk(tmp_path / "disk", "200k") as remount:
        assert "full" in bench.fails(config, "--jobs", 1, "--out", folder, cells="here")
        known = bench.finished(folder)
        assert 0 < len(known) < bench.N_SMALL
        remount("size=8m")
        bench.here(config, "--out", folder)
        assert bench.stored(folder) == undisturbed[1]
        assert known.items() <= bench.finished(folder).items()


@contextmanager
def file_size_limit(n_bytes):
    """Let writes beyond a size of any file fail, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_is_full_at_any_size_costs_no_stored_row(undisturbed, tmp_path):
    with Store(undisturbed[2] / FILE_NAME) as store:
        contents = store.read()
    kept = list(contents.rankings)[:3]
    truth = {("rankings", key): contents.rankings[key] for key in kept}
    truth |= {("judgements", key): row for key, row in contents.judgements.items() if row["ranking"] in kept}
    path, n_failed = tmp_path / "copy" / FILE_NAME, 0

    def copy_missing():
        with Store(path, writer=True) as copy:
            found = power_loss.rows(copy.read())
            for place in (place for place in truth if place not in found):
                copy.copy([(place[0], truth[place])], replace=False)
                stored.add(place)
        return found

    for n_bytes in range(0, 2**20, 4096):
        shutil.rmtree(path.parent, ignore_errors=True)
        stored = set()
        try:
            with file_size_limit(n_bytes):
                copy_missing()
        except RunError as error:
            n_failed += 1
            message = str(error)
        else:
            break
        assert str(path.parent) in message
        stored, acknowledged = set(), stored
        assert acknowledged <= copy_missing().keys()
        with Store(path) as copy:
            assert power_loss.rows(copy.read()) == {place: tuple(row) for place, row in truth.items()}
    assert n_failed > 10


def test_a_read_only_folder_can_be_read(undisturbed, project, tmp_path):
    config, _ = project
    disk = tmp_path / "disk"
    with bench.small_disk(disk, "8m") as remount:
        shutil.copytree(undisturbed[2], disk / "run")
        remount("ro")
        for name in ("new", "run"):
            assert str(disk / name) in bench.fails(config, "--out", disk / name)
        assert read_status(disk / "run")["datasets"][0]["done"] == bench.N_SMALL
        assert len(read_results(disk / "run").cells) == bench.N_SMALL


def test_a_second_runner_is_rejected_and_the_first_continues(undisturbed, project):
    config, folder = project
    first, let_go = bench.start_and_hold(config, "--jobs", 1, cells="here")
    assert "--out" in bench.fails(config)
    assert first.poll() is None
    let_go()
    first.communicate(timeout=240)
    assert first.returncode == 0
    assert bench.stored(folder) == undisturbed[1]


# Damaged


@pytest.fixture(scope="module")
def damageable(tmp_path_factory):
    """Experiment and results file with done and failed cells."""
    return damage_results.make_results(tmp_path_factory.mktemp("damaged"))


@pytest.mark.parametrize("kind", damage_results.DAMAGES)
def test_damage_neither_crashes_readers_nor_changes_results(damageable, tmp_path, kind):
    counts = damage_results.survey(damageable[1], tmp_path / "copy", kind, 60)
    assert counts["altered"] == 0
    assert counts["rejected"] + counts["warned"] > 0


def test_damaged_runs_are_completed_or_rejected(tmp_path):
    counts = damage_results.resume(*damage_results.make_results(tmp_path), 12)
    assert counts["completed"] > 0


def test_damaged_rows_are_left_out_and_recomputed(undisturbed, complete, capsys):
    config, folder = complete
    with closing(sqlite3.connect(folder / "results.sqlite")) as database, database:
        judgements = [key for (key,) in database.execute("SELECT key FROM judgements")]
        rankings = [key for (key,) in database.execute("SELECT key FROM rankings WHERE ranking IS NOT NULL")]
        whose = dict(database.execute("SELECT key, ranking FROM judgements").fetchall())
        others = [key for key in judgements if whose[key] not in rankings[:2]]
        for statement, key in (
            ("UPDATE judgements SET scores = replace(scores, '0.', '1.') WHERE key = ?", others[0]),
            ("UPDATE judgements SET key = 'other' WHERE key = ?", others[1]),
            ("UPDATE rankings SET notes = '[\"\"]' WHERE key = ?", rankings[0]),
            ("UPDATE rankings SET ranking = zeroblob(40) WHERE key = ?", rankings[1]),
        ):
            database.execute(statement, (key,))
    known = bench.finished(folder)
    assert read_status(folder)["datasets"][0]["missing"] == 4
    assert read_results(folder).n_altered == 4
    assert main(["bench", "export", str(folder)]) == 0
    assert "4 damaged rows" in capsys.readouterr().err
    (folder / "results.csv").unlink()
    assert not set(read_results(folder).cells["key"]) & set(rankings[:2])
    out, err = bench.here(config, "--json")
    assert "4 damaged" in err
    assert (json.loads(out)["computed"], json.loads(out)["ranked"]) == (4, 2)
    assert bench.stored(folder) == undisturbed[1]
    assert read_results(folder).n_altered == 0
    after = bench.finished(folder)
    assert sum(known.get(key) == when for key, when in after.items()) == bench.N_SMALL - 4


def test_a_run_with_a_damaged_configuration_continues(undisturbed, complete):
    config, folder = complete
    with closing(sqlite3.connect(folder / "results.sqlite")) as database, database:
        database.execute("UPDATE experiment SET plan = zeroblob(9)")
    for read in (read_results, read_status):
        with pytest.raises(RunError, match="configuration"):
            read(folder)
    assert computed_by(config) == 0
    assert bench.stored(folder) == undisturbed[1]


def test_a_results_file_is_not_executed_without_trust(tmp_path):
    """Neither status nor retry-failed imports the code that the file refers to."""
    config, folder = small_project(tmp_path, methods='"own_methods:Broken", "sum-f"', folds=2)
    bench.here(config, code=3)
    (tmp_path / "own_methods.py").write_text(
        "from pathlib import Path\nPath(__file__).with_name('sprung').touch()\n"
    )
    assert read_status(folder)["failures"]
    assert len(read_results(folder).cells)
    assert "own_methods:Broken" in bench.fails(folder, verb="retry-failed")
    assert not (tmp_path / "sprung").exists()


def test_files_that_are_not_results_are_left_alone(undisturbed, project):
    config, folder = project
    folder.mkdir(parents=True)
    path = folder / "results.sqlite"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE guests (name TEXT)")
    for content in (b"dear diary, " * 500, path.read_bytes()):
        path.write_bytes(content)
        assert str(path.relative_to(config.parent)) in bench.fails(config)
        assert path.read_bytes() == content
    path.write_bytes(b"")
    with pytest.raises(RunError, match="labelsieve bench run"):
        read_status(folder)
    bench.here(config)
    assert bench.stored(folder) == undisturbed[1]


# Changed


def computed_by(config, *arguments, **options):
    """Run the missing cells and return their number."""
    out, _ = bench.here(config, "--json", *arguments, **options)
    return json.loads(out)["computed"]


def test_a_changed_configuration_is_noticed(tmp_path):
    config, folder = small_project(tmp_path)
    bench.here(config)
    before = bench.stored(folder)
    small_project(tmp_path, more="[sizes]\npercent = [30]")
    assert re.search(r"\(sizes\).* 8 finished cells .*--accept-changes", bench.fails(config))
    small_project(tmp_path, methods='"sum-mi"')
    assert re.search(r"\(methods\).* 4 .*--accept-changes", bench.fails(config))
    assert computed_by(config, "--accept-changes") == 0
    (remark,) = read_status(folder)["remarks"]
    assert "4 cells" in remark
    small_project(tmp_path)  # undo the change
    assert computed_by(config) == 0
    assert bench.stored(folder) == before


def test_a_changed_data_file_is_noticed(tmp_path):
    config, _ = small_project(tmp_path, methods='"sum-mi"')
    bench.here(config)
    bench.write_data(tmp_path, seed=1)
    assert re.search("data of small .* 4 ", bench.fails(config))
    assert computed_by(config, "--accept-changes") == 4


def test_results_do_not_depend_on_other_methods_or_their_order(tmp_path):
    config, folder = small_project(tmp_path)
    bench.here(config)
    before = bench.stored(folder)
    small_project(tmp_path, methods='"sum-f", "sum-mi", "random-ranking", "own_methods:Slow"')
    assert computed_by(config) == 16
    after = bench.stored(folder)
    assert set(before["cells"]) < set(after["cells"])
    bench.here(config, "--out", "alone")  # compute all in the other order
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


# Failing or exceeding limits


def test_a_failing_method_is_recorded_shown_and_retried(tmp_path):
    config, folder = small_project(tmp_path, methods='"own_methods:Broken", "sum-f"')
    _, err = bench.here(config, code=3)
    failure = "small, flip 0.2, seed 0, fold 0, own_methods:Broken: RuntimeError: out of luck"
    assert failure in err
    known = bench.finished(folder)
    assert failure in bench.inside(folder, verb="status")[0]
    status = json.loads(bench.inside(folder, "--json", verb="status")[0])
    assert status["datasets"][0]["failed"] == 4
    assert 'raise RuntimeError("out of\\nluck")' in status["failures"][0]["traceback"]
    # Failed cells are only retried on request, but still count as failed.
    assert computed_by(config, code=3) == 0
    (tmp_path / "fixed").touch()
    assert "--trust" in bench.fails(folder, verb="retry-failed")
    assert computed_by(folder, "--trust", verb="retry-failed") == 4
    assert len(known) == 4  # a failed ranking has no judgement
    assert known.items() <= bench.finished(folder).items()


def running(process):
    """Return the command of a process, or nothing if it is gone."""
    try:
        return Path("/proc", process, "cmdline").read_bytes()
    except OSError:
        return b""


def test_cells_that_exceed_limits_fail_and_succeed_with_higher_limits(tmp_path):
    methods = '"own_methods:Endless", "own_methods:Deaf", "sum-f", "own_methods:Hungry", "sum-mi"'
    config, folder = small_project(tmp_path, methods, more="[limits]\nseconds = 5\nmemory_mib = 150", folds=2)
    bench.inside(config, "--jobs", 2, code=3)
    cells = read_results(folder).cells
    failed = {cell.method: cell for cell in cells[cells["error"].notna()].itertuples()}
    deaf, endless, hungry = (failed.pop(f"own_methods:{name}") for name in ("Deaf", "Endless", "Hungry"))
    assert not failed
    for cell, limit in ((deaf, "5 seconds"), (endless, "5 seconds"), (hungry, "150 MiB")):
        assert re.match(f"LimitExceeded: .*{limit}", cell.error)
    assert "in _wait" in endless.traceback
    assert endless.traceback.endswith("in <module>\n")  # complete
    assert re.search(r'own_methods\.py", line \d+ in fit', deaf.traceback)  # although in compiled code
    child = (tmp_path / "child").read_text()
    bench.wait_for(lambda: b"sleep" not in running(child))
    assert cells["error"].isna().sum() == 7
    (tmp_path / "fixed").touch()
    small_project(tmp_path, methods, more="[limits]\nmemory_mib = 1500", folds=2)
    out, _ = bench.inside(config, "--jobs", 1, "--retry-failed", "--json")
    assert (json.loads(out)["done"], json.loads(out)["computed"]) == (10, 3)


# Shown to the user


def test_names_and_errors_cannot_steer_the_terminal(tmp_path):
    text = """
    folds = 2
    datasets = [{ name = "sm\\u001b[2Jall", path = "small.csv", labels = "label_*" }]
    methods = ["sum-f", { name = "bad\\u202e", method = "own_methods:Rude" }]
    """
    config = bench.make_project(tmp_path, text)
    _, err = bench.here(config, code=3)
    shown, _ = bench.inside(tmp_path / "runs" / "small", verb="status")
    for text in (err, shown):
        assert "bad\\u202e: RuntimeError: \\x1b]0;owned\\x07" in text
        assert "sm\\x1b[2Jall" in text
        assert not set(text) & set("\x1b\x07\u202e")
    out, _ = bench.inside(tmp_path / "runs" / "small", "--json", verb="status")
    assert out.isascii()
    assert json.loads(out)["datasets"][0]["name"] == "sm\x1b[2Jall"


def test_a_terminal_shows_a_bar_for_every_dataset_with_the_time_left(project):
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
    assert re.search(r"small .*72/72 0:00:\d\d", shown.decode())


def test_without_a_terminal_there_are_lines_and_quiet_runs_are_silent(complete):
    config, _ = complete
    out, err = bench.here(config)
    assert out == ""
    assert err.count("72 of 72 cells") == 2
    assert bench.here(config, "--quiet") == ("", "")
    out, err = bench.here(config, "--quiet", "--json")
    assert (json.loads(out)["done"], err) == (72, "")
