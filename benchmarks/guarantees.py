"""Measure if the promises hold, and what they cost.

    python -m benchmarks.guarantees > benchmarks/guarantees.md    all sections, 50 minutes on one core
    python -m benchmarks.guarantees --sections costs              one of the sections
    python -m benchmarks.guarantees --runs 10                     a quick test of the program

A star marks a value that is worse than promised by more than two standard errors.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

from benchmarks.__main__ import environment
from benchmarks.label_noise import cleanlab_scores
from benchmarks.table import print_table
from labelsieve import LabelSupport, controlled_selection, draw_candidates, find_label_issues
from labelsieve._numerics.sparse import dense
from labelsieve.datasets import add_candidates, load, load_digits_attributes
from labelsieve.inspection._reviews import Review
from labelsieve.inspection.label_issues import rank_labels

LEVELS = (0.05, 0.1, 0.2)
N_RUNS = 600
MISSING_DATASETS = ("yeast", "birds", "chd_49", "water_quality", "cal500")
SHARE_DROPPED = 0.2


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sections", nargs="+", default=list(SECTIONS), choices=SECTIONS)
    parser.add_argument("--runs", type=int, default=N_RUNS, help=f"simulations of a cell (default {N_RUNS})")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("# Promises, measured\n")
    print(
        f"Written by `python -m benchmarks.guarantees`, one thread: {environment()}. [README.md](README.md)"
    )
    print(
        "explains the tables. A star marks a value that is worse than promised by more than two standard errors.\n"
    )
    for section in options.sections:
        start = time.process_time()
        question, measure = SECTIONS[section]
        print(f"## {question}\n", flush=True)
        measure(options.runs)
        print(f"{time.process_time() - start:.0f} processor seconds.\n", flush=True)


def mark(values, nominal, *, is_coverage=False):
    """Return the mean as text, with a star if it is worse than nominal by more than two standard errors."""
    values = np.asarray(values, dtype=float)
    excess = nominal - values.mean() if is_coverage else values.mean() - nominal
    is_worse = excess > 2 * standard_error(values)
    return f"{values.mean():.3f}{'*' if is_worse else ''}"


def standard_error(values):
    """Standard error of the mean."""
    return np.std(values, ddof=1) / np.sqrt(len(values))


# Columns

N_COLUMNS, N_RELATED, N_LABELS = 40, 8, 4
ENOUGH = 0.0095
#: Kind of features -> rows, share of the rows that have a label, effect of a related column.
FEATURES = {
    "Gaussian": (200, 0.3, 1.5),
    "heavy-tailed": (200, 0.3, 1.5),
    "rare binary": (500, 0.1, 2.5),
    "correlated": (200, 0.3, 1.5),
    "yeast": (200, 0.3, 1.5),
}
NOISE = ("one rate", "by label", "careless rows", "by other labels")


def columns(n_runs):
    """FDR with respect to the true labels, and power, of lists of columns."""
    settings = [(features, noise) for features in FEATURES for noise in NOISE]
    settings += [("Gaussian", "follows other columns"), ("Gaussian", "cleaned by support")]
    lines, largest = [], 0.0
    for features, noise in settings:
        found, error = [], np.inf
        # Runs are slow, so a line ends when its standard errors are small enough.
        while len(found) < min(200, n_runs) or (len(found) < n_runs and error > ENOUGH):
            found.append(list_columns(features, noise, seed=len(found)))
            if len(found) > 1:
                error = max(map(standard_error, np.array(found)[:, :3].T))
        false, power, products = np.split(np.array(found), [3, 6], axis=1)
        largest = max(largest, error)
        lines.append(
            [
                f"{features}, {noise}",
                *(mark(of_level, level) for of_level, level in zip(false.T, LEVELS, strict=True)),
                *(f"{value:.2f}" for value in power.mean(axis=0)),
                f"{products.mean():.0f}",
                len(found),
            ]
        )
        print(*lines[-1], file=sys.stderr, flush=True)
    headings = [f"{name} at {level:g}" for name in ("FDR", "power") for level in LEVELS]
    print_table(["features, noise", *headings, "products", "runs"], lines)
    print(f"Largest standard error of an FDR: {largest:.4f}.\n", flush=True)


def list_columns(features, noise, seed):
    """Share of wrong columns and power at each level, and the number of products, in one run."""
    rng = np.random.default_rng([seed, 7])
    n_samples, share, effect = FEATURES[features]
    X, is_related = make_features(features, n_samples, rng)
    Y = make_labels(X, is_related, features, share, effect, rng)
    if noise == "follows other columns":
        # Six unrelated columns drive the errors.
        chance = 1 / (1 + np.exp(1.6 - 1.2 * X[:, -6:].sum(axis=1, keepdims=True) / np.sqrt(2)))
        candidates = np.maximum(Y, rng.random(Y.shape) < chance)
    else:
        candidates = add_noise(Y, "one rate" if noise == "cleaned by support" else noise, rng)
    if noise == "cleaned by support":
        issues = find_label_issues(X, candidates, kernel="linear")
        worst = slice(round(0.1 * len(issues.rows)))
        candidates[issues.rows[worst], issues.labels[worst]] = 0
    # A list that is settled at the smallest level is settled at the others.
    found = controlled_selection(X, candidates, fdr=min(LEVELS), random_state=seed)
    lists = [found.q_values <= level * (1 + 1e-9) for level in LEVELS]
    return [
        *((listed & ~is_related).sum() / max(1, listed.sum()) for listed in lists),
        *((listed & is_related).sum() / is_related.sum() for listed in lists),
        found.n_products,
    ]


def make_features(kind, n_samples, rng):
    """Features, and a mask of the columns that are related to the true labels."""
    size = n_samples, N_COLUMNS
    is_related = np.arange(N_COLUMNS) < N_RELATED
    if kind == "Gaussian":
        return rng.standard_normal(size), is_related
    if kind == "heavy-tailed":
        return rng.standard_t(2, size=size), is_related
    if kind == "rare binary":
        return (rng.random(size) < rng.uniform(0.01, 0.05, N_COLUMNS)).astype(float), is_related
    if kind == "correlated":  # blocks of eight; the labels depend on one column of the first block
        blocks = np.repeat(rng.standard_normal((n_samples, N_COLUMNS // N_RELATED)), N_RELATED, axis=1)
        return np.sqrt(0.8) * blocks + np.sqrt(0.2) * rng.standard_normal(size), is_related
    X = load(kind).X
    X = X[rng.permutation(len(X))[:n_samples]][:, rng.permutation(X.shape[1])[:N_COLUMNS]]
    # The other columns keep their dependence on one another.
    X[:, N_RELATED:] = X[rng.permutation(n_samples), N_RELATED:]
    return X, is_related


def make_labels(X, is_related, kind, share, effect, rng):
    """True labels; each related column affects one or two."""
    causes = X[:, :1] if kind == "correlated" else X[:, is_related]
    causes = np.clip((causes - causes.mean(axis=0)) / np.maximum(causes.std(axis=0), 1e-9), -5, 5)
    if kind == "rare binary":
        causes = np.sign(X[:, is_related])
    weights = np.zeros((causes.shape[1], N_LABELS))
    for cause in weights:
        affected = rng.permutation(N_LABELS)[: rng.integers(1, 3)]
        cause[affected] = effect * (1 if kind == "rare binary" else rng.choice([-1, 1], len(affected)))
    score = causes @ weights + rng.standard_normal((len(X), 1)) + rng.logistic(size=(len(X), N_LABELS))
    return (score > np.quantile(score, 1 - share, axis=0)).astype(float)


def add_noise(Y, kind, rng):
    """Candidates with errors that do not depend on the columns: wrong ones for two thirds as many as are right."""
    rate = np.full(Y.shape, Y.mean() / 1.5)
    is_missed = np.zeros(Y.shape, dtype=bool)
    if kind == "by label":
        rate = np.broadcast_to(rng.beta(1, 1 / rate[0, 0] - 1, size=Y.shape[1]), Y.shape)
    elif kind == "careless rows":  # some rows have many errors in all labels
        rate = 2 * rate * rng.random((len(Y), 1))
        is_missed = rng.random(Y.shape) < 0.1
    elif kind == "by other labels":  # a label is added because another one is there
        rate = 0.5 * np.roll(Y, 1, axis=1)
    return np.where(is_missed, 0, np.maximum(Y, rng.random(Y.shape) < rate))


# Intervals and removals

TABLES = (
    ("birds", "flip"),
    ("chd_49", "label"),
    ("digits", "flip"),
    ("yeast", "instance"),
    ("yeast", "label"),
    ("mirflickr", "real"),
)
N_REVIEWS = (20, 50, 100, 200)


def reviews(n_runs):
    """Coverage and width of intervals; FDR of removals and the share of the wrong candidates that they remove."""
    intervals, removals, largest = [], [], 0.0
    for name, noise in TABLES:
        X, Y, candidates = noisy_table(name, noise)
        model = LabelSupport().fit(X, candidates)
        for n_reviews in N_REVIEWS:
            drawn = [review(model, Y, candidates, n_reviews, seed) for seed in range(n_runs)]
            found = np.array([line for line in drawn if line is not None])
            exact, width, assisted, narrower = found[:, :4].T
            false, removed = found[:, 4:7].T, found[:, 7:10].T
            table = f"{name}, {noise}, {n_reviews}"
            intervals.append(
                [
                    table,
                    mark(exact, 0.95, is_coverage=True),
                    f"{width.mean():.3f}",
                    mark(assisted, 0.95, is_coverage=True),
                    f"{narrower.mean():.3f}",
                ]
            )
            removals.append(
                [
                    table,
                    *(mark(of_level, level) for of_level, level in zip(false, LEVELS, strict=True)),
                    *(f"{of_level.mean():.2f}" for of_level in removed),
                    f"{(removed[1] > 0).mean():.2f}",
                ]
            )
            largest = max(largest, *map(standard_error, (exact, assisted, *false)))
            print(*intervals[-1], *removals[-1][1:], file=sys.stderr, flush=True)
    print_table(
        ["table, noise, reviews", "exact: coverage", "width", "assisted: coverage", "width "], intervals
    )
    headings = [f"{name} at {level:g}" for name in ("FDR", "removed") for level in LEVELS]
    print_table(["table, noise, reviews", *headings, "anything at 0.1"], removals)
    print(
        f"{n_runs} draws per line, largest standard error of a coverage or FDR {largest:.4f}.\n", flush=True
    )


def noisy_table(name, noise):
    """Features, true labels and candidates of labels that vary."""
    data = load_digits_attributes() if name == "digits" else load(name)
    X, Y = dense(data.X), dense(data.Y)
    rng = np.random.default_rng(8)
    if noise == "real":
        candidates = dense(data.Y_candidates)
    elif noise == "label":
        candidates = np.maximum(Y, rng.random(Y.shape) < rng.beta(1, 4, size=Y.shape[1]))
    else:
        candidates = add_candidates(Y, noise, X=X if noise == "instance" else None, random_state=rng)
    return X, Y, candidates


def review(model, Y, candidates, n_reviews, seed):
    """One draw: coverage and width of both intervals, FDR and share removed at each level; None if rejected."""
    rows, labels = draw_candidates(candidates, n_reviews, random_state=seed)
    issues = ranked(model, Review.of_draw(rows, labels, Y[rows, labels]), "wrong")
    is_wrong = Y[issues.rows, issues.labels] == 0
    n_wrong = is_wrong[model._varies[issues.labels]].sum()
    line = []
    try:
        for method in ("exact", "assisted"):
            found = issues.error_interval(method=method)
            line += [found.n_low <= n_wrong <= found.n_high, found.high - found.low]
        removals = [issues.removable(level) for level in LEVELS]
    except ValueError:  # this draw does not look random
        return None
    n_false = [Y[found.rows, found.labels].sum() for found in removals]
    line += [false / max(1, len(found)) for found, false in zip(removals, n_false, strict=True)]
    line += [(len(found) - false) / n_wrong for found, false in zip(removals, n_false, strict=True)]
    return line


def ranked(model, review, which):
    """Label issues of a model after a review."""
    n_samples, n_labels = model.support_.shape
    return rank_labels(
        model.check(review), which=which, label_names=range(n_labels), row_ids=range(n_samples)
    )


# Missing labels


def additions(n_runs):
    """Intervals and additions from 50 reviews of the default list, with a fifth of the true labels dropped."""
    n_runs *= 2  # these shares vary more
    lines, largest = [], 0.0
    for name in MISSING_DATASETS:
        X, Y, candidates = drop_labels(name, 0)
        model = LabelSupport().fit(X, candidates)
        issues = ranked(model, None, "missing")
        found = np.array([add(model, issues, Y, seed) for seed in range(n_runs)])
        n_listed, n_missing = found[0, 6], ((Y > 0) & (candidates == 0)).sum()
        largest = max(largest, *map(standard_error, found[:, [0, 2, 4]].T))
        lines.append(
            [
                name,
                f"{n_missing:.0f}",
                f"{n_listed:.0f}",
                mark(found[:, 0], 0.95, is_coverage=True),
                f"{found[:, 1].mean():.0f}",
                *(
                    text
                    for column, level in ((2, 0.2), (4, 0.5))
                    for text in (
                        mark(found[:, column], level),
                        f"{found[:, column + 1].mean() / n_missing:.2f}",
                    )
                ),
            ]
        )
        print(*lines[-1], file=sys.stderr, flush=True)
    print_table(
        [
            "dataset",
            "missing labels",
            "list",
            "coverage",
            "mean lower end",
            "FDR at 0.2",
            "added",
            "FDR at 0.5",
            "added ",
        ],
        lines,
    )
    print(
        f"{n_runs} draws per line, largest standard error of a coverage or FDR {largest:.4f}.\n", flush=True
    )


def drop_labels(name, seed):
    """Features, true labels, and labels of which a fifth is missing."""
    data = load(name)
    Y = dense(data.Y)
    is_dropped = np.random.default_rng(seed).random(Y.shape) < SHARE_DROPPED
    return data.X, Y, np.where(is_dropped, 0, Y)


def add(model, issues, Y, seed):
    """One draw: coverage, lower end; FDR and number of labels added at 0.2 and 0.5; size of the list."""
    plan = issues.draw(random_state=seed)
    found = ranked(model, plan.answer(Y[plan.rows, plan.labels]), "missing")
    interval = found.error_interval()
    listed = slice(interval.n_labels)
    n_missing = int(Y[found.rows[listed], found.labels[listed]].sum())
    line = [interval.n_low <= n_missing <= interval.n_high, interval.n_low]
    for level in (0.2, 0.5):
        added = found.addable(level)
        n_right = int(Y[added.rows, added.labels].sum())
        line += [1 - n_right / len(added) if len(added) else 0.0, n_right]
    return [*line, interval.n_labels]


def missing(n_runs):
    """Probability that a dropped label scores higher than one that is rightly absent."""
    n_seeds = max(1, min(5, n_runs // 100))
    lines = []
    for name in MISSING_DATASETS:
        areas = np.array([score_absent(*drop_labels(name, seed)) for seed in range(n_seeds)])
        lines.append([name, *(f"{area:.3f}" for area in areas.mean(axis=0))])
        print(*lines[-1], file=sys.stderr, flush=True)
    print_table(
        ["dataset", "support", "support, features, five folds", "cleanlab", "cleanlab, adjusted"], lines
    )
    print(f"Means over {n_seeds} random drops.\n", flush=True)


def score_absent(X, Y, candidates):
    """Areas under the ROC curve of four scores of the absent labels."""
    absent = np.nonzero((candidates == 0) & (candidates.sum(axis=0) > 0))
    scores = [LabelSupport().fit(X, candidates).support_, out_of_fold_support(X, candidates)]
    scores += [-quality for quality in cleanlab_scores(X, candidates)]
    return [roc_auc_score(Y[absent], score[absent]) for score in scores]


def out_of_fold_support(X, candidates):
    """Support from the features of four fifths of the rows, in the folds that cleanlab's probabilities use."""
    from sklearn.model_selection import KFold

    support = np.empty(candidates.shape)
    for _, held_out in KFold(5, shuffle=True, random_state=0).split(candidates):
        known = candidates.astype(float)
        known[held_out] = np.nan
        support[held_out] = LabelSupport().fit(X, known).support_[held_out]
    return support


# Costs


def costs(_n_runs):
    """Products of features and labels, and processor seconds, of two tables with 40 related columns."""
    lines = []
    for name, X, Y in (
        ("2000 x 200, 10 labels", *dense_table()),
        ("100000 x 50000, sparse, 50 labels", *sparse_table()),
    ):
        start = time.process_time()
        found = controlled_selection(X, Y)
        seconds = time.process_time() - start
        lines.append(
            [
                name,
                f"{found.n_products:.0f}",
                f"{found.n_permutations}",
                f"{seconds:.1f}",
                f"{found.selected.sum()}",
                "yes" if found.is_settled else "no",
            ]
        )
        print(*lines[-1], file=sys.stderr, flush=True)
    print_table(["table", "products", "permutations", "processor s", "columns listed", "settled"], lines)


def dense_table():
    """Correlated features, 10 labels."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 200))
    X[:, 1:] += 0.5 * X[:, :-1]
    weights = np.zeros((200, 10))
    weights[rng.permutation(200)[:40]] = 0.3 * rng.standard_normal((40, 10))
    return X, (X @ weights + rng.logistic(size=(2000, 10)) > 0.5).astype(float)


def sparse_table():
    """Fifty words per row, some far more frequent than others; every related word gives one label."""
    rng = np.random.default_rng(0)
    n_samples, n_features, n_labels, n_words = 100_000, 50_000, 50, 50
    words = (n_features * rng.random((n_samples, n_words)) ** 2).astype(np.int64)
    rows = np.repeat(np.arange(n_samples), n_words)
    X = sp.csr_array((np.ones(rows.size), (rows, words.ravel())), shape=(n_samples, n_features))
    X.data[:] = 1
    Y = rng.random((n_samples, n_labels)) < 0.05
    for number, word in enumerate(rng.permutation(n_features)[:40]):
        has_word = X[:, [word]].toarray().ravel() > 0
        Y[has_word, number % n_labels] |= rng.random(has_word.sum()) < 0.3
    return X, sp.csr_array(Y.astype(float))


#: Name -> question, function of the number of simulations.
SECTIONS = {
    "columns": ("How many listed columns are unrelated to the true labels?", columns),
    "reviews": (
        "Do intervals hold the number of wrong labels, and how many removed labels were right?",
        reviews,
    ),
    "additions": (
        "Do intervals hold the number of missing labels, and how many added labels are wrong?",
        additions,
    ),
    "missing": ("How well are missing labels found?", missing),
    "costs": ("What does a list of columns cost?", costs),
}


if __name__ == "__main__":
    main()
