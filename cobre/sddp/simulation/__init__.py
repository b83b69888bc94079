"""Simulation of a trained policy: scenarios, stage LPs, and what they decide, block by block."""
