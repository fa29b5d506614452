"""One self-contained HTML page about an `Audit`, with a section for every part that was computed.

The script of the page finds its numbers as JSON: short names, whole numbers, texts without markup. Without a ranking,
columns have only a name and a role.

===============  ======================================================================================================
key              content
===============  ======================================================================================================
``title n d``    name of the table, rows, columns
``tau``          squared z values below it are noise
``measure``      what ``e`` is: evidence, or the score of another method
``best kept``    number of columns with the best precision, and the one shown first
``resamples``    subsamples of the rows that were ranked
``asked``        the number of columns that the subsamples select, if ``b`` says nothing about other numbers
``labels[]``     ``n`` name, ``m`` candidates, ``auc`` (null if it does not vary), ``k`` whether it is predicted,
                 ``look`` how many are flagged,
                 ``w`` share of wrong ones (only with reviewed labels), ``ci`` its 95% interval (only with a complete
                 draw), ``h`` counts of candidates by key
``curve``        ``k[]`` sizes, ``folds[fold][size]``, ``random[size] = mean, low, high`` and ``none`` without columns,
                 or null
``columns[]``    by place: ``n`` name, ``t`` role, ``e`` measure, ``z[label]`` signed 10 z², ``b[]`` place in every
                 resample, ``s[] = [column, correlation]``, ``h`` distribution, ``x`` empty cells, ``f`` features,
                 ``q`` q-value, ``qb`` whether it is an upper bound
``h``            ``d`` whether bins are values, ``t`` their texts or the ends, ``c[]`` counts, ``l[label][]`` counts of
                 the rows with the label, ``n`` name of the counted feature if it is not the column itself
``f[]``          of a column with several features: name, evidence, label it says most about, signed 10 z²
``rows``         candidates, least supported first, a list for each: ``i`` row among ``ids``, ``l`` label, ``j`` 1000
                 support, ``p`` 1000 probability (only with reviewed labels), ``w`` triples of column, value among
                 ``values`` and 1000 effect, ``b o c q`` 1000 times what the base, other columns, the kernel and other
                 labels add, ``y`` strongest other label in words, ``g`` number of candidates of the row
``of``           labels of each of the ``ids``
``context``      texts of the columns ``shown`` with each of the ``ids``, if there are any
``range``        ends of the scale on which ``labels[].h`` counts
``look``         how many of the rows are flagged
===============  ======================================================================================================
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsieve import __version__
from labelsieve._numerics.candidates import fill_unknown
from labelsieve._numerics.sparse import dense
from labelsieve._pages import render
from labelsieve._text import printable
from labelsieve.inspection import wording
from labelsieve.inspection.explanations import ExplainedIssues
from labelsieve.inspection.label_issues import LabelIssues
from labelsieve.inspection.ranking import CRITERION, Ranking
from labelsieve.io.dataset import Column, Dataset, show_value

if TYPE_CHECKING:
    from labelsieve.inspection.result import Audit

#: Limits that keep the page small: columns, counts per label in all distributions, features listed per column.
_MOST_COLUMNS, _MOST_COUNTS, _MOST_FEATURES = 1000, 12_000, 12
#: Largest number of distinct values with a bar each, and number of bars of a range.
_MOST_VALUES, _N_BINS = 12, 14
#: Values beyond this quantile are counted in the last bar.
_TAIL = 0.99
#: Roles whose values have no order.
_UNORDERED = ("category", "boolean", "text", "tags")
#: Largest number of missing labels on the page.
_MOST_SUGGESTED = 25
#: Characters of a text in the details of a row.
_MOST_CONTEXT = 300
#: Bars of the histogram of all candidates.
_N_BARS = 30


def render_page(audit: Audit) -> str:
    """Return the page of an audit as HTML."""
    ranking, issues, curve = audit.ranking, _wrong_labels(audit), audit.size_curve
    scripts = [
        *("dom", "state"),
        *(() if curve is None else ("curve",)),
        *(() if ranking is None else ("columns", "map")),
        *(() if issues is None else ("labels", "issues")),
        *("drawer", "start"),
    ]
    n_missing, suggestions = _suggestions(audit)
    now = datetime.datetime.now(datetime.UTC)
    return render(
        "audit.html",
        styles=["common.css", "audit/page.css"],
        scripts=["common.js", *(f"audit/{name}.js" for name in scripts)],
        data=page_data(audit),
        generator=f"labelsieve {__version__}",
        command=audit.command,
        title=audit.dataset.name or "table",
        facts=wording.facts(audit),
        answers=wording.answers(audit),
        banner=wording.banner(audit),
        warnings=[*wording.leak_notes(audit), *audit.warnings],
        notes=list(wording.notes(audit)),
        measure=None if ranking is None else ranking.measure,
        has_subsamples=audit.stability is not None,
        selected_by_subsamples=_asked(audit),
        best=None if curve is None else curve.best,
        has_issues=issues is not None,
        is_reviewed=issues is not None and issues.issues.has_probabilities,
        is_curved=issues is not None and issues.kernel == "rbf",
        missing=[_printable(record) for record in suggestions],
        n_missing=n_missing,
        provenance={**audit.provenance, "Written": now.strftime("%Y-%m-%d %H:%M UTC")},
    )


def _wrong_labels(audit: Audit) -> ExplainedIssues | None:
    """Return the candidates that may be wrong, if they were ranked."""
    issues = audit.label_issues
    return issues if issues is not None and issues.issues.which == "wrong" else None


def _suggestions(audit: Audit) -> tuple[int, Iterator[dict[str, Any]]]:
    """Return the number of flagged missing labels, and the first of them with reasons."""
    explained = audit.label_issues
    if explained is not None and explained.issues.which == "wrong":
        explained = explained.missing
    if explained is None:
        return 0, iter(())
    return explained.n_flagged, audit.issue_records(min(explained.n_flagged, _MOST_SUGGESTED), missing=True)


def _printable(record: dict[str, Any]) -> dict[str, Any]:
    """Return a suggestion with the reasons that speak for it."""
    reasons = [
        {
            "column": printable(reason["column"]),
            "said": printable(reason["text"].removeprefix(reason["column"])),
        }
        for reason in record["reasons"]
        if reason["effect"] > 0
    ]
    return {
        **record,
        "row": printable(str(record["row"])),
        "label": printable(record["label"]),
        "reasons": reasons,
    }


def _asked(audit: Audit) -> int | None:
    """Return the number of columns that the subsamples select, if it is the only number they tell about."""
    stability = audit.stability
    if stability is None or audit.ranking is None:
        return None
    return stability.n_selected if audit.ranking.depends_on_size or stability.places is None else None


def page_data(audit: Audit) -> dict[str, Any]:
    """Return the JSON data of the page; see the module docstring."""
    dataset, ranking, issues = audit.dataset, audit.ranking, _wrong_labels(audit)
    data: dict[str, Any] = {
        "title": printable(dataset.name or "table"),
        "n": dataset.X.shape[0],
        "d": dataset.n_columns,
        "tau": CRITERION.threshold,
        "resamples": 0 if audit.stability is None else audit.stability.n_resamples,
        "labels": [{"n": printable(name)} for name in dataset.label_names],
    }
    if ranking is not None:
        data |= {
            "measure": printable(ranking.measure),
            "kept": min(ranking.n_kept, _MOST_COLUMNS),
            "asked": _asked(audit),
            "columns": _columns(audit, ranking),
        }
        if audit.size_curve is not None:
            data |= {"best": audit.size_curve.best, "curve": _curve(audit)}
        listed = ranking.order[:_MOST_COLUMNS]
    else:
        # Only columns that are among the reasons.
        listed = np.array([], dtype=int) if issues is None else np.unique(issues.reasons.columns)
        data["columns"] = [
            {"n": printable(audit.ranked_columns[j].name), "t": printable(audit.ranked_columns[j].role)}
            for j in listed
        ]
    if issues is None:
        return data
    labels, ends = _labels(audit, issues.issues)
    return {
        **data,
        "candidates": issues.issues.n_candidates,
        "labels": labels,
        "range": ends,
        "look": issues.n_flagged,
        "kernel": issues.kernel,
        **_rows(audit, issues, listed),
    }


def _curve(audit: Audit) -> dict[str, Any]:
    curve, random, without = audit.size_curve, audit.random_precision, audit.baseline_precision
    assert curve is not None
    found: dict[str, Any] = {
        "k": curve.sizes.tolist(),
        "folds": _rounded(curve.scores, 4),
        "random": None,
        "none": None if without is None else round(without, 4),
    }
    if random is not None:
        low, high = np.quantile(random, [0.025, 0.975], axis=0)
        found["random"] = _rounded(np.column_stack([random.mean(axis=0), low, high]), 4)
    return found


def _columns(audit: Audit, ranking: Ranking) -> list[dict[str, Any]]:
    shown = ranking.order[:_MOST_COLUMNS]
    place = {int(column): number for number, column in enumerate(shown)}
    Y = dense(audit.dataset.candidates) > 0
    counts_left = _MOST_COUNTS
    found = []
    for column in map(int, shown):
        of_table = audit.ranked_columns[column]
        bars, bar_of = _bars(audit.dataset, of_table, int(ranking.best_feature[column]))
        n_bars = len(bars["c"])
        if counts_left >= n_bars * Y.shape[1]:
            bars["l"] = [_count(bar_of[has_label], n_bars) for has_label in Y.T]
        counts_left -= n_bars * Y.shape[1]
        worth = float(ranking.worth[column])
        record: dict[str, Any] = {
            "n": printable(of_table.name),
            "t": printable(of_table.role),
            # Scores have any size; of the evidence a decimal is more than enough.
            "e": round(worth, 1) if ranking.measure == "evidence" else float(f"{worth:.4g}"),
            "z": _rounded(10 * ranking.column_z2[column], 0),
            "b": _places(audit, column),
            "s": [
                [place[other], round(correlation, 2)]
                for other, correlation in audit.substitutes[column]
                if other in place
            ],
            "h": bars,
        }
        if audit.controlled is not None:
            record["q"] = float(f"{audit.controlled.q_values[column]:.2g}")
            record["qb"] = int(audit.controlled.is_bound[column])
        if of_table.n_missing:
            record["x"] = of_table.n_missing
        if of_table.note:
            record["o"] = printable(of_table.note)
        if len(of_table.features) > 1:
            record["f"] = _features(audit, ranking, np.array(of_table.features))
        found.append(record)
    return found


def _places(audit: Audit, column: int) -> list[int]:
    """Return the rank of a column in every subsample; without rankings, 1 if it is selected."""
    stability = audit.stability
    if stability is None:
        return []
    if stability.places is not None:
        return list(map(int, stability.places[:, column]))
    return list(map(int, np.where(stability.runs[:, column], 1, stability.n_selected + 1)))


def _bars(dataset: Dataset, column: Column, feature: int) -> tuple[dict[str, Any], np.ndarray]:
    """Count the cells of a column, or the values of its best feature; return the bar of every row, too."""
    name = dataset.feature_names[feature]
    if dataset.frame is not None and column.role in _UNORDERED:
        name, found = column.name, _bars_of_names(dataset.frame[column.name])
    elif dataset.values is not None and column.role == "number":
        name, found = (
            column.name,
            _bars_of_numbers(dataset.values[column.name].to_numpy(dtype=float, na_value=np.nan)),
        )
    else:
        found = _bars_of_numbers(dense(dataset.X[:, [feature]]).ravel())
    is_discrete, texts, bar_of, n_bars = found
    record = {"d": int(is_discrete), "t": list(map(printable, texts)), "c": _count(bar_of, n_bars)}
    return record if name == column.name else {**record, "n": printable(name)}, bar_of


def _count(bar_of: np.ndarray, n_bars: int) -> list[int]:
    counts: list[int] = np.bincount(bar_of[bar_of >= 0], minlength=n_bars).tolist()
    return counts


def _bars_of_names(raw: Any) -> tuple[bool, list[str], np.ndarray, int]:
    """Return a bar for each of the most frequent values, and one for all others; -1 for a missing value."""
    texts = raw.astype(object).map(show_value, na_action="ignore").replace("", np.nan)
    counts = texts.value_counts().sort_index().sort_values(ascending=False, kind="stable")
    shown = counts.index[: _MOST_VALUES if len(counts) <= _MOST_VALUES else _MOST_VALUES - 1]
    bar_of = shown.get_indexer(texts)
    bar_of[(bar_of < 0) & texts.notna()] = len(shown)
    others = [f"{len(counts) - len(shown)} others"] if len(shown) < len(counts) else []
    return True, [*shown, *others], bar_of, max(len(shown) + len(others), 1)


def _bars_of_numbers(values: np.ndarray) -> tuple[bool, list[str], np.ndarray, int]:
    """Return a bar for each of a few values, or bars of a range; -1 for a missing value."""
    bar_of = np.full(len(values), -1)
    known = np.isfinite(values)
    if not known.any():
        return False, ["", ""], bar_of, 1
    distinct = np.unique(values[known])
    if len(distinct) <= _MOST_VALUES:
        bar_of[known] = np.searchsorted(distinct, values[known])
        return True, list(map(show_value, distinct)), bar_of, len(distinct)
    low, high = distinct[0], np.quantile(values[known], _TAIL)
    if not high > low:
        high = distinct[-1]
    edges = np.linspace(low, high, _N_BINS + 1)
    bar_of[known] = np.clip(np.searchsorted(edges, values[known], "right") - 1, 0, _N_BINS - 1)
    end = show_value(high) + (" and more" if high < distinct[-1] else "")
    return False, [show_value(low), end], bar_of, _N_BINS


def _features(audit: Audit, ranking: Ranking, features: np.ndarray) -> list[list[Any]]:
    """Return the best features of a column: name, evidence, best label and signed 10 z² with it."""
    evidence, signed = ranking.feature_evidence, ranking.feature_z2
    order = features[np.argsort(-evidence[features], kind="stable")][:_MOST_FEATURES]
    best = np.abs(signed[order]).argmax(axis=1)
    return [
        [
            printable(audit.dataset.feature_names[feature]),
            round(float(evidence[feature]), 1),
            int(label),
            round(10 * float(signed[feature, label])),
        ]
        for feature, label in zip(order, best, strict=True)
    ]


def _labels(audit: Audit, issues: LabelIssues) -> tuple[list[dict[str, Any]], list[float]]:
    """Return the labels, and the range of their histograms."""
    chance = issues.shown_probability
    keys = (issues.support if chance is None else chance)[issues.rows, issues.labels]
    low, high = (0.0, 1.0) if chance is not None else (float(keys.min()), float(keys.max()))
    edges = np.linspace(low, high if high > low else low + 1, _N_BARS + 1)
    summary = audit.labels.set_index("label").to_dict("index")
    found = []
    for number, name in enumerate(issues.label_names):
        label = summary.get(name, {"n_candidates": 0, "auc": np.nan, "is_predicted": False, "n_flagged": 0})
        record: dict[str, Any] = {
            "n": printable(name),
            "m": label["n_candidates"],
            "auc": None if np.isnan(label["auc"]) else round(label["auc"], 3),
            "k": int(label["is_predicted"]),
            "look": label["n_flagged"],
            "h": np.histogram(keys[issues.labels == number], edges)[0].tolist(),
        }
        if "share_wrong" in label:
            record["w"] = round(label["share_wrong"], 3)
        if label.get("low", np.nan) >= 0:
            record["ci"] = [round(label[end], 3) for end in ("low", "high")]
        found.append(record)
    return found, [round(float(edges[0]), 4), round(float(edges[-1]), 4)]


def _rows(audit: Audit, explained: ExplainedIssues, columns: np.ndarray) -> dict[str, Any]:
    """Return the least supported candidates; `columns` are those on the page."""
    issues, reasons = explained.issues, explained.reasons
    rows, labels = issues.rows[explained.listed], issues.labels[explained.listed]
    distinct, position = np.unique(rows, return_inverse=True)
    labels_of = dense(fill_unknown(audit.dataset.candidates)[distinct])
    place = {int(column): number for number, column in enumerate(columns)}
    values: dict[str, int] = {}
    why = []
    for number, row in enumerate(map(int, rows)):
        triples: list[int] = []
        for column, feature, effect in zip(
            reasons.columns[number], reasons.features[number], reasons.effects[number], strict=True
        ):
            if int(column) not in place or effect >= 0:
                continue
            text = printable(wording.reason(audit, row, int(column), int(feature))[1])
            triples += [place[int(column)], values.setdefault(text, len(values)), round(1000 * float(effect))]
        why.append(triples)
    found: dict[str, Any] = {
        "i": position.tolist(),
        "l": labels.tolist(),
        "j": _rounded(1000 * issues.support[rows, labels], 0),
        "w": why,
        "b": _rounded(1000 * reasons.base, 0),
        "q": _rounded(1000 * reasons.labels, 0),
        "y": [
            printable(wording.other_label(audit, reasons, number) or "")
            for number in range(len(reasons.base))
        ],
        "g": reasons.n_in_row.tolist(),
    }
    if explained.kernel == "rbf":
        found["c"] = _rounded(1000 * reasons.curved, 0)
    # The rest is computed from rounded numbers, so that the parts shown sum to the support shown.
    shown = np.array([sum(triples[2::3]) for triples in why], dtype=int)
    parts = np.array(found["b"]) + np.array(found["q"]) + np.array(found.get("c", 0)) + shown
    found["o"] = (np.array(found["j"]) - parts).tolist()
    if issues.shown_probability is not None:
        found["p"] = _rounded(1000 * issues.shown_probability[rows, labels], 0)
    return {
        "rows": found,
        "values": list(values),
        "ids": [printable(audit.dataset.row_ids[row]) for row in distinct],
        "of": [np.flatnonzero(labels_of[row]).tolist() for row in range(len(distinct))],
        **_context(audit, distinct),
    }


def _context(audit: Audit, rows: np.ndarray) -> dict[str, Any]:
    """Return the free text and the columns to show of some rows."""
    if not audit.dataset.has_context:
        return {}
    contexts = [audit.dataset.context(int(row)) for row in rows]
    return {
        "shown": [printable(name) for name in contexts[0]] if contexts else [],
        "context": [
            [
                printable(text if len(text) <= _MOST_CONTEXT else f"{text[:_MOST_CONTEXT]}…")
                for text in found.values()
            ]
            for found in contexts
        ],
    }


def _rounded(values: np.ndarray, digits: int) -> list[Any]:
    """Return rounded numbers as lists; integers if `digits` is 0."""
    rounded = np.round(values, digits)
    plain: list[Any] = (rounded.astype(int) if digits == 0 else rounded).tolist()
    return plain
