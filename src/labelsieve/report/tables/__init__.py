"""The tables of a report as values, and how a table is written as CSV, Markdown and LaTeX."""
