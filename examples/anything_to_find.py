"""
Is there anything to find?
==========================

A selector ranks features whatever the data say. Before anybody believes a list, ``evidence_test`` compares the evidence in the table with that of shuffled
labels.
"""

# %%
# Three tables of 150 rows and 200 features: one with six that matter, one where they matter a little, one of noise alone.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from labelsieve import SumF, evidence_test
from labelsieve.datasets import make_pml

X, Y = make_pml(150, 200, n_informative=6, noise=0.2, shuffle=False, random_state=0)
rng = np.random.default_rng(0)
faint = X.copy()
faint[:, :6] = 0.5 * X[:, :6] + 0.5 * rng.random((150, 6))
tables = {"six features matter": X, "they matter a little": faint, "noise alone": rng.random((150, 200))}

# %%
# All three give a confident-looking list; only the test tells them apart. It warns where chance would do as well.

figure, panels = plt.subplots(1, 3, figsize=(10, 3.2))
for axes, (name, table) in zip(panels, tables.items(), strict=True):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        test = evidence_test(table, Y)
    best = np.argsort(SumF(6).fit(table, Y).ranking_)[:6]
    axes.hist(test.permuted, bins=20, color="lightgray", label="shuffled labels")
    axes.axvline(test.total, color="crimson", label="these labels")
    axes.set(title=f"{name}\np = {test.p_value:.3g}", xlabel="total evidence")
    print(f"{name}: first six {sorted(best.tolist())}; {told[0].message if told else 'no warning'}")
panels[0].legend()
figure.tight_layout()
