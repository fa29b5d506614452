"""Noise models that turn true labels into candidate labels."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, logit

from labelsieve._base import as_generator
from labelsieve._numerics.batches import batches
from labelsieve._numerics.candidates import is_binary
from labelsieve._numerics.norms import squared_row_norms
from labelsieve._numerics.sparse import check_structure, dense
from labelsieve.io.errors import DatasetError

# Number of cells per block. Part of the definition, because another value gives different random draws.
_BLOCK_CELLS = 2**20

# Similarities are rounded to this many levels so that they can be counted in one pass.
_LEVELS = 4096

_MODELS = ("flip", "relative", "count", "instance", "label", "missing")


def add_candidates(
    Y: Any,
    model: str = "flip",
    *,
    rate: float = 0.2,
    X: Any = None,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> Any:
    """Add wrong labels to the true ones, or drop some of these, as a careless annotator would.

    All true labels remain candidates, except with ``model="missing"``.

    Parameters
    ----------
    Y : array-like or sparse matrix of shape (n_samples, n_labels)
        True labels, 0/1.
    model : {"flip", "relative", "count", "instance", "label", "missing"}, default="flip"
        Noise model, where an irrelevant label is a label that is not true.

        - ``"flip"``: every irrelevant label becomes a candidate with probability `rate`.
        - ``"relative"``: a row with ``t`` true labels gets ``round(rate * t)`` irrelevant labels. Halves
          are rounded to even, and a row without true labels gets none.
        - ``"count"``: every row gets `rate` irrelevant labels.
        - ``"instance"``: every irrelevant label becomes a candidate with a probability that increases with
          the similarity of the row to the rows with this label. The mean probability is `rate` (see Notes).
        - ``"label"``: like ``"flip"``, but every label has its own probability. It is drawn from the beta
          distribution with the parameters 1 and ``1 / rate - 1``, which has the mean `rate`.
        - ``"missing"``: every true label is dropped with probability `rate`, and none is added.

        A row with too few irrelevant labels gets all of them.
    rate : float or int, default=0.2
        Factor >= 0 (``"relative"``), number of labels (``"count"``, an integer), or probability in [0, 1]
        (all others).
    X : array-like or sparse matrix of shape (n_samples, n_features), default=None
        Features. Required for ``model="instance"``, and must be None for the other models.
    random_state : int, numpy Generator, numpy RandomState or None, default=None
        Seed. The same seed gives the same candidates for dense and sparse `Y`.

    Returns
    -------
    ndarray or sparse CSR of the type and dtype of Y
        Candidate labels.

    Notes
    -----
    With ``model="instance"``, the similarity of row ``i`` and label ``j`` is the cosine between the
    standardised row and the mean of the standardised rows with this label, or 0 if it is undefined. The
    probability is ``1 / (1 + exp(-(b + z)))``, where ``z`` is the similarity, standardised over all
    irrelevant pairs. An increase by one standard deviation multiplies the odds by e. The offset ``b`` is
    chosen so that the mean probability over the irrelevant pairs is `rate`.

    ``"instance"`` computes every pair, in blocks of rows. The other models take time and memory
    proportional to the number of candidates, and do not convert a sparse `Y` to a dense matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve.datasets.noise import add_candidates
    >>> Y = np.array([[1, 0, 0, 0], [0, 1, 1, 0]])
    >>> Y_candidates = add_candidates(Y, "count", rate=1, random_state=0)
    >>> Y_candidates.sum(axis=1)
    array([2, 3])
    >>> bool(np.all(Y_candidates >= Y))
    True
    """
    if model not in _MODELS:
        raise ValueError(f"model must be one of {', '.join(_MODELS)}, got {model!r}.")
    _check_rate(model, rate)
    if model == "instance" and X is None:
        raise ValueError("X must not be None for model='instance'. Pass the features.")
    if model != "instance" and X is not None:
        raise ValueError(f"X must be None for model={model!r}. Only model='instance' uses features.")
    check_structure(Y, "Y")
    check_structure(X, "X")
    container, truth = _check_labels(Y)
    # Use a child stream so that labels drawn with the same seed are independent of the noise.
    rng = as_generator(random_state).spawn(1)[0]

    if model == "missing":
        return _without(container, truth, rng.random(truth.nnz) < rate)
    if model == "instance":
        extra = _confuse_alike(truth, X, float(rate), rng)
    else:
        n_true = np.diff(truth.indptr)
        available = truth.shape[1] - n_true
        rates = np.full(truth.shape[1], float(rate))
        if model == "label" and 0 < rate < 1:
            rates = rng.beta(1, 1 / rate - 1, truth.shape[1])
        highest = rates.max(initial=0)
        if model in ("flip", "label"):
            counts = rng.binomial(available, highest)
        elif model == "relative":
            counts = np.minimum(np.rint(rate * n_true), available).astype(np.int64)
        else:
            counts = np.minimum(min(int(rate), truth.shape[1]), available)
        extra = _outside(truth, counts, rng)
        if model == "label":
            extra = _thinned(extra, rates / (highest or 1), rng)

    if isinstance(container, np.ndarray):
        candidates = container.copy()
        for rows, columns in extra:
            candidates[rows, columns] = 1
        return candidates
    candidates = _union(truth, extra)
    return candidates if isinstance(container, sp.sparray) else sp.csr_matrix(candidates)


def _without(container: Any, truth: sp.csr_array, is_dropped: np.ndarray) -> Any:
    """Return the labels without some of them, in the type of `container`."""
    if isinstance(container, np.ndarray):
        kept = container.copy()
        rows = np.repeat(np.arange(truth.shape[0]), np.diff(truth.indptr))
        kept[rows[is_dropped], truth.indices[is_dropped]] = 0
        return kept
    truth.data[is_dropped] = 0
    truth.eliminate_zeros()
    return truth if isinstance(container, sp.sparray) else sp.csr_matrix(truth)


def _thinned(
    pairs: Iterator[tuple[np.ndarray, np.ndarray]], probability: np.ndarray, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Keep each pair with the probability of its column."""
    for rows, columns in pairs:
        is_kept = rng.random(len(columns)) < probability[columns]
        yield rows[is_kept], columns[is_kept]


def draw_distinct(
    counts: np.ndarray, available: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw a uniform set of ``counts[i]`` distinct integers below ``available[i]`` for every row i.

    Returns the pairs (row, integer), sorted. Time and memory are proportional to the number of pairs.
    """
    # For more than half of the integers, draw those to leave out, to avoid many repeated draws.
    invert = 2 * counts > available
    missing = np.where(invert, available - counts, counts)
    width = int(available.max(initial=0)) + 1
    taken = np.empty(0, dtype=np.int64)
    while missing.any():
        rows = np.repeat(np.arange(len(counts)), missing)
        # By symmetry, drawing until there are enough distinct integers is uniform over sets.
        drawn = np.sort(rows * width + rng.integers(0, available[rows]))  # np.unique is far slower here
        drawn = drawn[(np.diff(drawn, prepend=-1) > 0) & ~_contained(drawn, taken)]
        missing = missing - np.bincount(drawn // width, minlength=len(counts))
        taken = np.sort(np.concatenate([taken, drawn]), kind="stable")

    inverted = invert[taken // width]
    everything = _all_pairs(np.where(invert, available, 0), width)
    kept = everything[~_contained(everything, taken[inverted])]
    return np.divmod(np.sort(np.concatenate([taken[~inverted], kept]), kind="stable"), width)


def _contained(keys: np.ndarray, sorted_keys: np.ndarray) -> np.ndarray:
    """Return a mask of the keys that occur in the sorted keys."""
    if not len(sorted_keys):
        return np.zeros(len(keys), dtype=bool)
    place = np.searchsorted(sorted_keys, keys)
    found: np.ndarray = sorted_keys[np.minimum(place, len(sorted_keys) - 1)] == keys
    return found


def _all_pairs(lengths: np.ndarray, width: int) -> np.ndarray:
    """Return the keys ``row * width + i`` of all ``i < lengths[row]``, in order."""
    starts = np.cumsum(lengths) - lengths
    rows = np.repeat(np.arange(len(lengths)), lengths)
    keys: np.ndarray = rows * width + np.arange(len(rows)) - starts[rows]
    return keys


def _check_rate(model: str, rate: float) -> None:
    """Raise if the rate is invalid for the model."""
    if isinstance(rate, bool) or not isinstance(rate, Real):
        raise ValueError(f"rate must be a number, got {rate!r}.")
    if model == "count":
        if not isinstance(rate, Integral) or rate < 0:
            raise ValueError(f"rate must be an integer >= 0 for model='count', got {rate!r}.")
    elif model == "relative":
        if not 0 <= rate < np.inf:
            raise ValueError(f"rate must be finite and >= 0 for model='relative', got {rate!r}.")
    elif not 0 <= rate <= 1:
        raise ValueError(f"rate must be in [0, 1] for model={model!r}, got {rate!r}.")


def _check_labels(Y: Any) -> tuple[Any, sp.csr_array]:
    """Return Y as an ndarray or sparse matrix, and a canonical CSR copy."""
    container = Y if sp.issparse(Y) else np.asarray(Y)
    if container.ndim != 2:
        raise DatasetError(
            f"Y must be a 0/1 matrix of shape (n_samples, n_labels), got {container.ndim} dimension(s). "
            "One-hot encode classes first."
        )
    if container.dtype.kind not in "buif":
        raise DatasetError(f"Y must contain the numbers 0 and 1, got dtype {str(container.dtype)!r}.")
    truth = sp.csr_array(container, copy=True)
    truth.sum_duplicates()
    truth.eliminate_zeros()
    if not is_binary(truth.data):
        odd = truth.data[truth.data != 1][0].item()
        raise DatasetError(f"Y must contain only 0 and 1, got {odd!r}. Threshold the labels first.")
    return container, truth


def _outside(
    truth: sp.csr_array, counts: np.ndarray, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Draw ``counts[i]`` labels that row i does not have, and yield (rows, columns) block by block."""
    n_labels = truth.shape[1]
    indptr = truth.indptr.astype(np.int64)
    # Blocks are limited by the number of their labels, so many rows or many labels need little memory.
    block_of_row = np.cumsum(counts + np.diff(indptr) + 1) // _BLOCK_CELLS
    edges = np.flatnonzero(np.diff(block_of_row, prepend=-1, append=-1))
    for start, stop in pairwise(edges):
        sizes = np.diff(indptr[start : stop + 1])
        rows, ranks = draw_distinct(counts[start:stop], n_labels - sizes, rng)
        # The r-th absent label is r + (number of present labels before it). A label t that is the p-th of
        # its row has t - p absent labels before it.
        columns = truth.indices[indptr[start] : indptr[stop]].astype(np.int64)
        row_of = np.repeat(np.arange(stop - start), sizes)
        first = indptr[start:stop] - indptr[start]
        absent_before = columns - (np.arange(len(columns)) - first[row_of])
        width = n_labels + 1
        before = np.searchsorted(row_of * width + absent_before, rows * width + ranks, side="right")
        yield rows + start, ranks + before - first[rows]


def _confuse_alike(
    truth: sp.csr_array, X: Any, rate: float, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Draw labels of similar rows, and yield (rows, columns) block by block."""
    # Imported here because it is slow and the other models do not need it.
    from sklearn.preprocessing import StandardScaler
    from sklearn.utils import check_array

    X = check_array(X, accept_sparse="csr", dtype=np.float64)
    n_samples, n_labels = truth.shape
    if X.shape[0] != n_samples:
        raise DatasetError(f"X and Y must have the same number of rows, got {X.shape[0]} and {n_samples}.")
    # Centring would make a sparse X dense, so the centre is subtracted from its products instead.
    scaler = StandardScaler(with_mean=not sp.issparse(X)).fit(X)
    Z = scaler.transform(X)
    center = scaler.mean_ / scaler.scale_ if sp.issparse(X) else np.zeros(X.shape[1])
    n_positives = np.asarray(truth.sum(axis=0, dtype=np.int64)).ravel()
    sums = dense(truth.T.astype(np.float64) @ Z)
    prototypes = np.where(n_positives[:, None] > 0, sums / np.maximum(n_positives, 1)[:, None] - center, 0.0)
    row_norms = np.sqrt(np.maximum(squared_row_norms(Z) - 2 * (Z @ center) + center @ center, 0))
    label_norms = np.linalg.norm(prototypes, axis=1)

    def blocks() -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        for rows in batches(n_samples, n_labels, _BLOCK_CELLS):
            norms = row_norms[rows, None] * label_norms
            products = Z[rows] @ prototypes.T - prototypes @ center
            cosine = np.divide(products, norms, out=np.zeros_like(products), where=norms > 1e-12)
            levels = np.clip((cosine + 1) / 2 * _LEVELS, 0, _LEVELS - 1).astype(np.int64)
            yield rows.start, levels, truth[rows].toarray() == 0

    frequency = np.zeros(_LEVELS)
    for _, levels, absent in blocks():
        frequency += np.bincount(levels[absent], minlength=_LEVELS)
    probability = _probability_by_level(frequency, rate)
    for start, levels, absent in blocks():
        rows, columns = np.nonzero((rng.random(levels.shape) < probability[levels]) & absent)
        yield rows + start, columns


def _probability_by_level(frequency: np.ndarray, rate: float) -> np.ndarray:
    """Return logistic probabilities that increase with the level and have the mean `rate` over all pairs."""
    from scipy.optimize import brentq

    total = frequency.sum()
    if not 0 < rate < 1 or not total:
        return np.full(len(frequency), rate)
    level = np.arange(len(frequency))
    mean = frequency @ level / total
    deviation = np.sqrt(frequency @ (level - mean) ** 2 / total)
    seen = frequency > 0
    score = (level - mean) / deviation if deviation > 0 else np.zeros(len(level))
    reach = np.abs(score[seen]).max() + 1
    offset = brentq(
        lambda b: frequency[seen] @ expit(b + score[seen]) / total - rate,
        logit(rate) - reach,
        logit(rate) + reach,
    )
    probability: np.ndarray = expit(offset + score)
    return probability


def _union(truth: sp.csr_array, extra: Iterator[tuple[np.ndarray, np.ndarray]]) -> sp.csr_array:
    """Add pairs in row order to a CSR matrix."""
    counts = np.zeros(truth.shape[0] + 1, dtype=np.int64)
    parts = [np.empty(0, dtype=truth.indices.dtype)]
    for rows, columns in extra:
        counts[1:] += np.bincount(rows, minlength=truth.shape[0])
        parts.append(columns.astype(truth.indices.dtype))
    indices = np.concatenate(parts)
    added = (np.ones(len(indices), dtype=truth.dtype), indices, np.cumsum(counts))
    return truth + sp.csr_array(added, shape=truth.shape)
