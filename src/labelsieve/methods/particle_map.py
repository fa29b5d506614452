"""PARTICLE-MAP: credible labels, then pairwise classifiers whose votes are judged by Bayes' rule."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from labelsieve._base import StrOptions
from labelsieve._numerics.norms import row_norms
from labelsieve._numerics.sparse import Matrix
from labelsieve.methods._pairwise_svm import count_votes, mean_weights, stacked_norms, train_pairwise
from labelsieve.methods._particle import BaseParticle


class ParticleMAP(BaseParticle):
    """Rank features by pairwise classifiers of credible labels, with votes read by a Bayes rule.

    The partial multi-label learner of [1]_ and [2]_ with maximum a posteriori reasoning. Credible labels and
    the pairwise linear SVMs are those of :class:`ParticleVLS`; there is no virtual label. The number of
    pairs that a label wins is judged by Bayes' rule.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        How many features to keep: a number, a share in (0, 1], or None for half of them.
    weights : {"mean", "slope", "stacked"}, default="mean"
        How classifiers become feature scores. "mean" averages the classifiers of each label, turned to its
        side, to one column of W, and scores a feature by the norm of its row. "slope" multiplies the column
        by the slope of the label's log odds over the number of votes. "stacked" takes the norm over all
        classifiers, where opposite signs do not cancel, and leaves ``coef_`` as "mean" does.
    n_neighbors : int, default=10
        Neighbours in the propagation and in the vote; fewer if there are fewer rows.
    alpha : float, default=0.95
        Share of the neighbours, against the row's own candidates, in a propagation step; below 1.
    threshold : float, default=0.9
        Vote, between 0 and 1 in every row, that makes a candidate credible.
    C : float, default=1.0
        Weight of the hinge loss of the SVMs.
    exclude_self : bool, default=True
        Whether a row is kept out of its own neighbours, as in the papers. The published program keeps it
        in (False): a row then reconstructs itself and hardly anything is propagated.
    fallback : {"candidate", "labels"}, default="candidate"
        What is credible in a row whose vote supports none of its candidates: the candidates with the
        largest vote, or, as in the published program, the supported labels although they are no candidates.
    cv : int, default=10
        Folds of the elicitation; no more than there are rows.
    shuffle : bool, default=True
        Whether rows are shuffled before they are cut into folds. The published program does not (False).
    scale : {"minmax", "standard"} or None, default="minmax"
        Scaling of the features, so that weights are comparable. Sparse features are divided by their
        largest absolute value or standard deviation, and never shifted.
    max_iter : int, default=1000
        Iteration budget of a propagation.
    tol : float, default=1e-5
        Spectral norm of the change of the confidences below which a propagation stops.
    random_state : int, RandomState, Generator or None, default=0
        Shuffles the rows.
    verbose : int, default=0
        Log the folds and the training if not zero.

    Attributes
    ----------
    scores_, ranking_ : ndarray of shape (n_features,)
        Importance of every feature, larger is better, and the place of every feature, 1 is best.
    coef_ : ndarray of shape (n_labels, n_features)
        The weights; a label for which no classifier could be trained has zeros.
    label_confidence_ : {ndarray, CSR matrix} of shape (n_samples, n_labels)
        Votes of the neighbours in the other folds for the candidates, in [0, 1].
    credible_labels_ : boolean {ndarray, CSR matrix} of shape (n_samples, n_labels)
        The credible labels.
    classifiers_ : PairwiseClassifiers
        All trained classifiers.
    log_odds_ : ndarray of shape (n_labels, n_labels)
        Logarithm of the posterior odds of a label (row) by the number of pairs it wins (column).
    scaling_ : Scaling
        Offset (or None) and factor of every feature, learned in ``fit``.
    n_iter_ : int
        Iterations of the longest propagation.

    Notes
    -----
    The learner has no weight matrix. W is a convention of this package: each vote is replaced by its linear
    score. A label without classifiers does not count. If no classifier at all can be trained (one label,
    for instance), W is the ridge regression of the propagated confidences on the features.

    The published program fills its likelihood tables with the true labels of the test rows. Here they are
    counted on the training rows: "with" the label where it is credible, "without" where it is not a candidate; the
    prior counts candidates. ``predict`` follows the program: the posterior odds of each row are brought to
    [0, 1], and labels above 0.5 are predicted, so a row gets at least one label unless its odds are all equal.
    ``decision_function`` returns the logarithm of the odds; it is positive where Bayes' rule alone would choose
    the label.

    The settings that reproduce the published program, ties and solvers are those of :class:`ParticleVLS`.

    Cost: that of :class:`ParticleVLS`, with one SVM less for every label.

    References
    ----------
    .. [1] Fang and Zhang, "Partial multi-label learning via credible label elicitation", AAAI 2019.
    .. [2] Zhang and Fang, "Partial multi-label learning via credible label elicitation", IEEE Transactions
       on Pattern Analysis and Machine Intelligence 43(10), 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve.methods.particle_map import ParticleMAP
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((60, 5))
    >>> Y = np.column_stack([X[:, 1] > 0.5, X[:, 1] < 0.5, rng.random(60) < 0.3]).astype(int)
    >>> selector = ParticleMAP(n_features_to_select=1).fit(X, Y)
    >>> selector.get_support(indices=True)
    array([1])
    >>> selector.predict([[0.5, 0.9, 0.5, 0.5, 0.5]])[0, :2]
    array([1, 0])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseParticle._parameter_constraints,
        "weights": [StrOptions({"mean", "slope", "stacked"})],
    }

    log_odds_: np.ndarray

    def _score_features(
        self, X: Matrix, candidates: np.ndarray, credible: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        n_labels = candidates.shape[1]
        classifiers = train_pairwise(X, credible, candidates > 0, self.C)
        votes = count_votes(X, classifiers, n_labels).astype(np.intp)
        wins_with = _count_by_votes(votes, credible)
        wins_without = _count_by_votes(votes, candidates == 0)
        log_odds = posterior_log_odds(candidates, wins_with, wins_without)
        is_trained = len(classifiers.first) > 0
        coef = mean_weights(classifiers, n_labels) if is_trained else self._ridge_weights(X, candidates)
        if is_trained and self.weights == "slope":
            coef *= vote_slopes(log_odds, wins_with + wins_without)[:, None]
        stacked = is_trained and self.weights == "stacked"
        scores = stacked_norms(classifiers) if stacked else row_norms(coef.T)
        return scores, coef, {"classifiers": classifiers, "log_odds": log_odds}

    def _score_labels(self, X: Matrix) -> np.ndarray:
        n_labels = len(self.label_names_in_)
        votes = count_votes(self._scaled_rows(X), self.classifiers_, n_labels).astype(np.intp)
        return self.log_odds_[np.arange(n_labels), votes]

    def _choose_labels(self, scores: np.ndarray) -> np.ndarray:
        odds = np.exp(scores)
        middle = (odds.min(axis=1, keepdims=True) + odds.max(axis=1, keepdims=True)) / 2
        # Odds that rounding alone tells apart are equal.
        return odds > middle * (1 + 1e-12)


def posterior_log_odds(Y: np.ndarray, wins_with: np.ndarray, wins_without: np.ndarray) -> np.ndarray:
    """Return the logarithm of ``P(label | votes) / P(no label | votes)``, all counts raised by one (Laplace)."""
    prior_odds = (1 + Y.sum(axis=0)) / (1 + (1 - Y).sum(axis=0))
    likelihood = (1 + wins_with) / (wins_with.shape[1] + wins_with.sum(axis=1, keepdims=True))
    likelihood_without = (1 + wins_without) / (
        wins_without.shape[1] + wins_without.sum(axis=1, keepdims=True)
    )
    return np.log(prior_odds[:, None] * likelihood / likelihood_without)


def vote_slopes(log_odds: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the slope of each label's log odds over the votes, every row counting once; 0 if votes do not vary."""
    votes = np.arange(log_odds.shape[1])
    total = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    centred = votes - (counts @ votes)[:, None] / total
    spread = (counts * centred**2).sum(axis=1)
    several = (counts > 0).sum(axis=1) > 1
    slopes = np.zeros(len(spread))
    np.divide((counts * centred * log_odds).sum(axis=1), spread, out=slopes, where=several)
    return slopes


def _count_by_votes(votes: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Count, for every label, its members among the rows by the number of votes: (n_labels, n_labels)."""
    n_labels = votes.shape[1]
    rows, labels = np.nonzero(members)
    cells = labels * n_labels + votes[rows, labels]
    return np.bincount(cells, minlength=n_labels**2).reshape(n_labels, n_labels)
