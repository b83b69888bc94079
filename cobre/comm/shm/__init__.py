"""Ranks of one machine that meet in shared memory."""
