"""Ratios measured side by side in one run; every module here is a command of its own."""
