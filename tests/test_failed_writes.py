"""Every operation on a file fails once: files are complete or as before, and the error is clear."""

import errno
import io
import re
import shutil
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from faults import every_failure
from labelsieve._figures import PageFigure
from labelsieve.bench.export import export
from labelsieve.cli import main
from labelsieve.datasets.digits import write_digits
from labelsieve.inspection._reviews import Review
from labelsieve.inspection.review import read_review
from labelsieve.io import Dataset, DatasetError, write
from labelsieve.report.page import make_report, write_report
from labelsieve.report.summary_file import write_summary
from labelsieve.review_app.journal import Journal
from synthetic_runs import make_results, make_summary, noisy

ERRORS = (
    OSError(errno.ENOSPC, "No space left on device"),
    MemoryError("Unable to allocate 50. GiB for an array"),
)
OLD = b"earlier content"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return an empty working folder."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("LABELSIEVE_DEBUG", raising=False)
    found = tmp_path / "here"
    found.mkdir()
    monkeypatch.chdir(found)
    return found


def small_table(n_rows=24):
    rng = np.random.default_rng(0)
    Y = rng.random((n_rows, 2)) < 0.5
    table = pd.DataFrame(
        {"size": (Y[:, 0] + 0.3 * rng.normal(size=n_rows)).round(3), "noise": rng.random(n_rows).round(3)}
    )
    table["tags"] = [";".join(np.array(["a", "b"])[row]) for row in Y]
    return table


def write_table(path):
    writers = {
        ".csv": lambda table: table.to_csv(path, index=False),
        ".json": lambda table: table.to_json(path, orient="records"),
        ".xlsx": lambda table: table.to_excel(path, index=False),
        ".parquet": lambda table: table.to_parquet(path),
    }
    writers[path.suffix](small_table())


def same(name, content, expected):
    """Return True for equal files. Workbooks contain the time, so their cells are compared."""
    if name.endswith(".xlsx") and content[:2] == expected[:2] == b"PK":
        return pd.read_excel(io.BytesIO(content)).equals(pd.read_excel(io.BytesIO(expected)))
    return content == expected


def check_files(before, complete, after):
    """Check that every file is as before or complete, and that no other file remains."""
    assert set(before) <= set(after) <= set(complete)
    for name, content in after.items():
        assert content == before.get(name) or same(name, content, complete[name]), name


def run_command(*arguments):
    """Run a command; returns its exit code and errors."""
    err = io.StringIO()
    with redirect_stderr(err), redirect_stdout(io.StringIO()):
        return main(list(map(str, arguments))), err.getvalue()


def check_command(folder, prepare, *arguments):
    """Let every file operation of a command fail."""

    def reset():
        for path in folder.iterdir():
            path.unlink()
        prepare()

    reset()
    assert run_command(*arguments)[0] == 0
    n_failed = 0
    for number, error, (code, err), *files in every_failure(
        folder, reset, lambda: run_command(*arguments), ERRORS
    ):
        check_files(*files)
        *_, last = err.splitlines() or [""]
        if code == 0:  # the failed operation was not needed
            assert files[2].keys() == files[1].keys(), (number, error)
            continue
        n_failed += 1
        assert code == 1
        assert re.match("error: ", last), err
        assert "unexpectedly" not in last
        assert "No space" in last if isinstance(error, OSError) else "memory (needs about 54 GB" in last, last
    assert n_failed >= 4


@pytest.mark.parametrize("ending", ["arff", "csv", "npz", "svm"])
def test_a_dataset_is_written_completely_or_not_at_all(folder, ending):
    table = small_table()
    data = Dataset(table[["size", "noise"]], [[1, 0], [0, 1]] * 12, name="small")
    paths = [folder / f"small.{ending}", *([folder / "small.xml"] if ending == "arff" else [])]

    def prepare():
        for path in paths:
            path.write_bytes(OLD)

    for _, error, outcome, *files in every_failure(folder, prepare, lambda: write(data, paths[0]), ERRORS):
        assert isinstance(outcome, DatasetError if isinstance(error, OSError) else MemoryError)
        check_files(*files)


@pytest.mark.parametrize(
    "ending", ["csv", "json", "parquet", pytest.param("xlsx", marks=pytest.mark.slow(seconds=20))]
)
def test_select_writes_copy_ranking_and_page_or_nothing(folder, ending):
    def prepare():
        write_table(folder / f"data.{ending}")
        for name in (f"copy.{ending}", "ranking.csv"):
            (folder / name).write_bytes(OLD)

    check_command(
        folder, prepare,
        *("select", folder / f"data.{ending}", "--labels", "tags", "-k", 1, "-q", "--method", "sum-f"),
        *("--write-data", folder / f"copy.{ending}", "-o", folder / "ranking.csv"),
    )  # fmt: skip


def test_pages_issues_and_draws_are_written_completely_or_not_at_all(folder):
    def prepare():
        write_table(folder / "data.csv")
        (folder / "page.html").write_bytes(OLD)

    common = (folder / "data.csv", "--labels", "tags", "-q", "-o", folder / "issues.csv")
    check_command(folder, prepare, "issues", *common, "--html", folder / "page.html")
    check_command(folder, prepare, "issues", *common, "--draw", 5)


@pytest.mark.parametrize("ending", ["csv", "npz"])
def test_corrected_copies_and_their_provenance_are_written_completely_or_not_at_all(folder, ending):
    review = folder / "review.csv"

    def prepare():
        write_table(folder / "data.csv")
        (folder / f"copy.{ending}").write_bytes(OLD)
        table = small_table()
        row = next(row for row, tags in enumerate(table["tags"]) if "a" in tags)
        review.write_text(f"sample,label,proposal,verdict\n{row},a,wrong,wrong\n")

    check_command(
        folder, prepare, "apply-review", folder / "data.csv", review, "--labels", "tags", "-q",
        "-o", folder / f"copy.{ending}",
    )  # fmt: skip


def test_the_demo_writes_complete_files(folder):
    images = folder / "digits"

    def prepare():
        shutil.rmtree(images, ignore_errors=True)

    for _, error, outcome, *files in every_failure(
        folder, prepare, lambda: write_digits(folder, n_rows=2), ERRORS
    ):
        assert type(outcome) is type(error)
        check_files({}, *files[1:])


def test_a_verdict_is_appended_completely_or_not_at_all(folder):
    data = Dataset(np.arange(6.0)[:, None], Y_candidates=[[1, 0], [1, 1]] * 3, label_names=("a", "b"))
    path = folder / "things.review.csv"

    def review(row, answer):
        one = np.array([row])
        return Review(one, one * 0, np.array([answer]), one > 9, one * 0, ())

    def prepare():
        path.unlink(missing_ok=True)
        journal = Journal(path, data)
        journal.append(review(0, 1))
        journal.close()

    def act():
        journal = Journal(path, data)
        try:
            journal.append(review(1, 0))
        finally:
            journal.close()

    for _, error, outcome, before, complete, after in every_failure(folder, prepare, act, ERRORS):
        assert isinstance(outcome, (DatasetError, type(error)))
        # A verdict without an acknowledgement may be in the file, but no part of a line.
        assert after in (before, complete)
        assert 1 in read_review(path, data).answers


def test_a_report_replaces_an_earlier_one_completely_or_not_at_all(folder, tmp_path):
    options = {"datasets": ("one",), "metrics": ("ranking_loss",)}
    earlier, later = (make_summary(noisy(seed), methods=("a",), **options) for seed in (0, 1))
    write_report(make_report(earlier), tmp_path / "earlier")
    report = make_report(later)

    def prepare():
        shutil.rmtree(folder / "report", ignore_errors=True)
        shutil.copytree(tmp_path / "earlier", folder / "report")
        (folder / "means.csv.gz").write_bytes(OLD)

    def act():
        write_report(report, folder / "report")
        write_summary(later, folder / "means.csv.gz")

    for _, error, outcome, before, complete, after in every_failure(folder, prepare, act, ERRORS):
        # Removing the earlier report may fail without harm.
        assert type(outcome) is type(error) or (outcome is None and after == complete)
        assert sorted(path.name for path in folder.iterdir()) == ["means.csv.gz", "report"]
        for name in {name.partition("/")[0] for name in complete}:
            found = [
                {key: files[key] for key in files if key.startswith(name)}
                for files in (before, complete, after)
            ]
            assert found[2] in found[:2]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_exports_and_figures_are_written_completely_or_not_at_all(folder, form):
    results = make_results(noisy(), methods=("a",), metrics=("ranking_loss",))
    paths = {f"table.{form}", "curve.png"}

    def prepare():
        for name in paths:
            (folder / name).write_bytes(OLD)

    def act():
        figure = PageFigure(Figure(figsize=(1, 1)), "an empty figure")
        figure.save(folder, "curve", ("png",))
        export(results, folder / f"table.{form}", form)

    for _, error, outcome, *files in every_failure(folder, prepare, act, ERRORS):
        # The folder exists, so it does not matter if it cannot be made.
        assert type(outcome) is type(error) or (outcome is None and files[2] == files[1])
        check_files(*files)
