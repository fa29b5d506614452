"""Compare methods across datasets by means, ranks and tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
import pandas as pd

from labelsieve._text import count
from labelsieve.report.statistics import (
    bonferroni_dunn_cd,
    friedman,
    holm,
    iman_davenport,
    nemenyi_cd,
    nemenyi_p_values,
    rank_methods,
    win_tie_loss,
)
from labelsieve.report.summary import Summary, spread

#: Significance level of all tests.
ALPHA = 0.05


@dataclass(frozen=True)
class Comparison:
    """Comparison of methods and references with one classifier and one noise per dataset.

    Only methods and datasets without missing results are ranked.
    """

    summary: Summary
    classifier: str
    #: Dataset -> noise.
    noise: dict[str, str]
    #: Method that the others are compared with.
    control: str

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics."""
        return self.summary.facts.metrics

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Rows of `Summary.scores` under these conditions."""
        return self.summary.select(self.classifier, self.noise)

    def table(self, metric: str, value: str = "mean") -> pd.DataFrame:
        """Return mean, std or fold_std of a metric by dataset and method, NaN for missing."""
        rows = self.scores[self.scores["metric"] == metric]
        return spread(rows, self.noise, self.summary.shown, value)

    @cached_property
    def means(self) -> dict[str, pd.DataFrame]:
        """Metric -> `table` of means."""
        return {metric: self.table(metric) for metric in self.metrics}

    @cached_property
    def _present(self) -> pd.DataFrame:
        """True for datasets and methods that have values of all metrics."""
        index, columns = list(self.noise), list(self.summary.shown)
        present = pd.DataFrame(bool(self.metrics), index=index, columns=columns)
        for table in self.means.values():
            present &= table.notna()
        return present

    @cached_property
    def ranked_methods(self) -> list[str]:
        """Methods with results on at least half of the datasets, if some dataset has all of them."""
        present = self._present[list(self.summary.compared)]
        present = present[present.any(axis=1)]
        names = present.columns[2 * present.sum() >= max(len(present), 1)].tolist()
        return names if names and self._present[names].all(axis=1).any() else []

    @cached_property
    def ranked_datasets(self) -> list[str]:
        """Datasets on which all ranked methods have results."""
        return self._datasets_with(self.ranked_methods)

    def _datasets_with(self, names: Sequence[str]) -> list[str]:
        return self._present.index[self._present[list(names)].all(axis=1)].tolist() if names else []

    def _ranks(self, metric: str, names: Sequence[str]) -> pd.DataFrame:
        """Rank methods on the datasets that have all of them."""
        values = self.means[metric].loc[self._datasets_with(names), list(names)]
        ranks = rank_methods(values, self.summary.direction(metric)) if len(names) > 1 else 1.0
        return pd.DataFrame(ranks, index=values.index, columns=values.columns)

    @cached_property
    def ranks(self) -> dict[str, pd.DataFrame]:
        """Metric -> ranks by dataset and method (1 is best), empty if there is nothing to rank."""
        names = self.ranked_methods
        return {metric: self._ranks(metric, names) for metric in self.metrics} if names else {}

    @cached_property
    def average_ranks(self) -> pd.DataFrame:
        """Average rank over datasets by method and metric."""
        averages = {metric: ranks.to_numpy().mean(axis=0) for metric, ranks in self.ranks.items()}
        return pd.DataFrame(averages, index=self.ranked_methods)

    @cached_property
    def overall(self) -> dict[str, float]:
        """Average rank over all metrics and datasets, best first."""
        averages = np.mean([self.average_ranks[metric] for metric in self.ranks] or [[]], axis=0)
        ranks = dict(zip(self.ranked_methods, averages.tolist(), strict=True))
        return dict(sorted(ranks.items(), key=lambda item: item[1]))

    @cached_property
    def among_all(self) -> dict[str, float]:
        """Average rank among methods and complete references, in table order. References are never tested."""
        if not self.ranks:
            return {}
        complete = self._present.loc[self.ranked_datasets].all()
        names = [*self.ranked_methods, *(name for name in self.summary.references if complete[name])]
        averages = [self._ranks(metric, names).to_numpy().mean(axis=0) for metric in self.metrics]
        return dict(zip(names, np.mean(averages, axis=0).tolist(), strict=True))

    @property
    def no_tests(self) -> str:
        """Reason why there are no tests, empty if there are."""
        n_datasets, n_methods = len(self.ranked_datasets), len(self.ranked_methods)
        if n_datasets >= 2 and n_methods >= 2:
            return ""
        n_methods = n_methods or len(self.summary.compared)
        return (
            "Tests need at least 2 complete datasets and 2 methods, got "
            f"{count(n_datasets, 'dataset')} and {count(n_methods, 'method')}."
        )

    @cached_property
    def tests(self) -> pd.DataFrame:
        """Statistics and p-values of the Friedman and Iman–Davenport tests by metric, empty without tests."""
        names = ["friedman", "friedman_p", "iman_davenport", "iman_davenport_p"]
        ranks = {} if self.no_tests else self.ranks
        rows = {metric: (*friedman(table), *iman_davenport(table)) for metric, table in ranks.items()}
        return pd.DataFrame.from_dict(rows, orient="index", columns=names)

    @cached_property
    def pairs(self) -> dict[str, pd.DataFrame]:
        """Metric -> Nemenyi p-values of all pairs of methods, empty without tests."""
        names = self.ranked_methods
        ranks = {} if self.no_tests else self.ranks
        return {
            metric: pd.DataFrame(nemenyi_p_values(table), index=names, columns=names)
            for metric, table in ranks.items()
        }

    @cached_property
    def duels(self) -> pd.DataFrame:
        """Wins, ties and losses of the control against the other methods by metric, with Wilcoxon p-values.

        The column "adjusted" has p-values with Holm's adjustment for the number of methods. Empty without tests or if
        the control is not ranked.
        """
        rows = []
        others = [name for name in self.ranked_methods if name != self.control]
        for metric in self.metrics if self.has_control else ():
            values = self.means[metric].loc[self.ranked_datasets]
            direction = self.summary.direction(metric)
            outcomes = [win_tie_loss(values[self.control], values[name], direction) for name in others]
            adjusted = holm([outcome.p_value for outcome in outcomes])
            rows += [
                (metric, name, *outcome, p_value)
                for name, outcome, p_value in zip(others, outcomes, adjusted.tolist(), strict=True)
            ]
        names = ["metric", "method", "wins", "ties", "losses", "p_value", "adjusted"]
        return pd.DataFrame(rows, columns=names)

    @property
    def has_control(self) -> bool:
        """Return True if the control can be tested against the others."""
        return not self.no_tests and self.control in self.ranked_methods

    @cached_property
    def nemenyi_cd(self) -> float | None:
        """Critical difference of average ranks for all pairs, None without tests."""
        n_methods, n_datasets = len(self.ranked_methods), len(self.ranked_datasets)
        return None if self.no_tests else nemenyi_cd(n_methods, n_datasets, alpha=ALPHA)

    @property
    def bonferroni_dunn_cd(self) -> float | None:
        """Critical difference of average ranks from the control, None without tests or control."""
        n_methods, n_datasets = len(self.ranked_methods), len(self.ranked_datasets)
        return bonferroni_dunn_cd(n_methods, n_datasets, alpha=ALPHA) if self.has_control else None

    @cached_property
    def challenges(self) -> pd.DataFrame:
        """Numbers of datasets on which a method beats a reference, by reference, method and metric.

        The column "compared" counts the datasets with results of both. Pairs without any are left out.
        """
        costs = {metric: self.summary.cost(metric, self.means[metric]) for metric in self.metrics}
        rows = []
        for reference, method, metric in product(
            self.summary.references, self.summary.compared, self.metrics
        ):
            ours, theirs = costs[metric][method].to_numpy(), costs[metric][reference].to_numpy()
            compared = np.isfinite(ours) & np.isfinite(theirs)
            rows.append((reference, method, metric, int((ours < theirs).sum()), int(compared.sum())))
        found = pd.DataFrame(rows, columns=["reference", "method", "metric", "wins", "compared"])
        return found[found.groupby(["reference", "method"])["compared"].transform("sum") > 0]
