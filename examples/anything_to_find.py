"""
Is there anything to find?
==========================

A selector ranks features even if they have nothing to do with the labels. Before you trust a
ranking, run ``evidence_test``: it compares the evidence in your table with that of permuted
labels.
"""

# %%
# Three tables with 150 rows and 200 features. In the first, six features matter. In the
# second, they matter a little. The third is noise.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from labelsieve import SumF, evidence_test
from labelsieve.datasets import make_pml

X, Y = make_pml(150, 200, n_informative=6, noise=0.2, shuffle=False, random_state=0)
rng = np.random.default_rng(0)
faint = X.copy()
faint[:, :6] = 0.5 * X[:, :6] + 0.5 * rng.random((150, 6))
tables = {
    "six features matter": X,
    "they matter a little": faint,
    "only noise": rng.random((150, 200)),
}

# %%
# All three give a plausible list. Only the test tells them apart. It warns if permuted labels
# have as much evidence.

figure, panels = plt.subplots(1, 3, figsize=(10, 3.2))
for axes, (name, table) in zip(panels, tables.items(), strict=True):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        test = evidence_test(table, Y)
    best = np.argsort(SumF(6).fit(table, Y).ranking_)[:6]
    axes.hist(test.permuted, bins=20, color="lightgray", label="permuted labels")
    axes.axvline(test.total, color="crimson", label="your labels")
    axes.set(title=f"{name}\np = {test.p_value:.3g}", xlabel="total evidence")
    print(
        f"{name}: top six {sorted(best.tolist())}, {caught[0].message if caught else 'no warning'}"
    )
panels[0].legend()
figure.tight_layout()
