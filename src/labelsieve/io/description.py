"""Summary statistics of a dataset."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsieve._numerics.candidates import count_labels, fill_unknown
from labelsieve._numerics.sparse import Matrix, is_sparse
from labelsieve._text import printable

_NAMES_SHOWN = 5


@dataclass(frozen=True)
class DatasetDescription:
    """Summary statistics of a dataset. `str` formats them, `as_dict` returns plain values. None of them is NaN.

    Attributes
    ----------
    name : str
        Name of the dataset.
    n_samples, n_features, n_labels : int
        Number of rows, features and labels.
    sparse : bool
        True if the features are stored in a sparse matrix.
    feature_density : float
        Fraction of nonzero feature values.
    n_nominal : int
        Number of nominal features.
    labels_described : {"true", "candidate"}
        Labels that the following statistics describe.
    cardinality, density : float
        Mean number of labels per sample, and the same as a fraction of all labels that are known.
    candidate_cardinality : float or None
        Mean number of candidate labels per sample, or None without candidates.
    n_distinct_label_sets : int
        Number of distinct rows of the label matrix.
    n_without_labels : int
        Number of samples without labels.
    constant_features : tuple of str
        Features with a single value.
    duplicate_features : tuple of str
        Features equal to an earlier one.
    labels_without_positives : tuple of str
        Labels that no sample has.
    label_counts : dict of str to int
        Number of samples per label.
    imbalance : dict of str to float or None
        Count of the most frequent label divided by the count of each label (IRLbl of Charte et al.,
        Neurocomputing 163, 2015). None for a label without positives.

    Examples
    --------
    >>> from labelsieve.io import Dataset
    >>> found = Dataset([[0.5, 1], [2, 1], [1, 1]], [[1, 0], [1, 1], [0, 0]]).describe()
    >>> found.cardinality, found.constant_features, found.n_without_labels
    (1.0, ('x1',), 1)
    """

    name: str
    n_samples: int
    n_features: int
    n_labels: int
    sparse: bool
    feature_density: float
    n_nominal: int
    labels_described: str
    cardinality: float
    density: float
    candidate_cardinality: float | None
    n_distinct_label_sets: int
    n_without_labels: int
    constant_features: tuple[str, ...]
    duplicate_features: tuple[str, ...]
    labels_without_positives: tuple[str, ...]
    label_counts: dict[str, int]
    imbalance: dict[str, float | None]

    def as_dict(self) -> dict[str, Any]:
        """Convert all statistics to plain Python values, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        ratios = [ratio for ratio in self.imbalance.values() if ratio is not None]
        storage = "sparse" if self.sparse else "dense"
        nominal = f", {self.n_nominal} nominal" if self.n_nominal else ""
        spread = (
            f"mean {np.mean(ratios):.2f}, largest {max(ratios):.2f}" if ratios else "no label has positives"
        )
        lines = {
            "dataset": printable(self.name) or "(no name)",
            "samples": self.n_samples,
            "features": f"{self.n_features} ({storage}, {self.feature_density:.1%} nonzero{nominal})",
            "labels": f"{self.n_labels} ({self.labels_described})",
            "cardinality": f"{self.cardinality:.3f}",
            "density": f"{self.density:.4f}",
            "candidate cardinality": f"{self.candidate_cardinality or 0:.3f}",
            "distinct label sets": self.n_distinct_label_sets,
            "samples without labels": self.n_without_labels,
            "constant features": _shown(self.constant_features),
            "duplicate features": _shown(self.duplicate_features),
            "labels without positives": _shown(self.labels_without_positives),
            "imbalance per label": spread,
        }
        if self.candidate_cardinality is None:
            del lines["candidate cardinality"]
        return "\n".join(f"{title:<26}{value}" for title, value in lines.items())


def _shown(names: tuple[str, ...]) -> str:
    """Format the number of names with the first few names."""
    if not names:
        return "0"
    more = ", ..." if len(names) > _NAMES_SHOWN else ""
    return f"{len(names)} ({', '.join(map(printable, names[:_NAMES_SHOWN]))}{more})"


def describe(data: Any) -> DatasetDescription:
    """Compute the summary statistics of a dataset without densifying it."""
    X = data.X
    Y = data.Y_candidates if data.Y is None else data.Y
    n_known = np.sum(count_labels(Y)[1])
    Y = fill_unknown(Y)
    n_samples, n_labels = Y.shape
    counts = np.asarray(Y.sum(axis=0, dtype=np.int64)).ravel()
    per_sample = np.asarray(Y.sum(axis=1, dtype=np.int64)).ravel()
    label_counts = dict(zip(data.label_names, counts.tolist(), strict=True))
    most = max(label_counts.values())
    nonzero = X.nnz if is_sparse(X) else np.count_nonzero(X)
    constant, duplicate = _constant_and_duplicate(X)
    candidates = data.Y_candidates
    return DatasetDescription(
        name=data.name or "",
        n_samples=n_samples,
        n_features=X.shape[1],
        n_labels=n_labels,
        sparse=is_sparse(X),
        feature_density=float(nonzero / (X.shape[0] * X.shape[1])),
        n_nominal=len(data.nominal),
        labels_described="candidate" if data.Y is None else "true",
        cardinality=float(counts.sum() / n_samples),
        density=float(counts.sum() / n_samples / (max(n_known, 1) / n_samples)),
        candidate_cardinality=None
        if candidates is None
        else float(fill_unknown(candidates).sum() / n_samples),
        n_distinct_label_sets=_distinct_rows(Y),
        n_without_labels=int((per_sample == 0).sum()),
        constant_features=tuple(data.feature_names[index] for index in constant),
        duplicate_features=tuple(data.feature_names[index] for index in duplicate),
        labels_without_positives=tuple(name for name, count in label_counts.items() if not count),
        label_counts=label_counts,
        imbalance={name: most / count if count else None for name, count in label_counts.items()},
    )


def _distinct_rows(Y: Matrix) -> int:
    """Count the distinct label sets."""
    rows = sp.csr_array(Y)
    return len({rows.indices[i:j].tobytes() for i, j in pairwise(rows.indptr.tolist())})


def _constant_and_duplicate(X: Matrix) -> tuple[list[int], list[int]]:
    """Find features with a single value, and features equal to an earlier one."""
    constant: list[int] = []
    duplicate: list[int] = []
    seen: set[bytes] = set()
    columns = sp.csc_array(X)
    for index, (start, end) in enumerate(pairwise(columns.indptr.tolist())):
        values = columns.data[start:end]
        if not values.size or (values.size == X.shape[0] and (values == values[0]).all()):
            constant.append(index)
        content = columns.indices[start:end].tobytes() + values.tobytes()
        digest = hashlib.blake2b(content, digest_size=16).digest()
        if digest in seen:
            duplicate.append(index)
        seen.add(digest)
    return constant, duplicate
