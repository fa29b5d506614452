"""Methods, classifiers and metrics that a configuration names: built-in ones, or user-defined by import path."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from importlib import import_module
from numbers import Real
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from labelsieve._numerics.scaling import Scaling
from labelsieve._numerics.sparse import Matrix, dense
from labelsieve._text import closest, error_text
from labelsieve.bench import RunError
from labelsieve.bench.config import (
    OWN_WEIGHTS,
    UNRANKED,
    ClassifierSpec,
    Conventions,
    Experiment,
    MethodSpec,
    MetricSpec,
)
from labelsieve.classify import LabelwiseSVM, MLkNN
from labelsieve.methods import METHODS
from labelsieve.metrics import Metric


class LinearWeights(BaseEstimator):  # type: ignore[misc]
    """Classifier that scores labels by ``X @ coef_.T`` with the weights of a selector; no intercept.

    Features are scaled to [0, 1] on the training part; sparse ones are divided by their largest value. Set `coef_`,
    restricted to the selected features, before ``fit``, which learns only the scaling.

    Parameters
    ----------
    threshold : float, default=0.5
        Labels with at least this score are predicted.

    Examples
    --------
    >>> weights = LinearWeights()
    >>> weights.coef_ = np.array([[0.5], [0.2]])
    >>> weights.fit(np.array([[2.0], [4.0]]), None).decision_function(np.array([[3.0], [4.0]]))
    array([[0.25, 0.1 ],
           [0.5 , 0.2 ]])
    >>> weights.predict(np.array([[3.0], [4.0]]))
    array([[0, 0],
           [1, 0]])
    """

    coef_: np.ndarray

    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold = threshold

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the scaling of the training part."""
        self.scaling_ = Scaling.learn(X, "minmax")
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Score every label of every row."""
        return np.asarray(self.scaling_.apply(X) @ self.coef_.T)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the labels whose score reaches the threshold."""
        return (self.decision_function(X) >= self.threshold).astype(int)


#: Name -> factory of the classifier.
CLASSIFIERS: dict[str, Callable[..., Any]] = {
    "linear-svm": LabelwiseSVM,
    "rbf-svm": partial(LabelwiseSVM, kernel="rbf"),
    "ml-knn": MLkNN,
    OWN_WEIGHTS: LinearWeights,
}


def use_folder(experiment: Experiment) -> None:
    """Let user-defined modules next to the configuration be imported."""
    folder = experiment.folder
    if folder is not None and experiment.import_paths() and folder not in sys.path:
        sys.path.append(folder)


def build_method(spec: MethodSpec) -> Any:
    """Make the selector of a configuration, unfitted."""
    known = [*METHODS, *UNRANKED]
    factory = METHODS.get(spec.method) or _import_class(spec.method, "methods", known)
    return _make(factory, spec.params, f"methods: {spec.name}")


def build_classifier(spec: ClassifierSpec, conventions: Conventions) -> Any:
    """Make the classifier of a configuration, unfitted, with the experiment's conventions."""
    factory = CLASSIFIERS.get(spec.classifier) or _import_class(spec.classifier, "classifiers", CLASSIFIERS)
    params = dict(spec.params)
    if spec.classifier in ("linear-svm", "rbf-svm"):
        params = {"one_class": conventions.one_class, **params}
    return _make(factory, params, f"classifiers: {spec.name}")


def user_metric(spec: MetricSpec) -> Metric:
    """Make a metric of a user-defined function, which gets plain arrays of its own."""
    function = _import_metric(spec)
    dtype = int if spec.needs == "predictions" else float

    def measure(Y_true: Matrix, outputs: Matrix) -> float:
        value = function(np.array(dense(Y_true), dtype=int), np.array(dense(outputs), dtype=dtype))
        if not isinstance(value, Real):
            raise TypeError(f"{spec.name} must return one number, got {type(value).__name__}.")
        return float(value)

    return Metric(measure, spec.direction, spec.needs)


def identify(estimator: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Name the class of an estimator and its parameters as plain values.

    The parameters are those given if the estimator has no ``get_params``.

    Examples
    --------
    >>> from labelsieve import SumF
    >>> identify(SumF(3), {})
    {'class': 'labelsieve.methods.sum_f:SumF', 'params': {'n_features_to_select': 3}}
    """
    kind = type(estimator)
    params = given
    if hasattr(estimator, "get_params"):
        with _user_code(f"{kind.__name__}: get_params failed"):
            params = estimator.get_params(deep=False)
    plain = (bool, int, float, str, type(None))
    revision = getattr(kind, "_revision", None)
    return {
        "class": f"{kind.__module__}:{kind.__qualname__}",
        **({} if revision is None else {"revision": revision}),
        **_source(kind),
        "params": {
            name: value if isinstance(value, plain) else repr(value) for name, value in sorted(params.items())
        },
    }


def identify_method(spec: MethodSpec) -> dict[str, Any]:
    """Name the class and the parameters of a method; for references that rank nothing only their name."""
    return {"method": spec.method} if spec.method in UNRANKED else identify(build_method(spec), spec.params)


def identify_metric(spec: MetricSpec) -> str | dict[str, Any]:
    """Name what the values of a metric depend on: for a user-defined one also its source."""
    if not spec.is_user_defined:
        return spec.name
    function = inspect.unwrap(_import_metric(spec))
    # Other callables, such as partial functions, have no file.
    has_file = inspect.isfunction(function)
    source = _source(function if has_file else import_module(spec.metric.partition(":")[0]))
    return {"name": spec.name, "metric": spec.metric, "needs": spec.needs, **source}


def _source(kind: Any) -> dict[str, str]:
    """Return the checksum of the file of user-defined code: an edited method is run again."""
    if _is_ours(kind):
        return {}
    try:
        path = Path(inspect.getfile(kind))
    except (OSError, TypeError):
        return {}
    is_installed = {"site-packages", "dist-packages"} & set(path.parts)
    return {} if is_installed else {"source": hashlib.sha256(path.read_bytes()).hexdigest()}


def _is_ours(kind: Any) -> bool:
    module: str = kind.__name__ if inspect.ismodule(kind) else kind.__module__
    return module.partition(".")[0] == "labelsieve"


def copy_for_user_code(estimator: Any, data: Matrix) -> Matrix:
    """Copy data for a user-defined estimator, which may change it in place; ours get the data itself."""
    return data if _is_ours(type(estimator)) else deepcopy(data)


def feature_order(selector: Any, n_features: int) -> np.ndarray:
    """Return the features of a fitted selector, best first, by the first of the usual attributes it has."""
    signs = {"ranking_": 1, "scores_": -1, "feature_importances_": -1}
    kind = type(selector).__name__
    name = next((name for name in signs if hasattr(selector, name)), None)
    if name is None:
        raise TypeError(
            f"{kind} must have ranking_, scores_ or feature_importances_ after fit, got none of them."
        )
    values = np.asarray(getattr(selector, name), dtype=float)
    if values.shape != (n_features,) or np.isnan(values).any():
        raise ValueError(
            f"{name} of {kind} must have a number for each of the {n_features} features, got shape {values.shape!r} "
            f"with {int(np.isnan(values).sum())} NaN."
        )
    is_place = np.isfinite(values) & (values >= 1) & (values == np.rint(values))
    if name == "ranking_" and not is_place.all():
        raise ValueError(
            f"ranking_ of {kind} must give the place of every feature, from 1 for the best, got {values.min():g} to "
            f"{values.max():g}. If it lists the features, best first, use np.argsort(ranking_) + 1."
        )
    return np.argsort(signs[name] * values, kind="stable").astype(np.int32)


def _make(factory: Callable[..., Any], params: dict[str, Any], where: str) -> Any:
    with _user_code(where):
        try:
            return factory(**params)
        except TypeError as error:
            known = ", ".join(inspect.signature(factory).parameters)
            raise TypeError(f"{error}; its parameters are {known}") from error


def _import_class(path: str, key: str, known: Iterable[str]) -> type:
    """Import ``package.module:Class``; anything but a class with ``fit`` is rejected before it is called."""
    if ":" not in path:
        raise RunError(
            f"{key}: expected a known name or an import path module:Class, got {path!r}; {closest(path, known)}"
        )
    found = _import(path, key)
    if not inspect.isclass(found) or not callable(getattr(found, "fit", None)):
        raise RunError(f"{key}: expected a class with fit, got {path!r}.")
    return found


def _import_metric(spec: MetricSpec) -> Callable[..., Any]:
    found: Callable[..., Any] = _import(spec.metric, "metrics")
    if inspect.isclass(found) or not callable(found):
        raise RunError(f"metrics: expected a function, got {spec.metric!r}.")
    return found


def _import(path: str, key: str) -> Any:
    module, _, name = path.partition(":")
    with _user_code(f"{key}: {path!r} cannot be imported"):
        return getattr(import_module(module), name)


@contextmanager
def _user_code(where: str) -> Iterator[None]:
    """Turn any error of user-defined code into one `RunError`."""
    try:
        yield
    except (Exception, SystemExit) as error:
        raise RunError(f"{where}: {error_text(error)}") from None
