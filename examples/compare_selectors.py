"""
Comparing selectors fairly
==========================

Fit on candidates, judge by the truth, on rows that nobody has seen, with a classifier that is the same for all; and beside the methods, what needs no
method: all features, and features drawn by lot.
"""

# %%
# A problem with known answers: 60 features, of which 8 matter and 8 more nearly repeat them; a quarter of the absent labels became candidates.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

from labelsieve import PMLFSMIR, RFS, EvidenceSelector, RandomRanking, SumF, pml_cross_validate
from labelsieve.classify import LabelwiseSVM
from labelsieve.datasets import make_pml

X, Y_candidates, Y_true, informative = make_pml(
    400, 60, n_informative=8, n_redundant=8, n_labels=6, noise=0.25, return_truth=True, random_state=0
)

# %%
# ``pml_cross_validate`` gives the estimator the candidates of the training rows and nothing else; only the score looks at ``Y_true``.

sizes = [2, 4, 8, 16, 32]
methods = {
    "evidence": EvidenceSelector,
    "RFS": RFS,
    "sum of F": SumF,
    "PML-FSMIR": PMLFSMIR,
    "by lot": lambda k: RandomRanking(k, random_state=0),
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
        sizes, folds.mean(axis=1), folds.std(axis=1) / np.sqrt(5), label=name, capsize=2, marker="o"
    )
    print(f"{name:10} {folds.mean(axis=1).round(3)}")
every = pml_cross_validate(
    LabelwiseSVM(), X, Y_candidates, Y_true, cv=5, scoring=["average_precision"], random_state=0
)
axes.axhline(every["test_average_precision"].mean(), color="gray", linestyle=":", label="all features")
axes.set(xscale="log", xlabel="number of features", ylabel="average precision on true labels")
axes.set_xticks(sizes, sizes)
axes.minorticks_off()
axes.legend(ncols=2, loc="center right", bbox_to_anchor=(1, 0.4))
figure.tight_layout()

# %%
# Bars are standard errors over five folds that share training rows: they show how far to trust a gap by eye, and are no test. For tests take many data
# sets: :doc:`critical_difference`.
