"""What is wrong with a configuration, in one sentence that names the key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from labelsieve._text import count, near

__all__ = ["first_problem"]


def first_problem(error: ValidationError, model: type[BaseModel]) -> str:
    """Say the first problem, unknown keys before all others, of what was to be a `model`."""
    # A misspelt key is why one is missing.
    first = min(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
    key = ".".join(str(part) for part in first["loc"])
    more = error.error_count() - 1
    rest = f" ({count(more, 'more problem')})" if more else ""
    if first["type"] == "extra_forbidden":
        meant = near(str(first["loc"][-1]), _known_keys(model, first["loc"]))
        hint = f"did you mean {meant!r}?" if meant else "remove it or check its spelling."
        return f"{key}: no such key; {hint}{rest}"
    if first["type"] == "missing":
        return f"{key}: this key is needed; add it.{rest}"
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "value_error":
        end = "" if message.endswith("?") else "."
        return f"{key + ': ' if key else ''}{message}{end}{rest}"
    return f"{key}: {message[:1].lower()}{message[1:]}, got {first['input']!r}.{rest}"


def _known_keys(model: type[BaseModel], place: Sequence[int | str]) -> list[str]:
    """Keys of the part of a configuration that a place is in."""
    for step in place[:-1]:
        field = model.model_fields.get(str(step))
        model = model if field is None else next(_parts(field.annotation), model)
    return list(model.model_fields)


def _parts(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _parts(inner)
