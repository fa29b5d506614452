"""
A sparse text pipeline with grid search
=======================================

Word counts, a selector and a classifier in one scikit-learn pipeline. A grid search on the
candidate labels chooses the number of words, and the result is scored once on true labels. All
data stay sparse.
"""

# %%
# Generate 800 documents over 5000 words. Words follow a long-tailed distribution, and each
# topic makes 25 of them more frequent.

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import label_ranking_average_precision_score, make_scorer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline

from labelsieve import METRICS, SumF
from labelsieve.classify import LabelwiseSVM
from labelsieve.datasets import add_candidates

rng = np.random.default_rng(0)
n_documents, n_words, n_topics = 800, 5000, 8
base = 1 / (np.arange(n_words) + 10.0)
Y = (rng.random((n_documents, n_topics)) < 0.2).astype(int)
Y[Y.sum(axis=1) == 0, 0] = 1
topic_words = rng.choice(n_words, size=(n_topics, 25), replace=False)
counts = np.zeros((n_documents, n_words), dtype=np.int32)
for row in range(n_documents):
    weights = base.copy()
    for topic in np.flatnonzero(Y[row]):
        weights[topic_words[topic]] += 1e-2
    counts[row] = rng.multinomial(120, weights / weights.sum())
X = sp.csr_array(counts)
Y_candidates = add_candidates(Y, rate=0.2, random_state=0)
print(f"{X.shape[0]} x {X.shape[1]}, {X.nnz / np.prod(X.shape):.1%} nonzero")

# %%
# True labels exist only for the test part, so the search scores how well candidate labels are
# ranked.

split = train_test_split(X, Y_candidates, Y, test_size=0.4, random_state=0)
X_train, X_test, candidates_train, _, _, truth_test = split
pipeline = Pipeline(
    [("weigh", TfidfTransformer()), ("select", SumF()), ("classify", LabelwiseSVM())]
)
sizes = [10, 30, 100, 300, 1000, 5000]
search = GridSearchCV(
    pipeline,
    {"select__n_features_to_select": sizes},
    scoring=make_scorer(
        label_ranking_average_precision_score, response_method="decision_function"
    ),
    cv=3,
).fit(X_train, candidates_train)
print("chosen:", search.best_params_)

# %%
# Compare the search with the scores on the true labels of the test documents.

precision = METRICS["average_precision"].function
true_scores = []
for size in sizes:
    model = pipeline.set_params(select__n_features_to_select=size).fit(
        X_train, candidates_train
    )
    true_scores.append(precision(truth_test, model.decision_function(X_test)))
figure, axes = plt.subplots(figsize=(7, 4))
axes.plot(
    sizes, search.cv_results_["mean_test_score"], "o-", label="inner folds, candidate labels"
)
axes.plot(sizes, true_scores, "o-", label="test part, true labels")
axes.axvline(
    search.best_params_["select__n_features_to_select"],
    color="crimson",
    linestyle=":",
    label="chosen",
)
axes.set(xscale="log", xlabel="words kept", ylabel="average precision")
axes.legend()
figure.tight_layout()
words = np.flatnonzero(search.best_estimator_["select"].get_support())
n_found = np.isin(words, topic_words).sum()
print(f"{len(words)} words kept, with {n_found} of the {topic_words.size} topic words")
