"""From a configuration to the cells it consists of. A cell's key names everything its result depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from labelsieve.bench.components import build_classifier, build_method, identify
from labelsieve.bench.config import (
    ALL_FEATURES,
    NO_FEATURES,
    RANDOM,
    DatasetSpec,
    Experiment,
    MethodSpec,
    NoiseSpec,
)
from labelsieve.bench.data import DatasetFacts

__all__ = ["Cell", "plan", "subset_sizes"]

# Raised when the meaning of a cell changes although its configuration does not.
_SCHEME = 1
# The parameter that says how many features are asked for.
_NUMBER = "n_features_to_select"


@dataclass(frozen=True)
class Cell:
    """One ranking of the features of one fold, judged by all classifiers at the sizes it was made for.

    These are all sizes, unless the ranking depends on the number of features that is asked for: then a cell is
    one number, and its method is asked for it.
    """

    key: str
    dataset: DatasetSpec
    noise: NoiseSpec
    seed: int
    fold: int
    method: MethodSpec
    draw: int
    #: Configured size -> number of features; empty for references that rank nothing.
    sizes: tuple[tuple[float, int], ...]
    #: Checksum of the data that the cell was planned for.
    checksum: str
    #: The number that the method is asked for, where its ranking depends on it.
    n_selected: int | None = None

    def __str__(self) -> str:
        draw = f", draw {self.draw}" if self.draw else ""
        size = "" if self.n_selected is None else f", {self.n_selected} feature{'s' * (self.n_selected > 1)}"
        return (
            f"{self.dataset.name}, {self.noise.label}, seed {self.seed}, fold {self.fold}, "
            f"{self.method.name}{size}{draw}"
        )


def plan(experiment: Experiment, facts: dict[str, DatasetFacts]) -> list[Cell]:
    """List the cells of an experiment: data set by data set, fold by fold."""
    methods = experiment.all_methods()
    common = {
        "scheme": _SCHEME,
        "folds": experiment.folds,
        "classifiers": [_classifier_identity(experiment, entry) for entry in experiment.classifiers],
        "metrics": experiment.metrics,
        "conventions": experiment.conventions.model_dump(),
    }
    cells = []
    for dataset in experiment.datasets:
        known = facts[dataset.name]
        sizes = subset_sizes(experiment, known)
        on_data = {**common, "dataset": dataset.name, "checksum": known.checksum}
        rankings = [
            (method, n_selected, judged, _identity(method))
            for entry in methods
            for method, n_selected, judged in _rankings(entry, sizes)
        ]
        for noise in experiment.noise:
            for seed in experiment.seeds:
                for fold in range(experiment.folds):
                    for method, n_selected, judged, identity in rankings:
                        for draw in range(experiment.random_draws if method.method == RANDOM else 1):
                            content = {
                                **on_data,
                                "noise": noise.model_dump(),
                                "seed": seed,
                                "fold": fold,
                                "method": identity,
                                "draw": draw,
                                "sizes": judged,
                            }
                            cells.append(
                                Cell(
                                    _digest(content),
                                    dataset,
                                    noise,
                                    seed,
                                    fold,
                                    method,
                                    draw,
                                    judged,
                                    known.checksum,
                                    n_selected,
                                )
                            )
    return cells


def _rankings(
    method: MethodSpec, sizes: tuple[tuple[float, int], ...]
) -> Iterator[tuple[MethodSpec, int | None, tuple[tuple[float, int], ...]]]:
    """Yield every ranking that a method makes of a fold: what is fitted, for how many features, judged where."""
    if method.method in (NO_FEATURES, ALL_FEATURES):
        yield method, None, ()
        return
    depends = getattr(build_method(method), "ranking_depends_on_size", False)
    # Who sets the number asks for that very ranking, and for nothing else at all sizes.
    if not sizes or not depends or _NUMBER in method.params:
        yield method, None, sizes
        return
    for n_selected in dict.fromkeys(count for _, count in sizes):
        asked = method.model_copy(update={"params": {**method.params, _NUMBER: n_selected}})
        yield asked, n_selected, tuple(pair for pair in sizes if pair[1] == n_selected)


def subset_sizes(experiment: Experiment, facts: DatasetFacts) -> tuple[tuple[float, int], ...]:
    """Pair every configured size of a data set with the number of features it means.

    Numbers above the number of features are left out; a percentage keeps at least one feature.
    """
    counts = experiment.sizes.counts.get(facts.name)
    if counts is not None:
        return tuple((float(count), count) for count in counts if count <= facts.n_features)
    rounding = round if experiment.sizes.rounding == "round" else int
    # Rounded first: 7 % of 100 features are 7.000000000000001 in binary.
    shares = [(percent, round(percent * facts.n_features / 100, 9)) for percent in experiment.sizes.percent]
    return tuple((float(percent), max(1, rounding(share))) for percent, share in shares)


def _identity(method: MethodSpec) -> dict[str, Any]:
    """Name the class and all its parameters: a default that changes makes another cell."""
    if method.method in (NO_FEATURES, ALL_FEATURES):
        return {"method": method.method}
    return identify(build_method(method))


def _classifier_identity(experiment: Experiment, entry: Any) -> dict[str, Any]:
    return {"name": entry.name, **identify(build_classifier(entry, experiment.conventions))}


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:32]
