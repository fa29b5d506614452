"""Numerical routines behind the estimators: they take arrays and return arrays."""
