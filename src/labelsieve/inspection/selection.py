"""What a fitted selector found in a data set, as plain values that every output is made from."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsieve._base import BaseSelector
from labelsieve.datasets import Dataset
from labelsieve.label_support import candidate_support
from labelsieve.numerics.sparse import dense, is_sparse

#: How many of the least supported candidates are listed.
N_SUSPECTS = 20
# More features hardly change the verdict on a candidate.
_MOST_WITNESSES = 100


@dataclass(frozen=True)
class RankedFeature:
    """One feature and its place."""

    rank: int
    name: str
    score: float
    selected: bool


@dataclass(frozen=True)
class Suspect:
    """A candidate label that the selected features do not support."""

    sample: int
    label: str
    support: float
    #: The method's own confidence, where it gives any.
    confidence: float | None
    #: Whether the candidate is false, where the truth is known.
    wrong: bool | None


@dataclass(frozen=True)
class TruthCheck:
    """How well false candidates could be told, where the truth is known.

    The areas under the ROC curve are the chance that a true candidate scores higher than a false one:
    0.5 is guessing.
    """

    n_wrong: int
    support_auc: float
    confidence_auc: float | None


@dataclass(frozen=True)
class Selection:
    """Ranking, convergence and doubtful candidates of one fit."""

    data: str
    method: str
    class_name: str
    parameters: dict[str, Any]
    n_samples: int
    n_features: int
    n_labels: int
    n_candidates: int
    converged: bool
    #: Objective at the start and after every iteration; None for a method without iterations.
    objective: tuple[float, ...] | None
    n_iter: int | None
    #: All features, best first.
    features: tuple[RankedFeature, ...]
    #: Least supported first.
    suspects: tuple[Suspect, ...]
    truth: TruthCheck | None

    @property
    def selected(self) -> tuple[RankedFeature, ...]:
        """The selected features, best first."""
        return tuple(feature for feature in self.features if feature.selected)

    @property
    def n_arbitrary(self) -> int:
        """How many of the selected features have the score 0, so that column order alone chose them."""
        return sum(feature.score == 0 for feature in self.selected)

    @property
    def listed_wrong(self) -> int:
        """How many of the listed suspects are false."""
        return sum(bool(suspect.wrong) for suspect in self.suspects)

    def as_dict(self, *, all_features: bool = False) -> dict[str, Any]:
        """Return the findings as values JSON can hold."""
        unknown = {
            name
            for name, value in (("confidence", self.suspects[0].confidence), ("wrong", self.truth))
            if value is None
        }
        return {
            "data": self.data,
            "method": self.method,
            "parameters": self.parameters,
            "n_samples": self.n_samples,
            "n_features": self.n_features,
            "n_labels": self.n_labels,
            "converged": self.converged,
            "n_iter": self.n_iter,
            "features": [asdict(feature) for feature in (self.features if all_features else self.selected)],
            "suspicious_labels": [
                {name: value for name, value in asdict(suspect).items() if name not in unknown}
                for suspect in self.suspects
            ],
        }


def summarise(selector: BaseSelector, dataset: Dataset, method: str, *, converged: bool) -> Selection:
    """Collect what a selector fitted on the candidates of `dataset` found.

    Examples
    --------
    >>> from labelsieve import PMLFSMIR
    >>> from labelsieve.datasets import load_digits_attributes
    >>> digits = load_digits_attributes()
    >>> selector = PMLFSMIR(n_features_to_select=20).fit(digits.X, digits.candidates)
    >>> found = summarise(selector, digits, "pml-fsmir", converged=True)
    >>> len(found.selected), found.features[0].rank, found.n_candidates
    (20, 1, 8715)
    """
    order = np.argsort(selector.ranking_)
    selected = selector.get_support()
    history = getattr(selector, "objective_history_", None)
    suspects, truth = _doubts(selector, dataset, order[: min(np.count_nonzero(selected), _MOST_WITNESSES)])
    return Selection(
        data=dataset.name,
        method=method,
        class_name=type(selector).__name__,
        parameters=selector.get_params(),
        n_samples=dataset.X.shape[0],
        n_features=dataset.X.shape[1],
        n_labels=len(dataset.label_names),
        n_candidates=int(dataset.candidates.sum()),
        converged=converged,
        objective=None if history is None else tuple(np.asarray(history, dtype=float).tolist()),
        n_iter=getattr(selector, "n_iter_", None),
        features=tuple(
            RankedFeature(rank, dataset.feature_names[j], float(selector.scores_[j]), bool(selected[j]))
            for rank, j in enumerate(order, start=1)
        ),
        suspects=suspects,
        truth=truth,
    )


def _doubts(
    selector: BaseSelector, dataset: Dataset, witnesses: np.ndarray
) -> tuple[tuple[Suspect, ...], TruthCheck | None]:
    """Return the least supported candidates, and how many of them are false if that is known."""
    candidates = sp.csr_array(dataset.candidates)
    support = candidate_support(dataset.X[:, witnesses], candidates)
    rows = np.repeat(np.arange(candidates.shape[0]), np.diff(candidates.indptr))
    columns = candidates.indices
    own = getattr(selector, "label_confidence_", None)
    confidence = None if own is None else _entries(own, rows, columns)
    known = dataset.Y is not None and dataset.Y_candidates is not None
    wrong = _entries(dataset.Y, rows, columns) == 0 if known else None
    suspects = tuple(
        Suspect(
            sample=int(rows[place]),
            label=dataset.label_names[columns[place]],
            support=float(support[place]),
            confidence=None if confidence is None else float(confidence[place]),
            wrong=None if wrong is None else bool(wrong[place]),
        )
        for place in np.argsort(support, kind="stable")[:N_SUSPECTS]
    )
    if wrong is None or wrong.all() or not wrong.any():
        return suspects, None
    from sklearn.metrics import roc_auc_score

    return suspects, TruthCheck(
        n_wrong=int(wrong.sum()),
        support_auc=float(roc_auc_score(~wrong, support)),
        confidence_auc=None if confidence is None else float(roc_auc_score(~wrong, confidence)),
    )


def _entries(matrix: Any, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Values at the given places, zeros included."""
    values = matrix.tocsr() if is_sparse(matrix) else np.asarray(matrix)
    return np.asarray(dense(values[rows, columns])).ravel()
