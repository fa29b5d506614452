"""A record of folds on disk, with which a fit whose process died goes on.

Solvers are deterministic: what they do next follows from what the folds returned. So a fit that begins again with
the same folder is given the parts of the folds that were done before, without a visit to the rows, up to the last
time the tall columns were saved; from there it goes on in earnest.
"""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

__all__ = ["FoldLog"]

#: The files that say which fit a folder is about, and which data.
_FIT, _DATA = "fit.txt", "data.txt"


class FoldLog:
    """Parts of folds and saved columns of one fit in a folder.

    Parameters
    ----------
    folder : path
        Where it lies; made if need be. What is found there is taken up if it belongs to the same fit.
    identity : str
        What the fit is about. A folder of another fit is refused.
    is_temporary : bool, default=False
        Whether nobody knows of the folder, so that it goes with this process even if the fit was not done.
    """

    def __init__(self, folder: str | Path, identity: str, *, is_temporary: bool = False) -> None:
        # Workers may have been started elsewhere.
        self.folder = Path(folder).absolute()
        self.is_temporary = is_temporary
        self._is_paused = False
        self.folder.mkdir(parents=True, exist_ok=True)
        self.claim(identity, _FIT)
        self._state = self.folder / "saved.json"
        saved: dict[str, Any] = (
            json.loads(self._state.read_text()) if self._state.exists() else {"n_folds": 0, "columns": {}}
        )
        #: Folds whose parts are on disk and need no visit, and the files of the columns as they were after these.
        self.n_saved: int = saved["n_folds"]
        self.columns: dict[str, list[str]] = saved["columns"]
        self.rewind()

    def rewind(self) -> None:
        """Begin again: the folds that are saved will be replayed."""
        self.n_folds = 0
        self._sweep()

    def claim(self, identity: str, name: str = _DATA) -> None:
        """Note what the fit, or its data, are, or see that they are those of the folder."""
        path = self.folder / name
        if not path.exists():
            if name == _FIT and any(self.folder.iterdir()):
                raise ValueError(
                    f"The folder {self.folder} must be empty, or hold the checkpoints of this fit. Got other files. "
                    f"Name another folder."
                )
            write_whole(path, identity.encode())
        elif path.read_text() != identity:
            raise ValueError(
                f"The folder {self.folder} must hold the checkpoints of this fit. Got those of another one, with "
                f"other data or parameters. Name another folder, or delete this one."
            )

    @property
    def is_replaying(self) -> bool:
        """Whether the next fold was done before."""
        return self.n_folds < self.n_saved and not self._is_paused

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Neither replay nor record folds meanwhile."""
        self._is_paused = True
        try:
            yield
        finally:
            self._is_paused = False

    def replay(self, function_name: str) -> Any:
        """Return the part of the next fold, which was done before."""
        with self._part(self.n_folds).open("rb") as file:
            name, part = pickle.load(file)
        if name != function_name:
            raise ValueError(
                f"The folder {self.folder} must hold the checkpoints of this fit. Got other steps, of another version. "
                f"Delete the folder and begin anew."
            )
        self.n_folds += 1
        return part

    def record(self, function_name: str, part: Any) -> None:
        """Note the part of a fold that was done now."""
        if self._is_paused:
            return
        # Into the file at once: there may be no room for the part a second time.
        with writing_whole(self._part(self.n_folds)) as file:
            pickle.dump((function_name, part), file, protocol=5)
        self.n_folds += 1

    def save(self, columns: Mapping[str, Sequence[str]]) -> None:
        """Note the files of the tall columns as they are after the folds so far; older files are deleted."""
        if self._is_paused:
            return
        before = {name for names in self.columns.values() for name in names}
        self.columns = {name: list(files) for name, files in columns.items()}
        self.n_saved = self.n_folds
        write_whole(self._state, json.dumps({"n_folds": self.n_saved, "columns": self.columns}).encode())
        for name in before - {name for names in self.columns.values() for name in names}:
            (self.folder / name).unlink(missing_ok=True)

    def close(self, *, is_done: bool) -> None:
        """Delete the folder, unless somebody will go on with it."""
        if is_done or self.is_temporary or not self.n_saved:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _sweep(self) -> None:
        """Delete what a process left that died after the last save."""
        known = {_FIT, _DATA, self._state.name, *(name for names in self.columns.values() for name in names)}
        known.update(self._part(index).name for index in range(self.n_saved))
        for path in self.folder.iterdir():
            if path.name not in known:
                path.unlink()

    def _part(self, index: int) -> Path:
        return self.folder / f"fold-{index:06d}.pickle"


@contextmanager
def writing_whole(path: Path) -> Iterator[IO[bytes]]:
    """Write a file that is there as a whole or not at all."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as file:
        yield file
    partial.replace(path)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file of so many bytes, as a whole or not at all."""
    with writing_whole(path) as file:
        file.write(content)
