"""Measure the cost of an audit, including its page: ``python -m benchmarks.audit``.

Prints the processor time of `labelsieve.audit` by part, on generated tables, and the size of the page.
"""

from __future__ import annotations

import sys
import time

from benchmarks.table import print_table
from labelsieve import audit
from labelsieve.datasets import make_pml

SHAPES = ((500, 50, 5), (2000, 200, 10), (4000, 100, 20), (1000, 2000, 10))
#: First word of a progress message -> part of the audit.
_STAGES = {
    "fitting": "size curve, ranking",
    "permuting": "permutations",
    "resampling": "subsamples",
    "checking": "label support",
    "drawing": "page",
}


def main():
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
    """Processor seconds of the parts of an audit, from its progress messages."""

    def __init__(self):
        self.spent = dict.fromkeys(_STAGES.values(), 0.0)
        self._stage, self._last = None, time.process_time()

    def __call__(self, *step):  # noqa: D102
        activity = step[-1]
        now = time.process_time()
        if self._stage is not None:
            self.spent[self._stage] += now - self._last
        # The audit tries numbers of columns while it fits the method.
        self._stage = self._stage if activity.startswith("trying") else _STAGES.get(activity.split()[0])
        self._last = now


if __name__ == "__main__":
    main()
