"""The benchmarks run; the figures are for `make bench`."""

import runpy
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("module", "options", "rows"),
    [
        ("stability", ("--datasets", "planted", "--repeats", "2"), ("evidence, redundancy auto", "sum-f")),
        (
            "stability",
            ("--starts", "--datasets", "planted", "--repeats", "2"),
            ("planted, nndsvda", "planted, random"),
        ),
        ("size", ("--datasets", "planted", "--splits", "1"), ("planted, evidence", "mean, sum-f")),
        ("machines", ("--datasets", "planted"), ("planted, dense 300 x 12, 8 labels",)),
        ("planted", ("--methods", "sum-f", "random-ranking"), ("sum-f", "random-ranking")),
        (
            "evidence",
            ("--shrink", "20"),
            ("dense 100 x 150, 10 labels, k = 20", "sparse 5000 x 2500, 50 labels, k = 100"),
        ),
        ("label_noise", ("--datasets", "planted"), ("planted, flip", "planted, instance", "planted, label")),
        (
            "scale",
            ("--solver", "--shrink", "100"),
            ("2000 x 200, 14 components, float64", "2000 x 200, 14 components, float32"),
        ),
        ("report", ("--repeats", "1", "--bare", "1"), ("labelsieve report", "bare matplotlib, 8 panels")),
        ("startup", ("--repeats", "1"), ("labelsieve --version", "labelsieve --help")),
    ],
)
def test_a_benchmark_prints_its_table(module, options, rows, monkeypatch, capsys):
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    monkeypatch.setattr(sys, "argv", [module, *options])
    # Another benchmark may have imported it: as a program it begins anew.
    monkeypatch.delitem(sys.modules, f"benchmarks.{module}", raising=False)
    runpy.run_module(f"benchmarks.{module}", run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("| ---")
    for row in rows:
        assert any(line.startswith(f"| {row} ") for line in lines), row
