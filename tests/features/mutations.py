"""Broken and changed copies of a case: keys, types, values, references, columns, cells and files.

Documents are dicts (JSON) and ``pyarrow.Table`` objects, by path; a mutation returns a copy with one change.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Place = tuple[str | int, ...]
Documents = dict[str, Any]

VALUES: list[Any] = [
    None,
    float("nan"),
    float("inf"),
    -1,
    0,
    1,
    10**30,
    1e308,
    -1e-300,
    True,
    False,
    "",
    "text",
]
VALUES += [[], {}, [None], [[]], {"x": 1}, "2024-02-30", "\x00", "9" * 400, [1, 2, 3]]
CELLS: list[Any] = [
    None,
    float("nan"),
    float("inf"),
    -1,
    0,
    1,
    3,
    10**9,
    2**31 - 1,
    -(2**31),
    2**40,
    1e308,
    0.5,
]
CELLS += ["text", True]


@dataclass(frozen=True)
class Mutant:
    """What was done, and the documents after it (bytes for files that are no longer well formed)."""

    what: str
    documents: Documents


def places(value: Any, here: Place = ()) -> Iterator[Place]:
    """Yield the place of every value inside a JSON document."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield (*here, key)
        yield from places(item, (*here, key))


def value_at(document: Any, place: Place) -> Any:
    """Return the value at a place."""
    for part in place:
        document = document[part]
    return document


def replaced(document: Any, place: Place, value: Any) -> Any:
    """Return a copy of a document with another value at a place."""
    changed = copy.deepcopy(document)
    value_at(changed, place[:-1])[place[-1]] = value
    return changed


def random_mutants(documents: Documents, count: int, seed: int = 0) -> Iterator[Mutant]:
    """Yield ``count`` copies with one or two random changes each."""
    rng = random.Random(seed)
    for _ in range(count):
        mutant = Mutant("", documents)
        for _ in range(rng.choice((1, 1, 1, 2))):
            done = _mutate(mutant.documents, rng)
            mutant = Mutant(f"{mutant.what}; {done.what}".lstrip("; "), done.documents)
        yield mutant


def _mutate(documents: Documents, rng: random.Random) -> Mutant:
    path = rng.choice(sorted(documents))
    content = documents[path]
    roll = rng.random()
    if roll < 0.04:
        return _spoil_file(documents, path, rng)
    if isinstance(content, bytes):
        return Mutant(f"{path} once more", documents)
    changed, what = (
        _mutate_table(content, rng) if isinstance(content, pa.Table) else _mutate_json(content, rng)
    )
    return Mutant(f"{path}: {what}", {**documents, path: changed})


def _spoil_file(documents: Documents, path: str, rng: random.Random) -> Mutant:
    action = rng.choice(("drop", "cut", "flip", "swap", "stray"))
    others = {name: content for name, content in documents.items() if name != path}
    if action == "drop":
        return Mutant(f"{path} dropped", others)
    if action == "stray":
        return Mutant("stray file", {**documents, path.replace(".", "_old."): documents[path]})
    if action == "swap":
        other = rng.choice(sorted(documents))
        return Mutant(f"{path} holds {other}", {**others, path: encoded(documents[other])})
    data = encoded(documents[path])
    at = rng.randrange(len(data))
    if action == "cut":
        return Mutant(f"{path} cut at {at}", {**others, path: data[:at]})
    flipped = data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
    return Mutant(f"{path} with another bit at {at}", {**others, path: flipped})


def encoded(content: Any) -> bytes:
    """Return a document as the bytes of its file."""
    if isinstance(content, bytes):
        return content
    if isinstance(content, pa.Table):
        sink = pa.BufferOutputStream()
        pq.write_table(content, sink)
        return sink.getvalue().to_pybytes()
    return json.dumps(content).encode()


def _mutate_json(document: Any, rng: random.Random) -> tuple[Any, str]:
    found = list(places(document))
    if not found:
        return {"unknown_key": 1}, "unknown key"
    place = rng.choice(found)
    value = value_at(document, place)
    changed = copy.deepcopy(document)
    holder = value_at(changed, place[:-1])
    action = rng.choice(("delete", "key", "rename", "value", "value", "number", "repeat", "reference"))
    if action == "delete":
        del holder[place[-1]]
    elif action in ("key", "rename") and isinstance(holder, dict):
        key = str(place[-1])
        misspelt = rng.choice((f"{key}_", key.upper(), key[:-1], f"x{key}"))
        holder[misspelt] = holder.pop(key) if action == "rename" else copy.deepcopy(value)
    elif action == "repeat" and isinstance(holder, list):
        holder.append(copy.deepcopy(value))
    elif action == "number" and isinstance(value, (int, float)) and not isinstance(value, bool):
        holder[place[-1]] = rng.choice((-value, value * 1.5, value + 1, value * 1e12, str(value), value / 3))
    elif action == "reference" and isinstance(value, int):
        holder[place[-1]] = rng.choice((value + 1, value - 1, value + 1000, -value - 1))
    else:
        holder[place[-1]] = copy.deepcopy(rng.choice(VALUES))
    return changed, f"{action} at {'.'.join(map(str, place))}"


def _mutate_table(table: pa.Table, rng: random.Random) -> tuple[pa.Table, str]:
    name = rng.choice(table.column_names)
    at = table.column_names.index(name)
    column = table.column(name)
    action = rng.choice(
        ("drop", "rename", "extra", "type", "cell", "cell", "cell", "rows", "repeat", "empty")
    )
    if action == "drop":
        return table.drop_columns([name]), f"without {name}"
    if action == "rename":
        names = [f"{other}x" if other == name else other for other in table.column_names]
        return table.rename_columns(names), f"{name} renamed"
    if action == "extra":
        return table.append_column("unknown_column", column), "one more column"
    if action == "type":
        kind = rng.choice(
            (pa.string(), pa.float64(), pa.float32(), pa.int64(), pa.int8(), pa.bool_(), pa.null())
        )
        values = [None] * len(column) if pa.types.is_null(kind) else column.to_pylist()
        try:
            converted = pa.array([str(v) for v in values] if kind == pa.string() else values, kind)
        except (pa.ArrowException, OverflowError):
            return table.drop_columns([name]), f"without {name}"
        return table.set_column(at, name, converted), f"{name} as {kind}"
    if action == "empty" or not table.num_rows:
        return table.slice(0, 0), "no rows"
    if action == "rows":
        return table.slice(rng.randrange(table.num_rows)), "fewer rows"
    row = rng.randrange(table.num_rows)
    if action == "repeat":
        return pa.concat_tables([table, table.slice(row, 1)]), f"row {row} twice"
    values = column.to_pylist()
    values[row] = rng.choice(CELLS)
    try:
        converted = pa.array(values)
    except (pa.ArrowException, OverflowError, TypeError):
        converted = pa.array([None if value is None else str(value) for value in values])
    return table.set_column(at, name, converted), f"{name}[{row}] = {values[row]!r}"
