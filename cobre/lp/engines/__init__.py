"""Engines that solve stage LPs."""
