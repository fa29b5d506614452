"""
A wide table, as in biology
===========================

Few rows and thousands of columns in correlated groups, like genes under one regulator. Seven
conditions are recorded for each row, some of them wrongly. A filter fills its list with
columns of the strongest group. Forward selection takes one column of each.
"""

# %%
# A table with 150 rows and 3000 columns in 300 groups of ten. The first twelve groups depend
# on the conditions, the strongest first.

import matplotlib.pyplot as plt
import numpy as np

from labelsieve import EvidenceSelector, evidence_test
from labelsieve.datasets import add_candidates

rng = np.random.default_rng(1)
n_rows, n_groups, n_members, n_active = 150, 300, 10, 12
Y = (rng.random((n_rows, 7)) < 0.3).astype(int)
regulators = rng.normal(size=(n_rows, n_groups))
for group in range(n_active):
    regulators[:, group] += 2.2 * 0.9**group * (Y[:, group % 7] - 0.3)
X = np.repeat(regulators, n_members, axis=1) + 0.5 * rng.normal(
    size=(n_rows, n_groups * n_members)
)
Y_candidates = add_candidates(Y, rate=0.15, random_state=0)

# %%
# With so many columns, some always look related. Is there more evidence than with permuted
# labels?

test = evidence_test(X, Y_candidates, n_permutations=99)
print(
    f"p = {test.p_value}: total evidence {test.total:.0f}, permuted at most {test.permuted.max():.0f}"
)

# %%
# Select twelve columns in three ways. ``redundancy=inf`` sorts by evidence alone. ``0``
# prefers columns that explain what the earlier ones do not. ``"auto"`` chooses by
# cross-validation on the candidate labels.

settings = {"filter (inf)": np.inf, "forward (0)": 0, "automatic (auto)": "auto"}
figure, panels = plt.subplots(1, 3, figsize=(9, 3.2), sharey=True)
for axes, (name, redundancy) in zip(panels, settings.items(), strict=True):
    selector = EvidenceSelector(12, redundancy=redundancy, ridge=0.1).fit(X, Y_candidates)
    groups = np.flatnonzero(selector.get_support()) // n_members
    counts = np.bincount(groups, minlength=n_groups)
    axes.bar(range(n_active), counts[:n_active], color="seagreen", label="groups that matter")
    axes.bar([n_active + 1], [counts[n_active:].sum()], color="lightgray", label="all others")
    axes.set_title(f"{name}: {np.count_nonzero(counts[:n_active])} groups")
    axes.set_xlabel("group, strongest first")
    print(f"{name}: redundancy {selector.redundancy_}, groups {sorted(set(groups.tolist()))}")
panels[0].set_ylabel("columns selected")
panels[2].legend(fontsize=8)
figure.tight_layout()
