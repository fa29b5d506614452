"""What the charts of a page are made of: choices, panels, series, short numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from labelsieve._text import printable
from labelsieve.report.analysis.summary import Summary
from labelsieve.report.wording import metric_title

Chart = dict[str, Any]
#: By the places among the choices, see `panel_key`.
Panels = dict[str, Any]


def choice(name: str, options: Iterable[str]) -> dict[str, Any]:
    """What readers choose from, under its name; charts that have a choice of the same name follow."""
    return {"name": name, "options": shown_names(options)}


def metric_choice(summary: Summary, metrics: Iterable[str]) -> dict[str, Any]:
    """A choice of metrics, which also says which way is better."""
    directions = {metric: summary.direction(metric) for metric in metrics}
    return {
        **choice("metric", (metric_title(metric, direction) for metric, direction in directions.items())),
        "better": list(directions.values()),
    }


def other_series(names: Iterable[str], control: str | None = None) -> list[dict[str, Any]]:
    """Series that are no methods of the comparison."""
    return [
        {"name": printable(name), "reference": False, "control": name == control, "first": True}
        for name in names
    ]


def shown_names(names: Iterable[str]) -> list[str]:
    """Names that steer nothing."""
    return [printable(name) for name in names]


def panel_key(*places: int) -> str:
    """What a panel is called: its places among the choices."""
    return ",".join(map(str, places))


def short(value: float) -> float | None:
    """Four digits are more than a chart can show."""
    return float(f"{value:.4g}") if np.isfinite(value) else None


def shorts(values: Iterable[float]) -> list[float | None]:
    """Several of them."""
    return [short(float(value)) for value in values]
