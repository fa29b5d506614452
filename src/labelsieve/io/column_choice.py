"""Choose label, candidate and ignored columns by name, pattern, count or prefix."""

from __future__ import annotations

import difflib
import fnmatch
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labelsieve.io.errors import DatasetError, Fail
from labelsieve.io.mulan_xml import labels_from_xml
from labelsieve.io.options import ReadOptions
from labelsieve.io.source import Source

#: Prefixes of column names in files of `write`, so that `read` needs no arguments.
LABEL_PREFIX, CANDIDATE_PREFIX, NOMINAL_PREFIX = "label:", "candidate:", "nominal:"
_COUNT = re.compile(r"\s*[-+]?\d+\s*")


@dataclass(frozen=True)
class ColumnChoice:
    """Positions of label, candidate and ignored columns. None if the labels must be inferred from the cells."""

    labels: list[int] | None
    candidates: list[int]
    ignored: list[int]
    #: Separate files that contain the labels or candidates instead.
    label_file: Path | None = None
    candidate_file: Path | None = None
    #: True if the label columns have the prefixes of `write`.
    is_declared: bool = False

    def features(self, n_columns: int, fail: Fail) -> list[int]:
        """Return the positions of all other columns. Raise without labels or without features."""
        if self.labels is None:
            raise missing_labels_error((), fail)
        taken = {*(self.labels or ()), *self.candidates, *self.ignored}
        features = [position for position in range(n_columns) if position not in taken]
        if not features:
            raise fail("must contain feature columns, got only labels and ignored columns; check `labels`")
        return features


def choose_columns(
    names: Sequence[str],
    options: ReadOptions,
    fail: Fail,
    *,
    declared: Sequence[str] | None = None,
    taken: Iterable[int] = (),
) -> ColumnChoice:
    """Choose columns by `options` and by names and declarations in the file.

    `declared` are the labels that the file declares, used if `options` does not name any. `taken` are
    positions of columns that cannot be labels or features.
    """
    wanted = options.labels
    label_file, candidate_file = _path_of(wanted, names), _path_of(options.candidates, names)
    if label_file is not None and label_file.suffix.lower() == ".xml":
        source = Source(label_file)
        declared, wanted, label_file = labels_from_xml(source, source.content, names, fail), None, None
    ignored = {*taken}
    if options.ignore:
        ignored.update(named_columns(names, options.ignore, fail, "ignored"))
    prefixed = [position for position, name in enumerate(names) if name.startswith(CANDIDATE_PREFIX)]
    marked = [position for position, name in enumerate(names) if name.startswith(LABEL_PREFIX)]
    candidates = [] if candidate_file is not None else prefixed
    if options.candidates is not None and candidate_file is None:
        candidates = named_columns(names, options.candidates, fail, "candidate")
    candidates = [position for position in candidates if position not in ignored]
    labels: list[int] | None
    is_declared = False
    if label_file is not None:
        labels = []
    elif wanted is not None:
        labels = _wanted_columns(names, wanted, {*ignored, *candidates}, fail)
    elif declared is not None:
        labels = named_columns(names, declared, fail)
    else:
        has_any = candidates or options.candidates is not None or not ignored.issuperset(marked)
        labels = marked if has_any else None
        is_declared = options.candidates is None and labels is not None
    if labels is not None:
        labels = [position for position in labels if position not in ignored and position not in candidates]
        # True labels must not become features next to candidates, nor the other way round.
        ignored |= {*prefixed, *marked}.difference(labels, candidates)
        # Candidates with the same names as the labels follow the order of the labels.
        by_name = {plain_name(names[position]): position for position in candidates}
        wanted_order = [plain_name(names[position]) for position in labels]
        if labels and set(by_name) == set(wanted_order):
            candidates = [by_name[name] for name in wanted_order]
    if labels == [] and not (candidates or label_file or candidate_file):
        raise missing_labels_error((), fail)
    return ColumnChoice(labels, candidates, sorted(ignored), label_file, candidate_file, is_declared)


def numbered_labels(count: int) -> list[str]:
    """Return default names of labels in a file without a header."""
    return [f"label{number}" for number in range(count)]


def plain_name(name: str) -> str:
    """Remove the prefix of `write` from a name."""
    for prefix in (LABEL_PREFIX, CANDIDATE_PREFIX, NOMINAL_PREFIX):
        if name.startswith(prefix) and len(name) > len(prefix):
            return name[len(prefix) :]
    return name


def _path_of(wanted: Any, names: Sequence[str]) -> Path | None:
    """Return `wanted` as a path if it is a file rather than a column."""
    if isinstance(wanted, os.PathLike):
        return Path(wanted)
    if not isinstance(wanted, str) or wanted in names:
        return None
    return Path(wanted) if wanted.lower().endswith(".xml") or os.path.isfile(wanted) else None


def _wanted_columns(names: Sequence[str], wanted: Any, taken: set[int], fail: Fail) -> list[int]:
    """Return the positions of the label columns, given by names, patterns or a count."""
    is_count = isinstance(wanted, int) and not isinstance(wanted, bool)
    if not is_count and (not isinstance(wanted, str) or wanted in names or not _COUNT.fullmatch(wanted)):
        return named_columns(names, wanted, fail)
    count = int(wanted)
    free = [position for position in range(len(names)) if position not in taken]
    if not 0 < abs(count) < len(free):
        raise fail(
            f"must keep at least one label and one feature of {len(free)} columns, got `labels={count!r}`; "
            "pass the number of label columns (negative to count from the first column)",
        )
    return free[-count:] if count > 0 else free[:-count]


def named_columns(names: Sequence[str], wanted: Any, fail: Fail, role: str = "label") -> list[int]:
    """Return the positions of columns by names or patterns, in file order.

    A string may contain several names or patterns, separated by commas.
    """
    position_of = {name: position for position, name in enumerate(names)}
    chosen: set[int] = set()
    items = [wanted] if isinstance(wanted, str) else [*wanted]
    for item in items:
        if not isinstance(item, str):
            raise fail(f"{role} names must be strings, got {item!r}; pass names, a pattern or a count")
        if item in position_of:
            chosen.add(position_of[item])
        elif matches := [position for position, name in enumerate(names) if fnmatch.fnmatchcase(name, item)]:
            chosen.update(matches)
        elif "," in item:
            items += [part.strip() for part in item.split(",") if part.strip()]
        else:
            raise unknown_column_error(item, names, fail)
    if not chosen:
        raise fail(f"must have at least one {role} column, got an empty list; name one")
    return sorted(chosen)


def unknown_column_error(name: str, names: Sequence[str], fail: Fail) -> DatasetError:
    """Build the error for a column that does not exist."""
    # Comparing strings takes quadratic time, so long names are cut.
    close = difflib.get_close_matches(name[:50], [known[:50] for known in names[:5000]], n=3, cutoff=0.0)
    return fail(f"has no column {name[:80]!r}; the closest names are {', '.join(map(repr, close))}")


def require_unique(row_ids: Iterable[str], column: str, fail: Fail) -> None:
    """Raise if a column has empty or duplicate row names."""
    counts = Counter(row_ids)
    name, times = counts.most_common(1)[0]
    if times > 1 or "" in counts:
        problem = "an empty cell" if "" in counts else f"{name[:80]!r} {times} times"
        raise fail(
            f"column {column!r} must have a unique name for every row, got {problem}; correct it, or omit `id`"
        )


def missing_labels_error(names: Sequence[str], fail: Fail) -> DatasetError:
    """Build the error for a table whose label columns are unknown. `names` are likely ones."""
    likely = f" (perhaps {' or '.join(map(repr, names[:4]))})" if names else ""
    return fail(
        f"has no known label columns{likely}; pass `labels`: names, a pattern such as 'label_*', the number of label "
        "columns at the end, a Mulan XML file or a second table",
    )
