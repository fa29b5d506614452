"""Everything that a report says in numbers, computed from the summary of a run."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from labelsieve.bench import RunError
from labelsieve.report.comparison import Comparison, compare_with_references
from labelsieve.report.paper import PaperCheck, check_against_paper, repeats_paper
from labelsieve.report.summary import Facts, Summary
from labelsieve.report.variations import ablation_effects, ablations, noise_curves, sweeps

__all__ = ["Analysis", "analyse"]


@dataclass(frozen=True)
class Analysis:
    """Numbers of a report."""

    summary: Summary
    #: The conditions of the tables.
    main: Comparison
    #: The same under every other noise and classifier, by name.
    others: dict[str, Comparison]
    #: From `compare_with_references`.
    challenges: pd.DataFrame
    #: From `noise_curves`.
    noise: pd.DataFrame
    #: From `ablations`: classifier, metric -> data sets by variants.
    ablations: dict[tuple[str, str], pd.DataFrame]
    #: From `ablation_effects`.
    effects: pd.DataFrame
    #: From `sweeps`.
    sweeps: pd.DataFrame
    #: Comparison with the paper by condition, the main one first; empty unless the experiment is the paper's.
    papers: dict[str, PaperCheck]

    @property
    def facts(self) -> Facts:
        """Facts of the summary."""
        return self.summary.facts

    @property
    def compares_variants(self) -> bool:
        """Tell if variants of an ablation are compared, because there are no methods."""
        return bool(self.summary.compared) and not self.summary.methods_with_role("method")

    @property
    def several_judges(self) -> bool:
        """Tell if there are several classifiers or conventions."""
        return len(self.facts.classifiers) > 1


def analyse(summary: Summary, *, control: str | None = None) -> Analysis:
    """Compute everything that a report says.

    Parameters
    ----------
    summary : Summary
        The run, complete or not.
    control : str or None, default=None
        The method that the others are compared with. Default: the experiment's, or else the first.

    Raises
    ------
    RunError
        Nothing has finished, or `control` is not one of the methods.
    """
    facts, experiment = summary.facts, summary.experiment
    if not facts.coverage.n_done:
        failed = facts.coverage.n_failed
        advice = f"{failed} failed: see labelsieve bench status" if failed else "run the experiment first"
        raise RunError(
            f"{experiment.name}: finished cells were expected, got none of {facts.coverage.n_planned}; {advice}."
        )
    if not facts.classifiers:
        raise RunError(
            f"{experiment.name}: the finished cells hold no numbers; check that sizes.counts are numbers of features "
            "that there are, and run the experiment again."
        )
    classifier, noise = facts.classifiers[0], facts.usual_noise
    main = Comparison(summary, classifier, noise, _control(summary, control))
    others = _other_conditions(main)
    papers = {}
    if repeats_paper(experiment) and (check := check_against_paper(main)):
        papers = {classifier: check}
        papers |= {name: found for name, other in others.items() if (found := check_against_paper(other))}
    variants = ablations(summary, noise)
    return Analysis(
        summary=summary,
        main=main,
        others=others,
        challenges=compare_with_references(main),
        noise=noise_curves(summary, classifier),
        ablations=variants,
        effects=ablation_effects(summary, variants),
        sweeps=sweeps(summary, noise),
        papers=papers,
    )


def _control(summary: Summary, asked: str | None) -> str:
    methods = summary.compared
    if asked is None:
        configured = summary.experiment.control
        return configured if configured in methods else next(iter(methods), "")
    if asked not in methods:
        known = ", ".join(methods) or "none, as this run compares no methods"
        raise RunError(
            f"the control must be one of the methods ({known}), got {asked!r}; choose one of them."
        )
    return asked


def _other_conditions(main: Comparison) -> dict[str, Comparison]:
    """Compare under every noise and classifier except the main ones."""
    summary, facts = main.summary, main.summary.facts
    found = {}
    for classifier in facts.classifiers:
        for level in facts.noise_rates:
            noise = {name: level for name in summary.datasets if (name, level) in facts.conditions}
            if classifier == main.classifier and noise.items() <= main.noise.items():
                continue
            parts = [f"noise {level}"] if len(facts.noise_rates) > 1 else []
            parts += [classifier] if len(facts.classifiers) > 1 else []
            found[", ".join(parts)] = Comparison(summary, classifier, noise, main.control)
    return found
