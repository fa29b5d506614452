"""What does an audit cost, page included? Run ``python -m benchmarks.audit``.

Processor time of `labelsieve.audit` on planted tables, by its parts, and the size of the page. ``--strangers`` audits
five tables of strangers instead, whose columns that matter and wrong labels are known.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.table import print_table
from labelsieve import audit
from labelsieve.datasets import make_pml
from labelsieve.io import read

SHAPES = ((500, 50, 5), (2000, 200, 10), (4000, 100, 20), (1000, 2000, 10))
#: The first word of what an audit says it is doing, and what to call it.
_STAGES = {
    "fitting": "size curve, ranking",
    "permuting": "permutations",
    "resampling": "subsamples",
    "checking": "label support",
    "drawing": "page",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strangers", action="store_true")
    if parser.parse_args().strangers:
        print_strangers()
    else:
        print_costs()


def print_costs():
    rows = []
    for n_samples, n_features, n_labels in SHAPES:
        X, Y = make_pml(n_samples=n_samples, n_features=n_features, n_labels=n_labels, random_state=0)
        watch = Watch()
        found = audit(X, Y, progress=watch)
        watch("drawing")
        page = found.to_html()
        watch("end")
        spent = watch.spent
        rows.append(
            (
                f"{n_samples} x {n_features}, {n_labels} labels",
                *(f"{seconds:.1f} s" for seconds in (*spent.values(), sum(spent.values()))),
                f"{len(page.encode()) / 1000:.0f} kB",
            )
        )
        print(*rows[-1], file=sys.stderr, flush=True)
    print_table(["table", *_STAGES.values(), "all", "size of the page"], rows)


class Watch:
    """Processor seconds of every part of an audit, told apart by what it says it is doing."""

    def __init__(self):
        self.spent = dict.fromkeys(_STAGES.values(), 0.0)
        self._stage, self._last = None, time.process_time()

    def __call__(self, *step):  # noqa: D102
        activity = step[-1]
        now = time.process_time()
        if self._stage is not None:
            self.spent[self._stage] += now - self._last
        # Numbers of columns are tried while the method is fitted.
        self._stage = self._stage if activity.startswith("trying") else _STAGES.get(activity.split()[0])
        self._last = now


def print_strangers():
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from strangers import make_strangers

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, stranger in make_strangers(folder).items():
            table = read(stranger.path, **stranger.options)
            found = audit(table)
            rows.append((name, *judge(found, stranger), f"{len(found.to_html().encode()) / 1000:.0f} kB"))
    header = [
        "table",
        "columns",
        "planted",
        "worst place of a planted one",
        "wrong labels",
        "wrong among the first",
    ]
    print_table([*header, "chance that a wrong one has less support", "page"], rows)


def judge(found, stranger):
    """How well the audit found what was planted."""
    places = [place for place, name in enumerate(found.columns.column, start=1) if name in stranger.planted]
    issues = found.label_issues.issues
    wrong = np.array(
        [
            (int(row), issues.label_names[label]) in stranger.wrong
            for row, label in zip(issues.rows, issues.labels, strict=True)
        ]
    )
    first = wrong[: len(stranger.wrong)]
    # The area under the curve: pairs of a wrong and a right candidate in the right order.
    places_of_wrong = np.flatnonzero(wrong)
    n_right = len(wrong) - len(places_of_wrong)
    ahead = n_right - (places_of_wrong - np.arange(len(places_of_wrong)))
    return (
        str(found.dataset.n_columns),
        str(len(stranger.planted)),
        str(max(places)),
        f"{len(places_of_wrong)} of {len(wrong)} ({wrong.mean():.0%})",
        f"{first.sum()} of {len(first)} ({first.mean():.0%})",
        f"{ahead.sum() / (n_right * len(places_of_wrong)):.2f}",
    )


if __name__ == "__main__":
    main()
