"""Write a page for every public name, and the list of them."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from written import examples_that_use, list_table, remove_others, underlined, write_page

if TYPE_CHECKING:
    from sphinx.application import Sphinx

#: Public module -> title of its names in the list. A name belongs to the first module that has it.
MODULES = {
    "labelsieve": "Select and check",
    "labelsieve.io": "Data",
    "labelsieve.datasets": "Data",
    "labelsieve.metrics": "Metrics",
    "labelsieve.classify": "Classifiers",
    "labelsieve.report.statistics": "Statistics",
    "labelsieve.inspection.stability": "Stability",
    "labelsieve.inspection.label_issues": "Label issues",
    "labelsieve.contract": "Write a method",
}
#: Defining module -> title, for names that `labelsieve` re-exports.
_PARTS_OF_TOP = {
    "labelsieve.methods._evidence": "Select and check",
    "labelsieve.methods": "Methods",
    "labelsieve.inspection.displays": "Displays",
    "labelsieve.contract": "Write a method",
    "labelsieve._base": "Write a method",
    "labelsieve._numerics": "Write a method",
}


class PublicName(NamedTuple):
    """Public name of a module."""

    module: str
    name: str
    value: Any

    @property
    def dotted(self) -> str:
        """Return the name with its module."""
        return f"{self.module}.{self.name}"

    @property
    def is_data(self) -> bool:
        """Return True for names that are neither classes nor functions."""
        return not (inspect.isclass(self.value) or inspect.isfunction(self.value))

    @property
    def home(self) -> str:
        """Return the module that defines the name, or documents it if it is data."""
        if not self.is_data:
            return str(self.value.__module__)
        return _MODULE_OF_DATA.get(self.name, self.module)

    @property
    def part(self) -> str:
        """Return the title under which the name is listed."""
        if self.module != "labelsieve":
            return MODULES[self.module]
        titles = (title for home, title in _PARTS_OF_TOP.items() if f"{self.home}.".startswith(f"{home}."))
        return next(titles, MODULES[self.module])

    @property
    def docstring(self) -> str:
        """Return the docstring. For data, it is the string below the assignment, which Python drops."""
        if not self.is_data:
            return inspect.getdoc(self.value) or ""
        body = ast.parse(inspect.getsource(import_module(self.home))).body
        for statement, text in pairwise(body):
            targets = getattr(statement, "targets", [getattr(statement, "target", None)])
            if any(isinstance(target, ast.Name) and target.id == self.name for target in targets):
                return str(ast.literal_eval(text.value)) if isinstance(text, ast.Expr) else ""
        return ""


_MODULE_OF_DATA = {
    "METHODS": "labelsieve.methods",
    "METRICS": "labelsieve.metrics",
    "CATALOG": "labelsieve.datasets.catalog",
}


def public_names() -> list[PublicName]:
    """List every name in the ``__all__`` of the public modules, once.

    Examples
    --------
    >>> names = [found.dotted for found in public_names()]
    >>> "labelsieve.METRICS" in names, "labelsieve.metrics.METRICS" in names
    (True, False)
    """
    found: dict[int, PublicName] = {}
    for module in MODULES:
        members = import_module(module)
        for name in sorted(members.__all__, key=str.lower):
            value = getattr(members, name)
            if inspect.ismodule(value):
                continue
            found.setdefault(id(value), PublicName(module, name, value))
    return list(found.values())


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before Sphinx reads them, and escape types before numpydoc parses docstrings."""
    app.connect("builder-inited", _write_pages, priority=100)
    app.connect("autodoc-process-docstring", _escape_types, priority=100)
    return {"parallel_read_safe": True}


def _write_pages(app: Sphinx) -> None:
    folder, names = app.srcdir / "api", public_names()
    for found in names:
        write_page(folder / f"{found.dotted}.rst", _page(found))
    write_page(folder / "index.rst", _index(names))
    remove_others(folder, ["index.rst", *(f"{found.dotted}.rst" for found in names)])


def _escape_types(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Escape trailing underscores in types such as "ndarray of shape (n_iter_ + 1,)"."""
    for number, line in enumerate(lines):
        head, colon, kind = line.partition(" : ")
        if colon and re.fullmatch(r"[\w*, ]+", head):
            lines[number] = head + colon + re.sub(r"(\w)_(?=[\s,)]|$)", r"\1\_", kind)


def _index(names: list[PublicName]) -> str:
    parts = [
        underlined("API reference"),
        "All public names. The pages of the :doc:`methods </methods/index>` also show what each method "
        "minimizes, what it costs and how it ranks in experiments.\n",
    ]
    for title in dict.fromkeys((MODULES["labelsieve"], *_PARTS_OF_TOP.values(), *MODULES.values())):
        listed = [found for found in names if found.part == title]
        modules = dict.fromkeys(f"``{found.module}``" for found in listed)
        if not listed:
            continue
        parts += [underlined(title, "-"), f"In {' and '.join(modules)}.\n"]
        parts.append(
            list_table(
                ("name", "description"),
                ((f":doc:`{found.name} <{found.dotted}>`", _summary(found)) for found in listed),
            )
        )
        entries = (f"   {found.name} <{found.dotted}>" for found in listed)
        parts += [".. toctree::", f"   :caption: {title}", "   :hidden:", "", *entries, ""]
    return "\n".join([*parts, ""])


def _summary(found: PublicName) -> str:
    summary = " ".join(found.docstring.partition("\n\n")[0].split())
    return re.sub(r" \[\d+\]_", "", summary)  # references only work on the page itself


def _page(found: PublicName) -> str:
    lines = [underlined(found.name), f"``from {found.module} import {found.name}``", ""]
    if found.is_data:
        lines += [f".. autodata:: {found.home}.{found.name}", "   :no-value:", ""]
    elif inspect.isclass(found.value):
        lines += [f".. autoclass:: {found.dotted}", ""]
        for name, kind, is_own in _members(found.value):
            lines += [f"   .. auto{kind}:: {name}", ""] if is_own else []
        inherited = [name for name, _, is_own in _members(found.value) if not is_own]
        if inherited and any(base.__module__.startswith("sklearn.") for base in found.value.__mro__):
            words = ", ".join(f"``{name}``" for name in inherited)
            lines += [f"Inherited from scikit-learn: {words}.", ""]
    else:
        lines += [f".. autofunction:: {found.dotted}", ""]
    return "\n".join([*lines, examples_that_use(found.dotted)])


def _members(owner: type) -> list[tuple[str, str, bool]]:
    """List public methods and properties: name, kind, and True if this package defines it."""
    found = []
    for name in dir(owner):
        home = next((base for base in owner.__mro__ if name in vars(base)), None)
        if home is None or name.startswith("_") or not inspect.getdoc(getattr(owner, name)):
            continue
        value = vars(home)[name]
        if isinstance(value, property):
            found.append((name, "property", home.__module__.startswith("labelsieve.")))
        elif inspect.isfunction(value) or isinstance(value, classmethod | staticmethod):
            found.append((name, "method", value.__module__.startswith("labelsieve.")))
    return found
