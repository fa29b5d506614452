"""Start the review app on this machine."""

from __future__ import annotations

import secrets
import socket
import threading
import time
import webbrowser
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from labelsieve._base import check_count
from labelsieve._text import install_command
from labelsieve.inspection._reviews import Review
from labelsieve.inspection.label_issues import MIN_REVIEWED
from labelsieve.inspection.review import read_review
from labelsieve.io import Dataset, DatasetError, read
from labelsieve.io.copies import can_copy
from labelsieve.io.source import Source, ending_of
from labelsieve.io.writing import WRITERS
from labelsieve.review_app.session import ReviewSession

_ADDRESS = "127.0.0.1"
_STARTUP_SECONDS = 30


class RunningReview:
    """A review app that is running in a thread of this process.

    Attributes
    ----------
    url : str
        Address of the page. It contains a random token, so do not share it.
    file : Path
        Review file.

    Examples
    --------
    >>> import labelsieve
    >>> with labelsieve.review("animals.csv", "tags") as app:  # doctest: +SKIP
    ...     app.wait()
    """

    def __init__(self, session: ReviewSession, port: int = 0) -> None:
        import uvicorn

        from labelsieve.review_app.app import build_app

        self._session, self.file = session, session.file
        try:
            bound = listen(port)
        except BaseException:
            session.close()
            raise
        token = secrets.token_urlsafe(24)
        self.url = f"http://{_ADDRESS}:{bound.getsockname()[1]}/{token}/"
        config = uvicorn.Config(
            build_app(session, token),
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=2,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [bound]}, name="labelsieve-review", daemon=True
        )
        self._thread.start()
        deadline = time.monotonic() + _STARTUP_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                self.close()
                raise RuntimeError("The review app did not start. Choose another port.")
            time.sleep(0.01)

    @property
    def review(self) -> Review:
        """Verdicts so far; pass them as `checked` to `find_label_issues` or `audit`."""
        return self._session.review

    def wait(self) -> None:
        """Wait until Ctrl-C or until the app ends."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def close(self) -> None:
        """End the app. All verdicts are in the review file."""
        self._server.should_exit = True
        self._thread.join()
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "running" if self._thread.is_alive() else "closed"
        return f"RunningReview({self.url!r}, {str(self.file)!r}, {state})"

    def _repr_html_(self) -> str:
        return f'<p><a href="{self.url}" target="_blank" rel="noopener">Review labels</a> in the browser.</p>'


def review(
    data: Any,
    labels: Any = None,
    *,
    file: Any = None,
    copy: Any = None,
    checked: Any = None,
    kernel: str = "auto",
    use_labels: bool = True,
    each_row_has_truth: bool | str = "auto",
    n_drawn: int = MIN_REVIEWED,
    random_state: int = 0,
    port: int = 0,
    open_browser: bool = False,
) -> RunningReview:
    """Review labels in the browser.

    The labels are checked once. Then a local web app starts in a thread and waits for your verdicts. It needs the
    extra ``review``: ``pip install 'labelsieve[review]'``.

    Parameters
    ----------
    data : path, DataFrame, Dataset or {array-like, sparse matrix} of shape (n_samples, n_features)
        Any input that `labelsieve.io.read` accepts, a dataset, or a matrix of features.
    labels : int, str, sequence of str or {array-like, dataframe, sparse matrix} of shape (n_samples, n_labels)
        Label columns of the table, as in `read`. If `data` is a matrix of features, the candidate labels, 0 or 1.
    file : path or None, default=None
        Review file. It is continued if it exists. The default is ``NAME.review.csv`` next to the data.
    copy : path or None, default=None
        File for the cleaned copy. The default is ``NAME.clean.csv`` next to the data, in the format of the data.
    checked : Review, path, tuple of (rows, labels, answers) or None, default=None
        Verdicts to start a new review file with.
    kernel : {"auto", "linear", "rbf"}, default="auto"
        Kernel of the regression, as in `LabelSupport`.
    use_labels : bool, default=True
        If True, the other labels of a row contribute to the support, as in `LabelSupport`.
    each_row_has_truth : bool or "auto", default="auto"
        If True, assume that every row has at least one right candidate, as in `LabelSupport`.
    n_drawn : int, default=50
        Number of labels in the random draw.
    random_state : int, default=0
        Seed of the random draw.
    port : int, default=0
        Port of the app; 0 takes a free one.
    open_browser : bool, default=False
        If True, open the page in the browser.

    Returns
    -------
    RunningReview
        The running app with `url`, `review` (the verdicts so far), `wait` and `close`.

    Examples
    --------
    >>> import labelsieve
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> X, Y = [[0.0], [0.1], [0.9], [1.0]], [[1, 0], [1, 0], [0, 1], [1, 1]]
    >>> with TemporaryDirectory() as folder:
    ...     with labelsieve.review(X, Y, file=Path(folder, "review.csv"), n_drawn=2) as app:
    ...         print(app.url[:17], len(app.review.open))  # review in the browser
    http://127.0.0.1: 2
    """
    require_packages()
    check_count(n_drawn, "n_drawn", minimum=1)
    check_count(random_state, "random_state", minimum=0)
    check_count(port, "port", minimum=0)
    dataset = data if isinstance(data, Dataset) else read(data, labels)
    if isinstance(checked, (str, Path)):
        checked = read_review(Path(checked), dataset)
    else:
        checked = Review.validate(checked, dataset.candidates)
    options = {"kernel": kernel, "use_labels": use_labels, "each_row_has_truth": each_row_has_truth}
    session = open_session(
        dataset,
        None if file is None else Path(file),
        None if copy is None else Path(copy),
        options=options,
        checked=checked,
        n_drawn=n_drawn,
        random_state=random_state,
    )
    app = RunningReview(session, port)
    if open_browser:
        webbrowser.open(app.url)
    return app


def open_session(
    dataset: Dataset,
    file: Path | None,
    copy: Path | None,
    *,
    options: dict[str, Any],
    checked: Review | None = None,
    n_drawn: int = MIN_REVIEWED,
    random_state: int = 0,
    arguments: tuple[Sequence[str], Sequence[str]] | None = None,
    progress: Callable[[str], None] | None = None,
) -> ReviewSession:
    """Open a review of a dataset with the default files."""
    if dataset.is_lazy:
        raise DatasetError("a review needs all rows in memory, got rows that are read in blocks.")
    source = Path(dataset.source) if dataset.source and Path(dataset.source).is_file() else None
    return ReviewSession(
        dataset,
        file or default_file(dataset),
        copy or default_copy(dataset),
        options=options,
        checked=checked,
        n_drawn=n_drawn,
        random_state=random_state,
        images=None if source is None else source.parent,
        arguments=arguments,
        progress=progress,
    )


def default_file(dataset: Dataset) -> Path:
    """Return the review file of a dataset: next to its file, or in the current folder."""
    return _beside(dataset, ".review.csv")


def default_copy(dataset: Dataset) -> Path:
    """Return the file for the cleaned copy of a dataset, in its own format if that can be written."""
    origin = dataset._origin
    source = Path(dataset.source) if origin is None else origin.source.path
    ending = ending_of(source)
    is_kept = ending in WRITERS or (origin is not None and can_copy(source, Path(f"copy{ending}")))
    return _beside(dataset, f".clean{ending if is_kept else '.csv'}")


def _beside(dataset: Dataset, ending: str) -> Path:
    if dataset.source and Path(dataset.source).is_file():
        source = Source(dataset.source)
        return source.path.with_name(f"{source.stem}{ending}")
    return Path(f"{dataset.name or 'table'}{ending}".replace("/", "_"))


def listen(port: int) -> socket.socket:
    """Return a socket on the loopback interface."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((_ADDRESS, port))
    except (OSError, OverflowError) as error:
        bound.close()
        raise DatasetError(f"port {port} cannot be used ({error}); choose another one.") from None
    return bound


def require_packages() -> None:
    """Raise if the ``review`` extra is not installed."""
    for package in ("starlette", "uvicorn"):
        if find_spec(package) is None:
            command = install_command("starlette", "uvicorn")
            raise ImportError(f"The review app needs {package}. Install it: {command}")
