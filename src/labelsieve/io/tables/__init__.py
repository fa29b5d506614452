"""Tables as they are: any file or frame as features, candidates and names, with every column accounted for."""

from labelsieve.io.tables.reading import read_table
from labelsieve.io.tables.table import Column, Table

__all__ = ["Column", "Table", "read_table"]
