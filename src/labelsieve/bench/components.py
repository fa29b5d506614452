"""Methods, classifiers and metrics by the names of a configuration: built-in ones, or anybody's by import path."""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from labelsieve._numerics.typing import Matrix
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
from labelsieve.bench.own_weights import OwnWeights
from labelsieve.classify import LabelwiseSVM, MLkNN
from labelsieve.methods import METHODS

__all__ = [
    "CLASSIFIERS",
    "build_classifier",
    "build_method",
    "feature_order",
    "for_keeps",
    "identify",
    "identify_classifier",
    "identify_method",
    "identify_metric",
    "import_metric",
    "use_folder",
]

#: Name -> what makes the classifier from parameters.
CLASSIFIERS: dict[str, Callable[..., Any]] = {
    "linear-svm": LabelwiseSVM,
    "rbf-svm": partial(LabelwiseSVM, kernel="rbf"),
    "ml-knn": MLkNN,
    OWN_WEIGHTS: OwnWeights,
}

#: Folders that experiments of this process put on the path, that of the last one at the end.
_folders: list[str] = []


def use_folder(experiment: Experiment) -> None:
    """Let modules beside the configuration be imported, if it names any.

    Other experiments of this process may have modules of the same names beside them: those are forgotten.
    """
    folder = experiment.folder if experiment.import_paths() else None
    if folder is None:
        return
    others = [other for other in _folders if other != folder]
    if others and (_folders[-1] != folder or not set(others).isdisjoint(sys.path)):
        sys.path[:] = [path for path in sys.path if path not in others]
        beside = tuple(os.path.join(other, "") for other in others)
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None) or ""
            # The environment may lie there, too: what is installed is nobody's own.
            if file.startswith(beside) and not _is_installed(Path(file)):
                del sys.modules[name]
    if folder not in sys.path or folder in _folders:
        _folders[:] = [*others, folder]
    if folder not in sys.path:
        sys.path.append(folder)


def _is_installed(path: Path) -> bool:
    return bool({"site-packages", "dist-packages"} & set(path.parts))


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


def identify(estimator: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Name the class of an estimator and its parameters, or those given if it does not tell them, as plain values.

    Examples
    --------
    >>> from labelsieve import SumF
    >>> identify(SumF(3), {})
    {'class': 'labelsieve.methods.sum_f:SumF', 'params': {'n_features_to_select': 3}}
    """
    kind = type(estimator)
    params = given
    if hasattr(estimator, "get_params"):
        try:
            params = estimator.get_params(deep=False)
        except (Exception, SystemExit) as error:
            raise RunError(
                f"{kind.__name__}: it cannot tell its parameters ({error_text(error)}); its __init__ has to keep "
                "each under its own name."
            ) from None
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


def import_metric(spec: MetricSpec) -> Callable[..., Any]:
    """Import a metric of one's own; what cannot be called as one is refused before it is called."""
    found: Callable[..., Any] = _import(spec.metric, "metrics")
    if inspect.isclass(found) or not callable(found):
        raise RunError(f"metrics: a function was expected, got {spec.metric!r}; name a function.")
    try:
        signature = inspect.signature(found)
    except ValueError:  # compiled code need not tell
        return found
    try:
        signature.bind("Y_true", spec.needs)
    except TypeError as error:
        raise RunError(
            f"metrics: {spec.metric!r} is called with the true labels and {spec.needs}, but {error}; change its "
            "parameters."
        ) from None
    return found


def identify_method(spec: MethodSpec) -> dict[str, Any]:
    """Name the class and the parameters of a method."""
    return identify(build_method(spec), spec.params)


def identify_classifier(spec: ClassifierSpec, conventions: Conventions) -> dict[str, Any]:
    """Name the class and the parameters of a classifier under the experiment's conventions."""
    return identify(build_classifier(spec, conventions), spec.params)


def identify_metric(spec: MetricSpec) -> str | dict[str, Any]:
    """Name what the values of a metric depend on: of one's own also what it looks at and its source."""
    if not spec.is_own:
        return spec.name
    function = inspect.unwrap(import_metric(spec))
    # Any other callable has no file of its own.
    has_file = inspect.isfunction(function)
    source = _source(function if has_file else import_module(spec.metric.partition(":")[0]))
    return {"name": spec.name, "metric": spec.metric, "needs": spec.needs, **source}


def _source(kind: Any) -> dict[str, str]:
    """Checksum of the file of what is not installed: whoever edits a method wants it run again."""
    if _is_ours(kind):
        return {}
    try:
        path = Path(inspect.getfile(kind))
    except (OSError, TypeError):
        return {}
    if _is_installed(path):
        return {}
    return {"source": hashlib.sha256(path.read_bytes()).hexdigest()}


def _is_ours(kind: Any) -> bool:
    module: str = kind.__name__ if inspect.ismodule(kind) else kind.__module__
    return module.partition(".")[0] == "labelsieve"


def for_keeps(estimator: Any, data: Matrix) -> Matrix:
    """Give an estimator data that it may change: a copy, as it lies in memory, unless it is of this package.

    What is judged later has to be the data of the fold, and our own leave what they get as it is.
    """
    return data if _is_ours(type(estimator)) else deepcopy(data)


def feature_order(selector: Any, n_features: int) -> np.ndarray:
    """Return the features of a fitted selector, best first, by whichever usual attribute it has."""
    signs = {"ranking_": 1, "scores_": -1, "feature_importances_": -1}
    name = next((name for name in signs if hasattr(selector, name)), None)
    if name is None:
        raise TypeError(
            f"{type(selector).__name__} must have ranking_, scores_ or feature_importances_ after fit, "
            "got none of them."
        )
    values = _numbers(getattr(selector, name), f"{name} of {type(selector).__name__}")
    if values.shape != (n_features,):
        raise TypeError(
            f"{type(selector).__name__} must rank all {n_features} features, got shape {values.shape!r}."
        )
    if np.isnan(values).any():
        raise ValueError(f"{type(selector).__name__} must rank by numbers, got NaN in {name}.")
    is_place = np.isfinite(values) & (values >= 1) & (values == np.rint(values))
    if name == "ranking_" and not is_place.all():
        raise ValueError(
            f"ranking_ must give the place of every feature, a whole number from 1, which is best. Got "
            f"{values.min():g} to {values.max():g}. If it lists the features, best first, as np.argsort does, "
            "np.argsort of it, plus 1, are the places."
        )
    return np.argsort(signs[name] * values, kind="stable").astype(np.int32)


def _numbers(given: Any, what: str) -> np.ndarray:
    """Read real numbers; complex ones and texts would be turned into such without a word."""
    try:
        found = np.asarray(given)
        if found.dtype.kind in "biufO":
            return found.astype(float)
        kind = found.dtype.name
    except (ValueError, TypeError):
        kind = type(given).__name__
    raise TypeError(f"{what} must hold a real number for every feature. Got {kind}.")


def _make(factory: Callable[..., Any], params: dict[str, Any], where: str) -> Any:
    try:
        return factory(**params)
    except TypeError as error:
        known = ", ".join(inspect.signature(factory).parameters)
        raise RunError(f"{where}: {error}; its parameters are {known}.") from None
    except (Exception, SystemExit) as error:  # it is somebody's program and may end in any way
        raise RunError(f"{where}: {error_text(error)}; check its parameters.") from None


def _import_class(path: str, key: str, known: Iterable[str]) -> type:
    """Import ``package.module:Class``; anything but a class with ``fit`` is refused before it is called."""
    if ":" not in path:
        raise RunError(
            f"{key}: a known name or an import path module:Class was expected, got {path!r}; {closest(path, known)}"
        )
    found = _import(path, key)
    if not inspect.isclass(found) or not callable(getattr(found, "fit", None)):
        raise RunError(f"{key}: a class with fit was expected, got {path!r}; name such a class.")
    return found


def _import(path: str, key: str) -> Any:
    module, _, name = path.partition(":")
    try:
        return getattr(import_module(module), name)
    except (Exception, SystemExit) as error:  # a module is somebody's program and may end in any way
        raise RunError(
            f"{key}: {path!r} cannot be imported ({error_text(error)}); check the path and the module."
        ) from None
