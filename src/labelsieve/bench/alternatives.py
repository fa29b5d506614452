"""What the protocol's open conventions could have been instead, one change at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from labelsieve.bench.data import DatasetFacts

__all__ = ["Alternative", "list_alternatives"]


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
        What an entry of ``conventions`` says then.
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
        places = {"noise": "noise", "classifiers": "classifiers", "rounding": "sizes.rounding"}
        return "\n".join(
            f"{places.get(key, f'conventions.{key}')} = {_toml(value)}" for key, value in self.changes.items()
        )


def list_alternatives(
    facts: DatasetFacts, rate: float, *, has_candidates: bool, has_weights: bool, in_numbers: bool
) -> list[Alternative]:
    """List every alternative that the protocol names, whether or not it can apply.

    Noise gives nearly every label both classes and makes classifiers predict it somewhere. What to do about
    one-class labels and undefined F1 therefore shows on clean training labels, so both are compared there too.

    Parameters
    ----------
    facts : DatasetFacts
        The data set.
    rate : float
        Of the noise that the alternatives are compared under.
    has_candidates : bool
        Whether the data has candidates of its own.
    has_weights : bool
        Whether the method can be judged by its own weights.
    in_numbers : bool
        Whether sizes are numbers of features.
    """
    count = comparable_count(rate, facts)
    relative = {"noise": [{"model": "relative", "rate": rate}]}
    by_count = {"noise": [{"model": "count", "rate": count}]}
    given = {"noise": [{"model": "given"}]}
    none_given = "" if has_candidates else "the data has no candidates of its own"
    no_weights = "" if has_weights else "the method has no weights for features in [0, 1]"
    no_rounding = "sizes are numbers of features" if in_numbers else ""
    clean = {"train_labels": "clean"}
    on_clean = "training labels, clean"
    one_class = "a constant score for one-class labels"
    absent = "leaving out labels without a training positive"
    f1_of_1 = "an F1 of 1 where it is undefined"
    if_clean = ", when training on clean labels,"
    entries: list[tuple[str, str, str, Mapping[str, Any], str, str]] = [
        ("noise model", f"relative {rate:g}", "noise relative to the true labels", relative, "", ""),
        ("noise model", f"count {count}", f"noise of {count} labels in every row", by_count, "", ""),
        ("noise model", "given", "the noise of the data itself", given, "", none_given),
        ("test labels", "noisy", "noise in the test labels", {"test_labels": "noisy"}, "", ""),
        (
            "test labels",
            "noisy for F1",
            "noise in the test labels of F1",
            {"test_labels": "noisy-f1"},
            "",
            "",
        ),
        ("training labels", "clean", "training on clean labels", clean, "", ""),
        ("classifier", "RBF SVM", "an RBF SVM", {"classifiers": ["rbf-svm"]}, "", ""),
        ("classifier", "ML-kNN", "ML-kNN", {"classifiers": ["ml-knn"]}, "", ""),
        ("classifier", "own weights", "own weights", {"classifiers": ["own-weights"]}, "", no_weights),
        ("one-class labels", "constant", one_class, {"one_class": "constant"}, "", ""),
        (
            *("one-class labels", "constant (clean)", one_class + if_clean),
            *({**clean, "one_class": "constant"}, on_clean, ""),
        ),
        ("absent labels", "left out", absent, {"absent_labels": "skip"}, "", ""),
        (
            *("absent labels", "left out (clean)", absent + if_clean),
            *({**clean, "absent_labels": "skip"}, on_clean, ""),
        ),
        ("ranking scores", "hard", "ranking by 0/1 predictions", {"ranking_scores": "hard"}, "", ""),
        ("empty rows", "perfect", "counting empty rows as perfect", {"empty_rows": "perfect"}, "", ""),
        ("ties", "by index", "breaking ties by column", {"ties": "index"}, "", ""),
        (
            *("ties", "by index (hard)", "breaking ties by column, when ranking by 0/1 predictions,"),
            *({"ties": "index", "ranking_scores": "hard"}, "ranking scores, hard", ""),
        ),
        ("coverage", "count", "coverage in labels", {"coverage": "count"}, "", ""),
        ("coverage", "one-based", "coverage from 1 on", {"coverage": "one-based"}, "", ""),
        ("coverage", "excess", "coverage beyond the true labels", {"coverage": "excess"}, "", ""),
        ("folds", "stratified", "stratifying the folds", {"folds": "stratified"}, "", ""),
        ("folds", "consecutive", "folds of consecutive rows", {"folds": "consecutive"}, "", ""),
        ("undefined F1", "1", f1_of_1, {"f1_undefined": 1}, "", ""),
        ("undefined F1", "left out", "leaving undefined F1 out", {"f1_undefined": "skip"}, "", ""),
        ("undefined F1", "1 (clean)", f1_of_1 + if_clean, {**clean, "f1_undefined": 1}, on_clean, ""),
        ("rounding of sizes", "floor", "rounding sizes down", {"rounding": "floor"}, "", no_rounding),
        ("rounding of sizes", "up", "rounding sizes up", {"rounding": "up"}, "", no_rounding),
    ]
    return [Alternative(*entry) for entry in entries]


def comparable_count(rate: float, facts: DatasetFacts) -> int:
    """Return how many labels flipping adds to a row on average, rounded, at least one.

    Examples
    --------
    >>> yeast = DatasetFacts("yeast", 2417, 103, 14, 4.24, "", "percent")
    >>> comparable_count(0.2, yeast)  # 0.2 * (14 - 4.24)
    2
    """
    return max(1, round(rate * (facts.n_labels - facts.cardinality)))


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(item)}' for key, item in value.items())} }}"
    return json.dumps(value)
