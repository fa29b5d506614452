"""
Find wrong labels
=================

Add wrong labels to a table, hide which they are, and count how early each order finds them: a
random order, the support alone, and the support after a review of fifty labels.
"""

# %%
# Images of digits, labelled *even*, *prime*, *closed loop* and so on. A careless annotator
# adds labels that do not apply, some far more often than others: the first never, the last to
# six of ten digits.

import matplotlib.pyplot as plt
import numpy as np

from labelsieve import draw_candidates, find_label_issues
from labelsieve.datasets import load_digits_attributes

digits = load_digits_attributes()
rng = np.random.default_rng(0)
rates = np.linspace(0, 0.6, digits.Y.shape[1])
candidates = np.maximum(digits.Y, rng.random(digits.Y.shape) < rates)
issues = find_label_issues(digits.X, candidates, label_names=digits.label_names)
is_wrong = digits.Y[issues.rows, issues.labels] == 0
print(issues)
print(
    f"wrong labels: {is_wrong.mean():.0%} of all, {is_wrong[:200].mean():.0%} of the first 200"
)

# %%
# Review fifty labels, drawn at random, to turn the order into probabilities. Here the true
# labels play the reviewer.

rows, labels = draw_candidates(candidates, 50, random_state=0)
checked = (rows, labels, digits.Y[rows, labels])
reviewed = find_label_issues(
    digits.X, candidates, checked=checked, label_names=digits.label_names
)
print(
    f"estimated share of wrong labels: {reviewed.share_wrong:.0%}, in fact {is_wrong.mean():.0%}"
)

# %%
# How many wrong labels do you find if you review the list from the top?

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
n_reviewed = np.arange(1, len(is_wrong) + 1)
for name, found in {"support": issues, "with 50 reviewed": reviewed}.items():
    wrong = digits.Y[found.rows, found.labels] == 0
    left.plot(n_reviewed, np.cumsum(wrong) / wrong.sum(), label=name)
left.plot(
    n_reviewed, n_reviewed / len(n_reviewed), color="gray", linestyle=":", label="random order"
)
left.set(xlabel="labels reviewed", ylabel="share of wrong labels found")
left.legend()

# Calibration: mean probability and share of right labels in ten bins of equal size.
probability = reviewed.probability[reviewed.rows, reviewed.labels]
is_right = digits.Y[reviewed.rows, reviewed.labels]
bins = np.array_split(np.arange(len(probability)), 10)
right.plot([0, 1], [0, 1], color="gray", linestyle=":")
right.plot([probability[b].mean() for b in bins], [is_right[b].mean() for b in bins], "o-")
right.set(xlabel="probability of being right", ylabel="share of right labels")
figure.tight_layout()

# %%
# The images of the five least supported labels.

figure, panels = plt.subplots(1, 5, figsize=(9, 2.4))
for axes, row, label in zip(panels, issues.rows, issues.labels, strict=False):
    axes.imshow(digits.X[row].reshape(8, 8), cmap="gray_r")
    axes.set_title(f"{digits.label_names[label]}?", fontsize=9)
    axes.axis("off")
figure.tight_layout()
