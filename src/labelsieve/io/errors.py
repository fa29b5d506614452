"""The error of everything that has to do with data, and how it speaks of the options of `read`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Mention:
    """An option of `read` that an error speaks of, perhaps with a value; as text it is Python.

    Examples
    --------
    >>> print(Mention("labels"), Mention("ignore", "bird id"))
    labels= ignore='bird id'
    """

    option: str
    value: object = None

    def __str__(self) -> str:
        return f"{self.option}={'' if self.value is None else repr(self.value)}"


class DatasetError(ValueError):
    """A data file or data set that cannot be used, said in one sentence.

    Parameters
    ----------
    *parts : str or Mention
        The sentence in pieces. Options stand in it as a `Mention`, since a keyword in Python is an option
        on the command line and a key in a configuration.

    Examples
    --------
    >>> error = DatasetError("no labels; give ", Mention("labels"), ".")
    >>> print(error)
    no labels; give labels=.
    >>> error.spelled(lambda mention: f"--{mention.option}")
    'no labels; give --labels.'
    """

    def __init__(self, *parts: str | Mention) -> None:
        super().__init__(*parts)

    def __str__(self) -> str:
        return self.spelled(str)

    def spelled(self, spell: Callable[[Mention], str]) -> str:
        """Say it with the options as the reader would write them."""
        return "".join(part if isinstance(part, str) else spell(part) for part in self.args)


class Fail(Protocol):
    """Makes the error that names what was read: a file or a frame."""

    def __call__(self, *parts: str | Mention) -> DatasetError:
        """Build the error from the pieces of its sentence, which has no full stop yet."""
