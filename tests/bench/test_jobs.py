"""Results with several processes equal those with one. The tests share processes because they start slowly."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from labelsieve import METRICS, RandomRanking, SumF, choose_size, pml_cross_validate, selection_stability
from labelsieve.classify import LabelwiseSVM
from labelsieve.datasets import add_candidates, make_pml


@pytest.fixture(scope="module")
def problem():
    return make_pml(n_samples=90, n_features=30, n_informative=4, random_state=1)


def test_the_curve_of_sizes_is_the_same(problem):
    alone = choose_size(SumF(), *problem, sizes=[2, 7])
    np.testing.assert_array_equal(choose_size(SumF(), *problem, sizes=[7, 2], n_jobs=2).scores, alone.scores)


def test_stability_is_the_same_and_progress_is_reported(problem):
    found, reported = [], []
    for n_jobs in (1, 2):
        selector, so_far = RandomRanking(3, random_state=1), []
        found.append(
            selection_stability(
                selector, *problem, n_resamples=6, n_jobs=n_jobs, progress=lambda *n, to=so_far: to.append(n)
            )
        )
        reported.append(so_far)
    np.testing.assert_array_equal(found[0].runs, found[1].runs)
    assert reported == [[(done, 6) for done in range(1, 7)]] * 2


def test_cross_validation_is_the_same():
    X, Y_true = make_pml(n_samples=90, noise=0.0, random_state=0)
    Y = add_candidates(Y_true, rate=0.3, random_state=0)
    model = make_pipeline(RandomRanking(4, random_state=0), LabelwiseSVM())
    alone, together = (
        pml_cross_validate(model, X, Y, Y_true, cv=3, random_state=0, n_jobs=jobs) for jobs in (1, 2)
    )
    for name in METRICS:
        np.testing.assert_array_equal(alone[f"test_{name}"], together[f"test_{name}"])
