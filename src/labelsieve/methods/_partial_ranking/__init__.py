"""What PML-LC and PML-FP share: the estimator and its loop, the rank-SVM and the confidences."""
