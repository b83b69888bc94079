"""Hydro plants of a case: production models, geometry, water under way."""
