"""What PARTICLE-VLS and PARTICLE-MAP share: the estimator, credible labels and pairwise classifiers."""
