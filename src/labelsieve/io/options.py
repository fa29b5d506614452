"""What a user may say about a file: one object from the command line, a configuration or Python to the readers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

#: Option -> the words it takes; the first is the default.
CHOICES = {"nominal": ("code", "onehot"), "missing": ("error", "mean", "zero")}


class OptionError(ValueError):
    """An option with a value that it does not have."""

    def __init__(self, option: str, value: object, choices: Sequence[str]) -> None:
        super().__init__(option, value, choices)
        self.option, self.value, self.choices = option, value, choices

    def __str__(self) -> str:
        return f"{self.option} must be one of {', '.join(self.choices)}, got {self.value!r}."


@dataclass(frozen=True)
class ReadOptions:
    """The options of `read`, which explains them; checked here and nowhere else.

    Raises
    ------
    OptionError
        `nominal` or `missing` is none of its choices.

    Examples
    --------
    >>> ReadOptions(labels=2, missing="mean").given
    {'labels': 2, 'missing': 'mean'}
    >>> ReadOptions(missing="median")
    Traceback (most recent call last):
        ...
    labelsieve.io.options.OptionError: missing must be one of error, mean, zero, got 'median'.
    """

    labels: int | str | os.PathLike[str] | Sequence[str] | None = None
    candidates: str | os.PathLike[str] | Sequence[str] | None = None
    ignore: str | Sequence[str] | None = None
    nominal: str = CHOICES["nominal"][0]
    missing: str = CHOICES["missing"][0]

    def __post_init__(self) -> None:
        for option, choices in CHOICES.items():
            value = getattr(self, option)
            if value not in choices:
                raise OptionError(option, value, choices)

    @classmethod
    def of(cls, **options: Any) -> ReadOptions:
        """Take the options that are not None."""
        return cls(**{option: value for option, value in options.items() if value is not None})

    @property
    def given(self) -> dict[str, Any]:
        """The options that say something, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        defaults = {option: choices[0] for option, choices in CHOICES.items()}
        return {
            option: value
            for option, value in values.items()
            if value is not None and not (option in defaults and value == defaults[option])
        }
