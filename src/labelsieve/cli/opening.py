"""The user's data: as numbers where a file holds nothing else, else as a table whose columns have roles."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from labelsieve._pandas import has_pandas
from labelsieve._text import count
from labelsieve.cli.tables import account_table
from labelsieve.cli.target import coding_note, open_named, open_target
from labelsieve.datasets.catalog import CatalogEntry
from labelsieve.inspection.review import RowNames
from labelsieve.io.dataset import Dataset
from labelsieve.io.errors import DatasetError
from labelsieve.io.options import ReadOptions
from labelsieve.io.tables import read_table
from labelsieve.io.tables.opening import is_table
from labelsieve.io.tables.reading import TEXTS
from labelsieve.io.tables.understanding import ROLES

LabelSep = Annotated[
    str | None,
    typer.Option("--label-sep", metavar="MARK", help="What parts the tags of a cell, such as ';'."),
]
Text = Annotated[
    str | None,
    typer.Option("--text", help="Free text is left out ('drop', the default) or gives its words ('tfidf')."),
]
Role = Annotated[
    list[str] | None,
    typer.Option(
        "--role",
        metavar="COLUMN=ROLE",
        help="Take a column for a number, category, date, boolean, text, tags, id or label; repeatable.",
    ),
]

_COLUMNS_SHOWN = 40


@dataclass(frozen=True)
class TableOptions:
    """What a user says about a table beyond the options of all files."""

    label_sep: str | None = None
    text: str | None = None
    roles: tuple[tuple[str, str], ...] = ()
    #: Whether options were given by which all columns become numbers: --nominal and --missing.
    as_numbers: bool = False

    @classmethod
    def of(
        cls,
        label_sep: str | None,
        text: str | None,
        roles: Sequence[str] | None,
        *numbering: str | None,
    ) -> TableOptions:
        """Check the options before anything is read; `numbering` are those by which all columns become numbers."""
        if text is not None and text not in TEXTS:
            raise typer.BadParameter(f"{text!r} is none of {', '.join(TEXTS)}", param_hint="--text")
        if label_sep is not None and not label_sep.strip(" "):
            raise typer.BadParameter("a mark such as ';' was expected, got nothing", param_hint="--label-sep")
        found = []
        for said in roles or ():
            name, equals, role = said.rpartition("=")
            if not equals or role not in ROLES:
                raise typer.BadParameter(
                    f"COLUMN=ROLE was expected with a role of {', '.join(ROLES)}, got {said!r}",
                    param_hint="--role",
                )
            found.append((name, role))
        return cls(label_sep, text, tuple(found), any(option is not None for option in numbering))

    @property
    def given(self) -> dict[str, Any]:
        """The options that say something, by name."""
        values = {"label-sep": self.label_sep, "text": self.text, "role": self.roles}
        return {option: value for option, value in values.items() if value}


@dataclass(frozen=True)
class Data:
    """What was opened: features and labels, and the table and the names of its rows, if there are any."""

    dataset: Dataset
    table: Dataset | None = None
    ids: RowNames | None = None
    #: Whether all of it is columns of one file.
    is_own_table: bool = False

    def tell(self, console: Console, *, is_coded: bool) -> None:
        """Say what became of the columns, as a note."""
        if self.table is None:
            if is_coded and self.dataset.nominal:
                console.print(coding_note(self.dataset.nominal))
            return
        tell_columns(self.table, console, _COLUMNS_SHOWN)


def tell_columns(table: Dataset, console: Console, most: int) -> None:
    """Say what every column of a table was taken for; of many, those with something to say first."""
    account = table.account()
    console.print(f"columns: {table.summary()}")
    for note in table.notes:
        console.print(f"note: {note}")
    if len(account) > most:
        account = [row for row in account if row["note"]][:most]
        rest = len(table.columns) - len(account)
        console.print(f"note: {count(rest, 'column')} more: labelsieve datasets info FILE --json lists all.")
    if account:
        console.print(account_table(account), soft_wrap=False)


def open_data(
    files: list[str],
    entry: CatalogEntry | None,
    options: ReadOptions,
    wishes: TableOptions,
    column: str | None = None,
    *,
    chunks: int | str | None = None,
    as_table: bool = False,
) -> Data:
    """Open what `find_target` found: as numbers if it holds nothing else, else as a table.

    Parameters
    ----------
    column : str or None
        The column that names the rows.
    as_table : bool
        Whether a table of numbers is a table too: then a column of numbers may name the rows.
    """
    if entry is not None:
        _refuse_given(wishes, f"is for tables in files, not for {entry.name}")
    if chunks is not None:
        _refuse_given(wishes, "needs all rows at once; leave it out, or --chunk-rows")
        return Data(open_target(files, entry, options, chunks=chunks))
    if wishes.as_numbers or not _may_be_table(files, entry, options):
        _refuse_given(
            wishes,
            "is for one table of CSV, Parquet, Feather, Excel or JSON lines, without --nominal, --missing, "
            "--candidates and labels in another file",
        )
        dataset, ids = open_named(files, entry, options, column)
        return Data(_with_row_ids(dataset, ids), ids=ids)
    if not wishes.given and not (as_table and has_pandas()):
        try:
            dataset, ids = open_named(files, entry, options, column)
        except DatasetError:
            if not has_pandas():
                raise
        else:
            if not dataset.nominal or not has_pandas():
                return Data(_with_row_ids(dataset, ids), ids=ids, is_own_table=not dataset.nominal)
    table = read_table(
        files[0],
        labels=options.labels,  # type: ignore[arg-type]  # a path to another file is no table, see below
        label_sep=wishes.label_sep,
        id=column,
        ignore=options.ignore or (),
        text=wishes.text or TEXTS[0],
        roles=dict(wishes.roles),
    )
    names = None if table.id_column is None else RowNames(table.id_column, tuple(map(str, table.row_ids)))
    return Data(table, table, names, is_own_table=True)


def _with_row_ids(dataset: Dataset, ids: RowNames | None) -> Dataset:
    return dataset if ids is None else replace(dataset, row_ids=ids.names)


def _refuse_given(wishes: TableOptions, reason: str) -> None:
    """Refuse the first option for tables, if one is given."""
    if wishes.given:
        raise typer.BadParameter(reason, param_hint=f"--{next(iter(wishes.given))}")


def _may_be_table(files: Sequence[str], entry: CatalogEntry | None, options: ReadOptions) -> bool:
    """Whether the columns of one file may be anything."""
    if entry is not None or len(files) > 1 or options.candidates is not None:
        return False
    labels = options.labels
    if isinstance(labels, str) and (labels.lower().endswith(".xml") or os.path.isfile(labels)):
        return False
    return is_table(Path(files[0]))
