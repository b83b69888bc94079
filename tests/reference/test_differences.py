"""Every row of ``docs/differences.md``: the number or rule of cobre-rs, and ours.

Numbers of cobre-rs come from running its published wheel 0.18.0 on the public cases with one change. Beside
each stands a case of our own, the base case of the guide with the same change, that needs no public case;
what cobre-rs would make of it follows from its rule.
"""

from __future__ import annotations

import copy
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builders.guide_cases import DOCS, EXAMPLES, change, write
from builders.shared_cases import shared_cases

import cobre.case
import cobre.sddp
from cobre.case.model import Case

BASE = EXAMPLES["base"][0]
TABLE = (DOCS / "differences.md").read_text(encoding="utf-8")
INFLOW = "scenarios/inflow_seasonal_stats.parquet"
INITIAL = "initial_conditions.json"
HYDROS = "system/hydros.json"
LINES = "system/lines.json"


def bound(path: Path, iterations: int | None = None) -> float:
    return float(cobre.sddp.train(cobre.case.load(path), iterations=iterations).lower_bound)


def stated(*numbers: str) -> None:
    """The document gives these numbers, in one row."""
    rows = [line for line in TABLE.splitlines() if all(number in line for number in numbers)]
    assert rows, f"no row of differences.md has {numbers}"


class Own:
    """Changes of the base case of the guide, each in a directory of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.count = 0

    def write(self, files: dict[str, Any], example: str = "base") -> Path:
        self.count += 1
        return Path(write(self.root / str(self.count), change(EXAMPLES[example][0], files)))

    def bound(self, files: dict[str, Any], example: str = "base") -> float:
        return bound(self.write(files, example))

    def load(self, files: dict[str, Any], example: str = "base") -> Case:
        return cobre.case.load(self.write(files, example))


@pytest.fixture
def own(tmp_path: Path) -> Own:
    return Own(tmp_path)


def edited(name: str, target: Path, edits: dict[str, Callable[[Any], None]]) -> Path:
    """Copy a public case and change JSON files of it."""
    path = Path(shutil.copytree(shared_cases() / name, target / name))
    for file, edit in edits.items():
        content = json.loads((path / file).read_text(encoding="utf-8"))
        edit(content)
        (path / file).write_text(json.dumps(content), encoding="utf-8")
    return path


# Future costs below zero: cobre-rs bounds the future cost by 0.


def test_negative_future_cost_of_a_public_case(tmp_path: Path) -> None:
    def reward(file: Any) -> None:
        file["non_controllable_sources"][0]["curtailment_cost"] = 100.0

    # cobre-rs: lower bound -3,431,000, above its upper bound of -6,862,000.
    path = edited("d15-non-controllable-source", tmp_path, {"system/non_controllable_sources.json": reward})
    assert bound(path) == pytest.approx(-6_862_000.0, rel=1e-9)
    stated("−3,431,000", "−6,862,000")


def test_negative_future_cost(own: Own) -> None:
    wind = {
        "system/non_controllable_sources.json": {
            "non_controllable_sources": [{"id": 0, "curtailment_cost": 1000}]
        },
        "scenarios/non_controllable_stats.parquet": {
            "ncs_id": [0, 0],
            "stage_id": [0, 1],
            "mean": [0.0, 0.5],
            "std": [0.0, 0.0],
        },
        "scenarios/non_controllable_factors.json": None,
    }
    # 10 MW in stage 1 replace oil at 120 $/MWh and earn 1000. With a future cost of 0 or more the lower bound
    # would be that of stage 0 alone, which is positive.
    assert own.bound(wind, "wind") == pytest.approx(6_091_200.0 - 720 * 10 * 1120, rel=1e-9)
    stated("−1,972,800")


# Line losses: read and ignored by cobre-rs.


def test_losses_of_a_public_case(tmp_path: Path) -> None:
    def lose(file: Any) -> None:
        file["lines"][0]["losses_percent"] = 10.0

    path = edited("d04-transmission", tmp_path, {LINES: lose})
    # The line is full with 15 MW; 1.5 MW of them are missing in both stages, at 1000 $/MWh.
    assert bound(path) == pytest.approx(8_011_330.111111111 + 2 * 1.5 * 730 * 1000, rel=1e-9)
    stated("8,011,330", "10,201,330")


def test_losses(own: Own) -> None:
    assert own.bound({LINES: {"lines": [{"id": 0, "losses_percent": 10}]}}) == pytest.approx(6_609_600.0)
    assert own.bound({}) == pytest.approx(6_091_200.0)
    stated("6,091,200", "6,609,600")


# Initial storage outside the limits: moved inside them by cobre-rs.


def test_storage_below_the_minimum_of_a_public_case(tmp_path: Path) -> None:
    def raise_minimum(file: Any) -> None:
        file["hydros"][0]["reservoir"]["min_storage_hm3"] = 190.0

    def raise_storage(file: Any) -> None:
        file["storage"][0]["value_hm3"] = 190.0

    path = edited("d02-single-hydro", tmp_path / "ours", {HYDROS: raise_minimum})
    assert bound(path) == pytest.approx(4_856_200.0, rel=1e-9)
    edits = {HYDROS: raise_minimum, INITIAL: raise_storage}
    assert bound(edited("d02-single-hydro", tmp_path / "theirs", edits)) == pytest.approx(4_015_000.0)
    stated("4,015,000", "4,856,200")


def test_storage_below_the_minimum(own: Own) -> None:
    floor = {HYDROS: {"hydros": [{"id": 0, "reservoir": {"min_storage_hm3": 60}}]}}
    raised = {"storage": [{"hydro_id": 0, "value_hm3": 60}, {"hydro_id": 1, "value_hm3": 0}]}
    case = own.load({}, "storage-floor")
    assert [problem.context["field"] for problem in case.warnings] == ["storage.value_hm3"]
    assert cobre.sddp.train(case).lower_bound == pytest.approx(6_098_880.0)
    # As if it had started at 60 hm3, all of which must stay: no water is there that was not before.
    assert own.bound({**floor, INITIAL: raised}) == pytest.approx(8_668_800.0)


def test_storage_above_the_maximum(own: Own) -> None:
    def storage(value: float) -> dict[str, Any]:
        return {INITIAL: {"storage": [{"hydro_id": 0, "value_hm3": value}, {"hydro_id": 1, "value_hm3": 0}]}}

    small = {HYDROS: {"hydros": [{"id": 0, "reservoir": {"max_storage_hm3": 25.92}}]}}
    # 51.84 hm3 are there, 25.92 fit in at the end of a stage: what is above is turbined in stage 0.
    case = own.load({**small, **storage(51.84)})
    assert [problem.context["field"] for problem in case.warnings] == ["storage.value_hm3"]
    assert cobre.sddp.train(case).lower_bound == pytest.approx(6_091_200.0)
    assert own.bound({**small, **storage(25.92)}) == pytest.approx(7_380_000.0)
    stated("7,380,000", "6,091,200")


def test_plant_without_initial_storage_starts_at_its_minimum(own: Own) -> None:
    case = own.load(
        {
            HYDROS: {"hydros": [{"id": 0, "reservoir": {"min_storage_hm3": 20}}]},
            INITIAL: {"storage": [{"hydro_id": 1, "value_hm3": 0}]},
        }
    )
    assert case.hydros[0].initial_storage_hm3 == 20.0
    assert "has no initial storage" in case.warnings[0].message


# Deficit in generic constraints: cobre-rs counts segments that a bus does not have.


def rationing(bus: int, least: float) -> dict[str, Any]:
    return {
        "constraints/generic_constraints.json": {
            "constraints": [
                {
                    "id": 0,
                    "name": "rationing",
                    "expression": f"bus_deficit({bus})",
                    "slack": {"enabled": False},
                }
            ]
        },
        "constraints/generic_constraint_bounds.parquet": {
            "constraint_id": [0, 0],
            "stage_id": [0, 1],
            "bound_lower": [least, least],
        },
    }


def test_deficit_of_a_public_case_in_a_constraint(tmp_path: Path) -> None:
    def add_segment(file: Any) -> None:
        file["buses"][0]["deficit_segments"] = [
            {"depth_mw": 10.0, "cost": 900.0},
            {"depth_mw": None, "cost": 1000.0},
        ]

    for number, edits in enumerate([{}, {"system/buses.json": add_segment}]):
        path = edited("d04-transmission", tmp_path / str(number), edits)
        write(path, rationing(1, 7.0))
        # cobre-rs: 10,220,196.91 without the second segment at the other bus, 8,011,330.11 with it.
        assert bound(path) == pytest.approx(10_220_196.911111113, rel=1e-9)
    stated("8,011,330", "10,220,197")


def test_deficit_in_a_constraint(own: Own) -> None:
    segments = [{"depth_mw": 5, "cost": 900}, {"depth_mw": None, "cost": 1000}]
    north = {"system/buses.json": {"buses": [{"id": 0, "deficit_segments": segments}]}}
    # South sheds 3 MW in both stages at 1000 instead of 120 $/MWh, whatever segments North has.
    expected = 6_091_200.0 + 2 * 3 * 720 * 880
    assert own.bound(rationing(1, 3.0)) == pytest.approx(expected)
    assert own.bound({**rationing(1, 3.0), **north}) == pytest.approx(expected)


# The order of noise: cobre-rs sorts plants by the date of their service, then by id.


def test_noise_follows_ids_whatever_the_dates_of_service(tmp_path: Path) -> None:
    def later_first(file: Any) -> None:
        for hydro, date in zip(file["hydros"], ("2010-01-01", "2009-01-01"), strict=True):
            hydro["operational_start_date"] = date

    path = edited("d19-multi-hydro-par", tmp_path, {HYDROS: later_first})
    # cobre-rs: 1,332,491.2584; with equal dates 1,332,484.6165.
    assert bound(path) == pytest.approx(1_332_484.616490625, rel=1e-9)
    stated("1,332,484.62")


# Service


def test_plant_that_is_not_built_yet(tmp_path: Path) -> None:
    def build_later(file: Any) -> None:
        file["hydros"][0]["entry_stage_id"] = 1
        file["hydros"][0]["outflow"]["min_outflow_m3s"] = 10.0

    # cobre-rs: 77,086,111.1, 73 million of them for a minimum outflow of 10 m3/s in stage 0.
    path = edited("d02-single-hydro", tmp_path, {HYDROS: build_later})
    assert bound(path) == pytest.approx(4_086_111.111111111, rel=1e-9)
    stated("77,086,111.1", "4,086,111.111")


# Production


def test_head_term(own: Own) -> None:
    # For cobre-rs linearised head is constant productivity: the optimum of the base case.
    assert own.bound({}, "linearised-head") == pytest.approx(6_727_491.3295, abs=1e-3)
    stated("6,091,200", "6,727,491")


def test_number_of_planes(own: Own) -> None:
    def fitted(**keys: Any) -> Case:
        models = copy.deepcopy(EXAMPLES["fpha-computed"][0]["system/hydro_production_models.json"])
        models["production_models"][0]["stage_ranges"][0]["fpha_config"].update(keys)
        return own.load({"system/hydro_production_models.json": models}, "fpha-computed")

    every, two = fitted(), fitted(max_planes_per_hydro=2)
    assert len(every.production[0][0].planes) == 11
    assert len(two.production[0][0].planes) == 2
    stated("11 planes", "2 planes")
    ignored = fitted(spillage_discretization_points=7).warnings
    assert any("spillage_discretization_points" in problem.message for problem in ignored)


def test_evaporation_over_several_months(own: Own) -> None:
    monthly = {"coefficients_mm": [100, 200, 300, 0, 0, 0, 0, 0, 0, 0, 0, 0]}
    case = own.load({HYDROS: {"hydros": [{"id": 0, "evaporation": monthly}]}}, "evaporation")
    model = case.evaporation[1][0]
    assert model is not None
    # From 31 January to 1 March, mm an hour; the surface is 5 km2 and 3/259.2 km2 more with each hm3.
    rate = (1 * 100 / 744 + 28 * 200 / 672 + 1 * 300 / 744) / 30
    assert model.slope_m3s_per_hm3 == pytest.approx(rate * (3 / 259.2) / 3.6)
    assert model.intercept_m3s == pytest.approx(rate * 5 / 3.6)


# Commitments


def test_commitment_in_two_windows(own: Own) -> None:
    def committed(*windows: tuple[str, str, float]) -> float:
        entries = [
            {"thermal_id": 0, "start_date": start, "end_date": end, "value_mw": value}
            for start, end, value in windows
        ]
        return own.bound({INITIAL: {"past_anticipated_commitments": entries}}, "anticipated")

    start, middle, end = "2025-01-01", "2025-01-16", "2025-01-31"
    assert committed((start, middle, 30.0), (middle, end, 50.0)) == pytest.approx(6_004_800.0)
    # cobre-rs reads two windows of one stage as 0 MW.
    assert committed((start, end, 0.0)) == pytest.approx(9_460_800.0)
    stated("9,460,800", "6,004,800")


# What is refused


def null_id() -> dict[str, Any]:
    rows = dict(BASE[INFLOW])
    return {INFLOW: {**rows, "hydro_id": [None, *rows["hydro_id"][1:]]}}


def twice(path: str) -> dict[str, Any]:
    return {path: {name: [*values, values[0]] for name, values in BASE[path].items()}}


def production(**keys: Any) -> dict[str, Any]:
    models = copy.deepcopy(BASE["system/hydro_production_models.json"])
    models["production_models"][0].update(keys)
    return {"system/hydro_production_models.json": models}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "null id": (null_id(), "InvalidValue"),
    "repeated row": (twice(INFLOW), "DuplicateId"),
    "repeated cost": (
        {
            "constraints/penalty_overrides_bus.parquet": {
                "bus_id": [0, 0],
                "stage_id": [0, 0],
                "excess_cost": [1.0, 2.0],
            }
        },
        "DuplicateId",
    ),
    "depth of 0": (
        {
            "system/buses.json": {
                "buses": [
                    {
                        "id": 0,
                        "deficit_segments": [{"depth_mw": 0, "cost": 9}, {"depth_mw": None, "cost": 10}],
                    }
                ]
            }
        },
        "InvalidValue",
    ),
    "line to itself": ({LINES: {"lines": [{"id": 0, "target_bus_id": 0}]}}, "InvalidValue"),
    "losses above 100 %": ({LINES: {"lines": [{"id": 0, "losses_percent": 101}]}}, "InvalidValue"),
    "negative capacity": (
        {"constraints/line_bounds.parquet": {"line_id": [0], "stage_id": [0], "direct_mw": [-1.0]}},
        "InvalidValue",
    ),
    "no forward pass": (
        {"config.json": {"training": {"selection": {"forward_passes": 0}}}},
        "InvalidValue",
    ),
    "storage of an unknown plant": (
        {INITIAL: {"storage": [{"hydro_id": 7, "value_hm3": 1}]}},
        "InvalidReference",
    ),
    "unknown key of a production model": (production(note="x"), "SchemaViolation"),
    "unknown key of a tailrace": (
        {HYDROS: {"hydros": [{"id": 0, "tailrace": {"type": "polynomial", "coefficients": [1], "x": 1}}]}},
        "SchemaViolation",
    ),
    "segment without limit before the last": (
        {
            "system/buses.json": {
                "buses": [
                    {
                        "id": 0,
                        "deficit_segments": [{"depth_mw": None, "cost": 9}, {"depth_mw": None, "cost": 10}],
                    }
                ]
            }
        },
        "InvalidValue",
    ),
    "unknown model": (
        {HYDROS: {"hydros": [{"id": 0, "generation": {"model": "bad"}}]}},
        "InvalidValue",
    ),
    "negative cost with direction": (
        {"penalties.json": {"hydro": {"evaporation_violation_pos_cost": -1}}},
        "InvalidValue",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str, own: Own) -> None:
    files, kind = REFUSED[name]
    case, errors, _ = cobre.case.check(own.write(files))
    assert case is None
    assert kind in {error.kind for error in errors}, [(error.kind, error.message) for error in errors]


def test_unknown_key_of_parameters_is_named(own: Own) -> None:
    case = own.load({"constraints/generic_parameters.json": {"scalar_parameters": [], "note": "x"}})
    assert [problem.context["field"] for problem in case.warnings] == ["note"]


def test_codecs_and_widths(own: Own) -> None:
    path = own.write({})
    for codec, ids in (("snappy", pa.int64()), ("gzip", pa.uint8())):
        for file in path.glob("scenarios/*.parquet"):
            table = pq.read_table(file)
            columns = {
                name: table[name].cast(ids if name.endswith("_id") else pa.float64())
                for name in table.column_names
            }
            pq.write_table(pa.table(columns), file, compression=codec)
        assert bound(path) == pytest.approx(6_091_200.0)


def test_every_row_names_both_sides() -> None:
    rows = [line for line in TABLE.splitlines() if re.match(r"\| (?!topic|---)", line)]
    assert len(rows) > 20
    for row in rows:
        topic, theirs, ours = (cell.strip() for cell in row.strip("|").split("|")[:3])
        assert topic, row
        assert theirs, row
        assert ours, row
