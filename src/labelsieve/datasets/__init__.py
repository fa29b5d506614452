"""Data sets: the container, every file format of the field."""

from labelsieve.datasets.dataset import Dataset, DatasetError
from labelsieve.datasets.description import DatasetDescription
from labelsieve.datasets.reading import read
from labelsieve.datasets.writing import write

__all__ = ["Dataset", "DatasetDescription", "DatasetError", "read", "write"]
