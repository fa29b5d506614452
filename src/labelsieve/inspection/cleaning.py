"""Copies of a dataset without the wrong labels of a review and with the missing ones."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from labelsieve._numerics.candidates import fill_unknown
from labelsieve._numerics.sparse import is_sparse
from labelsieve._text import count
from labelsieve.inspection._reviews import OPEN, Review
from labelsieve.io.copies import can_copy, write_corrected
from labelsieve.io.dataset import Dataset
from labelsieve.io.source import Source
from labelsieve.io.writing import replacing, write


@dataclass(frozen=True)
class CleanedCopy:
    """File that `write_cleaned` wrote, and what a reader should know about it."""

    path: Path
    n_removed: int
    n_added: int
    summary: str
    notes: tuple[str, ...]


def write_cleaned(dataset: Dataset, review: Review, path: Path) -> CleanedCopy:
    """Write a copy of the dataset with the corrections of a review.

    A table keeps its format and all other cells. Data that change format are written as numbers. A file next to the
    copy records if the corrections depend on the columns.
    """
    cleaned = corrected(dataset, review)
    is_copy = dataset._origin is not None and can_copy(dataset._origin.source.path, path)
    is_named, notes = False, []
    removed, added = (
        list(zip(review.rows[chosen].tolist(), review.labels[chosen].tolist(), strict=True))
        for chosen in (review.is_error & ~review.is_missing, review.is_error & review.is_missing)
    )
    if is_copy:
        note = write_corrected(dataset, removed, added, path)
        notes += [] if note is None else [note]
    else:
        is_named = dataset.id_column is not None and path.suffix.lower() in (".csv", ".tsv")
        names = (str(dataset.id_column), list(map(str, dataset.row_ids))) if is_named else None
        write(cleaned, path, row_names=names)
    provenance = provenance_file(path)
    if depends_on_columns(review) or is_cleaned(dataset):
        with replacing(provenance) as stream:
            stream.write(provenance_text(Source(path).checksum, len(removed), len(added)).encode())
        notes.append(
            f"{provenance.name} records that labels were corrected with the help of the columns. Rank and test columns "
            "on the original file"
        )
    else:
        provenance.unlink(missing_ok=True)
    n_unsure = int(((review.answers != OPEN) & ~review.is_decided).sum())
    unsure = f", {n_unsure} unsure" if n_unsure else ""
    n_candidates = int(fill_unknown(dataset.candidates).sum())
    had, has = (
        np.asarray(fill_unknown(part.candidates).sum(axis=1)).ravel() > 0 for part in (dataset, cleaned)
    )
    if (had & ~has).any():
        notes.append(f"{count(int(np.count_nonzero(had & ~has)), 'row')} lost their last label")
    if any(column.role == "ignored" for column in dataset.columns) and not is_copy:
        notes.append(f"{path} does not contain the ignored columns")
    if dataset.is_table and dataset._origin is None:
        notes.append(f"{path} contains encoded features. To keep the original columns, pass a single file")
    if dataset.id_column is not None and not is_named and not is_copy:
        notes.append(f"{path} does not contain the row names. Write .csv or .tsv to keep them")
    summary = (
        f"{count(len(removed), 'label')} removed, {len(added)} added; the other {n_candidates - len(removed)} labels "
        f"stay{unsure}"
    )
    return CleanedCopy(path, len(removed), len(added), summary, tuple(notes))


def corrected(dataset: Dataset, review: Review) -> Dataset:
    """Return the dataset without the candidates that are wrong, and with the missing labels that are right."""
    candidates = dataset.candidates
    if is_sparse(candidates):
        sign = np.where(review.is_missing, 1, -1)[review.is_error]
        places = review.rows[review.is_error], review.labels[review.is_error]
        changes = sp.csr_array((sign, places), shape=candidates.shape)
        cleaned = sp.csr_array((candidates.astype(np.float64) + changes).astype(candidates.dtype))
        cleaned.eliminate_zeros()
    else:
        cleaned = candidates.copy()
        is_error = review.is_error
        cleaned[review.rows[is_error], review.labels[is_error]] = review.is_missing[is_error]
    role = "Y" if dataset.Y_candidates is None else "Y_candidates"
    return replace(dataset, **{role: cleaned})


def depends_on_columns(review: Review) -> bool:
    """Return True if corrections were chosen with the help of the columns, not only by random draws from all."""
    of_all = [draw.number for draw in review.draws if draw.is_of_all]
    return bool((review.is_error & ~np.isin(review.numbers, of_all)).any())


def provenance_file(path: Path) -> Path:
    """Return the file next to a corrected copy that says how it was corrected."""
    return path.with_name(f"{path.name}.review.json")


def provenance_text(checksum: str, n_removed: int, n_added: int) -> str:
    """Return the content of `provenance_file` for a copy with this checksum."""
    return (
        json.dumps({"sha256": checksum, "removed": n_removed, "added": n_added, "depends_on_columns": True})
        + "\n"
    )


def is_cleaned(dataset: Dataset) -> bool:
    """Return True if the labels of a file were corrected with the help of its columns."""
    path = provenance_file(Path(dataset.source)) if dataset.source else None
    if path is None or not path.is_file():
        return False
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("sha256") == dataset.checksum and bool(dataset.checksum)
