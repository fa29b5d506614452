import numpy as np

from labelsieve.methods.random_ranking import RandomRanking

X = np.arange(20.0).reshape(4, 5)
Y = np.eye(4)


def test_every_feature_is_equally_often_first():
    first = [np.argmin(RandomRanking(random_state=seed).fit(X, Y).ranking_) for seed in range(1000)]
    expected, deviation = 1000 / 5, np.sqrt(1000 * 0.2 * 0.8)
    assert np.all(np.abs(np.bincount(first, minlength=5) - expected) < 5 * deviation)


def test_ranking_depends_only_on_the_seed():
    ranking = RandomRanking(random_state=0).fit(X, Y).ranking_
    np.testing.assert_array_equal(RandomRanking(random_state=0).fit(-X, 1 - Y).ranking_, ranking)
    assert (RandomRanking(random_state=1).fit(X, Y).ranking_ != ranking).any()
