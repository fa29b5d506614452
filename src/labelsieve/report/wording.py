"""Names of metrics and references, and lists of names, in sentences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

__all__ = ["listed", "metric_title", "metric_words", "reference_words"]

_METRIC_WORDS = {
    "macro_f1": "macro-F1",
    "micro_f1": "micro-F1",
    "samples_f1": "samples-F1",
    "one_error": "one-error",
}
_REFERENCE_WORDS = {
    "random-ranking": "random features",
    "all-features": "all features",
    "no-features": "no features at all (label frequencies alone)",
    "every-label": "label frequencies alone with every label predicted",
}
_FILTERS = ("sum-f", "sum-mi", "gmm")


def metric_words(metric: str) -> str:
    """Name a metric in a sentence.

    Examples
    --------
    >>> metric_words("ranking_loss"), metric_words("macro_f1")
    ('ranking loss', 'macro-F1')
    """
    return _METRIC_WORDS.get(metric, metric.replace("_", " "))


def metric_title(metric: str, direction: Literal["higher", "lower"]) -> str:
    """Name a metric with an arrow that points to better values.

    Examples
    --------
    >>> metric_title("ranking_loss", "lower"), metric_title("macro_f1", "higher")
    ('Ranking loss ↓', 'Macro-F1 ↑')
    """
    words = metric_words(metric)
    return f"{words[0].upper()}{words[1:]} {'↑' if direction == 'higher' else '↓'}"


def listed(names: Iterable[str]) -> str:
    """Join names with commas and "and".

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    *others, last = [*names] or [""]
    return f"{', '.join(others)} and {last}" if others else last


def reference_words(slug: str, name: str) -> str:
    """Describe a reference, given its method and its name in the tables.

    Examples
    --------
    >>> reference_words("random-ranking", "chance"), reference_words("sum-f", "sum-f"), reference_words("rfs", "rfs")
    ('random features', 'the plain filter sum-f', 'rfs')
    """
    return _REFERENCE_WORDS.get(slug, f"the plain filter {name}" if slug in _FILTERS else name)
