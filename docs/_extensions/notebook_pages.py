"""Execute every notebook and write a page with its outputs."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from written import write_page

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before Sphinx reads them."""
    app.connect("builder-inited", _write_pages, priority=100)
    return {"parallel_read_safe": True}


def _write_pages(app: Sphinx) -> None:
    for path in sorted((app.srcdir / "notebooks").glob("*.ipynb")):
        page = path.with_suffix(".md")
        # Like the gallery, run a notebook again only if it changed.
        if page.exists() and page.stat().st_mtime > path.stat().st_mtime:
            continue
        images: dict[str, bytes] = {}
        text = page_of(_execute(path), path.name, images)
        for name, image in images.items():
            path.with_name(name).write_bytes(image)
        write_page(page, text)


def _execute(path: Path) -> Mapping[str, Any]:
    # Imported here, because only building the site needs a kernel.
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    return notebook


def page_of(notebook: Mapping[str, Any], name: str, images: dict[str, bytes]) -> str:
    """Return the Markdown of an executed notebook, and add its images to `images` by file name.

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
            parts.append(_render(output, cell["source"], name, images))
    heading, *rest = parts
    return "\n\n".join([heading, f"{{download}}`Download this notebook <{name}>`", *rest, ""])


def _render(output: Mapping[str, Any], code: str, name: str, images: dict[str, bytes]) -> str:
    """Return the richest form of an output that a page can show."""
    data = output.get("data", {})
    if "image/png" in data:
        image = f"{Path(name).stem}_{len(images) + 1}.png"
        images[image] = base64.b64decode(data["image/png"])
        drawn_by = code.strip().splitlines()[-1].partition("(")[0]
        return f"```{{image}} {image}\n:alt: Drawn by {drawn_by}\n:class: on-white\n```"
    if "text/html" in data:
        return f'````````{{raw}} html\n<div class="notebook-output">{data["text/html"]}</div>\n````````'
    return f"```text\n{data.get('text/plain') or output.get('text', '')}\n```"
