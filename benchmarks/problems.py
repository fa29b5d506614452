"""The real problems the benchmarks share: the paper's eight data sets at 20 % flip noise."""

from __future__ import annotations

from labelsieve.datasets import add_candidates, load
from labelsieve.methods.pml_fsmir import reconstruct_labels
from labelsieve.numerics.factorization import FactorizationProblem
from labelsieve.numerics.information import symbol_mutual_information
from labelsieve.numerics.scaling import minmax_scale

DATASETS = ("birds", "cal500", "chd_49", "corel5k", "languagelog", "slashdot", "water_quality", "yeast")
NOISE = 0.2


def noisy(name, seed=0):
    """Features and candidate labels of one data set."""
    data = load(name)
    return data.X, add_candidates(data.Y, "flip", rate=NOISE, random_state=seed)


def factorization(name):
    """The factorisation that PML-FSMIR solves with its defaults, labels dense."""
    X, Y = noisy(name)
    Y = Y.toarray() if hasattr(Y, "toarray") else Y
    T = reconstruct_labels(Y.astype(float))
    return FactorizationProblem(minmax_scale(X), T, symbol_mutual_information(T), alpha=1, beta=1, gamma=1)
