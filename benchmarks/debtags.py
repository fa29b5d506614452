"""Measure label issues on real text: python -m benchmarks.debtags

The rows are the packages of Debian's index that have debtags (``apt-cache dumpavail``), about 30,000. The text is the
name and the short description, the labels are the tags of at least 500 packages. 5 % of the labels are moved: removed,
and replaced by a random tag that the package does not have. So as many labels are wrong as are missing. Errors that the
index already has count as right labels, which lowers every precision.

- "support" is `LabelSupport` with its defaults, which predicts each row from all others. "features only" leaves out the
  other labels of the row. "row truth" assumes a right label in each row. The defaults assume it of packages with
  several tags only, because a third of the packages have a single one.
- "ridge, 5 folds" is its regression with the same penalty, on the folds of cleanlab.
- cleanlab scores probabilities of logistic regressions on TF-IDF of all words and pairs of words, out of five folds,
  with the penalty of scikit-learn (C = 1) and a weaker one. "same features" are those of `read`: the 1000 most
  frequent.

Precision is the share of moved labels among the first 20 of a list, and among the first 5 % of it: as many as were
moved. The seconds are processor time.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import warnings
from collections import Counter

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, cross_val_predict

from benchmarks.table import print_table
from labelsieve import LabelSupport
from labelsieve._numerics.sparse import dense
from labelsieve._numerics.standardized import StandardizedFeatures
from labelsieve.io import read

LEAST_PACKAGES, SHARE_MOVED, N_FOLDS = 500, 0.05, 5


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    packages = index()
    if packages is None:
        print("skipped: apt-cache has no package index with debtags; run apt-get update", file=sys.stderr)
        return
    lines = {}
    for seed in range(options.seeds):
        for name, numbers in measure(packages, seed).items():
            lines.setdefault(name, []).append(numbers)
    headings = ("wrong, first 20", "wrong, 5 %", "missing, first 20", "missing, 5 %", "seconds")
    print(f"{len(packages):,} packages, {options.seeds} draws of moved labels")
    print_table(
        ["method", *headings],
        ([name, *(f"{value:.3f}" for value in np.mean(found, axis=0))] for name, found in lines.items()),
    )


def index():
    """Return the packages with their texts and tags, or None if there is no index."""
    try:
        output = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    rows = {}
    for block in output.decode("utf-8", errors="replace").split("\n\n"):
        fields, key = {}, ""
        for line in block.split("\n"):
            if line.startswith(" "):
                fields[key] += line
            else:
                key, _, fields[key] = line.partition(": ")
        if "Tag" in fields:
            tags = [tag.strip() for tag in fields["Tag"].split(",") if tag.strip()]
            rows[fields["Package"]] = (f"{fields['Package']} {fields.get('Description', '')}", tags)
    counts = Counter(tag for _, tags in rows.values() for tag in tags)
    kept = [(text, [tag for tag in tags if counts[tag] >= LEAST_PACKAGES]) for text, tags in rows.values()]
    found = pd.DataFrame([row for row in kept if row[1]], columns=["text", "tags"])
    return found if len(found) else None


def moved(Y, rng):
    """Move some labels to other tags. Return the new labels."""
    rows, labels = np.nonzero(Y)
    noisy = Y.copy()
    chosen = rng.permutation(len(rows))[: round(SHARE_MOVED * len(rows))]
    for place in chosen:
        noisy[rows[place], labels[place]] = 0
        noisy[rows[place], rng.choice(np.flatnonzero(Y[rows[place]] == 0))] = 1
    return noisy


def measure(packages, seed):
    """Return the precisions and the seconds of every method."""
    data = read(packages, labels="tags")
    X, Y = data.X, dense(data.Y).astype(int)
    noisy = moved(Y, np.random.default_rng(seed))
    found = {}

    def record(name, compute):
        start = time.process_time()
        support = compute()
        seconds = time.process_time() - start
        found[name] = [*precisions(support, Y, noisy), seconds]
        print(seed, name, *(f"{value:.3f}" for value in found[name]), file=sys.stderr, flush=True)

    model = LabelSupport()
    record("support", lambda: model.fit(X, noisy).support_)
    record(
        "features only",
        lambda: LabelSupport(use_labels=False, each_row_has_truth=False).fit(X, noisy).support_,
    )
    record("no row truth", lambda: LabelSupport(each_row_has_truth=False).fit(X, noisy).support_)
    record("row truth", lambda: LabelSupport(each_row_has_truth=True).fit(X, noisy).support_)
    folds = KFold(N_FOLDS, shuffle=True, random_state=0)
    record("ridge, 5 folds", lambda: ridge(X, noisy, model.penalty_, folds))
    texts = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True).fit_transform(packages["text"])
    record("cleanlab", lambda: cleanlab(texts, noisy, 1.0, folds))
    record("cleanlab, C = 10", lambda: cleanlab(texts, noisy, 10.0, folds))
    record("cleanlab, same features", lambda: cleanlab(X, noisy, 1.0, folds))
    return found


def precisions(support, Y, noisy):
    """Return the precision of wrong and missing labels, among the first 20 and among as many as were moved."""
    rows = []
    for has, sign in ((1, 1), (0, -1)):
        at = np.nonzero(noisy == has)
        is_error = Y[at] != has
        order = np.argsort(sign * support[at], kind="stable")
        rows += [is_error[order[:n]].mean() for n in (20, int(is_error.sum()))]
    return rows


def ridge(X, Y, penalty, folds):
    """Predict labels from held-out rows with the regression of `LabelSupport`, without other labels."""
    scaled = StandardizedFeatures(X).scaling.split(X.tocsr())[0]
    model = Ridge(alpha=penalty, solver="sparse_cg")
    return Y - (Y - cross_val_predict(model, scaled, Y, cv=folds))


def cleanlab(X, Y, C, folds):
    """Return the label quality of cleanlab as support: of a label that a row does not have, 1 minus its quality."""
    from cleanlab.multilabel_classification.rank import get_label_quality_scores_per_class

    probability = np.column_stack([predicted(X, y, C, folds) for y in Y.T])
    listed = [np.flatnonzero(row).tolist() for row in Y]
    quality = get_label_quality_scores_per_class(listed, probability)
    return np.where(Y > 0, quality, 1 - quality)


def predicted(X, y, C, folds):
    """Return the out-of-fold probability of a label."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(C=C, solver="liblinear")
        return cross_val_predict(model, X, y, cv=folds, method="predict_proba")[:, 1]


if __name__ == "__main__":
    main()
