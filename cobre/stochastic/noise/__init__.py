"""Random numbers of the format, bit for bit: hashes, generators, low-discrepancy points, quantiles."""
