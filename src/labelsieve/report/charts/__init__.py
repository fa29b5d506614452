"""The charts of a report. Drawing needs matplotlib, which is imported inside functions."""
