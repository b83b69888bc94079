"""Nopython code of one iteration, and the arrays it works on."""
