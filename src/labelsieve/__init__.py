"""Feature selection for partial multi-label data."""

__version__ = "0.1.0"
