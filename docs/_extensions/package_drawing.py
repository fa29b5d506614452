"""Draw the flowchart of the packages when the site is built; code hosts draw the same block with a script."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_BLOCK = re.compile(r"```mermaid\n(.*?)```", re.DOTALL)
_PICTURE = "images/packages.svg"
_WIDTH, _HEIGHT = 1.0, 0.62


def setup(app: Sphinx) -> dict[str, bool]:
    """Replace the block as its page is read."""
    app.connect("source-read", _replace)
    return {"parallel_read_safe": True}


def _replace(app: Sphinx, name: str, source: list[str]) -> None:
    block = _BLOCK.search(source[0]) if name == "architecture" else None
    if block is None:
        return
    boxes = dict(re.findall(r"^ +([\w.]+)\[\"[\w.]+<br>(.*?)\"\]", block[1], re.MULTILINE))
    arrows = re.findall(r"^ +([\w.]+) --> ([\w.]+)$", block[1], re.MULTILINE)
    _draw(boxes, arrows, str(app.srcdir / _PICTURE))
    told = "Packages from the top layer to the bottom, with an arrow to what each imports; the table has them all."
    picture = f"```{{image}} {_PICTURE}\n:alt: {told}\n:class: on-white\n```"
    source[0] = source[0].replace(block[0], picture)


def place(names: list[str], arrows: list[tuple[str, str]]) -> dict[str, tuple[float, int]]:
    """Where to draw each box: across, and how many layers above the bottom.

    Examples
    --------
    >>> place(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")])
    {'a': (0.0, 2), 'b': (0.0, 1), 'c': (0.0, 0)}
    """
    number = {name: i for i, name in enumerate(names)}
    edges = np.array([(number[a], number[b]) for a, b in arrows]).reshape(-1, 2)
    graph = coo_array((np.ones(len(edges)), edges.T), shape=(len(names),) * 2).tocsr()
    # Packages whose modules import each other's lie in one layer.
    _, group = connected_components(graph, connection="strong")
    layer = np.zeros(len(names), dtype=int)
    for _ in names:
        for importer, imported in edges:
            if group[importer] != group[imported]:
                lowest = layer[imported] + 1
                layer[group == group[importer]] = np.maximum(layer[group == group[importer]], lowest)
    across = np.zeros(len(names))
    for _ in range(30):  # each box towards the middle of its neighbours, then apart again
        for level in range(layer.max() + 1):
            members = np.flatnonzero(layer == level)
            wish = [
                np.mean([across[a if b == box else b] for a, b in edges if box in (a, b)] or [across[box]])
                for box in members
            ]
            order = members[np.argsort(wish, kind="stable")]
            across[order] = np.arange(len(order)) - (len(order) - 1) / 2
    return {name: (float(across[i]) + 0.0, int(layer[i])) for name, i in number.items()}


def _draw(boxes: dict[str, str], arrows: list[tuple[str, str]], path: str) -> None:
    spots = place(list(boxes), arrows)
    across = [x for x, _ in spots.values()]
    layers = max(y for _, y in spots.values()) + 1
    figure, axes = plt.subplots(figsize=(1.55 * (max(across) - min(across) + 1), 0.95 * layers))
    for importer, imported in arrows:
        (x0, y0), (x1, y1) = spots[importer], spots[imported]
        down = y0 > y1
        axes.annotate(
            "",
            (x1, y1 + (_HEIGHT / 2 if down else 0)),
            (x0, y0 - (_HEIGHT / 2 if down else 0)),
            arrowprops={
                "arrowstyle": "-|>",
                "color": "#8899aa",
                "linewidth": 0.8,
                "shrinkA": 0,
                "shrinkB": 0,
            },
            zorder=1,
        )
    for name, size in boxes.items():
        x, y = spots[name]
        axes.add_patch(
            plt.Rectangle(
                (x - 0.47 * _WIDTH, y - _HEIGHT / 2),
                0.94 * _WIDTH,
                _HEIGHT,
                facecolor="#eef3f8",
                edgecolor="#445566",
                zorder=2,
            )
        )
        words = name.replace("._", "\n._") if len(name) > 16 else name
        axes.text(
            x, y, f"{words}\n{size.replace(', ', chr(10))}", ha="center", va="center", fontsize=6.5, zorder=3
        )
    axes.set_xlim(min(across) - 0.6, max(across) + 0.6)
    axes.set_ylim(-0.6, layers - 0.4)
    axes.axis("off")
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None}, facecolor="white")
    plt.close(figure)
