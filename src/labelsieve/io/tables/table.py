"""A user's table as features, candidates and names, with every column accounted for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsieve._numerics.typing import Matrix
from labelsieve.io import Dataset
from labelsieve.io.tables.opening import Opened

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["Column", "Table"]


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : str
        Its name.
    role : {"id", "date", "number", "category", "boolean", "text", "tags", "constant", "label", "ignored"}
        What it is taken for.
    n_missing : int
        How many of its values are missing.
    note : str
        What else should be said about it; often nothing.
    features : tuple of int
        Which columns of `Table.X` are made of it: none for a label or what is left out.

    Examples
    --------
    >>> import pandas as pd
    >>> from labelsieve.io.tables import read_table
    >>> table = read_table(pd.DataFrame({"size": [1.5, 2, 4], "tags": ["a;b", "b", "a"]}))
    >>> [(column.name, column.role, column.features) for column in table.columns]
    [('size', 'number', (0,)), ('tags', 'label', ())]
    """

    name: str
    role: str
    n_missing: int = 0
    note: str = ""
    features: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Features, candidate labels and names of the rows out of a table, and what became of every column.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_rows, n_features)
        Finite features, none of them constant.
    Y : ndarray or csr_array of shape (n_rows, n_labels)
        Candidate labels, 0 or 1.
    feature_names, label_names : tuple of str
        Names; all differ.
    columns : tuple of Column
        The columns of the table, in its order.
    column_of : ndarray of int of shape (n_features,)
        Position in `columns` of the column that each feature is made of; it never falls.
    label_column_of : ndarray of int of shape (n_labels,)
        Position in `columns` of the column of each label.
    row_ids : list of str
        What the rows are called: the column that names them, else the index of a frame, else numbers from 0.
    frame : DataFrame
        The table as read; cells of CSV are texts.
    values : DataFrame
        The table as understood: numbers with NaN, moments, texts and tuples of tags, None where one is missing.
    name, source : str
        What to call the table, and where it came from.
    id_column : str or None
        Name of the column that `row_ids` are taken from.
    notes : tuple of str
        What should be said about the table as a whole.

    Examples
    --------
    >>> import pandas as pd
    >>> from labelsieve.io.tables import read_table
    >>> table = read_table(pd.DataFrame({"size": [1.5, 2, 4], "tags": ["a;b", "b", "a"]}))
    >>> table.X.shape, table.label_names, table.Y.tolist()
    ((3, 1), ('a', 'b'), [[1, 1], [0, 1], [1, 0]])
    """

    X: Matrix
    Y: Matrix
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...]
    columns: tuple[Column, ...]
    column_of: np.ndarray
    label_column_of: np.ndarray
    row_ids: list[str]
    frame: DataFrame
    values: DataFrame
    name: str = ""
    source: str = ""
    id_column: str | None = None
    notes: tuple[str, ...] = ()
    _opened: Opened | None = field(default=None)
    _tags: tuple[str | None, ...] = ()
    _separators: Mapping[int, str | None] = field(default_factory=dict)

    @property
    def n_columns(self) -> int:
        """How many columns can be ranked: those that features are made of."""
        return len(self.ranked)

    @property
    def ranked(self) -> tuple[int, ...]:
        """Positions of the columns that features are made of."""
        return tuple(np.unique(self.column_of).tolist())

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns that features are made of."""
        return tuple(self.columns[position].name for position in self.ranked)

    def dataset(self) -> Dataset:
        """Return features and labels as a `Dataset`, which forgets the columns."""
        return Dataset(
            self.X,
            self.Y,
            feature_names=self.feature_names,
            label_names=self.label_names,
            name=self.name,
            source=self.source,
        )

    def account(self) -> list[dict[str, Any]]:
        """Return what every column is taken for, as rows of ``column, role, missing, features, note``."""
        return [
            {
                "column": column.name,
                "role": column.role,
                "missing": column.n_missing,
                "features": len(column.features),
                "note": column.note,
            }
            for column in self.columns
        ]

    def summary(self) -> str:
        """Say in one line how many columns have which role."""
        roles = Counter(column.role for column in self.columns)
        n_missing = sum(column.n_missing for column in self.columns)
        missing = f"; {n_missing} missing values" if n_missing else ""
        return ", ".join(f"{count} {role}" for role, count in roles.items()) + missing

    def __repr__(self) -> str:
        return (
            f"Table {self.name!r}: {self.X.shape[0]} rows, {len(self.columns)} columns, {self.n_columns} of them with "
            f"{self.X.shape[1]} features, {len(self.label_names)} labels ({self.summary()})"
        )
