"""Candidate labels from true ones: the noise models of partial multi-label experiments."""

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

# Cells worked on at a time. Part of the definition: another value gives other (equally good) draws.
_BLOCK_CELLS = 2**20

# Similarities are rounded to this many levels, so that one pass over the data can count them.
_LEVELS = 4096

_MODELS = ("flip", "relative", "count", "instance")


def add_candidates(
    Y: Any,
    model: str = "flip",
    *,
    rate: float = 0.2,
    X: Any = None,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> Any:
    """Add irrelevant labels to the true ones, as a careless annotator would.

    True labels always stay candidates; only labels a row does not have are added.

    Parameters
    ----------
    Y : array-like or sparse matrix of shape (n_samples, n_labels)
        True labels, 0/1.
    model : {"flip", "relative", "count", "instance"}, default="flip"
        How many labels a row receives, and which.

        - ``"flip"``: every irrelevant label becomes a candidate with probability `rate`.
        - ``"relative"``: ``round(rate * t)`` irrelevant labels for a row with ``t`` true ones
          (halves to the even number; a row without true labels receives none).
        - ``"count"``: `rate` irrelevant labels for every row.
        - ``"instance"``: every irrelevant label becomes a candidate with a probability that grows with
          how much the row looks like the rows that have the label; the mean probability is `rate`
          (see Notes).

        A row that has fewer irrelevant labels than it should receive gets them all.
    rate : float or int, default=0.2
        Share in [0, 1] (``"flip"``, ``"instance"``), factor >= 0 (``"relative"``) or number of labels
        (``"count"``, an integer).
    X : array-like or sparse matrix of shape (n_samples, n_features), default=None
        Features; needed by ``model="instance"`` and refused by the others.
    random_state : int, numpy Generator, numpy RandomState or None, default=None
        The same seed gives the same candidates, whether `Y` is dense or sparse.

    Returns
    -------
    ndarray or sparse CSR of the type and dtype of Y
        Candidate labels.

    Notes
    -----
    With ``model="instance"`` the similarity of row ``i`` and label ``j`` is the cosine between the
    standardised row and the mean of the standardised rows that have the label (0 where either is
    undefined). The probability is ``1 / (1 + exp(-(b + z)))``, where ``z`` is the similarity in standard
    deviations over all irrelevant pairs: one standard deviation multiplies the odds by e. The offset ``b``
    makes the mean probability over the irrelevant pairs equal to `rate`.

    The first three models take time and memory proportional to the candidates that come out; nothing of
    the full ``n_samples x n_labels`` size is made from a sparse `Y`. ``"instance"`` looks at every pair,
    in blocks of rows.

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
        raise ValueError(f"model must be one of {', '.join(_MODELS)}. Got {model!r}.")
    _check_rate(model, rate)
    if model == "instance" and X is None:
        raise ValueError("model='instance' needs the features: pass X.")
    if model != "instance" and X is not None:
        raise ValueError(f"X is used by model='instance' only. Got model={model!r} with X; leave X out.")
    check_structure(Y, "Y")
    check_structure(X, "X")
    container, truth = _check_labels(Y)
    # A child stream: labels that were themselves drawn from the same seed must not meet their own numbers.
    rng = as_generator(random_state).spawn(1)[0]

    if model == "instance":
        extra = _confuse_alike(truth, X, float(rate), rng)
    else:
        n_true = np.diff(truth.indptr)
        available = truth.shape[1] - n_true
        if model == "flip":
            counts = rng.binomial(available, rate)  # how many independent flips succeed
        elif model == "relative":
            counts = np.minimum(np.rint(rate * n_true), available).astype(np.int64)
        else:
            counts = np.minimum(min(int(rate), truth.shape[1]), available)
        extra = _outside(truth, counts, rng)

    if isinstance(container, np.ndarray):
        candidates = container.copy()
        for rows, columns in extra:
            candidates[rows, columns] = 1
        return candidates
    candidates = _union(truth, extra)
    return candidates if isinstance(container, sp.sparray) else sp.csr_matrix(candidates)


def draw_distinct(
    counts: np.ndarray, available: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw for every row i a uniform set of ``counts[i]`` distinct numbers below ``available[i]``.

    Returns the pairs (row, number) sorted by row, then number. Time and memory are proportional to
    the pairs returned.
    """
    # More than half: drawing the ones to leave out keeps the number of repeated draws small.
    invert = 2 * counts > available
    missing = np.where(invert, available - counts, counts)
    width = int(available.max(initial=0)) + 1
    taken = np.empty(0, dtype=np.int64)
    while missing.any():
        rows = np.repeat(np.arange(len(counts)), missing)
        # Drawing until enough distinct numbers are in is uniform over sets, by symmetry.
        drawn = np.sort(rows * width + rng.integers(0, available[rows]))  # np.unique is far slower here
        drawn = drawn[(np.diff(drawn, prepend=-1) > 0) & ~_contained(drawn, taken)]
        missing = missing - np.bincount(drawn // width, minlength=len(counts))
        taken = np.sort(np.concatenate([taken, drawn]), kind="stable")

    inverted = invert[taken // width]
    everything = _all_pairs(np.where(invert, available, 0), width)
    kept = everything[~_contained(everything, taken[inverted])]
    return np.divmod(np.sort(np.concatenate([taken[~inverted], kept]), kind="stable"), width)


def _contained(keys: np.ndarray, sorted_keys: np.ndarray) -> np.ndarray:
    """Tell which keys occur among sorted ones."""
    if not len(sorted_keys):
        return np.zeros(len(keys), dtype=bool)
    place = np.searchsorted(sorted_keys, keys)
    found: np.ndarray = sorted_keys[np.minimum(place, len(sorted_keys) - 1)] == keys
    return found


def _all_pairs(lengths: np.ndarray, width: int) -> np.ndarray:
    """Return the key ``row * width + number`` of every number below ``lengths[row]``, in order."""
    starts = np.cumsum(lengths) - lengths
    rows = np.repeat(np.arange(len(lengths)), lengths)
    keys: np.ndarray = rows * width + np.arange(len(rows)) - starts[rows]
    return keys


def _check_rate(model: str, rate: float) -> None:
    """Refuse a rate that means nothing in this model."""
    if isinstance(rate, bool) or not isinstance(rate, Real):
        raise ValueError(f"rate must be a number. Got {rate!r}.")
    if model == "count":
        if not isinstance(rate, Integral) or rate < 0:
            raise ValueError(f"rate must be an integer >= 0 for model='count'. Got {rate!r}.")
    elif model == "relative":
        if not 0 <= rate < np.inf:
            raise ValueError(f"rate must be finite and >= 0 for model='relative'. Got {rate!r}.")
    elif not 0 <= rate <= 1:
        raise ValueError(f"rate must lie in [0, 1] for model={model!r}. Got {rate!r}.")


def _check_labels(Y: Any) -> tuple[Any, sp.csr_array]:
    """Return Y as ndarray or sparse, and its true pairs as a canonical CSR pattern of its own."""
    container = Y if sp.issparse(Y) else np.asarray(Y)
    if container.ndim != 2:
        raise DatasetError(
            f"Y must be a 0/1 matrix of shape (n_samples, n_labels). Got {container.ndim} dimension(s). "
            "One-hot encode classes first."
        )
    if container.dtype.kind not in "buif":
        raise DatasetError(f"Y must hold the numbers 0 and 1. Got dtype {str(container.dtype)!r}.")
    truth = sp.csr_array(container, copy=True)
    truth.sum_duplicates()
    truth.eliminate_zeros()
    if not is_binary(truth.data):
        odd = truth.data[truth.data != 1][0].item()
        raise DatasetError(f"Y must hold only 0 and 1. Got {odd!r}. Threshold the labels first.")
    return container, truth


def _outside(
    truth: sp.csr_array, counts: np.ndarray, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Draw ``counts[i]`` labels that row i does not have; yields (rows, columns) block by block."""
    n_labels = truth.shape[1]
    indptr = truth.indptr.astype(np.int64)
    # Blocks by what they will hold, so that neither many rows nor many labels cost memory.
    block_of_row = np.cumsum(counts + np.diff(indptr) + 1) // _BLOCK_CELLS
    edges = np.flatnonzero(np.diff(block_of_row, prepend=-1, append=-1))
    for start, stop in pairwise(edges):
        sizes = np.diff(indptr[start : stop + 1])
        rows, ranks = draw_distinct(counts[start:stop], n_labels - sizes, rng)
        # The r-th absent label is r + (number of present labels before it); label t at place p of its
        # row has t - p absent labels before it.
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
    """Draw labels a row looks like but does not have; yields (rows, columns) block by block."""
    # Imported here: the other models, and whoever only reads files, need not wait for it.
    from sklearn.preprocessing import StandardScaler
    from sklearn.utils import check_array

    X = check_array(X, accept_sparse="csr", dtype=np.float64)
    n_samples, n_labels = truth.shape
    if X.shape[0] != n_samples:
        raise DatasetError(f"X and Y must have the same number of rows. Got {X.shape[0]} and {n_samples}.")
    # Centring would fill a sparse X, so there the centre is subtracted from the products instead.
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
    """Return logistic probabilities that grow with the level and have mean `rate` over the pairs counted."""
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
    """Add absent pairs, which come in row order, to a CSR pattern."""
    counts = np.zeros(truth.shape[0] + 1, dtype=np.int64)
    parts = [np.empty(0, dtype=truth.indices.dtype)]
    for rows, columns in extra:
        counts[1:] += np.bincount(rows, minlength=truth.shape[0])
        parts.append(columns.astype(truth.indices.dtype))
    indices = np.concatenate(parts)
    added = (np.ones(len(indices), dtype=truth.dtype), indices, np.cumsum(counts))
    return truth + sp.csr_array(added, shape=truth.shape)
