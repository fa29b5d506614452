"""
Compare selectors fairly
========================

Fit on candidate labels, score on the true labels of held-out rows, and use the same classifier
for all methods. Include two references that need no method: all features, and random features.
"""

# %%
# A table with known answers: 60 features, of which 8 matter and 8 more are near copies of
# them. A quarter of the labels that do not apply became candidates.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

from labelsieve import PMLFSMIR, RFS, EvidenceSelector, RandomRanking, SumF, pml_cross_validate
from labelsieve.classify import LabelwiseSVM
from labelsieve.datasets import make_pml

X, Y_candidates, Y_true, informative = make_pml(
    400,
    60,
    n_informative=8,
    n_redundant=8,
    n_labels=6,
    noise=0.25,
    return_truth=True,
    random_state=0,
)

# %%
# ``pml_cross_validate`` passes only the candidates of the training rows to the estimator. Only
# the score uses ``Y_true``.

sizes = [2, 4, 8, 16, 32]
methods = {
    "evidence": EvidenceSelector,
    "RFS": RFS,
    "sum of F": SumF,
    "PML-FSMIR": PMLFSMIR,
    "random": lambda k: RandomRanking(k, random_state=0),
}
figure, axes = plt.subplots(figsize=(7, 4.2))
for name, make in methods.items():
    folds = np.array(
        [
            pml_cross_validate(
                make_pipeline(make(k), LabelwiseSVM()),
                X,
                Y_candidates,
                Y_true,
                cv=5,
                scoring=["average_precision"],
                random_state=0,
            )["test_average_precision"]
            for k in sizes
        ]
    )
    axes.errorbar(
        sizes,
        folds.mean(axis=1),
        folds.std(axis=1) / np.sqrt(5),
        label=name,
        capsize=2,
        marker="o",
    )
    print(f"{name:10} {folds.mean(axis=1).round(3)}")
all_features = pml_cross_validate(
    LabelwiseSVM(),
    X,
    Y_candidates,
    Y_true,
    cv=5,
    scoring=["average_precision"],
    random_state=0,
)
axes.axhline(
    all_features["test_average_precision"].mean(),
    color="gray",
    linestyle=":",
    label="all features",
)
axes.set(xscale="log", xlabel="number of features", ylabel="average precision on true labels")
axes.set_xticks(sizes, sizes)
axes.minorticks_off()
axes.legend(ncols=2, loc="center right", bbox_to_anchor=(1, 0.4))
figure.tight_layout()

# %%
# Bars are standard errors over five folds. The folds share training rows, so the bars are not
# a test. For a test, use many datasets: :doc:`critical_difference`.
