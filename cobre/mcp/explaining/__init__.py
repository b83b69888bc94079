"""Reasons for simulated prices and water values, from tables, limits and cuts; nothing of the protocol."""
