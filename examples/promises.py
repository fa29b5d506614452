"""
Check the promises
==================

Four numbers of labelsieve come with a promise. Repeat each of them on data whose true labels are
known, and count how often the promise holds. The guide explains :doc:`/guide/guarantees`.
"""

# %%
# Columns
# -------
#
# Tables of thirty columns, of which eight are related to the true labels. A fifth of the labels
# that do not apply are added as wrong candidates. Of each list, count the unrelated columns.

import matplotlib.pyplot as plt
import numpy as np

from labelsieve import controlled_selection, draw_candidates, find_label_issues
from labelsieve.datasets import add_candidates, load_animals

RIGHT, WRONG = "tab:blue", "tab:orange"


def list_columns(seed):
    """Return the numbers of related and unrelated columns in the list of one table."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((150, 30))
    scores = X[:, :8] @ rng.standard_normal((8, 3)) + rng.standard_normal((150, 3))
    candidates = add_candidates((scores > 1).astype(int), rate=0.2, random_state=seed)
    selected = controlled_selection(X, candidates, fdr=0.1).selected
    return selected[:8].sum(), selected[8:].sum()


related, unrelated = np.array([list_columns(seed) for seed in range(30)]).T
share = np.mean(unrelated / np.maximum(related + unrelated, 1))
order = np.argsort(-unrelated, kind="stable")
figure, axes = plt.subplots(figsize=(8, 3.2))
axes.bar(range(30), related[order], color=RIGHT, label="related to the true labels")
axes.bar(range(30), unrelated[order], bottom=related[order], color=WRONG, label="unrelated")
axes.set(xlabel="30 tables", ylabel="columns in the list", xticks=[])
axes.set_title(f"Wrong columns: {share:.0%} on average, at most 10% promised", loc="left")
axes.legend(loc="lower right", framealpha=1)
figure.tight_layout()

# %%
# Wrong labels
# ------------
#
# The animals have 324 tags, and 86 are wrong. Draw fifty tags and review them, forty times over.
# Each draw gives an interval for the number of wrong tags, and a list of tags that can be removed
# without review.

animals = load_animals()
is_right = animals.Y > 0


def review(seed):
    """Return the issues after a review of fifty random tags."""
    rows, labels = draw_candidates(animals.candidates, 50, random_state=seed)
    checked = (rows, labels, animals.Y[rows, labels])
    return find_label_issues(animals.X, animals.candidates, checked=checked)


reviews = [review(seed) for seed in range(40)]


def plot_intervals(axes, intervals, true_number):
    """Draw the intervals below each other. Those that miss the true number are in the other colour."""
    for place, found in enumerate(intervals):
        holds = found.n_low <= true_number <= found.n_high
        axes.plot([found.n_low, found.n_high], [place, place], color=RIGHT if holds else WRONG)
    axes.axvline(true_number, color="black", linewidth=1)
    axes.set(ylabel=f"{len(intervals)} draws", yticks=[])
    return sum(found.n_low <= true_number <= found.n_high for found in intervals)


figure, axes = plt.subplots(figsize=(8, 3.6))
n_held = plot_intervals(axes, [found.error_interval() for found in reviews], 86)
axes.set(xlabel="number of wrong tags (line: the true number)", xlim=(0, 324))
axes.set_title(f"{n_held} of 40 intervals hold the true number, 95% promised", loc="left")
figure.tight_layout()

# %%
# Removals
# --------
#
# Ask each draw for the tags that can be removed at 20 %.

removals = [found.removable(0.2) for found in reviews]
mistakes = np.array([is_right[found.rows, found.labels].sum() for found in removals])
sizes = np.array([len(found) for found in removals])
share = np.mean(mistakes / np.maximum(sizes, 1))
order = np.lexsort((-mistakes, sizes))
figure, axes = plt.subplots(figsize=(8, 3.2))
axes.bar(range(40), (sizes - mistakes)[order], color=RIGHT, label="wrong tags")
axes.bar(
    range(40),
    mistakes[order],
    bottom=(sizes - mistakes)[order],
    color=WRONG,
    label="right tags, removed by mistake",
)
axes.set(xlabel="40 draws", ylabel="tags removed", xticks=[])
axes.set_title(f"Mistakes: {share:.0%} on average, at most 20% promised", loc="left")
axes.text(9, 3, "nothing can be removed", ha="center")
axes.legend(loc="upper left")
figure.tight_layout()

# %%
# Missing labels
# --------------
#
# Start from the true tags and drop a fifth. The support ranks the absent tags. The first tenth of
# them is the list that the reviews are drawn from.

Y = animals.Y.copy()
Y[np.random.default_rng(0).random(Y.shape) < 0.2] = 0
issues = find_label_issues(animals.X, Y, which="missing")
is_missing = is_right[issues.rows, issues.labels]


def count_missing(seed):
    """Return the interval of the number of missing tags in the list."""
    plan = issues.draw(50, random_state=seed)
    answered = plan.answer(animals.Y[plan.rows, plan.labels])
    return find_label_issues(animals.X, Y, which="missing", checked=answered).error_interval()


intervals = [count_missing(seed) for seed in range(40)]
n_listed = intervals[0].n_labels
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6))
left.plot(np.cumsum(is_missing) / is_missing.sum(), color=RIGHT, label="by support")
left.plot([0, len(is_missing)], [0, 1], color="gray", linestyle=":", label="random order")
left.axvspan(0, n_listed, color="gray", alpha=0.2, label="the list")
left.set(xlabel="absent tags, best supported first", ylabel="share of missing tags found")
left.legend(loc="lower right")
n_held = plot_intervals(right, intervals, is_missing[:n_listed].sum())
right.axvline(is_missing.sum(), color="black", linewidth=1, linestyle=":")
right.set(xlabel="missing tags (line: in the list, dots: in all)", xlim=(0, None))
right.set_title(f"{n_held} of 40 intervals hold", loc="left")
figure.tight_layout()
print(f"{n_listed} tags are in the list, {is_missing[:n_listed].sum()} of them are missing.")
print(f"{is_missing.sum()} tags are missing in all.")
