"""What a fit found, for people: summaries, figures and pages. Drawing needs the ``report`` extra."""

from __future__ import annotations

from importlib.util import find_spec

__all__ = ["missing_packages"]


def missing_packages() -> list[str]:
    """Name the packages of the ``report`` extra that are not installed."""
    return [package for package in ("jinja2", "matplotlib") if find_spec(package) is None]
