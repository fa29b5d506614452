"""What is audited: the features, candidate labels and names of a table, whatever it came from."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from labelsieve._numerics.sparse import dense
from labelsieve._numerics.typing import Matrix
from labelsieve.io import read
from labelsieve.io.dataset import Column, Dataset, show_value

__all__ = ["Subject", "show_value"]


@dataclass(frozen=True, eq=False)
class Subject:
    """A table ready to be audited.

    Attributes
    ----------
    name, source : str
        What to call the table, and the file it came from; "" if none.
    X : {ndarray, CSR} of shape (n_samples, n_features)
        Features.
    Y : {ndarray, CSR} of shape (n_samples, n_labels)
        0/1 candidates.
    feature_names, label_names : tuple of str
        Names.
    columns : tuple of Column
        The columns that have features.
    column_of : ndarray of shape (n_features,)
        The number of the column each feature comes from.
    row_ids : tuple
        The user's names of the rows.
    values, written : DataFrame or None
        The user's own table as understood and as written; None shows features.
    remarks : tuple of str
        What was done to the table before.
    """

    name: str
    source: str
    X: Matrix
    Y: Matrix
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...]
    columns: tuple[Column, ...]
    column_of: np.ndarray
    row_ids: tuple[Hashable, ...]
    values: Any = None
    written: Any = None
    remarks: tuple[str, ...] = ()

    @classmethod
    def of_dataset(cls, dataset: Dataset, row_ids: Any = None) -> Subject:
        """Take the columns of a dataset that have features."""
        if dataset.is_lazy:
            raise ValueError(
                "an audit must hold all rows. Got rows that are read in blocks. Audit a sample of them, or use select "
                "--chunk-rows."
            )
        ranked = dataset.ranked
        left_out = [
            f"{column.name} ({column.role})"
            for column in dataset.columns
            if not column.features and column.role not in ("label", "ignored")
        ]
        remarks = [f"{note.rstrip('.')}." for note in dataset.notes]
        if left_out:
            remarks.append(f"Not ranked: {', '.join(left_out)}.")
        n_missing = sum(dataset.columns[position].n_missing for position in ranked)
        if n_missing:
            remarks.append(f"{n_missing:,} empty cells of ranked columns were filled in for the computation.")
        return cls(
            name=dataset.name or "table",
            source=dataset.source,
            X=dataset.X,
            Y=dataset.candidates,
            feature_names=dataset.feature_names,
            label_names=dataset.label_names,
            columns=tuple(dataset.columns[position] for position in ranked),
            column_of=np.searchsorted(ranked, dataset.column_of),
            row_ids=tuple(dataset.row_ids if row_ids is None else row_ids),
            values=dataset.values,
            written=dataset.frame,
            remarks=tuple(remarks),
        )

    @classmethod
    def of_arrays(cls, X: Any, Y: Any, *, name: str = "", row_ids: Any = None) -> Subject:
        """Take features and candidates as `read` does."""
        return cls.of_dataset(read(X, Y, name=name), row_ids)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns that have features, and labels."""
        return self.X.shape[0], len(self.columns), len(self.label_names)

    def features_of(self, column: int) -> np.ndarray:
        """Numbers of the features that a column gives."""
        return np.flatnonzero(self.column_of == column)

    def feature(self, feature: int) -> np.ndarray:
        """A feature as a vector."""
        values: np.ndarray = dense(self.X[:, [feature]]).ravel()
        return values

    def cell(self, row: int, column: int) -> str:
        """What the user's table says there, cut where it is long."""
        of_table = self.columns[column]
        if self.values is None or self.written is None:
            return show_value(self.X[row, self.features_of(column)[0]])
        # Numbers are shortened; everything else is shown as the user wrote it.
        cells = self.values if of_table.role == "number" else self.written
        return show_value(cells[of_table.name].iat[row])
