"""Tests of `labelsieve review`."""

import gzip
import signal
import socket
import sys
from pathlib import Path

import pandas as pd
import pytest

import kill_reviews
import labelsieve
from conftest import run
from labelsieve.cli import review as command
from labelsieve.datasets import load_animals
from labelsieve.io import Dataset, write

sys.path.insert(0, str(Path(__file__).parents[1] / "review_app"))
from review_tables import make_table

pytestmark = pytest.mark.usefixtures("plain_terminal")


@pytest.fixture
def table(tmp_path):
    return make_table(tmp_path)[0]


@pytest.fixture
def start():
    """Start the command in processes that end with the test."""
    processes = []

    def start_(table, *arguments, **options):
        process, address = kill_reviews.start(table, *arguments, **options)
        processes.append(process)
        return process, address

    yield start_
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_app_cleanly(table, start, number, code):
    process, address = start(table)
    card = kill_reviews.post(address, "view")["card"]
    kill_reviews.post(address, "verdict", cards=[[card["key"], ""]], verdict="right")
    process.send_signal(number)
    err = process.communicate(timeout=20)[1]
    assert process.returncode == code
    assert "Traceback" not in err
    assert kill_reviews.verdicts_in(table) == {card["key"]: "right"}


def test_the_same_command_resumes_and_says_so(table, start):
    process, address = start(table)
    card = kill_reviews.post(address, "view")["card"]
    kill_reviews.post(address, "verdict", cards=[[card["key"], ""]], verdict="unsure")
    process.kill()
    process.communicate()
    process, address = start(table, quiet=False)
    state = kill_reviews.post(address, "view")
    assert state["counts"]["unsure"] == 1
    process.send_signal(signal.SIGINT)
    err = process.communicate(timeout=20)[1]
    assert f"continuing with 1 verdict from {table.with_name('things.review.csv')}" in err
    assert "1 verdict in" in err


def test_a_second_process_and_changed_data_are_one_clear_error(table, start, capsys):
    process, _ = start(table)
    code, out, err = run(capsys, "review", str(table), "--labels", "tags", "-q")
    assert (code, out) == (1, "")
    assert err.startswith(f"error: {table.with_name('things.review.csv')}: another labelsieve review")
    process.kill()
    process.communicate()
    table.write_text(table.read_text().replace("thing 7,", "thing seven,"))
    code, out, err = run(capsys, "review", str(table), "--labels", "tags", "-q")
    assert (code, out) == (1, "")
    assert "was written for other data" in err


def test_the_port_can_be_chosen_and_a_taken_one_is_an_error(table, start, capsys):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        code, _, err = run(capsys, "review", str(table), "--labels", "tags", "--port", str(port), "-q")
        assert code == 1
        assert f"port {port}" in err
    _, address = start(table, "--port", str(port))
    assert address.startswith(f"http://127.0.0.1:{port}/")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["-o", "things.csv"], "--output"),
        (["-o", "missing/review.csv"], "--output"),
        (["--port", "70000"], "--port"),
        (["--draw", "0"], "--draw"),
    ],
)
def test_usage_errors_come_before_any_work(table, capsys, monkeypatch, arguments, named):
    monkeypatch.chdir(table.parent)
    code, _, err = run(capsys, "review", "things.csv", "--labels", "tags", *arguments)
    assert code == 2
    assert named in err
    assert sorted(path.name for path in table.parent.iterdir() if path.is_file()) == ["things.csv"]


def test_without_the_extra_one_line_says_how_to_install_it(table, capsys, monkeypatch):
    monkeypatch.setattr("labelsieve.review_app.serve.find_spec", lambda name: None)
    code, _, err = run(capsys, "review", str(table), "--labels", "tags")
    assert code == 1
    assert "-m pip install starlette uvicorn" in err
    with pytest.raises(ImportError, match="labelsieve\\[review\\]"):
        labelsieve.review(table, "tags")
    assert command.EPILOG


def test_the_app_in_python(table, tmp_path):
    with labelsieve.review(table, "tags", n_drawn=10, copy=tmp_path / "copy.csv") as app:
        assert app.file == table.with_name("things.review.csv")
        for _ in range(10):
            card = kill_reviews.post(app.url, "view")["card"]
            kill_reviews.post(app.url, "verdict", cards=[[card["key"], ""]], verdict="wrong")
        review = app.review
        kill_reviews.post(app.url, "write", removals=True)
        assert "running" in repr(app)
    assert "closed" in repr(app)
    assert (tmp_path / "copy.csv").exists()
    issues = labelsieve.find_label_issues(*_arrays(table), checked=review)
    assert issues.error_interval().n_errors == 10
    with pytest.raises(OSError, match="refused"):  # word: ok
        kill_reviews.post(app.url, "view")
    with labelsieve.review(table, "tags", n_drawn=10) as again:
        assert (again.review.answers == 0).sum() == 10
    with labelsieve.review(table, "tags", file=tmp_path / "new.csv", checked=app.file) as other:
        assert (other.review.answers == 0).sum() == 10


def _arrays(table):
    from labelsieve.io import read

    dataset = read(table, "tags")
    return dataset.X, dataset.candidates


def test_arrays_can_be_reviewed_too(tmp_path, monkeypatch, tiny):
    monkeypatch.chdir(tmp_path)
    X, Y = tiny
    with labelsieve.review(X, Y, n_drawn=3) as app:
        assert app.file == Path("table.review.csv")
        card = kill_reviews.post(app.url, "view")["card"]
        assert card["row"].startswith("row ")
        assert len(card["facts"]) == 4
    with pytest.raises(labelsieve.io.DatasetError, match="other data"):
        labelsieve.review(X + 1, Y)


@pytest.mark.parametrize(
    ("name", "file", "copy"),
    [
        ("things.csv", "things.review.csv", "things.clean.csv"),
        ("things.tsv", "things.review.csv", "things.clean.tsv"),
        ("things.arff", "things.review.csv", "things.clean.arff"),
        ("things.json", "things.review.csv", "things.clean.json"),
        ("things.csv.gz", "things.review.csv", "things.clean.csv"),
    ],
)
def test_files_are_next_to_the_data_and_the_copy_has_its_format(tmp_path, tiny, name, file, copy):
    data = Dataset(tiny[0], Y_candidates=tiny[1])
    target = tmp_path / name
    if target.suffix == ".json":
        frame = pd.DataFrame(tiny[0], columns=list("abcd")).assign(tags=["x", "x", "y", "y", "x;y", "y"])
        frame.to_json(target, orient="records", lines=True)
    elif target.suffix == ".gz":
        write(data, tmp_path / "things.csv")
        target.write_bytes(gzip.compress((tmp_path / "things.csv").read_bytes()))
    else:
        write(data, target)
    with labelsieve.review(target, "tags" if target.suffix == ".json" else None, n_drawn=3) as app:
        assert app.file == tmp_path / file
        kill_reviews.post(app.url, "write", removals=False)
        assert (tmp_path / copy).exists()


def test_built_in_data_are_reviewed_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with labelsieve.review(load_animals(), n_drawn=3) as app:
        kill_reviews.post(app.url, "write", removals=False)
    assert {path.name for path in tmp_path.iterdir()} >= {"animals.review.csv", "animals.clean.csv"}
