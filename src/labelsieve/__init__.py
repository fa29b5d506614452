"""labelsieve: which features matter when the labels cannot be trusted."""

from labelsieve.methods import METHODS
from labelsieve.methods.pml_fsmir import PMLFSMIR

__version__ = "0.1.0"

__all__ = ["METHODS", "PMLFSMIR"]
