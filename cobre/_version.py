"""The version of cobre, in one place."""

__version__ = "0.1.0"
