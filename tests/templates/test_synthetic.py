"""The synthetic template: valid at every size, feasible, and a function of its options alone."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from builders.json_schema import faults

import cobre.case
import cobre.sddp
from cobre.case.format import describe, layout
from cobre.case.format.documents import encode_json
from cobre.errors import ValidationError
from cobre.templates import synthetic_template
from cobre.templates.synthetic import build
from cobre.templates.synthetic_options import LIMITS, SIZES, SyntheticOptions

ODD = {
    "one of everything": SyntheticOptions(hydros=1, thermals=1, openings=1, forward_passes=1, stages=2),
    "short": SyntheticOptions(hydros=13, buses=6, blocks=5, stages=3, fpha_share=0.3),
    "long": SyntheticOptions(hydros=5, buses=2, blocks=2, stages=40, fpha_share=1.0),
    "more buses than plants": SyntheticOptions(hydros=2, thermals=3, buses=9),
}
WITH_MEMORY = {
    "lags": SyntheticOptions(hydros=9, order=3),
    "a year of lags in a short study": SyntheticOptions(hydros=3, order=12, stages=4),
    "correlation": SyntheticOptions(hydros=30, correlation=1.0),
    "both": SyntheticOptions(hydros=12, order=6, correlation=0.8, stages=24),
}


def digest(files: dict[str, Any]) -> str:
    """Return a digest over the files as they are written: JSON as text, tables as values."""
    found = hashlib.sha256()
    for path, content in sorted(files.items()):
        found.update(path.encode())
        found.update(encode_json(content if isinstance(content, dict) else content.to_pydict()))
    return found.hexdigest()


@pytest.mark.parametrize("options", [*SIZES.values(), *ODD.values()], ids=[*SIZES, *ODD])
def test_a_case_of_the_sizes_asked_for(options: SyntheticOptions) -> None:
    case = cobre.case.build(build(options))
    assert case.warnings == ()
    counted = (len(case.hydros), len(case.thermals), len(case.buses), len(case.stages))
    assert counted == (options.hydros, options.thermals, options.buses, options.stages)
    for stage in case.stages:
        assert len(stage.blocks) == options.blocks
        assert stage.num_openings == options.openings
    assert case.training.forward_passes == options.forward_passes
    fpha = [
        entry for entry in build(options)[layout.HYDROS]["hydros"] if entry["generation"]["model"] == "fpha"
    ]
    assert len(fpha) == int(options.hydros * options.fpha_share + 1e-9)


@pytest.mark.parametrize("options", WITH_MEMORY.values(), ids=WITH_MEMORY)
def test_inflows_with_memory_and_correlation_fit_the_format(options: SyntheticOptions) -> None:
    contents = build(options)
    assert (layout.INFLOW_AR in contents) == (options.order > 0)
    assert (layout.CORRELATION in contents) == (options.correlation > 0)
    for path, content in contents.items():
        document = describe(path)
        if isinstance(content, dict):
            assert faults(content, document, document) == [], path
        else:
            types = {entry["name"]: entry["type"] for entry in document["columns"]}
            assert {field.name: str(field.type) for field in content.schema} == {
                name: {"int32": "int32", "float64": "double"}[types[name]] for name in content.schema.names
            }


@pytest.mark.parametrize("options", WITH_MEMORY.values(), ids=WITH_MEMORY)
def test_inflows_with_memory_and_correlation_are_valid(options: SyntheticOptions) -> None:
    case = cobre.case.build(build(options))
    assert case.warnings == ()


@pytest.mark.parametrize("order", [1, 6, 12])
def test_lags_are_seeded_by_whole_months(order: int) -> None:
    options = SyntheticOptions(hydros=3, order=order)
    windows = build(options)[layout.INITIAL_CONDITIONS]["recent_observations"]
    assert len(windows) == 3 * order
    for number in range(3):
        own = [entry for entry in windows if entry["hydro_id"] == number]
        assert own[-1]["end_date"] == "2025-01-01"
        assert [entry["start_date"] for entry in own[1:]] == [entry["end_date"] for entry in own[:-1]]
        assert all(entry["start_date"].endswith("-01") for entry in own)
        assert all(entry["value_m3s"] > 0 for entry in own)


@pytest.mark.parametrize("order", [1, 2, 6, 12])
def test_coefficients_are_stationary(order: int) -> None:
    table = build(SyntheticOptions(hydros=20, order=order, stages=12))[layout.INFLOW_AR]
    phi = np.zeros((20, 12, order))
    columns = table.to_pydict()
    phi[columns["hydro_id"], columns["stage_id"], np.array(columns["lag"]) - 1] = columns["coefficient"]
    assert (phi > 0).all()
    for plant in phi:
        # the product of the companion matrices over a year is what the noise is carried by
        carried = np.eye(order)
        for month in plant:
            companion = np.eye(order, k=-1)
            companion[0] = month
            carried = companion @ carried
        assert np.abs(np.linalg.eigvals(carried)).max() < 1.0


def test_correlation_falls_with_distance_and_is_positive_definite() -> None:
    options = SyntheticOptions(hydros=60, correlation=1.0)
    group = build(options)[layout.CORRELATION]["profiles"]["default"]["correlation_groups"][0]
    matrix = np.array(group["matrix"])
    assert (matrix == matrix.T).all()
    assert (np.diagonal(matrix) == 1.0).all()
    assert np.linalg.eigvalsh(matrix).min() > 1e-3
    off = matrix[~np.eye(60, dtype=bool)]
    assert off.max() > 0.8
    assert off.min() < 0.3


def test_planes_bound_generation_as_the_head_does() -> None:
    options = SyntheticOptions(hydros=6, fpha_share=1.0)
    files = build(options)
    table = files[layout.FPHA_PLANES].to_pydict()
    for entry in files[layout.HYDROS]["hydros"]:
        at = [row for row, number in enumerate(table["hydro_id"]) if number == entry["id"]]
        planes = np.array([[table[name][row] for name in ("gamma_0", "gamma_v", "gamma_q")] for row in at])
        low, high = entry["reservoir"]["min_storage_hm3"], entry["reservoir"]["max_storage_hm3"]
        flow = entry["generation"]["max_turbined_m3s"]

        def power(storage: float, q: float, planes: Any = planes) -> float:
            return float((planes @ [1.0, storage, q]).min())

        assert power(high, 0.0) == pytest.approx(0.0, abs=1e-9)
        assert 0.0 < power(low, flow) < power(0.5 * (low + high), flow) < power(high, flow)
        assert power(high, flow) <= entry["generation"]["max_generation_mw"] * (1 + 1e-5)


def test_a_function_of_its_options() -> None:
    options = replace(SIZES["mid"], order=2, correlation=0.7)
    assert digest(build(options)) == digest(build(options))
    for name in (
        "hydros",
        "thermals",
        "buses",
        "stages",
        "blocks",
        "openings",
        "order",
        "iterations",
        "seed",
    ):
        other = replace(options, **{name: getattr(options, name) + 1})
        assert digest(build(other)) != digest(build(options)), name


def test_the_case_stays_what_it_is() -> None:
    """Measurements of different versions compare only while the cases are the same."""
    found = {name: digest(build(options))[:16] for name, options in SIZES.items()}
    assert found == {"small": "7eddb8ebec39b41f", "mid": "47554a9485c3d9d6", "large": "20be9e4ce91a89f3"}


def test_other_parts_leave_the_rivers_as_they_are() -> None:
    rivers = build(SIZES["mid"])[layout.HYDROS]
    assert build(replace(SIZES["mid"], thermals=7, stages=30, openings=3))[layout.HYDROS] == rivers


@pytest.mark.parametrize("name", LIMITS)
def test_values_out_of_range_are_refused(name: str) -> None:
    low, high = LIMITS[name]
    for value in (low - 1, high + 1, "many", True, float("nan")):
        with pytest.raises(ValidationError) as raised:
            SyntheticOptions(**{name: value})
        assert [problem.context["field"] for problem in raised.value.problems] == [name]


def test_the_readme_says_how_to_make_it_again() -> None:
    options = replace(SIZES["mid"], seed=9)
    text = synthetic_template(options).readme()
    assert f"--template synthetic {options.command_line()}" in text
    assert "30 hydro plants" in text
    assert "lower bound" not in text


def test_water_is_scarce_but_not_absent() -> None:
    """Load exceeds what water gives on the mean, and thermal plants can cover most of what it lacks."""
    for options in SIZES.values():
        case = build(options)
        load = sum(case[layout.LOAD_STATS]["mean_mw"].to_pylist()) / options.stages
        thermal = sum(entry["generation"]["max_mw"] for entry in case[layout.THERMALS]["thermals"])
        hydro = sum(entry["generation"]["max_generation_mw"] for entry in case[layout.HYDROS]["hydros"])
        assert 0.6 * load < thermal < 0.8 * load
        assert hydro > 0.8 * load


@pytest.mark.parametrize("options", ODD.values(), ids=ODD)
def test_it_can_be_operated_in_a_drought_from_empty_reservoirs(options: SyntheticOptions) -> None:
    files = build(options)
    for entry, plant in zip(
        files[layout.INITIAL_CONDITIONS]["storage"], files[layout.HYDROS]["hydros"], strict=True
    ):
        entry["value_hm3"] = plant["reservoir"]["min_storage_hm3"]
    wet = cobre.sddp.train(cobre.case.build(files), iterations=2)
    inflow = files[layout.INFLOW_STATS]
    dry = inflow.set_column(2, "mean_m3s", [[0.0] * len(inflow)])
    drought = cobre.sddp.train(cobre.case.build({**files, layout.INFLOW_STATS: dry}), iterations=2)
    assert 0 < wet.lower_bound < drought.lower_bound
