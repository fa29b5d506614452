"""
Would other rows give the same features?
========================================

A list of features from one table looks certain. Repeat the selection on subsamples of the rows
to see which features are always selected, and which depend on the rows.
"""

# %%
# A table with 150 rows and 100 features. The first five matter, and the next four are near
# copies of some of them.

import matplotlib.pyplot as plt
import numpy as np

from labelsieve import PMLFSMIR, EvidenceSelector, SumF, selection_stability
from labelsieve.datasets import make_pml
from labelsieve.inspection.stability import kuncheva_stability, nogueira_stability

X, Y = make_pml(
    150,
    100,
    n_informative=5,
    n_redundant=4,
    n_labels=5,
    noise=0.3,
    shuffle=False,
    random_state=2,
)
selectors = {"sum of F": SumF(8), "evidence": EvidenceSelector(8), "PML-FSMIR": PMLFSMIR(8)}
found = {
    name: selection_stability(selector, X, Y, n_resamples=30)
    for name, selector in selectors.items()
}

# %%
# Selection frequencies with 95 % intervals. The eight features selected on all rows are
# filled.

figure, panels = plt.subplots(3, 1, figsize=(8, 7), sharex=True)
for axes, (name, result) in zip(panels, found.items(), strict=True):
    low, high = result.interval.T
    positions = np.arange(100)
    axes.vlines(positions, low, high, color="gray", linewidth=1)
    axes.scatter(
        positions,
        result.frequency,
        facecolor=np.where(result.selected, "crimson", "white"),
        edgecolor="crimson",
        zorder=3,
    )
    axes.axhline(8 / 100, color="gray", linestyle=":")
    axes.axvspan(-0.5, 4.5, color="seagreen", alpha=0.15)
    axes.axvspan(4.5, 8.5, color="gold", alpha=0.2)
    axes.set(title=name, ylabel="selected in", ylim=(0, 1.05))
panels[-1].set_xlabel("feature (green: matters, yellow: near copy, dotted: random)")
figure.tight_layout()

# %%
# One number per method: 1 for the same features every time, 0 for random features.

for name, result in found.items():
    kuncheva, nogueira = kuncheva_stability(result.runs), nogueira_stability(result.runs)
    print(f"{name:10} Kuncheva {kuncheva:.2f}, Nogueira {nogueira:.2f}")
    print(
        f"{'':10} stable features expected by chance: at most {result.expected_by_chance:.2f}"
    )
