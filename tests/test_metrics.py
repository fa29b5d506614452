"""Metrics compared with scikit-learn and with their definitions written as loops."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import (
    accuracy_score,
    coverage_error,
    f1_score,
    label_ranking_average_precision_score,
    label_ranking_loss,
    roc_auc_score,
)
from sklearn.metrics import hamming_loss as sklearn_hamming_loss

from broken_sparse import broken
from labelsieve import METRICS
from labelsieve.metrics import (
    average_precision,
    coverage,
    macro_auc,
    macro_f1,
    micro_f1,
    ranking_loss,
    samples_f1,
)

#: Metrics that rank the labels of a row. The macro AUC ranks the rows of a label.
RANKING = [name for name, metric in METRICS.items() if metric.needs == "scores" and name != "macro_auc"]
COUNTING = [name for name, metric in METRICS.items() if metric.needs == "predictions"]


@st.composite
def labels_and_scores(draw, *, empty_rows=True):
    """Draw labels with few distinct scores, so that ties are common."""
    shape = draw(st.tuples(st.integers(1, 6), st.integers(1, 6)))
    Y = draw(arrays(np.int64, shape, elements=st.integers(0, 1)))
    scores = draw(arrays(np.float64, shape, elements=st.sampled_from([-2.0, -0.5, 0.0, 0.5, 1.0, 3.5])))
    if not empty_rows:
        Y[:, draw(st.integers(0, shape[1] - 1))] = 1
    return Y, scores


@st.composite
def two_label_matrices(draw):
    shape = draw(st.tuples(st.integers(1, 6), st.integers(1, 6)))
    return tuple(draw(arrays(np.int64, shape, elements=st.integers(0, 1))) for _ in range(2))


def slow_ranking_loss(true, false, row):
    pairs = [(t, f) for t in true for f in false]
    return sum(row[t] <= row[f] for t, f in pairs) / len(pairs) if pairs else 0.0


def at_or_above(label, row, ties):
    """List the labels ranked at or above a label, with all ties or only those in earlier columns."""
    if ties == "errors":
        return [other for other in range(len(row)) if row[other] >= row[label]]
    ordered = sorted(range(len(row)), key=lambda other: (-row[other], other))
    return ordered[: ordered.index(label) + 1]


def slow_coverage(true, false, row, ties="errors", unit="zero-based"):
    c, n_true, n_labels = max(len(at_or_above(t, row, ties)) for t in true), len(true), len(row)
    return {
        "zero-based": (c - 1) / n_labels,
        "count": c,
        "one-based": c / n_labels,
        "excess": (c - n_true) / (n_labels - n_true) if false else 0.0,
    }[unit]


def slow_average_precision(true, false, row, ties="errors"):
    precisions = []
    for t in true:
        above = at_or_above(t, row, ties)
        precisions.append(sum(label in true for label in above) / len(above))
    return sum(precisions) / len(precisions)


def slow_one_error(true, false, row):
    return float(any(row[label] == max(row) for label in false))


SLOW = {
    "ranking_loss": slow_ranking_loss,
    "coverage": slow_coverage,
    "average_precision": slow_average_precision,
    "one_error": slow_one_error,
}


def slow_mean(name, Y, scores, **options):
    values = []
    for labels, row in zip(Y, scores, strict=True):
        true = [label for label in range(len(row)) if labels[label]]
        false = [label for label in range(len(row)) if not labels[label]]
        if true:
            values.append(SLOW[name](true, false, row, **options))
    return sum(values) / len(values)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, {}) for name in RANKING),
        ("average_precision", {"ties": "index"}),
        *(
            ("coverage", {"unit": unit, "ties": ties})
            for unit in ("zero-based", "count", "one-based", "excess")
            for ties in ("errors", "index")
        ),
    ],
    ids=str,
)
@settings(max_examples=60, deadline=None)
@given(problem=labels_and_scores())
def test_ranking_metrics_equal_their_definition(name, options, problem):
    Y, scores = problem
    if not Y.any():
        return
    value = METRICS[name].with_options(**options).function(Y, scores)
    assert value == pytest.approx(slow_mean(name, Y, scores, **options), abs=1e-12)


@pytest.mark.parametrize("scores", [[[True, True, False]], np.array([[7, 7, 2]], dtype=np.uint8)])
def test_ties_are_broken_by_column_for_scores_of_any_dtype(scores):
    assert coverage([[1, 0, 0]], scores, unit="count", ties="index") == 1
    assert coverage([[0, 1, 0]], scores, unit="count", ties="index") == 2
    assert average_precision([[0, 1, 0]], scores, ties="index") == 1 / 2
    assert average_precision([[0, 1, 1]], scores, ties="index") == pytest.approx((1 / 2 + 2 / 3) / 2)


@settings(max_examples=60, deadline=None)
@given(problem=labels_and_scores())
def test_ranking_metrics_equal_scikit_learn_with_its_conventions(problem):
    Y, scores = problem
    if Y.shape[1] == 1:  # scikit-learn interprets a single column as classes
        return
    assert ranking_loss(Y, scores, empty_rows="perfect") == pytest.approx(label_ranking_loss(Y, scores))
    assert average_precision(Y, scores, empty_rows="perfect") == pytest.approx(
        label_ranking_average_precision_score(Y, scores)
    )
    ours = coverage(Y, scores, unit="count", empty_rows="perfect")
    assert ours == pytest.approx(coverage_error(Y, scores))


@settings(max_examples=60, deadline=None)
@given(problem=labels_and_scores())
def test_macro_auc_equals_scikit_learn(problem):
    Y, scores = problem
    varies = Y.any(axis=0) & ~Y.all(axis=0)
    if not varies.any():
        with pytest.raises(ValueError, match="Y_true"):
            macro_auc(Y, scores)
        return
    expected = [roc_auc_score(y, s) for y, s in zip(Y.T[varies], scores.T[varies], strict=True)]
    assert macro_auc(Y, scores) == pytest.approx(np.mean(expected))
    assert macro_auc(sp.csr_matrix(Y), scores) == macro_auc(Y, scores)


@settings(max_examples=60, deadline=None)
@given(problem=two_label_matrices())
def test_counting_metrics_equal_scikit_learn(problem):
    Y, predicted = problem
    if Y.shape[1] == 1:
        return
    for undefined in (0, 1):
        for name, function in (("macro", macro_f1), ("micro", micro_f1), ("samples", samples_f1)):
            expected = f1_score(Y, predicted, average=name, zero_division=undefined)
            assert function(Y, predicted, undefined=undefined) == pytest.approx(expected)
    assert METRICS["hamming_loss"].function(Y, predicted) == pytest.approx(sklearn_hamming_loss(Y, predicted))
    assert METRICS["subset_accuracy"].function(Y, predicted) == pytest.approx(accuracy_score(Y, predicted))


@settings(max_examples=40, deadline=None)
@given(problem=two_label_matrices())
def test_skipped_labels_and_rows_are_excluded_from_the_mean(problem):
    Y, predicted = problem
    has_positives = (Y | predicted).any(axis=0)
    if not has_positives.any():
        return
    expected = f1_score(Y[:, has_positives], predicted[:, has_positives], average=None, zero_division=0)
    if has_positives.sum() == 1:  # a single column has two classes, of which the last is class 1
        expected = expected[-1:]
    assert macro_f1(Y, predicted, undefined="skip") == pytest.approx(expected.mean())
    assert samples_f1(Y.T, predicted.T, undefined="skip") == pytest.approx(expected.mean())


@pytest.mark.parametrize("name", METRICS)
@settings(max_examples=40, deadline=None)
@given(problem=labels_and_scores(empty_rows=False), seed=st.integers(0, 99))
def test_values_are_bounded_and_invariant_to_permutations(name, problem, seed):
    Y, scores = problem
    metric = METRICS[name]
    output = scores if metric.needs == "scores" else (scores > 0).astype(int)
    if name == "macro_auc" and not (Y.any(axis=0) & ~Y.all(axis=0)).any():
        return
    value = metric.function(Y, output)
    assert isinstance(value, float)
    assert 0 <= value <= 1
    rng = np.random.default_rng(seed)
    rows, labels = rng.permutation(Y.shape[0]), rng.permutation(Y.shape[1])
    permuted = metric.function(Y[rows][:, labels], output[rows][:, labels])
    assert permuted == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("name", METRICS)
def test_true_labels_have_the_best_value(name):
    Y = np.array([[1, 0, 0], [0, 0, 1], [0, 1, 0]])
    best = 1.0 if METRICS[name].direction == "higher" else 0.0
    assert METRICS[name].function(Y, Y) == best
    assert METRICS[name].function(Y, 1 - Y) != best


@pytest.mark.parametrize("name", RANKING)
def test_rows_without_labels_are_skipped_or_perfect(name):
    expected = METRICS[name].function([[0, 1, 0]], [[0.3, 0.2, 0.1]])
    Y, scores = [[0, 1, 0], [0, 0, 0]], [[0.3, 0.2, 0.1], [0.3, 0.2, 0.1]]
    assert METRICS[name].function(Y, scores) == expected
    best = 1.0 if METRICS[name].direction == "higher" else 0.0
    lenient = METRICS[name].with_options(empty_rows="perfect")
    assert lenient.function(Y, scores) == pytest.approx((expected + best) / 2)
    assert lenient.function(Y[1:], scores[1:]) == best


@pytest.mark.parametrize("name", RANKING)
def test_ranking_metrics_raise_without_true_labels(name):
    with pytest.raises(ValueError, match="empty_rows"):
        METRICS[name].function(np.zeros((2, 3)), np.ones((2, 3)))


@pytest.mark.parametrize("name", ["macro_f1", "micro_f1", "samples_f1"])
def test_undefined_f1_is_an_option(name):
    empty = np.zeros((2, 3))
    assert METRICS[name].function(empty, empty) == 0
    assert METRICS[name].with_options(undefined=1).function(empty, empty) == 1
    with pytest.raises(ValueError, match="undefined"):
        METRICS[name].with_options(undefined="skip").function(empty, empty)


@pytest.mark.parametrize("name", METRICS)
def test_sparse_and_boolean_labels_give_equal_values(name):
    rng = np.random.default_rng(0)
    Y, other = (rng.random((20, 5)) < 0.4).astype(int), (rng.random((20, 5)) < 0.4).astype(int)
    expected = METRICS[name].function(Y, other)
    assert METRICS[name].function(sp.csr_matrix(Y), other) == expected
    assert METRICS[name].function(Y.astype(bool), other.astype(bool)) == expected


@pytest.mark.parametrize("name", METRICS)
def test_invalid_sparse_labels_raise(name):
    Y = np.eye(6, dtype=int)
    with pytest.raises(ValueError, match=r"^Y_true .*sparse"):
        METRICS[name].function(broken(Y, "index too large"), Y)
    if METRICS[name].needs == "predictions":
        with pytest.raises(ValueError, match=r"^Y_pred .*sparse"):
            METRICS[name].function(Y, broken(Y, "index too large"))


@pytest.mark.parametrize("name", RANKING)
def test_values_do_not_depend_on_batches(name, monkeypatch):
    rng = np.random.default_rng(0)
    Y, scores = (rng.random((50, 7)) < 0.3).astype(int), rng.normal(size=(50, 7))
    whole = METRICS[name].function(Y, scores)
    monkeypatch.setattr(
        "labelsieve.metrics.ranking.batches",
        lambda length, width: (slice(i, i + 3) for i in range(0, length, 3)),
    )
    assert METRICS[name].function(Y, scores) == pytest.approx(whole, abs=1e-12)


@pytest.mark.parametrize("name", METRICS)
def test_inputs_do_not_change(name):
    Y, other = np.array([[1, 0], [0, 1]]), np.array([[0, 1], [0, 1]])
    Y.flags.writeable = other.flags.writeable = False
    METRICS[name].function(Y, other)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize(
    ("Y", "other"),
    [
        ([[1, 0]], [[1, 0], [0, 1]]),
        ([1, 0], [1, 0]),
        (np.zeros((3, 0)), np.zeros((3, 0))),
        ([[-1, 1]], [[0, 1]]),
        ([["a", "b"]], [[0, 1]]),
        ([[1.0, np.nan]], [[0, 1]]),
    ],
)
def test_invalid_labels_raise(name, Y, other):
    with pytest.raises(ValueError, match="Y_true"):
        METRICS[name].function(Y, other)


@pytest.mark.parametrize(
    ("metric", "other", "options", "name"),
    [
        (ranking_loss, [[np.nan, 0]], {}, "NaN"),
        (ranking_loss, sp.csr_matrix([[1.0, 0.0]]), {}, "scores"),
        (macro_f1, [[0.7, 0.1]], {}, "Y_pred"),
        (coverage, [[1, 0]], {"ties": "first"}, "ties"),
        (coverage, [[1, 0]], {"unit": "share"}, "unit"),
        (ranking_loss, [[1, 0]], {"empty_rows": "ignore"}, "empty_rows"),
        (micro_f1, [[1, 0]], {"undefined": "nan"}, "undefined"),
    ],
)
def test_invalid_scores_predictions_and_options_raise(metric, other, options, name):
    with pytest.raises(ValueError, match=name):
        metric([[1, 0]], other, **options)


def test_infinite_scores_are_ranked():
    assert ranking_loss([[1, 0, 0]], [[np.inf, 0, -np.inf]]) == 0
