"""Criterion, greedy search and inner cross-validation of the evidence selector."""
