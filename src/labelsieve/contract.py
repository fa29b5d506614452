"""Checks of the selector contract that run on any method."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline

from labelsieve._numerics.sparse import dense
from labelsieve.datasets.synthetic import make_pml

__all__ = ["CHECKS", "check_selector"]


def check_selector(
    estimator: Any, *, expected_failed_checks: Mapping[str, str] | None = None, sklearn_checks: bool = True
) -> list[str]:
    """Run scikit-learn's estimator checks and labelsieve's contract on a selector.

    Parameters
    ----------
    estimator : object
        Unfitted selector with the parameter ``n_features_to_select`` and, after ``fit(X, y)``, the attributes
        ``scores_``, ``ranking_`` and ``label_names_in_``. `labelsieve.BaseSelector` provides all of them.
    expected_failed_checks : mapping or None, default=None
        Mapping from the name of a check that the method cannot pass to the reason. Extends the checks that
        the class declares as ``_expected_failed_checks``.
    sklearn_checks : bool, default=True
        Also run `sklearn.utils.estimator_checks.check_estimator`.

    Returns
    -------
    passed : list of str
        Names of the contract checks that passed. A failing check raises an AssertionError.

    Examples
    --------
    >>> from labelsieve import SumF, check_selector
    >>> passed = check_selector(SumF(), sklearn_checks=False)
    >>> "check_planted_features_are_found" in passed
    True
    """
    excused = {**getattr(estimator, "_expected_failed_checks", {}), **(expected_failed_checks or {})}
    if sklearn_checks:
        # A local import, because it imports pytest and all of scikit-learn, which is slow.
        from sklearn.utils.estimator_checks import check_estimator

        check_estimator(estimator, expected_failed_checks=excused)
    passed = []
    for check in CHECKS:
        if check.__name__ in excused:
            continue
        try:
            check(clone(estimator))
        except Exception as error:
            name = type(estimator).__name__
            raise AssertionError(f"{name} fails {check.__name__}: {error}") from error
        passed.append(check.__name__)
    return passed


def check_ranking_follows_scores(estimator: Any) -> None:
    """Check that scores are finite and that the ranking is their stable order, starting at 1."""
    X, Y = _problem()
    _fit(estimator, X, Y)
    n_features = X.shape[1]
    assert estimator.scores_.shape == (n_features,), "scores_ must have one entry per feature"
    assert np.isfinite(estimator.scores_).all(), "scores_ must be finite"
    order = np.argsort(-estimator.scores_, kind="stable")
    assert (estimator.ranking_[order] == np.arange(1, n_features + 1)).all(), "ranking_ must order scores_"
    assert list(estimator.label_names_in_) == [f"y{j}" for j in range(Y.shape[1])]
    if hasattr(estimator, "coef_"):
        assert estimator.coef_.shape == (Y.shape[1], n_features), "coef_ must be (n_labels, n_features)"
    confidence = getattr(estimator, "label_confidence_", None)
    if confidence is not None:
        confidence = dense(confidence)
        assert confidence.shape == Y.shape, "label_confidence_ must have the shape of y"
        assert np.isfinite(confidence).all(), "label_confidence_ must be finite"
        assert (confidence[Y == 0] == 0).all(), "label_confidence_ must be 0 for non-candidates"


def check_number_of_selected_features(estimator: Any) -> None:
    """Check the number of selected features for integers, fractions, None and invalid values."""
    X, Y = _problem()
    n_features = X.shape[1]
    for n_selected, expected in (
        (3, 3),
        (0.25, n_features // 4),
        (None, n_features // 2),
        (n_features, n_features),
    ):
        estimator.set_params(n_features_to_select=n_selected)
        _fit(estimator, X, Y)
        assert estimator.get_support().sum() == expected, f"{n_selected!r} must select {expected} features"
        assert estimator.transform(X).shape == (len(X), expected)
    for wrong in (n_features + 1, 0, -1, 1.5, "many"):
        estimator.set_params(n_features_to_select=wrong)
        with _raises(ValueError, TypeError, what=f"n_features_to_select={wrong!r}"):
            _fit(estimator, X, Y)


def check_containers_agree(estimator: Any) -> None:
    """Check that dense and sparse matrices, lists and dataframes give the same scores."""
    X, Y = _problem(density=0.5)
    expected = _fit(estimator, X, Y).scores_
    for features, labels in (
        (sp.csr_matrix(X), Y),
        (sp.csc_matrix(X), Y),
        (sp.csr_array(X), sp.csr_array(Y)),
        (X, sp.csc_matrix(Y)),
        (X, Y.astype(bool)),
        (X.tolist(), Y.tolist()),
    ):
        _assert_same(_fit(clone(estimator), features, labels).scores_, expected, "container")
    for library in ("pandas", "polars"):
        if find_spec(library) is None:
            continue
        frame = import_module(library).DataFrame
        columns = {f"feature {j}": X[:, j] for j in range(X.shape[1])}
        labels = {f"label {j}": Y[:, j].astype(int) for j in range(Y.shape[1])}
        fitted = _fit(clone(estimator), frame(columns), frame(labels))
        _assert_same(fitted.scores_, expected, library)
        assert list(fitted.label_names_in_) == list(labels)
        assert set(fitted.get_feature_names_out()) <= set(columns)


def check_classes_are_one_hot_encoded(estimator: Any) -> None:
    """Check that one-dimensional y is treated as classes."""
    X, Y = _problem()
    classes = np.array(["red", "green", "blue"])[np.argmax(Y[:, :3], axis=1)]
    one_hot = (classes[:, None] == np.unique(classes)).astype(int)
    fitted = _fit(clone(estimator), X, classes)
    _assert_same(fitted.scores_, _fit(clone(estimator), X, one_hot).scores_, "one-hot classes")
    assert list(fitted.label_names_in_) == list(np.unique(classes))


def check_label_order_is_irrelevant(estimator: Any) -> None:
    """Check that permuting the labels does not change the scores."""
    X, Y = _problem()
    expected = _fit(clone(estimator), X, Y).scores_
    _assert_same(
        _fit(clone(estimator), X, Y[:, ::-1]).scores_, expected, "order of the labels", tolerance=1e-4
    )


def check_same_seed_same_result(estimator: Any) -> None:
    """Check that fits with the same seed are identical, and that clone and pickle keep the result."""
    X, Y = _problem()
    before = _global_random_state()
    first = _fit(clone(estimator), X, Y)
    second = _fit(clone(estimator), X, Y)
    assert _global_random_state() == before, "the global random state must not be used"
    assert (first.scores_ == second.scores_).all(), "the same seed must give the same scores"
    copy = pickle.loads(pickle.dumps(first))
    assert (copy.ranking_ == first.ranking_).all(), "a pickled copy must keep the ranking"
    assert (copy.transform(X) == first.transform(X)).all()


def check_input_is_not_modified(estimator: Any) -> None:
    """Check that fit does not modify features or labels, dense or sparse."""
    X, Y = _problem(density=0.5)
    for features, labels in ((X, Y), (sp.csr_matrix(X), sp.csr_matrix(Y))):
        kept = dense(features).copy(), dense(labels).copy()
        _fit(clone(estimator), features, labels)
        assert (dense(features) == kept[0]).all(), "fit must not change X"
        assert (dense(labels) == kept[1]).all(), "fit must not change y"


def check_float32_is_kept(estimator: Any) -> None:
    """Check that float32 features give float32 results close to those of float64."""
    X, Y = _problem()
    single = _fit(clone(estimator), X.astype(np.float32), Y)
    assert single.scores_.dtype == np.float32, "scores_ of float32 features must be float32"
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    double = _fit(clone(estimator), X.astype(np.float32).astype(np.float64), Y)
    _assert_same(single.scores_, double.scores_, "float32", tolerance=1e-3)


def check_objective_never_increases(estimator: Any) -> None:
    """Check that the documented objective never increases."""
    X, Y = _problem()
    history = getattr(_fit(estimator, X, Y), "objective_history_", None)
    if history is None:
        return
    assert np.isfinite(history).all()
    assert estimator.n_iter_ == max(1, len(history) - 1), "n_iter_ must count the iterations"
    rise = np.diff(history).max(initial=0.0)
    assert rise <= 1e-9 * np.abs(history).max(), f"the objective increased by {rise:.3g}"


def check_planted_features_are_found(estimator: Any) -> None:
    """Check that informative features rank clearly above chance, averaged over several problems."""
    found = []
    for seed in range(6):
        X, Y, _, informative = make_pml(
            200, 20, n_informative=5, n_labels=6, return_truth=True, random_state=seed
        )
        ranking = _fit(clone(estimator), X, Y).ranking_
        found.append(np.mean(ranking[informative] <= len(informative)))
    chance = 5 / 20
    assert np.mean(found) >= 1.5 * chance, f"found {np.mean(found):.2f} of the features (chance: {chance})"


def check_degenerate_data_give_finite_scores(estimator: Any) -> None:
    """Check that degenerate features, labels and rows give finite scores."""
    X, Y = _problem()
    empty_rows, useless, constant = Y.copy(), Y.copy(), X.copy()
    empty_rows[::3] = 0
    useless[:, 0], useless[:, 1] = 1, 0
    constant[:, 2] = 7.0
    for name, features, labels in (
        ("rows without candidates", X, empty_rows),
        ("labels that are always or never candidates", X, useless),
        ("a constant feature", constant, Y),
        ("only constant features", np.ones_like(X), Y),
        ("repeated features", X[:, [0, 1, 0, 1]], Y),
        ("one feature", X[:, :1], Y),
        ("one label", X, Y[:, :1]),
        ("only one candidate", X, np.eye(len(X), Y.shape[1], -5) * (np.arange(len(X)) == 5)[:, None]),
        ("all labels candidates everywhere", X, np.ones_like(Y)),
        ("repeated labels", X, Y[:, [0, 0, 1]]),
        ("two rows", X[:2], np.array([[1, 0], [0, 1]])),
        ("five rows", X[:5], Y[:5]),
        ("huge features", X * 1e100, Y),
        ("tiny features", X * 1e-100, Y),
    ):
        fitted = _fit(clone(estimator), features, labels)
        assert np.isfinite(fitted.scores_).all(), f"{name} must give finite scores"
        assert fitted.get_support().any(), f"{name} must still select a feature"


def check_bad_labels_are_rejected(estimator: Any) -> None:
    """Check that labels other than a 0/1 candidate matrix of the right length raise ValueError."""
    X, Y = _problem()
    incomplete = Y.astype(float)
    incomplete[0, 0] = np.nan
    for name, labels in (
        ("-1/+1 labels", 2 * Y - 1),
        ("probabilities", Y * 0.7),
        ("text", np.where(Y > 0, "TRUE", "FALSE")),
        ("counts", Y * 3),
        ("sparse counts", sp.csr_matrix(Y * 3)),
        ("no candidates", np.zeros_like(Y)),
        ("no candidates, sparse", sp.csr_matrix(Y.shape)),
        ("wrong length", Y[:-1]),
        *(() if estimator.takes_unknown_labels else (("unknown labels", incomplete),)),
        ("continuous targets", X[:, 0]),
        ("no labels", None),
    ):
        with _raises(ValueError, what=name):
            _fit(clone(estimator), X, labels)


def check_bad_features_are_rejected(estimator: Any) -> None:
    """Check that NaN, infinity and too few rows raise ValueError."""
    X, Y = _problem()
    for wrong in (np.nan, np.inf):
        features = X.copy()
        features[3, 2] = wrong
        for container in (np.asarray, sp.csr_matrix):
            with _raises(ValueError, what=f"{wrong} in X"):
                _fit(clone(estimator), container(features), Y)
    with _raises(ValueError, what="one row"):
        _fit(clone(estimator), X[:1], Y[:1])


def check_bad_parameters_are_rejected(estimator: Any) -> None:
    """Check that every parameter rejects a value of an unknown type."""
    X, Y = _problem()
    for name in estimator.get_params():
        invalid = clone(estimator).set_params(**{name: _UnknownType()})
        with _raises(ValueError, TypeError, what=f"{name} of an unknown type"):
            _fit(invalid, X, Y)


def check_nonconvergence_warns(estimator: Any) -> None:
    """Check that an iterative method warns if it stops before convergence."""
    if "max_iter" not in estimator.get_params():
        return
    X, Y = _problem()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.set_params(max_iter=1).fit(X, Y)
    assert any(issubclass(w.category, ConvergenceWarning) for w in caught), "max_iter=1 must warn"


def check_works_in_scikit_learn(estimator: Any) -> None:
    """Check pipelines, grid search, cross-validation and `set_output`."""
    X, Y = _problem()
    pipeline = make_pipeline(clone(estimator), RidgeClassifier())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert pipeline.fit(X, Y).predict(X).shape == Y.shape
        scores = cross_validate(clone(pipeline), X, Y, cv=2, error_score="raise")["test_score"]
        assert np.isfinite(scores).all()
        name = pipeline.steps[0][0]
        grid = {f"{name}__n_features_to_select": [2, 4]}
        search = GridSearchCV(clone(pipeline), grid, cv=2, error_score="raise").fit(X, Y)
    assert search.best_estimator_[0].get_support().sum() in (2, 4)
    fitted = _fit(clone(estimator), X, Y)
    frame = fitted.set_output(transform="pandas").transform(X)
    assert list(frame.columns) == list(fitted.get_feature_names_out())


CHECKS: tuple[Callable[[Any], None], ...] = (
    check_ranking_follows_scores,
    check_number_of_selected_features,
    check_containers_agree,
    check_classes_are_one_hot_encoded,
    check_label_order_is_irrelevant,
    check_same_seed_same_result,
    check_input_is_not_modified,
    check_float32_is_kept,
    check_objective_never_increases,
    check_planted_features_are_found,
    check_degenerate_data_give_finite_scores,
    check_bad_labels_are_rejected,
    check_bad_features_are_rejected,
    check_bad_parameters_are_rejected,
    check_nonconvergence_warns,
    check_works_in_scikit_learn,
)
"""All checks of the contract, in order.

Examples
--------
>>> from labelsieve import SumF
>>> CHECKS[0](SumF())  # raises an AssertionError if the check fails
>>> CHECKS[0].__name__
'check_ranking_follows_scores'
"""


class _UnknownType:
    """Type that no parameter accepts."""


def _problem(**options: Any) -> tuple[np.ndarray, np.ndarray]:
    return make_pml(60, 8, n_informative=3, n_labels=4, random_state=0, **options)


def _fit(estimator: Any, X: Any, Y: Any) -> Any:
    """Fit without warnings, which have a separate check."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _seeded(estimator).fit(X, Y)


def _seeded(estimator: Any) -> Any:
    if "random_state" in estimator.get_params() and estimator.random_state is None:
        estimator.set_params(random_state=0)
    return estimator


def _global_random_state() -> str:
    return repr(np.random.get_state())  # noqa: NPY002 - the legacy state is the one to compare


def _assert_same(scores: np.ndarray, expected: np.ndarray, what: str, tolerance: float = 1e-6) -> None:
    difference = np.abs(scores - expected).max() / max(np.abs(expected).max(), np.finfo(float).tiny)
    assert difference <= tolerance, f"{what} changes the scores by {difference:.3g} relative to the largest"


@contextmanager
def _raises(*kinds: type[Exception], what: str) -> Iterator[None]:
    try:
        yield
    except kinds:
        return
    raise AssertionError(f"{what} must raise {' or '.join(kind.__name__ for kind in kinds)}")
