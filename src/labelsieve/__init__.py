"""labelsieve: which features matter when the labels cannot be trusted."""

from labelsieve.contract import check_selector
from labelsieve.methods import METHODS
from labelsieve.methods.gmm import GMM
from labelsieve.methods.mdmr import MDMR
from labelsieve.methods.pml_fsmir import PMLFSMIR
from labelsieve.methods.random_ranking import RandomRanking
from labelsieve.methods.rfs import RFS
from labelsieve.methods.sum_f import SumF
from labelsieve.methods.sum_mi import SumMI

__version__ = "0.1.0"

__all__ = ["GMM", "MDMR", "METHODS", "PMLFSMIR", "RFS", "RandomRanking", "SumF", "SumMI", "check_selector"]
