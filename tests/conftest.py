"""Shared problems: the worked example, and real data where the folder is at hand."""

import os

import numpy as np
import pytest

from labelsieve.datasets import add_candidates, load


def fill(base, a, b, period, shape):
    """Entry (i, j) = base + 0.1 ((a i + b j) mod period): the starts of the worked examples."""
    i, j = np.indices(shape)
    return base + 0.1 * ((a * i + b * j) % period)


@pytest.fixture
def tiny():
    """Six rows, four features, three labels: the data of the worked examples."""
    X = np.array(
        [
            [0.1, 0.9, 0.4, 0.0],
            [0.2, 0.8, 0.5, 1.0],
            [0.9, 0.1, 0.6, 0.3],
            [0.8, 0.2, 0.5, 0.7],
            [0.5, 0.5, 0.1, 0.2],
            [0.4, 0.6, 0.9, 0.8],
        ]
    )
    Y = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 1], [1, 0, 1], [0, 1, 0]], dtype=float)
    return X, Y


@pytest.fixture
def real():
    """Load a real data set by name, with candidates at 20 % flip noise; skip where the files are absent."""
    if "LABELSIEVE_DATA" not in os.environ:
        pytest.skip("LABELSIEVE_DATA names no folder with the real data sets")

    def load_noisy(name):
        data = load(name)
        return data.X, add_candidates(data.Y, rate=0.2, random_state=0)

    return load_noisy


@pytest.fixture
def plain_terminal(monkeypatch, tmp_path):
    """Eighty columns, no colour, an empty cache, no network, and an empty working folder."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("LABELSIEVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LABELSIEVE_OFFLINE", "1")
    monkeypatch.delenv("LABELSIEVE_DEBUG", raising=False)
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
