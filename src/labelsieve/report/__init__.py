"""Reports of experiments: analysis, tables, charts and the page."""
