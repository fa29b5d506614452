"""Computation of an `Audit`, shared by the commands audit, select and issues."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from labelsieve import __version__
from labelsieve._base import BaseSelector, as_generator, check_count, count_selected
from labelsieve._numerics.row_groups import RowOrders
from labelsieve._numerics.sparse import is_sparse
from labelsieve._text import one_line
from labelsieve.inspection.cleaning import is_cleaned
from labelsieve.inspection.controlled import can_be_tested, controlled_selection
from labelsieve.inspection.explanations import explain_label_issues
from labelsieve.inspection.extreme_values import columns_with_hidden_evidence
from labelsieve.inspection.label_support import varying_labels
from labelsieve.inspection.ranking import Ranking
from labelsieve.inspection.result import Audit
from labelsieve.inspection.size_choice import choose_size
from labelsieve.inspection.stability import (
    evidence_test,
    have_candidates,
    resample,
    subsamples,
)
from labelsieve.io import Dataset, read
from labelsieve.methods._columns import ColumnSelector
from labelsieve.methods._evidence.choice import FEWEST_ROWS, size_grid
from labelsieve.methods._evidence.problem import LARGEST_GRAM
from labelsieve.methods.evidence import EvidenceSelector, evaluate_sizes

#: Number of subsamples, random column orders and label permutations. Large tables use only 39 permutations.
SETTINGS: dict[str, Any] = {"n_resamples": 30, "n_random": 6, "n_permutations": 199}
FAST_SETTINGS: dict[str, Any] = {"n_resamples": 10, "n_random": 2, "n_permutations": 39}
#: Bound on the false discovery rate of the columns in an audit.
FDR = 0.1
#: Product of feature entries and labels above which permutations are slow.
_LARGE_PRODUCT = 2e8
_N_FOLDS = 5
_REDUNDANCIES = {np.inf: "inf (univariate filter)", 1.0: "1 (equal weights)", 0.0: "0 (forward selection)"}

#: Function of the number of finished steps, the total number of steps and a description of the current step.
Progress = Callable[[int, int, str], None]


def audit(
    data: Any,
    labels: Any = None,
    *,
    n_columns: int | float | None = None,
    checked: Any = None,
    each_row_has_truth: bool | str = "auto",
    fast: bool = False,
    random_state: int = 0,
    name: str = "",
    progress: Progress | None = None,
    command_line: str = "",
) -> Audit:
    """Audit a table: rank columns, choose how many to keep, check stability, flag label errors.

    Parameters
    ----------
    data : path, DataFrame, Dataset or {array-like, sparse matrix} of shape (n_samples, n_features)
        Any input that `labelsieve.io.read` accepts, a dataset, or a matrix of features.
    labels : int, str, sequence of str or {array-like, dataframe, sparse matrix} of shape (n_samples, n_labels)
        Label columns of the table, as in `read`. If `data` is a matrix of features, the candidate labels, 0 or 1.
        Not needed if `data` contains the labels.
    n_columns : int, float or None, default=None
        Number of columns to keep: an int, a fraction in (0, 1], or None to choose it by cross-validation.
    checked : Review, tuple of (rows, labels, answers) or None, default=None
        Reviewed labels, as in `find_label_issues`. With at least 50 of them, probabilities are shown.
    each_row_has_truth : bool or "auto", default="auto"
        If True, assume that every row has at least one right candidate, as in `LabelSupport`.
    fast : bool, default=False
        If True, use 10 instead of 30 subsamples, 39 instead of 199 permutations and 2 instead of 6 random orders.
    random_state : int, default=0
        Seed of folds, subsamples and permutations.
    name : str, default=""
        Name of the table.
    progress : callable or None, default=None
        Function of the number of finished steps, the total number of steps and a description of the current step.
    command_line : str, default=""
        Command to show on the page.

    Returns
    -------
    Audit
        Result with DataFrames, `to_json` and `to_html`. Print it for a summary; notebooks display its page.

    Examples
    --------
    >>> from labelsieve import audit
    >>> from labelsieve.datasets import make_pml
    >>> X, Y = make_pml(n_samples=300, n_features=30, shuffle=False, random_state=0)
    >>> found = audit(X, Y, name="planted")
    >>> found
    Audit('planted': 300 rows, 30 columns, 5 labels, keep 4)
    >>> found.selected  # x0 to x4 are informative
    ['x2', 'x4', 'x1', 'x0']
    """
    dataset = data if isinstance(data, Dataset) else read(data, labels, name=name or None)
    check_count(random_state, "random_state", minimum=0)
    _check_table(dataset)
    if n_columns is not None:
        count_selected(n_columns, dataset.n_columns, "columns", "n_columns")
    settings = FAST_SETTINGS if fast else SETTINGS
    return inspect_dataset(
        dataset,
        EvidenceSelector(random_state=random_state),
        n_columns="auto" if n_columns is None else n_columns,
        with_sizes=True,
        fdr=FDR,
        check_labels=True,
        checked=checked,
        label_options={"which": "both", "each_row_has_truth": each_row_has_truth},
        random_state=random_state,
        progress=progress,
        command_line=command_line,
        **settings,
    )


def _check_table(dataset: Dataset) -> None:
    """Raise if the dataset cannot be audited."""
    if dataset.is_lazy:
        raise ValueError(
            "an audit needs all rows in memory, got rows that are read in blocks. Audit a subset of the rows."
        )
    n_rows = dataset.X.shape[0]
    if n_rows < FEWEST_ROWS:
        raise ValueError(f"an audit needs at least {FEWEST_ROWS} rows, got {n_rows}.")
    if not varying_labels(dataset.candidates).any():
        raise ValueError(
            "an audit needs a label that some but not all rows have, got none. Check which columns are labels."
        )


def inspect_dataset(
    dataset: Dataset,
    selector: BaseSelector | None = None,
    *,
    command: str = "audit",
    method: str = "evidence",
    n_columns: int | float | str | None = None,
    with_sizes: bool = False,
    n_random: int = 0,
    n_permutations: int = 0,
    n_resamples: int = 0,
    fdr: float | None = None,
    check_labels: bool = False,
    checked: Any = None,
    label_options: Mapping[str, Any] | None = None,
    random_state: int = 0,
    command_line: str = "",
    progress: Progress | None = None,
) -> Audit:
    """Compute the requested parts of an `Audit`.

    Ranking, size curve, permutation test and subsamples need a `selector`, which keeps its own random state. Rows that
    are read in blocks can only be ranked. `n_columns` is a number or fraction of columns, "auto" for the number with
    the best precision on held-out rows, or None for that of the selector. The size curve is computed for "auto" or if
    `with_sizes` is true. `n_random`, `n_permutations` and `n_resamples` are the numbers of random column orders,
    permutations and subsamples. With `fdr`, columns get p-values and q-values. `checked` and `label_options` are passed
    to `find_label_issues`.
    """
    n_folds = min(_N_FOLDS, dataset.X.shape[0] // 2) if with_sizes or n_columns == "auto" else 0
    n_steps = (selector is not None) + n_folds + (n_permutations > 0) + (fdr is not None) + check_labels
    step = _Steps(n_steps + n_resamples, progress)
    parts: dict[str, Any] = {}
    settings: dict[str, str] = {}
    with _record_warnings() as caught:
        if selector is not None:
            step(f"fitting {method}", 0)
            ranking, parts = _rank(dataset, selector, method, n_columns, with_sizes, n_random, step, caught)
            parts["ranking"] = ranking
            if not dataset.is_lazy:
                for hidden in columns_with_hidden_evidence(dataset):
                    warnings.warn(str(hidden), UserWarning, stacklevel=2)
            settings["Method"] = type(ranking.fitted).__name__
            for name, value in ranking.parameters.items():
                settings[name] = _REDUNDANCIES.get(value, str(value)) if name == "redundancy" else str(value)
            can_permute = dataset.is_lazy or RowOrders(dataset.X.shape[0], dataset.groups).is_possible
            if n_permutations and can_permute:
                step("permuting the labels")
                X, Y = dataset.X, dataset.candidates
                if (X.nnz if is_sparse(X) else X.size) * Y.shape[1] >= _LARGE_PRODUCT:
                    n_permutations = min(n_permutations, 39)  # enough for a 5% level
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)  # the audit shows a banner instead
                    parts["evidence_test"] = evidence_test(
                        X,
                        Y,
                        n_permutations=n_permutations,
                        row_groups=dataset.groups,
                        random_state=random_state,
                    )
                settings["Permutations"] = str(len(parts["evidence_test"].permuted))
            # An audit has other answers; elsewhere the tests were asked for.
            if fdr is not None and can_permute and (command != "audit" or can_be_tested(dataset.candidates)):
                step("testing the columns")
                controlled = controlled_selection(
                    dataset.X,
                    dataset.candidates,
                    fdr=fdr,
                    groups=dataset.column_of,
                    row_groups=dataset.groups,
                    random_state=random_state,
                )
                names = np.array([dataset.columns[column].name for column in dataset.ranked], dtype=object)
                controlled = replace(controlled, names=names, is_cleaned=is_cleaned(dataset))
                parts["controlled"] = controlled
                if controlled.is_cleaned:
                    warnings.warn(controlled.promise, UserWarning, stacklevel=2)
            rng = as_generator(random_state)
            samples = subsamples(dataset.X.shape[0], n_resamples, rng, dataset.groups)
            if command == "audit" and n_resamples and not have_candidates(dataset.candidates, samples):
                n_resamples = 0
            if n_resamples:
                step("drawing subsamples")
                parts["stability"] = resample(
                    ranking.selector,
                    dataset.X,
                    dataset.candidates,
                    n_resamples=n_resamples,
                    row_groups=dataset.groups,
                    random_state=random_state,
                    # Only iterative methods are slow enough to be worth starting processes.
                    n_jobs=-1 if ranking.is_iterative else None,
                    progress=lambda done, total: step("drawing subsamples"),
                )
                settings["Subsamples"] = str(n_resamples)
        if check_labels:
            step("finding label issues", int(bool(parts)))
            parts["label_issues"] = explain_label_issues(dataset, checked=checked, **(label_options or {}))
            settings["Support"] = parts["label_issues"].model
    step("done")
    # Deprecation warnings and the like are of no use to readers of the result.
    for_users = [warning for warning in caught if issubclass(warning.category, UserWarning)]
    return Audit(
        dataset,
        command,
        **parts,
        warnings=tuple(dict.fromkeys(one_line(warning.message) for warning in for_users)),
        provenance={
            "Program": f"labelsieve {__version__}",
            **({"Command": command_line} if command_line else {}),
            **({"Data SHA-256": dataset.checksum} if dataset.checksum else {}),
            **settings,
            "Seed": str(random_state),
        },
    )


@contextmanager
def _record_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Collect all warnings and issue them again at the end."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught
    for warning in caught:
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def _rank(
    dataset: Dataset,
    selector: BaseSelector,
    method: str,
    n_columns: int | float | str | None,
    with_sizes: bool,
    n_random: int,
    step: _Steps,
    caught: Sequence[warnings.WarningMessage],
) -> tuple[Ranking, dict[str, Any]]:
    """Rank the columns and cross-validate their number if requested; return the ranking and other parts."""
    X, Y = dataset.X, dataset.candidates
    wanted = selector.n_features_to_select if n_columns is None else n_columns
    is_automatic = wanted == "auto"
    parts: dict[str, Any] = {}
    if dataset.is_lazy:
        fitted: Any = clone(selector).set_params(n_features_to_select=wanted).fit(X, Y)
    else:
        column_of = np.searchsorted(dataset.ranked, dataset.column_of)
        by_column = ColumnSelector(selector, column_of, None if is_automatic else wanted)
        if is_automatic and X.shape[0] >= FEWEST_ROWS:
            found = _sizes(by_column, X, Y, dataset.groups, n_random, step)
            parts, by_column.n_features_to_select, chosen = found
            by_column.selector = clone(selector).set_params(**chosen)
        fitted = by_column.fit(X, Y, row_groups=dataset.groups)
        if with_sizes and not is_automatic:
            parts, *_ = _sizes(fitted, X, Y, dataset.groups, n_random, step)
    converged = not any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    return Ranking(dataset, method, fitted, not is_automatic, converged), parts


def _sizes(
    selector: ColumnSelector, X: Any, Y: Any, row_groups: Any, n_random: int, step: _Steps
) -> tuple[dict[str, Any], int, dict[str, Any]]:
    """Cross-validate numbers of columns; return parts of the audit, the number to keep and chosen parameters.

    If the selector is fitted, its redundancy is kept and its number of columns is included.
    """
    method, sizes = selector.selector, None
    if not isinstance(method, EvidenceSelector):
        curve = choose_size(selector, X, Y, row_groups=row_groups)
        return {"size_curve": curve}, curve.best, {}
    if hasattr(selector, "selector_"):
        method = clone(method).set_params(redundancy=selector.selector_.redundancy_)
        grid = size_grid(len(selector.columns_), method.max_steps, is_wide=X.shape[1] > LARGEST_GRAM)
        sizes = np.union1d(grid, [selector.n_features_])
    found = evaluate_sizes(
        method,
        X,
        Y,
        column_of=np.asarray(selector.column_of),
        sizes=sizes,
        n_random=n_random,
        row_groups=row_groups,
        on_fold=lambda: step("cross-validating the number of columns"),
    )
    parts = {
        "size_curve": found.curve,
        "random_precision": found.random if n_random else None,
        "baseline_precision": found.baseline,
    }
    return parts, found.n_selected, {"redundancy": found.redundancy}


class _Steps:
    """Counter of finished steps that calls a progress function."""

    def __init__(self, total: int, report: Progress | None) -> None:
        self._total, self._report, self._done = total, report, 0

    def __call__(self, activity: str, n_finished: int = 1) -> None:
        self._done = min(self._done + n_finished, self._total)
        if self._report is not None:
            self._report(self._done, self._total, activity)
