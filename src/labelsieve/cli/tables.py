"""What a fit found, as tables for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from labelsieve._text import printable
from labelsieve.cli.console import bar
from labelsieve.inspection.result import Audit
from labelsieve.size_curve import SizeCurve

_BAR_WIDTH, _LEAST_BAR_WIDTH = 20, 5
# Narrower than this, the leading number of a feature is all there is room for.
_TWO_MEASURES = 60
# Columns of names that hold numbers.
_COUNTS = ("features", "columns")
_LONGEST_ID, _LONGEST_COLUMN, _LEAST_MEMBER = 24, 36, 12
# What rich puts between two columns of this kind of table.
_GAP = 3


def ranking_table(
    found: Audit, console: Console, *, width: int | None = None, everything: bool = False
) -> RenderableType:
    """Draw rank, name and worth of the selected columns, or of all with the selected marked."""
    ranking = found.ranking
    assert ranking is not None
    listed = ranking.order if everything else ranking.kept
    names = [found.ranked_columns[column].name for column in listed]
    width = width or console.width
    columns = {"rank": [str(ranking.places[column]) for column in listed], found.unit: names}
    for name in list(ranking.shown)[: None if width >= _TWO_MEASURES else 1]:
        # Evidence is a number like 55.8; scores have any size.
        form = "#.4g" if name == "score" else ".1f"
        columns[name] = [f"{ranking.shown[name][column]:{form}}" for column in listed]
    if everything:
        columns["selected"] = ["yes" if ranking.places[column] <= ranking.n_kept else "" for column in listed]
    if any(len(found.ranked_columns[column].features) > 1 for column in listed):
        # Worth a look even without room for bars, but not at the cost of numbers or names.
        free = width - sum(max(len(name), *map(len, cells)) + _GAP for name, cells in columns.items())
        if free >= _LEAST_MEMBER:
            columns["best of it"] = [_best_feature(found, column, free) for column in listed]
    return _with_bars(console, columns, ranking.shares[listed].tolist(), width=width, long=found.unit)


def _best_feature(found: Audit, column: int, width: int) -> str:
    """The best feature of a column, if there are several, without the name of the column itself."""
    of_table = found.ranked_columns[column]
    if len(of_table.features) < 2:
        return ""
    assert found.ranking is not None
    name = found.dataset.feature_names[found.ranking.best_feature[column]]
    shown = printable(name.removeprefix(of_table.name).lstrip(":= "))
    return shown if len(shown) <= width else f"{shown[: width - 3]}..."


def account_table(account: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Draw what every column of a table was taken for."""
    columns = {
        "column": [printable(row["column"]) for row in account],
        "taken for": [str(row["role"]) for row in account],
        "missing": [str(row["missing"] or "") for row in account],
        "features": [str(row["features"] or "") for row in account],
    }
    notes = [printable(row["note"]) for row in account]
    if any(notes):
        columns[""] = notes
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    longest = min(_LONGEST_COLUMN, max(map(len, columns["column"])))
    for name in columns:
        is_name = name == "column"
        table.add_column(
            name,
            justify="right" if name in ("missing", "features") else "left",
            no_wrap=name != "",
            overflow="ellipsis" if is_name else "fold",
            min_width=longest if is_name else None,
            max_width=_LONGEST_COLUMN if is_name else None,
        )
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    return table


def issues_table(found: Audit, console: Console, n_shown: int) -> RenderableType:
    """Draw the candidates that features and other labels support least."""
    listed = list(found.issue_records(n_shown))
    columns = {
        "row": [short(record["row"]) for record in listed],
        "label": [record["label"] for record in listed],
        "support": [f"{record['support']:.2f}" for record in listed],
    }
    if listed and "wrong" in listed[0]:
        columns["truth"] = ["wrong" if record["wrong"] else "right" for record in listed]
    title = f"least supported candidate labels, of {found.n_candidates}"
    return lay_out(console.width, columns, long="label", title=title)


def short(name: object) -> str:
    """A name of a row that leaves room for others."""
    shown = printable(name)
    return shown if len(shown) <= _LONGEST_ID else f"{shown[: _LONGEST_ID - 3]}..."


def size_table(curve: SizeCurve, console: Console, unit: str = "feature") -> RenderableType:
    """Draw how well the best features, or columns, predict held-out candidates, by their number."""
    columns = {
        f"{unit}s": [str(size) for size in curve.sizes],
        "precision": [f"{value:.3f}" for value in curve.mean],
        "spread": [f"{value:.3f}" for value in curve.spread],
        "taken": ["yes" if size == curve.best else "" for size in curve.sizes],
    }
    top = curve.mean.max() or 1.0
    title = "how many are enough: average precision on held-out rows"
    return _with_bars(
        console, columns, list(curve.mean / top), width=console.width, long=f"{unit}s", title=title
    )


def stability_table(found: Audit, console: Console) -> RenderableType:
    """Draw how often subsamples select each selected column."""
    stability, ranking = found.stability, found.ranking
    assert stability is not None
    assert ranking is not None
    kept = ranking.kept
    frequency, together = stability.frequency[kept], stability.group_frequency[kept]
    cells = {
        found.unit: [found.ranked_columns[column].name for column in kept],
        "selected": [f"{share:.0%}" for share in frequency],
        "95 % interval": [f"{low:.0%} to {high:.0%}" for low, high in stability.interval[kept]],
    }
    if (together > frequency).any():
        cells["or a substitute"] = [f"{share:.0%}" for share in together]
    title = f"stability: selected in {stability.n_resamples} subsamples"
    return _with_bars(console, cells, frequency.tolist(), width=console.width, long=found.unit, title=title)


def _with_bars(
    console: Console,
    columns: dict[str, list[str]],
    shares: list[float],
    *,
    width: int,
    long: str = "feature",
    title: str | None = None,
) -> RenderableType:
    """Lay out columns with a bar at the end, where it does not cost a name."""
    free = width - sum(max(len(name), *map(len, cells)) + _GAP for name, cells in columns.items())
    bar_width = min(free, _BAR_WIDTH)
    if bar_width >= _LEAST_BAR_WIDTH:
        columns = {**columns, "": [bar(console, share, bar_width) for share in shares]}
    return lay_out(width, columns, long=long, title=title)


def lay_out(
    width: int, columns: dict[str, list[str]], *, long: str, title: str | None = None
) -> RenderableType:
    """Lay out columns of which one holds names of any length: that one is cut where the terminal ends."""
    columns = {**columns, long: [printable(name) for name in columns[long]]}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    widths = {name: max(len(name), *map(len, cells)) for name, cells in columns.items() if name != long}
    room = width - sum(widths.values()) - _GAP * len(widths)
    for name, cells in columns.items():
        is_number = cells[0][-1:].isdigit() or cells[0][-1:] == "%"
        table.add_column(
            name,
            justify="right" if is_number and (name != long or name in _COUNTS) else "left",
            no_wrap=True,
            overflow="ellipsis",
            min_width=widths.get(name),
            max_width=max(room, len(long)) if name == long else None,
        )
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    # A title of the table itself would be broken where the table ends.
    return table if title is None else Group(Text(title, style="bold"), table)
