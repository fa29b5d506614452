"""Feature selection methods, one per file. `METHODS` maps the slug of each to its class."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labelsieve._base import BaseSelector

__all__ = ["METHODS"]


class _Methods(Mapping[str, "type[BaseSelector]"]):
    """Mapping from the slug of each public module to its class, which is imported on first access."""

    def __init__(self) -> None:
        names = (module.name for module in iter_modules(__path__))
        self._modules = {name.replace("_", "-"): name for name in names if not name.startswith("_")}

    def __getitem__(self, slug: str) -> type[BaseSelector]:
        return _selector_in(f"{__name__}.{self._modules[slug]}")

    def __contains__(self, slug: object) -> bool:
        return slug in self._modules

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)

    def __repr__(self) -> str:
        return f"METHODS({', '.join(self)})"


@cache
def _selector_in(module_name: str) -> type[BaseSelector]:
    """Return the only public selector that a module defines."""
    from labelsieve._base import BaseSelector

    module = import_module(module_name)
    selectors = [
        value
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and issubclass(value, BaseSelector)
        and value.__module__ == module_name
        and not name.startswith("_")
    ]
    if len(selectors) != 1:
        raise ImportError(f"{module_name} must define exactly one public selector, found {len(selectors)}.")
    return selectors[0]


METHODS: Mapping[str, type[BaseSelector]] = _Methods()
"""Mapping from slug to class of every method in the package. Classes are imported on first access.

Examples
--------
>>> METHODS["pml-fsmir"].__name__
'PMLFSMIR'
>>> "evidence" in METHODS
True
"""
