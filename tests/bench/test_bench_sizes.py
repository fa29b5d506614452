"""Methods whose ranking depends on the number of features run once for each number."""

import json

import numpy as np
import pytest

import bench_runs as bench
from labelsieve.bench.config import Experiment, parse_experiment
from labelsieve.bench.data import describe, load_dataset
from labelsieve.bench.plan import plan
from labelsieve.bench.results import read_results, read_status
from labelsieve.inspection.stability import kuncheva_stability
from labelsieve.report.summary import summarise

pytestmark = pytest.mark.usefixtures("one_job_here")

#: 1, 1, 3 and 6 of ten features.
PERCENT = (6, 10, 30, 60)

OWN = '''
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator


class Fickle(BaseEstimator):
    """Method that depends on the number of features. It records each fit in a file."""

    ranking_depends_on_size = True

    def __init__(self, n_features_to_select=None):
        self.n_features_to_select = n_features_to_select

    def fit(self, X, Y):
        asked = self.n_features_to_select
        with open(Path(__file__).with_name("fits"), "a") as stream:
            stream.write(f"{asked} ")
        if asked == 6 and Path(__file__).with_name("broken").exists():
            raise RuntimeError("six is too many")
        # With one feature, the folds differ. With more, they agree.
        self.scores_ = X[0] if asked == 1 else np.roll(np.arange(X.shape[1], 0.0, -1), asked or 0)
        return self


class Stable(Fickle):
    """Method that does not depend on the number of features."""

    ranking_depends_on_size = False
'''

CONFIG = f"""
folds = 3
datasets = [{{ name = "small", path = "small.csv", labels = "label_*" }}]
methods = [
    {{ name = "fickle", method = "fickle_methods:Fickle" }},
    {{ name = "asked", method = "fickle_methods:Fickle", params = {{ n_features_to_select = 6 }} }},
    {{ name = "stable", method = "fickle_methods:Stable" }},
]
[sizes]
percent = {list(PERCENT)}
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "fickle_methods.py").write_text(OWN)
    return bench.make_project(tmp_path, CONFIG, "sizes")


def fits(config):
    """Return and clear the recorded numbers of features."""
    record = config.with_name("fits")
    found = record.read_text().split() if record.exists() else []
    record.unlink(missing_ok=True)
    return sorted(found)


def planned(methods, **settings):
    experiment = parse_experiment(f'datasets = ["planted"]\nmethods = {methods}\nfolds = 2\n', name="mine")
    experiment = experiment.model_copy(update=settings)
    spec = experiment.datasets[0]
    return experiment, plan(experiment, {spec.name: describe(spec, load_dataset(spec, None), experiment)})


def test_a_run_ranks_once_for_each_distinct_number(project):
    out, _ = bench.inside(project, "--jobs", 1, "--json")
    # In three folds, "fickle" needs three numbers. "asked" reuses the last one for all sizes.
    assert fits(project) == sorted([*("1", "3", "6") * 3, *["None"] * 3])
    assert {key: json.loads(out)[key] for key in ("planned", "done", "failed")} == {
        "planned": 15,
        "done": 15,
        "failed": 0,
    }
    (status,) = read_status(project.parent / "runs" / "sizes")["datasets"]
    assert (status["planned"], status["done"], status["missing"]) == (15, 15, 0)
    out, _ = bench.inside(project, "--jobs", 1, "--json")
    assert json.loads(out)["computed"] == 0
    assert fits(project) == []


def test_every_size_is_judged_by_its_own_ranking(project):
    bench.inside(project, "--jobs", 1)
    results = read_results(project.parent / "runs" / "sizes")
    judged = {}
    for score in results.scores.join(results.cells, on="cell").itertuples():
        judged.setdefault((score.method, score.fold), set()).add(
            (score.size, score.n_features, int(score.ranking[0]), score.params["n_features_to_select"])
        )
    for fold in range(3):
        fickle = {(size, kept, asked) for size, kept, _, asked in judged["fickle", fold]}
        assert fickle == {(6.0, 1, 1), (10.0, 1, 1), (30.0, 3, 3), (60.0, 6, 6)}
        assert {(kept, first) for _, kept, first, _ in judged["fickle", fold] if kept > 1} == {(3, 3), (6, 6)}
        assert {(kept, first) for _, kept, first, _ in judged["asked", fold]} == {(1, 6), (3, 6), (6, 6)}
        assert {(kept, first) for _, kept, first, _ in judged["stable", fold]} == {(1, 0), (3, 0), (6, 0)}


def test_stability_compares_rankings_for_the_same_number(project):
    bench.inside(project, "--jobs", 1)
    results = read_results(project.parent / "runs" / "sizes")
    facts = summarise(results).facts
    assert facts.coverage.complete
    assert facts.coverage.n_planned == 15
    cells = results.cells.itertuples()
    firsts = [cell.ranking[0] for cell in cells if cell.params["n_features_to_select"] == 1]
    at_one = kuncheva_stability(np.eye(10)[firsts])
    found = {entry["method"]: entry["index"] for entry in facts.stability}
    # Two sizes keep one feature. The folds agree at the others.
    assert found["fickle"]["kuncheva"] == pytest.approx((2 * at_one + 1 + 1) / 4)
    assert at_one < 1
    assert found["stable"]["kuncheva"] == 1
    assert {entry["n_rankings"] for entry in facts.stability} == {3}
    seconds = results.cells.loc[results.cells["method"] == "fickle", "fit_seconds"]
    (cost,) = (cost for cost in facts.costs if cost["method"] == "fickle")
    assert cost["seconds"] == pytest.approx(np.mean(seconds))


def test_a_failing_number_does_not_affect_the_others(project):
    (project.with_name("broken")).touch()
    # "asked" also fails because it sets the number.
    _, err = bench.inside(project, "--jobs", 1, code=3)
    assert "failed: small, flip 0.2, seed 0, fold 0, fickle, 6 features: RuntimeError: six is too many" in err
    facts = summarise(read_results(project.parent / "runs" / "sizes")).facts
    gaps = {gap["method"]: (gap["done"], gap["failed"], gap["planned"]) for gap in facts.coverage.gaps}
    assert gaps == {"fickle": (6, 3, 9), "asked": (0, 3, 3)}
    failure = next(failure for failure in facts.failures if failure["method"] == "fickle")
    assert failure["cells"] == [
        f"small, flip 0.2, seed 0, fold {fold}, fickle, 6 features" for fold in range(3)
    ]
    assert {cost["method"] for cost in facts.costs} == {"fickle", "stable"}


def test_a_single_size_is_not_mistaken_for_a_ranking_without_a_number():
    _, cells = planned(
        '["mdmr"]', sizes=Experiment.model_fields["sizes"].default.model_copy(update={"percent": (5,)})
    )
    _, without = planned('[{method = "mdmr", params = {n_features_to_select = 0.5}}]')
    assert cells[0].method.params == {"n_features_to_select": 3}
    assert [cell.n_selected for cell in without] == [None] * 2
    assert len({cell.key for cell in (*cells, *without)}) == 4
