"""``labelsieve datasets``: list, describe and download datasets."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console

from labelsieve._text import count, short
from labelsieve.cli import COMMANDS, Command
from labelsieve.cli._console import PlainConsole, download_bars, lay_out, messages, results
from labelsieve.cli._options import AsJson, DataOptions, describe_columns, with_data_options
from labelsieve.datasets.catalog import CATALOG, CatalogEntry
from labelsieve.datasets.fetch import availability, fetch, find_entry

_BARS_SHOWN = 15
_COLUMNS_SHOWN = 200

app = typer.Typer(help=COMMANDS["datasets"])


@app.callback(invoke_without_command=True)
def datasets(context: typer.Context) -> None:
    """List, describe and download datasets. Without a subcommand, list them."""
    if context.invoked_subcommand is None:
        list_catalogue()


@app.command("list", cls=Command, epilog="Example: labelsieve datasets list --json")
def list_catalogue(as_json: AsJson = False) -> None:
    """List the catalogue with sizes and sources."""
    if as_json:
        typer.echo(json.dumps([_catalogue_figures(entry) for entry in CATALOG.values()]))
        return
    entries = CATALOG.values()
    columns: dict[str, list[str]] = {"name": list(CATALOG)}
    for place, title in enumerate(("rows", "features", "labels")):
        columns[title] = [_or_dash(entry.shape[place]) for entry in entries]
    columns["cardinality"] = [_or_dash(entry.cardinality, ".3f") for entry in entries]
    columns["source"] = [availability(name) for name in CATALOG]
    console = results()
    console.print(lay_out(console, columns, long="name"))


@app.command("info", cls=Command, epilog="Example: labelsieve datasets info data.csv --labels 'label_*'")
@with_data_options
def info(data: DataOptions, as_json: AsJson = False) -> None:
    """Describe a dataset by size, column roles and label frequencies."""
    entry = data.find_entry(messages())
    dataset = data.read(messages())
    description = dataset.describe()
    if as_json:
        found = description.as_dict()
        if entry is not None:
            found["catalogue"] = _catalogue_figures(entry)
        if dataset.is_table:
            found |= {"columns": dataset.account(), "notes": list(dataset.notes)}
        typer.echo(json.dumps(found))
        return
    console = PlainConsole(soft_wrap=True)
    console.print(str(description))
    if entry is not None:
        titles = {
            "citation": "citation",
            "licence": "licence",
            "remark": "remark",
            "altered": "altered copies",
        }
        for name, title in titles.items():
            if text := getattr(entry, name):
                console.print(f"{title:<26}{text}")
    console.print()
    if dataset.is_table:
        describe_columns(dataset, console, _COLUMNS_SHOWN)
        console.print()
    _draw_frequencies(console, description.label_counts, description.n_samples)


@app.command("fetch", cls=Command, epilog="Example: labelsieve datasets fetch yeast scene")
def fetch_command(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names from the catalogue.")],
) -> None:
    """Download and verify datasets, then print their folders."""
    entries = [find_entry(name) for name in names]  # an unknown name fails before any download
    console = messages()
    with download_bars(console) as bars:
        for entry in entries:
            paths = fetch(entry.name, progress=bars)
            if paths:
                typer.echo(f"{entry.name}\t{next(iter(paths.values())).parent}")
            else:
                console.print(f"note: {entry.name} is built in and needs no download.")


def _draw_frequencies(console: Console, counts: dict[str, int], n_samples: int) -> None:
    """Draw one bar per label, the most frequent labels first."""
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    first, rest = ranked[:_BARS_SHOWN], ranked[_BARS_SHOWN:]
    columns: dict[str, list[str]] = {
        "label": [short(name) for name, _ in first],
        "rows": [str(number) for _, number in first],
        "percent": [f"{number / n_samples:.1%}" for _, number in first],
    }
    bars = [number / max(1, ranked[0][1]) for _, number in first]
    console.print(lay_out(console, columns, long="label", bars=bars), soft_wrap=False)
    if rest:
        console.print(
            f"and {count(len(rest), 'rarer label')}, the rarest in {rest[-1][1]} of {count(n_samples, 'row')}"
        )


def _catalogue_figures(entry: CatalogEntry) -> dict[str, Any]:
    """Return a catalogue entry for JSON."""
    return {
        "name": entry.name,
        **dict(zip(("n_samples", "n_features", "n_labels"), entry.shape, strict=True)),
        "cardinality": entry.cardinality,
        "candidate_cardinality": entry.candidate_cardinality,
        "from": availability(entry.name),
        "domain": entry.domain,
        "citation": entry.citation,
        "licence": entry.licence,
        "remark": entry.remark,
        "altered": entry.altered,
        "files": {file.name: {"sha256": file.sha256, "urls": file.urls} for file in entry.files},
    }


def _or_dash(value: float | None, spec: str = "") -> str:
    """Format a number that may be unknown."""
    return "-" if value is None else format(value, spec)
