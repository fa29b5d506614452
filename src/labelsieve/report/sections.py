"""What stands on the page of a run, in its order; words and tables, no markup."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from labelsieve._text import count
from labelsieve.report.analysis.comparison import ALPHA
from labelsieve.report.analysis.paper import CITATION
from labelsieve.report.analysis.run_analysis import Analysis
from labelsieve.report.tables.comparison import (
    all_ranks_table,
    challenge_tables,
    condition_table,
    difference_table,
    duel_p_values,
    duel_table,
    metric_tables,
    pair_tables,
    rank_table,
)
from labelsieve.report.tables.fits import cost_tables, gap_table, stability_tables, warning_table
from labelsieve.report.tables.paper import agreement_tables, paper_tables
from labelsieve.report.tables.provenance import (
    convention_table,
    dataset_table,
    environment_table,
    run_table,
)
from labelsieve.report.tables.sensitivity import (
    ablation_table,
    effect_tables,
    noise_file,
    noise_tables,
    setting_table,
    size_file,
    sweep_file,
    sweep_table,
)
from labelsieve.report.tables.table import Table
from labelsieve.report.wording import listed

# More rows are read by nobody; the file has them all.
_MOST_ROWS = 200


@dataclass(frozen=True)
class Section:
    """A part of the page under its heading."""

    anchor: str
    title: str
    texts: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    #: Tables that are looked up rather than read; folded on the page.
    folded: tuple[Table, ...] = ()
    #: Tables that are for programs; files only.
    files: tuple[Table, ...] = ()

    @property
    def charts(self) -> tuple[str, ...]:
        """Names of the charts that stand here, where the run has what they draw."""
        return (self.anchor, "settings") if self.anchor == "sensitivity" else (self.anchor,)

    @property
    def all_tables(self) -> tuple[Table, ...]:
        """All tables, each of which becomes a file."""
        return (*self.tables, *self.folded, *self.files)


def make_sections(analysis: Analysis) -> list[Section]:
    """Arrange everything there is; sections without content are left out."""
    found = (section for part in _PARTS for section in part(analysis))
    # Curves are drawn by their section, so it stays even without a table.
    sections = [section for section in found if section.texts or section.all_tables]
    if not analysis.compared:
        # Nothing but sweeps: they are what the reader came for.
        sections.sort(key=lambda section: section.anchor != "sensitivity")
    return sections


def _ranks(analysis: Analysis) -> Iterator[Section]:
    main = analysis.main
    if main.standings and len(main.ranked_methods) > 1:
        others = condition_table(analysis), all_ranks_table(analysis)
        text = f"Each method's place on each data set, averaged over {_scope(analysis)}."
        yield Section("ranks", "Average ranks", (text,), _there(rank_table(main), *others))


def _metrics(analysis: Analysis) -> Iterator[Section]:
    tables = metric_tables(analysis.main) if analysis.shown else []
    conditions = ", ".join(dict.fromkeys(analysis.main.noise.values()))
    text = f"Label noise: {conditions}; classifier: {analysis.main.classifier}."
    if tables:
        yield Section("metrics", "Metrics", (text,), tuple(tables))


def _references(analysis: Analysis) -> Iterator[Section]:
    tables = challenge_tables(analysis)
    if tables:
        text = (
            "A method that does not beat random features, plain filters, all features or no features at all has "
            "not earned its place. A comparison is one metric on one data set, by the means over all sizes."
        )
        yield Section(
            "references", "Do the methods beat the references?", (text,), (tables[0],), tuple(tables[1:])
        )


def _curves(analysis: Analysis) -> Iterator[Section]:
    if any(len(curve.sizes) > 1 for curves in analysis.curves.values() for curve in curves.values()):
        text = (
            "Each metric against the number of features kept: means over folds, seeds and draws, the band one standard "
            "deviation over the folds. Point at a line, or move with the arrow keys, for its values; names below "
            "switch lines off and on."
        )
        yield Section("curves", "Metrics by number of features", (text,), files=(size_file(analysis),))


def _statistics(analysis: Analysis) -> Iterator[Section]:
    main = analysis.main
    if main.no_tests or main.nemenyi_cd is None:
        if analysis.compared:
            yield Section("statistics", "Statistics", (main.no_tests,))
        return
    n_datasets, n_methods = main.n_ranked
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
    folded = (*pair_tables(main), *_there(duel_p_values(main)))
    tables = _there(difference_table(main), duel_table(main))
    yield Section("statistics", "Statistics", tuple(texts), tables, folded)


def _paper(analysis: Analysis) -> Iterator[Section]:
    if analysis.paper is not None:
        *tables, cells = paper_tables(analysis.paper)
        text = (
            f"The same cells in {CITATION}, as printed there. The paper does not say all conventions, so its "
            "numbers may mean something else; the order of the methods is compared by rank correlation."
        )
        agreement, by_metric = agreement_tables(analysis)
        yield Section(
            "paper", "Ours and the paper’s", (text,), (agreement,), (by_metric, *tables), files=(cells,)
        )


def _costs(analysis: Analysis) -> Iterator[Section]:
    tables = {table.stem: table for table in cost_tables(analysis)}
    cost = [tables[stem] for stem in ("seconds", "peak_mib") if stem in tables]
    if cost:
        yield Section("costs", "Time and memory", tables=tuple(cost))
    progress = [tables[stem] for stem in ("n_iter", "converged") if stem in tables]
    if progress:
        yield Section("convergence", "Convergence", tables=tuple(progress))


def _stability(analysis: Analysis) -> Iterator[Section]:
    tables = stability_tables(analysis)
    if tables:
        n_rankings = analysis.facts.stability[0].n_rankings
        text = f"How alike the features are that a method selects in {n_rankings} folds and seeds."
        yield Section("stability", "Stability", (text,), (tables[0],), tuple(tables[1:]))


def _sensitivity(analysis: Analysis) -> Iterator[Section]:
    if analysis.noise:
        tables = tuple(noise_tables(analysis))
        yield Section("noise", "Noise", tables=tables, files=(noise_file(analysis),))
    effects = effect_tables(analysis)
    if effects:
        text = (
            "Does each part of the method help? The whole method against every variant, and variants that differ in "
            "one part against each other."
        )
        tables = _there(effects[0], ablation_table(analysis))
        yield Section("ablation", "Ablation", (text,), tables, tuple(effects[1:]))
    sweep = sweep_table(analysis)
    if sweep is not None:
        is_long = len(sweep.rows) > _MOST_ROWS
        texts = [f"The table has {len(sweep.rows)} rows: see {sweep.stem}.csv."] if is_long else []
        surfaces = {found.method for found in analysis.sweeps if len(found.parameters) == 2}
        if surfaces:
            texts.append(
                f"Lines of two parameters are of {listed(sorted(surfaces))}, means over the data sets."
            )
        files_too = _there(sweep if is_long else None, sweep_file(analysis))
        folded = () if is_long else (sweep,)
        settings = _there(setting_table(analysis))
        yield Section("sensitivity", "Sensitivity", tuple(texts), settings, folded, files_too)


def _failures(analysis: Analysis) -> Iterator[Section]:
    facts = analysis.facts
    gaps = _there(gap_table(analysis))
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
        yield Section("warnings", "Warnings", folded=(warning_table(analysis),))


def _provenance(analysis: Analysis) -> Iterator[Section]:
    summary = analysis.summary
    yield Section(
        "provenance",
        "Where the numbers come from",
        tables=(dataset_table(summary), convention_table(summary)),
        folded=(run_table(summary), environment_table(summary)),
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
    return tuple(table for table in tables if table is not None and table.rows)


def _scope(analysis: Analysis) -> str:
    names = analysis.main.standings[0].datasets
    return f"{count(len(names), 'data set')} ({listed(names)})"
