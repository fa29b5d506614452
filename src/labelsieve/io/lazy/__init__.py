"""Files read in blocks of rows: what a format needs to give any block by itself, and dask arrays of them."""
