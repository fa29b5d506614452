"""
How many features are enough?
=============================

You have no true labels to score with, but you have the candidate labels of held-out rows. If
wrong candidates appear at one rate, features that predict *candidates* well also predict true
labels well. So the candidates can choose the number of features.
"""

# %%
# A table with 80 features, of which ten matter. ``choose_size`` works with every method.
# ``EvidenceSelector`` has it built in, as ``"auto"``.

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
n_found = np.isin(informative, np.flatnonzero(auto.get_support())).sum()
print(f"sum of F: best {curve.best}, {curve.enough} are almost as good")
print(f"evidence: {auto.n_features_} features, with {n_found} of the 10 that matter")

# %%
# The curve with its spread over the folds. Below it are the scores on true labels. In practice,
# you do not have them.

true_scores = [
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
top.plot(curve.sizes, curve.mean, "o-", label="scored on candidate labels")
top.axvline(curve.best, color="crimson", label=f"best: {curve.best}")
top.axvline(
    curve.enough, color="crimson", linestyle=":", label=f"almost as good: {curve.enough}"
)
top.set_ylabel("average precision")
top.legend()
bottom.plot(curve.sizes, true_scores, "o-", color="seagreen", label="scored on true labels")
bottom.axvline(10, color="gray", linestyle=":", label="10 features matter")
bottom.set(xscale="log", xlabel="number of features", ylabel="average precision")
bottom.set_xticks([1, 2, 5, 10, 20, 40, 80], [1, 2, 5, 10, 20, 40, 80])
bottom.legend()
figure.tight_layout()
