"""Everything about generic constraints that can be judged before the study is put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cobre.case.catalogue import by_id
from cobre.case.checks.references import check_unique
from cobre.case.format import layout
from cobre.case.format.documents import CaseDocuments
from cobre.case.format.schema.generic import ConstraintEntry
from cobre.case.format.schema.stages import StageEntry
from cobre.case.format.sources import Sources
from cobre.case.generic.bounds import BoundRows, no_rows, read_bounds
from cobre.case.generic.entities import EntityIndex, check_entities
from cobre.case.generic.expression import Expression, ExpressionError, Operator, Variable
from cobre.case.generic.linear import LinearForm, mentioned, references
from cobre.case.generic.named import NamedExpressions, report_expression
from cobre.case.generic.parameters import check_parameters
from cobre.case.generic.parser import parse_expression
from cobre.case.generic.scope import block_fault
from cobre.case.problems import Reporter, name_entity, short_ids

_FILE = layout.GENERIC_CONSTRAINTS


@dataclass(frozen=True, eq=False)
class Constraint:
    """A constraint with its expression in linear form, everything on the left-hand side.

    Attributes
    ----------
    form
        ``terms + constants`` are left of the operator, 0 right of it.
    penalty
        $ per unit and hour; ``None`` = hard.
    """

    id: int
    name: str
    form: LinearForm
    operator: Operator | None
    penalty: float | None

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables, each once."""
        return tuple(dict.fromkeys(variable for variable, _ in self.form.terms))


@dataclass(frozen=True, eq=False)
class Generic:
    """The generic constraints of a case, ascending by id, and the rows of their bounds."""

    constraints: tuple[Constraint, ...]
    bounds: BoundRows


def check_generic(files: CaseDocuments, sources: Sources, reporter: Reporter) -> Generic:
    """Check constraints, named expressions, parameters and bounds; return those that are sound."""
    check_parameters(sources, reporter)
    constraints = _check_constraints(sources, reporter)
    bounds = _read_bounds(files, sources, reporter)
    stages = {stage.id: stage for stage in sources.stages.items if stage.id >= 0}
    index = EntityIndex(sources)
    for constraint in constraints:
        check_entities(constraint.id, constraint.name, constraint.variables, index, reporter)
        if bounds is not None:
            _check_rows(constraint, bounds, reporter)
            _check_blocks(constraint, bounds, stages, reporter)
    return Generic(constraints, no_rows() if bounds is None else bounds)


def _entity(constraint: Constraint | ConstraintEntry) -> str:
    return name_entity("constraint", constraint.id, constraint.name)


def _check_constraints(sources: Sources, reporter: Reporter) -> tuple[Constraint, ...]:
    """Return the constraints whose expressions are sound."""
    parsed = sources.generic_constraints
    parameters = (
        [item.name for item in sources.generic_parameters.items] if sources.generic_parameters else []
    )
    if parsed is None:
        _warn_unused(parameters, [], set(), reporter)
        return ()
    ids = parsed.ids if parsed.ids is not None else [item.id for item in parsed.items]
    check_unique(ids, _FILE, "constraint", reporter, names=parsed.names)
    if parsed.root is None or (sources.generic_parameters and sources.generic_parameters.root is None):
        # Which names exist is not known, so no reference can be reported as dangling.
        for entry in parsed.items:
            _parse(entry, reporter)
        return ()
    before = len(reporter.errors)
    entries = parsed.root.expressions or []
    named = NamedExpressions(entries, parameters, reporter)
    used: set[str] = set()
    constraints = []
    for entry in by_id(parsed.items):
        expression = _parse(entry, reporter)
        if expression is None:
            continue
        both = (*expression.left, *expression.right)
        inner = {reference.name for reference in references(both)}
        used |= {*mentioned(both)}.union(*(named.uses.get(name, set()) for name in inner))
        if inner & named.broken:
            continue
        form = named.form(expression, _entity(entry))
        if form is None:
            continue
        if not form.terms:
            error = ExpressionError("the expression has no variable", entry.expression, 0)
            report_expression(error, _entity(entry), reporter)
            continue
        penalty = entry.slack.penalty if entry.slack.enabled else None
        constraints.append(Constraint(entry.id, entry.name, form, expression.operator, penalty))
    if len(reporter.errors) == before:
        # An expression that cannot be read might use any name.
        _warn_unused(parameters, [entry.name for entry in entries], used, reporter)
    return tuple(constraints)


def _parse(entry: ConstraintEntry, reporter: Reporter) -> Expression | None:
    """Return the expression of a constraint; report it if it is not well formed, and its slack too."""
    entity = _entity(entry)
    if entry.slack.enabled and (entry.slack.penalty is None or entry.slack.penalty <= 0):
        found = "missing" if entry.slack.penalty is None else f"{entry.slack.penalty}"
        reporter.error(
            "InvalidValue",
            f"{_FILE}: slack.penalty of {entity} must be > 0 when the slack is enabled, but is {found}.",
            file=_FILE,
            entity=entity,
            field="slack.penalty",
            value=entry.slack.penalty,
            suggestion="Give a positive price, or set slack.enabled to false for a hard constraint.",
        )
    try:
        return parse_expression(entry.expression)
    except ExpressionError as error:
        report_expression(error, entity, reporter)
        return None


def _warn_unused(
    parameters: Sequence[str], expressions: Sequence[str], used: set[str], reporter: Reporter
) -> None:
    for names, path, word, field in (
        (parameters, layout.GENERIC_PARAMETERS, "parameter", "scalar_parameters[].name"),
        (expressions, _FILE, "named expression", "expressions[].name"),
    ):
        for name in sorted(set(names) - used):
            reporter.warning(
                "UnusedEntity",
                f"{path}: the {word} '{name}' is used by no constraint.",
                file=path,
                entity=f"{word} {name}",
                field=field,
                value=name,
                suggestion=f"Remove it, or refer to it as @{name}.",
            )


def _read_bounds(files: CaseDocuments, sources: Sources, reporter: Reporter) -> BoundRows | None:
    if layout.GENERIC_BOUNDS not in sources.present:
        return no_rows()
    parsed = sources.generic_constraints
    ids: Sequence[int] | None = () if parsed is None else parsed.ids
    blocks: Mapping[int, int] | None = None
    # A stage with a faulty field is none of the items, but its id is known.
    if sources.stages.ids is not None and len(sources.stages.items) == len(sources.stages.ids):
        blocks = {stage.id: len(stage.blocks) for stage in sources.stages.items if stage.id >= 0}
    return read_bounds(files, ids, blocks, parsed.names if parsed else {}, reporter)


def _check_rows(constraint: Constraint, bounds: BoundRows, reporter: Reporter) -> None:
    """Check that the constraint has rows, and that they have an effect."""
    rows = bounds.of(constraint.id)
    entity = _entity(constraint)
    path = layout.GENERIC_BOUNDS
    if not rows and constraint.operator is not None:
        reporter.error(
            "BusinessRuleViolation",
            f"{_FILE}: {entity} has a relational operator but no row in {path}, so it is never active.",
            file=_FILE,
            entity=entity,
            field="expression",
            value=constraint.operator,
            rule="referential.6",
            suggestion=f"Add a row to {path} for every stage at which it holds; its bounds may be null.",
        )
        return
    if not rows:
        reporter.warning(
            "UnusedEntity",
            f"{_FILE}: {entity} has no row in {path}, so it is never active.",
            file=_FILE,
            entity=entity,
            field="id",
            value=constraint.id,
            suggestion=f"Add a row to {path} for every stage at which it holds, or remove the constraint.",
        )
        return
    if constraint.operator is not None:
        return
    part = slice(rows.start, rows.stop)
    lower, upper, stages = bounds.lower[part], bounds.upper[part], bounds.stage[part]
    for wrong, kind, what, rule, todo in (
        (
            np.isnan(lower) & np.isnan(upper),
            "SchemaViolation",
            "has neither bound_lower nor bound_upper",
            "referential.4",
            "Give at least one of them, or an operator in the expression.",
        ),
        (
            lower > upper,
            "InvalidValue",
            "has bound_lower above bound_upper",
            "referential.5",
            "Make bound_lower no greater than bound_upper.",
        ),
    ):
        if wrong.any():
            at = short_ids(stages[wrong].tolist())
            reporter.error(
                kind,
                f"{path}: {entity} {what} at stage {at}.",
                file=path,
                entity=entity,
                field="bound_lower",
                value=at,
                rule=rule,
                suggestion=todo,
            )


def _check_blocks(
    constraint: Constraint, bounds: BoundRows, stages: Mapping[int, StageEntry], reporter: Reporter
) -> None:
    """Check that every block a term names exists wherever the constraint is active."""
    rows = bounds.of(constraint.id)
    active = np.unique(bounds.stage[rows.start : rows.stop]).tolist()
    for variable in constraint.variables:
        faults: dict[str, list[int]] = {}
        for number in active:
            stage = stages.get(number)
            if stage is not None:
                fault = block_fault(variable, len(stage.blocks), stage.block_mode == "chronological")
                if fault is not None:
                    faults.setdefault(fault, []).append(number)
        for fault, numbers in faults.items():
            reporter.error(
                "BusinessRuleViolation",
                f"{_FILE}: {variable} in {_entity(constraint)}: {fault} (stage {short_ids(numbers)}).",
                file=_FILE,
                entity=_entity(constraint),
                field="expression",
                value=str(variable),
                rule="5a.20",
                suggestion="Change the block of the term, or the stages at which the constraint is active.",
            )
