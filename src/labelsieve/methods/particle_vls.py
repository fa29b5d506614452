"""PARTICLE-VLS: credible labels, then pairwise classifiers calibrated by a virtual label."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelsieve._numerics.norms import row_norms
from labelsieve._numerics.sparse import Matrix
from labelsieve.methods._pairwise_svm import count_votes, mean_weights, stacked_norms, train_pairwise
from labelsieve.methods._particle import BaseParticle


class ParticleVLS(BaseParticle):
    """Rank features by pairwise classifiers of credible labels, calibrated by a virtual label.

    The partial multi-label learner of [1]_ and [2]_ with virtual label splitting. It has two stages
    without a common objective.

    The first stage finds credible labels. For each fold, it propagates the candidates of the other
    folds over nearest neighbours. The neighbours of each held-out row then vote on its candidates,
    and those close to the largest vote are credible.

    The second stage trains a linear SVM for every pair of labels, on the rows where one label is
    credible and the other is not a candidate. One more SVM per label separates it from a virtual
    label, which marks the boundary between relevant and irrelevant labels.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1], or None for half of them.
    weights : {"mean", "stacked"}, default="mean"
        Feature scores from the classifiers. "mean" averages the classifiers of each label, with
        the label on the positive side and weighted by training accuracy, into one column of W and
        scores a feature by the norm of its row of W. "stacked" takes the norm over all weighted
        classifiers, so that opposite signs do not cancel. ``coef_`` is the same for both.
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
        Mean weights; zeros for a label without any trained classifier.
    label_confidence_ : {ndarray, CSR matrix} of shape (n_samples, n_labels)
        Votes for the candidates by the neighbours from the other folds, in [0, 1].
    credible_labels_ : boolean {ndarray, CSR matrix} of shape (n_samples, n_labels)
        The credible labels.
    classifiers_ : PairwiseClassifiers
        All trained classifiers. The virtual label has the index ``n_labels``.
    scaling_ : Scaling
        Offset (or None) and factor of every feature, learned in ``fit``.
    n_iter_ : int
        Number of iterations of the longest propagation.

    Notes
    -----
    The learner has no weight matrix. W is a convention of this package: the vote of each classifier
    is replaced by its linear score. A label that is a candidate of every row has no classifier and
    is ignored. If no classifier can be trained, W is the ridge regression of the propagated
    confidences on the features.

    ``exclude_self=False, fallback="labels", shuffle=False, scale=None`` reproduces the reference
    code, except that a pair of labels without rows on one side casts no vote here. Neighbours at
    equal distance are taken in row order. Classifiers of more than 128 rows are trained by libsvm.
    Smaller ones are trained in batches by a solver of this package for the same problem.

    The prediction follows the papers. Each label, including the virtual one, sums the accuracies of
    the classifiers it wins, rounded up. Labels with a larger sum than the virtual label are
    predicted. ``decision_function`` returns the difference.

    Cost: a nearest-neighbour search, then a linear SVM for nearly every pair of labels, which takes
    most of the time.

    References
    ----------
    .. [1] Fang and Zhang, "Partial multi-label learning via credible label elicitation", AAAI 2019.
    .. [2] Zhang and Fang, "Partial multi-label learning via credible label elicitation", IEEE
       Transactions on Pattern Analysis and Machine Intelligence 43(10), 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve.methods.particle_vls import ParticleVLS
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((60, 5))
    >>> Y = np.column_stack([X[:, 1] > 0.5, X[:, 1] < 0.5, rng.random(60) < 0.3]).astype(int)
    >>> selector = ParticleVLS(n_features_to_select=1).fit(X, Y)
    >>> selector.get_support(indices=True)
    array([1])
    >>> selector.predict([[0.5, 0.9, 0.5, 0.5, 0.5]])[0, :2]
    array([1, 0])
    """

    def _score_features(
        self, X: Matrix, candidates: np.ndarray, credible: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        n_labels = candidates.shape[1]
        # The virtual label is credible in every row and a candidate in none. Its pairs separate the
        # rows where a label is credible from the rows where the label is not a candidate.
        classifiers = train_pairwise(
            X,
            np.pad(credible, ((0, 0), (0, 1)), constant_values=True),
            np.pad(candidates > 0, ((0, 0), (0, 1)), constant_values=False),
            self.C,
        )
        accuracy, is_trained = classifiers.accuracy, len(classifiers.first) > 0
        if is_trained:
            coef = mean_weights(classifiers, n_labels + 1, accuracy)[:n_labels]
        else:
            coef = self._ridge_weights(X, candidates)
        stacked = is_trained and self.weights == "stacked"
        scores = stacked_norms(classifiers, accuracy) if stacked else row_norms(coef.T)
        return scores, coef, {"classifiers": classifiers}

    def _score_labels(self, X: Matrix) -> np.ndarray:
        virtual = len(self.label_names_in_)
        votes = count_votes(self._scaled_rows(X), self.classifiers_, virtual + 1, self.classifiers_.accuracy)
        # Remove rounding errors, which could push a whole number to the next one.
        scores = np.ceil(np.round(votes, 9))
        return scores[:, :virtual] - scores[:, virtual:]

    def _choose_labels(self, scores: np.ndarray) -> np.ndarray:
        return scores > 0
