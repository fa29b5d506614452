"""The file that holds the results of a run: where it is, who writes to it, and what to say if it cannot be used."""

from __future__ import annotations

import os
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from labelsieve._text import one_line
from labelsieve.bench import RunError

__all__ = [
    "FILE_NAME",
    "JOURNALS",
    "beside",
    "damaged",
    "database_path",
    "exclusive",
    "explained",
    "identity_of",
    "lock_path",
    "no_results",
    "opened_at",
    "repair_command",
]

FILE_NAME = "results.sqlite"
#: What SQLite puts after the name of a file.
JOURNALS = ("-journal", "-wal", "-shm")
# What the system refuses, as opposed to a file that is damaged.
_REFUSALS = (
    "SQLITE_FULL",
    "SQLITE_IOERR",
    "SQLITE_READONLY",
    "SQLITE_CANTOPEN",
    "SQLITE_BUSY",
    "SQLITE_LOCKED",
    "SQLITE_PERM",
)


def database_path(target: str | Path) -> Path:
    """Find the results a user means: a run folder, its results file, or a name below ``runs``."""
    path = Path(target)
    candidates = (path, path / FILE_NAME, Path("runs") / path / FILE_NAME)
    ending = Path(FILE_NAME).suffix  # a copy may have another name, but data files are no damaged results
    found = next((place for place in candidates if place.suffix == ending and place.is_file()), None)
    if found is None:
        raise RunError(
            f"a run folder, its {FILE_NAME} or a name below runs/ was expected, got {str(target)!r}; "
            "start a run with: labelsieve bench run tiny"
        )
    return found


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what the disk or the file refuses into one sentence."""
    try:
        yield
    except OSError as error:
        raise RunError(f"{path.parent}: cannot be written ({error}); choose another folder.") from None
    except UnicodeDecodeError as error:  # SQLite shows what it cannot read, and Python cannot read that
        raise damaged(path, error) from None
    except sqlite3.IntegrityError:
        raise  # a mistake in this program, not in the file
    except sqlite3.DatabaseError as error:
        if str(getattr(error, "sqlite_errorname", "")).startswith(_REFUSALS):
            raise RunError(
                f"{path}: {error}; finished cells are safe. Check free space and permissions, then run "
                "the same command again."
            ) from None
        raise damaged(path, error) from None


def damaged(path: Path, error: Exception) -> RunError:
    """Say that a file cannot be read, and the remedy."""
    return RunError(
        f"{path}: the file is damaged ({one_line(error)}); save what can be read with: {repair_command(path)}"
    )


def repair_command(path: Path) -> str:
    """Say how a damaged file is repaired."""
    return f"labelsieve bench repair {shlex.quote(str(path.parent))}"


def no_results(path: Path) -> RunError:
    """Say that a run has not begun."""
    return RunError(f"{path}: no results in it yet; start with: labelsieve bench run")


def lock_path(path: Path) -> Path:
    """Name the file that a writer locks."""
    return path.with_name(f"{path.name}.lock")


def exclusive(path: Path) -> sqlite3.Connection:
    """Hold the lock of a results file, which ends with this process, however it ends."""
    # SQLite's own file locks work on every system, and nothing else uses this file.
    connection = sqlite3.connect(lock_path(path), isolation_level=None, timeout=0)
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        connection.close()
        if "locked" not in str(error):
            raise
        raise RunError(
            f"{path.parent}: another run is writing there; wait for it, stop it, or choose another folder with --out."
        ) from None
    return connection


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """Name a new file beside a results file, to take its place; what is left of it at the end is taken away."""
    fresh = path.with_name(f"{path.name}.new")
    _remove(fresh)
    try:
        yield fresh
    finally:
        _remove(fresh)


def _remove(path: Path) -> None:
    for file in (*(path.with_name(path.name + suffix) for suffix in JOURNALS), lock_path(path), path):
        file.unlink(missing_ok=True)


def identity_of(path: Path) -> tuple[int, int] | None:
    """Tell a file from another that took its place; None if there is none."""
    with suppress(OSError):
        found = path.stat()
        return found.st_dev, found.st_ino
    return None


def opened_at(identity: tuple[int, int]) -> Path | None:
    """Where a file is now that this process has open; None if it is gone or the system does not tell."""
    with suppress(OSError):
        for link in Path("/proc/self/fd").iterdir():
            if identity_of(link) == identity and identity_of(place := Path(os.readlink(link))) == identity:
                return place
    return None
