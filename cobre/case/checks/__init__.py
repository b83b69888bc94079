"""Checks across fields, entities and files, on what could be parsed."""
