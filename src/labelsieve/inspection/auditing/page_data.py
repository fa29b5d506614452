"""The numbers of a page as its script wants them: short names, whole numbers, texts that steer nothing.

What was not computed is not there: the curve, or the doubts. Without a ranking, columns have but a name and a role.

===============  ======================================================================================================
key              content
===============  ======================================================================================================
``title n d``    name of the table, rows, columns
``tau``          squared z values below it are noise
``measure``      what ``e`` is: evidence, or the score of another method
``best kept``    number of columns with the best precision, and the one shown first
``resamples``    halves of the rows that were ranked
``asked``        the number of columns that the halves were asked for, if ``b`` tells only who is among them
``labels[]``     ``n`` name, ``m`` candidates, ``auc`` (null if it does not vary), ``look`` how many look rather wrong,
                 ``w`` share of wrong ones (only with checked candidates), ``h`` counts of candidates by key
``curve``        ``k[]`` sizes, ``folds[fold][size]``, ``random[size] = mean, low, high`` and ``none`` without columns,
                 or null
``columns[]``    by place: ``n`` name, ``t`` role, ``e`` measure, ``z[label]`` signed 10 z², ``b[]`` place in every
                 resample, ``s[] = [column, correlation]``, ``h`` distribution, ``x`` empty cells, ``f`` features
``h``            ``d`` whether bins are values, ``t`` their texts or the ends, ``c[]`` counts, ``l[label][]`` counts of
                 the rows with the label, ``n`` the feature that is counted, if not the column itself
``f[]``          of a column with several features: name, evidence, label it says most about, signed 10 z²
``rows``         candidates to doubt, worst first, a list for each: ``i`` row among ``ids``, ``l`` label, ``j`` 1000
                 support, ``p`` 1000 probability (only with checked candidates), ``w`` triples of column, value among
                 ``values`` and 1000 effect, ``b o c q`` 1000 times what the base, other columns, the kernel and other
                 labels add
``range``        ends of the scale on which ``labels[].h`` counts
``look``         how many of the rows look rather wrong
===============  ======================================================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labelsieve._numerics.sparse import dense
from labelsieve._text import printable
from labelsieve.inspection.auditing.contents import Columns, Contents, Sizes
from labelsieve.inspection.auditing.distributions import Distribution, distribution
from labelsieve.inspection.auditing.doubts import Doubts
from labelsieve.inspection.auditing.ranking import CRITERION, ColumnOrder
from labelsieve.inspection.auditing.subject import Subject

__all__ = ["page_data"]

#: Columns on the page at most, those of the best places.
_MOST_COLUMNS = 1000
#: Numbers that counts per label may take; columns of the best places have them.
_MOST_COUNTS = 12_000
#: Features of a column that are listed.
_MOST_FEATURES = 12
#: Bars of the picture of all candidates.
_N_BARS = 30


def page_data(contents: Contents) -> dict[str, Any]:
    """Return the numbers of the page; see above."""
    subject, columns, doubts = contents.subject, contents.columns, contents.doubts
    data: dict[str, Any] = {
        "title": printable(subject.name),
        "n": subject.shape[0],
        "d": len(subject.columns),
        "tau": CRITERION.threshold,
        "resamples": 0 if columns is None else columns.steadiness.n_resamples,
        "labels": [{"n": printable(name)} for name in subject.label_names],
    }
    if columns is not None:
        data |= {
            "measure": printable(columns.measure),
            "kept": min(columns.n_kept, _MOST_COLUMNS),
            "asked": columns.halves_for,
            "columns": _columns(subject, columns),
        }
        if columns.sizes is not None:
            data |= {"best": columns.sizes.curve.best, "curve": _curve(columns.sizes)}
        listed = columns.ranking.order[:_MOST_COLUMNS]
    else:
        # Those that are among the reasons.
        listed = np.array([], dtype=int) if doubts is None else np.unique(doubts.reasons.columns)
        data["columns"] = [
            {"n": printable(subject.columns[column].name), "t": printable(subject.columns[column].role)}
            for column in listed
        ]
    if doubts is None:
        return data
    labels, ends = _labels(doubts)
    return {
        **data,
        "candidates": doubts.issues.n_candidates,
        "labels": labels,
        "range": ends,
        "look": doubts.n_to_look_at,
        "kernel": doubts.kernel,
        **_rows(subject, doubts, listed),
    }


def _curve(sizes: Sizes) -> dict[str, Any]:
    found: dict[str, Any] = {
        "k": sizes.curve.sizes.tolist(),
        "folds": _rounded(sizes.curve.scores, 4),
        "random": None,
        "none": None if sizes.without is None else round(sizes.without, 4),
    }
    if sizes.random is not None:
        low, high = np.quantile(sizes.random, [0.025, 0.975], axis=0)
        found["random"] = _rounded(np.column_stack([sizes.random.mean(axis=0), low, high]), 4)
    return found


def _columns(subject: Subject, columns: Columns) -> list[dict[str, Any]]:
    ranking, steadiness = columns.ranking, columns.steadiness
    shown = ranking.order[:_MOST_COLUMNS]
    place = {int(column): number for number, column in enumerate(shown)}
    Y = dense(subject.Y) > 0
    counts_left = _MOST_COUNTS
    found = []
    for column in map(int, shown):
        of_table = subject.columns[column]
        bars = distribution(subject, column, int(ranking.best_feature[column]))
        worth = float(columns.worth[column])
        record: dict[str, Any] = {
            "n": printable(of_table.name),
            "t": printable(of_table.role),
            # Scores have any size; of the evidence a decimal is more than enough.
            "e": round(worth, 1) if columns.measure == "evidence" else float(f"{worth:.4g}"),
            "z": _rounded(10 * ranking.column_z2[column], 0),
            "b": steadiness.places[:, column].tolist(),
            "s": [
                [place[other], round(correlation, 2)]
                for other, correlation in steadiness.substitutes[column]
                if other in place
            ],
            "h": _bars(bars, Y if counts_left >= bars.n_bins * Y.shape[1] else None),
        }
        counts_left -= bars.n_bins * Y.shape[1]
        if of_table.n_missing:
            record["x"] = of_table.n_missing
        if of_table.note:
            record["o"] = printable(of_table.note)
        features = subject.features_of(column)
        if len(features) > 1:
            record["f"] = _features(subject, ranking, features)
        found.append(record)
    return found


def _bars(bars: Distribution, Y: np.ndarray | None) -> dict[str, Any]:
    record: dict[str, Any] = {
        "d": int(bars.is_discrete),
        "t": [printable(text) for text in bars.texts],
        "c": bars.counts().tolist(),
    }
    if bars.of:
        record["n"] = printable(bars.of)
    if Y is not None:
        record["l"] = [bars.counts(Y[:, label]).tolist() for label in range(Y.shape[1])]
    return record


def _features(subject: Subject, ranking: ColumnOrder, features: np.ndarray) -> list[list[Any]]:
    """The features of one column that say most: name, evidence, their best label and the signed z² with it."""
    evidence, signed = ranking.evidence, ranking.signed_z2
    order = features[np.argsort(-evidence[features], kind="stable")][:_MOST_FEATURES]
    best = np.abs(signed[order]).argmax(axis=1)
    return [
        [
            printable(subject.feature_names[feature]),
            round(float(evidence[feature]), 1),
            int(label),
            round(10 * float(signed[feature, label])),
        ]
        for feature, label in zip(order, best, strict=True)
    ]


def _labels(doubted: Doubts) -> tuple[list[dict[str, Any]], list[float]]:
    """The labels, and the ends of the scale on which their candidates are counted."""
    issues = doubted.issues
    chance = issues.shown_probability
    keys = (issues.support if chance is None else chance)[issues.rows, issues.labels]
    low, high = (0.0, 1.0) if chance is not None else (float(keys.min()), float(keys.max()))
    edges = np.linspace(low, high if high > low else low + 1, _N_BARS + 1)
    by_name = {doubts.label: doubts for doubts in issues.by_label()}
    found = []
    for label, name in enumerate(issues.label_names):
        doubts = by_name.get(name)
        area = doubted.auc[label]
        record: dict[str, Any] = {
            "n": printable(name),
            "m": 0 if doubts is None else doubts.n_candidates,
            "auc": None if np.isnan(area) else round(float(area), 3),
            "look": 0 if doubts is None else doubts.n_to_look_at,
            "h": np.histogram(keys[issues.labels == label], edges)[0].tolist(),
        }
        if doubts is not None and doubts.share_wrong is not None:
            record["w"] = round(doubts.share_wrong, 3)
        found.append(record)
    return found, [round(float(edges[0]), 4), round(float(edges[-1]), 4)]


def _rows(subject: Subject, doubts: Doubts, columns: np.ndarray) -> dict[str, Any]:
    """The candidates to doubt; `columns` are those on the page."""
    issues, reasons = doubts.issues, doubts.reasons
    rows, labels = issues.rows[doubts.listed], issues.labels[doubts.listed]
    distinct, position = np.unique(rows, return_inverse=True)
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
            text = printable(_value(subject, row, int(column), int(feature)))
            triples += [place[int(column)], values.setdefault(text, len(values)), round(1000 * float(effect))]
        why.append(triples)
    found: dict[str, Any] = {
        "i": position.tolist(),
        "l": labels.tolist(),
        "j": _rounded(1000 * issues.support[rows, labels], 0),
        "w": why,
        "b": _rounded(1000 * reasons.base, 0),
        "q": _rounded(1000 * reasons.labels, 0),
    }
    if doubts.kernel == "rbf":
        found["c"] = _rounded(1000 * reasons.curved, 0)
    # What is not among the three is in one sum, and the sums are whole thousandths as they are shown.
    told = np.array([sum(triples[2::3]) for triples in why], dtype=int)
    parts = np.array(found["b"]) + np.array(found["q"]) + np.array(found.get("c", 0)) + told
    found["o"] = (np.array(found["j"]) - parts).tolist()
    if issues.shown_probability is not None:
        found["p"] = _rounded(1000 * issues.shown_probability[rows, labels], 0)
    return {
        "rows": found,
        "values": list(values),
        "ids": [printable(subject.row_ids[row]) for row in distinct],
    }


def _value(subject: Subject, row: int, column: int, feature: int) -> str:
    """What stands in the cell; of a text, the part of it that counts."""
    if subject.columns[column].role == "text":
        return subject.feature_names[feature]
    return subject.cell(row, column)


def _rounded(values: np.ndarray, digits: int) -> list[Any]:
    """Plain numbers, whole ones if no digits are asked for."""
    rounded = np.round(values, digits)
    plain: list[Any] = (rounded.astype(int) if digits == 0 else rounded).tolist()
    return plain
