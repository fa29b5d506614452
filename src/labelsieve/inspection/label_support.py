"""Support for candidate labels, predicted from features and other labels by leave-one-out regressions."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.metrics import roc_auc_score
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from labelsieve._base import StrOptions, check_parameters, reject_lazy, validate_problem
from labelsieve._candidates import split_unknown
from labelsieve._numerics.batches import batches
from labelsieve._numerics.candidates import count_labels, fill_unknown, known_entries
from labelsieve._numerics.row_groups import check_groups
from labelsieve._numerics.scaling import within_range
from labelsieve._numerics.sparse import Matrix, dense, is_sparse
from labelsieve.inspection._leave_one_out import (
    LeaveOneOut,
    explain_by_other_labels,
    linear_directions,
    rbf_directions,
)
from labelsieve.inspection._reviews import Candidates, Review, ReviewModel, fit_reviewed

# With more rows and more features than this, only the features with the most evidence are used.
_MAX_SIDE = 6000
_MAX_FEATURES = 1000
_MAX_RELATED_LABELS = 5000
_MIN_ROWS = 3
# With more rows than this share that have a single candidate, "auto" assumes nothing about these rows.
_MOST_SINGLE_CANDIDATES = 0.2
# Labels of fewer rows do not contribute to the support of other labels.
_FEWEST_OF_RELATED_LABEL = 5
# The features predict a label if its held-out AUC is at least this, and this many standard errors above 0.5.
_LEAST_AREA, _LEAST_AREA_Z = 0.6, 2.0
# A random draw exceeds this z-score once in about 15,000 times.
_LARGEST_Z_SCORE = 4.0
_RATE_QUANTILE = 0.25
_SMALLEST_RATE, _LARGEST_RATE = 0.01, 0.6
# A lower rate would make the assumption that every row has a right candidate too strong.
_SMALLEST_ASSUMED_RATE = 0.2


class LabelSupport(BaseEstimator):
    """Support for candidate labels, predicted from the other rows.

    The support ``J = P + Q`` of a label in a row has two parts. ``P`` is the prediction of a ridge regression on the
    features that leaves the row out, so that a candidate cannot support itself. ``Q`` is the contribution of the other
    labels of the row: the residuals of each label are regressed on those of all other labels, again without the row.
    Support near 1 speaks for a label; support near 0 or below speaks against it. Review the candidates with the least
    support first.

    Parameters
    ----------
    kernel : {"auto", "linear", "rbf"}, default="auto"
        Kernel of the regression. "auto" chooses the kernel with the smaller leave-one-out error, and "linear" for
        sparse features. Beyond 1000 rows, the Gaussian kernel "rbf" is approximated with 500 landmark rows.
    use_labels : bool, default=True
        If True, add ``Q``. Wrong candidates that always occur together then support each other. Ignored if no row has
        more than one candidate, because the other labels then determine it.
    each_row_has_truth : bool or "auto", default="auto"
        If True, assume that every row has at least one right candidate. It is ignored with a warning if a row has no
        candidates. "auto" assumes it if every row has a candidate, and some rows have more than one. If more than a
        fifth of the rows have only one, it assumes nothing about these rows: their candidates would all count as right.

    Attributes
    ----------
    support_ : ndarray of shape (n_samples, n_labels)
        Support for each label in each row. Use it to rank labels, not as a probability.
    confidence_ : ndarray of shape (n_samples, n_labels)
        Support of the candidates rescaled to [0, 1], and 0 for all other labels. It assumes that all labels have the
        same rate of wrong candidates, which rarely holds, so do not report it as a probability.
    probability_ : ndarray of shape (n_samples, n_labels) or None
        Estimated probability that a candidate is right, and 0 for all other labels. Reviewed candidates have their
        verdict, 0 or 1. None if no candidates were reviewed.
    n_checked_ : int
        Number of reviewed candidates that the probabilities were estimated from.
    kernel_ : {"linear", "rbf"} or None
        Kernel of the regression; None if no label varies.
    penalty_ : float or None
        Penalty of the regression on the features.
    label_penalty_ : float or None
        Penalty of the regression on the other labels; None if they were not used or did not help.
    press_ : float or None
        Mean squared leave-one-out error of the regression on the features, relative to the variance of each label.
        Values of 1 or more mean that the features are uninformative.
    auc_ : ndarray of shape (n_labels,)
        Held-out area under the ROC curve of each label: the probability that a row with the label has more support for
        it than a row without; nan if the label does not vary.
    is_predicted_ : ndarray of bool of shape (n_labels,)
        True if the area is at least 0.6, and at least two standard errors above 0.5.
    assumes_truth_ : bool
        True if every row is assumed to have a right candidate.
    has_one_label_per_row_ : bool
        True if no row has more than one candidate.
    rate_ : float or None
        Rate of wrong candidates that `confidence_` assumes.
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
    labelsieve.find_label_issues : Rank candidates, worst first, with the names of rows and labels.

    Notes
    -----
    Systematic errors, where wrong labels follow from the features just as right ones do, cannot be found from features
    and candidates alone. Review about 50 random candidates to find them. The verdicts give probabilities, and change
    the order if some labels or kinds of rows are wrong more often than others.

    The support of a label that is a candidate in every row or in none is its own value, as is that of every label if
    there are fewer than three rows. The support of an unknown label (NaN) is its prediction, and it says nothing
    about the other labels. Features are standardised. With more than 6000 features and 6000 rows, only the
    1000 features with the most evidence are used. ``Q`` is not computed for more than 5000 labels. The result is
    deterministic.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve import LabelSupport
    >>> X = np.repeat([[0.0], [1.0]], 50, axis=0)
    >>> Y = np.column_stack([X[:, 0], 1 - X[:, 0]])
    >>> Y[0] = 1  # the first label of the first row is wrong
    >>> support = LabelSupport(use_labels=False).fit(X, Y).support_
    >>> bool(support[0, 0] < 0.1), bool(support[50:, 0].min() > 0.9)
    (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions({"auto", "linear", "rbf"})],
        "use_labels": ["boolean"],
        "each_row_has_truth": ["boolean", StrOptions({"auto"})],
    }

    classes_: np.ndarray | None
    label_names_in_: np.ndarray
    n_features_in_: int

    def __init__(
        self, kernel: str = "auto", use_labels: bool = True, each_row_has_truth: bool | str = "auto"
    ) -> None:
        self.kernel = kernel
        self.use_labels = use_labels
        self.each_row_has_truth = each_row_has_truth

    def fit(self, X: Any, y: Any, checked: Any = None, row_groups: Any = None) -> Self:
        """Estimate the support for each label in each row.

        Parameters
        ----------
        X : {array-like, dataframe, sparse matrix} of shape (n_samples, n_features)
            Features; sparse matrices stay sparse.
        y : {array-like, dataframe, sparse matrix} of shape (n_samples, n_labels) or (n_samples,)
            Candidate labels, 0 or 1, or NaN if unknown. Or classes.
        checked : Review, tuple of (rows, labels, answers) or None, default=None
            Reviewed candidates: row indices, label indices, and answers (1 for right, 0 for wrong, nan for unsure).
            Draw them with `labelsieve.draw_candidates`. Candidates that are unlikely to be a random draw cause a
            warning.
        row_groups : array-like of shape (n_samples,) or None, default=None
            Group of every row. The support of a label comes from the rows of other groups.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        check_parameters(self)
        reject_lazy("LabelSupport", X, y)
        X, Y = validate_problem(self, X, y, min_samples=1, takes_unknown=True)
        n_samples = X.shape[0]
        self._groups = check_groups(row_groups, n_samples)
        candidates = fill_unknown(Y)
        reviewed = Review.validate(checked, candidates)
        varies = varying_labels(Y)
        if n_samples < _MIN_ROWS:
            varies[:] = False
        self.kernel_: str | None = None
        self.penalty_: float | None = None
        self.label_penalty_: float | None = None
        self.press_: float | None = None
        self.rate_: float | None = None
        support = confidence = np.empty((n_samples, 0))
        self._varies, self._known = varies, known_entries(Y)
        self._candidates: Candidates | None = None
        in_row = np.asarray(candidates.sum(axis=1)).ravel()
        self.has_one_label_per_row_ = bool((in_row <= 1).all()) and self._known is None
        self.assumes_truth_ = self._assumes_truth(candidates, in_row)
        self.auc_ = np.full(Y.shape[1], np.nan)
        if varies.any():
            support, confidence, self.auc_[varies] = self._estimate(X, Y if varies.all() else Y[:, varies])
        self.is_predicted_ = _is_predicted(self.auc_, *count_labels(Y))
        self.support_ = _with_constant_labels(support, split_unknown(Y)[0], varies)
        self.confidence_ = _with_constant_labels(confidence, candidates, varies)
        return self._set_probability(reviewed)

    def check(self, checked: Any) -> Self:
        """Replace the reviewed candidates and keep the estimated support.

        Parameters
        ----------
        checked : Review, tuple of (rows, labels, answers) or None
            Reviewed candidates, as in `fit`.

        Returns
        -------
        self : object
            The estimator with updated probabilities.
        """
        check_is_fitted(self, "support_")
        # Only candidates have positive confidence.
        return self._set_probability(Review.validate(checked, self.confidence_))

    def absent_labels(self) -> np.ndarray:
        """Return a mask of the labels that rows do not have, without unknown labels and those that do not vary."""
        is_absent = (self.confidence_ == 0) & self._varies
        return is_absent if self._known is None else is_absent & self._known

    def _assumes_truth(self, candidates: Matrix, in_row: np.ndarray) -> bool:
        """Return True if every row is assumed to have a right candidate, and that is informative."""
        n_empty = int((in_row == 0).sum())
        if n_empty and self.each_row_has_truth is True:
            warnings.warn(
                f"each_row_has_truth is ignored because {n_empty} of {len(in_row)} rows have no candidates. Remove "
                "these rows if the assumption holds for the others.",
                UserWarning,
                stacklevel=3,
            )
        is_auto = self.each_row_has_truth == "auto"
        is_asked = not self.has_one_label_per_row_ if is_auto else self.each_row_has_truth
        # Single candidates would all be right, whatever the features say.
        self._spares_single = is_auto and bool((in_row == 1).mean() > _MOST_SINGLE_CANDIDATES)
        # A label that every row has counts as right, so the assumption says nothing about the other labels.
        return (
            bool(is_asked) and not n_empty and not (np.asarray(candidates.sum(axis=0)) == len(in_row)).any()
        )

    def _estimate(self, X: Matrix, Y: Matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Estimate support, confidence and AUC; all labels must vary."""
        rows, labels = candidate_indices(Y)
        self._used_features = _features_to_use(X, Y)
        regression = self._regression(within_range(X[:, self._used_features]), Y)
        self.penalty_, self.press_ = regression.penalty, regression.press
        residuals = regression.residuals()
        feature_support = 1 - residuals[rows, labels]
        counts, n_known = count_labels(Y)
        known = known_entries(Y)
        if known is not None:
            predicted = (counts / n_known - residuals)[~known]
            residuals[~known] = 0
        # Residuals of rare labels are outliers, which would decide about the other labels of their rows.
        related = self._related = np.flatnonzero(counts >= _FEWEST_OF_RELATED_LABEL)
        if self.use_labels and not self.has_one_label_per_row_ and 1 < len(related) <= _MAX_RELATED_LABELS:
            if len(related) == Y.shape[1]:
                self.label_penalty_ = explain_by_other_labels(residuals, known, self._groups)
            else:
                part = residuals[:, related]
                self.label_penalty_ = explain_by_other_labels(
                    part, None if known is None else known[:, related], self._groups
                )
                residuals[:, related] = part
        support = np.negative(residuals, out=residuals)
        support[rows, labels] += 1
        if known is not None:
            support[~known] += predicted
            Y = fill_unknown(Y)
        # The lower quartile of the support estimates the rate of wrong candidates, which all labels share.
        self.rate_ = float(np.clip(np.quantile(support, _RATE_QUANTILE), _SMALLEST_RATE, _LARGEST_RATE))
        confidence = _candidate_confidence(support, Y, self.rate_)
        areas = _areas(support, Y, known)
        if self.assumes_truth_:
            _assume_rows_have_truth(support, confidence, Y, self.rate_, spares_single=self._spares_single)
        self._candidates = Candidates(rows, labels, support, feature_support, n_known)
        return support, confidence, areas

    def _set_probability(self, reviewed: Review | None) -> Self:
        """Estimate probabilities from reviewed candidates, if there are any."""
        self.n_checked_ = 0
        self.checked_model_: ReviewModel | None = None
        self.probability_: np.ndarray | None = None
        self._reviewed = reviewed
        if reviewed is None:
            return self
        decided = reviewed.for_probabilities()
        if not len(decided.rows):
            return self
        # Candidates of labels that do not vary count as right.
        probability = (self.confidence_ > 0).astype(float)
        candidates = self._candidates
        if candidates is not None:
            usable = decided.restrict_to(self._varies)
            self.n_checked_ = len(usable.rows)
            positions = candidates.positions(usable.rows, usable.labels)
            _warn_if_not_random(candidates.support[candidates.rows, candidates.labels], positions)
            self.checked_model_ = fit_reviewed(candidates, positions, usable.answers)
            labels = np.flatnonzero(self._varies)[candidates.labels]
            probability[candidates.rows, labels] = self.checked_model_.probability(candidates)
        known = reviewed.take(np.flatnonzero(reviewed.is_decided & ~reviewed.is_missing))
        probability[known.rows, known.labels] = known.answers
        self.probability_ = probability
        return self

    def _regression(self, X: Matrix, Y: Matrix) -> LeaveOneOut:
        """Fit the regression with the kernel set by `kernel`."""
        if self.kernel != "rbf":
            self.kernel_, linear = "linear", self._linear_regression(X, Y)
            if self.kernel == "linear":
                return linear
            if self.kernel == "auto" and is_sparse(X):  # of words: a kernel is slow, and hardly better
                return linear
        rbf = LeaveOneOut(rbf_directions(X), Y, self._groups)
        if self.kernel == "auto" and not rbf.press < linear.press:
            return linear
        self.kernel_ = "rbf"
        return rbf

    def _linear_regression(self, X: Matrix, Y: Matrix) -> LeaveOneOut:
        """Fit the regression with a linear kernel; `explanations` overrides this method."""
        return LeaveOneOut(linear_directions(X), Y, self._groups)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        return tags


def candidate_indices(Y: Matrix) -> tuple[np.ndarray, np.ndarray]:
    """Return the row and label indices of all candidates, sorted by row, then label."""
    Y = fill_unknown(Y)
    if not is_sparse(Y):
        rows, labels = np.nonzero(Y)
        return rows, labels
    sorted_rows = sp.csr_array(Y, copy=True)
    sorted_rows.sort_indices()
    rows = np.repeat(np.arange(Y.shape[0]), np.diff(sorted_rows.indptr))
    return rows, sorted_rows.indices.astype(np.intp)


def varying_labels(Y: Matrix) -> np.ndarray:
    """Return a mask of the labels that are candidates in some rows but not in all in which they are known."""
    n_candidates, n_known = count_labels(Y)
    varies: np.ndarray = (n_candidates > 0) & (n_candidates < n_known)
    return varies


def _features_to_use(X: Matrix, Y: Matrix) -> np.ndarray | slice:
    """Return the features to regress on: all, or those with the most evidence if the table is too large."""
    if min(X.shape) <= _MAX_SIDE:
        return slice(None)
    from labelsieve.methods.evidence import EvidenceSelector

    selector = EvidenceSelector(_MAX_FEATURES, redundancy=np.inf).fit(X, Y)
    indices: np.ndarray = selector.get_support(indices=True)
    return indices


def is_unlikely_random(support: np.ndarray, positions: np.ndarray) -> bool:
    """Return True if the candidates at these positions are unlikely to be a random draw."""
    # In a random draw of m candidates, the mean quantile is 1/2 with standard deviation 1 / sqrt(12 m).
    deviation = _mean_quantile(support, positions) - 0.5
    return abs(deviation) * np.sqrt(12 * len(positions)) > _LARGEST_Z_SCORE


def _mean_quantile(support: np.ndarray, positions: np.ndarray) -> float:
    ordered, reviewed = np.sort(support), support[positions]
    n_below = np.searchsorted(ordered, reviewed, "left") + np.searchsorted(ordered, reviewed, "right")
    return float(n_below.mean() / (2 * len(ordered)))


def _warn_if_not_random(support: np.ndarray, positions: np.ndarray) -> None:
    """Warn if the reviewed candidates, at these positions, are unlikely to be a random draw."""
    if len(positions) and is_unlikely_random(support, positions):
        quantile = _mean_quantile(support, positions)
        warnings.warn(
            f"The reviewed candidates are not a random draw: on average {quantile:.0%} of all candidates have "
            "less support. Probabilities of the other candidates are unreliable. Review a random draw of candidates.",
            UserWarning,
            stacklevel=4,
        )


def _with_constant_labels(estimated: np.ndarray, Y: Matrix, varies: np.ndarray) -> np.ndarray:
    """Return the estimates of labels that vary, together with the values of the labels that do not."""
    if varies.all():
        return estimated
    values: np.ndarray = dense(Y).copy()
    values[:, varies] = estimated
    return values


def _areas(support: np.ndarray, Y: Matrix, known: np.ndarray | None) -> np.ndarray:
    """Compute the area under the ROC curve of each label; all must vary."""
    areas = np.empty(Y.shape[1])
    for label in range(Y.shape[1]):
        is_candidate, scores = dense(Y[:, [label]]).ravel(), support[:, label]
        if known is not None:
            is_candidate, scores = is_candidate[known[:, label]], scores[known[:, label]]
        areas[label] = roc_auc_score(is_candidate, scores)
    return areas


def _is_predicted(areas: np.ndarray, counts: np.ndarray, n_known: np.ndarray) -> np.ndarray:
    """Return a mask of the labels that are predicted better than by their frequency."""
    with np.errstate(divide="ignore", invalid="ignore"):  # labels that do not vary have area nan
        # Standard error of the area if support and label are independent (Mann and Whitney).
        error = np.sqrt((n_known + 1) / (12 * counts * (n_known - counts)))
        found: np.ndarray = (areas >= _LEAST_AREA) & (areas - 0.5 >= _LEAST_AREA_Z * error)
    return found


def _confidence_at(support: np.ndarray, rate: float) -> np.ndarray:
    """Return f / (f + r (1 - f)), the probability of a right candidate if wrong ones occur at rate r.

    ``f = (support - r) / (1 - r)``, clipped to [0.005, 0.995], is the probability that the label applies.
    """
    f = np.clip((support - rate) / (1 - rate), 0.005, 0.995)
    confidence: np.ndarray = f / (f + rate * (1 - f))
    return confidence


def _candidate_confidence(support: np.ndarray, Y: Matrix, rate: float) -> np.ndarray:
    """Return the confidence of the candidates, and 0 for all other labels."""
    confidence = np.empty_like(support)
    for block in batches(*support.shape):
        confidence[block] = np.where(dense(Y[block]) > 0, _confidence_at(support[block], rate), 0)
    return confidence


def _assume_rows_have_truth(
    support: np.ndarray, confidence: np.ndarray, Y: Matrix, rate: float, *, spares_single: bool
) -> None:
    """Increase support and confidence in place, given that every row has a right candidate.

    With `spares_single`, rows with a single candidate stay as they are.

    If the candidates of a row are right independently with probabilities c, all of them are wrong with probability
    ``none = prod(1 - c)``. Given that at least one is right, the probabilities are ``c' = c / (1 - none)``. The support
    J moves towards 1 by the same ratio: ``J + (1 - (1 - c') / (1 - c)) max(1 - J, 0)``.
    """
    rate = max(rate, _SMALLEST_ASSUMED_RATE)
    for block in batches(*support.shape):
        is_candidate, J = dense(Y[block]) > 0, support[block].copy()
        c = np.where(is_candidate, _confidence_at(J, rate), 0)
        ratio = (1 - _given_one_right(c)) / np.maximum(1 - c, 1e-9)
        support[block] = np.where(is_candidate, J + (1 - ratio) * np.maximum(1 - J, 0), J)
        given = np.minimum(_given_one_right(confidence[block]), 1)
        if spares_single:
            is_single = is_candidate.sum(axis=1, keepdims=True) == 1
            support[block] = np.where(is_single, J, support[block])
            given = np.where(is_single, confidence[block], given)
        confidence[block] = given


def _given_one_right(c: np.ndarray) -> np.ndarray:
    """Return probabilities given that each row has a right candidate; other labels have probability 0."""
    none = np.exp(np.log1p(-np.minimum(c, 1 - 1e-9)).sum(axis=1, keepdims=True))
    given: np.ndarray = c / np.maximum(1 - none, 1e-9)
    return given
