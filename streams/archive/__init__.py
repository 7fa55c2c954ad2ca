"""The log on disk: sealed segments of raw records, chained by hashes, the log of record of an embedded run."""
