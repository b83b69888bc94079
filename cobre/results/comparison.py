"""Two runs side by side: verdicts, bounds, costs, deficit, energy and prices, and what they differ by."""

from __future__ import annotations

import html
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from cobre.display import to_pandas, to_polars
from cobre.distribution import DEFICIT_MWH, distribution_of
from cobre.errors import OutputError
from cobre.results.metric import Metric
from cobre.results.reading import Results, Simulation, load

Value = float | str | None

TOLERANCE: Final = 1.0e-9
"""Relative difference up to which two numbers count as the same."""


@dataclass(frozen=True)
class Compared:
    """One quantity of two runs, A and B.

    Attributes
    ----------
    topic, item
        Such as ``cost`` and ``expected``.
    unit
        Empty where it has none.
    stage_id
        ``None`` where it is of the whole study.
    a, b
        ``None`` where a run does not have it.
    ci_95
        Half width of the 95 % confidence interval of the difference; ``None`` where it is not known.
    """

    topic: str
    item: str
    unit: str
    a: Value
    b: Value
    stage_id: int | None = None
    ci_95: float | None = None

    @property
    def difference(self) -> float | None:
        """B less A; ``None`` unless both are numbers."""
        if isinstance(self.a, float) and isinstance(self.b, float):
            return self.b - self.a
        return None

    @property
    def percent(self) -> float | None:
        """The difference in % of A; ``None`` where A is 0 or one of them is no number."""
        difference = self.difference
        if difference is None or not isinstance(self.a, float) or self.a == 0.0:
            return None
        return 100.0 * difference / abs(self.a)

    def differs(self, tolerance: float = TOLERANCE) -> bool:
        """Whether A and B are not the same, numbers up to a relative tolerance."""
        if isinstance(self.a, float) and isinstance(self.b, float):
            return not (self.a == self.b or abs(self.b - self.a) <= tolerance * max(abs(self.a), abs(self.b)))
        return self.a != self.b

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "topic": self.topic,
            "item": self.item,
            "stage_id": self.stage_id,
            "unit": self.unit,
            "a": self.a,
            "b": self.b,
            "difference": self.difference,
            "percent": self.percent,
            "ci_95": self.ci_95,
        }


@dataclass(frozen=True, eq=False)
class Comparison:
    """What two runs, A and B, have in common and differ in.

    Attributes
    ----------
    directories
        Of A and B.
    rows
        All that was compared.
    notes
        What could not be compared, and why.
    paired
        Whether both simulations have the same scenarios, so that the uncertainty of a difference is that of
        the differences by scenario.
    """

    directories: tuple[str, str]
    rows: tuple[Compared, ...]
    notes: tuple[str, ...]
    paired: bool

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not self.differences() and not self.notes

    def differences(self, tolerance: float = TOLERANCE) -> tuple[Compared, ...]:
        """Return what differs, numbers by more than a relative tolerance."""
        return tuple(row for row in self.rows if row.differs(tolerance))

    def __getitem__(self, topic: str) -> tuple[Compared, ...]:
        return tuple(row for row in self.rows if row.topic == topic)

    @property
    def topics(self) -> tuple[str, ...]:
        """What was compared, in order."""
        return tuple(dict.fromkeys(row.topic for row in self.rows))

    def to_arrow(self) -> pa.Table:
        """Return a row for each quantity; where A or B is a text it is in ``text_a`` or ``text_b``."""
        rows = []
        for row in self.rows:
            texts = {f"text_{name}": value for name, value in (("a", row.a), ("b", row.b))}
            numbers = {
                name: value if isinstance(value, float) else None
                for name, value in (("a", row.a), ("b", row.b))
            }
            texts = {name: value if isinstance(value, str) else None for name, value in texts.items()}
            rows.append({**row.as_dict(), **numbers, **texts})
        kinds = {name: pa.string() for name in ("topic", "item", "unit", "text_a", "text_b")}
        numbers_of = {name: pa.float64() for name in ("a", "b", "difference", "percent", "ci_95")}
        order = ("topic", "item", "stage_id", "unit", *numbers_of, "text_a", "text_b")
        types = {**kinds, **numbers_of, "stage_id": pa.int32()}
        return pa.Table.from_pylist(rows, schema=pa.schema([(name, types[name]) for name in order]))

    def to_pandas(self) -> Any:
        """Return it as a ``pandas.DataFrame``."""
        return to_pandas(self.to_arrow())

    def to_polars(self) -> Any:
        """Return it as a ``polars.DataFrame``."""
        return to_polars(self.to_arrow())

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "equal": self.equal,
            "directories": list(self.directories),
            "same_scenarios": self.paired,
            "notes": list(self.notes),
            "rows": [row.as_dict() for row in self.rows],
        }

    def __repr__(self) -> str:
        differing = len(self.differences())
        found = "the same" if self.equal else f"{differing} of {len(self.rows)} quantities differ"
        return f"Comparison({self.directories[0]!r}, {self.directories[1]!r}: {found})"

    def _repr_html_(self) -> str:
        names = ("topic", "item", "unit", "a", "b", "difference", "percent")
        head = "".join(f"<th>{name}</th>" for name in names)
        body = "".join(
            "<tr>"
            + "".join(f"<td>{html.escape(_cell(row.as_dict()[name]))}</td>" for name in names)
            + "</tr>"
            for row in self.rows
            if row.stage_id is None
        )
        return f"<table><caption>{html.escape(repr(self))}</caption><tr>{head}</tr>{body}</table>"


def _cell(value: Value) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else value


def compare(a: Results | str | os.PathLike[str], b: Results | str | os.PathLike[str]) -> Comparison:
    """Compare two runs, of one study or of variants of it.

    ``cobre.results.compare("base/output", "variant/output").to_pandas()`` is a data frame of it.

    Parameters
    ----------
    a, b
        Results, or output directories.

    Raises
    ------
    OutputError
        When one of them holds no results, or both have no part in common.
    """
    runs = tuple(item if isinstance(item, Results) else load(item) for item in (a, b))
    one, other = runs
    names = str(one.directory), str(other.directory)
    notes: list[str] = []
    rows: list[Compared] = []
    common = 0
    for part in ("training", "simulation"):
        there = [getattr(run, part).exists for run in runs]
        if all(there):
            common += 1
        elif any(there):
            notes.append(f"only {'A' if there[0] else 'B'} has a {part}")
    if not common:
        raise OutputError(
            "NothingInCommon",
            f"{names[0]} and {names[1]} cannot be compared: {notes[0]}, {notes[1]}",
            {"file": names[1]},
            "train or simulate both",
        )
    if one.training.exists and other.training.exists:
        rows += _training(one, other)
    notes += [
        f"the simulation of {name} is not of the policy that its training left"
        for name, run in zip("AB", runs, strict=True)
        if not run.simulates_policy
    ]
    paired = False
    if one.simulation.exists and other.simulation.exists:
        paired = _same_scenarios(one.simulation, other.simulation)
        rows += _simulation(one.simulation, other.simulation, paired)
        notes += _studies(one.simulation, other.simulation)
    return Comparison(names, tuple(rows), tuple(notes), paired)


# -- training


def _training(one: Results, other: Results) -> Iterator[Compared]:
    documents = one.training.metadata, other.training.metadata
    for topic, section, names in (
        ("run", "iterations", ("completed",)),
        ("run", "convergence", ("termination_reason",)),
        ("run", "configuration", ("seed", "forward_passes")),
        ("run", "row_pool", ("total_active",)),
        (
            "bounds",
            "bounds",
            ("final_lower_bound", "final_lower_bound_kind", "deterministic_upper_bound"),
        ),
    ):
        for name in names:
            values = [_value(_section(document, section).get(name)) for document in documents]
            if any(value is not None for value in values):
                unit = "$" if topic == "bounds" and not name.endswith("kind") else ""
                yield Compared(topic, name, unit, values[0], values[1])
    digests = [_value(document.get("policy_sha256")) for document in documents]
    yield Compared("run", "policy_sha256", "", digests[0], digests[1])
    leaves = [dict(_leaves(_section(document, "verdict"))) for document in documents]
    for name in dict.fromkeys([*leaves[0], *leaves[1]]):
        yield Compared("verdict", name, "", leaves[0].get(name), leaves[1].get(name))


def _section(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = document.get(name)
    return found if isinstance(found, dict) else {}


def _leaves(document: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Value]]:
    for name, value in document.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{above}{name}.")
        elif not isinstance(value, list):
            yield f"{above}{name}", _value(value)


def _value(value: Any) -> Value:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    return float(value) if isinstance(value, (int, float)) else str(value)


# -- simulation


def _same_scenarios(one: Simulation, other: Simulation) -> bool:
    """Whether scenario by scenario both draw the same noise: of one seed and source, and one uncertainty."""
    if not np.array_equal(one.scenarios, other.scenarios):
        return False
    studies = [_section(part.metadata, "study") for part in (one, other)]
    if not all(studies) or any(studies[0].get(name) != studies[1].get(name) for name in ("seed", "source")):
        return False
    topics = [_section(study, "topics") for study in studies]
    about = ("scenarios", "stages", "seasons", "estimation", "graph", "training.tree_seed", "hydros.id")
    names = [name for name in {*topics[0], *topics[1]} if name.split(".")[0] in about or name in about]
    return bool(names) and all(topics[0].get(name) == topics[1].get(name) for name in names)


def _studies(one: Simulation, other: Simulation) -> list[str]:
    topics = [_section(_section(part.metadata, "study"), "topics") for part in (one, other)]
    if not all(topics):
        return []
    names = sorted(name for name in {*topics[0], *topics[1]} if topics[0].get(name) != topics[1].get(name))
    # A section stands for its keys where some of these differ.
    found = [name for name in names if not any(part.startswith(f"{name}.") for part in names)]
    more = f" and {len(found) - 8} more" if len(found) > 8 else ""
    return [f"the studies differ in {', '.join(found[:8])}{more}"] if found else []


def _simulation(one: Simulation, other: Simulation, paired: bool) -> Iterator[Compared]:
    metrics = one.metrics, other.metrics
    costs = [item.cost for item in metrics]
    yield Compared("run", "scenarios", "", float(len(one.scenarios)), float(len(other.scenarios)))
    if paired:
        difference = metrics[1].scenario_cost - metrics[0].scenario_cost
        uncertainty = distribution_of(difference, one.probability).ci_95
    else:
        uncertainty = math.hypot(costs[0].ci_95, costs[1].ci_95)
    yield Compared("cost", "expected", "$", costs[0].mean, costs[1].mean, ci_95=uncertainty)
    for item, name in (("± of the mean", "ci_95"), ("standard deviation", "std"), ("CVaR 95 %", "cvar_95")):
        yield Compared("cost", item, "$", getattr(costs[0], name), getattr(costs[1], name))
    components = [item.cost_by_component() for item in metrics]
    yield from _joined("cost by component", components, "component", "cost")
    deficits = [item.deficit(()).rows()[0] for item in metrics]
    for item, name, unit in (
        ("expected unserved energy", "expected_unserved_mwh", "MWh"),
        ("probability", "deficit_probability", ""),
    ):
        yield Compared("deficit", item, unit, deficits[0][name], deficits[1][name])
    by_bus = [item.deficit(("bus",)) for item in metrics]
    if any((item["expected_unserved_mwh"] > DEFICIT_MWH).any() for item in by_bus):
        yield from _joined("unserved energy by bus", by_bus, "bus_name", "expected_unserved_mwh")
    yield from _energies([item.energy() for item in metrics])
    prices = [item.marginal_cost(()) for item in metrics]
    means = [_prices(table, item.hours) for table, item in zip(prices, metrics, strict=True)]
    yield from _joined("mean marginal cost", means, "bus_name", "mean")
    if all("hydros" in part for part in (one, other)):
        for topic, name in (("stored energy", "stored_energy"), ("inflow energy", "inflow_energy")):
            yield from _staged(topic, [getattr(item, name)(()) for item in metrics])
    for bus in dict.fromkeys(name for table in prices for name in table["bus_name"].tolist()):
        yield from _staged("marginal cost", prices, str(bus))


def _joined(topic: str, tables: list[Metric], label: str, column: str) -> Iterator[Compared]:
    values = [dict(zip(table[label].tolist(), table[column].tolist(), strict=True)) for table in tables]
    for name in dict.fromkeys([*values[0], *values[1]]):
        pair = values[0].get(name), values[1].get(name)
        if any(pair):
            yield Compared(topic, str(name), tables[0].unit(column), *pair)


def _energies(tables: list[Metric]) -> Iterator[Compared]:
    names = dict.fromkeys(name for table in tables for name in table.columns if name.endswith("_mwh"))
    for name in names:
        pair = [float(table[name].sum()) if name in table.columns else None for table in tables]
        if any(pair):
            yield Compared("energy", name.removesuffix("_mwh").replace("_", " "), "MWh", pair[0], pair[1])


def _prices(table: Metric, hours: Mapping[tuple[int, int], float]) -> Metric:
    """Return the mean of the marginal cost of each bus over the hours of the study, where they are known."""
    by_stage: dict[int, float] = {}
    for (stage, _), length in hours.items():
        by_stage[stage] = by_stage.get(stage, 0.0) + length
    totals: dict[str, float] = {}
    for row in table.rows() if all(stage in by_stage for stage in table["stage_id"].tolist()) else ():
        weighted = row["mean"] * by_stage[row["stage_id"]] / math.fsum(by_stage.values())
        totals[row["bus_name"]] = totals.get(row["bus_name"], 0.0) + weighted
    units = table.unit("mean")
    return Metric(
        "mean marginal cost", {"bus_name": (list(totals), ""), "mean": (list(totals.values()), units)}
    )


def _staged(topic: str, tables: list[Metric], bus: str | None = None) -> Iterator[Compared]:
    values = [
        {
            row["stage_id"]: (row["mean"], str(row.get("start_date", "")))
            for row in table.rows()
            if bus is None or row["bus_name"] == bus
        }
        for table in tables
    ]
    nothing = (None, "")
    for stage in dict.fromkeys([*values[0], *values[1]]):
        pair = values[0].get(stage, nothing), values[1].get(stage, nothing)
        item = " ".join(filter(None, (bus, f"stage {stage}", pair[0][1] or pair[1][1])))
        yield Compared(topic, item, tables[0].unit("mean"), pair[0][0], pair[1][0], stage_id=int(stage))
