"""Sections of the page in their order: texts and tables, without markup."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from labelsieve._text import count
from labelsieve.report import comparison_tables as compared
from labelsieve.report import run_tables as runs
from labelsieve.report.analysis import Analysis
from labelsieve.report.comparison import ALPHA
from labelsieve.report.paper import CITATION
from labelsieve.report.tables import Table
from labelsieve.report.wording import listed

__all__ = ["Section", "make_sections"]

# Longer tables are files only.
_MOST_ROWS = 200


@dataclass(frozen=True)
class Section:
    """Part of the page under a heading."""

    anchor: str
    title: str
    texts: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    #: Tables to look things up in; folded on the page.
    folded: tuple[Table, ...] = ()
    #: Tables for programs; files only.
    files: tuple[Table, ...] = ()

    @property
    def charts(self) -> tuple[str, ...]:
        """Names of the charts of this section, if the run has their data."""
        return (self.anchor, "settings") if self.anchor == "sensitivity" else (self.anchor,)

    @property
    def all_tables(self) -> tuple[Table, ...]:
        """All tables; each becomes a file."""
        return (*self.tables, *self.folded, *self.files)


def make_sections(analysis: Analysis) -> list[Section]:
    """Arrange everything that a run shows; sections without content are left out."""
    found = (section for part in _PARTS for section in part(analysis))
    sections = [section for section in found if section.texts or section.all_tables]
    if not analysis.summary.compared:
        # A run of sweeps alone shows them first.
        sections.sort(key=lambda section: section.anchor != "sensitivity")
    return sections


def _ranks(analysis: Analysis) -> Iterator[Section]:
    main = analysis.main
    if len(main.ranked_methods) > 1:
        names = main.ranked_datasets
        scope = f"{count(len(names), 'data set')} ({listed(names)})"
        text = f"Each method's place on each data set, averaged over {scope}."
        tables = (compared.rank_table(main), *compared.condition_tables(analysis))
        yield Section("ranks", "Average ranks", (text,), tables)


def _metrics(analysis: Analysis) -> Iterator[Section]:
    tables = compared.metric_tables(analysis.main) if analysis.summary.shown else []
    conditions = ", ".join(dict.fromkeys(analysis.main.noise.values()))
    text = f"Label noise: {conditions}; classifier: {analysis.main.classifier}."
    if tables:
        yield Section("metrics", "Metrics", (text,), tuple(tables))


def _references(analysis: Analysis) -> Iterator[Section]:
    tables = compared.reference_tables(analysis)
    if tables:
        text = (
            "A method that does not beat random features, plain filters, all features or no features at all has "
            "not earned its place. A comparison is one metric on one data set, by the means over all sizes."
        )
        yield Section(
            "references", "Do the methods beat the references?", (text,), (tables[0],), tuple(tables[1:])
        )


def _curves(analysis: Analysis) -> Iterator[Section]:
    file = runs.curve_file(analysis)
    if file.frame.groupby(["data set", "method", "metric"])["size"].count().gt(1).any():
        text = (
            "Each metric against the number of features kept: means over folds, seeds and draws, the band one standard "
            "deviation over the folds. Point at a line, or move with the arrow keys, for its values; names below "
            "switch lines off and on."
        )
        yield Section("curves", "Metrics by number of features", (text,), files=(file,))


def _statistics(analysis: Analysis) -> Iterator[Section]:
    main = analysis.main
    if main.no_tests or main.nemenyi_cd is None:
        if analysis.summary.compared:
            yield Section("statistics", "Statistics", (main.no_tests,))
        return
    n_datasets, n_methods = len(main.ranked_datasets), len(main.ranked_methods)
    texts = [
        f"All tests compare methods over data sets, never over folds, at {ALPHA:.0%}. With "
        f"{count(n_datasets, 'data set')} and {count(n_methods, 'method')}, two methods differ significantly if "
        f"their average ranks are {main.nemenyi_cd:.2f} or more apart (Nemenyi, all pairs)"
    ]
    critical = main.bonferroni_dunn_cd
    if critical is None:
        texts[0] += "."
        texts.append(f"{main.control}, the control, is not ranked, so nothing is compared with it.")
    else:
        texts[0] += f", and a method differs from {main.control} at {critical:.2f} (Bonferroni–Dunn)."
    duels = compared.duel_tables(main)
    tables = (compared.difference_table(main), *duels[:1])
    folded = (*compared.pair_tables(main), *duels[1:])
    yield Section("statistics", "Statistics", tuple(texts), tables, folded)


def _paper(analysis: Analysis) -> Iterator[Section]:
    if analysis.papers:
        *tables, cells = compared.paper_tables(analysis.papers[analysis.main.classifier])
        text = (
            f"The same cells in {CITATION}, as printed there. The paper does not say all conventions, so its "
            "numbers may mean something else; the order of the methods is compared by rank correlation."
        )
        agreement, by_metric = compared.agreement_tables(analysis.papers)
        yield Section(
            "paper", "Ours and the paper’s", (text,), (agreement,), (by_metric, *tables), files=(cells,)
        )


def _costs(analysis: Analysis) -> Iterator[Section]:
    tables = runs.cost_tables(analysis)
    cost = [tables[stem] for stem in ("seconds", "peak_mib") if stem in tables]
    if cost:
        yield Section("costs", "Time and memory", tables=tuple(cost))
    progress = [tables[stem] for stem in ("n_iter", "converged") if stem in tables]
    if progress:
        yield Section("convergence", "Convergence", tables=tuple(progress))


def _stability(analysis: Analysis) -> Iterator[Section]:
    tables = runs.stability_tables(analysis)
    if tables:
        n_rankings = analysis.facts.stability[0].n_rankings
        text = f"How alike the features are that a method selects in {n_rankings} folds and seeds."
        yield Section("stability", "Stability", (text,), (tables[0],), tuple(tables[1:]))


def _sensitivity(analysis: Analysis) -> Iterator[Section]:
    if not analysis.noise.empty:
        tables = tuple(runs.noise_tables(analysis))
        yield Section("noise", "Noise", tables=tables, files=(runs.noise_file(analysis),))
    effects = runs.effect_tables(analysis)
    if effects:
        text = (
            "Does each part of the method help? The whole method against every variant, and variants that differ in "
            "one part against each other."
        )
        tables = _there(effects[0], runs.ablation_table(analysis))
        yield Section("ablation", "Ablation", (text,), tables, tuple(effects[1:]))
    if analysis.sweeps.empty:
        return
    sweep, file = runs.sweep_tables(analysis)
    is_long = len(sweep.frame) > _MOST_ROWS
    texts = [f"The table has {len(sweep.frame)} rows: see {sweep.stem}.csv."] if is_long else []
    doubles = analysis.sweeps[analysis.sweeps["second"].notna()]
    if len(doubles):
        methods = listed(sorted(doubles["method"].unique()))
        texts.append(f"Lines of two parameters are of {methods}, means over the data sets.")
    folded, files = ((), (sweep, file)) if is_long else ((sweep,), (file,))
    settings = _there(runs.setting_table(analysis))
    yield Section("sensitivity", "Sensitivity", tuple(texts), settings, folded, files)


def _failures(analysis: Analysis) -> Iterator[Section]:
    facts = analysis.facts
    gaps = _there(runs.gap_table(analysis))
    if facts.failures or gaps:
        texts = []
        if facts.failures:
            methods = list(dict.fromkeys(failure.method for failure in facts.failures))
            texts.append(f"{count(facts.coverage.n_failed, 'cell')} failed, of {listed(methods)}.")
        n_gaps = len(facts.coverage.gaps)
        is_long = n_gaps > _MOST_ROWS
        if is_long:
            texts.append(f"{n_gaps} places are incomplete: see missing.csv.")
        yield Section(
            "failures",
            "Failures and gaps",
            tuple(texts),
            folded=() if is_long else gaps,
            files=gaps if is_long else (),
        )
    if facts.notes:
        yield Section("warnings", "Warnings", folded=(runs.warning_table(analysis),))


def _provenance(analysis: Analysis) -> Iterator[Section]:
    summary = analysis.summary
    yield Section(
        "provenance",
        "Where the numbers come from",
        tables=(runs.dataset_table(summary), runs.convention_table(summary)),
        folded=(runs.run_table(summary), runs.environment_table(summary)),
    )


_PARTS = (
    _ranks,
    _curves,
    _metrics,
    _references,
    _statistics,
    _paper,
    _costs,
    _stability,
    _sensitivity,
    _failures,
    _provenance,
)


def _there(*tables: Table | None) -> tuple[Table, ...]:
    return tuple(table for table in tables if table is not None and len(table.frame))
