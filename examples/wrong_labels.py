"""
Finding planted wrong labels
============================

We plant wrong candidates among right ones, hide which they are, and look how early each order finds them: by chance, by support alone, and after
a person has checked fifty.
"""

# %%
# Digits, labelled *even*, *prime*, *closed loop* and so on. A careless annotator adds labels that do not apply, some labels far more often than others:
# the first never, the last in six of ten digits.

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
print(f"really wrong: {is_wrong.mean():.0%} of all candidates, {is_wrong[:200].mean():.0%} of the first 200")

# %%
# Fifty candidates drawn at random and checked turn the order into probabilities. Here the truth plays the person.

rows, labels = draw_candidates(candidates, 50, random_state=0)
checked = (rows, labels, digits.Y[rows, labels])
better = find_label_issues(digits.X, candidates, checked=checked, label_names=digits.label_names)
print(f"estimated share of wrong candidates: {better.share_wrong:.0%}, really {is_wrong.mean():.0%}")

# %%
# How many of the wrong ones are found when so many candidates are looked at?

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
looked_at = np.arange(1, len(is_wrong) + 1)
for name, found in {"support": issues, "with 50 checked": better}.items():
    wrong = digits.Y[found.rows, found.labels] == 0
    left.plot(looked_at, np.cumsum(wrong) / wrong.sum(), label=name)
left.plot(looked_at, looked_at / len(looked_at), color="gray", linestyle=":", label="chance")
left.set(xlabel="candidates looked at", ylabel="share of the wrong ones found")
left.legend()

# Are the probabilities right? In ten bins of equal size, the mean probability and the share that is right.
probability = better.probability[better.rows, better.labels]
right_ones = digits.Y[better.rows, better.labels]
bins = np.array_split(np.arange(len(probability)), 10)
right.plot([0, 1], [0, 1], color="gray", linestyle=":")
right.plot([probability[b].mean() for b in bins], [right_ones[b].mean() for b in bins], "o-")
right.set(xlabel="probability of being right", ylabel="share that is right")
figure.tight_layout()

# %%
# The images behind the five most doubtful candidates.

figure, panels = plt.subplots(1, 5, figsize=(9, 2.4))
for axes, row, label in zip(panels, issues.rows, issues.labels, strict=False):
    axes.imshow(digits.X[row].reshape(8, 8), cmap="gray_r")
    axes.set_title(f"{digits.label_names[label]}?", fontsize=9)
    axes.axis("off")
figure.tight_layout()
