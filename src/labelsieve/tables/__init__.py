"""Tables as they are: any file or frame as features, candidates and names, with every column accounted for."""

from labelsieve.tables.reading import read_table
from labelsieve.tables.selection import ColumnSelector
from labelsieve.tables.table import Column, Table

__all__ = ["Column", "ColumnSelector", "Table", "read_table"]
