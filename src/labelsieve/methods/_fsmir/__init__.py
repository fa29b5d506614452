"""Objective, start and solvers of the PML-FSMIR factorisation."""
