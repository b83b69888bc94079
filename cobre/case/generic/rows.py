"""Generic constraints to the rows of each stage's problem.

Each row of the bounds table makes rows of the problem: one for the block it names, or else one for each block
of the stage. If nothing in the constraint depends on the block of the row (neither a variable nor a
parameter), it makes one row for the whole stage instead.

A variable without a block argument is that of the row's block; a parameter by stage and block has the value
of the row's block. With a relational operator everything is moved to the left, and what is left of constants
on the right, R, is the bound of the side or sides the operator names; a bound of the table is added to R on
that side and stands alone on the other.

A useful volume is the storage above the dead volume of the reservoir itself: ``c * useful = c * storage -
c * V_min``, so it becomes a storage here, and ``c * V_min`` is added to both bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cobre.case import layout
from cobre.case.generic.catalogue import VARIABLES
from cobre.case.generic.checks import Constraint, Generic
from cobre.case.generic.entities import EntityIndex
from cobre.case.generic.expression import Variable
from cobre.case.generic.parameters import ParameterTable, resolve_parameters
from cobre.case.generic.scope import follows_row, term_block
from cobre.case.model import Case, GenericRow, GenericTerm, HydroStatus, VariableKind
from cobre.case.problems import Reporter, name_entity, short_ids
from cobre.case.sources import Sources

Rows = tuple[tuple[GenericRow, ...], ...]

_FILE = layout.GENERIC_CONSTRAINTS
_STORAGE: dict[VariableKind, VariableKind] = {
    "hydro_useful_volume_initial": "hydro_storage_initial",
    "hydro_useful_volume_final": "hydro_storage_final",
}
_KIND_ORDER = {kind: position for position, kind in enumerate(VARIABLES)}


@dataclass(frozen=True, eq=False)
class _Left:
    """The left-hand side of a row, and what the constants and dead volumes move to its bounds."""

    terms: tuple[GenericTerm, ...]
    remainder: float
    shift: float


def resolve_generic(generic: Generic, case: Case, sources: Sources, reporter: Reporter) -> Rows:
    """Return the rows by stage, in the order of (constraint id, block).

    Only for sources without errors. What shows only with all values at hand is reported: parameters that the
    case cannot give, bounds that cross, constraints that no decision can meet, variables that are always 0.
    """
    if not generic.constraints and sources.generic_parameters is None:
        return ((),) * len(case.stages)
    before = len(reporter.errors)
    tables = resolve_parameters(case, sources, reporter)
    if len(reporter.errors) > before:
        return ((),) * len(case.stages)
    return _Resolver(case, sources, tables, reporter).resolve(generic)


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
        lefts: dict[object, _Left] = {}
        rows: list[GenericRow] = []
        crossed: list[int] = []
        impossible: list[int] = []
        overflow: list[int] = []
        absent_at: dict[tuple[Variable, str], list[int]] = {}
        for position in bounds.of(constraint.id):
            stage = self.stage_at[int(bounds.stage[position])]
            number = self.case.stages[stage].id
            blocks: list[int | None] = [int(bounds.block[position])]
            if bounds.block[position] < 0:
                blocks = [None] if whole_stage else list(range(len(self.case.stages[stage].blocks)))
            absent = self.absent(constraint, stage)
            for variable, reason in absent.items():
                if number not in (found := absent_at.setdefault((variable, reason), [])):
                    found.append(number)
            for block in blocks:
                left = self.left(constraint, stage, block, absent, lefts)
                lower, upper = _interval(
                    constraint, left, float(bounds.lower[position]), float(bounds.upper[position])
                )
                if not _is_finite(left):
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

    def left(
        self,
        constraint: Constraint,
        stage: int,
        block: int | None,
        absent: dict[Variable, str],
        known: dict[object, _Left],
    ) -> _Left:
        """Return the left-hand side of a row; equal ones are shared between stages."""
        chronological = self.case.stages[stage].block_mode == "chronological"
        values = {name: self.tables[name].at(stage, block) for name in sorted(constraint.form.parameters)}
        gone = frozenset(variable for variable, reason in absent.items() if reason != _OUT)
        key = (block, chronological, tuple(values.values()), gone)
        if key not in known:
            known[key] = self.build(constraint, block, chronological, values, gone)
        return known[key]

    def build(
        self,
        constraint: Constraint,
        block: int | None,
        chronological: bool,
        values: dict[str, float],
        gone: frozenset[Variable],
    ) -> _Left:
        sums: dict[tuple[VariableKind, int, int | None, int | None], float] = {}
        shift = 0.0
        for (variable, parameter), scale in constraint.form.terms.items():
            if variable in gone:
                continue
            coefficient = scale if parameter is None else scale * values[parameter]
            if variable.kind in _STORAGE:
                shift += coefficient * self.index.item(variable).reservoir.min_storage_hm3
            kind = _STORAGE.get(variable.kind, variable.kind)
            key = (kind, variable.entity_id, term_block(variable, block, chronological), variable.bus_id)
            sums[key] = sums.get(key, 0.0) + coefficient
        constant = 0.0
        for parameter, scale in constraint.form.constants.items():
            constant += scale if parameter is None else scale * values[parameter]
        terms = [
            GenericTerm(coefficient, kind, entity, at, bus)
            for (kind, entity, at, bus), coefficient in sums.items()
            if coefficient != 0.0
        ]
        terms.sort(key=_term_order)
        return _Left(tuple(terms), 0.0 - constant, shift)

    def absent(self, constraint: Constraint, stage: int) -> dict[Variable, str]:
        """Return the variables that are 0 at a stage by nature, and why."""
        reasons = ((variable, self.why_absent(variable, stage)) for variable in constraint.variables)
        return {variable: reason for variable, reason in reasons if reason is not None}

    def why_absent(self, variable: Variable, stage: int) -> str | None:
        number = self.case.stages[stage].id
        if variable.kind == "anticipated_decision":
            return None if stage in self.decisions[variable.entity_id] else "nothing is decided there"
        if VARIABLES[variable.kind].registry == "hydro":
            hydro = self.hydro_at[variable.entity_id]
            if variable.kind == "hydro_evaporation" and self.case.evaporation[stage][hydro] is None:
                return "the plant has no evaporation there"
            if variable.kind == "hydro_diversion" and self.case.hydros[hydro].diversion is None:
                return "the plant has no diversion channel"
            is_flow = VARIABLES[variable.kind].scope == "block" and variable.kind != "hydro_inflow"
            out = self.case.stage_data[stage].hydro_status[hydro] == HydroStatus.OUT
            return _OUT if is_flow and out else None
        item = self.index.item(variable)
        entry, leave = getattr(item, "entry_stage_id", None), getattr(item, "exit_stage_id", None)
        out = (entry is not None and number < entry) or (leave is not None and number >= leave)
        return _OUT if out else None

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

    def warn_absent(self, constraint: Constraint, absent_at: dict[tuple[Variable, str], list[int]]) -> None:
        entity = name_entity("constraint", constraint.id, constraint.name)
        for (variable, reason), stages in absent_at.items():
            self.reporter.warning(
                "ModelQuality",
                f"{_FILE}: {variable} in {entity} counts as 0 at stage {short_ids(stages)}: {reason}.",
                file=_FILE,
                entity=entity,
                field="expression",
                value=str(variable),
                suggestion="Leave it out, or check the stages at which the constraint is active.",
            )


_OUT = "out of service"


def _term_order(term: GenericTerm) -> tuple[int, int, int, int, bool]:
    block = -1 if term.block is None else term.block
    return _KIND_ORDER[term.kind], term.entity_id, block, term.bus_id or 0, term.bus_id is not None


def _is_finite(left: _Left) -> bool:
    numbers = (left.remainder, left.shift, *(term.coefficient for term in left.terms))
    return all(map(math.isfinite, numbers))


def _interval(constraint: Constraint, left: _Left, lower: float, upper: float) -> tuple[float, float]:
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
