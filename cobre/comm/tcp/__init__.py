"""Ranks that communicate through sockets, on one machine or several."""
