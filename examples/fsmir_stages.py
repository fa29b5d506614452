"""
PML-FSMIR, stage by stage
=========================

PML-FSMIR (IJCAI 2025) has three stages. What does each of them do to the labels, the weights
and the ranking?
"""

# %%
# A table with 300 rows, 40 features of which the first six matter, six correlated labels and
# 30 % noise.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import PowerNorm
from scipy.stats import spearmanr

from labelsieve import PMLFSMIR
from labelsieve.datasets import make_pml

X, Y, Y_true, informative = make_pml(
    300,
    40,
    n_informative=6,
    n_labels=6,
    label_correlation=0.5,
    noise=0.3,
    shuffle=False,
    return_truth=True,
    random_state=1,
)
complete = PMLFSMIR().fit(X, Y)

# %%
# **Stage 1** turns candidate labels into confidences ``T``. The confidence of a label is the
# information, in bits, that the other candidates of its row have about it. It measures
# agreement. Rows with more candidates get higher confidences, right or wrong, so it does not
# detect wrong labels.

T = complete.label_confidence_
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10, 3.8))
left.imshow(Y[:25], cmap="Greys", aspect="auto")
left.set(title="candidates Y", xlabel="label", ylabel="row")
middle.imshow(T[:25], cmap="Greys", aspect="auto")
middle.set(title="confidences T", xlabel="label")
is_candidate = Y == 1
for values, name in (
    (T[is_candidate & (Y_true == 1)], "right"),
    (T[is_candidate & (Y_true == 0)], "wrong"),
):
    right.hist(
        values, bins=25, range=(0, 1), density=True, histtype="step", linewidth=2, label=name
    )
right.set(title="confidences of right and wrong candidates", xlabel="T")
right.legend()
figure.tight_layout()

# %%
# **Stage 2** factorizes features and confidences together, which gives each feature a weight
# for each label. The objective never increases. **Stage 3** multiplies the weights by the
# information ``Z'`` that labels share. This moves weight to labels that say much about the
# others.

before = PMLFSMIR(reconstruct_weights=False).fit(X, Y)
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10, 4))
left.plot(complete.objective_history_)
left.set(title="the objective", xlabel="iteration")
for axes, weights, title in (
    (middle, before.coef_, "W, stage 2"),
    (right, complete.coef_, "W Z', stage 3"),
):
    image = axes.imshow(weights.T, aspect="auto", cmap="magma", norm=PowerNorm(0.4))
    axes.axhline(5.5, color="white", linestyle=":")
    axes.set(title=title, xlabel="label")
    figure.colorbar(image, ax=axes)
middle.set_ylabel("feature (above the line: matters)")
figure.tight_layout()

# %%
# **The ranking** with and without the stages: how many of the six features that matter are in
# the top six, and how similar are the rankings?

variants = {
    "all stages": {},
    "without 1": {"reconstruct_labels": False},
    "without 3": {"reconstruct_weights": False},
    "without both": {"reconstruct_labels": False, "reconstruct_weights": False},
}
fits = {name: PMLFSMIR(6, **options).fit(X, Y) for name, options in variants.items()}
for name, fit in fits.items():
    correlation = spearmanr(fit.scores_, complete.scores_).statistic
    n_found = fit.get_support()[informative].sum()
    print(f"{name:13} {n_found} of 6, rank correlation with all stages {correlation:.2f}")
figure, axes = plt.subplots(figsize=(8, 3.8))
for shift, (name, fit) in enumerate(fits.items()):
    axes.bar(
        np.arange(40) + 0.2 * shift - 0.3,
        fit.scores_ / fit.scores_.max(),
        width=0.2,
        label=name,
    )
axes.axvspan(-0.5, 5.5, color="seagreen", alpha=0.12)
axes.set(xlabel="feature (green: matters)", ylabel="score, relative to the best")
axes.legend(ncols=2, fontsize=8)
figure.tight_layout()

# %%
# With ``sqrt(40) = 6`` components, independent features do not all fit through the
# factorization. See :doc:`/guide/pml_fsmir` for measurements and :doc:`/results/index` for
# comparisons.
