"""The mathematics of the evidence selector: its criterion, the greedy path, and what is chosen by cross-validation."""
