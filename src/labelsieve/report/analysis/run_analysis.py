"""From the summary of a run to everything a report says. Numbers only; see `findings` for words."""

from __future__ import annotations

from dataclasses import dataclass

from labelsieve.bench import RunError
from labelsieve.report.analysis.cells import Place
from labelsieve.report.analysis.comparison import Challenge, Comparison, challenge_references, compare
from labelsieve.report.analysis.paper import PaperCheck, check_against_paper, repeats_paper
from labelsieve.report.analysis.sensitivity import (
    Ablation,
    Effect,
    NoiseCurve,
    Sweep,
    ablations,
    effects,
    noise_curves,
    sweeps,
)
from labelsieve.report.analysis.summary import Curve, Facts, Summary

__all__ = ["Analysis", "analyse"]


@dataclass(frozen=True)
class Analysis:
    """What a run shows."""

    summary: Summary
    #: The conditions that the page is about.
    main: Comparison
    #: The same under every other noise and classifier, by name.
    others: dict[str, Comparison]
    challenges: tuple[Challenge, ...]
    #: Data set, metric -> method -> curve, under the main conditions.
    curves: dict[tuple[str, str], dict[str, Curve]]
    noise: tuple[NoiseCurve, ...]
    ablations: tuple[Ablation, ...]
    #: What the parts of the method under ablation add.
    effects: tuple[Effect, ...]
    sweeps: tuple[Sweep, ...]
    #: Only of an experiment that is the paper's.
    paper: PaperCheck | None
    #: The same under every other noise and classifier that has cells in common with the paper, by name.
    other_papers: dict[str, PaperCheck]

    @property
    def facts(self) -> Facts:
        """What the summary knows besides metrics."""
        return self.summary.facts

    @property
    def compared(self) -> tuple[str, ...]:
        """The methods that are ranked, complete or not."""
        return self.summary.compared

    @property
    def references(self) -> tuple[str, ...]:
        """The references beside them."""
        return self.summary.references

    @property
    def shown(self) -> tuple[str, ...]:
        """Methods and references of the tables, in their order."""
        return (*self.compared, *self.references)

    @property
    def compares_variants(self) -> bool:
        """Whether variants of an ablation are what is compared, as there are no methods proper."""
        return bool(self.compared) and not self.summary.named_with_role("method")

    @property
    def several_judges(self) -> bool:
        """Whether there are several classifiers, or conventions."""
        return len(self.facts.classifiers) > 1

    @property
    def slugs(self) -> dict[str, str]:
        """Name in the tables -> the method behind it."""
        return {method.name: method.method for method in self.summary.experiment.all_methods()}


def analyse(summary: Summary, *, control: str | None = None) -> Analysis:
    """Compute everything a report says.

    Parameters
    ----------
    summary : Summary
        The run, complete or not.
    control : str or None, default=None
        The method that the others are compared with; None takes the experiment's, or else the first.

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
    control = _settle_control(control, experiment.control, summary.compared)
    classifier, noise = facts.classifiers[0], facts.usual_noise
    main = compare(summary, control=control, classifier=classifier, noise=noise)
    shown = (*summary.compared, *summary.references)
    others = _other_conditions(summary, main)
    papers = (
        {
            name: check_against_paper(other.tables, experiment, other.classifier)
            for name, other in {"": main, **others}.items()
        }
        if repeats_paper(experiment)
        else {}
    )
    variants = ablations(summary, facts.classifiers, noise)
    return Analysis(
        summary=summary,
        main=main,
        others=others,
        challenges=challenge_references(main.tables),
        curves=_curves(summary, shown, main),
        noise=noise_curves(summary, shown, classifier),
        ablations=variants,
        effects=effects(summary, variants),
        sweeps=sweeps(summary, facts.classifiers, noise),
        paper=papers.pop("", None),
        other_papers={name: check for name, check in papers.items() if check is not None},
    )


def _settle_control(asked: str | None, configured: str, compared: tuple[str, ...]) -> str:
    if asked is not None and asked not in compared:
        known = ", ".join(compared) or "none, as this run compares no methods"
        raise RunError(
            f"the control must be one of the methods ({known}), got {asked!r}; choose one of them."
        )
    fallback = configured if configured in compared else next(iter(compared), "")
    return asked if asked is not None else fallback


def _other_conditions(summary: Summary, main: Comparison) -> dict[str, Comparison]:
    """Compare under every noise and classifier but the main ones."""
    facts = summary.facts
    found = {}
    for classifier in facts.classifiers:
        for level in facts.noise_rates:
            noise = {name: level for name in summary.datasets if (name, level) in facts.conditions}
            if classifier == main.classifier and noise.items() <= main.noise.items():
                continue
            name = ", ".join(
                part
                for part, several in (
                    (f"noise {level}", len(facts.noise_rates) > 1),
                    (classifier, len(facts.classifiers) > 1),
                )
                if several
            )
            found[name] = compare(summary, control=main.control, classifier=classifier, noise=noise)
    return found


def _curves(
    summary: Summary, shown: tuple[str, ...], main: Comparison
) -> dict[tuple[str, str], dict[str, Curve]]:
    found = {}
    for dataset, level in main.noise.items():
        for metric in summary.facts.metrics:
            curves = {
                method: curve
                for method in shown
                if (curve := summary.curve(Place(dataset, level, method), main.classifier, metric))
            }
            if curves:
                found[dataset, metric] = curves
    return found
