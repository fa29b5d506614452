"""The user's data: as numbers where a file holds nothing else, else as a table whose columns have roles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer
from rich.console import Console

from labelsieve._text import count
from labelsieve.cli.tables import account_table
from labelsieve.cli.target import coding_note, open_target
from labelsieve.datasets.catalog import CatalogEntry
from labelsieve.inspection.review import RowNames
from labelsieve.io.dataset import Dataset
from labelsieve.io.options import CHOICES, ROLES, ReadOptions

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

    @classmethod
    def of(
        cls,
        label_sep: str | None,
        text: str | None,
        roles: Sequence[str] | None,
    ) -> TableOptions:
        """Check the options before anything is read."""
        if text is not None and text not in CHOICES["text"]:
            raise typer.BadParameter(f"{text!r} is none of {', '.join(CHOICES['text'])}", param_hint="--text")
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
        return cls(label_sep, text, tuple(found))

    @property
    def given(self) -> dict[str, Any]:
        """The options that say something, by name."""
        values = {"label-sep": self.label_sep, "text": self.text, "role": self.roles}
        return {option: value for option, value in values.items() if value}


@dataclass(frozen=True)
class Data:
    """The user's data, and the table they come from unless that is a plain table of numbers."""

    dataset: Dataset

    @property
    def table(self) -> Dataset | None:
        """The dataset if columns were encoded or left out."""
        plain = {"number", "boolean", "label", "ignored"}
        is_plain = all(
            (column.role in plain and not column.n_missing and not column.note)
            or column.name == self.dataset.id_column
            for column in self.dataset.columns
        )
        return None if not self.dataset.is_table or is_plain else self.dataset

    @property
    def ids(self) -> RowNames | None:
        """The column that names the rows, and the names."""
        column = self.dataset.id_column
        return None if column is None else RowNames(column, tuple(map(str, self.dataset.row_ids)))

    def tell(self, console: Console, *, is_coded: bool) -> None:
        """Say what became of the columns, as a note."""
        if self.table is not None:
            tell_columns(self.table, console, _COLUMNS_SHOWN)
        elif is_coded and self.dataset.nominal:
            console.print(coding_note(self.dataset.nominal))


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
) -> Data:
    """Open what `find_target` found; `column` names the rows."""
    if entry is not None:
        _refuse_given(wishes, f"is for tables in files, not for {entry.name}")
        if column is not None:
            raise typer.BadParameter(
                f"the rows of {entry.name} have no names, only numbers", param_hint="--id"
            )
    if chunks is not None:
        _refuse_given(wishes, "needs all rows at once; leave it out, or --chunk-rows")
    given = replace(
        options,
        id=column,
        label_sep=wishes.label_sep,
        text=wishes.text,
        roles=dict(wishes.roles) or None,
    )
    return Data(open_target(files, entry, given, chunks=chunks))


def _refuse_given(wishes: TableOptions, reason: str) -> None:
    """Refuse the first option for tables, if one is given."""
    if wishes.given:
        raise typer.BadParameter(reason, param_hint=f"--{next(iter(wishes.given))}")
