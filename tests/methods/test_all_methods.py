"""Tests of the selector contract and of shared behavior, for all methods in `METHODS`."""

import inspect
from importlib import import_module
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import parametrize_with_checks

import labelsieve
from broken_sparse import broken
from chunked_rows import check_chunked_equals_in_memory
from labelsieve import METHODS, check_selector
from labelsieve._base import TAKES_BLOCKS, BlockSelector
from labelsieve._prediction import LinearLabelPredictor
from labelsieve.contract import CHECKS
from labelsieve.datasets import make_pml


class Undeclared(METHODS["random-ranking"]):
    """Random ranking that does not declare its failing check."""

    _expected_failed_checks: ClassVar[dict[str, str]] = {}


#: Declared failures that depend on rounding, so they may pass on other machines.
ROUNDING_FAILURES = {("mifs", "check_containers_agree")}

#: Checks that do not depend on the number of iterations.
INTERFACE_CHECKS = {
    "check_number_of_selected_features",
    "check_input_is_not_modified",
    "check_same_seed_same_result",
    "check_works_in_scikit_learn",
}


def with_few_iterations(method):
    """Create a selector with few iterations, as scikit-learn does to test its own estimators."""
    return method(**({"max_iter": 5} if "max_iter" in inspect.signature(method).parameters else {}))


def seeded(selector):
    """Set the seed of a selector if it has one."""
    return selector.set_params(**({"random_state": 0} if "random_state" in selector.get_params() else {}))


SELECTORS = [with_few_iterations(method) for method in METHODS.values()]


@parametrize_with_checks(SELECTORS)
@pytest.mark.filterwarnings("ignore")  # some checks provoke warnings
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("slug", METHODS)
def test_contract(slug, check):
    method = METHODS[slug]
    if check.__name__ not in method._expected_failed_checks:
        check(with_few_iterations(method) if check.__name__ in INTERFACE_CHECKS else method())
        return
    if (slug, check.__name__) in ROUNDING_FAILURES:
        pytest.skip(method._expected_failed_checks[check.__name__])
    with pytest.raises(AssertionError, match=r"."):
        check(method())


@pytest.mark.parametrize("slug", METHODS)
def test_blocks_of_rows_give_the_same_scores_or_an_error(slug):
    if issubclass(METHODS[slug], BlockSelector):
        check_chunked_equals_in_memory(METHODS[slug]())
        return
    X, Y = (pytest.importorskip("dask.array").from_array(np.eye(4), chunks=2) for _ in range(2))
    with pytest.raises(TypeError, match=METHODS[slug].__name__):
        METHODS[slug]().fit(X, Y)


def test_list_of_methods_that_accept_blocks_is_complete():
    takes_blocks = {method.__name__ for method in METHODS.values() if issubclass(method, BlockSelector)}
    assert set(TAKES_BLOCKS) == takes_blocks


def test_check_selector_names_the_failed_check():
    with pytest.raises(AssertionError, match=r"Undeclared .*check_planted_features_are_found"):
        check_selector(Undeclared(), sklearn_checks=False)


def test_check_selector_skips_declared_failures():
    passed = check_selector(METHODS["random-ranking"](), sklearn_checks=False)
    assert len(passed) == len(CHECKS) - 1


@pytest.mark.parametrize("slug", METHODS)
def test_method_is_public(slug):
    name = METHODS[slug].__name__
    module = f"methods.{slug.replace('-', '_')}"
    line = f"from .{module} import {name} as {name}"
    assert name in labelsieve.__all__, f"add to src/labelsieve/__init__.pyi: {line}"


@pytest.mark.parametrize("slug", METHODS)
def test_every_parameter_is_constrained_and_documented(slug):
    method = METHODS[slug]
    for name in inspect.signature(method).parameters:
        assert name in method._parameter_constraints
        assert name in (inspect.getdoc(method) or ""), f"{name} is not documented"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("slug", METHODS)
def test_invalid_sparse_matrices_are_rejected_by_all_public_methods(slug):
    X, Y = make_pml(30, 6, n_labels=3, random_state=0)
    X = abs(X)
    for given in ((broken(X, "index too large"), Y), (X, broken(Y, "index too large"))):
        with pytest.raises(ValueError, match="sparse"):
            METHODS[slug]().fit(*given)
    selector = METHODS[slug]().fit(X, Y)
    names = ("transform", "inverse_transform", "decision_function", "predict")
    for name in (name for name in names if hasattr(selector, name)):
        given = X if name != "inverse_transform" else selector.transform(X)
        with pytest.raises(ValueError, match=r"^X .*sparse"):
            getattr(selector, name)(broken(given, "index negative"))


#: Minimum mean fraction of the five informative features in the top five, of 30 (chance 0.17) or 20 (0.25).
PLANTED = [
    ("drmfs", {}, (200, 30, 5), 0.6),
    ("fpml", {}, (200, 30, 5), 0.6),
    ("lcfs-pml", {}, (200, 30, 3), 0.7),
    ("mifs", {}, (150, 20, 3), 0.6),
    ("mifs", {"update": "jacobi"}, (150, 20, 3), 0.6),
    ("mifs", {"update": "unit-ball"}, (150, 20, 3), 0.6),
    ("pmfs-lrs", {}, (200, 30, 3), 0.7),
    ("pml3er", {}, (200, 30, 5), 0.5),
    ("pml-fsso", {}, (150, 20, 3), 0.6),
    ("pml-fsso", {"update": "coded"}, (150, 20, 3), 0.6),
    ("pml-ld", {}, (200, 30, 5), 0.8),
    ("pml-ld", {"stage": 2}, (200, 30, 5), 0.5),
    ("pml-lfc", {}, (200, 30, 5), 0.7),
    ("scmfs", {}, (150, 20, 3), 0.6),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("noise", [0.0, 0.2, 0.4])
@pytest.mark.parametrize(("slug", "options", "size", "minimum"), PLANTED, ids=str)
def test_informative_features_rank_first_at_all_noise_rates(slug, options, size, minimum, noise):
    n_rows, n_features, n_seeds = size
    n_labels = 10 if slug == "scmfs" else 5
    found = []
    for seed in range(n_seeds):
        X, Y, _, informative = make_pml(
            n_rows, n_features, n_labels=n_labels, noise=noise, return_truth=True, random_state=seed
        )
        model = seeded(METHODS[slug](n_features_to_select=5, **options)).fit(X, Y)
        found.append(model.get_support()[informative].mean())
    assert np.mean(found) > minimum


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("slug", "options"),
    [
        ("drmfs", {}),
        ("drmfs", {"bandwidth": "median"}),
        ("mifs", {"n_components": 3, "max_iter": 100, "tol": 1e-2}),
        ("mifs", {"n_components": 3, "max_iter": 100, "tol": 1e-2, "update": "unit-ball"}),
        ("particle-map", {}),
        ("particle-vls", {}),
        ("pml-fsso", {}),
        ("pml-fsso", {"update": "coded"}),
    ],
    ids=str,
)
def test_permuting_the_labels_keeps_the_scores_and_permutes_the_coefficients(slug, options):
    X, Y = make_pml(80, 12, n_labels=7, random_state=3)
    order = np.random.default_rng(1).permutation(7)
    model = seeded(METHODS[slug](**options)).fit(X, Y)
    permuted = seeded(METHODS[slug](**options)).fit(X, Y[:, order])
    rtol = 1e-6 if slug == "mifs" else 1e-9
    np.testing.assert_allclose(permuted.scores_, model.scores_, rtol=rtol)
    np.testing.assert_allclose(permuted.coef_, model.coef_[order], rtol=max(rtol, 1e-7), atol=1e-10)


#: Methods whose objective must never increase, with their weights and options.
DESCENTS = [
    ("drmfs", ("alpha", "beta", "gamma"), {"bandwidth": "median"}),
    ("drmfs", ("alpha", "beta", "gamma"), {"bandwidth": "median", "solver": "multiplicative"}),
    ("fpml", ("lambda1", "lambda2", "lambda3"), {"n_components": 4}),
    ("fpml", ("lambda1", "lambda2", "lambda3"), {"n_components": 4, "reg_all": True}),
    ("lcfs-pml", ("alpha", "beta", "gamma"), {}),
    ("mifs", ("alpha", "beta", "gamma"), {"bandwidth": "median"}),
    ("mifs", ("alpha", "beta", "gamma"), {"bandwidth": "median", "update": "jacobi"}),
    ("mifs", ("alpha", "beta", "gamma"), {"bandwidth": "median", "update": "unit-ball"}),
    ("mifs", ("alpha", "beta"), {"gamma": 0.0, "update": "unit-ball"}),
    ("pmfs-lrs", ("alpha", "beta", "lam", "mu", "eta"), {}),
    ("pml3er", ("lambda1", "lambda2", "lambda3"), {}),
    ("pml-fsla", ("alpha", "beta", "gamma"), {}),
    ("pml-fsla", ("alpha", "beta", "gamma"), {"update": "exact"}),
    ("pml-fsso", ("alpha", "beta", "gamma", "theta"), {}),
    ("pml-ld", ("lambda1", "lambda2"), {"n_groups": 3, "bandwidth": "median"}),
    ("pml-ld", ("lambda1", "lambda2", "C1", "C2"), {"stage": 2}),
    ("pml-lfc", ("lambda1", "lambda2"), {"similarity": "and"}),
    ("pml-lfc", ("lambda1", "lambda2"), {"similarity": "or"}),
    ("rfs", ("alpha",), {}),
    ("scmfs", ("alpha", "beta", "gamma"), {}),
    ("scmfs", ("alpha", "beta", "gamma"), {"update": "published"}),
]


@pytest.mark.filterwarnings("ignore")  # some weights remove all features, and max_iter is too small
@pytest.mark.parametrize("shape", [(40, 8), (12, 25)])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("slug", "names", "options"), DESCENTS, ids=str)
def test_objective_never_increases_with_random_weights(slug, names, options, seed, shape):
    rng = np.random.default_rng(seed)
    X, Y = rng.random(shape), (rng.random((shape[0], 6)) < 0.4).astype(float)
    Y[0], Y[1] = 0, 1
    weights = dict(zip(names, 10 ** rng.uniform(-2, 2, len(names)), strict=True))
    model = seeded(METHODS[slug](**weights, **options, max_iter=100, tol=0.0)).fit(X, Y)
    history = model.objective_history_
    # PML-FSSO takes steps for a smoothed norm, but its objective has the exact norm.
    rounding = 1e-8 if slug == "pml-fsso" else 1e-10
    assert np.diff(history).max() <= rounding * np.abs(history).max()


@pytest.mark.parametrize(("slug", "options"), [("mifs", {"update": "unit-ball"}), ("pml-fsso", {})], ids=str)
def test_equidistant_rows_have_the_same_neighbours_dense_and_sparse(slug, options):
    rng = np.random.default_rng(6)
    X = (rng.random((80, 12)) < 0.3).astype(float)
    Y = (X[:, [0, 3, 5]] + (rng.random((80, 3)) < 0.2) > 0).astype(float)
    dense, sparse = (
        seeded(METHODS[slug](**options, bandwidth="median")).fit(data, Y).scores_
        for data in (X, sp.csr_matrix(X))
    )
    np.testing.assert_allclose(sparse, dense, rtol=1e-6)


@pytest.mark.parametrize(
    ("slug", "n_labels", "n_components", "expected"),
    [
        *((slug, *case) for slug in ("pml-fsla", "scmfs") for case in
          ((10, None, 5), (1, None, 2), (110, None, 50), (110, 7, 7))),
        *(("pml-fsso", 5, *case) for case in ((0.8, 6), (1.0, 7), (3, 3))),
    ],
    ids=str,
)  # fmt: skip
def test_size_of_the_latent_space(monkeypatch, slug, n_labels, n_components, expected):
    sizes = []
    module = import_module(METHODS[slug].__module__)
    start = module.random_start
    monkeypatch.setattr(module, "random_start", lambda X, Y, n, rng: sizes.append(n) or start(X, Y, n, rng))
    X, Y = make_pml(30, 7, n_informative=3, n_labels=n_labels, random_state=4)
    METHODS[slug](n_components=n_components, tol=1.0).fit(X, Y)
    assert sizes == [expected]


@pytest.mark.parametrize("slug", ["gmm", "lsmfs", "mdmr", "pml-fsmir", "rfs", "sum-f", "sum-mi"])
def test_features_without_information_keep_their_order_with_a_warning(slug):
    with pytest.warns(UserWarning, match=METHODS[slug].__name__):
        selector = METHODS[slug]().fit(np.ones((6, 4)), np.eye(6)[:, :3])
    assert selector.ranking_.tolist() == [1, 2, 3, 4]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("slug", "options"),
    [
        ("drmfs", {}),
        ("scmfs", {}),
        *(("mifs", {"update": update}) for update in ("gauss-seidel", "jacobi", "unit-ball")),
        ("mifs", {"init": "balanced"}),
    ],
    ids=str,
)
def test_constant_features_score_zero(slug, options):
    X, Y = make_pml(60, 8, random_state=0)
    X[:, 2], X[:, 5] = 7.0, 0.0
    for data in (X, sp.csr_matrix(X * (np.arange(8) != 2))):
        scores = seeded(METHODS[slug](**options)).fit(data, Y).scores_
        np.testing.assert_array_equal(scores[[2, 5]], 0)


@pytest.mark.parametrize("slug", ["evidence", "gmm", "sum-f", "sum-mi"])
def test_constant_labels_do_not_change_the_scores(slug):
    X, Y = make_pml(60, 8, random_state=0)
    constant = np.column_stack([np.zeros(60), Y, np.ones(60)])
    expected = METHODS[slug]().fit(X, Y).scores_
    np.testing.assert_allclose(METHODS[slug]().fit(X, constant).scores_, expected, rtol=1e-12)


@pytest.mark.parametrize("slug", ["pml-fp", "pml-lc"])
@pytest.mark.parametrize("Y", [np.ones((10, 1)), np.eye(10)[:, :1]], ids=["always", "once"])
def test_labels_that_cannot_be_ranked_give_zero_scores_and_a_warning(slug, Y):
    with pytest.warns(UserWarning, match=METHODS[slug].__name__):
        selector = METHODS[slug]().fit(np.random.default_rng(0).normal(size=(10, 3)), Y)
    assert not selector.scores_.any()
    assert np.isfinite(selector.objective_history_).all()


LINEAR = [slug for slug in METHODS if issubclass(METHODS[slug], LinearLabelPredictor)]


@pytest.mark.parametrize("slug", LINEAR)
def test_decision_is_linear_in_scaled_features(slug):
    X, Y = make_pml(100, 10, noise=0.0, random_state=2)
    X = 5 * X - 2  # makes the scaling matter
    scales = [{}]
    if "scale" in inspect.signature(METHODS[slug]).parameters and slug != "scmfs":
        scales = [{"scale": scale} for scale in ("standard", "minmax", None)]
    for options in scales:
        model = seeded(METHODS[slug](**options)).fit(X, Y)
        decision = model.decision_function(X)
        expected = model.scaling_.apply(X) @ model.coef_.T + model.intercept_
        np.testing.assert_allclose(decision, expected, atol=1e-9)
        np.testing.assert_allclose(model.decision_function(sp.csr_matrix(X)), decision, atol=1e-9)
        if hasattr(model, "threshold_"):
            np.testing.assert_array_equal(model.predict(X), decision >= model.threshold_)
        elif not hasattr(model, "n_labels_predicted_"):
            np.testing.assert_array_equal(model.predict(X), decision >= 0.5)
    classes = np.array(["low", "middle", "top"])[np.minimum((3 * X[:, 0]).astype(int) % 3, 2)]
    assert set(seeded(METHODS[slug]()).fit(X, classes).predict(X)) <= set(classes)


@pytest.mark.parametrize("shape", [(80, 12), (25, 40)])
@pytest.mark.parametrize(
    ("slug", "options"),
    [
        ("lcfs-pml", {}),
        ("pmfs-lrs", {"lam": 3.0, "max_iter": 1000}),
        ("pmfs-lrs", {"lam": 3.0, "max_iter": 1000, "solver": "authors"}),
        ("pml3er", {}),
        ("pml-lfc", {}),
    ],
    ids=str,
)
def test_sparse_features_give_the_same_model(slug, options, shape):
    X, Y = make_pml(*shape, density=0.5, random_state=1)
    expected = METHODS[slug](**options).fit(X, Y)
    atol = 1e-7 if slug == "pmfs-lrs" else 1e-8
    for kind in (sp.csr_matrix, sp.csc_matrix):
        found = METHODS[slug](**options).fit(kind(X), sp.csr_matrix(Y))
        np.testing.assert_allclose(found.coef_, expected.coef_, atol=atol)
        np.testing.assert_allclose(found.intercept_, expected.intercept_, atol=atol)
        np.testing.assert_allclose(found.label_confidence_.toarray(), expected.label_confidence_, atol=atol)
        np.testing.assert_allclose(
            found.decision_function(kind(X)), expected.decision_function(X), atol=10 * atol
        )


@pytest.mark.parametrize(
    ("slug", "options"),
    [
        ("evidence", {"redundancy": -1}),
        ("evidence", {"redundancy": "best"}),
        ("evidence", {"redundancy": np.nan}),
        ("evidence", {"threshold": np.inf}),
        ("evidence", {"ridge": np.inf}),
        ("evidence", {"tolerance": -0.1}),
        ("evidence", {"n_folds": 1}),
        ("evidence", {"max_steps": 0}),
        ("evidence", {"n_features_to_select": "all"}),
        ("particle-map", {"alpha": 1.0}),
        ("particle-map", {"threshold": 0}),
        ("particle-vls", {"cv": 1}),
        ("particle-vls", {"weights": "slope"}),
        ("pml-fp", {"C3": -1.0}),
        ("pml-fsmir", {"alpha": 0}),
        ("pml-fsmir", {"init": "zeros"}),
        ("pml-lc", {"C1": 0}),
        ("pml-lc", {"tol": -1e-3}),
        ("rfs", {"alpha": "automatic"}),
        ("rfs", {"alpha": 0}),
        ("sum-f", {"n_features_to_select": "auto"}),
        ("pml-fsmir", {"n_components": 7}),
        ("pml-fsmir", {"w_update": "printed"}),
        ("sum-mi", {"n_bins": 1}),
    ],
    ids=str,
)
def test_invalid_parameter_values_are_rejected(slug, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        METHODS[slug](**options).fit(*make_pml(30, 6, random_state=0))
