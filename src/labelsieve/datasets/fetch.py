"""Load a dataset of the catalogue by name: find or download its files, verify and read them.

Four environment variables decide where files come from:

``LABELSIEVE_DATA``
    A folder of your own with ``<name>/<file>``. It is searched first and never written to.
``LABELSIEVE_CACHE``
    Where downloads are kept; by default the system's cache folder.
``LABELSIEVE_MIRROR``
    Address of a server that holds ``<name>/<file>``, e.g. of an institute; asked before the public ones.
``LABELSIEVE_OFFLINE``
    Set to 1 to forbid downloads; unset, empty, 0, false, no or off allow them.

A file is used only if its SHA-256 is the one of the catalogue. pooch downloads to a temporary file and renames it when
it is complete and verified, so the cache never holds a damaged file.
"""

from __future__ import annotations

import difflib
import hashlib
import logging
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import numpy as np

from labelsieve.datasets.catalog import CATALOG, CatalogEntry, CatalogFile
from labelsieve.io.dataset import Dataset
from labelsieve.io.errors import DatasetError
from labelsieve.io.reading import read

_LOG = logging.getLogger("labelsieve")

# Seconds to wait for a connection, and for the next bytes.
_TIMEOUT = (10.0, 30.0)
# Values of LABELSIEVE_OFFLINE that allow downloads.
_ONLINE = ("", "0", "false", "no", "off")

# Given a file name, returns an object with `total`, `update(n)`, `reset()` and `close()`, as pooch wants it.
ProgressFactory = Callable[[str], Any]


def load(name: str) -> Dataset:
    """Load a dataset of the catalogue.

    The files come from ``LABELSIEVE_DATA``, else from the cache, else from the network. Checksums are verified before
    reading, size and cardinality after it.

    Parameters
    ----------
    name : str
        Name in `CATALOG`; case does not matter, nor ``-`` for ``_``.

    Returns
    -------
    Dataset
        The data as published: nominal features are category codes, train and test parts follow one another.

    Raises
    ------
    DatasetError
        The name is unknown, or a file is missing or differs from the catalogue.

    Examples
    --------
    >>> from labelsieve.datasets.fetch import find_entry, load
    >>> find_entry("CAL500").shape
    (502, 68, 174)
    >>> load("CAL500").Y.shape  # doctest: +SKIP
    (502, 174)
    """
    entry = find_entry(name)
    dataset = _from_files(entry) if entry.make is None else entry.make()
    _verify_figures(entry, dataset)
    return dataset


def _from_files(entry: CatalogEntry) -> Dataset:
    """Read the files of an entry, without the columns that only name the rows."""
    paths = fetch(entry.name)
    labels = next((path for path in paths.values() if path.suffix == ".xml"), None)
    data = [path for path in paths.values() if path != labels]
    dataset = read(data, labels=labels, ignore=entry.identifiers or None, name=entry.name)
    return replace(dataset, source=entry.files[0].urls[0])


def fetch(name: str, *, progress: ProgressFactory | None = None) -> dict[str, Path]:
    """Find or download the files of a dataset and return their verified paths; no paths if it is built in.

    Parameters
    ----------
    name : str
        Name in `CATALOG`.
    progress : callable or None, default=None
        Called with a file's name when its download begins; returns a progress bar as pooch takes it.
    """
    entry = find_entry(name)
    return {file.name: _obtain(entry, file, progress) for file in entry.files}


def is_known(name: str) -> bool:
    """Return whether the catalogue has a dataset of that name."""
    return _key(name) in CATALOG


def _key(name: str) -> str:
    """Spell a name as the catalogue does."""
    return name.lower().replace("-", "_")


def find_entry(name: str) -> CatalogEntry:
    """Return the entry of that name, or say which names come close."""
    key = _key(name)
    if key not in CATALOG:
        close = difflib.get_close_matches(key, CATALOG, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else f"known are {', '.join(CATALOG)}."
        raise DatasetError(f"expected the name of a dataset in the catalogue, got {name!r}; {hint}")
    return CATALOG[key]


def availability(name: str) -> Literal["built in", "local", "cache", "download"]:
    """Tell where `load` would take the files from, without checking them: the farthest place counts."""
    entry = find_entry(name)
    if not entry.files:
        return "built in"
    local, cache = _local_folder(), cache_folder()
    missing = [file for file in entry.files if not (local and (local / entry.name / file.name).is_file())]
    if not missing:
        return "local"
    return "cache" if all((cache / entry.name / file.name).is_file() for file in missing) else "download"


def cache_folder() -> Path:
    """Return the folder that keeps downloads."""
    import pooch

    return Path(os.environ.get("LABELSIEVE_CACHE") or pooch.os_cache("labelsieve")).expanduser()


def _local_folder() -> Path | None:
    """Return the folder that ``LABELSIEVE_DATA`` names, if any."""
    named = os.environ.get("LABELSIEVE_DATA")
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise DatasetError(f"LABELSIEVE_DATA must name a folder, got {named!r}; correct or unset it.")
    return folder


def _obtain(entry: CatalogEntry, file: CatalogFile, progress: ProgressFactory | None) -> Path:
    """Return a verified path of one file, from the nearest place that has it."""
    local = _local_folder()
    if local is not None and (own := local / entry.name / file.name).is_file():
        found = _sha256(own)
        if found != file.sha256:
            altered = f" (altered copies are known: {entry.altered})" if entry.altered else ""
            raise DatasetError(
                f"{own}: expected SHA-256 {file.sha256}, got {found}{altered}; replace or remove the file."
            )
        return own

    cached = cache_folder() / entry.name / file.name
    if cached.is_file():
        if _sha256(cached) == file.sha256:
            return cached
        _LOG.warning("%s is damaged and will be downloaded again", cached)
    if os.environ.get("LABELSIEVE_OFFLINE", "").strip().lower() not in _ONLINE:
        raise DatasetError(
            f"{file.name} of {entry.name!r} is not here and LABELSIEVE_OFFLINE forbids to download it; "
            f"unset LABELSIEVE_OFFLINE, or put the file at {cached}."
        )
    _download(entry, file, cached, progress)
    return cached


def _download(entry: CatalogEntry, file: CatalogFile, target: Path, progress: ProgressFactory | None) -> None:
    """Try the addresses of a file in turn until one gives the right content."""
    import pooch
    import requests.exceptions

    pooch.get_logger().setLevel(logging.WARNING)
    own_mirror = os.environ.get("LABELSIEVE_MIRROR")
    urls = [f"{own_mirror.rstrip('/')}/{entry.name}/{quote(file.name)}"] if own_mirror else []
    failures = []
    for url in [*urls, *file.urls]:
        _LOG.info("downloading %s", url)
        bar = progress(file.name) if progress else False
        downloader = pooch.HTTPDownloader(progressbar=bar, chunk_size=2**12, timeout=_TIMEOUT)
        try:
            pooch.retrieve(url, f"sha256:{file.sha256}", file.name, target.parent, downloader=downloader)
            target.chmod(0o644)  # pooch's files are private, but a cache may be shared
        except requests.exceptions.RequestException as error:  # an OSError too, so it comes first
            # Only the text of an HTTP error is short.
            is_http = isinstance(error, requests.exceptions.HTTPError)
            failures.append(f"{url}: {error if is_http else type(error).__name__}")
        except ValueError as error:
            altered = f" (altered copies are known: {entry.altered})" if entry.altered else ""
            failures.append(f"{url}: {error}{altered}")
        except OSError as error:
            raise DatasetError(
                f"{target} cannot be written ({error.strerror or error}); make room or rights there, "
                "or set LABELSIEVE_CACHE to another folder."
            ) from error
        else:
            return
        _LOG.warning("download failed: %s", failures[-1])
    raise DatasetError(
        f"{file.name} of {entry.name!r} could not be downloaded ({'; '.join(failures)}); "
        f"check the connection, set LABELSIEVE_MIRROR, or put the file at {target}."
    )


def _sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _verify_figures(entry: CatalogEntry, dataset: Dataset) -> None:
    """Check size and cardinality against the catalogue: the reader, too, may err."""
    n_samples, n_features = dataset.X.shape
    shape = (n_samples, n_features, len(dataset.label_names))
    for what, expected, found in zip(("samples", "features", "labels"), entry.shape, shape, strict=True):
        if expected is not None and found != expected:
            raise DatasetError(f"{entry.name!r} must have {expected} {what}, got {found}; report this.")
    for what, mean, labels in (
        ("cardinality", entry.cardinality, dataset.Y),
        ("candidate cardinality", entry.candidate_cardinality, dataset.Y_candidates),
    ):
        found_mean = None if labels is None else float(labels.sum(dtype=np.int64)) / n_samples
        # The catalogue's figures are rounded to three digits.
        if mean is not None and (found_mean is None or abs(found_mean - mean) > 0.0005 + 1e-9):
            raise DatasetError(f"{entry.name!r} must have {what} {mean}, got {found_mean!r}; report this.")
