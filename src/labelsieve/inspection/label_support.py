"""Support of each candidate label by features and other labels, predicted without the row itself."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from labelsieve._base import StrOptions, check_parameters, reject_lazy, validate_problem
from labelsieve._numerics.batches import batches
from labelsieve._numerics.scaling import within_range
from labelsieve._numerics.sparse import Matrix, dense, is_sparse
from labelsieve.inspection._checked import Candidates, CheckedModel, Checks, fit_checked
from labelsieve.inspection._leave_one_out import (
    LeaveOneOut,
    explain_by_other_labels,
    linear_directions,
    rbf_directions,
)

# If there are more rows and more features, only the features with the most evidence are used.
_LARGEST_SIDE = 6000
_MOST_FEATURES = 1000
_MOST_RELATED_LABELS = 5000
_LEAST_ROWS = 3
# Random draws deviate further once in fifteen thousand times.
_CHANCE_DEVIATIONS = 4.0
_RATE_QUANTILE = 0.25
_LEAST_RATE, _LARGEST_RATE = 0.01, 0.6
# Assuming fewer wrong candidates would make "every row has a right candidate" too strong.
_LEAST_ASSUMED_RATE = 0.2


class LabelSupport(BaseEstimator):
    """Predict every label of every row from the other rows, to find candidates that look wrong.

    The support ``J = P + Q`` of a row and label has two parts. ``P`` is predicted from the features by a ridge
    regression that leaves the row out, so that a candidate cannot support itself. ``Q`` is what the other labels of
    the row add: the residuals of each label are regressed on those of all others, again without the row. Support near
    1 speaks for a label, near 0 or below against it. Review the candidates with the least support first.

    Parameters
    ----------
    kernel : {"auto", "linear", "rbf"}, default="auto"
        Use the features themselves, or a Gaussian kernel, which 500 landmark rows approximate beyond 1000 rows.
        "auto" takes the one that predicts the left-out rows better.
    use_labels : bool, default=True
        Whether to add ``Q``. Wrong candidates that always come together support one another.
    each_row_has_truth : bool, default=False
        Whether every row is known to have at least one right candidate. Set it only if that is certain: otherwise it
        does more harm than good. It is ignored, with a warning, if a row has no candidate.

    Attributes
    ----------
    support_ : ndarray of shape (n_samples, n_labels)
        Support of every row and label. It gives an order, not probabilities.
    confidence_ : ndarray of shape (n_samples, n_labels)
        Support of the candidates on a scale from 0 to 1, 0 elsewhere. It assumes one common rate of wrong candidates,
        which most real noise does not have, so do not report it as a probability.
    probability_ : ndarray of shape (n_samples, n_labels) or None
        Probability that a candidate is right, estimated from the reviewed candidates, which have 0 or 1 themselves; 0
        elsewhere. None without reviewed candidates.
    n_checked_ : int
        Number of reviewed candidates behind the probabilities.
    kernel_ : {"linear", "rbf"} or None
        The kernel taken; None if there was nothing to estimate.
    penalty_ : float or None
        Penalty of the regression on the features.
    label_penalty_ : float or None
        Penalty of the regression on the other labels; None if they were not used or did not help.
    press_ : float or None
        Mean squared error of the prediction from the features, in units of the variance of each label. The features
        are uninformative at 1 or more.
    rate_ : float or None
        Common rate of wrong candidates that `confidence_` assumes.
    checked_model_ : object or None
        Intercept, weights and label effects of the regression on the reviewed candidates.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if `X` has names.
    label_names_in_ : ndarray of shape (n_labels,)
        Names of the labels.

    See Also
    --------
    labelsieve.find_label_issues : The candidates worst first, with the names of rows and labels.

    Notes
    -----
    Systematic errors, which follow from the features like right labels, cannot be seen from features and candidates
    alone. Review about 50 random candidates to find them: they give probabilities, and change the order if some labels
    or kinds of rows are wrong more often than others.

    Labels that are candidates of every row or of none keep their own values as support, and so do all labels of fewer
    than three rows. Features are standardised. With more than 6000 features and 6000 rows, the 1000 features with the
    most evidence are used. Beyond 5000 labels ``Q`` is left out. Nothing is random.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve import LabelSupport
    >>> X = np.repeat([[0.0], [1.0]], 50, axis=0)
    >>> Y = np.column_stack([X[:, 0], 1 - X[:, 0]])
    >>> Y[0] = 1  # the first label of the first row is odd
    >>> support = LabelSupport(use_labels=False).fit(X, Y).support_
    >>> bool(support[0, 0] < 0.1), bool(support[50:, 0].min() > 0.9)
    (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions({"auto", "linear", "rbf"})],
        "use_labels": ["boolean"],
        "each_row_has_truth": ["boolean"],
    }

    classes_: np.ndarray | None
    label_names_in_: np.ndarray
    n_features_in_: int

    def __init__(
        self, kernel: str = "auto", use_labels: bool = True, each_row_has_truth: bool = False
    ) -> None:
        self.kernel = kernel
        self.use_labels = use_labels
        self.each_row_has_truth = each_row_has_truth

    def fit(self, X: Any, y: Any, checked: Any = None) -> Self:
        """Estimate the support of every row and label.

        Parameters
        ----------
        X : {array-like, dataframe, sparse matrix} of shape (n_samples, n_features)
            Features; sparse matrices stay sparse.
        y : {array-like, dataframe, sparse matrix} of shape (n_samples, n_labels) or (n_samples,)
            Candidate labels, 0/1, or classes.
        checked : tuple of (rows, labels, answers) or None, default=None
            Reviewed candidates: row and label of each, counted from 0, and 1 if the candidate is right, 0 if it is
            wrong. Draw them with `labelsieve.draw_candidates`. A choice that cannot be random gives a warning.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        check_parameters(self)
        reject_lazy("LabelSupport", X, y)
        X, Y = validate_problem(self, X, y, min_samples=1)
        n_samples = X.shape[0]
        checks = Checks.of(checked, Y)
        varies = varying_labels(Y)
        if n_samples < _LEAST_ROWS:
            varies[:] = False
        self.kernel_: str | None = None
        self.penalty_: float | None = None
        self.label_penalty_: float | None = None
        self.press_: float | None = None
        self.rate_: float | None = None
        support = confidence = np.empty((n_samples, 0))
        self._varies = varies
        self._candidates: Candidates | None = None
        if varies.any():
            assume_truth = self.each_row_has_truth and _may_assume_truth(Y)
            support, confidence = self._estimate(X, Y if varies.all() else Y[:, varies], assume_truth)
        self.support_ = _completed(support, Y, varies)
        self.confidence_ = _completed(confidence, Y, varies)
        return self._learn_from(checks)

    def check(self, checked: Any) -> Self:
        """Replace the reviewed candidates without estimating the support again.

        Parameters
        ----------
        checked : tuple of (rows, labels, answers) or None
            As in `fit`.

        Returns
        -------
        self : object
            The estimator, with new probabilities.
        """
        check_is_fitted(self, "support_")
        return self._learn_from(Checks.of(checked, self.confidence_))  # positive for candidates only

    def _estimate(self, X: Matrix, Y: Matrix, assume_truth: bool) -> tuple[np.ndarray, np.ndarray]:
        """Estimate support and confidence of labels that vary."""
        rows, labels = candidate_places(Y)
        self._used_features = _features_to_use(X, Y)
        regression = self._regression(within_range(X[:, self._used_features]), Y)
        self.penalty_, self.press_ = regression.penalty, regression.press
        residuals = regression.residuals()
        feature_support = 1 - residuals[rows, labels]
        if self.use_labels and 1 < Y.shape[1] <= _MOST_RELATED_LABELS:
            self.label_penalty_ = explain_by_other_labels(residuals)
        support = np.negative(residuals, out=residuals)
        support[rows, labels] += 1
        # One rate of wrong candidates for all labels: the lower quartile of the support, within bounds.
        self.rate_ = float(np.clip(np.quantile(support, _RATE_QUANTILE), _LEAST_RATE, _LARGEST_RATE))
        confidence = _candidate_confidence(support, Y, self.rate_)
        if assume_truth:
            _assume_rows_have_truth(support, confidence, Y, self.rate_)
        self._candidates = Candidates(rows, labels, support, feature_support)
        return support, confidence

    def _learn_from(self, checks: Checks | None) -> Self:
        """Set the probabilities; None without reviewed candidates."""
        self.n_checked_ = 0
        self.checked_model_: CheckedModel | None = None
        self.probability_: np.ndarray | None = None
        self._checks = checks
        if checks is None:
            return self
        # Candidates of labels that do not vary count as right.
        probability = (self.confidence_ > 0).astype(float)
        known = self._candidates
        if known is not None:
            among = checks.among(self._varies)
            self.n_checked_ = len(among.rows)
            places = known.places(among.rows, among.labels)
            _warn_if_chosen(known.support[known.rows, known.labels], places)
            self.checked_model_ = fit_checked(known, places, among.answers)
            columns = np.flatnonzero(self._varies)[known.labels]
            probability[known.rows, columns] = self.checked_model_.probability(known)
        probability[checks.rows, checks.labels] = checks.answers
        self.probability_ = probability
        return self

    def _regression(self, X: Matrix, Y: Matrix) -> LeaveOneOut:
        """Fit the regression on features or kernel, as set by `kernel`."""
        if self.kernel != "rbf":
            self.kernel_, linear = "linear", self._linear_regression(X, Y)
            if self.kernel == "linear":
                return linear
        rbf = LeaveOneOut(rbf_directions(X), Y)
        if self.kernel == "auto" and not rbf.press < linear.press:
            return linear
        self.kernel_ = "rbf"
        return rbf

    def _linear_regression(self, X: Matrix, Y: Matrix) -> LeaveOneOut:
        """Fit the regression on the features themselves; explanations override it."""
        return LeaveOneOut(linear_directions(X), Y)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        return tags


def candidate_places(Y: Matrix) -> tuple[np.ndarray, np.ndarray]:
    """Return row and label of every candidate, by row, then label."""
    if not is_sparse(Y):
        rows, labels = np.nonzero(Y)
        return rows, labels
    sorted_rows = sp.csr_array(Y, copy=True)
    sorted_rows.sort_indices()
    rows = np.repeat(np.arange(Y.shape[0]), np.diff(sorted_rows.indptr))
    return rows, sorted_rows.indices.astype(np.intp)


def varying_labels(Y: Matrix) -> np.ndarray:
    """Find the labels that are candidates of some rows, but not of all."""
    n_candidates = np.asarray(Y.sum(axis=0)).ravel()
    varies: np.ndarray = (n_candidates > 0) & (n_candidates < Y.shape[0])
    return varies


def _features_to_use(X: Matrix, Y: Matrix) -> np.ndarray | slice:
    """Choose all features, or those with the most evidence if there are too many for the regression."""
    if min(X.shape) <= _LARGEST_SIDE:
        return slice(None)
    from labelsieve.methods.evidence import EvidenceSelector

    selector = EvidenceSelector(_MOST_FEATURES, redundancy=np.inf).fit(X, Y)
    indices: np.ndarray = selector.get_support(indices=True)
    return indices


def _warn_if_chosen(support: np.ndarray, places: np.ndarray) -> None:
    """Warn if the reviewed candidates, at these places, cannot be a random draw."""
    # Of a random draw, the mean share of candidates with less support is 1/2 with a deviation of 1 / sqrt(12 m).
    ordered, own = np.sort(support), support[places]
    shares = (np.searchsorted(ordered, own, "left") + np.searchsorted(ordered, own, "right")) / (
        2 * len(ordered)
    )
    if len(places) and abs(shares.mean() - 0.5) * np.sqrt(12 * len(places)) > _CHANCE_DEVIATIONS:
        warnings.warn(
            f"The checked candidates are no random draw: on average {shares.mean():.0%} of all candidates have less "
            "support than they. What is estimated for the others is a guess then; check candidates drawn at random.",
            UserWarning,
            stacklevel=4,
        )


def _completed(estimated: np.ndarray, Y: Matrix, varies: np.ndarray) -> np.ndarray:
    """Return the estimates of labels that vary next to the other labels as they are."""
    if varies.all():
        return estimated
    values: np.ndarray = dense(Y).copy()
    values[:, varies] = estimated
    return values


def _may_assume_truth(Y: Matrix) -> bool:
    """Return whether "every row has a right candidate" can hold and is informative; warn if it cannot hold."""
    n_empty = int((np.asarray(Y.sum(axis=1)) == 0).sum())
    if n_empty:
        warnings.warn(
            f"each_row_has_truth is dropped: {n_empty} of {Y.shape[0]} rows have no candidate, so the statement is "
            "doubtful. Leave such rows out if it holds for the others.",
            UserWarning,
            stacklevel=3,
        )
        return False
    # If every row has one label, which counts as right, nothing follows for the others.
    return not (np.asarray(Y.sum(axis=0)) == Y.shape[0]).any()


def _confidence_at(support: np.ndarray, rate: float) -> np.ndarray:
    """Estimate the probability that a candidate is right, if wrong ones appear at one rate r: f / (f + r (1 - f)).

    ``f = (support - r) / (1 - r)``, within [0.005, 0.995], is the probability that the label applies.
    """
    f = np.clip((support - rate) / (1 - rate), 0.005, 0.995)
    confidence: np.ndarray = f / (f + rate * (1 - f))
    return confidence


def _candidate_confidence(support: np.ndarray, Y: Matrix, rate: float) -> np.ndarray:
    """Return the confidence of every candidate, 0 elsewhere."""
    confidence = np.empty_like(support)
    for block in batches(*support.shape):
        confidence[block] = np.where(dense(Y[block]) > 0, _confidence_at(support[block], rate), 0)
    return confidence


def _assume_rows_have_truth(support: np.ndarray, confidence: np.ndarray, Y: Matrix, rate: float) -> None:
    """Raise support and confidence, in place, given that every row has a right candidate.

    If the candidates of a row are right independently with probabilities c, all of them are wrong with probability
    ``none = prod(1 - c)``. Given that one is right, the probabilities are ``c' = c / (1 - none)``. The support J moves
    towards 1 accordingly: ``J + (1 - (1 - c') / (1 - c)) max(1 - J, 0)``.
    """
    rate = max(rate, _LEAST_ASSUMED_RATE)
    for block in batches(*support.shape):
        is_candidate, J = dense(Y[block]) > 0, support[block]
        chance = np.where(is_candidate, _confidence_at(J, rate), 0)
        doubt_left = (1 - _given_one_right(chance)) / np.maximum(1 - chance, 1e-9)
        support[block] = np.where(is_candidate, J + (1 - doubt_left) * np.maximum(1 - J, 0), J)
        confidence[block] = np.minimum(_given_one_right(confidence[block]), 1)


def _given_one_right(chance: np.ndarray) -> np.ndarray:
    """Return probabilities given that each row has a right candidate; non-candidates have probability 0."""
    none = np.exp(np.log1p(-np.minimum(chance, 1 - 1e-9)).sum(axis=1, keepdims=True))
    given: np.ndarray = chance / np.maximum(1 - none, 1e-9)
    return given
