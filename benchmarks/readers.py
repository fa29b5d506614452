"""How fast and how lean the readers are; run ``python -m benchmarks.readers``.

Measured side by side on this machine: sparse ARFF of the size of bibtex against liac-arff, svmlight against
scikit-learn, peak memory of sparse files against their number of entries; ``--big`` asks instead for an svmlight
file of 1 GiB. Times are of the processor, so that other programs disturb them little.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
import tracemalloc
from pathlib import Path

import arff
import numpy as np
from sklearn.datasets import load_svmlight_file

from benchmarks.table import print_table
from labelsieve.io import read

BIBTEX = {"n_samples": 7395, "n_features": 1836, "n_labels": 159, "entries": 70}


def bibtex_like(path, *, n_samples, n_features, n_labels, entries, seed=0):
    """Write a sparse 0/1 ARFF file with its labels last."""
    rng = np.random.default_rng(seed)
    with open(path, "w") as file:
        file.write(f"@relation 'generated: -C -{n_labels}'\n\n")
        file.writelines(f"@attribute TAG_{index} {{0,1}}\n" for index in range(n_features + n_labels))
        file.write("\n@data\n")
        for _ in range(n_samples):
            features = np.sort(rng.choice(n_features, entries - 2, replace=False)).tolist()
            labels = np.sort(n_features + rng.choice(n_labels, 2, replace=False)).tolist()
            file.write("{" + ",".join(f"{index} 1" for index in features + labels) + "}\n")


def svmlight_like(path, n_bytes, n_features=100_000, n_labels=500, seed=0):
    """Write random multi-label rows of 100 entries up to `n_bytes`; returns the number of rows."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(2000):
        labels = rng.choice(n_labels, 3, replace=False)
        features = np.sort(rng.choice(n_features, 100, replace=False)) + 1
        values = rng.random(100)
        body = " ".join(f"{index}:{value:.6g}" for index, value in zip(features, values, strict=True))
        lines.append(f"{','.join(map(str, labels))} {body}\n")
    block = "".join(lines).encode()
    rows, written = 0, 0
    with open(path, "wb") as file:
        while written < n_bytes:
            written += file.write(block)
            rows += len(lines)
    return rows


def seconds(action, repeats=3):
    """Best of some runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def _read_and_measure(path, results):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    data = read(path)
    elapsed = time.process_time() - start
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    results.put((elapsed, peak, data.X.nnz + data.candidates.nnz, data.X.shape))


def in_fresh_process(path):
    """Seconds, peak bytes above the start, entries and shape of reading a file in a new process."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    process = context.Process(target=_read_and_measure, args=(path, results))
    process.start()
    measured = results.get()
    process.join()
    return measured


def compare_with_others(folder):
    """Seconds of our readers and of others on the same files."""
    path = Path(folder, "bibtex.arff")
    bibtex_like(path, **BIBTEX)

    def liac(return_type):
        with open(path) as file:
            return arff.load(file, return_type=return_type)

    ours = seconds(lambda: read(path), repeats=5)
    rows = []
    for name, return_type in (
        ("dense, its default", arff.DENSE),
        ("sparse rows", arff.LOD),
        ("COO", arff.COO),
    ):
        theirs = seconds(lambda kind=return_type: liac(kind), repeats=3)
        rows.append((f"sparse ARFF 7395 x 1836 x 159, 70 entries a row; liac-arff, {name}", ours, theirs))
    path = Path(folder, "some.svm")
    svmlight_like(path, 64 * 2**20)
    ours = seconds(lambda: read(path), repeats=1)
    theirs = seconds(lambda: load_svmlight_file(path, multilabel=True), repeats=1)
    rows.append(("svmlight, 64 MiB; scikit-learn", ours, theirs))
    print_table(
        ["file; other reader", "ours s", "theirs s", "ratio"],
        ((title, f"{a:.3f}", f"{b:.3f}", f"{b / a:.1f}") for title, a, b in rows),
    )


def memory_against_entries(folder):
    """Peak memory, as traced, of reading sparse ARFF files of growing length."""
    rows = []
    for factor in (1, 2, 4, 8):
        path = Path(folder, f"memory{factor}.arff")
        bibtex_like(path, **{**BIBTEX, "n_samples": BIBTEX["n_samples"] * factor})
        tracemalloc.start()
        data = read(path)
        peak, entries = tracemalloc.get_traced_memory()[1], data.X.nnz + data.Y.nnz
        tracemalloc.stop()
        rows.append((f"{entries} entries", f"{peak / 2**20:.0f}", f"{peak / entries:.0f}"))
    print_table(["sparse ARFF", "peak MiB", "bytes an entry"], rows)


def big_svmlight(folder):
    """Speed and memory of an svmlight file of 1 GiB, read in a process of its own."""
    path = Path(folder, "big.svm")
    rows = svmlight_like(path, 2**30)
    size = path.stat().st_size
    elapsed, peak, entries, shape = in_fresh_process(path)
    print_table(
        ["svmlight", "s", "MB/s", "peak bytes an entry"],
        [
            (
                f"{size / 2**20:.0f} MiB, {rows} rows, {entries} entries, {shape[1]} features",
                f"{elapsed:.1f}",
                f"{size / 1e6 / elapsed:.0f}",
                f"{peak / entries:.0f}",
            )
        ],
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--big", action="store_true")
    is_big = parser.parse_args().big
    with tempfile.TemporaryDirectory() as folder:
        if is_big:
            big_svmlight(folder)
        else:
            compare_with_others(folder)
            memory_against_entries(folder)


if __name__ == "__main__":
    main()
