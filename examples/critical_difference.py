"""
Draw a critical-difference diagram
==================================

Which of several methods differ? Rank them on every dataset, average the ranks, and connect the
methods that do not differ significantly. Test across datasets, never across folds, because
folds share rows.
"""

# %%
# Twelve small datasets that differ in size, labels and noise, and six selectors that keep ten
# features each.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

from labelsieve import (
    FPML,
    MDMR,
    EvidenceSelector,
    RandomRanking,
    SumF,
    SumMI,
    pml_cross_validate,
)
from labelsieve.classify import LabelwiseSVM
from labelsieve.datasets import make_pml
from labelsieve.report.cd_diagram import draw_cd_diagram
from labelsieve.report.statistics import (
    average_ranks,
    iman_davenport,
    nemenyi_cd,
    nemenyi_p_values,
    rank_methods,
)

methods = {
    "evidence": EvidenceSelector(10),
    "sum-f": SumF(10),
    "sum-mi": SumMI(10),
    "mdmr": MDMR(10),
    "fpml": FPML(10),
    "random-ranking": RandomRanking(10, random_state=0),
}
results = []
for seed in range(12):
    X, Y, Y_true, _ = make_pml(
        150 + 20 * seed,
        60,
        n_informative=10,
        n_redundant=10,
        n_labels=4 + seed % 5,
        noise=0.1 + 0.03 * seed,
        return_truth=True,
        random_state=seed,
    )
    results.append(
        [
            pml_cross_validate(
                make_pipeline(method, LabelwiseSVM()),
                X,
                Y,
                Y_true,
                cv=3,
                scoring=["ranking_loss"],
                random_state=0,
            )["test_ranking_loss"].mean()
            for method in methods.values()
        ]
    )
results = np.array(results)

# %%
# Iman and Davenport's test asks whether the methods differ at all. The critical difference is
# the smallest significant difference of two average ranks.

ranks = rank_methods(results, "lower")
cd = nemenyi_cd(len(methods), len(results))
print(
    f"Iman-Davenport p = {iman_davenport(ranks).p_value:.2g}, critical difference {cd:.2f} ranks"
)
average = dict(zip(methods, average_ranks(results, "lower"), strict=True))
print({name: round(float(rank), 2) for name, rank in average.items()})

# %%
# The diagram of the reports. Bars connect methods that do not differ significantly. With twelve
# datasets, that is a lot of them.

diagram = draw_cd_diagram(
    average, cd, title="ranking loss, twelve datasets", control="evidence"
)
print(diagram.description)
with tempfile.TemporaryDirectory() as folder:
    diagram.save(Path(folder), "cd", ["png"])
    image = plt.imread(Path(folder, "cd.png"))
figure = plt.figure(figsize=(image.shape[1] / 144, image.shape[0] / 144), dpi=144)
figure.figimage(image)

# %%
# The p-values of all pairs.

figure, axes = plt.subplots(figsize=(5.5, 4.5))
p_values = nemenyi_p_values(ranks)
axes.imshow(p_values < 0.05, cmap="Greens", vmin=0, vmax=2)
for i, row in enumerate(p_values):
    for j, p_value in enumerate(row):
        if i != j:
            axes.text(j, i, f"{p_value:.2f}", ha="center", va="center", fontsize=8)
axes.set_xticks(range(len(methods)), methods, rotation=40, ha="right")
axes.set_yticks(range(len(methods)), methods)
axes.set_title("p-values; below 0.05 in green")
figure.tight_layout()
