"""Named expressions: each parsed and put into linear form once, in the order of their references."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from cobre.case.format import layout
from cobre.case.format.schema.generic import NamedExpressionEntry
from cobre.case.generic.expression import Expression, ExpressionError, excerpt
from cobre.case.generic.linear import LinearForm, linear_form, mentioned, references
from cobre.case.generic.parser import parse_expression
from cobre.case.problems import Reporter

_FILE = layout.GENERIC_CONSTRAINTS


def report_expression(error: ExpressionError, entity: str, reporter: Reporter) -> None:
    """Report an expression that cannot be used, with the place marked by a caret."""
    reporter.error(
        "ParseError",
        f"{_FILE}: {entity}: {error.message} at column {error.position + 1}:\n"
        f"{excerpt(error.text, error.position)}",
        file=_FILE,
        entity=entity,
        field="expression",
        value=error.text,
        column=error.position + 1,
        suggestion=error.suggestion,
    )


class NamedExpressions:
    """The named expressions of a case.

    Attributes
    ----------
    forms
        Linear forms by name, of those that are sound.
    broken
        Names that are declared but cannot be used; why has been reported.
    uses
        Names each expression mentions, parameters and itself included, at any depth.
    declared
        All names.
    """

    def __init__(
        self, entries: Sequence[NamedExpressionEntry], parameters: Collection[str], reporter: Reporter
    ) -> None:
        self.forms: dict[str, LinearForm] = {}
        self.broken: set[str] = set()
        self.uses: dict[str, set[str]] = {}
        self._parameters = parameters
        self._reporter = reporter
        self.declared = {entry.name for entry in entries}
        self._parsed = self._parse(entries)
        for name in self._order():
            self._resolve(name)

    def _parse(self, entries: Sequence[NamedExpressionEntry]) -> dict[str, Expression]:
        parsed: dict[str, Expression] = {}
        for name, count in sorted(Counter(entry.name for entry in entries).items()):
            if count > 1 or name in self._parameters:
                what = f"{count} named expressions are" if count > 1 else "a parameter is also"
                self._reporter.error(
                    "DuplicateId",
                    f"{_FILE}: {what} called '{name}'.",
                    file=_FILE,
                    entity=f"named expression {name}",
                    field="expressions[].name",
                    value=name,
                    rule="scalar_parameters.C",
                    suggestion="Give every parameter and every named expression a name of its own.",
                )
        for entry in entries:
            try:
                expression = parse_expression(entry.expression)
                if expression.operator is not None:
                    place = entry.expression.index(expression.operator)
                    raise ExpressionError(
                        "a named expression has no relational operator",
                        entry.expression,
                        place,
                        "Put the operator into the constraint that uses it.",
                    )
                parsed[entry.name] = expression
            except ExpressionError as error:
                report_expression(error, f"named expression {entry.name}", self._reporter)
                self.broken.add(entry.name)
        return parsed

    def _order(self) -> list[str]:
        """Return the names, each after those it refers to; report cycles and leave their members out."""
        order: list[str] = []
        state: dict[str, int] = {}
        for start in sorted(self._parsed):
            # Depth first with a stack of its own: chains may be longer than Python's.
            stack = [(start, iter(self._inner(start)))] if start not in state else []
            if stack:
                state[start] = 1
            while stack:
                name, following = stack[-1]
                inner = next(following, None)
                if inner is None:
                    stack.pop()
                    state[name] = 2
                    order.append(name)
                elif state.get(inner) == 1:
                    path = [entry for entry, _ in stack]
                    self._report_cycle([*path[path.index(inner) :], inner])
                elif inner not in state:
                    state[inner] = 1
                    stack.append((inner, iter(self._inner(inner))))
        return order

    def _inner(self, name: str) -> list[str]:
        found = {reference.name for reference in references(self._parsed[name].left)}
        return sorted(found & set(self._parsed))

    def _report_cycle(self, names: Sequence[str]) -> None:
        self.broken.update(names)
        self._reporter.error(
            "CycleDetected",
            f"{_FILE}: named expressions refer to each other in a circle: "
            f"{' -> '.join('@' + name for name in names)}.",
            file=_FILE,
            entity=f"named expression {names[0]}",
            field="expression",
            value=self._parsed[names[0]].text,
            suggestion="Remove one of the references.",
        )

    def _resolve(self, name: str) -> None:
        expression = self._parsed[name]
        inner = {reference.name for reference in references(expression.left)}
        self.uses[name] = {name, *mentioned(expression.left)}.union(
            *(self.uses.get(other, set()) for other in inner)
        )
        if name in self.broken or inner & self.broken:
            self.broken.add(name)
            return
        form = self.form(expression, f"named expression {name}")
        if form is None:
            self.broken.add(name)
        else:
            self.forms[name] = form

    def form(self, expression: Expression, entity: str) -> LinearForm | None:
        """Return the linear form of an expression, or ``None`` after reporting why there is none."""
        try:
            return linear_form(expression, self._parameters, self.forms, self.declared)
        except ExpressionError as error:
            report_expression(error, entity, self._reporter)
            return None
