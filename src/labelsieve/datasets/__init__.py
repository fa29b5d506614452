"""Dataset catalogue, built-in and synthetic datasets, and label noise."""

from labelsieve.datasets.animals import load_animals
from labelsieve.datasets.catalog import CATALOG
from labelsieve.datasets.digits import load_digits_attributes
from labelsieve.datasets.fetch import load
from labelsieve.datasets.noise import add_candidates
from labelsieve.datasets.synthetic import make_pml

__all__ = ["CATALOG", "add_candidates", "load", "load_animals", "load_digits_attributes", "make_pml"]
