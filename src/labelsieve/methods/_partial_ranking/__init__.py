"""What PML-LC and PML-FP share: the estimator, the rank-SVM, the confidences and the loop over both."""
