"""Load the datasets of the benchmarks: the paper's eight datasets with 20 % flip noise."""

from __future__ import annotations

from labelsieve.datasets import add_candidates, load

DATASETS = ("birds", "cal500", "chd_49", "corel5k", "languagelog", "slashdot", "water_quality", "yeast")
NOISE = 0.2


def noisy(name, seed=0):
    """Return features and candidate labels of a dataset."""
    data = load(name)
    return data.X, add_candidates(data.Y, "flip", rate=NOISE, random_state=seed)


def with_seed(selector, seed):
    """Set the random state of a selector, if it has one."""
    return selector.set_params(random_state=seed) if "random_state" in selector.get_params() else selector
