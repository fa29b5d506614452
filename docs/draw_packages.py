"""Draw the packages of labelsieve into docs/architecture.md: ``make drawing``.

Counted are the imports that Python executes, those inside functions too; imports for type checkers are not.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import grimp

PAGE = Path(__file__).with_name("architecture.md")
SOURCE = Path(__file__).parents[1] / "src" / "labelsieve"
BEGIN, END = "<!-- drawn by docs/draw_packages.py -->\n", "<!-- end of the drawing -->\n"

Edges = Counter[tuple[str, str]]


def module_imports() -> dict[str, set[str]]:
    """Every module, with the modules of labelsieve that it imports."""
    graph = grimp.build_graph("labelsieve", exclude_type_checking_imports=True, cache_dir=None)
    return {module: graph.find_modules_directly_imported_by(module) for module in sorted(graph.modules)}


def path_of(module: str) -> Path:
    """The file of a module."""
    path = SOURCE.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def box_of(module: str) -> str:
    """The box a module is drawn in: its folder, or itself where it lies at the top."""
    folder = path_of(module).parent.relative_to(SOURCE)
    return ".".join(folder.parts) or module.rpartition(".")[2]


def draw(imports: dict[str, set[str]]) -> str:
    """The drawing and its table as Markdown."""
    lines, modules, edges = Counter[str](), Counter[str](), Edges()
    for module, imported in imports.items():
        box = box_of(module)
        modules[box] += 1
        lines[box] += len(path_of(module).read_text(encoding="utf-8").splitlines())
        edges.update((box, box_of(other)) for other in imported if box_of(other) != box)
    boxes = [f'    {box}["{box}<br>{_size(lines[box], modules[box])}"]' for box in sorted(lines)]
    arrows = [f"    {importer} --> {imported}" for importer, imported in sorted(_not_implied(edges))]
    rows = []
    for box in sorted(lines):
        targets = [f"{other} {count}" for (source, other), count in sorted(edges.items()) if source == box]
        rows.append(f"| `{box}` | {modules[box]} | {lines[box]} | {', '.join(targets)} |")
    head = ["| package | modules | lines | imports, from module to module |", "|---|---:|---:|---|"]
    total = f"| in all | {modules.total()} | {lines.total()} | |"
    return "\n".join(["```mermaid", "flowchart TD", *boxes, *arrows, "```", "", *head, *rows, total, ""])


def _size(lines: int, modules: int) -> str:
    return f"{lines} lines" + (f", {modules} modules" if modules > 1 else "")


def _not_implied(edges: Edges) -> set[tuple[str, str]]:
    """The edges that no other path replaces: with all of them, nobody could follow a line."""
    below: dict[str, set[str]] = {}
    for importer, imported in edges:
        below.setdefault(importer, set()).add(imported)

    def reached(start: str) -> set[str]:
        found: set[str] = set()
        waiting = [start]
        while waiting:
            new = below.get(waiting.pop(), set()) - found
            found |= new
            waiting += new
        return found

    def is_implied(importer: str, imported: str) -> bool:
        others = below[importer] - {imported}
        return any(imported in reached(other) and importer not in reached(other) for other in others)

    return {edge for edge in edges if not is_implied(*edge)}


def page_with_drawing() -> str:
    """The page as it should be."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{draw(module_imports())}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page_with_drawing(), encoding="utf-8")
    print(f"wrote {PAGE}", file=sys.stderr)
