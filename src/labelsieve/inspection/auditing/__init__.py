"""One look at a whole table: which columns matter, how many, how surely, and which candidate labels look wrong."""
