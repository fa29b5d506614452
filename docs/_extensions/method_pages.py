"""Write a page for every method: docstring, costs and ranks in the committed experiments."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

from numpydoc.docscrape import NumpyDocString

from committed_results import measured_costs, reports
from labelsieve import METHODS
from labelsieve.cli.methods import explain
from written import examples_that_use, list_table, remove_others, underlined, write_page

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before Sphinx reads them."""
    app.connect("builder-inited", _write_pages, priority=100)
    return {"parallel_read_safe": True}


def _write_pages(app: Sphinx) -> None:
    folder = app.srcdir / "methods"
    for slug in METHODS:
        write_page(folder / f"{slug}.rst", _page(slug))
    write_page(folder / "index.rst", index_page())
    remove_others(folder, ["index.rst", *(f"{slug}.rst" for slug in METHODS)])


def index_page() -> str:
    """Return the table of all methods."""
    ranks = {name: ranked_names(name) for name in ("paper", "paper-lite", "field") if ranked_names(name)}
    rows = []
    for slug, method in METHODS.items():
        costs = measured_costs().get(slug, {})
        rows.append(
            (
                f":doc:`{slug}`",
                f":doc:`{method.__name__} </api/labelsieve.{method.__name__}>`",
                (inspect.getdoc(method) or "").partition("\n")[0],
                *(_place(names, slug) for names in ranks.values()),
                costs.get("yeast", "").partition(" /")[0],
            )
        )
    return "\n".join(
        [
            underlined("Methods"),
            "Each page shows what the method minimizes, its paper, what it costs and how it ranks. "
            ":doc:`/guide/choosing_a_method` helps you choose, and :doc:`/api/index` lists the parameters.\n",
            "A place is that of the average rank over all metrics and datasets of a profile, with its main "
            "classifier and including the references (:doc:`/results/index`). Most neighbours in such a list do not "
            "differ significantly. Seconds are for one fit on yeast (2417 rows, 103 features, 14 labels).\n",
            list_table(
                ("method", "class", "what it does", *(f"place in ``{name}``" for name in ranks), "seconds"),
                rows,
            ),
            ".. toctree::\n   :hidden:\n",
            *(f"   {slug}" for slug in METHODS),
            "",
        ]
    )


def ranked_names(profile: str) -> list[str]:
    """List methods and references of a profile by average rank. Empty if there is no summary."""
    if profile not in reports():
        return []
    ranks = reports()[profile].analysis.main.among_all
    return sorted(ranks, key=ranks.__getitem__)


def _place(names: list[str], slug: str) -> str:
    return f"{names.index(slug) + 1} of {len(names)}" if slug in names else ""


def _page(slug: str) -> str:
    method = METHODS[slug]
    text = inspect.getdoc(method) or ""
    doc = NumpyDocString(text)
    cost, notes = _split_cost("\n".join(doc["Notes"]))
    parts = [
        f".. _method-{slug}:\n",
        underlined(slug),
        " ".join(doc["Summary"]) + "\n",
        f"Class :doc:`{method.__name__} </api/labelsieve.{method.__name__}>`. On the command line: "
        f"``labelsieve select DATA --method {slug}``.\n",
        "\n".join(doc["Extended Summary"]) + "\n",
    ]
    if explain(slug, method)["reconstruction"]:
        parts.append(
            ".. note::\n\n   A reconstruction in the style of the paper, which leaves important details open.\n"
        )
    parts += [underlined("Paper", "-"), "\n".join(doc["References"]) or "None.", ""]
    if doc["References"]:
        parts.append(
            "If you publish results of this method, cite the paper and :doc:`this package </project/cite>`.\n"
        )
    parts += [underlined("What it costs", "-"), cost]
    costs = measured_costs().get(slug)
    if costs:
        parts += [
            "One fit with the defaults: seconds / MiB above the data / iterations. \\* means that the "
            "iteration limit was reached first. :doc:`/project/measured` describes the measurement.\n",
            list_table(
                ("dataset", "cost"), ((name, cost.replace("*", r"\*")) for name, cost in costs.items())
            ),
        ]
    else:
        parts.append("Not measured yet.\n")
    parts += [underlined("In our experiments", "-"), _standing(slug)]
    if notes:
        parts += [underlined("Notes", "-"), notes]
    parts += [underlined("Example", "-"), "\n".join(doc["Examples"]) + "\n"]
    parts.append(examples_that_use(f"labelsieve.{method.__name__}"))
    return "\n".join(parts)


def _standing(slug: str) -> str:
    rows = []
    for profile, report in reports().items():
        main = report.analysis.main
        ranks = main.among_all
        if slug not in ranks:
            continue
        names = ranked_names(profile)
        among = (
            f"{list(main.overall).index(slug) + 1} of {len(main.overall)}"
            if slug in main.overall
            else "reference"
        )
        rows.append(
            (
                f":doc:`{profile} </results/{profile}>`",
                main.classifier,
                f"{ranks[slug]:.2f}",
                _place(names, slug),
                among,
            )
        )
    if not rows:
        return "No committed experiment includes it yet.\n"
    return "Average rank over all metrics and datasets. 1 is best.\n\n" + list_table(
        (
            "experiment",
            "classifier",
            "average rank",
            "place with references",
            "place among methods",
        ),
        rows,
    )


def _split_cost(notes: str) -> tuple[str, str]:
    """Split the notes into the paragraph that begins with "Cost: " and the rest."""
    cost = re.search(r"^Cost: (.*?)(?:\n\n|\Z)", notes, re.DOTALL | re.MULTILINE)
    if cost is None:
        return "", f"{notes}\n" if notes else ""
    rest = (notes[: cost.start()] + notes[cost.end() :]).strip()
    return f"{cost[1][:1].upper()}{cost[1][1:]}\n", f"{rest}\n" if rest else ""
