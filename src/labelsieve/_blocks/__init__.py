"""Tables split into blocks of rows: in memory, streamed from disk, or on a cluster."""
