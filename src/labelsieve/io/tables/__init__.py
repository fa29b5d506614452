"""Tables whose columns may hold anything."""

from labelsieve.io.dataset import Column
from labelsieve.io.tables.reading import read_table
from labelsieve.io.tables.selection import ColumnSelector

__all__ = ["Column", "ColumnSelector", "read_table"]
