"""``labelsieve datasets``: list, describe and fetch data sets."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from labelsieve._text import printable
from labelsieve.cli.console import AsJson, PlainConsole, bar, messages
from labelsieve.cli.downloads import download_bars
from labelsieve.cli.opening import LabelSep, Role, TableOptions, Text, open_data, tell_columns
from labelsieve.cli.target import (
    Candidates,
    Identifier,
    Ignore,
    Labels,
    Missing,
    Nominal,
    find_target,
    reading_options,
)
from labelsieve.datasets.catalog import CATALOG, CatalogEntry
from labelsieve.datasets.fetch import availability, fetch, find_entry

_BARS_SHOWN = 15
_BAR_WIDTH = 30
_NAME_WIDTH = 28
_COLUMNS_SHOWN = 200

app = typer.Typer(help="List, describe and fetch data sets.")


@app.callback(invoke_without_command=True)
def datasets(context: typer.Context) -> None:
    """List, describe and fetch data sets; without a command, list them."""
    if context.invoked_subcommand is None:
        list_catalogue()


@app.command("list")
def list_catalogue(as_json: AsJson = False) -> None:
    """List the catalogue: sizes, cardinality, and where each data set would come from.

    Example: labelsieve datasets list
    """
    places = {name: availability(name) for name in CATALOG}
    if as_json:
        typer.echo(json.dumps([_catalogue_figures(CATALOG[name], place) for name, place in places.items()]))
        return
    table = Table("name")
    for title in ("samples", "features", "labels", "cardinality"):
        table.add_column(title, justify="right")
    table.add_column("from")
    for name, place in places.items():
        entry = CATALOG[name]
        sizes = [_or_dash(value) for value in entry.shape]
        table.add_row(name, *sizes, _or_dash(entry.cardinality, ".3f"), place)
    PlainConsole().print(table)


@app.command()
def info(
    target: Annotated[str, typer.Argument(metavar="NAME-or-FILE", help="Catalogue name or data file.")],
    labels: Labels = None,
    candidates: Candidates = None,
    ignore: Ignore = None,
    nominal: Nominal = None,
    missing: Missing = None,
    identifier: Identifier = None,
    label_sep: LabelSep = None,
    text: Text = None,
    role: Role = None,
    as_json: AsJson = False,
) -> None:
    """Describe a data set and draw how frequent its labels are; of a table, say what every column is taken for.

    Examples: labelsieve datasets info yeast; labelsieve datasets info data.arff --labels data.xml
    """
    options = reading_options(
        labels=labels, candidates=candidates, ignore=ignore, nominal=nominal, missing=missing
    )
    entry = find_target([target], options, messages())
    data = open_data([target], entry, options, TableOptions.of(label_sep, text, role), identifier)
    description = data.dataset.describe()
    if as_json:
        known: dict[str, Any] = (
            {} if entry is None else {"catalogue": _catalogue_figures(entry, availability(entry.name))}
        )
        if data.table is not None:
            known = {"columns": data.table.account(), "notes": list(data.table.notes)}
        typer.echo(json.dumps({**description.as_dict(), **known}))
        return
    console = PlainConsole(soft_wrap=True)
    console.print(str(description))
    if entry is not None:
        for title, text in (
            ("cite", entry.citation),
            ("licence", entry.licence),
            ("remark", entry.remark),
            ("altered copies", entry.altered),
        ):
            if text:
                console.print(f"{title:<26}{text}")
    console.print()
    if data.table is not None:
        tell_columns(data.table, console, _COLUMNS_SHOWN)
        console.print()
    _draw_frequencies(console, description.label_counts, description.n_samples)


@app.command("fetch")
def fetch_command(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Catalogue names.")],
) -> None:
    """Download data sets into the cache, verified; prints their folders.

    Example: labelsieve datasets fetch yeast scene
    """
    entries = [find_entry(name) for name in names]  # a misspelt name is told before anything is downloaded
    console = messages()
    with download_bars(console) as bars:
        for entry in entries:
            paths = fetch(entry.name, progress=bars)
            if paths:
                typer.echo(f"{entry.name}\t{next(iter(paths.values())).parent}")
            else:
                console.print(f"note: {entry.name} is built in; there is nothing to download.")


def _draw_frequencies(console: Console, counts: dict[str, int], n_samples: int) -> None:
    """Draw one bar per label, most frequent first; of many labels only the first."""
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    most = max(1, ranked[0][1])
    table = Table.grid(padding=(0, 1))
    table.add_column(max_width=_NAME_WIDTH, no_wrap=True, overflow="ellipsis")
    table.add_column(width=_BAR_WIDTH, no_wrap=True)
    table.add_column(justify="right")
    table.add_column(justify="right")
    for name, count in ranked[:_BARS_SHOWN]:
        table.add_row(
            printable(name), bar(console, count / most, _BAR_WIDTH), str(count), f"{count / n_samples:.1%}"
        )
    console.print(table, soft_wrap=False)
    rest = ranked[_BARS_SHOWN:]
    if rest:
        console.print(f"and {len(rest)} rarer labels, the rarest with {rest[-1][1]} of {n_samples} samples")


def _catalogue_figures(entry: CatalogEntry, place: str) -> dict[str, Any]:
    """Return what the catalogue knows, as plain values."""
    return {
        "name": entry.name,
        **dict(zip(("n_samples", "n_features", "n_labels"), entry.shape, strict=True)),
        "cardinality": entry.cardinality,
        "candidate_cardinality": entry.candidate_cardinality,
        "from": place,
        "domain": entry.domain,
        "citation": entry.citation,
        "licence": entry.licence,
        "remark": entry.remark,
        "altered": entry.altered,
        "files": {file.name: {"sha256": file.sha256, "urls": file.urls} for file in entry.files},
    }


def _or_dash(value: float | None, spec: str = "") -> str:
    """Format a figure that may be unknown."""
    return "-" if value is None else format(value, spec)
