"""Rows in blocks: in memory, streamed from disk, or on a cluster, with the same answer."""
