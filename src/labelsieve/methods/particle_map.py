"""PARTICLE-MAP: credible labels, then pairwise classifiers with Bayes' rule on their votes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from labelsieve._base import StrOptions
from labelsieve._numerics.norms import row_norms
from labelsieve._numerics.sparse import Matrix
from labelsieve.methods._pairwise_svm import count_votes, mean_weights, stacked_norms, train_pairwise
from labelsieve.methods._particle import BaseParticle


class ParticleMAP(BaseParticle):
    """Rank features by pairwise classifiers of credible labels, with Bayes' rule on their votes.

    The partial multi-label learner of [1]_ and [2]_ with maximum a posteriori (MAP) inference. It
    uses the credible labels and pairwise linear SVMs of :class:`ParticleVLS`, but no virtual label.
    Bayes' rule turns the number of pairs that a label wins into the odds of the label.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1], or None for half of them.
    weights : {"mean", "slope", "stacked"}, default="mean"
        Feature scores from the classifiers. "mean" averages the classifiers of each label, with
        the label on the positive side, into one column of W and scores a feature by the norm of its
        row of W. "slope" also multiplies each column by the slope of the label's log odds over the
        number of votes. "stacked" takes the norm over all classifiers, so that opposite signs do
        not cancel; ``coef_`` is the same as with "mean".
    n_neighbors : int, default=10
        Number of neighbours in the propagation and the vote, capped by the number of rows.
    alpha : float, default=0.95
        Weight of the neighbours, relative to a row's own candidates, in a propagation step.
    threshold : float, default=0.9
        Vote from which a candidate is credible. Votes are scaled to [0, 1] within each row.
    C : float, default=1.0
        Weight of the hinge loss of the SVMs.
    exclude_self : bool, default=True
        Exclude a row from its own neighbours, as in the papers. The reference code includes it
        (False), so that a row reconstructs itself and almost nothing is propagated.
    fallback : {"candidate", "labels"}, default="candidate"
        Credible labels of a row whose vote supports none of its candidates: the candidates with
        the largest vote, or, as in the reference code, the supported labels, which are not
        candidates.
    cv : int, default=10
        Number of folds of the elicitation, capped by the number of rows.
    shuffle : bool, default=True
        Shuffle the rows before splitting them into folds. The reference code does not (False).
    scale : {"minmax", "standard"} or None, default="minmax"
        Scaling of the features, which makes their weights comparable. Sparse features are divided
        by their largest absolute value or standard deviation and never shifted.
    max_iter : int, default=1000
        Maximum number of iterations of a propagation.
    tol : float, default=1e-5
        A propagation stops when the spectral norm of the change in confidences is below this.
    random_state : int, RandomState, Generator or None, default=0
        Seed for shuffling the rows.
    verbose : int, default=0
        Log the folds and the training if nonzero.

    Attributes
    ----------
    scores_, ranking_ : ndarray of shape (n_features,)
        Score of every feature (larger is better), and its rank (1 is best).
    coef_ : ndarray of shape (n_labels, n_features)
        Weights; zeros for a label without any trained classifier.
    label_confidence_ : {ndarray, CSR matrix} of shape (n_samples, n_labels)
        Votes for the candidates by the neighbours from the other folds, in [0, 1].
    credible_labels_ : boolean {ndarray, CSR matrix} of shape (n_samples, n_labels)
        The credible labels.
    classifiers_ : PairwiseClassifiers
        All trained classifiers.
    log_odds_ : ndarray of shape (n_labels, n_labels)
        Log posterior odds of a label (row) given the number of pairs it wins (column).
    scaling_ : Scaling
        Offset (or None) and factor of every feature, learned in ``fit``.
    n_iter_ : int
        Number of iterations of the longest propagation.

    Notes
    -----
    The learner has no weight matrix. W is a convention of this package: each vote is replaced by
    its linear score. Labels without classifiers are ignored. If no classifier can be trained, for
    example with a single label, W is the ridge regression of the propagated confidences on the
    features.

    The reference code fills its likelihood tables with the true labels of the test rows. Here they
    are counted on the training rows: a row has the label if the label is credible, and lacks it if
    the label is not a candidate. The prior counts candidates. ``predict`` follows the reference
    code: it scales the posterior odds of each row to [0, 1] and predicts the labels above 0.5, so
    that every row gets at least one label unless its odds are all equal. ``decision_function``
    returns the log odds, which are positive where Bayes' rule alone would predict the label.

    See :class:`ParticleVLS` for the settings that reproduce the reference code, ties and solvers.

    Cost: that of :class:`ParticleVLS`, with one SVM less for every label.

    References
    ----------
    .. [1] Fang and Zhang, "Partial multi-label learning via credible label elicitation", AAAI 2019.
    .. [2] Zhang and Fang, "Partial multi-label learning via credible label elicitation", IEEE
       Transactions on Pattern Analysis and Machine Intelligence 43(10), 2021.

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
        # Odds that differ only by rounding are equal.
        return odds > middle * (1 + 1e-12)


def posterior_log_odds(Y: np.ndarray, wins_with: np.ndarray, wins_without: np.ndarray) -> np.ndarray:
    """Return ``log(P(label | votes) / P(no label | votes))`` with Laplace smoothing."""
    prior_odds = (1 + Y.sum(axis=0)) / (1 + (1 - Y).sum(axis=0))
    likelihood = (1 + wins_with) / (wins_with.shape[1] + wins_with.sum(axis=1, keepdims=True))
    likelihood_without = (1 + wins_without) / (
        wins_without.shape[1] + wins_without.sum(axis=1, keepdims=True)
    )
    return np.log(prior_odds[:, None] * likelihood / likelihood_without)


def vote_slopes(log_odds: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the least-squares slope of each label's log odds over the votes of the rows.

    The slope is 0 if the number of votes does not vary.
    """
    votes = np.arange(log_odds.shape[1])
    total = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    centred = votes - (counts @ votes)[:, None] / total
    spread = (counts * centred**2).sum(axis=1)
    several = (counts > 0).sum(axis=1) > 1
    slopes = np.zeros(len(spread))
    np.divide((counts * centred * log_odds).sum(axis=1), spread, out=slopes, where=several)
    return slopes


def _count_by_votes(votes: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Count the member rows of each label (row) by their number of votes (column)."""
    n_labels = votes.shape[1]
    rows, labels = np.nonzero(members)
    cells = labels * n_labels + votes[rows, labels]
    return np.bincount(cells, minlength=n_labels**2).reshape(n_labels, n_labels)
