"""Runs made up for the tests of reports: small, with numbers that can be told from their places."""

from collections import Counter
from itertools import product

import numpy as np
import pandas as pd

from labelsieve.bench.config import Experiment
from labelsieve.bench.data import DatasetFacts
from labelsieve.bench.results import CELL, JUDGEMENT, PLACE, SCORE, Results, RunRecord
from labelsieve.report.paper import paper_values
from labelsieve.report.summary import summarise

METRICS = ("ranking_loss", "average_precision")
SIZES = (10.0, 20.0)
N_FEATURES = 20
PAPER_METHODS = (
    "pml-fsmir",
    "pml-lc",
    "pml-fp",
    "particle-vls",
    "particle-map",
    "fpml",
    "pml-fsso",
    "mifs",
    "drmfs",
)
#: Metric, dataset, method -> mean in the paper.
PRINTED = paper_values()["mean"].to_dict()
PAPER_DATASETS = ("birds", "cal500", "chd_49", "corel5k", "languagelog", "slashdot", "water_quality", "yeast")


def noisy(seed=0):
    """Values that differ from cell to cell, the same whatever else is in the run."""

    def value(**place):
        key = "/".join(str(part) for part in place.values())
        return np.random.default_rng([seed, *key.encode()]).random()

    return value


def ranked(order):
    """Return values that rank the methods in the same order on all datasets. The first is best by any metric."""

    def value(*, method, metric, **_):
        place = order.index(method) / 10
        return place if metric == "ranking_loss" else 1 - place

    return value


def make_summary(value, **options):
    """Summarize the results of `make_results`."""
    return summarise(make_results(value, **options))


def make_results(
    value,
    *,
    datasets=("one", "two"),
    methods=("a", "b"),
    references=(),
    ablation=(),
    variants=None,
    sweeps=None,
    noises=(("flip 0.2", 0.2),),
    seeds=(0,),
    n_folds=2,
    metrics=METRICS,
    sizes=SIZES,
    classifiers=("linear-svm",),
    n_draws=2,
    control="",
    skip=lambda **place: False,
    fails=lambda **place: False,
    error="ValueError: no",
    traceback="Traceback (most recent call last):\nValueError: no\n",
    notes=(),
    n_features=N_FEATURES,
):
    """Make results with scores from `value`, called with the dataset, noise, seed, fold, method, draw, classifier,
    size and metric by name. `variants` are the parameters of the ablation variants.
    """
    sweeps = sweeps or {}
    roles = {
        **dict.fromkeys(methods, "method"),
        **dict.fromkeys(ablation, "ablation"),
        **dict.fromkeys(sweeps, "sweep"),
        **dict.fromkeys(references, "reference"),
    }
    cells, judgements, scores, planned = [], [], [], Counter()
    every = product(datasets, noises, seeds, range(n_folds), roles.items())
    for dataset, (noise, rate), seed, fold, (method, role) in every:
        for draw in range(n_draws if method == "random-ranking" else 1):
            names = ("dataset", "noise", "seed", "fold", "method", "draw")
            place = dict(zip(names, (dataset, noise, seed, fold, method, draw), strict=True))
            planned.update((dataset, noise, method, classifier) for classifier in classifiers)
            if skip(**place):
                continue
            failed = fails(**place)
            problem = (error, traceback) if failed else (None, None)
            index = len(cells)
            cells.append(_cell(place, rate, role, sweeps.get(method, {}), problem, notes, n_features))
            description = f"{dataset}, {noise}, seed {seed}, fold {fold}, {method}"
            judgements += [(index, classifier, description, *problem, ()) for classifier in classifiers]
            kept = {"no-features": {None: 0}, "all-features": {None: n_features}}.get(
                method, {size: max(1, round(size / 100 * n_features)) for size in sizes}
            )
            for classifier, (size, n_kept), metric in product(classifiers, kept.items(), metrics):
                if not failed:
                    number = float(value(**place, classifier=classifier, size=size, metric=metric))
                    scores.append((index, classifier, size, n_kept, metric, number))
    parts = [{"name": name, "method": name, "params": (variants or {}).get(name, {})} for name in ablation]
    experiment = Experiment(
        name="made-up",
        title="A made-up run",
        seeds=seeds,
        datasets=datasets,
        noise=[{"rate": rate} for _, rate in noises],
        methods=methods,
        ablation=parts,
        sweeps=_sweeps(sweeps),
        references=references,
        classifiers=classifiers,
        sizes={"percent": sizes},
        metrics=metrics,
        control=control,
    ).model_copy(update={"folds": n_folds})  # a single fold is quick
    facts = {
        name: DatasetFacts(name, 100, n_features, 5, 1.5, "0123456789abcdef" * 4, "percent")
        for name in datasets
    }
    run = RunRecord(
        1,
        "2026-11-16T00:00:00+00:00",
        "2026-11-16T00:01:00+00:00",
        "labelsieve bench run made-up",
        {"python": "3.13", "numpy": "2.0"},
        {"name": "made-up", "seeds": [0]},
        len(cells),
    )
    return Results(
        experiment,
        facts,
        pd.DataFrame(cells, columns=CELL),
        pd.DataFrame(judgements, columns=JUDGEMENT),
        pd.DataFrame(scores, columns=SCORE).astype({"size": float}),
        pd.DataFrame([(*place, number) for place, number in planned.items()], columns=[*PLACE, "planned"]),
        (run,),
    )


def _sweeps(named):
    """Put the settings of each method and choice of parameters together."""
    groups = {}
    for name, params in named.items():
        slug = name.partition(f" {next(iter(params))}=")[0]
        values = groups.setdefault((slug, *params), {key: {} for key in params})
        for key, value in params.items():
            values[key][value] = None
    return [
        {"method": slug, "parameters": {key: list(found) for key, found in values.items()}}
        for (slug, *_), values in groups.items()
    ]


def _cell(place, rate, role, params, problem, notes, n_features):
    done = problem[0] is None
    ranked = done and place["method"] not in ("no-features", "all-features")
    # Other methods order the features alike in every fold; "random-ranking" does not.
    seed = (place["seed"], place["fold"], place["draw"]) if place["method"] == "random-ranking" else 0
    return {
        "key": "/".join(map(str, place.values())),
        **place,
        "noise_rate": rate,
        "role": role,
        "params": params,
        "error": problem[0],
        "traceback": problem[1],
        "fit_seconds": 0.5 + place["fold"] if done else None,
        "peak_mib": 10.0 + place["fold"] if done else None,
        "n_iter": 10 + 2 * place["fold"] if ranked else None,
        "converged": place["fold"] == 0 if ranked else None,
        "ranking": np.random.default_rng(seed).permutation(n_features) if ranked else None,
        "objective": np.array([3.0, 2.0, 1.5]) if ranked else None,
        "notes": notes,
    }
