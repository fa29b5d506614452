"""From the results of a run to everything a report says. Numbers only; see `findings` for words."""

from __future__ import annotations

from dataclasses import dataclass

from labelsieve.bench import RunError
from labelsieve.bench.results import Results
from labelsieve.report.aggregation import Aggregate, Coverage, Curve, Place, named_with_role
from labelsieve.report.behaviour import (
    Cost,
    Failure,
    Note,
    Steadiness,
    collect_failures,
    collect_notes,
    measure_costs,
    measure_stability,
)
from labelsieve.report.comparison import Comparison, compare
from labelsieve.report.paper import PaperCheck, check_against_paper
from labelsieve.report.variation import Ablation, NoiseCurve, Sweep, ablations, noise_curves, sweeps
from labelsieve.report.yardsticks import Challenge, challenge_references


@dataclass(frozen=True)
class Analysis:
    """What a run shows."""

    results: Results
    coverage: Coverage
    #: The conditions that the page is about.
    main: Comparison
    #: The same under every other noise and classifier, by name.
    others: dict[str, Comparison]
    #: Whether variants of an ablation are what is compared, as there are no methods proper.
    compares_variants: bool
    challenges: tuple[Challenge, ...]
    #: Data set, metric -> method -> curve, under the main conditions.
    curves: dict[tuple[str, str], dict[str, Curve]]
    costs: tuple[Cost, ...]
    stability: tuple[Steadiness, ...]
    noise: tuple[NoiseCurve, ...]
    ablations: tuple[Ablation, ...]
    sweeps: tuple[Sweep, ...]
    paper: PaperCheck | None
    failures: tuple[Failure, ...]
    notes: tuple[Note, ...]

    @property
    def shown(self) -> tuple[str, ...]:
        """Methods and references of the tables, in their order."""
        return (*self.compared, *self.references)

    @property
    def compared(self) -> tuple[str, ...]:
        """The methods that are ranked, complete or not."""
        return _compared(self.results)

    @property
    def slugs(self) -> dict[str, str]:
        """Name in the tables -> the method behind it."""
        return {method.name: method.method for method in self.results.experiment.all_methods()}

    @property
    def references(self) -> tuple[str, ...]:
        """The references beside them."""
        return named_with_role(self.results, "reference")


def analyse(results: Results, *, control: str | None = None) -> Analysis:
    """Compute everything a report says.

    Parameters
    ----------
    results : Results
        The run, complete or not.
    control : str or None, default=None
        The method that the others are compared with; None takes the experiment's, or else the first.

    Raises
    ------
    RunError
        Nothing has finished, or `control` is not one of the methods.
    """
    if not any(cell.status == "done" for cell in results.cells):
        raise RunError(
            f"{results.name}: finished cells were expected, got none of {results.n_planned}; "
            "run the experiment first."
        )
    aggregate = Aggregate(results)
    compared = _compared(results)
    references = named_with_role(results, "reference")
    control = _settle_control(control, results.experiment.control, compared)
    usual = {name: aggregate.usual_noise(name) for name in results.datasets}
    noise = {name: level for name, level in usual.items() if level is not None}
    classifier = aggregate.classifiers[0]
    main = compare(aggregate, compared, references, control=control, classifier=classifier, noise=noise)
    shown = (*compared, *references)
    return Analysis(
        results=results,
        coverage=aggregate.coverage,
        main=main,
        others=_other_conditions(aggregate, compared, references, main),
        compares_variants=not named_with_role(results, "method") and bool(compared),
        challenges=challenge_references(main.tables),
        curves=_curves(aggregate, shown, main),
        costs=measure_costs(results.cells),
        stability=measure_stability(aggregate, shown, noise, classifier),
        noise=noise_curves(aggregate, shown, classifier),
        ablations=ablations(aggregate, classifier, noise),
        sweeps=sweeps(aggregate, classifier, noise),
        paper=check_against_paper(main.tables, results.experiment),
        failures=collect_failures(results.cells),
        notes=collect_notes(results.cells),
    )


def _compared(results: Results) -> tuple[str, ...]:
    return named_with_role(results, "method") or named_with_role(results, "ablation")


def _settle_control(asked: str | None, configured: str, compared: tuple[str, ...]) -> str:
    if asked is not None and asked not in compared:
        known = ", ".join(compared) or "none, as this run compares no methods"
        raise RunError(
            f"the control must be one of the methods ({known}), got {asked!r}; choose one of them."
        )
    fallback = configured if configured in compared else next(iter(compared), "")
    return asked if asked is not None else fallback


def _other_conditions(
    aggregate: Aggregate, compared: tuple[str, ...], references: tuple[str, ...], main: Comparison
) -> dict[str, Comparison]:
    """Compare under every noise and classifier but the main ones."""
    datasets = aggregate.results.datasets
    met = {(cell.dataset, cell.noise) for cell in aggregate.results.cells}
    found = {}
    for classifier in aggregate.classifiers:
        for level in aggregate.noise_rates:
            noise = {name: level for name in datasets if (name, level) in met}
            if classifier == main.classifier and noise.items() <= main.noise.items():
                continue
            name = ", ".join(
                part
                for part, several in (
                    (f"noise {level}", len(aggregate.noise_rates) > 1),
                    (classifier, len(aggregate.classifiers) > 1),
                )
                if several
            )
            found[name] = compare(
                aggregate, compared, references, control=main.control, classifier=classifier, noise=noise
            )
    return found


def _curves(
    aggregate: Aggregate, shown: tuple[str, ...], main: Comparison
) -> dict[tuple[str, str], dict[str, Curve]]:
    found = {}
    for dataset, level in main.noise.items():
        for metric in aggregate.metrics:
            curves = {
                method: curve
                for method in shown
                if (curve := aggregate.curve(Place(dataset, level, method), main.classifier, metric))
            }
            if curves:
                found[dataset, metric] = curves
    return found
