"""Tables in blocks of rows: named columns of files that lie side by side, split as `read` splits a whole table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from labelsieve._numerics.typing import Matrix
from labelsieve.io.errors import DatasetError, Mention
from labelsieve.io.labelling import choose_roles
from labelsieve.io.lazy.blocks import BlockReader, Facts, filled
from labelsieve.io.options import ReadOptions
from labelsieve.io.readers.source import Source
from labelsieve.io.readers.table import Table
from labelsieve.io.splitting import feature_matrix, label_matrix


class TableFile(ABC):
    """A file of named columns of numbers, of which any block of rows can be read.

    Attributes
    ----------
    refused : dict of int to DatasetError
        What to say if one of these columns, which hold no numbers, is to be used.
    """

    source: Source
    names: list[str]
    sizes: tuple[int, ...]
    headless: bool = False
    refused: dict[int, DatasetError]

    def visit(self, index: int, places: Sequence[int]) -> Any:
        """Read what all columns of a block have in common; `places` are those that anybody will ask for."""
        return None

    @abstractmethod
    def columns(self, content: Any, index: int, places: Sequence[int]) -> np.ndarray:
        """Return some columns of a block as float64, NaN where a value is missing."""

    @property
    def heading(self) -> Table:
        """The table without its rows."""
        return Table(
            self.names, np.empty((0, len(self.names))), headless=self.headless, refused=dict(self.refused)
        )


class TableReader(BlockReader):
    """Features and labels of a table whose rows are read in blocks.

    Parameters
    ----------
    file : TableFile
        The data; labels may stand in further files, which `open_second` opens and cuts into blocks of so many rows.
    """

    def __init__(
        self, file: TableFile, options: ReadOptions, open_second: Callable[[Path, int], TableFile]
    ) -> None:
        self.source, self.options = file.source, options
        self.files = [file]

        def second_table(path: Path) -> Table:
            self.files.append(open_second(path, file.sizes[0]))
            self._check_same_rows(self.files[-1])
            return self.files[-1].heading

        table, roles = choose_roles(file.heading, options, self.source.error, second_table=second_table)
        self.widths = [0, *accumulate(len(part.names) for part in self.files)]
        self.places = {"X": roles.features, "Y": roles.labels, "Y_candidates": roles.candidates}
        self.own_places = {role: self._by_file(places) for role, places in self.places.items()}
        self.used = self._by_file([place for places in self.places.values() for place in places])
        for file, own in zip(self.files, self._by_file([*roles.labels, *roles.candidates]), strict=True):
            for place in own:
                if place in file.refused:
                    raise file.refused[place]
        self.table = table.keep(roles.features)
        _, names, nominal = feature_matrix(self.table, options, self.source.error)
        if nominal and options.nominal == "onehot":
            raise self.source.error(
                "can have its categories counted only with all rows in memory; leave out ",
                Mention("nominal", "onehot"),
                ", or code them before",
            )
        self.facts = Facts(
            file.sizes,
            len(names),
            len(roles.label_names),
            tuple(role for role in ("Y", "Y_candidates") if self.places[role]),
            feature_names=tuple(names),
            label_names=roles.label_names,
            nominal=tuple(nominal),
        )

    def visit(self, index: int) -> Any:
        """Read what the columns of a block have in common, file by file."""
        return [file.visit(index, own) for file, own in zip(self.files, self.used, strict=True)]

    def part(self, content: Any, index: int, role: str) -> Matrix:
        """Return features, or labels in 0/1, of a block."""
        parts = [
            file.columns(own_content, index, own)
            for file, own_content, own in zip(self.files, content, self.own_places[role], strict=True)
            if own
        ]
        values = parts[0] if len(parts) == 1 else np.hstack(parts)
        if role != "X":
            # They were read in the order of the columns; candidates stand in that of their labels.
            places = self.places[role]
            values = values[:, np.searchsorted(sorted(places), places)]
            return label_matrix(Table(list(self.facts.label_names or ()), values), self.source.error)
        block = Table(self.table.names, filled(values, self.options.missing, self.source, self.table.names))
        return feature_matrix(block, self.options, self.source.error)[0]

    def _check_same_rows(self, other: TableFile) -> None:
        own, others = self.files[0].sizes, other.sizes
        if own == others:
            return
        if sum(own) != sum(others):
            raise self.source.error(
                f"has {sum(own)} rows but {other.source.path} has {sum(others)}; they must match"
            )
        raise self.source.error(
            f"and {other.source.path} must have the same rows in every block, got {own[:3]} and {others[:3]}; "
            "give another number of rows, or put the labels into the same file"
        )

    def _by_file(self, places: Sequence[int]) -> list[list[int]]:
        """Places in every file, in rising order."""
        rising = sorted(places)
        bounds = np.searchsorted(rising, self.widths)
        return [
            [place - first for place in rising[start:stop]]
            for first, (start, stop) in zip(self.widths[:-1], pairwise(bounds), strict=True)
        ]
