"""labelsieve: which features matter when the labels cannot be trusted.

Public names are imported when they are first asked for, so that the command line answers at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what editors and type checkers see; `_HOMES` says the same to Python
    from labelsieve._base import BaseSelector as BaseSelector
    from labelsieve._numerics.result import SolverResult as SolverResult
    from labelsieve._numerics.result import iterate as iterate
    from labelsieve.contract import check_selector as check_selector
    from labelsieve.inspection.auditing.result import Audit as Audit
    from labelsieve.inspection.auditing.run import audit as audit
    from labelsieve.inspection.displays.convergence import ConvergenceDisplay as ConvergenceDisplay
    from labelsieve.inspection.displays.label_issues import LabelIssuesDisplay as LabelIssuesDisplay
    from labelsieve.inspection.displays.ranking import RankingDisplay as RankingDisplay
    from labelsieve.inspection.displays.size_curve import SizeCurveDisplay as SizeCurveDisplay
    from labelsieve.inspection.displays.stability import StabilityDisplay as StabilityDisplay
    from labelsieve.inspection.label_issues import LabelIssues as LabelIssues
    from labelsieve.inspection.label_issues import draw_candidates as draw_candidates
    from labelsieve.inspection.label_issues import find_label_issues as find_label_issues
    from labelsieve.inspection.label_support import LabelSupport as LabelSupport
    from labelsieve.inspection.size_choice import choose_size as choose_size
    from labelsieve.inspection.stability import evidence_test as evidence_test
    from labelsieve.inspection.stability import selection_stability as selection_stability
    from labelsieve.methods import METHODS as METHODS
    from labelsieve.methods._columns import ColumnSelector as ColumnSelector
    from labelsieve.methods.drmfs import DRMFS as DRMFS
    from labelsieve.methods.evidence import EvidenceSelector as EvidenceSelector
    from labelsieve.methods.fpml import FPML as FPML
    from labelsieve.methods.gmm import GMM as GMM
    from labelsieve.methods.lcfs_pml import LCFSPML as LCFSPML
    from labelsieve.methods.lsmfs import LSMFS as LSMFS
    from labelsieve.methods.mdmr import MDMR as MDMR
    from labelsieve.methods.mifs import MIFS as MIFS
    from labelsieve.methods.particle_map import ParticleMAP as ParticleMAP
    from labelsieve.methods.particle_vls import ParticleVLS as ParticleVLS
    from labelsieve.methods.pmfs_lrs import PMFSLRS as PMFSLRS
    from labelsieve.methods.pml3er import PML3er as PML3er
    from labelsieve.methods.pml_fp import PMLFP as PMLFP
    from labelsieve.methods.pml_fsla import PMLFSLA as PMLFSLA
    from labelsieve.methods.pml_fsmir import PMLFSMIR as PMLFSMIR
    from labelsieve.methods.pml_fsso import PMLFSSO as PMLFSSO
    from labelsieve.methods.pml_lc import PMLLC as PMLLC
    from labelsieve.methods.pml_ld import PMLLD as PMLLD
    from labelsieve.methods.pml_lfc import PMLLFC as PMLLFC
    from labelsieve.methods.random_ranking import RandomRanking as RandomRanking
    from labelsieve.methods.rfs import RFS as RFS
    from labelsieve.methods.scmfs import SCMFS as SCMFS
    from labelsieve.methods.sum_f import SumF as SumF
    from labelsieve.methods.sum_mi import SumMI as SumMI
    from labelsieve.metrics import METRICS as METRICS
    from labelsieve.size_curve import SizeCurve as SizeCurve
    from labelsieve.validation import pml_cross_validate as pml_cross_validate

__version__ = "0.1.0"

_HOMES = {
    "Audit": "inspection.auditing.result",
    "BaseSelector": "_base",
    "ColumnSelector": "methods._columns",
    "DRMFS": "methods.drmfs",
    "EvidenceSelector": "methods.evidence",
    "FPML": "methods.fpml",
    "GMM": "methods.gmm",
    "LCFSPML": "methods.lcfs_pml",
    "LSMFS": "methods.lsmfs",
    "LabelIssues": "inspection.label_issues",
    "LabelSupport": "inspection.label_support",
    "MDMR": "methods.mdmr",
    "METHODS": "methods",
    "METRICS": "metrics",
    "MIFS": "methods.mifs",
    "PMFSLRS": "methods.pmfs_lrs",
    "PML3er": "methods.pml3er",
    "PMLFP": "methods.pml_fp",
    "PMLFSLA": "methods.pml_fsla",
    "PMLFSMIR": "methods.pml_fsmir",
    "PMLFSSO": "methods.pml_fsso",
    "PMLLC": "methods.pml_lc",
    "PMLLD": "methods.pml_ld",
    "PMLLFC": "methods.pml_lfc",
    "RFS": "methods.rfs",
    "SCMFS": "methods.scmfs",
    "ParticleMAP": "methods.particle_map",
    "ParticleVLS": "methods.particle_vls",
    "RandomRanking": "methods.random_ranking",
    "SizeCurve": "size_curve",
    "SolverResult": "_numerics.result",
    "SumF": "methods.sum_f",
    "SumMI": "methods.sum_mi",
    "audit": "inspection.auditing.run",
    "check_selector": "contract",
    "choose_size": "inspection.size_choice",
    "draw_candidates": "inspection.label_issues",
    "evidence_test": "inspection.stability",
    "find_label_issues": "inspection.label_issues",
    "iterate": "_numerics.result",
    "pml_cross_validate": "validation",
    "selection_stability": "inspection.stability",
    "ConvergenceDisplay": "inspection.displays.convergence",
    "LabelIssuesDisplay": "inspection.displays.label_issues",
    "RankingDisplay": "inspection.displays.ranking",
    "SizeCurveDisplay": "inspection.displays.size_curve",
    "StabilityDisplay": "inspection.displays.stability",
}
_MODULES = {"contract", "datasets", "methods", "metrics", "validation"}

__all__ = [*_HOMES]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"labelsieve.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'labelsieve' has no attribute {name!r}")
    value: object = getattr(import_module(f"labelsieve.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES})
