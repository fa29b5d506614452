"""Choose the columns that are labels, candidates or neither, by name, pattern, count or prefix."""

from __future__ import annotations

import difflib
import fnmatch
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labelsieve.io.errors import DatasetError, Fail
from labelsieve.io.mulan_xml import xml_labels
from labelsieve.io.options import ReadOptions
from labelsieve.io.source import Source

#: `write` says in the name of a column what it is, so that reading needs no arguments.
LABEL_PREFIX, CANDIDATE_PREFIX, NOMINAL_PREFIX = "label:", "candidate:", "nominal:"


@dataclass(frozen=True)
class ColumnChoice:
    """Positions of label, candidate and ignored columns; None if the labels are to be found by content."""

    labels: list[int] | None
    candidates: list[int]
    ignored: list[int]
    #: Second files that hold them instead.
    label_file: Path | None = None
    candidate_file: Path | None = None
    #: Whether the labels carry the prefixes of `write`.
    is_declared: bool = False

    def features(self, n_columns: int, fail: Fail) -> list[int]:
        """Return the positions of all other columns; raise if there are none, or no labels."""
        if not (self.labels or self.candidates or self.label_file or self.candidate_file):
            raise no_labels_said((), fail)
        taken = {*(self.labels or ()), *self.candidates, *self.ignored}
        features = [place for place in range(n_columns) if place not in taken]
        if not features:
            raise fail("has no feature columns left besides its labels; check `labels`")
        return features


def choose_columns(
    names: Sequence[str],
    options: ReadOptions,
    fail: Fail,
    *,
    declared: Sequence[str] | None = None,
    taken: Iterable[int] = (),
) -> ColumnChoice:
    """Choose columns by what `options` and the file say.

    `declared` are the labels of the file, taken if the options name none; `taken` are columns that are neither.
    """
    wanted = options.labels
    label_file, candidate_file = _file_of(wanted, names), _file_of(options.candidates, names)
    if label_file is not None and label_file.suffix.lower() == ".xml":
        source = Source(label_file)
        declared, wanted, label_file = xml_labels(source, source.content, names, fail), None, None
    ignored = {*taken}
    if options.ignore:
        ignored.update(named_columns(names, options.ignore, fail, "ignored"))
    prefixed = [place for place, name in enumerate(names) if name.startswith(CANDIDATE_PREFIX)]
    if options.candidates is None:
        candidates = prefixed
    elif candidate_file is not None:
        candidates = []
    else:
        candidates = named_columns(names, options.candidates, fail, "candidate")  # type: ignore[arg-type]  # not a path
    candidates = [place for place in candidates if place not in ignored]
    marked = [
        place
        for place, name in enumerate(names)
        if name.startswith(LABEL_PREFIX) and place not in ignored and place not in candidates
    ]
    is_declared = False
    labels: list[int] | None
    if label_file is not None:
        labels = []
    elif wanted is not None:
        labels = _wanted_columns(names, wanted, {*ignored, *candidates}, fail)
    elif declared is not None:
        labels = named_columns(names, declared, fail)
    else:
        labels = marked or ([] if candidates or options.candidates is not None else None)
        is_declared = options.candidates is None and labels is not None
    if labels is not None:
        labels = [place for place in labels if place not in ignored and place not in candidates]
        # The truth next to candidates, or the other way round, must not become a feature.
        ignored |= {place for place in (*prefixed, *marked) if place not in (*labels, *candidates)}
        if labels and candidates:
            candidates = _paired(names, labels, candidates)
    return ColumnChoice(labels, candidates, sorted(ignored), label_file, candidate_file, is_declared)


def _paired(names: Sequence[str], labels: Sequence[int], candidates: list[int]) -> list[int]:
    """Return the candidate columns in label order if their names say so, otherwise as given."""
    by_label = {plain_name(names[place]): place for place in candidates}
    wanted = [plain_name(names[place]) for place in labels]
    return [by_label[label] for label in wanted] if set(by_label) == set(wanted) else candidates


def label_names(names: Sequence[str], places: Iterable[int], *, is_headless: bool) -> list[str]:
    """Return the names of label columns; a file without a header numbers its labels."""
    if is_headless:
        return [f"label{number}" for number, _ in enumerate(places)]
    return [plain_name(names[place]) for place in places]


def plain_name(name: str) -> str:
    """Return a name without the prefix of `write`."""
    for prefix in (LABEL_PREFIX, CANDIDATE_PREFIX, NOMINAL_PREFIX):
        if name.startswith(prefix) and len(name) > len(prefix):
            return name[len(prefix) :]
    return name


def _file_of(wanted: Any, names: Sequence[str]) -> Path | None:
    """Return the file meant by `wanted`, if it is a file and not a column."""
    if isinstance(wanted, os.PathLike):
        return Path(wanted)
    if not isinstance(wanted, str) or wanted in names:
        return None
    return Path(wanted) if wanted.lower().endswith(".xml") or os.path.isfile(wanted) else None


def _wanted_columns(names: Sequence[str], wanted: Any, taken: set[int], fail: Fail) -> list[int]:
    """Return the label columns that the caller names or counts."""
    try:
        is_count = isinstance(wanted, (int, str)) and not isinstance(wanted, bool) and wanted not in names
        count = int(wanted) if is_count else None
    except ValueError:
        count = None
    if count is None:
        return named_columns(names, wanted, fail)
    free = [place for place in range(len(names)) if place not in taken]
    if not 0 < abs(count) < len(free):
        raise fail(
            f"`labels={count!r}`"
            f" must leave at least one feature of {len(free)} columns and at least one label; "
            "give the number of label columns (negative for the first columns)",
        )
    return free[-count:] if count > 0 else free[:-count]


def named_columns(
    names: Sequence[str], wanted: str | Sequence[str], fail: Fail, role: str = "label"
) -> list[int]:
    """Return the positions of the columns with the wanted names or patterns, in file order.

    One string may hold several names or patterns, separated by commas.
    """
    position = {name: place for place, name in enumerate(names)}
    if isinstance(wanted, str):
        wanted = (
            [wanted] if wanted in position else [part.strip() for part in wanted.split(",") if part.strip()]
        )
    chosen: set[int] = set()
    for item in wanted:
        if not isinstance(item, str):
            raise fail(f"{role} names must be strings, got {item!r}; give names, a pattern or a count")
        if item in position:
            chosen.add(position[item])
            continue
        matches = [place for place, name in enumerate(names) if fnmatch.fnmatchcase(name, item)]
        if not matches and "," in item:
            chosen.update(named_columns(names, [part.strip() for part in item.split(",")], fail, role))
            continue
        if not matches:
            # Bounded, since comparing long texts takes quadratic time.
            close = difflib.get_close_matches(
                item[:50], [name[:50] for name in names[:5000]], n=3, cutoff=0.0
            )
            raise fail(f"has no column {item[:80]!r}; the closest names are {', '.join(map(repr, close))}")
        chosen.update(matches)
    if not chosen:
        raise fail(f"got an empty list of {role} columns; name at least one")
    return sorted(chosen)


def require_unique(row_ids: Iterable[str], column: str, fail: Fail) -> None:
    """Raise if a column does not name every row, and each differently."""
    seen: set[str] = set()
    for name in row_ids:
        if name in seen or not name:
            problem = f"{name[:80]!r} twice" if name else "a row without a name"
            raise fail(
                f"column {column!r} must name every row once, got {problem}; name all rows, or leave out `id`",
            )
        seen.add(name)


def no_labels_said(names: Sequence[str], fail: Fail) -> DatasetError:
    """Build the error for a table without known labels; `names` are likely ones."""
    which = f", {' or '.join(map(repr, names[:4]))}" if names else ""
    return fail(
        f"does not say which columns are labels{which}; give `labels`"
        " (names, a pattern such as 'label_*', the number of last columns, a Mulan XML file or a second table)",
    )
