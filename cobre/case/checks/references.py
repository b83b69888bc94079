"""Checks every file shares: ids that repeat, ids that point nowhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from cobre.case.parse import Parsed
from cobre.case.problems import Reporter, known_ids, name_entity


def check_unique(
    ids: Sequence[int],
    path: str,
    word: str,
    reporter: Reporter,
    *,
    names: Mapping[int, str] | None = None,
    field: str = "id",
    entity: str | None = None,
) -> None:
    """Report each id that occurs more than once."""
    for number, count in sorted(Counter(ids).items()):
        if count > 1:
            whose = name_entity(word, number, (names or {}).get(number))
            owner = f" in {entity}" if entity else ""
            reporter.error(
                "DuplicateId",
                f"{path}: {word} {number} occurs {count} times{owner}.",
                file=path,
                entity=entity or whose,
                field=field,
                value=number,
                suggestion=f"Give every {word} an id of its own, or remove the extra entries.",
            )


def check_reference(
    value: int,
    target: Parsed[Any, Any],
    word: str,
    path: str,
    entity: str | None,
    field: str,
    reporter: Reporter,
    rule: str = "referential.1",
) -> bool:
    """Report ``value`` unless it is an id of ``target``; return whether it is known to exist.

    Nothing is reported while the ids of ``target`` are not all readable.
    """
    if target.ids is None:
        return False
    if value in target.id_set:
        return True
    where = f"{field} of {entity}" if entity else field
    reporter.error(
        "InvalidReference",
        f"{path}: {where} is {value}, but there is no {word} with that id.",
        file=path,
        entity=entity,
        field=field,
        value=value,
        rule=rule,
        suggestion=known_ids(target.ids, word),
    )
    return False
