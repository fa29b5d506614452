"""Find or download the files of a dataset in the catalogue, verify and read them.

Four environment variables control where the files come from:

``LABELSIEVE_DATA``
    Folder of your own files, ``<name>/<file>``. It is searched first and never written to.
``LABELSIEVE_CACHE``
    Folder for downloads. Default: the cache folder of the system.
``LABELSIEVE_MIRROR``
    URL of a server with ``<name>/<file>``, e.g. at your institute. It is tried before the public ones.
``LABELSIEVE_OFFLINE``
    Set to 1 to forbid downloads. Unset, empty, 0, false, no and off allow them.

A file is used only if its SHA-256 matches the catalogue. pooch downloads to a temporary file and renames
it once it is complete and verified, so a download never leaves a damaged file in the cache.
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

# Timeouts in seconds for the connection and for the next bytes.
_TIMEOUT = (10.0, 30.0)
# Values of LABELSIEVE_OFFLINE that allow downloads.
_ONLINE = ("", "0", "false", "no", "off")

# Maps a file name to a progress bar for pooch: an object with `total`, `update(n)`, `reset()` and `close()`.
ProgressFactory = Callable[[str], Any]


def load(name: str) -> Dataset:
    """Load a dataset of the catalogue.

    The files are searched in ``LABELSIEVE_DATA``, then in the cache, then on the network. Checksums are
    verified before reading, shapes and cardinalities after reading.

    Parameters
    ----------
    name : str
        Name in `CATALOG`. Case is ignored, and ``-`` is the same as ``_``.

    Returns
    -------
    Dataset
        Data as published. Nominal features are category codes, and test rows follow training rows.

    Raises
    ------
    DatasetError
        If the name is unknown, or if a file is missing or differs from the catalogue.

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
    """Read the files of an entry, without identifier columns."""
    paths = fetch(entry.name)
    labels = next((path for path in paths.values() if path.suffix == ".xml"), None)
    data = [path for path in paths.values() if path != labels]
    dataset = read(data, labels=labels, ignore=entry.identifiers or None, name=entry.name)
    return replace(dataset, source=entry.files[0].urls[0])


def fetch(name: str, *, progress: ProgressFactory | None = None) -> dict[str, Path]:
    """Find or download the files of a dataset, and return their verified paths.

    Returns an empty mapping for built-in datasets.

    Parameters
    ----------
    name : str
        Name in `CATALOG`.
    progress : callable or None, default=None
        Called with the name of a file when its download starts. Returns a progress bar for pooch.
    """
    entry = find_entry(name)
    return {file.name: _obtain(entry, file, progress) for file in entry.files}


def is_known(name: str) -> bool:
    """Return whether the catalogue has a dataset with this name."""
    return _key(name) in CATALOG


def _key(name: str) -> str:
    """Normalise a name to the spelling of the catalogue."""
    return name.lower().replace("-", "_")


def find_entry(name: str) -> CatalogEntry:
    """Return the entry with this name, or raise an error that suggests similar names."""
    key = _key(name)
    if key not in CATALOG:
        close = difflib.get_close_matches(key, CATALOG, n=3)
        hint = f"Did you mean {' or '.join(close)}?" if close else f"Choose one of {', '.join(CATALOG)}."
        raise DatasetError(f"name must be a dataset in the catalogue, got {name!r}. {hint}")
    return CATALOG[key]


def availability(name: str) -> Literal["built in", "local", "cache", "download"]:
    """Return the most distant location that `load` would read from, without verifying the files."""
    entry = find_entry(name)
    if not entry.files:
        return "built in"
    local, cache = _local_folder(), cache_folder()
    missing = [file for file in entry.files if not (local and (local / entry.name / file.name).is_file())]
    if not missing:
        return "local"
    return "cache" if all((cache / entry.name / file.name).is_file() for file in missing) else "download"


def cache_folder() -> Path:
    """Return the folder for downloads."""
    import pooch

    return Path(os.environ.get("LABELSIEVE_CACHE") or pooch.os_cache("labelsieve")).expanduser()


def _local_folder() -> Path | None:
    """Return the folder that ``LABELSIEVE_DATA`` names, if any."""
    named = os.environ.get("LABELSIEVE_DATA")
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise DatasetError(f"LABELSIEVE_DATA must be a folder, got {named!r}. Correct or unset it.")
    return folder


def _obtain(entry: CatalogEntry, file: CatalogFile, progress: ProgressFactory | None) -> Path:
    """Return the verified path of one file, from the first location that has it."""
    local = _local_folder()
    if local is not None and (local_file := local / entry.name / file.name).is_file():
        found = _sha256(local_file)
        if found != file.sha256:
            raise DatasetError(
                f"{local_file} must have SHA-256 {file.sha256}, got {found}{_altered_copies(entry)}. "
                f"Replace or remove the file."
            )
        return local_file

    cached = cache_folder() / entry.name / file.name
    if cached.is_file():
        if _sha256(cached) == file.sha256:
            return cached
        _LOG.warning("%s is damaged and will be downloaded again", cached)
    if os.environ.get("LABELSIEVE_OFFLINE", "").strip().lower() not in _ONLINE:
        raise DatasetError(
            f"{file.name} of {entry.name!r} was not found, and LABELSIEVE_OFFLINE forbids downloads. "
            f"Unset LABELSIEVE_OFFLINE, or save the file as {cached}."
        )
    _download(entry, file, cached, progress)
    return cached


def _altered_copies(entry: CatalogEntry) -> str:
    return f" (known altered copies: {entry.altered})" if entry.altered else ""


def _download(entry: CatalogEntry, file: CatalogFile, target: Path, progress: ProgressFactory | None) -> None:
    """Try the URLs of a file in turn until one returns the right content."""
    import pooch
    import requests.exceptions

    pooch.get_logger().setLevel(logging.WARNING)
    mirror = os.environ.get("LABELSIEVE_MIRROR")
    urls = [f"{mirror.rstrip('/')}/{entry.name}/{quote(file.name)}"] if mirror else []
    failures = []
    for url in [*urls, *file.urls]:
        _LOG.info("downloading %s", url)
        bar = progress(file.name) if progress else False
        downloader = pooch.HTTPDownloader(progressbar=bar, chunk_size=2**12, timeout=_TIMEOUT)
        try:
            pooch.retrieve(url, f"sha256:{file.sha256}", file.name, target.parent, downloader=downloader)
            target.chmod(0o644)  # pooch makes private files, but a cache may be shared
        except requests.exceptions.RequestException as error:  # first, since it is an OSError too
            # Only HTTP errors have short messages.
            is_http = isinstance(error, requests.exceptions.HTTPError)
            failures.append(f"{url}: {error if is_http else type(error).__name__}")
        except ValueError as error:
            failures.append(f"{url}: {error}{_altered_copies(entry)}")
        except OSError as error:
            raise DatasetError(
                f"{target} cannot be written ({error.strerror or error}). Check free space and permissions, "
                "or set LABELSIEVE_CACHE to another folder."
            ) from error
        else:
            return
        _LOG.warning("download failed: %s", failures[-1])
    raise DatasetError(
        f"{file.name} of {entry.name!r} could not be downloaded ({'; '.join(failures)}). "
        f"Check the connection, set LABELSIEVE_MIRROR, or save the file as {target}."
    )


def _sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _verify_figures(entry: CatalogEntry, dataset: Dataset) -> None:
    """Check shape and cardinality against the catalogue, to detect errors of the reader."""
    n_samples, n_features = dataset.X.shape
    shape = (n_samples, n_features, len(dataset.label_names))
    for name, expected, found in zip(("samples", "features", "labels"), entry.shape, shape, strict=True):
        if expected is not None and found != expected:
            raise DatasetError(
                f"{entry.name!r} must have {expected} {name}, got {found}. Please report this error."
            )
    for name, mean, labels in (
        ("cardinality", entry.cardinality, dataset.Y),
        ("candidate cardinality", entry.candidate_cardinality, dataset.Y_candidates),
    ):
        found_mean = None if labels is None else float(labels.sum(dtype=np.int64)) / n_samples
        # The catalogue rounds to three digits.
        if mean is not None and (found_mean is None or abs(found_mean - mean) > 0.0005 + 1e-9):
            raise DatasetError(
                f"{entry.name!r} must have {name} {mean}, got {found_mean!r}. Please report this error."
            )
