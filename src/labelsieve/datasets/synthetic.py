"""Synthetic problems with known informative features, true labels and candidate labels."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsieve._base import as_generator
from labelsieve._numerics.sparse import dense
from labelsieve.datasets.noise import add_candidates, draw_distinct
from labelsieve.io.dataset import Dataset

# Relative error of redundant features: small enough for near copies, large enough to break ties.
_REDUNDANT_ERROR = 0.05


def make_pml(
    n_samples: int = 200,
    n_features: int = 20,
    *,
    n_informative: int = 5,
    n_redundant: int = 0,
    n_labels: int = 5,
    label_density: float = 0.3,
    label_correlation: float = 0.3,
    noise: float = 0.2,
    noise_model: str = "flip",
    density: float = 1.0,
    sparse: bool = False,
    shuffle: bool = True,
    return_truth: bool = False,
    random_state: int | np.random.Generator | None = None,
) -> tuple[Any, ...]:
    """Make a partial multi-label problem in which the informative features are known.

    The score of a label is a weighted sum of *all* standardised informative features. The magnitude of
    the weight of a feature is between 0.75 and 1.25 and the same for every label, but the sign may differ
    between labels. A label is true in the fraction `label_density` of the rows with the highest scores. If
    a row would have no label and there are several labels, it gets the label that is closest to its
    threshold. Thus every informative feature is relevant to every label, alone and in combination with the
    others. Other features are irrelevant unless they are redundant.

    Parameters
    ----------
    n_samples, n_features, n_labels : int
        Size of the problem.
    n_informative : int, default=5
        Number of features that determine the labels.
    n_redundant : int, default=0
        Number of features that are noisy weighted means of two informative ones.
        The remaining features are independent of the labels.
    label_density : float in (0, 1), default=0.3
        Fraction of rows in which a label is true. The actual fraction is slightly larger because every row
        gets a label.
    label_correlation : float in [0, 1], default=0.3
        Expected correlation between the scores of two labels. With 0, labels are uncorrelated on average.
        With 1, they differ only in the rows that would have had no label.
    noise : float or int, default=0.2
        Rate of the candidate noise.
    noise_model : {"flip", "relative", "count", "instance"}, default="flip"
        Noise model for candidate labels, see :func:`add_candidates`.
    density : float in (0, 1], default=1.0
        Fraction of nonzero entries of X. Redundant features have up to twice as many.
    sparse : bool, default=False
        If True, return X and the label matrices as CSR arrays with the same values.
    shuffle : bool, default=True
        If True, permute the features. Otherwise, the informative features come first, then the redundant
        ones, then the rest.
    return_truth : bool, default=False
        If True, also return the true labels and the informative features.
    random_state : int, numpy Generator or None, default=None
        Seed of the problem.

    Returns
    -------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Features in [0, 1].
    Y : ndarray or csr_array of shape (n_samples, n_labels)
        Candidate labels, 0/1.
    Y_true : ndarray or csr_array of shape (n_samples, n_labels)
        True labels. Every row has at least one if `n_labels` is at least 2. Only if `return_truth` is True.
    informative : ndarray of shape (n_informative,)
        Indices of the informative features, ascending. Only if `return_truth` is True.

    Examples
    --------
    >>> from labelsieve.datasets.synthetic import make_pml
    >>> X, Y, Y_true, informative = make_pml(shuffle=False, return_truth=True, random_state=0)
    >>> X.shape, Y.shape
    ((200, 20), (200, 5))
    >>> informative
    array([0, 1, 2, 3, 4])
    >>> bool((Y >= Y_true).all())
    True
    """
    for name, value, least in (
        ("n_samples", n_samples, 1),
        ("n_features", n_features, 1),
        ("n_labels", n_labels, 1),
        ("n_informative", n_informative, 1),
        ("n_redundant", n_redundant, 0),
    ):
        if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
            raise ValueError(f"{name} must be an integer >= {least}, got {value!r}.")
    if n_informative + n_redundant > n_features:
        raise ValueError(
            f"n_informative + n_redundant must be at most n_features={n_features!r}, "
            f"got {n_informative!r} + {n_redundant!r}."
        )
    for name, fraction, is_valid, interval in (
        ("label_density", label_density, lambda value: 0 < value < 1, "(0, 1)"),
        ("label_correlation", label_correlation, lambda value: 0 <= value <= 1, "[0, 1]"),
        ("density", density, lambda value: 0 < value <= 1, "(0, 1]"),
    ):
        if isinstance(fraction, bool) or not isinstance(fraction, Real) or not is_valid(fraction):
            raise ValueError(f"{name} must be a number in {interval}, got {fraction!r}.")

    # Every part has its own random stream, so changing e.g. the noise does not change the other parts.
    streams = as_generator(random_state).spawn(5)
    X_informative = dense(_entries(n_samples, n_informative, density, streams[0]))
    X_redundant = _redundant(X_informative, n_redundant, streams[1])
    X_rest = _entries(n_samples, n_features - n_informative - n_redundant, density, streams[2])
    Y_true = _labels(X_informative, n_labels, label_density, label_correlation, streams[3])

    order = streams[4].permutation(n_features) if shuffle else np.arange(n_features)
    if sp.issparse(X_rest):
        X = sp.hstack([sp.csr_array(X_informative), sp.csr_array(X_redundant), X_rest], format="csr")[
            :, order
        ]
        X.sort_indices()
    else:
        X = np.hstack([X_informative, X_redundant, X_rest])[:, order]
    if sparse:
        X, Y_true = sp.csr_array(X), sp.csr_array(Y_true)
    else:
        X = dense(X)
    Y = add_candidates(
        Y_true,
        noise_model,
        rate=noise,
        X=X if noise_model == "instance" else None,
        random_state=streams[4],
    )
    return (X, Y, Y_true, np.flatnonzero(order < n_informative)) if return_truth else (X, Y)


def load_planted() -> Dataset:
    """Make a fixed small problem with 8 informative features of 60, and labels without noise."""
    X, _, Y, _ = make_pml(
        300, 60, n_informative=8, n_labels=8, label_density=0.25, return_truth=True, random_state=0
    )
    return Dataset(X, Y, name="planted", source="labelsieve make_pml")


def _entries(n_samples: int, n_features: int, density: float, rng: np.random.Generator) -> Any:
    """Draw entries that are uniform in (0, 1] with probability `density`, else zero. Sparse if density < 1."""
    if density == 1:
        return 1.0 - rng.random((n_samples, n_features))
    width = np.full(n_samples, n_features)
    counts = rng.binomial(width, density)
    _, columns = draw_distinct(counts, width, rng)
    values = 1.0 - rng.random(len(columns))
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return sp.csr_array((values, columns, indptr), shape=(n_samples, n_features))


def _redundant(X_informative: np.ndarray, n_redundant: int, rng: np.random.Generator) -> np.ndarray:
    """Make features that are means of two informative ones with multiplicative noise, which keeps zeros."""
    n_samples, n_informative = X_informative.shape
    first = rng.integers(0, n_informative, size=n_redundant)
    step = rng.integers(1, max(2, n_informative), size=n_redundant)
    weight = rng.uniform(0.3, 0.7, size=n_redundant)
    mix: np.ndarray = (
        weight * X_informative[:, first] + (1 - weight) * X_informative[:, (first + step) % n_informative]
    )
    error = rng.uniform(1 - _REDUNDANT_ERROR, 1 + _REDUNDANT_ERROR, size=(n_samples, n_redundant))
    return np.minimum(mix * error, 1.0)


def _labels(
    X_informative: np.ndarray, n_labels: int, density: float, correlation: float, rng: np.random.Generator
) -> np.ndarray:
    """Label the rows with the highest scores. The correlation sets how often the signs of weights agree."""
    n_informative = X_informative.shape[1]
    magnitude = rng.uniform(0.75, 1.25, size=(n_informative, 1))
    shared_sign = rng.choice([-1.0, 1.0], size=(n_informative, 1))
    # If labels take the shared sign with probability p, the expected product of two signs is (2p - 1)^2.
    follows = rng.random((n_informative, n_labels)) < (1 + np.sqrt(correlation)) / 2
    weights = magnitude * shared_sign * np.where(follows, 1.0, -1.0)
    deviation = X_informative.std(axis=0)
    Z = (X_informative - X_informative.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    scores = Z @ weights
    margin = scores - np.quantile(scores, 1 - density, axis=0)
    Y_true: np.ndarray = (margin > 0).astype(np.int64)
    if n_labels > 1:
        empty = ~Y_true.any(axis=1)
        # Break ties between labels with the same weights at random. Otherwise the first would get every row.
        closeness = margin[empty] + 1e-9 * rng.random((empty.sum(), n_labels))
        Y_true[empty, closeness.argmax(axis=1)] = 1
    return Y_true
