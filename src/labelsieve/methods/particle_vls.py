"""PARTICLE-VLS: credible labels, then pairwise classifiers calibrated by a virtual label."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelsieve._numerics.norms import row_norms
from labelsieve._numerics.sparse import Matrix
from labelsieve.methods._pairwise_svm import count_votes, mean_weights, stacked_norms, train_pairwise
from labelsieve.methods._particle import BaseParticle


class ParticleVLS(BaseParticle):
    """Rank features by pairwise classifiers of credible labels, each also against a virtual label.

    The partial multi-label learner of [1]_ and [2]_ with virtual label splitting, in two stages without a
    common objective. First, labels are propagated over the nearest neighbours of all folds but one, the
    neighbours of each row held out vote on its candidates, and those near the top of the vote are its
    credible labels. Second, a linear SVM separates every pair of labels: rows where one is credible and the
    other is not a candidate, against the reverse; and one more SVM separates each label from a virtual label
    that stands between relevant and irrelevant.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        How many features to keep: a number, a share in (0, 1], or None for half of them.
    weights : {"mean", "stacked"}, default="mean"
        How classifiers become feature scores. "mean" averages the classifiers of each label, turned to its
        side and weighted by their training accuracy, to one column of W, and scores a feature by the norm
        of its row. "stacked" takes the norm over all weighted classifiers, where opposite signs do not
        cancel; ``coef_`` is the same for both.
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
        The mean weights; a label for which no classifier could be trained has zeros.
    label_confidence_ : {ndarray, CSR matrix} of shape (n_samples, n_labels)
        Votes of the neighbours in the other folds for the candidates, in [0, 1].
    credible_labels_ : boolean {ndarray, CSR matrix} of shape (n_samples, n_labels)
        The credible labels.
    classifiers_ : PairwiseClassifiers
        All trained classifiers; the virtual label has the number ``n_labels``.
    scaling_ : Scaling
        Offset (or None) and factor of every feature, learned in ``fit``.
    n_iter_ : int
        Iterations of the longest propagation.

    Notes
    -----
    The learner has no weight matrix. W is a convention of this package: the vote of each classifier is
    replaced by its linear score. A label that is a candidate of every row has no classifier and does not
    count. If no classifier at all can be trained, W is the ridge regression of the propagated confidences
    on the features.

    ``exclude_self=False, fallback="labels", shuffle=False, scale=None`` reproduces the published program.
    Pairs without rows on one side cast no vote here. Among equally far neighbours the first rows count.
    Classifiers of more than 128 rows are trained by libsvm, smaller ones many at once by a solver of this package
    for the same problem.

    The prediction is the papers': a label collects the accuracies of the classifiers it wins, the virtual
    label those of its own, both rounded up, and labels with more than the virtual label are predicted.
    ``decision_function`` returns the difference.

    Cost: a search for the nearest rows, then a linear SVM for nearly every pair of labels, which is most of
    the time.

    References
    ----------
    .. [1] Fang and Zhang, "Partial multi-label learning via credible label elicitation", AAAI 2019.
    .. [2] Zhang and Fang, "Partial multi-label learning via credible label elicitation", IEEE Transactions
       on Pattern Analysis and Machine Intelligence 43(10), 2021.

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
        # The virtual label is credible in every row and a candidate in none: its pairs have all the credible
        # rows of a label on one side, and all rows where the label is not a candidate on the other.
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
        # Accuracies of 1 must add up to a whole number before it is rounded up.
        scores = np.ceil(np.round(votes, 9))
        return scores[:, :virtual] - scores[:, virtual:]

    def _choose_labels(self, scores: np.ndarray) -> np.ndarray:
        return scores > 0
