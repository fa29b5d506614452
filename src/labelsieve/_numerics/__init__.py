"""Arrays in, arrays out: the mathematics below the estimators."""
