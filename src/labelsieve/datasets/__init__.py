"""Data sets: the container, every file format of the field, the catalogue, label noise, synthetic data."""

from labelsieve.datasets.catalog import CATALOG
from labelsieve.datasets.dataset import Dataset
from labelsieve.datasets.description import DatasetDescription
from labelsieve.datasets.digits import load_digits_attributes
from labelsieve.datasets.errors import DatasetError
from labelsieve.datasets.fetch import load
from labelsieve.datasets.noise import add_candidates
from labelsieve.datasets.reading import read
from labelsieve.datasets.synthetic import make_pml
from labelsieve.datasets.writing import write

__all__ = [
    "CATALOG",
    "Dataset",
    "DatasetDescription",
    "DatasetError",
    "add_candidates",
    "load",
    "load_digits_attributes",
    "make_pml",
    "read",
    "write",
]
