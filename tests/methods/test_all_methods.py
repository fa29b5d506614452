"""What every method promises, run on every method that `METHODS` finds."""

import inspect
from typing import ClassVar

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import labelsieve
from broken_sparse import FAULTS, broken
from labelsieve import METHODS, check_selector
from labelsieve._base import TAKES_BLOCKS, BlockSelector
from labelsieve.contract import CHECKS
from labelsieve.datasets import make_pml


class Undeclared(METHODS["random-ranking"]):
    """Ranks by chance and does not say so."""

    _expected_failed_checks: ClassVar[dict[str, str]] = {}


#: Declared failures that the last bits of a machine's products decide: they may pass elsewhere.
DECIDED_BY_ROUNDING = {("mifs", "check_containers_agree")}

#: Promises about which it says nothing how long a method iterates.
OF_THE_INTERFACE = {
    "check_number_of_selected_features",
    "check_input_is_left_alone",
    "check_same_seed_same_result",
    "check_works_in_scikit_learn",
}


def hasty(method):
    """The method, unfitted, with few iterations: what scikit-learn's own estimators are checked with as well."""
    return method(**({"max_iter": 5} if "max_iter" in inspect.signature(method).parameters else {}))


SELECTORS = [hasty(method) for method in METHODS.values()]


@parametrize_with_checks(SELECTORS)
@pytest.mark.filterwarnings("ignore")  # the checks provoke warnings on purpose
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("slug", METHODS)
def test_contract(slug, check):
    method = METHODS[slug]
    if check.__name__ not in method._expected_failed_checks:
        check(hasty(method) if check.__name__ in OF_THE_INTERFACE else method())
        return
    if (slug, check.__name__) in DECIDED_BY_ROUNDING:
        pytest.skip(method._expected_failed_checks[check.__name__])
    with pytest.raises(AssertionError, match=r"."):
        check(method())


def test_methods_that_need_all_rows_name_those_that_do_not():
    takes_blocks = {method.__name__ for method in METHODS.values() if issubclass(method, BlockSelector)}
    assert set(TAKES_BLOCKS) == takes_blocks


def test_check_selector_names_the_broken_promise():
    with pytest.raises(AssertionError, match="Undeclared fails check_planted_features_are_found: found"):
        check_selector(Undeclared(), sklearn_checks=False)


def test_check_selector_excuses_what_is_declared():
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


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("slug", METHODS)
def test_a_broken_sparse_matrix_is_refused_before_anything_follows_its_indices(slug, fault):
    X, Y = make_pml(30, 6, n_labels=3, random_state=0)
    X, message = abs(X) * (X > 0), FAULTS[fault][1]
    method = METHODS[slug]()
    with pytest.raises(ValueError, match=f"^X must be a sound sparse matrix. .*{message}"):
        method.fit(broken(X, fault), Y)
    with pytest.raises(ValueError, match=f"^y must be a sound sparse matrix. .*{message}"):
        method.fit(X, broken(Y, fault))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("slug", METHODS)
def test_a_broken_sparse_matrix_is_refused_by_all_that_follows_fit(slug):
    X, Y = make_pml(30, 6, n_labels=3, random_state=0)
    selector = METHODS[slug]().fit(X, Y)
    names = ("transform", "inverse_transform", "decision_function", "predict")
    for name in (name for name in names if hasattr(selector, name)):
        given = X if name != "inverse_transform" else selector.transform(X)
        with pytest.raises(ValueError, match=r"^X must be a sound sparse matrix. .* column index of -3\."):
            getattr(selector, name)(broken(given, "index negative"))
