"""Options for reading a file, shared by Python, the command line and configurations."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

#: Option -> its allowed values.
CHOICES = {"nominal": ("code", "onehot"), "missing": ("error", "mean", "zero"), "text": ("drop", "tfidf")}
#: Roles of a column. "label" and "ignored" are never inferred from the cells alone.
ROLES = (
    "id", "date", "number", "category", "boolean", "text", "tags", "vector", "constant", "label", "ignored",
)  # fmt: skip


@dataclass(frozen=True)
class ReadOptions:
    """Options of `read`, which documents them. None stands for the default.

    Raises
    ------
    ValueError
        An option has a value that is not allowed.

    Examples
    --------
    >>> ReadOptions(labels=2, missing="mean").given
    {'labels': 2, 'missing': 'mean'}
    >>> ReadOptions(missing="median")
    Traceback (most recent call last):
        ...
    ValueError: missing must be one of error, mean, zero, got 'median'.
    """

    labels: int | str | os.PathLike[str] | Sequence[str] | None = None
    candidates: str | os.PathLike[str] | Sequence[str] | None = None
    ignore: str | Sequence[str] | None = None
    id: str | None = None
    roles: Mapping[str, str] | None = None
    label_sep: str | None = None
    text: str | None = None
    nominal: str | None = None
    missing: str | None = None
    unknown: str | None = None
    merge: str | Sequence[str] | None = None
    label_names: str | os.PathLike[str] | Sequence[str] | Mapping[str, str] | None = None
    show: str | Sequence[str] | None = None
    group: str | None = None

    def __post_init__(self) -> None:
        for option, choices in CHOICES.items():
            value = getattr(self, option)
            if value is not None and value not in choices:
                raise ValueError(f"{option} must be one of {', '.join(choices)}, got {value!r}.")
        for name, role in (self.roles or {}).items():
            if role not in ROLES:
                raise ValueError(f"the role of {name!r} must be one of {', '.join(ROLES)}, got {role!r}.")

    @property
    def given(self) -> dict[str, Any]:
        """Options that are not None, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {option: value for option, value in values.items() if value is not None}
