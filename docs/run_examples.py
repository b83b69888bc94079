"""Run the examples of ``case-format.md``.

``python docs/run_examples.py`` trains all of them, with names only those; ``--keep DIR`` keeps the case
directories. Each example is a change of the base case in that text, or of the example it is ``from``: objects
are merged key by key, list entries with an ``id`` by that id, everything else is replaced; a key or file that
is null is removed. Tables (Parquet) are given by columns.
"""

from __future__ import annotations

import argparse
import copy
import datetime
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Files = dict[str, Any]
TEXT = Path(__file__).with_name("case-format.md")
BASE = "base"
_BLOCK = re.compile(
    r"^```json example=(\S+)(?: from=(\S+))?\n(.*?)^```\n(.*?)(?=^```|^#)", re.MULTILINE | re.DOTALL
)
_STATED = re.compile(r"\*\*([−0-9,]+) \$\*\*")


def examples() -> dict[str, tuple[Files, float]]:
    """Return the files of every example by name, and the optimum that the text states, $."""
    found: dict[str, tuple[Files, float]] = {BASE: ({}, 0.0)}
    for name, origin, block, after in _BLOCK.findall(TEXT.read_text(encoding="utf-8") + "\n#"):
        stated = _STATED.search(after)
        if stated is None:
            raise ValueError(f"the text states no optimum after the example {name}")
        files = change(found[origin or BASE][0], json.loads(block))
        found[name] = (files, float(stated[1].replace(",", "").replace("−", "-")))
    return found


def change(files: Files, new: Files) -> Files:
    """Return the files of a case with the changes of an example."""
    tables = {path for path in new if path.endswith(".parquet")}
    return {
        **files,
        **{
            path: content if path in tables else merge(files.get(path), content)
            for path, content in new.items()
        },
    }


def merge(old: Any, new: Any) -> Any:
    """Return the JSON value ``old`` changed by ``new``."""
    if isinstance(old, dict) and isinstance(new, dict):
        both = {**old, **{key: merge(old.get(key), value) for key, value in new.items()}}
        return {key: value for key, value in both.items() if value is not None or new.get(key, 0) is not None}
    if not (_has_ids(old) and _has_ids(new)):
        return copy.deepcopy(new)
    entries = {entry["id"]: entry for entry in old}
    return list(
        {**entries, **{entry["id"]: merge(entries.get(entry["id"]), entry) for entry in new}}.values()
    )


def _has_ids(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, dict) and "id" in entry for entry in value)


def write(directory: Path, files: Files) -> Path:
    """Write a case directory."""
    for name, content in files.items():
        if content is None:
            continue
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".parquet":
            columns = {column: _array(column, values) for column, values in content.items()}
            pq.write_table(pa.table(columns), path, compression="zstd")
        else:
            path.write_text(json.dumps(content, indent=2), encoding="utf-8")
    return directory


def _array(column: str, values: list[Any]) -> Any:
    if column.endswith("_id"):
        return pa.array(values, pa.int32())
    if column.endswith("_date"):
        return pa.array([datetime.date.fromisoformat(value) for value in values], pa.date32())
    return pa.array(values, pa.float64())


def optimum(directory: Path) -> float:
    """Return the lower bound of a case after training, $."""
    import cobre

    return float(cobre.train(cobre.load_case(directory)).lower_bound)


def main() -> None:
    """Train the examples that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="examples; all unless given")
    parser.add_argument("--keep", type=Path, help="directory to write the cases to")
    arguments = parser.parse_args()
    known = examples()
    for name in arguments.names or known:
        if name not in known:
            parser.error(f"there is no example {name!r}; there are {', '.join(known)}")
    with tempfile.TemporaryDirectory() as scratch:
        for name in arguments.names or known:
            files, stated = known[name]
            found = optimum(write((arguments.keep or Path(scratch)) / name, files))
            print(f"{name:24} {found:18,.3f} $   (text: {stated:,.0f} $)")


if __name__ == "__main__":
    main()
