"""The house: no module imports itself by a detour, and the drawing shows what is there."""

import re
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

pytest.importorskip("grimp")
sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
import draw_packages


@pytest.fixture(scope="module")
def imports():
    return draw_packages.module_imports()


def test_no_modules_import_each_other_in_a_circle(imports):
    # Raises a CycleError that names the circle. Counted is every import that runs, inside functions too.
    order = list(TopologicalSorter(imports).static_order())
    assert set(order) == set(imports)


def test_the_drawing_shows_the_packages_and_arrows_of_today(imports):
    page = draw_packages.PAGE.read_text(encoding="utf-8")
    assert without_sizes(page) == without_sizes(draw_packages.page_with_drawing()), "run: make drawing"


def without_sizes(page):
    """Line counts change with every edit; they are as of the last drawing."""
    return re.sub(r"\d+", "#", page)
