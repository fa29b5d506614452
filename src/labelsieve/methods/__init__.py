"""One file, one method. `METHODS` finds them: slug -> class."""

from __future__ import annotations

import inspect
from importlib import import_module
from pkgutil import iter_modules

from labelsieve._base import BaseSelector

__all__ = ["METHODS"]


def _discover() -> dict[str, type[BaseSelector]]:
    """Map every public module of this package, as a slug, to the one public selector it defines."""
    methods = {}
    for module_info in iter_modules(__path__):
        if module_info.name.startswith("_"):
            continue
        module = import_module(f"{__name__}.{module_info.name}")
        selectors = [
            value
            for name, value in vars(module).items()
            if inspect.isclass(value)
            and issubclass(value, BaseSelector)
            and value.__module__ == module.__name__
            and not name.startswith("_")
        ]
        if len(selectors) != 1:
            raise ImportError(
                f"{module.__name__} must define exactly one public selector, found {len(selectors)}."
            )
        methods[module_info.name.replace("_", "-")] = selectors[0]
    return methods


METHODS: dict[str, type[BaseSelector]] = _discover()
