"""How far features and other labels support each candidate label.

A method's label confidences say how it weighed the candidates, which need not tell true from false ones: those of
PML-FSMIR measure agreement among the labels of a row and are higher in rows with more candidates. Predictions that
leave the row out ask other witnesses, whatever the method.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from labelsieve._base import StrOptions, check_parameters, refuse_lazy, validate_problem
from labelsieve._numerics.scaling import within_range
from labelsieve._numerics.sparse import dense, is_sparse
from labelsieve._numerics.typing import Matrix
from labelsieve.inspection._checked import Candidates, CheckedModel, Checks, fit_checked
from labelsieve.inspection._confidence import (
    candidate_confidence,
    common_rate,
    state_that_rows_have_truth,
)
from labelsieve.inspection._leave_one_out import LeaveOneOut, linear_directions, rbf_directions
from labelsieve.inspection._other_labels import explain_by_other_labels

__all__ = ["LabelSupport", "candidate_places"]

# Where there are more rows and more features, those features that tell most about the labels speak for all.
_LARGEST_SIDE = 6000
_MOST_WITNESSES = 1000
_MOST_RELATED_LABELS = 5000
_LEAST_ROWS = 3
# Random draws stray further than this once in fifteen thousand times.
_CHANCE_DEVIATIONS = 4.0


class LabelSupport(BaseEstimator):
    """Predict every label of every row from the other rows, to find candidates that look wrong.

    The support ``J = P + Q`` of a row and label has two parts. ``P`` is the prediction of a ridge regression of the
    candidates on the features that leaves the row itself out, so that a candidate cannot support itself. ``Q`` is what
    the other labels of the row add: the residuals of each label are regressed on those of all others, again without
    the row. Around 1 features and labels speak for a label, around 0 or below against it. Of the candidates, those
    with the least support are to be doubted first.

    Parameters
    ----------
    kernel : {"auto", "linear", "rbf"}, default="auto"
        The features themselves, or a Gaussian kernel of their distances, which beyond 1000 rows is approximated by
        500 landmark rows. "auto" takes what predicts the left-out rows better.
    use_labels : bool, default=True
        Whether to add ``Q``. Where wrong candidates come together, as when one label is always given with another,
        they support one another.
    each_row_has_truth : bool, default=False
        Whether every row is known to have at least one right candidate. State it only if it is so: where rows without
        any right candidate exist, it does more harm than good. It is dropped, with a warning, where a row has no
        candidate.

    Attributes
    ----------
    support_ : ndarray of shape (n_samples, n_labels)
        Support of every row and label, raised by the statement about rows if that is made. Its values give an order,
        no probabilities.
    confidence_ : ndarray of shape (n_samples, n_labels)
        The support on a scale from 0 to 1 for candidates, 0 elsewhere: estimated, assuming that wrong candidates
        appear at one common rate. That is false of most real noise, so it is no chance to quote.
    probability_ : ndarray of shape (n_samples, n_labels) or None
        Chance that a candidate is right, estimated from the checked candidates, which have the chance 0 or 1
        themselves; 0 for what is no candidate. None without checks.
    n_checked_ : int
        Number of checked candidates the probabilities are estimated from.
    kernel_ : {"linear", "rbf"} or None
        The kernel taken; None where there was nothing to estimate.
    penalty_ : float or None
        Penalty of the regression on the features.
    label_penalty_ : float or None
        Penalty of the regression on the other labels; None where they were not used or did not help.
    press_ : float or None
        Mean squared error of the prediction from the features, in units of the variance of each label: 1 or more says
        that the features tell nothing.
    rate_ : float or None
        The common rate of wrong candidates that `confidence_` assumes.
    checked_model_ : object or None
        Intercept, weights and label effects of the regression on the checked candidates.
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
    What is wrong in a systematic way, so that it follows from the features as a right label does, cannot be seen from
    features and candidates alone. Checks can see it: about 50 candidates drawn at random and verified by a person give
    probabilities, and change the order where some labels or kinds of rows are wrong more often than others.

    A label that is a candidate of every row or of none has its own values as support, and so have all labels of fewer
    than three rows. Features are standardised. Where there are more than 6000 features and more than 6000 rows, the
    1000 features with the most evidence are used. Beyond 5000 labels ``Q`` is left out. Nothing is random.

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
            Candidates that a person verified: row and label of each, counted from 0, and 1 where the candidate is
            right, 0 where it is wrong. Draw them at random: `labelsieve.draw_candidates`. Those that can be no random
            draw, such as the least supported only, are used with a warning.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        check_parameters(self)
        refuse_lazy("LabelSupport", X, y)
        X, Y = validate_problem(self, X, y, least_samples=1)
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
            is_stated = self.each_row_has_truth and _can_be_stated(Y)
            support, confidence = self._estimate(X, Y if varies.all() else Y[:, varies], is_stated)
        self.support_ = _completed(support, Y, varies)
        self.confidence_ = _completed(confidence, Y, varies)
        return self._learn_from(checks)

    def check(self, checked: Any) -> Self:
        """Learn from checked candidates, other ones or more, without estimating the support again.

        Parameters
        ----------
        checked : tuple of (rows, labels, answers) or None
            As in `fit`; what was checked before is forgotten.

        Returns
        -------
        self : object
            The estimator, with other probabilities.
        """
        check_is_fitted(self, "support_")
        return self._learn_from(Checks.of(checked, self.confidence_))  # positive for candidates only

    def _estimate(self, X: Matrix, Y: Matrix, is_stated: bool) -> tuple[np.ndarray, np.ndarray]:
        """Support and confidence of labels that vary."""
        rows, labels = candidate_places(Y)
        self._witnesses = _witnesses(X, Y)
        regression = self._regression(within_range(X[:, self._witnesses]), Y)
        self.penalty_, self.press_ = regression.penalty, regression.press
        residuals = regression.residuals()
        feature_support = 1 - residuals[rows, labels]
        if self.use_labels and 1 < Y.shape[1] <= _MOST_RELATED_LABELS:
            self.label_penalty_ = explain_by_other_labels(residuals)
        support = np.negative(residuals, out=residuals)
        support[rows, labels] += 1
        self.rate_ = common_rate(support)
        confidence = candidate_confidence(support, Y, self.rate_)
        if is_stated:
            state_that_rows_have_truth(support, confidence, Y, self.rate_)
        self._candidates = Candidates(rows, labels, support, feature_support)
        return support, confidence

    def _learn_from(self, checks: Checks | None) -> Self:
        """Set the probabilities, None without checks."""
        self.n_checked_ = 0
        self.checked_model_: CheckedModel | None = None
        self.probability_: np.ndarray | None = None
        if checks is None:
            return self
        # Candidates of labels that do not vary are taken at their word.
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
        """The regression on features or kernel, whichever is asked for or predicts better."""
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
        """The regression on the features themselves; a place to take hold of it."""
        return LeaveOneOut(linear_directions(X), Y)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        return tags


def candidate_places(Y: Matrix) -> tuple[np.ndarray, np.ndarray]:
    """Row and label of every candidate, by row, then label.

    Examples
    --------
    >>> candidate_places(np.array([[0, 1], [1, 1]]))
    (array([0, 1, 1]), array([1, 0, 1]))
    """
    if not is_sparse(Y):
        rows, labels = np.nonzero(Y)
        return rows, labels
    sorted_rows = sp.csr_array(Y, copy=True)
    sorted_rows.sort_indices()
    rows = np.repeat(np.arange(Y.shape[0]), np.diff(sorted_rows.indptr))
    return rows, sorted_rows.indices.astype(np.intp)


def varying_labels(Y: Matrix) -> np.ndarray:
    """Which labels are candidates of some rows, but not of all.

    Examples
    --------
    >>> varying_labels(np.array([[0, 1, 0], [0, 1, 1]]))
    array([False, False,  True])
    """
    n_candidates = np.asarray(Y.sum(axis=0)).ravel()
    varies: np.ndarray = (n_candidates > 0) & (n_candidates < Y.shape[0])
    return varies


def _witnesses(X: Matrix, Y: Matrix) -> np.ndarray | slice:
    """Which features are asked: all, or where they are too many for the regression those with the most evidence."""
    if min(X.shape) <= _LARGEST_SIDE:
        return slice(None)
    from labelsieve.methods.evidence import EvidenceSelector

    selector = EvidenceSelector(_MOST_WITNESSES, redundancy=np.inf).fit(X, Y)
    witnesses: np.ndarray = selector.get_support(indices=True)
    return witnesses


def _warn_if_chosen(support: np.ndarray, places: np.ndarray) -> None:
    """Warn where the checked candidates, at these places, cannot be a random draw from all."""
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
    """What was estimated for the labels that vary, and the others as they are."""
    if varies.all():
        return estimated
    values: np.ndarray = dense(Y).copy()
    values[:, varies] = estimated
    return values


def _can_be_stated(Y: Matrix) -> bool:
    """Whether "every row has a right candidate" can hold and says something; warns where it cannot hold."""
    n_empty = int((np.asarray(Y.sum(axis=1)) == 0).sum())
    if n_empty:
        warnings.warn(
            f"each_row_has_truth is dropped: {n_empty} of {Y.shape[0]} rows have no candidate, so the statement is "
            "doubtful. Leave such rows out if it holds for the others.",
            UserWarning,
            stacklevel=3,
        )
        return False
    # A label that every row has is taken for right, so nothing follows for the others.
    return not (np.asarray(Y.sum(axis=0)) == Y.shape[0]).any()
