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
        ("unknown", ("--datasets", "planted", "--repeats", "1"), ("planted", "mean")),
        ("label_noise", ("--datasets", "planted"), ("planted, flip", "planted, instance", "planted, label")),
        (
            "against",
            (".", "--methods", "sum-f", "--datasets", "planted", "--rows", "60", "--repeats", "1"),
            ("read CSV", "read sparse ARFF", "select", "audit", "report", "sum-f, planted"),
        ),
        ("solvers", ("--datasets", "planted"), ("planted",)),
        ("review", ("--order", "--datasets", "planted", "--seeds", "1"), ("planted",)),
        (
            "costs",
            ("--datasets", "planted", "--methods", "sum-f", "rivals"),
            ("sum-f", "extra-trees", "sklearn-chi2", "fastcan"),
        ),
        ("blocks", ("--memory", "--rows", "2000", "--features", "40"), ()),
        ("startup", ("--repeats", "1"), ("labelsieve --version", "labelsieve --help")),
    ],
)
def test_a_benchmark_prints_its_table(module, options, rows, monkeypatch, capsys):
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    monkeypatch.chdir(Path(__file__).parents[2])
    monkeypatch.setattr(sys, "argv", [module, *options])
    # Another benchmark may have imported it.
    monkeypatch.delitem(sys.modules, f"benchmarks.{module}", raising=False)
    runpy.run_module(f"benchmarks.{module}", run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("| ---") for line in lines)
    for row in rows:
        assert any(line.startswith(f"| {row} ") for line in lines), row
