"""Generic linear constraints: expressions, parameters and bounds to rows of the stage problems.

``constraints/generic_constraints.json`` states expressions over the variables of a stage,
``constraints/generic_parameters.json`` names numbers that may vary by stage and block, and each row of
``constraints/generic_constraint_bounds.parquet`` makes a constraint active at a stage.
"""
