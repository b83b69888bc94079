"""Physics of a hydro plant: reservoir geometry, head, production functions, evaporation, stored energy.

Everything here works on plain numbers and arrays; nothing refers to files.
"""
