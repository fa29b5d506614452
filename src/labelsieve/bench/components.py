"""Methods, classifiers and metrics of a configuration, built-in or user-defined."""

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
from labelsieve.bench.rivals import RIVALS
from labelsieve.classify import LabelwiseSVM, MLkNN
from labelsieve.methods import METHODS
from labelsieve.metrics import Metric


class LinearWeights(BaseEstimator):  # type: ignore[misc]
    """Classifier that scores labels by ``X @ coef_.T`` with the weights of a selector and no intercept.

    Features are scaled to [0, 1] on the training rows. Sparse features are divided by their largest value. Before
    ``fit``, set `coef_` to the weights of the selected features. ``fit`` learns only the scaling.

    Parameters
    ----------
    threshold : float, default=0.5
        Minimum score of a predicted label.

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
        """Learn the scaling of the features."""
        self.scaling_ = Scaling.learn(X, "minmax")
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Compute the score of every label for every row."""
        return np.asarray(self.scaling_.apply(X) @ self.coef_.T)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the labels with a score of at least the threshold."""
        return (self.decision_function(X) >= self.threshold).astype(int)


#: Name -> factory of the classifier.
CLASSIFIERS: dict[str, Callable[..., Any]] = {
    "linear-svm": LabelwiseSVM,
    "rbf-svm": partial(LabelwiseSVM, kernel="rbf"),
    "ml-knn": MLkNN,
    OWN_WEIGHTS: LinearWeights,
}


def use_folder(experiment: Experiment) -> None:
    """Make user-defined modules next to the configuration importable."""
    folder = experiment.folder
    if folder is not None and experiment.import_paths() and folder not in sys.path:
        sys.path.append(folder)


def build_method(spec: MethodSpec) -> Any:
    """Build an unfitted selector."""
    known = [*METHODS, *RIVALS, *UNRANKED]
    factory = (
        METHODS.get(spec.method) or RIVALS.get(spec.method) or _import_class(spec.method, "methods", known)
    )
    return _make(factory, spec.params, f"methods: {spec.name}")


def build_classifier(spec: ClassifierSpec, conventions: Conventions) -> Any:
    """Build an unfitted classifier that follows the conventions."""
    factory = CLASSIFIERS.get(spec.classifier) or _import_class(spec.classifier, "classifiers", CLASSIFIERS)
    params = dict(spec.params)
    if spec.classifier in ("linear-svm", "rbf-svm"):
        params = {"one_class": conventions.one_class, **params}
    return _make(factory, params, f"classifiers: {spec.name}")


def user_metric(spec: MetricSpec) -> Metric:
    """Wrap a user-defined function as a metric that gets copies as plain arrays."""
    function = _import_metric(spec)
    dtype = int if spec.needs == "predictions" else float

    def measure(Y_true: Matrix, outputs: Matrix) -> float:
        value = function(np.array(dense(Y_true), dtype=int), np.array(dense(outputs), dtype=dtype))
        if not isinstance(value, Real):
            raise TypeError(f"{spec.name} must return a number, got {type(value).__name__}.")
        return float(value)

    return Metric(measure, spec.direction, spec.needs)


def identify(estimator: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Describe the class and parameters of an estimator as plain values.

    If the estimator has no ``get_params``, its parameters are `given`.

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
    """Describe the class and parameters of a method, or only its name if it ranks nothing."""
    return {"method": spec.method} if spec.method in UNRANKED else identify(build_method(spec), spec.params)


def identify_metric(spec: MetricSpec) -> str | dict[str, Any]:
    """Describe a metric by its name and, if it is user-defined, its source."""
    if not spec.is_user_defined:
        return spec.name
    function = inspect.unwrap(_import_metric(spec))
    # Callables such as partial functions have no source file.
    has_file = inspect.isfunction(function)
    source = _source(function if has_file else import_module(spec.metric.partition(":")[0]))
    return {"name": spec.name, "metric": spec.metric, "needs": spec.needs, **source}


def _source(kind: Any) -> dict[str, str]:
    """Return the checksum of a user-defined source file, so that edited code runs again."""
    if _is_built_in(kind):
        return {}
    try:
        path = Path(inspect.getfile(kind))
    except (OSError, TypeError):
        return {}
    is_installed = {"site-packages", "dist-packages"} & set(path.parts)
    return {} if is_installed else {"source": hashlib.sha256(path.read_bytes()).hexdigest()}


def _is_built_in(kind: Any) -> bool:
    module: str = kind.__name__ if inspect.ismodule(kind) else kind.__module__
    return module.partition(".")[0] == "labelsieve"


def copy_for_user_code(estimator: Any, data: Matrix) -> Matrix:
    """Copy data for a user-defined estimator because it may change them in place."""
    return data if _is_built_in(type(estimator)) else deepcopy(data)


def feature_order(selector: Any, n_features: int) -> np.ndarray:
    """Return the features of a fitted selector, best first.

    The order comes from ranking_, scores_ or feature_importances_, the first that exists.
    """
    signs = {"ranking_": 1, "scores_": -1, "feature_importances_": -1}
    kind = type(selector).__name__
    name = next((name for name in signs if hasattr(selector, name)), None)
    if name is None:
        raise TypeError(
            f"{kind} must have ranking_, scores_ or feature_importances_ after fit, got none of these."
        )
    values = np.asarray(getattr(selector, name), dtype=float)
    if values.shape != (n_features,) or np.isnan(values).any():
        raise ValueError(
            f"{name} of {kind} must have shape ({n_features},) and no NaN, got shape {values.shape!r} with "
            f"{int(np.isnan(values).sum())} NaN."
        )
    is_place = np.isfinite(values) & (values >= 1) & (values == np.rint(values))
    if name == "ranking_" and not is_place.all():
        raise ValueError(
            f"ranking_ of {kind} must have an integer rank for every feature, 1 for the best, got values from "
            f"{values.min():g} to {values.max():g}. If it lists features, best first, use np.argsort(ranking_) + 1."
        )
    return np.argsort(signs[name] * values, kind="stable").astype(np.int32)


def _make(factory: Callable[..., Any], params: dict[str, Any], where: str) -> Any:
    with _user_code(where):
        try:
            return factory(**params)
        except TypeError as error:
            known = ", ".join(inspect.signature(factory).parameters)
            raise TypeError(f"{error}; the parameters are {known}") from error


def _import_class(path: str, key: str, known: Iterable[str]) -> type:
    """Import ``package.module:Class`` and check that it is a class with ``fit``."""
    if ":" not in path:
        raise RunError(
            f"{key}: expected a known name or an import path module:Class, got {path!r}; {closest(path, known)}"
        )
    found = _import(path, key)
    if not inspect.isclass(found) or not callable(getattr(found, "fit", None)):
        raise RunError(f"{key}: expected a class with a fit method, got {path!r}.")
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
    """Convert any error in user-defined code to a `RunError`."""
    try:
        yield
    except (Exception, SystemExit) as error:
        raise RunError(f"{where}: {error_text(error)}") from None
