"""
Which pixels tell the digits apart?
===================================

Images of handwritten digits, labelled *even*, *prime*, *has a closed loop* and so on. Each
label that does not apply became a candidate label with probability 0.2. Which 12 of the 64
pixels matter most?
"""

# %%
# Select on the candidate labels. In practice, you have no others.

import matplotlib.pyplot as plt
import numpy as np

from labelsieve import EvidenceSelector
from labelsieve.datasets import load_digits_attributes

digits = load_digits_attributes()
selector = EvidenceSelector(n_features_to_select=12).fit(digits.X, digits.Y_candidates)
print(digits)
print("redundancy chosen by inner cross-validation:", selector.redundancy_)

# %%
# The selected pixels by rank, on the mean image. Neighbours of a selected pixel say nearly the
# same, so they drop in rank.

mean_image = digits.X.mean(axis=0).reshape(8, 8)
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4))
left.imshow(mean_image, cmap="gray_r")
for column in np.flatnonzero(selector.get_support()):
    y, x = divmod(column, 8)
    left.text(
        x,
        y,
        selector.ranking_[column],
        ha="center",
        va="center",
        bbox={"facecolor": "gold", "edgecolor": "none", "boxstyle": "round,pad=0.2"},
    )
left.set_title("selected, by rank")
image = right.imshow(np.sqrt(selector.evidence_).reshape(8, 8), cmap="viridis")
figure.colorbar(image, ax=right, shrink=0.8, label="square root of the evidence")
right.set_title("evidence of each pixel")
for axes in (left, right):
    axes.axis("off")
figure.tight_layout()

# %%
# Which labels does a pixel predict? Correlate each selected pixel with the candidate labels.

Z = (digits.X - digits.X.mean(axis=0)) / np.where(
    digits.X.std(axis=0) > 0, digits.X.std(axis=0), 1
)
T = digits.Y_candidates - digits.Y_candidates.mean(axis=0)
correlation = (Z.T @ (T / T.std(axis=0))) / len(Z)
order = np.argsort(selector.ranking_)[:12]
figure, axes = plt.subplots(figsize=(8, 4))
limit = np.abs(correlation[order]).max()
image = axes.imshow(correlation[order], cmap="RdBu", vmin=-limit, vmax=limit, aspect="auto")
axes.set_yticks(range(12), [digits.feature_names[column] for column in order])
axes.set_xticks(range(len(digits.label_names)), digits.label_names, rotation=40, ha="right")
figure.colorbar(image, label="correlation with the candidate labels")
figure.tight_layout()
