"""Audits of a dataset: label issues, stability, plots and the audit page."""
