"""Ranks of one machine that communicate through shared memory."""
