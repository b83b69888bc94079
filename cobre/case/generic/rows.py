"""Generic constraints to the rows of each stage's problem.

Each row of the bounds table makes rows of the problem: one for the block it names, or else one for each block
of the stage. If nothing in the constraint depends on the block of the row (neither a variable nor a
parameter), it makes one row for the whole stage instead.

A variable without a block argument is that of the row's block; a parameter by stage and block has the value
of the row's block. With a relational operator everything is moved to the left, and what is left of constants
on the right, R, is the bound of the side or sides the operator names; a bound of the table is added to R on
that side and is the only bound of the other.

A useful volume is the storage above the dead volume of the reservoir itself: ``c * useful = c * storage -
c * V_min``, so it becomes a storage here, and ``c * V_min`` is added to both bounds.
"""

from __future__ import annotations

import math

import numpy as np

from cobre.case.format import layout
from cobre.case.format.sources import Sources
from cobre.case.generic.catalogue import VARIABLES
from cobre.case.generic.checks import Constraint, Generic
from cobre.case.generic.entities import EntityIndex
from cobre.case.generic.expression import Variable
from cobre.case.generic.left import STORAGE, Left, LeftSides
from cobre.case.generic.parameters import ParameterTable, resolve_parameters
from cobre.case.generic.scope import follows_row
from cobre.case.model import Case, GenericRow, HydroStatus
from cobre.case.problems import Reporter, name_entity, short_ids

Rows = tuple[tuple[GenericRow, ...], ...]

_FILE = layout.GENERIC_CONSTRAINTS


def resolve_generic(generic: Generic, case: Case, sources: Sources, reporter: Reporter) -> Rows:
    """Return the rows by stage, in the order of (constraint id, block).

    Only for sources without errors. What shows only with all values at hand is reported: parameters that the
    case cannot give, bounds that cross, constraints that no decision can satisfy, variables always 0.
    """
    if not generic.constraints and sources.generic_parameters is None:
        return ((),) * len(case.stages)
    before = len(reporter.errors)
    tables = resolve_parameters(case, sources, reporter)
    if len(reporter.errors) > before:
        return ((),) * len(case.stages)
    return _Resolver(case, sources, tables, reporter).resolve(generic)


_OUT = "out of service"


class _Resolver:
    def __init__(
        self, case: Case, sources: Sources, tables: dict[str, ParameterTable], reporter: Reporter
    ) -> None:
        self.case = case
        self.tables = tables
        self.reporter = reporter
        self.index = EntityIndex(sources)
        self.stage_at = {stage.id: position for position, stage in enumerate(case.stages)}
        self.hydro_at = {hydro.id: position for position, hydro in enumerate(case.hydros)}
        self.hydro_is_out = np.array([data.hydro_status for data in case.stage_data]) == HydroStatus.OUT
        self.known_gaps: dict[Variable, dict[int, str]] = {}
        self.decisions = {
            thermal.id: {delivery.decision for delivery in thermal.anticipated} for thermal in case.thermals
        }

    def resolve(self, generic: Generic) -> Rows:
        rows: list[list[GenericRow]] = [[] for _ in self.case.stages]
        for constraint in generic.constraints:
            for row in self.rows_of(constraint, generic):
                rows[row.stage].append(row)
        for at_stage in rows:
            at_stage.sort(key=lambda row: (row.constraint_id, -1 if row.block is None else row.block))
        return tuple(map(tuple, rows))

    def rows_of(self, constraint: Constraint, generic: Generic) -> list[GenericRow]:
        whole_stage = not any(map(follows_row, constraint.variables)) and not any(
            self.tables[name].varies_by_block for name in constraint.form.parameters
        )
        bounds = generic.bounds
        lefts = LeftSides(constraint.form, self.dead_volumes(constraint))
        parameters = sorted(constraint.form.parameters)
        rows: list[GenericRow] = []
        crossed: list[int] = []
        impossible: list[int] = []
        overflow: list[int] = []
        absences = {variable: self.gaps_of(variable) for variable in constraint.variables}
        absences = {variable: gaps for variable, gaps in absences.items() if gaps}
        absent_at: dict[tuple[Variable, str], set[int]] = {}
        for position in bounds.of(constraint.id):
            stage = self.stage_at[int(bounds.stage[position])]
            number = self.case.stages[stage].id
            blocks: list[int | None] = [int(bounds.block[position])]
            if bounds.block[position] < 0:
                blocks = [None] if whole_stage else list(range(len(self.case.stages[stage].blocks)))
            absent = {variable: gaps[stage] for variable, gaps in absences.items() if stage in gaps}
            for variable, reason in absent.items():
                absent_at.setdefault((variable, reason), set()).add(number)
            gone = frozenset(variable for variable, reason in absent.items() if reason != _OUT)
            chronological = self.case.stages[stage].block_mode == "chronological"
            for block in blocks:
                values = {name: self.tables[name].at(stage, block) for name in parameters}
                left = lefts.at(block, chronological, gone, values)
                lower, upper = _interval(
                    constraint, left, float(bounds.lower[position]), float(bounds.upper[position])
                )
                if not left.finite:
                    overflow.append(number)
                elif lower > upper:
                    crossed.append(number)
                elif not left.terms and lower <= 0.0 <= upper:
                    continue
                elif not left.terms and constraint.penalty is None:
                    impossible.append(number)
                else:
                    rows.append(
                        GenericRow(
                            constraint.id,
                            constraint.name,
                            stage,
                            block,
                            left.terms,
                            lower,
                            upper,
                            constraint.penalty,
                        )
                    )
        self.report(
            constraint,
            crossed,
            "has a lower bound above its upper bound",
            "referential.5",
            "Change the bounds of the table or the constants of the expression.",
        )
        self.report(
            constraint,
            impossible,
            "has no variable with a coefficient other than 0, and cannot be met",
            None,
            "Change its parameters, or the stages at which it is active.",
        )
        self.report(
            constraint,
            overflow,
            "has coefficients larger than a double holds",
            None,
            "Change its numbers or parameters.",
        )
        self.warn_absent(constraint, absent_at)
        return rows

    def dead_volumes(self, constraint: Constraint) -> dict[int, float]:
        """Return the dead volume (hm3) of every plant with a useful volume in the constraint, by id."""
        useful = [variable for variable in constraint.variables if variable.kind in STORAGE]
        return {
            variable.entity_id: self.index.item(variable).reservoir.min_storage_hm3 for variable in useful
        }

    def gaps_of(self, variable: Variable) -> dict[int, str]:
        if variable not in self.known_gaps:
            self.known_gaps[variable] = self.absences(variable)
        return self.known_gaps[variable]

    def absences(self, variable: Variable) -> dict[int, str]:
        """Return the stages (positions) at which a variable is 0 by nature, and why."""
        stages = range(len(self.case.stages))
        if variable.kind == "anticipated_decision":
            decided = self.decisions[variable.entity_id]
            return {stage: "nothing is decided there" for stage in stages if stage not in decided}
        if VARIABLES[variable.kind].registry == "hydro":
            hydro = self.hydro_at[variable.entity_id]
            if variable.kind == "hydro_evaporation":
                models = self.case.evaporation
                none = [stage for stage in stages if models[stage][hydro] is None]
                return dict.fromkeys(none, "the plant has no evaporation there")
            if variable.kind == "hydro_diversion" and self.case.hydros[hydro].diversion is None:
                return dict.fromkeys(stages, "the plant has no diversion channel")
            if VARIABLES[variable.kind].scope != "block" or variable.kind == "hydro_inflow":
                return {}
            return dict.fromkeys(np.flatnonzero(self.hydro_is_out[:, hydro]).tolist(), _OUT)
        item = self.index.item(variable)
        entry, leave = getattr(item, "entry_stage_id", None), getattr(item, "exit_stage_id", None)
        out = [
            stage
            for stage, at in enumerate(self.case.stages if entry is not None or leave is not None else ())
            if (entry is not None and at.id < entry) or (leave is not None and at.id >= leave)
        ]
        return dict.fromkeys(out, _OUT)

    def report(
        self, constraint: Constraint, stages: list[int], what: str, rule: str | None, suggestion: str
    ) -> None:
        if stages:
            entity = name_entity("constraint", constraint.id, constraint.name)
            self.reporter.error(
                "InvalidValue",
                f"{_FILE}: {entity} {what} at stage {short_ids(stages)}.",
                file=_FILE,
                entity=entity,
                field="expression",
                value=short_ids(stages),
                rule=rule,
                suggestion=suggestion,
            )

    def warn_absent(self, constraint: Constraint, absent_at: dict[tuple[Variable, str], set[int]]) -> None:
        entity = name_entity("constraint", constraint.id, constraint.name)
        for (variable, reason), stages in absent_at.items():
            self.reporter.warning(
                "ModelQuality",
                f"{_FILE}: {variable} in {entity} is 0 at stage {short_ids(sorted(stages))}: {reason}.",
                file=_FILE,
                entity=entity,
                field="expression",
                value=str(variable),
                suggestion="Leave it out, or check the stages at which the constraint is active.",
            )


def _interval(constraint: Constraint, left: Left, lower: float, upper: float) -> tuple[float, float]:
    """Return the bounds of a row from those of the table (NaN = none) and the operator."""
    if constraint.operator in (">=", "=="):
        low = left.remainder + (0.0 if math.isnan(lower) else lower)
    else:
        low = -math.inf if math.isnan(lower) else lower
    if constraint.operator in ("<=", "=="):
        high = left.remainder + (0.0 if math.isnan(upper) else upper)
    else:
        high = math.inf if math.isnan(upper) else upper
    return low + left.shift, high + left.shift
