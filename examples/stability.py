"""
Would another sample choose the same features?
==============================================

A list of features from one sample looks certain. Choosing again on halves of the rows tells which features are there every time, and which only because
these rows happened to be drawn.
"""

# %%
# 100 features, 150 rows: the first five matter, the next four nearly repeat some of them.

import matplotlib.pyplot as plt
import numpy as np

from labelsieve import PMLFSMIR, EvidenceSelector, SumF, selection_stability
from labelsieve.datasets import make_pml
from labelsieve.inspection.stability import kuncheva_stability, nogueira_stability

X, Y = make_pml(
    150, 100, n_informative=5, n_redundant=4, n_labels=5, noise=0.3, shuffle=False, random_state=2
)
selectors = {"sum of F": SumF(8), "evidence": EvidenceSelector(8), "PML-FSMIR": PMLFSMIR(8)}
found = {name: selection_stability(selector, X, Y, n_resamples=30) for name, selector in selectors.items()}

# %%
# Frequencies with their 95 % intervals. Filled are the eight that all rows choose.

figure, panels = plt.subplots(3, 1, figsize=(8, 7), sharex=True)
for axes, (name, result) in zip(panels, found.items(), strict=True):
    low, high = result.interval.T
    spots = np.arange(100)
    axes.vlines(spots, low, high, color="gray", linewidth=1)
    axes.scatter(
        spots,
        result.frequency,
        facecolor=np.where(result.selected, "crimson", "white"),
        edgecolor="crimson",
        zorder=3,
    )
    axes.axhline(8 / 100, color="gray", linestyle=":")
    axes.axvspan(-0.5, 4.5, color="seagreen", alpha=0.15)
    axes.axvspan(4.5, 8.5, color="gold", alpha=0.2)
    axes.set(title=name, ylabel="chosen in", ylim=(0, 1.05))
panels[-1].set_xlabel("feature (green: matters, yellow: repeats one that does, dotted: chance)")
figure.tight_layout()

# %%
# One number for a whole method: 1 for the same features every time, 0 for chance.

for name, result in found.items():
    print(
        f"{name:10} Kuncheva {kuncheva_stability(result.runs):.2f}, Nogueira {nogueira_stability(result.runs):.2f}, "
        f"expected by chance at 60 % of the halves or more: {result.expected_by_chance:.2f} features"
    )
