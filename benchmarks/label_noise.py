"""Measure how well right candidates are separated from wrong ones.

    python -m benchmarks.label_noise                     eight datasets, three kinds of noise, and mirflickr
    python -m benchmarks.label_noise --datasets birds    some of the datasets
    python -m benchmarks.label_noise --row-truth         J and J' only, with and without rows that have no true label

Except in the first two and the last two columns, the numbers are areas under the ROC curve: the probability that a
right candidate scores higher than a wrong one. The kinds of noise add wrong candidates to the true labels. ``flip``
adds each with probability 0.2. ``instance`` adds it with a probability that increases with the similarity of the row to
the rows with this label, 0.2 on average. ``label`` draws a probability per label from Beta(1, 4), 0.2 on average. The
candidates of mirflickr come from people.

- J is the support of `LabelSupport` with ``each_row_has_truth=False``.
- J' is the same with ``each_row_has_truth=True``, if every row has a candidate.
- "50 reviewed" is the mean over five draws of 50 candidates with their true answers, which do not count in the area.
- T are the label confidences of PML-FSMIR.
- cleanlab scores out-of-fold probabilities of one logistic regression per label, with five folds. Its penalty is chosen
  by log loss in cross-validation on candidates, the same for all labels as in J.
- Frequency is the share of rows that have the label as a candidate.
- The calibration error is that of the probabilities with 50 reviewed candidates: the mean distance, over ten bins,
  between the probability and the share of right candidates.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.problems import DATASETS
from benchmarks.table import print_table
from labelsieve import PMLFSMIR, LabelSupport, draw_candidates
from labelsieve._numerics.sparse import dense
from labelsieve.datasets import add_candidates, load

RATE = 0.2
NOISE = ("flip", "instance", "label")
N_REVIEWED, N_DRAWS = 50, 5
PENALTIES = (0.001, 0.01, 0.1, 1.0)
TUNING_LABELS = 10


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", nargs="+", default=[*DATASETS, "mirflickr"], metavar="NAME")
    parser.add_argument("--row-truth", action="store_true")
    options = parser.parse_args()
    if options.row_truth:
        compare_row_truth(options.datasets)
        return
    lines = {}
    for name in options.datasets:
        for noise, X, Y, candidates in problems(name):
            lines[name, noise] = measure(X, Y, candidates)
            print(name, noise, *map(format_number, lines[name, noise].values()), file=sys.stderr, flush=True)
    for noise in NOISE:
        of_noise = [line for (_, kind), line in lines.items() if kind == noise]
        if len(of_noise) > 1:
            lines[f"mean of {len(of_noise)}", noise] = means(of_noise)
    headings = next(iter(lines.values()))
    print_table(
        ["data, noise", *headings],
        ([", ".join(name), *map(format_number, line.values())] for name, line in lines.items()),
    )


def compare_row_truth(names):
    """Print the AUC without and with ``each_row_has_truth``: rows with candidates, and rows with true labels."""
    lines = []
    for name in names:
        for noise, X, Y, candidates in problems(name):
            line = [f"{name}, {noise}", f"{(candidates.any(axis=1) & ~Y.any(axis=1)).mean():.0%}"]
            for kept in (candidates.any(axis=1), Y.any(axis=1)):
                rows = np.flatnonzero(kept)
                features, labels = X[rows], candidates[rows]
                at = np.nonzero(labels)
                plain = LabelSupport(each_row_has_truth=False).fit(features, labels)
                assumed = LabelSupport(plain.kernel_, each_row_has_truth=True).fit(features, labels)
                areas = [roc_auc_score(Y[rows][at], model.support_[at]) for model in (plain, assumed)]
                line += [*(f"{area:.3f}" for area in areas), f"{areas[1] - areas[0]:+.3f}"]
            lines.append(line)
            print(*line, file=sys.stderr, flush=True)
    print_table(
        [
            "data, noise",
            "rows without a true label",
            "J",
            "J'",
            "change",
            "J, true rows",
            "J', true rows",
            "change ",
        ],
        lines,
    )


def problems(name):
    """Yield features, true labels and candidates of a dataset, for each kind of noise or as given."""
    data = load(name)
    if data.Y_candidates is not None:
        yield "real", data.X, dense(data.Y), dense(data.Y_candidates)
        return
    Y = dense(data.Y)
    for noise in NOISE:
        if noise == "label":
            rng = np.random.default_rng(0)
            rates = rng.beta(1, 1 / RATE - 1, size=Y.shape[1])
            candidates = np.maximum(Y, rng.random(Y.shape) < rates)
        else:
            X = data.X if noise == "instance" else None
            candidates = add_candidates(Y, noise, rate=RATE, X=X, random_state=0)
        yield noise, data.X, Y, candidates


def measure(X, Y, candidates):
    """Return one line of the table: heading -> number, or None if it does not apply."""
    rows, labels = np.nonzero(candidates)
    right = Y[rows, labels] > 0

    def auc(scores):
        return roc_auc_score(right, scores[rows, labels])

    start = time.process_time()
    model = LabelSupport(each_row_has_truth=False).fit(X, candidates)
    seconds = time.process_time() - start
    with_truth = None
    if candidates.any(axis=1).all():
        with_truth = LabelSupport(model.kernel_, each_row_has_truth=True).fit(X, candidates).support_
    draws = [score_reviewed(model, Y, candidates, seed) for seed in range(N_DRAWS)]
    plain, adjusted = cleanlab_scores(X, candidates)
    return {
        "candidates": len(rows),
        "wrong": 1 - right.mean(),
        "J": auc(model.support_),
        "J'": None if with_truth is None else auc(with_truth),
        "50 reviewed": np.mean([area for area, _ in draws]),
        "T": auc(fsmir_confidence(X, candidates)),
        "cleanlab": auc(plain),
        "cleanlab, adjusted": auc(adjusted),
        "frequency": auc(np.broadcast_to(candidates.mean(axis=0), Y.shape)),
        "calibration error": np.mean([error for _, error in draws]),
        "seconds of J": seconds,
    }


def score_reviewed(model, Y, candidates, seed):
    """Return area and calibration error of the other candidates after 50 were reviewed."""
    rows, labels = draw_candidates(candidates, N_REVIEWED, random_state=seed)
    probability = model.check((rows, labels, Y[rows, labels])).probability_
    left = candidates > 0
    left[rows, labels] = False
    right, probability = Y[left] > 0, probability[left]
    bins = np.minimum((10 * probability).astype(int), 9)
    gaps = np.bincount(bins, weights=probability - right, minlength=10)
    return roc_auc_score(right, probability), np.abs(gaps).sum() / len(right)


def fsmir_confidence(X, candidates):
    """Return the label confidences of PML-FSMIR."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(dense(PMLFSMIR(random_state=0).fit(X, candidates).label_confidence_))


def cleanlab_scores(X, candidates):
    """Return the scores of cleanlab for every label of every row, plain and adjusted for classes."""
    from cleanlab.multilabel_classification.rank import get_label_quality_scores_per_class

    probability = out_of_fold(X, candidates)
    listed = [np.flatnonzero(row).tolist() for row in candidates]
    return [
        get_label_quality_scores_per_class(listed, probability, adjust_pred_probs=adjusted)
        for adjusted in (False, True)
    ]


def out_of_fold(X, candidates):
    """Return out-of-fold probabilities of tuned logistic regressions."""
    n_candidates = candidates.sum(axis=0)
    varying = np.flatnonzero((n_candidates > 0) & (n_candidates < len(candidates)))
    tuning = varying[np.linspace(0, len(varying) - 1, min(TUNING_LABELS, len(varying))).astype(int)]
    losses = [
        sum(log_loss(candidates[:, j], predicted(X, candidates[:, j], C, 3), labels=[0, 1]) for j in tuning)
        for C in PENALTIES
    ]
    C = PENALTIES[int(np.argmin(losses))]
    probability = np.broadcast_to(candidates.mean(axis=0), candidates.shape).copy()
    for label in varying:
        probability[:, label] = predicted(X, candidates[:, label], C, 5)
    return probability


def predicted(X, y, C, n_folds):
    """Return the out-of-fold probability of every row, or the mean label if a fold has only one class."""
    model = make_pipeline(StandardScaler(with_mean=not sp.issparse(X)), LogisticRegression(C=C, max_iter=200))
    folds = KFold(n_folds, shuffle=True, random_state=0)
    if any(y[train].min() == y[train].max() for train, _ in folds.split(y)):
        return np.full(len(y), y.mean())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cross_val_predict(model, X, y, cv=folds, method="predict_proba")[:, 1]


def means(lines):
    """Return the mean of every column. Columns with missing numbers, such as J', have none."""
    return {
        heading: None if None in (column := [line[heading] for line in lines]) else np.mean(column)
        for heading in lines[0]
    }


def format_number(number):
    """Format a number for the table."""
    if number is None:
        return "-"
    return f"{number:.0f}" if number > 9 else f"{number:.3f}"


if __name__ == "__main__":
    main()
