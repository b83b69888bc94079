"""A bounded dual simplex for stage LPs with convex piecewise linear costs, in nopython.

:mod:`core` has the arrays and what a place of a variable means, :mod:`simplex` the method and its fallbacks,
:mod:`entry` the engine as one C function, :mod:`trial` the LPs of a trial point, :mod:`setup` a rank's part.
"""
