"""Read and write tables and datasets in every file format of the field."""

from labelsieve.io.dataset import Column, Dataset
from labelsieve.io.description import DatasetDescription
from labelsieve.io.errors import DatasetError
from labelsieve.io.reading import read
from labelsieve.io.writing import write

__all__ = ["Column", "Dataset", "DatasetDescription", "DatasetError", "read", "write"]
