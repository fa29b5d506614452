"""
Write your own method
=====================

Write one class with one method. The base class checks the data, sets ``scores_`` and
``ranking_``, and makes it a scikit-learn selector. ``check_selector`` then tests it like the
methods of the package.
"""

# %%
# Score a feature by its correlation with the candidate label that it fits best. The code uses
# only sums and products, so sparse data stay sparse.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import SkipTestWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils.extmath import safe_sparse_dot

from labelsieve import BaseSelector, SolverResult, SumF, check_selector
from labelsieve.datasets import make_pml


class LargestCorrelation(BaseSelector):
    """Score features by their largest absolute correlation with a candidate label."""

    def _solve(self, X, Y):
        scaler = StandardScaler(with_mean=False).fit(X)
        share = np.asarray(Y.mean(axis=0)).ravel()
        covariance = safe_sparse_dot(X.T, Y, dense_output=True) / X.shape[0] - np.outer(
            scaler.mean_, share
        )
        deviation = np.outer(scaler.scale_, np.sqrt(share * (1 - share)))
        correlation = np.divide(
            covariance, deviation, out=np.zeros_like(deviation), where=deviation > 0
        )
        return SolverResult(scores=np.abs(correlation).max(axis=1).astype(X.dtype))


# %%
# ``check_selector`` returns the names of the checks that passed. If a check fails, it raises
# an error.

with warnings.catch_warnings():
    # scikit-learn skips checks that need other array libraries.
    warnings.simplefilter("ignore", SkipTestWarning)
    passed = check_selector(LargestCorrelation())
print(len(passed), "checks passed, for example", passed[-3:])

# %%
# Does it find informative features? Compare it with a plain filter.

shares = {"largest correlation": [], "sum of F": []}
rates = [0, 0.1, 0.2, 0.3, 0.4, 0.5]
for rate in rates:
    for name, make in (("largest correlation", LargestCorrelation), ("sum of F", SumF)):
        hits = []
        for seed in range(10):
            X, Y, _, informative = make_pml(
                200, 60, n_informative=8, noise=rate, return_truth=True, random_state=seed
            )
            hits.append(make(8).fit(X, Y).get_support()[informative].mean())
        shares[name].append(np.mean(hits))
figure, axes = plt.subplots(figsize=(6, 4))
for name, values in shares.items():
    axes.plot(rates, values, "o-", label=name)
axes.axhline(8 / 60, color="gray", linestyle=":", label="random")
axes.set(xlabel="noise rate", ylabel="share of informative features found", ylim=(0, 1.02))
axes.legend()
figure.tight_layout()
