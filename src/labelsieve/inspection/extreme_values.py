"""Search for columns whose evidence is hidden by a few extreme values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from labelsieve._numerics.batches import batches
from labelsieve._numerics.candidate_precision import LabelScale
from labelsieve._numerics.scaling import within_range
from labelsieve._numerics.sparse import Matrix, is_sparse
from labelsieve._numerics.standardized import StandardizedFeatures
from labelsieve.inspection.ranking import CRITERION
from labelsieve.io import Dataset

#: Extreme values are at most 1 % of the rows, and at least 2 of them are looked for.
_MOST_ROWS, _FEWEST = 0.01, 2
#: They have at least this share of the squared deviations from the median.
_LEAST_SHARE = 0.5
#: They hide evidence if it grows by this factor and by this amount without them.
_LEAST_FACTOR, _LEAST_GAIN = 2.0, 20.0


class HiddenColumn(NamedTuple):
    """Column with extreme values, and its evidence with them and without."""

    name: str
    n_extreme: int
    evidence: float
    clipped: float

    def __str__(self) -> str:
        many = "1 extreme value hides" if self.n_extreme == 1 else f"{self.n_extreme} extreme values hide"
        return (
            f"{many} the evidence of column {self.name!r} ({self.evidence:.0f}, and {self.clipped:.0f} if they are "
            "clipped). Check them, and clip the column or use its logarithm."
        )


def columns_with_hidden_evidence(dataset: Dataset) -> list[HiddenColumn]:
    """Return the numeric columns whose evidence grows much if a few extreme values are clipped."""
    X, Y = dataset.X, dataset.candidates
    if is_sparse(X):
        return []
    numeric = np.array(
        [
            column.features[0]
            for column in dataset.columns
            if column.role == "number" and len(column.features) == 1
        ],
        dtype=int,
    )
    n_most = max(_FEWEST, int(_MOST_ROWS * X.shape[0]))
    if X.shape[0] < 4 * n_most:
        return []
    found = []
    for block in batches(len(numeric), X.shape[0]):
        features = numeric[block]
        values = X[:, features].astype(float)
        suspicious = np.flatnonzero(_share_of_extremes(values, n_most) >= _LEAST_SHARE)
        features, values = features[suspicious], values[:, suspicious]
        clipped = (
            np.column_stack([_clipped(column, n_most) for column in values.T]) if len(features) else values
        )
        for feature, before, after, count in zip(
            features,
            _evidence(values, Y),
            _evidence(clipped, Y),
            (values != clipped).sum(axis=0),
            strict=True,
        ):
            if after >= max(_LEAST_FACTOR * before, before + _LEAST_GAIN):
                found.append(
                    HiddenColumn(dataset.feature_names[feature], int(count), float(before), float(after))
                )
    return found


def _share_of_extremes(values: np.ndarray, n_most: int) -> np.ndarray:
    """Return the share of the values farthest from the median in the squared deviations."""
    deviation = (values - np.median(values, axis=0)) ** 2
    total = deviation.sum(axis=0)
    extreme = np.partition(deviation, -n_most, axis=0)[-n_most:].sum(axis=0)
    return np.divide(extreme, total, out=np.zeros_like(total), where=total > 0)


def _clipped(values: np.ndarray, n_most: int) -> np.ndarray:
    """Clip the values farthest from the median to the range of the others."""
    deviation = np.abs(values - np.median(values))
    others = values[np.argsort(deviation, kind="stable")[: len(values) - n_most]]
    return np.clip(values, others.min(), others.max())


def _evidence(values: np.ndarray, Y: Matrix) -> np.ndarray:
    labels = LabelScale.learn(Y)
    products = StandardizedFeatures(within_range(values)).products(Y[:, labels.varying])
    return CRITERION.alone(labels.scale_products(products), len(values))
