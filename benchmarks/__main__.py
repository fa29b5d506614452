"""Run every benchmark of this folder, one after the other: ``python -m benchmarks``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

QUICK_FIRST = ("information", "solvers", "memory", "stability", "readers", "experiments", "methods")


def main():
    for name in QUICK_FIRST:
        if not (Path(__file__).parent / f"{name}.py").exists():
            continue
        print(f"\n== benchmarks.{name}", flush=True)
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=True)


if __name__ == "__main__":
    main()
