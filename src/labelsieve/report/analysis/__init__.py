"""The numbers of a report: what a run comes down to, and what follows from that. No words, no drawing."""
