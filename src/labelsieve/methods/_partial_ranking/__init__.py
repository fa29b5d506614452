"""Shared parts of PML-LC and PML-FP: base estimator, rank-SVM and label confidences."""
