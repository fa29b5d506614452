"""What the protocol's open conventions could have been instead, one change at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from labelsieve.bench.config import Experiment
from labelsieve.bench.data import DatasetFacts

__all__ = ["Alternative", "list_alternatives", "vary"]


@dataclass(frozen=True)
class Alternative:
    """One convention decided otherwise.

    Parameters
    ----------
    convention : str
        What is open.
    choice : str
        What is chosen instead of the default.
    words : str
        The choice in plain words, as the subject of a sentence.
    changes : dict
        What the configuration of an experiment says then, where it differs from the default.
    reference : str, default=""
        The alternative it is compared with; empty for the defaults.
    obstacle : str, default=""
        Why the choice cannot be made for this data; empty if it can.
    """

    convention: str
    choice: str
    words: str
    changes: Mapping[str, Any]
    reference: str = ""
    obstacle: str = ""

    def __str__(self) -> str:
        return f"{self.convention}, {self.choice}"

    @property
    def setting(self) -> str:
        """The change as it stands in a configuration file."""
        return "\n".join(_toml_lines(self.changes))


def list_alternatives(baseline: Experiment, facts: DatasetFacts, has_candidates: bool) -> list[Alternative]:
    """List every alternative that the protocol names, whether or not it can apply.

    Noise gives nearly every label both classes and makes classifiers predict it somewhere. What to do about
    one-class labels and undefined F1 therefore shows on clean training labels, so both are compared there too.
    """
    rate = baseline.noise[0].rate
    assert rate is not None
    count = comparable_count(rate, facts)
    relative = {"noise": [{"model": "relative", "rate": rate}]}
    by_count = {"noise": [{"model": "count", "rate": count}]}
    given = {"noise": [{"model": "given"}]}
    none_given = "" if has_candidates else "the data has no candidates of its own"
    in_numbers = "sizes are numbers of features" if baseline.sizes.counts else ""
    clean = Alternative("training labels", "clean", "training on clean labels", _set(train_labels="clean"))
    one_class = "a constant score for one-class labels"
    f1_of_1 = "an F1 of 1 where it is undefined"
    if_clean = ", when training on clean labels,"
    return [
        Alternative("noise model", f"relative {rate:g}", "noise relative to the true labels", relative),
        Alternative("noise model", f"count {count}", f"noise of {count} labels in every row", by_count),
        Alternative("noise model", "given", "the noise of the data itself", given, obstacle=none_given),
        Alternative("test labels", "noisy", "noise in the test labels", _set(test_labels="noisy")),
        clean,
        Alternative("classifier", "RBF SVM", "an RBF SVM", {"classifiers": ["rbf-svm"]}),
        Alternative("classifier", "ML-kNN", "ML-kNN", {"classifiers": ["ml-knn"]}),
        Alternative("one-class labels", "constant", one_class, _set(one_class="constant")),
        Alternative(
            "one-class labels",
            "constant (clean)",
            one_class + if_clean,
            _set(train_labels="clean", one_class="constant"),
            str(clean),
        ),
        Alternative("ranking scores", "hard", "ranking by 0/1 predictions", _set(ranking_scores="hard")),
        Alternative("empty rows", "perfect", "counting empty rows as perfect", _set(empty_rows="perfect")),
        Alternative("coverage", "count", "coverage in labels", _set(coverage="count")),
        Alternative("folds", "stratified", "stratifying the folds", _set(folds="stratified")),
        Alternative("undefined F1", "1", f1_of_1, _set(f1_undefined=1)),
        Alternative("undefined F1", "left out", "leaving undefined F1 out", _set(f1_undefined="skip")),
        Alternative(
            "undefined F1",
            "1 (clean)",
            f1_of_1 + if_clean,
            _set(train_labels="clean", f1_undefined=1),
            str(clean),
        ),
        Alternative(
            "rounding of sizes",
            "floor",
            "rounding sizes down",
            {"sizes": {"rounding": "floor"}},
            obstacle=in_numbers,
        ),
    ]


def _set(**conventions: str | int) -> dict[str, Any]:
    return {"conventions": conventions}


def comparable_count(rate: float, facts: DatasetFacts) -> int:
    """Return how many labels flipping adds to a row on average, rounded, at least one.

    Examples
    --------
    >>> yeast = DatasetFacts("yeast", 2417, 103, 14, 4.24, "", "percent")
    >>> comparable_count(0.2, yeast)  # 0.2 * (14 - 4.24)
    2
    """
    return max(1, round(rate * (facts.n_labels - facts.cardinality)))


def vary(baseline: Experiment, changes: Mapping[str, Any]) -> Experiment:
    """Return the experiment with some of its settings changed; tables are changed key by key."""
    settings = baseline.as_dict()
    for key, value in changes.items():
        settings[key] = {**settings[key], **value} if isinstance(value, Mapping) else value
    return Experiment.model_validate(settings)


def _toml_lines(changes: Mapping[str, Any]) -> list[str]:
    lines = []
    for key, value in changes.items():
        if isinstance(value, Mapping):
            lines += [f"{key}.{line}" for line in _toml_lines(value)]
        else:
            lines.append(f"{key} = {_toml(value)}")
    return lines


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(item)}' for key, item in value.items())} }}"
    return json.dumps(value)
