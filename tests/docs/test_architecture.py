"""The packages: no import cycles, and a page that names all of them."""

from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_no_modules_import_each_other_in_a_cycle():
    grimp = pytest.importorskip("grimp")
    graph = grimp.build_graph("labelsieve", exclude_type_checking_imports=True, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    # Raises a CycleError that names the cycle. Imports inside functions count too.
    assert set(TopologicalSorter(imports).static_order()) == set(imports)


def test_the_page_names_every_package():
    page = (ROOT / "docs" / "project" / "architecture.md").read_text(encoding="utf-8")
    packages = {path.parent.name for path in (ROOT / "src" / "labelsieve").glob("*/__init__.py")}
    assert {name for name in packages if f"`{name}`" not in page} == set()
