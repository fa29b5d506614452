"""A page for every notebook, which is executed when the site is built: what its reader would see."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from written import write_page

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before anything is read."""
    app.connect("builder-inited", _write_pages, priority=100)
    return {"parallel_read_safe": True}


def _write_pages(app: Sphinx) -> None:
    for path in sorted((app.srcdir / "notebooks").glob("*.ipynb")):
        page = path.with_suffix(".md")
        # As with the gallery: what was executed once is executed again when its code has changed.
        if page.exists() and page.stat().st_mtime > path.stat().st_mtime:
            continue
        pictures: dict[str, bytes] = {}
        text = page_of(_executed(path), path.name, pictures)
        for name, picture in pictures.items():
            path.with_name(name).write_bytes(picture)
        write_page(page, text)


def _executed(path: Path) -> Mapping[str, Any]:
    # Here, for a kernel is needed by nobody who only reads what is built.
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    return notebook


def page_of(notebook: Mapping[str, Any], name: str, pictures: dict[str, bytes]) -> str:
    """Markdown of an executed notebook; its pictures are put into `pictures` under the names that the page calls them.

    Examples
    --------
    >>> outputs = [{"output_type": "execute_result", "data": {"text/plain": "7", "text/html": "<b>7</b>"}}]
    >>> cells = [
    ...     {"cell_type": "markdown", "source": "# Numbers"},
    ...     {"cell_type": "code", "source": "3 + 4", "outputs": outputs},
    ... ]
    >>> print(page_of({"cells": cells}, "numbers.ipynb", {}).rstrip())
    # Numbers
    <BLANKLINE>
    {download}`Download this notebook <numbers.ipynb>`
    <BLANKLINE>
    ```python
    3 + 4
    ```
    <BLANKLINE>
    ````````{raw} html
    <div class="notebook-output"><b>7</b></div>
    ````````
    """
    parts = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            parts.append(cell["source"])
            continue
        parts.append(f"```python\n{cell['source']}\n```")
        for output in cell["outputs"]:
            parts.append(_shown(output, cell["source"], name, pictures))
    heading, *rest = parts
    return "\n\n".join([heading, f"{{download}}`Download this notebook <{name}>`", *rest, ""])


def _shown(output: Mapping[str, Any], code: str, name: str, pictures: dict[str, bytes]) -> str:
    """The richest form of an output that a page can show."""
    data = output.get("data", {})
    if "image/png" in data:
        picture = f"{Path(name).stem}_{len(pictures) + 1}.png"
        pictures[picture] = base64.b64decode(data["image/png"])
        drawn_by = code.strip().splitlines()[-1].partition("(")[0]
        return f"```{{image}} {picture}\n:alt: Drawn by {drawn_by}\n:class: on-white\n```"
    if "text/html" in data:
        return f'````````{{raw}} html\n<div class="notebook-output">{data["text/html"]}</div>\n````````'
    return f"```text\n{data.get('text/plain') or output.get('text', '')}\n```"
