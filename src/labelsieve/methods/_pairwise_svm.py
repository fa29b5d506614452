"""Linear SVMs, one per pair of labels, trained on the rows that tell the two labels apart.

With many labels, most pairs have few rows. :func:`solve_svms` solves these in stacks because a call
of scikit-learn would take longer than the solution itself. Larger problems use scikit-learn's libsvm,
the solver behind the published results.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from labelsieve._numerics.batches import BUDGET, batches
from labelsieve._numerics.result import logger
from labelsieve._numerics.sparse import Matrix, dense

#: Pairs with more rows are solved by libsvm, and so are those that do not converge in a stack.
STACK_ROWS = 128
STACK_TOLERANCE = 1e-8
STACK_MAX_ITER = 5000

#: Maximum number of libsvm iterations. Only badly scaled features need more.
LIBSVM_MAX_ITER = 1_000_000


@dataclass(frozen=True)
class PairwiseClassifiers:
    """Linear classifiers that choose the first label of a pair if ``w . x + b > 0``.

    ``accuracy`` is the training accuracy of each classifier.
    """

    first: np.ndarray
    second: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    accuracy: np.ndarray


class PairProblem(NamedTuple):
    """Rows that tell two labels apart, in ascending order, and a mask of the positive ones."""

    rows: np.ndarray
    is_positive: np.ndarray


def train_pairwise(X: Matrix, credible: np.ndarray, candidate: np.ndarray, C: float) -> PairwiseClassifiers:
    """Train a linear SVM for every pair of labels that has rows on both sides.

    A row is on the side of label j against k if j is credible and k is not a candidate. A label that
    is a candidate but not credible puts the row on neither side.
    """
    first, second, sign, problems = _training_problems(credible, candidate)
    coef = np.empty((len(problems), X.shape[1]))
    intercept, accuracy = np.empty((2, len(problems)))
    sizes = np.array([len(problem.rows) for problem in problems], dtype=np.intp)
    by_size = np.argsort(sizes, kind="stable")
    large = list(by_size[sizes[by_size] > STACK_ROWS])
    for stack in _stacks(by_size[sizes[by_size] <= STACK_ROWS], sizes, X.shape[1]):
        *solution, solved = _solve_stack(X, [problems[pair] for pair in stack], C)
        coef[stack], intercept[stack], accuracy[stack] = solution
        large.extend(stack[~solved])
    logger.info("%d of %d pairwise classifiers trained", len(problems) - len(large), len(problems))
    n_unsolved = 0
    for pair in large:
        coef[pair], intercept[pair], accuracy[pair], converged = _solve_by_libsvm(X, problems[pair], C)
        n_unsolved += not converged
    if n_unsolved:
        warnings.warn(
            f"{n_unsolved} of {len(problems)} pairwise SVMs did not converge in {LIBSVM_MAX_ITER} "
            f"iterations. Scale the features or decrease C.",
            ConvergenceWarning,
            stacklevel=2,
        )
    logger.info("%d of %d pairwise classifiers trained", len(problems), len(problems))
    coef *= sign[:, None]
    return PairwiseClassifiers(first, second, coef, sign * intercept, accuracy)


def count_votes(
    X: Matrix, classifiers: PairwiseClassifiers, n_labels: int, weights: np.ndarray | None = None
) -> np.ndarray:
    """Count the pairs that every label wins in every row. Return shape (n_samples, n_labels).

    ``weights`` are the weights of the classifiers' votes, or None for equal votes.
    """
    n_rows, n_pairs = X.shape[0], len(classifiers.first)
    wins_first, wins_second = _incidence(classifiers, n_labels, weights)
    votes = np.zeros((n_labels, n_rows))
    for pairs in batches(n_pairs, width=n_rows, budget=BUDGET):
        decisions = (X @ classifiers.coef[pairs].T).T + classifiers.intercept[pairs, None]
        first_wins = (decisions > 0).astype(np.float64)
        votes += wins_first[:, pairs] @ first_wins + wins_second[:, pairs] @ (1.0 - first_wins)
    return votes.T


def mean_weights(
    classifiers: PairwiseClassifiers, n_labels: int, weights: np.ndarray | None = None
) -> np.ndarray:
    """Average the coefficients of each label's classifiers. Return shape (n_labels, n_features).

    Coefficients are negated where the label is the second of its pair. A label without classifiers
    gets a row of zeros.
    """
    wins_first, wins_second = _incidence(classifiers, n_labels, weights)
    n_classifiers = np.bincount(np.r_[classifiers.first, classifiers.second], minlength=n_labels)
    return (wins_first - wins_second) @ classifiers.coef / np.maximum(n_classifiers, 1)[:, None]


def stacked_norms(classifiers: PairwiseClassifiers, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the norm of every feature's coefficients over all classifiers. Signs do not cancel."""
    factor = np.ones(len(classifiers.first)) if weights is None else weights**2
    return np.sqrt(np.einsum("p,pf,pf->f", factor, classifiers.coef, classifiers.coef))


def _incidence(
    classifiers: PairwiseClassifiers, n_labels: int, weights: np.ndarray | None
) -> tuple[sp.csc_matrix, sp.csc_matrix]:
    """Return two label-by-classifier matrices of weights, for first and for second labels."""
    n_pairs = len(classifiers.first)
    values = np.ones(n_pairs) if weights is None else weights

    def place(labels: np.ndarray) -> sp.csc_matrix:
        return sp.csc_matrix((values, (labels, np.arange(n_pairs))), shape=(n_labels, n_pairs))

    return place(classifiers.first), place(classifiers.second)


def _training_problems(
    credible: np.ndarray, candidate: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[PairProblem]]:
    """Return the first label, second label, sign and problem of every pair to train.

    Swapping the sides changes a solution slightly, within the tolerance. To make solutions
    independent of the label order, the side of a problem's first row is always the positive one. The
    sign is -1 if that is the side of the second label.
    """
    rows_of = [np.flatnonzero(column) for column in credible.T]
    impossible = np.ascontiguousarray(~candidate.T)
    n_rows_for = credible.T.astype(np.float64) @ ~candidate
    first, second = np.nonzero(np.triu((n_rows_for > 0) & (n_rows_for.T > 0), 1))
    problems = []
    sign = np.zeros(len(first))
    for pair, (j, k) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        for_j = rows_of[j][impossible[k][rows_of[j]]]
        for_k = rows_of[k][impossible[j][rows_of[k]]]
        # With the "labels" fallback a label may be credible without being a candidate, so a row can be
        # on both sides. It counts for the first label only, which may leave no rows for the second.
        for_k = for_k[~(credible[for_k, j] & impossible[k][for_k])]
        if not len(for_k):
            continue
        rows = np.concatenate([for_j, for_k])
        order = np.argsort(rows)
        is_first = order < len(for_j)
        sign[pair] = 1.0 if is_first[0] else -1.0
        problems.append(PairProblem(rows[order], is_first == is_first[0]))
    trained = sign != 0
    return first[trained], second[trained], sign[trained], problems


def _stacks(pairs: np.ndarray, sizes: np.ndarray, n_features: int) -> Iterator[np.ndarray]:
    """Split pairs, sorted by size, into stacks that fit the memory budget."""
    numbers = sizes[pairs] * np.maximum(sizes[pairs], n_features)
    start = 0
    while start < len(pairs):
        # All problems of a stack are padded to the size of the last and largest one.
        fits = np.arange(1, len(pairs) - start + 1) * numbers[start:] <= BUDGET
        end = start + max(1, int(np.count_nonzero(fits)))
        yield pairs[start:end]
        start = end


def _solve_stack(
    X: Matrix, problems: list[PairProblem], C: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Solve problems padded to one size. Return weights, intercepts, accuracies and convergence."""
    sizes = np.array([len(problem.rows) for problem in problems])
    is_used = np.arange(sizes.max()) < sizes[:, None]
    index = np.zeros(is_used.shape, dtype=np.intp)
    index[is_used] = np.concatenate([problem.rows for problem in problems])
    is_positive = np.zeros(is_used.shape, dtype=bool)
    is_positive[is_used] = np.concatenate([problem.is_positive for problem in problems])
    rows = dense(X[index.ravel()]).reshape(*index.shape, -1)
    gram = rows @ rows.transpose(0, 2, 1)
    dual, intercept, converged = solve_svms(
        gram, is_positive, is_used, C=C, tol=STACK_TOLERANCE, max_iter=STACK_MAX_ITER
    )
    decisions = (gram @ dual[:, :, None])[:, :, 0] + intercept[:, None]
    is_right = ((decisions > 0) == is_positive) & is_used
    return (dual[:, None] @ rows)[:, 0], intercept, is_right.sum(axis=1) / sizes, converged


def _solve_by_libsvm(X: Matrix, problem: PairProblem, C: float) -> tuple[np.ndarray, float, float, bool]:
    """Solve one problem with libsvm. Return weights, intercept, accuracy and convergence.

    The kernel is precomputed if it fits the memory budget because libsvm computes products one by one.
    """
    rows = X[problem.rows]
    if rows.shape[0] * max(rows.shape) <= BUDGET:
        data, kernel = rows @ dense(rows).T, "precomputed"
    else:
        data, kernel = rows, "linear"
    with config_context(assume_finite=True, skip_parameter_validation=True), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        svm = SVC(kernel=kernel, C=C, max_iter=LIBSVM_MAX_ITER).fit(data, problem.is_positive)
    w, b = dense(svm.dual_coef_).ravel() @ rows[svm.support_], float(svm.intercept_[0])
    accuracy = float(np.mean((rows @ w + b > 0) == problem.is_positive))
    return w, b, accuracy, svm.n_iter_[0] < LIBSVM_MAX_ITER


#: Lower bound of the curvature, as in libsvm. Two rows with the same features have curvature 0.
SMALLEST_CURVATURE = 1e-12


def solve_svms(
    gram: np.ndarray, is_first: np.ndarray, is_used: np.ndarray, *, C: float, tol: float, max_iter: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Solve the duals of a stack of SVMs by sequential minimal optimisation.

    Every step updates one pair of coefficients per unsolved problem, chosen by libsvm's second-order
    rule (Fan, Chen and Lin, Journal of Machine Learning Research 6, 2005). A problem is solved when
    the maximal violation of optimality is below ``tol``, which may be much smaller than libsvm's.

    ``gram`` holds the inner products of the rows, shape (n_problems, n_rows, n_rows). ``is_first`` marks
    the rows on the positive side, and ``is_used`` is False for padding. Return the dual coefficients
    of the rows, the intercepts, and a mask of the problems that reached the tolerance.
    """
    dual = np.zeros(is_first.shape)
    intercept = np.zeros(len(gram))
    converged = np.zeros(len(gram), dtype=bool)
    problems = np.arange(len(gram))
    # Unsolved problems are kept in compact copies. ``residual`` is the label minus the linear score. At
    # the optimum, no coefficient that can grow has a larger residual than one that can shrink.
    K, beta = gram, dual.copy()
    upper, lower = np.where(is_first & is_used, C, 0.0), np.where(is_first | ~is_used, 0.0, -C)
    residual = np.where(is_first, 1.0, -1.0)
    slack = 1e-12 * C
    for _ in range(max_iter):
        growing = np.where(upper - beta > slack, residual, -np.inf)
        shrinking = np.where(beta - lower > slack, residual, np.inf)
        each = np.arange(len(problems))
        grow = growing.argmax(axis=1)
        highest = growing[each, grow]
        is_open = highest - shrinking.min(axis=1) >= tol
        # Compacting copies the products, so wait until half of the problems are solved.
        if 2 * np.count_nonzero(is_open) <= len(problems):
            ended = problems[~is_open]
            dual[ended], converged[ended] = beta[~is_open], True
            intercept[ended] = _intercept(growing[~is_open], shrinking[~is_open])
            if not is_open.any():
                break
            problems, K, beta, residual, upper, lower, growing, shrinking, grow, highest = (
                array[is_open]
                for array in (problems, K, beta, residual, upper, lower, growing, shrinking, grow, highest)
            )
            each = np.arange(len(problems))
        gap = np.maximum(highest[:, None] - shrinking, 0.0)
        products = K[each, grow]
        diagonal = np.einsum("ijj->ij", K)
        curvature = np.maximum(diagonal + diagonal[each, grow, None] - 2 * products, SMALLEST_CURVATURE)
        shrink = (gap**2 / curvature).argmax(axis=1)
        step = gap[each, shrink] / curvature[each, shrink]
        step = np.minimum(step, upper[each, grow] - beta[each, grow])
        step = np.minimum(step, beta[each, shrink] - lower[each, shrink])
        beta[each, grow] += step
        beta[each, shrink] -= step
        residual -= step[:, None] * (products - K[each, shrink])
    return dual, intercept, converged


def _intercept(growing: np.ndarray, shrinking: np.ndarray) -> np.ndarray:
    """Return the mean residual of the free rows, or the middle of the feasible interval without any."""
    is_free = np.isfinite(growing) & np.isfinite(shrinking)
    n_free = is_free.sum(axis=1)
    middle = (growing.max(axis=1) + shrinking.min(axis=1)) / 2
    mean = np.where(is_free, growing, 0.0).sum(axis=1) / np.maximum(n_free, 1)
    return np.where(n_free > 0, mean, middle)
