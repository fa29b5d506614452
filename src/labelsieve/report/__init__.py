"""What an experiment shows: numbers (`analysis`), then tables and charts of them, then the page."""
