"""Load a data set of the catalogue by name: found, downloaded, verified, read.

Four environment variables decide where files come from:

``LABELSIEVE_DATA``
    A folder of one's own with ``<name>/<file>``; looked at first, never written to.
``LABELSIEVE_CACHE``
    Where downloads are kept; by default the system's cache folder.
``LABELSIEVE_MIRROR``
    Address of a server that holds ``<name>/<file>``, e.g. of an institute; asked before the public ones.
``LABELSIEVE_OFFLINE``
    Set to 1 to forbid downloads; unset, empty, 0, false, no or off allow them.

Whatever the source, a file is used only if its SHA-256 is the catalogue's. A download is written beside its
place and renamed into it when it is complete and verified, so the cache never holds a broken file.

The transfer itself is pooch's `HTTPDownloader`. `pooch.retrieve` around it would give less than is promised here:
it limits neither size nor duration, so a server may flood the disk or drip for days; its files can be read by their
owner only (mode 600), which spoils a cache that an institute shares; and what a killed process leaves behind is
called like any temporary file, so nobody can clear it away.
"""

from __future__ import annotations

import difflib
import hashlib
import logging
import os
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Literal
from urllib.parse import quote

import numpy as np

from labelsieve.datasets.catalog import CATALOG, CatalogEntry, CatalogFile
from labelsieve.io.dataset import Dataset
from labelsieve.io.errors import DatasetError
from labelsieve.io.reading import read

_LOG = logging.getLogger("labelsieve")

# Seconds to wait for a connection, and for the next bytes.
_TIMEOUT = (10.0, 30.0)
# A server that keeps the line open but sends next to nothing: least bytes per second, after a grace period.
_LEAST_SPEED = 1024
_GRACE_SECONDS = 60.0
# Ten times the largest file of the catalogue; a server that sends on and on must not fill the disk.
_LARGEST_FILE = 2**30
_STALE_SECONDS = 24 * 3600
# Values of LABELSIEVE_OFFLINE that allow downloads.
_ONLINE = ("", "0", "false", "no", "off")

# Given a file name, returns an object with `total`, `update(n)`, `reset()` and `close()`, as pooch wants it.
ProgressFactory = Callable[[str], Any]


def load(name: str) -> Dataset:
    """Load a data set of the catalogue.

    Its files are looked for in ``LABELSIEVE_DATA``, then in the cache, then downloaded; checksums are
    verified before reading, size and cardinality after it.

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
        The name is unknown, or a file cannot be had or is not the one of the catalogue.

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
    labels = None if entry.labels is None else paths[entry.labels.name]
    data = [paths[file.name] for file in entry.data]
    dataset = read(data, labels=labels, ignore=entry.identifiers or None, name=entry.name)
    return replace(dataset, source=entry.data[0].urls[0])


def fetch(name: str, *, progress: ProgressFactory | None = None) -> dict[str, Path]:
    """Find or download the files of a data set; returns the path of each, verified, none if it is built in.

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
    """Whether the catalogue has a data set of that name."""
    return _key(name) in CATALOG


def _key(name: str) -> str:
    """How the catalogue spells a name."""
    if not isinstance(name, str):
        raise DatasetError(f"the name of a data set must be a string such as 'yeast', got {name!r}.")
    return name.lower().replace("-", "_")


def find_entry(name: str) -> CatalogEntry:
    """Return the entry of that name, or say which names come close."""
    key = _key(name)
    if key not in CATALOG:
        close = difflib.get_close_matches(key, CATALOG, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else f"known are {', '.join(CATALOG)}."
        raise DatasetError(f"the name of a data set of the catalogue was expected, got {name!r}; {hint}")
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
    """Return the user's own folder of data, if he named one."""
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
            raise DatasetError(
                f"{own}: {_checksum_complaint(entry, file, found)}; replace or remove the file."
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
    import requests.exceptions

    own_mirror = os.environ.get("LABELSIEVE_MIRROR")
    urls = [f"{own_mirror.rstrip('/')}/{entry.name}/{quote(file.name)}"] if own_mirror else []
    failures = []
    for url in [*urls, *file.urls]:
        _LOG.info("downloading %s", url)
        try:
            found = _download_once(url, target, file, progress)
        except requests.exceptions.RequestException as error:  # an OSError too, so it comes first
            failures.append(f"{url}: {_said_briefly(error)}")
        except _Refused as error:
            failures.append(f"{url}: {error}")
        except OSError as error:
            raise DatasetError(
                f"{target} cannot be written ({error.strerror or error}); make room or rights there, "
                "or set LABELSIEVE_CACHE to another folder."
            ) from error
        else:
            if found == file.sha256:
                return
            failures.append(f"{url}: {_checksum_complaint(entry, file, found)}")
        _LOG.warning("download failed: %s", failures[-1])
    raise DatasetError(
        f"{file.name} of {entry.name!r} could not be downloaded ({'; '.join(failures)}); "
        f"check the connection, set LABELSIEVE_MIRROR, or put the file at {target}."
    )


def _download_once(url: str, target: Path, file: CatalogFile, progress: ProgressFactory | None) -> str:
    """Download to a name beside the target, which receives it only if the checksum is right; returns that."""
    import pooch

    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_stale_parts(target.parent)
    # A name of its own for every attempt: two processes never write to the same file, and either may win.
    part = target.with_name(f"{target.name}.{uuid.uuid4().hex}.part")
    downloader = pooch.HTTPDownloader(
        progressbar=progress(file.name) if progress else False, chunk_size=2**12, timeout=_TIMEOUT
    )
    try:
        with part.open("xb", buffering=0) as stream:
            checked = _CheckedStream(stream)
            downloader(url, checked, None)
        found = checked.digest.hexdigest()
        if found == file.sha256:
            os.replace(part, target)
        return found
    finally:
        part.unlink(missing_ok=True)


class _Refused(Exception):
    """A server sends what nobody should go on accepting."""


class _CheckedStream:
    """A file that hashes what is written to it, and gives up on a server that drips or floods."""

    def __init__(self, stream: BinaryIO) -> None:
        self.digest = hashlib.sha256()
        self._stream = stream
        self._received = 0
        self._started = time.monotonic()

    def write(self, chunk: bytes) -> None:
        """Write one chunk."""
        self._received += len(chunk)
        if self._received > _LARGEST_FILE:
            raise _Refused(f"more than {_LARGEST_FILE} bytes came")
        seconds = time.monotonic() - self._started
        if seconds > _GRACE_SECONDS and self._received < _LEAST_SPEED * seconds:
            raise _Refused(f"only {self._received} bytes came in {seconds:.0f} s")
        rest = memoryview(chunk)
        while rest:  # an unbuffered file may take less than it is given
            rest = rest[self._stream.write(rest) :]
        self.digest.update(chunk)

    def flush(self) -> None:
        """Do nothing: the file is not buffered."""


def _remove_stale_parts(folder: Path) -> None:
    """Remove what killed processes left behind long ago."""
    for part in folder.glob("*.part"):
        try:
            if time.time() - part.stat().st_mtime > _STALE_SECONDS:
                part.unlink()
        except OSError:  # another process was faster, or owns it
            continue


def _said_briefly(error: Exception) -> str:
    """Put a failed request in a few words; requests' own are a paragraph."""
    import requests.exceptions

    response = getattr(error, "response", None)
    if response is not None:
        return f"HTTP {response.status_code} {response.reason}"
    if isinstance(error, requests.exceptions.Timeout) or "timed out" in str(error):
        return f"no answer within {_TIMEOUT[1]:g} s"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "the connection broke off"
    if isinstance(error, requests.exceptions.ConnectionError):
        return "no connection"
    return str(error)


def _sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _checksum_complaint(entry: CatalogEntry, file: CatalogFile, found: str) -> str:
    """Say which checksum was expected and which came, and whether altered copies are known."""
    known = f" (altered copies are known: {entry.altered})" if entry.altered else ""
    return f"expected SHA-256 {file.sha256}, got {found}{known}"


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
