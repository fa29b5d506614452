"""Tests of the review file that grows by a line per verdict."""

import fcntl
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import kill_reviews
from labelsieve.inspection._reviews import Draw, Review
from labelsieve.inspection.review import n_verdicts, read_review
from labelsieve.io import Dataset, DatasetError
from labelsieve.review_app.journal import Journal

Y = np.eye(12, 4, dtype=int)
Y[:, 0] = 1


def data(shift=0.0, names=None):
    return Dataset(
        np.arange(12.0)[:, None] + shift,
        Y_candidates=Y,
        label_names=("a", "b", "c", "=d"),
        row_ids=names,
        id_column=names and "name",
    )


def draw_of(rows, answers=None, number=1, size=None):
    rows = np.array(rows)
    n = len(rows)
    answers = np.full(n, -1, dtype=np.int8) if answers is None else np.array(answers, dtype=np.int8)
    draws = (Draw(number, size or n),) if number else ()
    zeros = np.zeros(n, dtype=np.intp)
    return Review(rows, zeros, answers, zeros.astype(bool), np.full(n, number), draws)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "things.review.csv"


def test_verdicts_are_read_back_with_the_last_line_of_each_label(path):
    journal = Journal(path, data())
    assert journal.review is None
    journal.append(draw_of([3, 1, 2]))
    for answer in (1, 0, 2):
        journal.append(draw_of([1], [answer], size=3))
    journal.append(draw_of([3], [1], size=3))
    journal.append(draw_of([3], [-1], size=3))  # undone
    journal.append(draw_of([7], [0], number=0))
    journal.close()
    for found in (read_review(path, data()), Journal(path, data()).review):
        assert found.rows.tolist() == [3, 1, 2, 7]
        assert found.answers.tolist() == [-1, 2, -1, 0]
        assert found.draws == (Draw(1, 3),)
    assert n_verdicts(path) == 2
    # Every line is in the file; nothing is rewritten.
    assert len(path.read_text().splitlines()) == 1 + 3 + 3 + 1 + 1 + 1


def test_changes_that_were_undone_are_left_out(path):
    journal = Journal(path, data())
    journal.append(draw_of([3, 1]))
    for row, answer in [(3, 1), (1, 0), (1, -1), (3, 0), (5, 2), (5, -1), (5, 1)]:
        journal.append(draw_of([row], [answer], number=int(row != 5), size=2))
    journal.close()
    assert Journal(path, data()).changes == [(3, 0, -1), (3, 0, 1), (5, 0, -1)]


def test_a_verdict_is_synced_before_append_returns(path, monkeypatch):
    journal = Journal(path, data())
    journal.append(draw_of([3]))
    synced = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (fsync(file), synced.append(os.fstat(file).st_size)))
    journal.append(draw_of([3], [1]))
    assert synced == [path.stat().st_size]
    assert path.read_text().splitlines()[-1].split(",")[3] == "right"


@pytest.mark.parametrize("cut", [1, 5, 9])
def test_a_torn_line_is_removed_and_the_rest_kept(path, cut):
    with_verdict = Journal(path, data(names=[f"größe {row}" for row in range(12)]))
    with_verdict.append(draw_of([3, 1]))
    with_verdict.append(draw_of([3], [1], size=2))
    size = path.stat().st_size
    with_verdict.append(draw_of([1], [0], size=2))
    with_verdict.close()
    os.truncate(path, size + cut)
    journal = Journal(path, data(names=[f"größe {row}" for row in range(12)]))
    assert journal.review.answers.tolist() == [1, -1]
    assert path.stat().st_size == size
    journal.append(draw_of([1], [2], size=2))
    assert read_review(path, data(names=[f"größe {row}" for row in range(12)])).answers.tolist() == [1, 2]


def test_a_draw_that_was_not_written_completely_is_drawn_again(path):
    journal = Journal(path, data())
    journal.append(draw_of([3, 1]))
    first = path.stat().st_size
    journal.append(draw_of([5, 6, 7], number=2))
    journal.close()
    whole = path.read_bytes()
    for n_bytes in range(first, len(whole)):
        path.write_bytes(whole[:n_bytes])
        with_first = Journal(path, data())
        assert with_first.review.rows.tolist() == [3, 1]
        assert path.stat().st_size == first
        with_first.close()
    for n_bytes in range(first):
        path.write_bytes(whole[:n_bytes])
        new = Journal(path, data())
        assert new.review is None
        new.append(draw_of([3, 1]))
        assert path.read_bytes() == whole[:first]
        new.close()


def test_a_power_loss_at_any_byte_costs_no_saved_verdict(path):
    journal = Journal(path, data(names=[f"größe {row}" for row in range(12)]))
    saved = []  # size of the file and verdicts by row, after every append
    verdicts = dict.fromkeys((3, 1, 2), -1)
    journal.append(draw_of([*verdicts]))
    saved.append((path.stat().st_size, {**verdicts}))
    for row, answer in [(1, 0), (3, 1), (1, -1), (7, 2), (2, 2), (3, 0)]:
        verdicts[row] = answer
        journal.append(draw_of([row], [answer], number=int(row != 7), size=3))
        saved.append((path.stat().st_size, {**verdicts}))
    journal.close()
    whole = path.read_bytes()
    for n_bytes in range(len(whole) + 1):
        path.write_bytes(whole[:n_bytes])
        resumed = Journal(path, data(names=[f"größe {row}" for row in range(12)]))
        expected = next((known for size, known in reversed(saved) if size <= n_bytes), None)
        found = resumed.review
        assert (found and dict(zip(found.rows.tolist(), found.answers.tolist(), strict=True))) == expected
        resumed.close()


def test_a_file_belongs_to_its_data(path):
    journal = Journal(path, data())
    journal.append(draw_of([3]))
    journal.close()
    with pytest.raises(DatasetError, match="other data"):
        Journal(path, data(shift=1.0))
    assert Journal(path, data()).review is not None


@pytest.mark.parametrize("content", ["not a review\n1\n", "sample,label,verdict\n0,a,right\n", "x"])
def test_other_files_are_left_alone(path, content):
    path.write_text(content)
    with pytest.raises(DatasetError, match="not a file of labelsieve review"):
        Journal(path, data())
    assert path.read_text() == content


def test_a_second_process_is_kept_out_until_the_first_ends(path):
    journal = Journal(path, data())
    with pytest.raises(DatasetError, match="another labelsieve review"):
        Journal(path, data())
    program = "import fcntl, sys; fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    assert subprocess.run([sys.executable, "-c", program, path], stderr=subprocess.DEVNULL).returncode == 1
    journal.close()
    Journal(path, data()).close()
    with open(path) as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.unlink(),
        lambda path: path.write_text(path.read_text() + "0,a,wrong,right,,,\n"),
        lambda path: shutil.move(shutil.copy(path, f"{path}.new"), path),
    ],
    ids=["deleted", "appended", "replaced"],
)
def test_a_file_that_another_program_changed_gets_no_more_verdicts(path, change):
    journal = Journal(path, data())
    journal.append(draw_of([3]))
    change(path)
    with pytest.raises(DatasetError, match="again"):
        journal.append(draw_of([3], [1]))


def test_a_full_disk_is_an_error_and_leaves_no_part_of_a_line(path, monkeypatch):
    journal = Journal(path, data())
    journal.append(draw_of([3]))
    before, write = path.read_bytes(), os.write

    def write_a_part(file, content):
        if len(content) < 10:
            raise OSError(28, "No space left on device")
        return write(file, content[:-8])

    monkeypatch.setattr(os, "write", write_a_part)
    with pytest.raises(DatasetError, match="No space left"):
        journal.append(draw_of([3], [1]))
    monkeypatch.undo()
    assert path.read_bytes() == before
    journal.append(draw_of([3], [0]))
    assert read_review(path, data()).answers.tolist() == [0]


def test_folders_that_cannot_be_written_are_an_error(tmp_path):
    with pytest.raises(DatasetError, match="cannot be written"):
        Journal(tmp_path / "missing" / "review.csv", data())
    with pytest.raises(DatasetError, match="cannot be written"):
        Journal(tmp_path, data())


def test_no_verdict_is_lost_when_the_process_is_killed(tmp_path):
    kill_reviews.kill_and_resume(tmp_path, n_kills=8)
