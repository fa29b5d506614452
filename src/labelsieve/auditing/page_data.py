"""The numbers of an audit as the page's script wants them: short names, whole numbers, texts that steer nothing.

===============  ======================================================================================================
key              content
===============  ======================================================================================================
``title n d``    name of the table, rows, columns
``tau``          squared z values below it are noise
``best kept``    number of columns with the best precision, and the one shown first
``resamples``    halves of the rows that were ranked
``labels[]``     ``n`` name, ``m`` candidates, ``auc`` (null if it does not vary), ``look`` how many look rather wrong,
                 ``w`` share of wrong ones (only with checked candidates), ``h`` counts of candidates by key
``curve``        ``k[]`` sizes, ``folds[fold][size]``, ``random[size] = mean, low, high``, ``none`` without columns
``columns[]``    by place: ``n`` name, ``t`` role, ``e`` evidence, ``z[label]`` signed 10 z², ``b[]`` place in every
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

from labelsieve._text import printable
from labelsieve.auditing.distributions import Distribution, distribution
from labelsieve.auditing.findings import Findings
from labelsieve.auditing.ranking import CRITERION
from labelsieve.numerics.sparse import dense

__all__ = ["page_data"]

#: Columns on the page at most, those of the best places.
_MOST_COLUMNS = 1000
#: Numbers that counts per label may take; columns of the best places have them.
_MOST_COUNTS = 12_000
#: Features of a column that are listed.
_MOST_FEATURES = 12
#: Bars of the picture of all candidates.
_N_BARS = 30


def page_data(audit: Findings) -> dict[str, Any]:
    """Return the numbers of the page; see above."""
    subject, ranking, issues = audit.subject, audit.ranking, audit.doubts.issues
    curve = ranking.curve
    low, high = np.quantile(ranking.random, [0.025, 0.975], axis=0)
    labels, ends = _labels(audit)
    data: dict[str, Any] = {
        "title": printable(subject.name),
        "n": subject.shape[0],
        "d": len(subject.columns),
        "tau": CRITERION.threshold,
        "best": curve.best,
        "kept": min(audit.n_kept, _MOST_COLUMNS),
        "resamples": audit.steadiness.n_resamples,
        "candidates": issues.n_candidates,
        "labels": labels,
        "range": ends,
        "look": audit.doubts.n_to_look_at,
        "kernel": audit.doubts.kernel,
        "curve": {
            "k": curve.sizes.tolist(),
            "folds": _rounded(curve.scores, 4),
            "random": _rounded(np.column_stack([ranking.random.mean(axis=0), low, high]), 4),
            "none": round(float(ranking.without.mean()), 4),
        },
        "columns": _columns(audit),
    }
    return data | _rows(audit)


def _columns(audit: Findings) -> list[dict[str, Any]]:
    subject, ranking, steadiness = audit.subject, audit.ranking, audit.steadiness
    shown = ranking.order[:_MOST_COLUMNS]
    place = {int(column): number for number, column in enumerate(shown)}
    Y = dense(subject.Y) > 0
    counts_left = _MOST_COUNTS
    found = []
    for column in map(int, shown):
        of_table = subject.columns[column]
        bars = distribution(subject, column, int(ranking.best_feature[column]))
        record: dict[str, Any] = {
            "n": printable(of_table.name),
            "t": printable(of_table.role),
            "e": round(float(audit.column_evidence[column]), 1),
            "z": _rounded(10 * audit.column_z2[column], 0),
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
            record["f"] = _features(audit, features)
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


def _features(audit: Findings, features: np.ndarray) -> list[list[Any]]:
    """The features of one column that say most: name, evidence, their best label and the signed z² with it."""
    evidence, signed = audit.ranking.evidence, audit.ranking.signed_z2
    order = features[np.argsort(-evidence[features], kind="stable")][:_MOST_FEATURES]
    best = np.abs(signed[order]).argmax(axis=1)
    return [
        [
            printable(audit.subject.feature_names[feature]),
            round(float(evidence[feature]), 1),
            int(label),
            round(10 * float(signed[feature, label])),
        ]
        for feature, label in zip(order, best, strict=True)
    ]


def _labels(audit: Findings) -> tuple[list[dict[str, Any]], list[float]]:
    """The labels, and the ends of the scale on which their candidates are counted."""
    issues = audit.doubts.issues
    is_checked = issues.probability is not None and issues.has_probabilities
    scale = issues.probability if is_checked else issues.support
    assert scale is not None
    keys = scale[issues.rows, issues.labels]
    low, high = (0.0, 1.0) if is_checked else (float(keys.min()), float(keys.max()))
    edges = np.linspace(low, high if high > low else low + 1, _N_BARS + 1)
    by_name = {doubts.label: doubts for doubts in issues.by_label()}
    found = []
    for label, name in enumerate(issues.label_names):
        doubts = by_name.get(name)
        area = audit.doubts.auc[label]
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


def _rows(audit: Findings) -> dict[str, Any]:
    subject, issues, reasons = audit.subject, audit.doubts.issues, audit.doubts.reasons
    rows, labels = issues.rows[audit.doubts.listed], issues.labels[audit.doubts.listed]
    distinct, position = np.unique(rows, return_inverse=True)
    place = {int(column): number for number, column in enumerate(audit.ranking.order[:_MOST_COLUMNS])}
    values: dict[str, int] = {}
    why = []
    for number, row in enumerate(map(int, rows)):
        triples: list[int] = []
        for column, feature, effect in zip(
            reasons.columns[number], reasons.features[number], reasons.effects[number], strict=True
        ):
            if int(column) not in place or effect >= 0:
                continue
            text = printable(_value(audit, row, int(column), int(feature)))
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
    if audit.doubts.kernel != "linear":
        found["c"] = _rounded(1000 * reasons.curved, 0)
    # What is not among the three is in one sum, and the sums are whole thousandths as they are shown.
    told = np.array([sum(triples[2::3]) for triples in why], dtype=int)
    parts = np.array(found["b"]) + np.array(found["q"]) + np.array(found.get("c", 0)) + told
    found["o"] = (np.array(found["j"]) - parts).tolist()
    if issues.probability is not None and issues.has_probabilities:
        found["p"] = _rounded(1000 * issues.probability[rows, labels], 0)
    return {
        "rows": found,
        "values": list(values),
        "ids": [printable(subject.row_ids[row]) for row in distinct],
    }


def _value(audit: Findings, row: int, column: int, feature: int) -> str:
    """What stands in the cell; of a text, the part of it that counts."""
    subject = audit.subject
    if subject.columns[column].role == "text":
        return subject.feature_names[feature]
    return subject.cell(row, column)


def _rounded(values: np.ndarray, digits: int) -> list[Any]:
    """Plain numbers, whole ones if no digits are asked for."""
    rounded = np.round(values, digits)
    plain: list[Any] = (rounded.astype(int) if digits == 0 else rounded).tolist()
    return plain
