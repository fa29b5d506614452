"""Tests of `--max-memory` and of errors for a lack of memory."""

import errno
import resource

import numpy as np
import pytest

from conftest import fails, run
from labelsieve.io import DatasetError, read
from labelsieve.io.memory import limited_memory, memory_reason

pytestmark = pytest.mark.usefixtures("plain_terminal")


@pytest.mark.parametrize("command", ["select -k 2", "audit --fast", "issues"])
def test_a_command_that_exceeds_its_limit_ends_with_one_error(table, command, monkeypatch, capsys):
    # A real allocation beyond a real limit. How much a small table needs depends on the libraries.
    monkeypatch.setattr("labelsieve.cli._options.read", lambda *_, **__: np.ones(50 * 2**27))
    name, *rest = command.split()
    error = fails(capsys, 1, name, table, "--labels", "label_*", *rest, "--max-memory", "10GB")
    assert "54 GB" in error
    assert "limit 10 GB" in error


def test_a_sufficient_limit_changes_nothing(table, capsys):
    arguments = ("select", table, "--labels", "label_*", "-k", "2", "-q")
    before = resource.getrlimit(resource.RLIMIT_DATA)
    assert run(capsys, *arguments, "--max-memory", "100GB") == run(capsys, *arguments)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@pytest.mark.parametrize("size", ["8x", "", "-1GB", "GB", "1e3"])
def test_invalid_sizes_are_rejected(table, capsys, size):
    assert "--max-memory" in fails(capsys, 2, "select", table, "--labels", "2", f"--max-memory={size}")


def test_the_error_names_the_needed_size_and_the_limit():
    with limited_memory(10**10), pytest.raises(MemoryError) as caught:
        np.ones(50 * 2**27)  # NumPy writes "50.0 GiB", but "500. GiB"
    assert memory_reason(caught.value).startswith("needs about 54 GB more, this computer has ")
    assert "500 GB" in memory_reason(MemoryError("Unable to allocate 466. GiB for an array with shape (9,)"))
    assert "18 EB" in memory_reason(MemoryError("Unable to allocate 16.0 EiB for an array with shape (9,)"))
    with limited_memory(10**10):
        assert memory_reason(caught.value) == "needs about 54 GB more, limit 10 GB"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        ValueError("Error tokenizing data. C error: out of memory"),
        RuntimeError("can't start new thread"),
    ],
)
def test_libraries_report_a_lack_of_memory_in_several_ways(table, monkeypatch, capsys, error):
    def broken(*arguments, **options):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("labelsieve.io.reading.open_table", broken)
        with pytest.raises(DatasetError, match="does not fit into memory"):
            read(table, labels="label_*")
    monkeypatch.setattr("labelsieve.cli._options.read", broken)
    assert "not enough memory" in fails(capsys, 1, "select", table, "--labels", "label_*")
