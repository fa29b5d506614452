"""``labelsieve review``: review labels in the browser."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from labelsieve._text import count
from labelsieve.bench import RunError
from labelsieve.cli._options import (
    Checked,
    DataOptions,
    Kernel,
    Quiet,
    RowTruth,
    UseLabels,
    check_outputs,
    option,
    prediction_arguments,
    prediction_options,
    reading,
    with_data_options,
)
from labelsieve.inspection.label_issues import MIN_REVIEWED
from labelsieve.inspection.review import read_review
from labelsieve.review_app.serve import RunningReview, open_session, require_packages

EPILOG = """\
\b
Examples:
  labelsieve review films.csv --labels genres --id title --open
  labelsieve review data.csv --labels 'label_*' -o review.csv

Every verdict is saved at once. Press Ctrl-C to stop, and run the same command to continue.
"""


@with_data_options
def review(
    data: DataOptions,
    output: Annotated[
        Path | None,
        option("FILE", "Review file, new or to continue. Default: NAME.review.csv.", "--output", "-o"),
    ] = None,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    port: Annotated[int, option("N", "Port; 0 takes a free one.", min=0, max=65535)] = 0,
    draw: Annotated[int, option("N", "Size of the random draw.", min=1)] = MIN_REVIEWED,
    checked: Checked = None,
    quiet: Quiet = False,
    kernel: Kernel = "auto",
    use_labels: UseLabels = True,
    row_truth: RowTruth = None,
    seed: Annotated[int, option("N", "Random seed of the draw.", min=0, panel="Prediction options")] = 0,
) -> None:
    """Review labels in the browser.

    Checks the labels once and prints the address of a local page. The page asks for verdicts, one card at a
    time. After 50 random labels it tells how many labels are wrong, and which can be removed.
    """
    try:
        require_packages()
    except ImportError as error:
        raise RunError(str(error)) from None
    check_outputs(data, {"--output": output}, reads=[checked])
    data = data.with_id_of(output if output is not None and _has_content(output) else checked)
    options = prediction_options(kernel, use_labels, row_truth)
    with reading(data, quiet=quiet) as (dataset, console, status):
        session = open_session(
            dataset,
            output,
            None,
            options=options,
            checked=None if checked is None else read_review(checked, dataset),
            n_drawn=draw,
            random_state=seed,
            arguments=(data.arguments, prediction_arguments(kernel, use_labels, row_truth)),
            progress=status,
        )
        app = RunningReview(session, port)
    try:
        if session.n_resumed:
            console.print(f"continuing with {count(session.n_resumed, 'verdict')} from {session.file}")
        console.print("Open this address in your browser. Press Ctrl-C to stop.")
        print(app.url, flush=True)
        if open_browser:
            webbrowser.open(app.url)
        app.wait()
    except KeyboardInterrupt as stop:
        if type(stop) is not KeyboardInterrupt:  # terminated by a signal
            raise
    finally:
        n_verdicts = int((app.review.answers >= 0).sum())
        app.close()
        console.print(
            f"\n{count(n_verdicts, 'verdict')} in {session.file}. Run the same command to continue."
        )


def _has_content(path: Path) -> bool:
    return path.is_file() and os.path.getsize(path) > 0
