"""Analysis of a run: all numbers of a report."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
import pandas as pd

from labelsieve.bench import RunError
from labelsieve.report.comparison import Comparison
from labelsieve.report.paper import repeats_paper, shared_cells
from labelsieve.report.statistics import average_ranks
from labelsieve.report.summary import DIGITS, Facts, Summary, arrange, spread


@dataclass(frozen=True)
class Analysis:
    """Comparisons of methods and effects of noise, variants and parameters."""

    summary: Summary
    #: Comparison under the conditions of the tables.
    main: Comparison

    @property
    def facts(self) -> Facts:
        """Facts of the summary."""
        return self.summary.facts

    @property
    def noun(self) -> str:
        """Noun for the compared entries: "method", or "variant" if there are no methods."""
        return "method" if self.summary.methods_with_role("method") else "variant"

    @property
    def several_judges(self) -> bool:
        """Return True if there are several classifiers or conventions."""
        return len(self.facts.classifiers) > 1

    @cached_property
    def others(self) -> dict[str, Comparison]:
        """Comparisons with other noise or classifiers than the main ones, by name."""
        summary, facts, main = self.summary, self.facts, self.main
        found = {}
        for classifier, level in product(facts.classifiers, facts.noise_rates):
            noise = {name: level for name in summary.datasets if (name, level) in facts.conditions}
            if classifier == main.classifier and noise.items() <= main.noise.items():
                continue
            parts = [f"noise {level}"] if len(facts.noise_rates) > 1 else []
            parts += [classifier] if self.several_judges else []
            found[", ".join(parts)] = Comparison(summary, classifier, noise, main.control)
        return found

    @cached_property
    def papers(self) -> dict[str, pd.DataFrame]:
        """Cells shared with the paper by condition, main condition first. Empty for other experiments."""
        if not repeats_paper(self.summary.experiment):
            return {}
        conditions = {self.main.classifier: self.main, **self.others}
        found = {name: shared_cells(comparison) for name, comparison in conditions.items()}
        if found[self.main.classifier].empty:
            return {}
        return {name: cells for name, cells in found.items() if len(cells)}

    @cached_property
    def noise(self) -> pd.DataFrame:
        """Values by noise rate for models with several rates, with the main classifier.

        The columns are model, dataset, method, metric, rate and value.
        """
        rates = self.facts.noise_rates.items()
        levels = pd.DataFrame(
            [(noise, noise.rsplit(" ", 1)[0], rate) for noise, rate in rates if rate is not None],
            columns=["noise", "model", "rate"],
        )
        table = self.summary.scores.merge(levels, on="noise").rename(columns={"mean": "value"})
        table = table[table["classifier"] == self.main.classifier].sort_values("rate", kind="stable")
        key = ["model", "dataset", "method", "metric"]
        table = table[table.groupby(key)["rate"].transform("size") > 1][[*key, "rate", "value"]]
        names = levels["model"].unique(), self.summary.datasets, self.summary.shown, self.facts.metrics
        return arrange(table, **dict(zip(key, names, strict=True)))

    @cached_property
    def ablations(self) -> dict[tuple[str, str], pd.DataFrame]:
        """Classifier, metric -> table of datasets by variants, full variant first, NaN for missing."""
        variants, noise = self.summary.methods_with_role("ablation"), self.facts.usual_noise
        if len(variants) < 2:
            return {}
        found = {}
        for classifier, metric in product(self.facts.classifiers, self.facts.metrics):
            scores = self.summary.select(classifier, noise)
            found[classifier, metric] = spread(scores[scores["metric"] == metric], noise, variants)
        return found

    @cached_property
    def effects(self) -> pd.DataFrame:
        """Gains of the full method over all variants, and of variants over those that differ in one parameter.

        The columns are classifier, fuller, lesser, sets (parameters set only by the lesser variant), metric, dataset
        and gain (positive if the fuller variant is better).
        """
        params = {method.name: method.params for method in self.summary.experiment.all_methods()}
        variants = self.summary.methods_with_role("ablation")
        rows = []
        for classifier, fuller, lesser in product(self.facts.classifiers, variants, variants):
            own, fewer = params[fuller], params[lesser]
            differing = {name: value for name, value in fewer.items() if own.get(name) != value}
            is_one_part = len(differing) == 1 and set(own) == set(fewer) - set(differing)
            if not self.ablations or fuller == lesser or not (fuller == variants[0] or is_one_part):
                continue
            sets = ", ".join(f"{name} = {str(value).lower()}" for name, value in differing.items())
            for metric in self.facts.metrics:
                cost = self.summary.cost(metric, self.ablations[classifier, metric])
                gain = (cost[lesser] - cost[fuller]).round(DIGITS).dropna()
                rows += [(classifier, fuller, lesser, sets, metric, *item) for item in gain.items()]
        columns = ["classifier", "fuller", "lesser", "sets", "metric", "dataset", "gain"]
        return pd.DataFrame(rows, columns=columns)

    @cached_property
    def sweeps(self) -> pd.DataFrame:
        """Sweeps of one or two parameters.

        The columns are classifier, method, parameters (joined by " × "), setting (as text), first and second (parameter
        values), dataset, metric and value. Settings are in the configured order.
        """
        rows = []
        for sweep in self.summary.experiment.sweeps:
            names = tuple(sweep.parameters)
            for variant in sweep.methods() if len(names) <= 2 else ():
                values = [variant.params[name] for name in names]
                setting = ", ".join(map("{} = {}".format, names, values))
                rows.append((variant.name, sweep.method, " × ".join(names), setting, *(*values, np.nan)[:2]))
        columns = ["variant", "method", "parameters", "setting", "first", "second"]
        variants = pd.DataFrame(rows, columns=columns, dtype=object)
        facts, scores = self.facts, self.summary.scores
        scores = scores[scores["noise"] == scores["dataset"].map(facts.usual_noise)]
        table = variants.merge(scores.rename(columns={"method": "variant", "mean": "value"}), on="variant")
        known = {name: variants[name].unique() for name in ("method", "parameters")}
        places = {"classifier": facts.classifiers, "dataset": facts.usual_noise, "metric": facts.metrics}
        return arrange(table, **known, **places)[[*_SWEEP, *columns[3:], "dataset", "metric", "value"]]

    @cached_property
    def settings(self) -> pd.DataFrame:
        """Best and worst setting of each sweep by average rank over metrics and complete datasets."""
        rows = []
        directions = self.sweeps["metric"].map(self.summary.experiment.directions)
        signs = np.where(directions == "lower", 1.0, -1.0)
        table = self.sweeps.assign(cost=self.sweeps["value"] * signs)
        for key, group in table.groupby(_SWEEP, sort=False):
            costs = group.set_index(["dataset", "metric", "setting"])["cost"].unstack(sort=False).dropna()
            if costs.empty or costs.shape[1] < 2:
                continue
            ranks = pd.Series(average_ranks(costs, "lower"), index=costs.columns)
            best, worst = ranks.idxmin(), ranks.idxmax()
            gain = costs[worst] - costs[best]
            ahead = f"{(gain > 0).sum()} of {len(gain)}"
            spreads = costs.max(axis=1) - costs.min(axis=1)
            row = (best, ranks[best], worst, ranks[worst], ahead, gain.mean(), spreads.mean())
            rows.append((*key, *row))
        columns = ["best", "best_rank", "worst", "worst_rank", "ahead", "gain", "range"]
        return pd.DataFrame(rows, columns=[*_SWEEP, *columns])


_SWEEP = ["classifier", "method", "parameters"]


def analyse(summary: Summary, *, control: str | None = None) -> Analysis:
    """Analyse a run. The default control is that of the experiment or the first method."""
    facts, experiment, methods = summary.facts, summary.experiment, summary.compared
    if not facts.coverage.n_done:
        failed = facts.coverage.n_failed
        advice = f"{failed} failed. See: labelsieve bench status" if failed else "Run the experiment first."
        raise RunError(
            f"{experiment.name}: expected finished cells, got none of {facts.coverage.n_planned}. {advice}"
        )
    if control is None:
        control = experiment.control if experiment.control in methods else next(iter(methods), "")
    elif control not in methods:
        known = ", ".join(methods) or "none in this run"
        raise RunError(f"--control must be one of the methods ({known}), got {control!r}.")
    return Analysis(summary, Comparison(summary, facts.classifiers[0], facts.usual_noise, control))
