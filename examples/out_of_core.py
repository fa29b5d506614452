"""
Select from rows that do not fit into memory
============================================

The same selector gives the same scores while only two blocks of rows are in memory. The file
of this example is small, so we can try both ways.
"""

# %%
# Write a table in pieces, as a program would that never holds all of it.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from labelsieve import SumF, SumMI
from labelsieve.datasets import make_pml
from labelsieve.io import read

folder = tempfile.TemporaryDirectory()
path = Path(folder.name, "large.npy")
X, Y, _, informative = make_pml(
    40_000, 100, n_informative=10, n_labels=5, return_truth=True, random_state=0
)
table = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(len(X), 105))
for start in range(0, len(X), 5000):
    table[start : start + 5000] = np.hstack([X, Y])[start : start + 5000]
table.flush()
del table
print(f"{path.stat().st_size / 2**20:.0f} MiB")

# %%
# Open it in blocks of 5000 rows. Nothing is read until it is needed. ``transform`` is lazy,
# too.

data = read(path, labels=5, chunks=5000)
in_blocks = SumF(n_features_to_select=10).fit(data.X, data.candidates)
print(data.X)
print(
    "kept:",
    in_blocks.transform(data.X).shape,
    "informative among them:",
    in_blocks.get_support()[informative].sum(),
)

# %%
# All rows in memory give the same scores, up to rounding.

in_memory = SumF(n_features_to_select=10).fit(read(path, labels=5).X, Y)
difference = np.abs(in_blocks.scores_ / in_memory.scores_ - 1).max()
print(f"largest relative difference: {difference:.1e}")
binned = SumMI(n_features_to_select=10).fit(data.X, data.candidates)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
is_informative = np.isin(np.arange(100), informative)
for axes, scores, name in (
    (left, in_memory.scores_, "sum of F, in memory"),
    (right, binned.scores_, "sum of mutual information, in blocks"),
):
    for part, color, label in (
        (~is_informative, "lightgray", "noise"),
        (is_informative, "crimson", "informative"),
    ):
        axes.scatter(
            scores[part],
            in_blocks.scores_[part],
            color=color,
            edgecolor="black",
            linewidth=0.4,
            label=label,
        )
    axes.set(xscale="log", yscale="log", xlabel=name, ylabel="sum of F, in blocks")
left.legend()
figure.tight_layout()
folder.cleanup()

# %%
# The same code runs on a cluster. :doc:`/guide/scale` shows how to start one.
