"""Benchmarks that measure ratios side by side in one run. Each module is a command."""
