"""Each package imports only from those below it, so that a reader knows what may depend on what."""

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "cobre"

LAYERS = (
    {"_distribution", "_lazy", "_version", "errors", "fields", "members", "stop_signals", "units"},
    {
        "_communicators",
        "display",
        "distribution",
        "durable",
        "event_log",
        "machine",
        "output",
        "parquet_size",
    },
    {"native"},
    {"comm"},
    {"hydro"},
    {"rules"},
    {"case"},
    {"stochastic"},
    {"lp"},
    {"policy"},
    {"sddp"},
    {"results"},
    {"templates"},
    {"mcp"},
    {"cli"},
    {"__init__", "__main__"},
)
"""From the ground up; of one layer none imports another."""

UPWARDS = {
    # `python -m cobre.sddp` is the command line.
    ("sddp/__main__.py", "cli"),
    # One way through: what a person starts from reaches what is made of it, when it is called.
    ("case/loader.py", "sddp"),
    ("case/model/case.py", "stochastic"),
    ("sddp/costs.py", "results"),
    ("sddp/outcome.py", "results"),
    ("sddp/simulation/run.py", "results"),
}
"""Imports upwards, (file, package), each for a reason."""


def imports(path: Path) -> Iterator[str]:
    """Yield the packages of cobre that a file imports anywhere, those for types included."""
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "cobre" and len(parts) > 1:
                yield "_version" if parts[1] == "__version__" else parts[1]


def test_packages_import_downwards_only():
    level = {name: place for place, names in enumerate(LAYERS) for name in names}
    upwards = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        own = place.parts[0].removesuffix(".py")
        assert own in level, f"{own} has no layer"
        for package in set(imports(path)) - {own}:
            assert package in level, f"{place} imports cobre.{package}, which has no layer"
            if level[package] >= level[own]:
                upwards.add((place.as_posix(), package))
    assert upwards == UPWARDS
