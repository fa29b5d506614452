"""
How many features are enough
============================

The true labels are not at hand, but candidates of rows that were left out are. Where wrong candidates come at one rate, features that predict
*candidates* well predict true labels well, so the candidates can choose the size.
"""

# %%
# 80 features of which ten matter. ``choose_size`` works with every method; ``EvidenceSelector`` does it by itself with ``"auto"``.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

from labelsieve import EvidenceSelector, SumF, choose_size, pml_cross_validate
from labelsieve.classify import LabelwiseSVM
from labelsieve.datasets import make_pml

X, Y_candidates, Y_true, informative = make_pml(
    500, 80, n_informative=10, n_labels=6, noise=0.2, return_truth=True, random_state=3
)
curve = choose_size(SumF(), X, Y_candidates)
auto = EvidenceSelector("auto").fit(X, Y_candidates)
print(f"sum of F: best {curve.best}, hardly worse from {curve.enough} on")
print(
    f"evidence: {auto.n_features_} features, {len(set(informative) & set(np.flatnonzero(auto.get_support())))} of the 10 that matter"
)

# %%
# The curve with its spread over the folds, and below it what nobody could see: the same sizes judged by the truth.

truth = [
    pml_cross_validate(
        make_pipeline(SumF(int(size)), LabelwiseSVM()),
        X,
        Y_candidates,
        Y_true,
        cv=5,
        scoring=["average_precision"],
        random_state=0,
    )["test_average_precision"].mean()
    for size in curve.sizes
]
figure, (top, bottom) = plt.subplots(2, 1, figsize=(7, 6), sharex=True)
top.fill_between(curve.sizes, curve.mean - curve.spread, curve.mean + curve.spread, alpha=0.2)
top.plot(curve.sizes, curve.mean, "o-", label="judged by candidates")
top.axvline(curve.best, color="crimson", label=f"best: {curve.best}")
top.axvline(curve.enough, color="crimson", linestyle=":", label=f"enough: {curve.enough}")
top.set_ylabel("average precision")
top.legend()
bottom.plot(curve.sizes, truth, "o-", color="seagreen", label="judged by the truth")
bottom.axvline(10, color="gray", linestyle=":", label="ten matter")
bottom.set(xscale="log", xlabel="number of features", ylabel="average precision")
bottom.set_xticks([1, 2, 5, 10, 20, 40, 80], [1, 2, 5, 10, 20, 40, 80])
bottom.legend()
figure.tight_layout()
