"""How well right candidates are told from wrong ones.

    python -m benchmarks.label_noise                     eight data sets, three kinds of noise, and mirflickr
    python -m benchmarks.label_noise --datasets birds    some of the data sets

The numbers are areas under the ROC curve, the chance that a right candidate scores higher than a wrong one, but for the
first two and the last two columns. The kinds of noise add wrong candidates to the true labels: ``flip`` each with
probability 0.2; ``instance`` with a probability that grows with how much the row looks like those that have the label,
0.2 on average; ``label`` with a probability drawn for every label from Beta(1, 4), 0.2 on average. The candidates of
mirflickr come from people.

J is the support of `LabelSupport`; J' the same with ``each_row_has_truth``, where that is so; "50 checked" the mean
over five draws of 50 candidates with their true answers, which do not count in the area. T are the label confidences
of PML-FSMIR. cleanlab scores out-of-fold probabilities of logistic regression, one a label, in five folds; its penalty
is chosen by log-loss in cross-validation on candidates, one for all labels as in J. Frequency is the share of rows that
have the label as a candidate. The calibration error is that of the probabilities from 50 checked candidates: the mean
distance, over ten equal bins, between the probability and the share of right candidates.
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
N_CHECKED, N_DRAWS = 50, 5
PENALTIES = (0.001, 0.01, 0.1, 1.0)
TUNING_LABELS = 10


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", nargs="+", default=[*DATASETS, "mirflickr"], metavar="NAME")
    options = parser.parse_args()
    lines = {}
    for name in options.datasets:
        for noise, X, Y, candidates in problems(name):
            lines[name, noise] = measure(X, Y, candidates)
            print(name, noise, *map(shown, lines[name, noise].values()), file=sys.stderr, flush=True)
    for noise in NOISE:
        of_noise = [line for (_, own), line in lines.items() if own == noise]
        if len(of_noise) > 1:
            lines[f"mean of {len(of_noise)}", noise] = means(of_noise)
    headings = next(iter(lines.values()))
    print_table(
        ["data, noise", *headings],
        ([", ".join(name), *map(shown, line.values())] for name, line in lines.items()),
    )


def problems(name):
    """Features, truth and candidates of one data set under every kind of noise, or as they are."""
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
    """One line of the table: heading -> number, None where it means nothing."""
    rows, labels = np.nonzero(candidates)
    right = Y[rows, labels] > 0

    def auc(scores):
        return roc_auc_score(right, scores[rows, labels])

    start = time.process_time()
    model = LabelSupport().fit(X, candidates)
    seconds = time.process_time() - start
    stated = None
    if Y.any(axis=1).all():
        stated = LabelSupport(model.kernel_, each_row_has_truth=True).fit(X, candidates).support_
    of_draws = [checked(model, Y, candidates, seed) for seed in range(N_DRAWS)]
    plain, adjusted = cleanlab_scores(X, candidates)
    return {
        "candidates": len(rows),
        "wrong": 1 - right.mean(),
        "J": auc(model.support_),
        "J'": None if stated is None else auc(stated),
        "50 checked": np.mean([area for area, _ in of_draws]),
        "T": auc(fsmir_confidence(X, candidates)),
        "cleanlab": auc(plain),
        "cleanlab, adjusted": auc(adjusted),
        "frequency": auc(np.broadcast_to(candidates.mean(axis=0), Y.shape)),
        "calibration error": np.mean([error for _, error in of_draws]),
        "seconds of J": seconds,
    }


def checked(model, Y, candidates, seed):
    """Area and calibration error of the candidates that are left after 50 were checked."""
    rows, labels = draw_candidates(candidates, N_CHECKED, random_state=seed)
    probability = model.check((rows, labels, Y[rows, labels])).probability_
    left = candidates > 0
    left[rows, labels] = False
    right, probability = Y[left] > 0, probability[left]
    bins = np.minimum((10 * probability).astype(int), 9)
    gaps = np.bincount(bins, weights=probability - right, minlength=10)
    return roc_auc_score(right, probability), np.abs(gaps).sum() / len(right)


def fsmir_confidence(X, candidates):
    """What PML-FSMIR thinks of the candidates."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(dense(PMLFSMIR(random_state=0).fit(X, candidates).label_confidence_))


def cleanlab_scores(X, candidates):
    """Quality, as cleanlab sees it, of every label of every row, as it is and adjusted for the classes."""
    from cleanlab.multilabel_classification.rank import get_label_quality_scores_per_class

    probability = out_of_fold(X, candidates)
    listed = [np.flatnonzero(row).tolist() for row in candidates]
    return [
        get_label_quality_scores_per_class(listed, probability, adjust_pred_probs=adjusted)
        for adjusted in (False, True)
    ]


def out_of_fold(X, candidates):
    """Probabilities of tuned logistic regressions that have not seen the row."""
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
    """Probability of every row from the other folds; the share of candidates where a fold has but one class."""
    model = make_pipeline(StandardScaler(with_mean=not sp.issparse(X)), LogisticRegression(C=C, max_iter=200))
    folds = KFold(n_folds, shuffle=True, random_state=0)
    if any(y[train].min() == y[train].max() for train, _ in folds.split(y)):
        return np.full(len(y), y.mean())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cross_val_predict(model, X, y, cv=folds, method="predict_proba")[:, 1]


def means(lines):
    """The mean of every column over the lines where it means something; J' over fewer, so it has none."""
    return {
        heading: None if None in (column := [line[heading] for line in lines]) else np.mean(column)
        for heading in lines[0]
    }


def shown(number):
    """A number as the table shows it."""
    if number is None:
        return "-"
    return f"{number:.0f}" if number > 9 else f"{number:.3f}"


if __name__ == "__main__":
    main()
