"""The factorisation of PML-FSMIR: its objective, its start and its two solvers."""
