"""Ranks that talk by sockets, on one machine or several."""
