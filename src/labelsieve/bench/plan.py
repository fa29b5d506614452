"""Plan the rankings and judgements of an experiment.

A ranking is the result of a method fitted to one fold. A judgement evaluates the best features with one classifier and
one set of conventions. Their keys cover everything that the results depend on. Later judgements reuse rankings.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from labelsieve._text import count
from labelsieve.bench.components import (
    build_classifier,
    build_method,
    identify,
    identify_method,
    identify_metric,
)
from labelsieve.bench.config import (
    EVERY_LABEL,
    NO_FEATURES,
    OWN_WEIGHTS,
    RANDOM,
    UNRANKED,
    DatasetSpec,
    Experiment,
    Judge,
    MethodSpec,
    NoiseSpec,
    Rounding,
)
from labelsieve.bench.data import DatasetFacts

# Increase this if the meaning of a cell changes but its configuration does not.
_SCHEME = 2
# Parameter of methods that sets the number of features.
_SIZE_PARAMETER = "n_features_to_select"

#: Configured size -> number of features.
Sizes = tuple[tuple[float, int], ...]


class Ranked(NamedTuple):
    """Ranking of the features, empty for references that rank nothing."""

    #: Features, best first.
    order: np.ndarray | None = None
    #: Weights of shape (n_labels, n_features), if they can score labels.
    weights: np.ndarray | None = None


@dataclass(frozen=True)
class Judgement:
    """Planned judgement of a ranking."""

    key: str
    judge: Judge
    #: Empty for references that rank nothing.
    sizes: Sizes
    #: Reason why the judgement cannot be made, empty if it can.
    obstacle: str = ""


@dataclass(frozen=True)
class Cell:
    """Ranking of the features of one fold, with its judgements."""

    key: str
    dataset: DatasetSpec
    noise: NoiseSpec
    #: Convention for folds.
    split: str
    seed: int
    fold: int
    method: MethodSpec
    draw: int
    #: Checksum of the data.
    checksum: str
    #: Number of features, if the ranking depends on it.
    n_selected: int | None
    judgements: tuple[Judgement, ...]
    #: Stored ranking, if it is already computed.
    ranked: Ranked | None = None

    @property
    def must_rank(self) -> bool:
        """Return True if the features have to be ranked."""
        return self.ranked is None and self.method.method not in UNRANKED

    @property
    def uses_weights(self) -> bool:
        """Return True if a judgement needs the weights of the ranking."""
        return any(part.judge.classifier.classifier == OWN_WEIGHTS for part in self.judgements)

    def __str__(self) -> str:
        draw = f", draw {self.draw}" if self.draw else ""
        size = "" if self.n_selected is None else f", {count(self.n_selected, 'feature')}"
        return (
            f"{self.dataset.name}, {self.noise.label}, seed {self.seed}, fold {self.fold}, "
            f"{self.method.name}{size}{draw}"
        )

    def rows(self) -> list[Planned]:
        """Return the judgements as rows of the stored plan."""
        place = (self.dataset.name, self.noise.label, self.noise.rate, self.seed, self.fold)
        method = (self.method.name, self.method.role, self.draw)
        return [
            Planned(self.key, part.key, *place, *method, part.judge.name, part.obstacle or None)
            for part in self.judgements
        ]


class Planned(NamedTuple):
    """Row of the stored plan, one per judgement."""

    ranking: str
    key: str
    dataset: str
    noise: str
    noise_rate: float | None
    seed: int
    fold: int
    method: str
    role: str
    draw: int
    judge: str
    #: Reason why the judgement cannot be made, or None if it can.
    obstacle: str | None


def plan(experiment: Experiment, facts: dict[str, DatasetFacts]) -> list[Cell]:
    """List the cells of an experiment by dataset and fold."""
    judges = experiment.judges()
    identities = {judge.name: _judge_identity(experiment, judge) for judge in judges}
    cells: list[Cell] = []
    for dataset, noise in itertools.product(experiment.datasets, experiment.noises()):
        known = facts[dataset.name]
        # Convention for folds -> judgements with this noise, without keys.
        by_split: dict[str, list[Judgement]] = {}
        for judge in judges:
            if noise in (judge.conventions.noise or experiment.noise):
                sizes = subset_sizes(experiment, known, judge.conventions.rounding)
                by_split.setdefault(judge.conventions.folds, []).append(Judgement("", judge, sizes))
        for split, judged in by_split.items():
            rankings = [
                (number, identify_method(method), method, own)
                for given in experiment.all_methods()
                for number, method, own in _rankings(given, judged)
            ]
            content = {
                **{"scheme": _SCHEME, "dataset": dataset.name, "checksum": known.checksum},
                **{"folds": experiment.folds, "split": split, "noise": noise.model_dump()},
            }
            folds = itertools.product(experiment.seeds, range(experiment.folds))
            for (seed, fold), (number, identity, method, own) in itertools.product(folds, rankings):
                for draw in range(experiment.random_draws if method.method == RANDOM else 1):
                    key = digest({**content, "seed": seed, "fold": fold, "method": identity, "draw": draw})
                    judgements = tuple(
                        replace(
                            part,
                            key=digest({"ranking": key, **identities[part.judge.name], "sizes": part.sizes}),
                        )
                        for part in own
                    )
                    place = (dataset, noise, split, seed, fold)
                    cells.append(Cell(key, *place, method, draw, known.checksum, number, judgements))
    return cells


def _rankings(
    method: MethodSpec, judged: list[Judgement]
) -> Iterator[tuple[int | None, MethodSpec, list[Judgement]]]:
    """Yield the rankings of a method on a fold, several if they depend on the number of features."""
    selector = None if method.method in UNRANKED else build_method(method)
    judged = [replace(part, obstacle=_obstacle(method, selector, part.judge)) for part in judged]
    if selector is None:
        yield None, method, [replace(part, sizes=()) for part in judged]
        return
    numbers = dict.fromkeys(number for part in judged for _, number in part.sizes)
    # A configured number asks for that ranking at all sizes.
    if (
        not numbers
        or not getattr(selector, "ranking_depends_on_size", False)
        or _SIZE_PARAMETER in method.params
    ):
        yield None, method, judged
        return
    for number in numbers:
        asked = method.model_copy(update={"params": {**method.params, _SIZE_PARAMETER: number}})
        own = [
            replace(part, sizes=tuple(pair for pair in part.sizes if pair[1] == number)) for part in judged
        ]
        yield number, asked, [part for part in own if part.sizes]


def subset_sizes(experiment: Experiment, facts: DatasetFacts, rounding: Rounding | None = None) -> Sizes:
    """Pair each configured size with its number of features.

    Sizes above the number of features are left out. A percentage keeps at least one feature.
    """
    counts = experiment.sizes.counts.get(facts.name)
    if counts is not None:
        return tuple((float(number), number) for number in counts if number <= facts.n_features)
    ways: dict[str, Callable[[float], int]] = {"round": round, "floor": math.floor, "up": math.ceil}
    how = ways[rounding or experiment.sizes.rounding]
    # In floating point, 7% of 100 features are 7.000000000000001.
    shares = [(percent, round(percent * facts.n_features / 100, 9)) for percent in experiment.sizes.percent]
    return tuple((float(percent), max(1, how(share))) for percent, share in shares)


def has_weights(selector: Any) -> bool:
    """Return True if the weights of a selector can score labels from features in [0, 1]."""
    scale = getattr(selector, "scale", "minmax")
    return bool(getattr(selector, "weights_score_labels", False) and scale == "minmax")


def _obstacle(method: MethodSpec, selector: Any, judge: Judge) -> str:
    if judge.classifier.classifier != OWN_WEIGHTS:
        return ""
    needs_none = method.method in (NO_FEATURES, EVERY_LABEL)
    return "" if needs_none or has_weights(selector) else "no weights for features in [0, 1]"


def _judge_identity(experiment: Experiment, judge: Judge) -> dict[str, Any]:
    spec = judge.classifier
    return {
        "classifier": identify(build_classifier(spec, judge.conventions), spec.params),
        "conventions": judge.conventions.choices(),
        "metrics": [identify_metric(metric) for metric in experiment.metrics],
    }


def digest(content: dict[str, Any]) -> str:
    """Compute a key of everything that a result depends on."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:32]
