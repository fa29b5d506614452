"""labelsieve: which features matter when the labels cannot be trusted."""

from labelsieve.contract import check_selector
from labelsieve.methods import METHODS
from labelsieve.methods.drmfs import DRMFS
from labelsieve.methods.fpml import FPML
from labelsieve.methods.gmm import GMM
from labelsieve.methods.mdmr import MDMR
from labelsieve.methods.mifs import MIFS
from labelsieve.methods.particle_map import ParticleMAP
from labelsieve.methods.particle_vls import ParticleVLS
from labelsieve.methods.pml_fp import PMLFP
from labelsieve.methods.pml_fsmir import PMLFSMIR
from labelsieve.methods.pml_fsso import PMLFSSO
from labelsieve.methods.pml_lc import PMLLC
from labelsieve.methods.random_ranking import RandomRanking
from labelsieve.methods.rfs import RFS
from labelsieve.methods.sum_f import SumF
from labelsieve.methods.sum_mi import SumMI
from labelsieve.metrics import METRICS
from labelsieve.validation import pml_cross_validate

__version__ = "0.1.0"

__all__ = [
    "DRMFS",
    "FPML",
    "GMM",
    "MDMR",
    "METHODS",
    "METRICS",
    "MIFS",
    "PMLFP",
    "PMLFSMIR",
    "PMLFSSO",
    "PMLLC",
    "RFS",
    "ParticleMAP",
    "ParticleVLS",
    "RandomRanking",
    "SumF",
    "SumMI",
    "check_selector",
    "pml_cross_validate",
]
