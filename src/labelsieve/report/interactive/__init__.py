"""The charts of a page as values, which the page's own script draws."""
