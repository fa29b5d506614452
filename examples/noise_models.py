"""
Four kinds of label noise
=========================

"20 % noise" can mean several things. The models of ``add_candidates`` add different numbers of
labels to different rows. A selector that does well under one model may not do well under
another.
"""

# %%
# A table with 200 rows and eight labels. How many wrong labels does each row get?

import matplotlib.pyplot as plt
import numpy as np

from labelsieve import EvidenceSelector, SumF, find_label_issues
from labelsieve.datasets import add_candidates, make_pml

X, _, Y, informative = make_pml(
    200, 80, n_informative=10, n_labels=8, label_density=0.2, return_truth=True, random_state=0
)
noisy = {
    "flip 0.2": add_candidates(Y, "flip", rate=0.2, random_state=0),
    "relative 0.2": add_candidates(Y, "relative", rate=0.2, random_state=0),
    "count 1": add_candidates(Y, "count", rate=1, random_state=0),
    "instance 0.2": add_candidates(Y, "instance", rate=0.2, X=X, random_state=0),
}
figure, panels = plt.subplots(1, 4, figsize=(10, 3), sharey=True)
for axes, (name, candidates) in zip(panels, noisy.items(), strict=True):
    added = (candidates - Y).sum(axis=1)
    axes.hist(added, bins=np.arange(-0.5, 7), color="steelblue")
    axes.set(title=name, xlabel="wrong labels in a row")
    share_wrong = 1 - Y.sum() / candidates.sum()
    print(
        f"{name:13} {candidates.sum(axis=1).mean():.2f} candidates per row, {share_wrong:.0%} wrong"
    )
panels[0].set_ylabel("rows")
figure.tight_layout()

# %%
# How does this affect selection, and the search for wrong labels? If noise depends on the row,
# wrong labels look like right ones.

found, auc = {}, {}
for name, candidates in noisy.items():
    found[name] = [
        make(10).fit(X, candidates).get_support()[informative].mean()
        for make in (EvidenceSelector, SumF)
    ]
    issues = find_label_issues(X, candidates)
    right = Y[issues.rows, issues.labels] == 1
    position = np.arange(1, len(right) + 1)
    n_right, n_wrong = right.sum(), (~right).sum()
    auc[name] = (position[right].sum() - n_right * (n_right + 1) / 2) / (n_right * n_wrong)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
positions = np.arange(len(noisy))
for shift, method in enumerate(("evidence", "sum of F")):
    left.bar(
        positions + 0.35 * shift - 0.175,
        [values[shift] for values in found.values()],
        width=0.35,
        label=method,
    )
left.set_xticks(positions, noisy, fontsize=8)
left.set_ylabel("share of informative features found")
left.legend()
right.bar(positions, auc.values(), color="slategray")
right.axhline(0.5, color="crimson", linestyle=":", label="random order")
right.set_xticks(positions, noisy, fontsize=8)
right.set(ylabel="AUC of the support", ylim=(0.4, 1))
right.legend()
figure.tight_layout()
