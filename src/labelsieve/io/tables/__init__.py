"""Tables whose columns may hold anything."""

from labelsieve.io.dataset import Column
from labelsieve.io.tables.reading import read_table

__all__ = ["Column", "read_table"]
