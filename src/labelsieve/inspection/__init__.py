"""What one fit found in one data set: the findings as values, their figures, a page."""
