"""Production and evaporation models of a case: files to models, and every fault of the files."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from builders.base_case import PATHS, errors_of, group, only, pick, warnings_of, write_case
from builders.spoilt import dealt, holder_of, judge, places

from cobre.case import check, load
from cobre.hydro.fpha import FitWindow, fit_planes
from cobre.hydro.geometry import GeometryCurve
from cobre.hydro.head import Head, ProductionFunction
from cobre.hydro.linear_head import head_planes
from cobre.hydro.reduction import reduce_by_angle
from cobre.hydro.tailrace import PolynomialCurve

GEOMETRY = "system/hydro_geometry.parquet"
PLANES = "system/fpha_hyperplanes.parquet"
RATES = "system/hydro_energy_productivity.parquet"
CURVES = "system/tailrace_curves.parquet"
LEVELS = ([0.0, 60.0, 200.0], [380.0, 395.0, 409.0], [1.0, 2.0, 4.0])


def geometry(curve: tuple[list[float], ...] = LEVELS) -> dict[str, list[Any]]:
    """Return geometry of both plants; the rows are not in order."""
    rows = [(hydro, *point) for point in zip(*curve, strict=True) for hydro in (4, 1)]
    columns = zip(*rows, strict=True)
    return dict(zip(("hydro_id", "volume_hm3", "height_m", "area_km2"), map(list, columns), strict=True))


def planes(stage: int | None = None) -> dict[str, list[Any]]:
    """Return two planes of plant 1."""
    return {
        "hydro_id": [1, 1],
        "stage_id": [stage, stage],
        "plane_id": [1, 0],
        "gamma_0": [8.0, 0.0],
        "gamma_v": [0.02, 0.0],
        "gamma_q": [0.7, 1.0],
        "gamma_s": [-0.01, 0.0],
        "kappa": [0.5, None],
    }


def rates(*rows: tuple[int, int | None, float | None, float | None, float | None]) -> pa.Table:
    names = (
        ("hydro_id", pa.int32()),
        ("stage_id", pa.int32()),
        ("equivalent_productivity_mw_per_m3s", pa.float64()),
        ("reference_outflow_m3s", pa.float64()),
        ("specific_productivity_mw_per_m3s_per_m", pa.float64()),
    )
    return pa.table({name: pa.array([row[i] for row in rows], kind) for i, (name, kind) in enumerate(names)})


def curves(**changes: Any) -> dict[str, list[Any]]:
    """Return two families of plant 1: a constant level of 300 m, or 310 m rising to 312 m."""
    columns: dict[str, list[Any]] = {
        "hydro_id": [1, 1, 1],
        "family_id": [0, 1, 1],
        "segment_id": [0, 0, 1],
        "downstream_reference_level_m": [380.0, 400.0, 400.0],
        "outflow_min_m3s": [0.0, 0.0, 100.0],
        "outflow_max_m3s": [500.0, 100.0, 500.0],
        "coefficient_0": [300.0, 310.0, 309.0],
        "coefficient_1": [0.0, 0.0, 0.01],
    }
    columns |= {f"coefficient_{power}": [0.0, 0.0, 0.0] for power in (2, 3, 4)}
    return {**columns, **changes}


def upper(**changes: Any) -> Callable[[dict], None]:
    """Return an edit of plant 1: physics for computed planes, and ``changes``."""

    def edit(file: dict) -> None:
        plant = file["hydros"][0]
        plant["tailrace"] = {"type": "polynomial", "coefficients": [300.0, 0.01]}
        plant["hydraulic_losses"] = {"type": "factor", "value": 0.03}
        plant["efficiency"] = {"type": "constant", "value": 0.92}
        plant["generation"]["model"] = changes.pop("model", "fpha")
        plant.update(changes)

    return edit


def models(*parts: dict[str, Any], **root: Any) -> Callable[[dict], None]:
    """Return an edit that gives plant 1 these ranges, open to the end unless they say otherwise."""

    def edit(file: dict) -> None:
        file["production_models"][0]["stage_ranges"] = [
            {"start_stage_id": 0, "end_stage_id": None, **part} for part in parts
        ]
        file.update(root)

    return edit


COMPUTED = {"model": "fpha", "fpha_config": {"source": "computed"}}
GIVEN = {"model": "fpha", "fpha_config": {"source": "precomputed"}}
HEAD = {"model": "linearized_head", "productivity_mw_per_m3s": 0.9}


def function(level: float = 300.0, slope: float = 0.01) -> ProductionFunction:
    return ProductionFunction(Head(GeometryCurve(*LEVELS), PolynomialCurve((level, slope)), 0.03), 0.92)


# ---------------------------------------------------------------------------------------------------------
# Models


def test_computed_planes(tmp_path: Path) -> None:
    path = write_case(tmp_path, {GEOMETRY: geometry()}, hydros=upper(), production=models(COMPUTED))
    case = load(path)
    expected = fit_planes(function(), FitWindow(0.0, 200.0, 100.0))
    model = case.production[0][0]
    assert model.kind == "fpha"
    np.testing.assert_array_equal(model.planes, expected.planes)
    assert not model.planes.flags.writeable
    assert model.quality is not None
    assert model.quality.alpha == expected.alpha
    assert model.quality.max_deviation_mw == expected.max_deviation_mw
    # One fit for all stages, and the efficiency stands in for a specific productivity.
    assert all(by_hydro[0] is model for by_hydro in case.production)
    head = function().head.net(10.0 + 0.65 * 190.0, 100.0)
    assert model.productivity_mw_per_m3s == pytest.approx(0.00981 * 0.92 * float(head), rel=1e-14)
    assert case.production[0][1].kind == "constant_productivity"
    assert case.production[0][1].planes.shape == (0, 4)


def test_every_range_has_a_fit_of_its_own(tmp_path: Path) -> None:
    window = {"volume_min_percentile": 0.2, "volume_max_hm3": 150.0}
    config = {
        "source": "computed",
        "volume_discretization_points": 3,
        "turbine_discretization_points": 7,
        "max_planes_per_hydro": 2,
        "fitting_window": window,
    }
    narrow = {"model": "fpha", "fpha_config": config, "end_stage_id": 1}
    path = write_case(tmp_path, {GEOMETRY: geometry()}, hydros=upper(), production=models(narrow, COMPUTED))
    case = load(path)
    expected = fit_planes(function(), FitWindow(10.0 + 0.2 * 190.0, 150.0, 100.0, 3, 7, 2)).planes
    np.testing.assert_array_equal(case.production[0][0].planes, expected)
    assert case.production[1][0] is case.production[0][0]
    np.testing.assert_array_equal(
        case.production[2][0].planes, fit_planes(function(), FitWindow(0.0, 200.0, 100.0)).planes
    )


@pytest.mark.parametrize(
    ("window", "ends"),
    [
        # Half a percent of the useful storage (190 hm3) or 1 hm3 to either side, within the geometry.
        ({"volume_min_hm3": 80.0, "volume_max_hm3": 80.0}, (79.0, 81.0)),
        ({"volume_min_percentile": 0.5, "volume_max_percentile": 0.5}, (104.0, 106.0)),
        ({"volume_min_hm3": 300.0, "volume_max_hm3": 400.0}, (199.0, 200.0)),
        ({"volume_min_hm3": 300.0}, (199.0, 200.0)),
        ({"volume_max_hm3": 0.0}, (0.0, 1.0)),
    ],
)
def test_a_single_storage_keeps_the_slope_of_the_head(
    tmp_path: Path, window: dict[str, float], ends: tuple[float, float]
) -> None:
    model = {"model": "fpha", "fpha_config": {"source": "computed", "fitting_window": window}}
    case = load(write_case(tmp_path, {GEOMETRY: geometry()}, hydros=upper(), production=models(model)))
    expected = fit_planes(function(), FitWindow(*ends, 100.0, 2)).planes
    np.testing.assert_allclose(case.production[0][0].planes, expected, rtol=1e-12)
    assert (expected[:, 1] > 0.0).any()


@pytest.mark.parametrize("at", [30.0, 100.0, 150.0])
def test_a_geometry_of_one_point_is_a_constant_forebay(tmp_path: Path, at: float) -> None:
    window = {"volume_min_hm3": at, "volume_max_hm3": at}
    model = {"model": "fpha", "fpha_config": {"source": "computed", "fitting_window": window}}
    curve = ([100.0], [380.0], [2.0])
    case = load(write_case(tmp_path, {GEOMETRY: geometry(curve)}, hydros=upper(), production=models(model)))
    head = Head(GeometryCurve(*curve), PolynomialCurve((300.0, 0.01)), 0.03)
    expected = fit_planes(ProductionFunction(head, 0.92), FitWindow(100.0, 100.0, 100.0)).planes
    np.testing.assert_array_equal(case.production[0][0].planes, expected)
    assert (expected[:, 1] == 0.0).all()


def test_one_fit_whatever_the_reported_productivity(tmp_path: Path) -> None:
    extra = {GEOMETRY: geometry(), RATES: rates((1, 0, 0.5, None, None), (1, 1, 0.6, None, None))}
    case = load(write_case(tmp_path, extra, hydros=upper(), production=models(COMPUTED)))
    first, second, third = (by_hydro[0] for by_hydro in case.production)
    assert (first.productivity_mw_per_m3s, second.productivity_mw_per_m3s) == (0.5, 0.6)
    assert first.planes is second.planes is third.planes


def test_reduction_of_planes(tmp_path: Path) -> None:
    reduction = {"method": "angle", "tolerance_deg": 10.0}
    edit = models(COMPUTED, fpha_plane_reduction=reduction)
    case = load(write_case(tmp_path, {GEOMETRY: geometry()}, hydros=upper(), production=edit))
    free = fit_planes(function(), FitWindow(0.0, 200.0, 100.0)).planes
    expected = reduce_by_angle(free, 10.0)
    assert len(expected) < len(free)
    np.testing.assert_array_equal(case.production[0][0].planes, expected)
    reduction = {"method": "distance", "tolerance_pct": 1.0, "n_samples": 20}
    edit = models(COMPUTED, fpha_plane_reduction=reduction)
    case = load(write_case(tmp_path / "d", {GEOMETRY: geometry()}, hydros=upper(), production=edit))
    assert len(case.production[0][0].planes) < len(free)


def test_given_planes(tmp_path: Path) -> None:
    by_stage = {name: [*column, *column] for name, column in planes().items()}
    by_stage["stage_id"] = [None, None, 1, 1]
    by_stage["gamma_q"][3] = 0.9
    extra = {PLANES: by_stage, RATES: rates((1, None, 0.95, None, None))}
    case = load(write_case(tmp_path, extra, hydros=upper(), production=models(GIVEN)))
    # By plane id; kappa counts for the intercept only.
    common = [[0.0, 0.0, 1.0, 0.0], [4.0, 0.02, 0.7, -0.01]]
    assert case.production[0][0].planes.tolist() == common
    assert case.production[0][0].productivity_mw_per_m3s == 0.95
    assert case.production[0][0].quality is None
    assert case.production[1][0].planes.tolist() == [[0.0, 0.0, 0.9, 0.0], common[1]]
    assert case.production[2][0] is case.production[0][0]


def test_linearised_head(tmp_path: Path) -> None:
    hydros = upper(model="linearized_head", specific_productivity_mw_per_m3s_per_m=0.009)
    case = load(write_case(tmp_path, {GEOMETRY: geometry()}, hydros=hydros, production=models(HEAD)))
    model = case.production[0][0]
    curve = GeometryCurve(*LEVELS)
    slope = 0.009 * 0.97 * curve.secant_height_slope(10.0, 200.0)
    assert model.kind == "linearized_head"
    assert model.productivity_mw_per_m3s == 0.9
    expected = head_planes(0.9, slope, 10.0 + 0.65 * 190.0, 10.0, 200.0, 100.0)
    np.testing.assert_allclose(model.planes, expected, rtol=1e-14)


def test_linearised_head_covers_an_initial_storage_outside_the_limits(tmp_path: Path) -> None:
    hydros = upper(model="linearized_head", specific_productivity_mw_per_m3s_per_m=0.009)
    case = load(
        write_case(
            tmp_path,
            {GEOMETRY: geometry()},
            hydros=hydros,
            production=models(HEAD),
            initial=lambda f: f["storage"][0].update(value_hm3=2.0),
        )
    )
    # No generation must be possible at any storage that occurs.
    planes_of = case.production[0][0].planes
    assert (planes_of[:, 0] + planes_of[:, 1] * 2.0).min() == pytest.approx(0.0, abs=1e-12)


def test_linearised_head_at_another_reference(tmp_path: Path) -> None:
    part = {**HEAD, "reference_volume": {"volume_hm3": 60.0}}
    hydros = upper(model="linearized_head")
    case = load(write_case(tmp_path, {GEOMETRY: geometry()}, hydros=hydros, production=models(part)))
    net = float(function().head.net(60.0, 100.0))
    slope = 0.9 / net * 0.97 * GeometryCurve(*LEVELS).secant_height_slope(10.0, 200.0)
    expected = head_planes(0.9, slope, 60.0, 10.0, 200.0, 100.0)
    np.testing.assert_allclose(case.production[0][0].planes, expected, rtol=1e-13)
    assert case.energy is not None
    assert case.energy.reference_volume_hm3[0, 0] == 60.0


def test_models_by_season(tmp_path: Path) -> None:
    def edit(file: dict) -> None:
        file["production_models"][0] = {
            "hydro_id": 1,
            "selection_mode": "seasonal",
            "default_model": "constant_productivity",
            "seasons": [
                {"season_id": 1, "model": "constant_productivity", "productivity_mw_per_m3s": 0.7},
                {"season_id": 0, "model": "constant_productivity", "productivity_mw_per_m3s": 0.6},
            ],
        }

    def stages(file: dict) -> None:
        for index, stage in enumerate(file["stages"]):
            stage["season_id"] = index

    extra = {RATES: rates((1, 2, 0.5, None, None))}
    case = load(write_case(tmp_path, extra, production=edit, stages=stages))
    assert [by_hydro[0].productivity_mw_per_m3s for by_hydro in case.production] == [0.6, 0.7, 0.5]


def test_productivity_by_table(tmp_path: Path) -> None:
    extra = {RATES: rates((1, None, 0.5, 7.0, None), (1, 1, 0.6, None, 0.01), (4, None, 0.8, None, None))}
    case = load(write_case(tmp_path, extra, production=None))
    values = [[model.productivity_mw_per_m3s for model in by_hydro] for by_hydro in case.production]
    assert values == [[0.5, 0.8], [0.6, 0.8], [0.5, 0.8]]
    energy = case.energy
    assert energy is not None
    assert energy.parameter("accumulated_productivity", 0).tolist() == [1.3, 1.4, 1.3]
    assert energy.parameter("reference_turbine", 0).tolist() == [7.0, 7.0, 7.0]
    assert energy.parameter("reference_turbine", 1).tolist() == [100.0] * 3
    np.testing.assert_array_equal(energy.parameter("specific_productivity", 0), [np.nan, 0.01, np.nan])


def test_integrated_productivity(tmp_path: Path) -> None:
    hydros = upper(model="constant_productivity", specific_productivity_mw_per_m3s_per_m=0.009)
    case = load(write_case(tmp_path, {GEOMETRY: geometry()}, hydros=hydros))
    assert case.energy is not None
    expected = 0.009 * function().head.mean_net(10.0, 200.0, 100.0)
    np.testing.assert_allclose(
        case.energy.parameter("integrated_equivalent_productivity", 0), expected, rtol=1e-14
    )
    # The other plant has no specific productivity: its own value stands.
    stored = (expected + 1.4) * 190.0
    np.testing.assert_allclose(case.energy.parameter("max_stored_energy", 0), stored, rtol=1e-14)


@pytest.mark.parametrize(("share", "level", "slope"), [(0.0, 300.0, 0.0), (1.0, 309.0, 0.01)])
def test_tailrace_follows_the_level_downstream(
    tmp_path: Path, share: float, level: float, slope: float
) -> None:
    def production(file: dict) -> None:
        models(COMPUTED)(file)
        file["production_models"][1]["stage_ranges"][0]["reference_volume"] = {"percentile": share}

    table = geometry()
    # Plant 4 is at 380 m when empty and at 409 m when full; its minimum storage is 10 hm3.
    table["height_m"] = [380.0 if v == 60.0 and h == 4 else z for h, v, z in zip(
        table["hydro_id"], table["volume_hm3"], table["height_m"], strict=True
    )]  # fmt: skip
    path = write_case(tmp_path, {GEOMETRY: table, CURVES: curves()}, hydros=upper(), production=production)
    case = load(path)
    window = FitWindow(0.0, 200.0, 100.0)
    if share == 0.0:
        expected = fit_planes(function(level, slope), window).planes
        np.testing.assert_allclose(case.production[0][0].planes, expected, rtol=1e-12, atol=1e-14)
    else:
        free = fit_planes(function(300.0, 0.0), window).planes
        assert case.production[0][0].planes[:, 2].max() < free[:, 2].max()
        assert case.production[0][0].planes[:, 3].min() < 0.0


def test_the_one_family_of_a_plant_needs_no_level(tmp_path: Path) -> None:
    rows = curves(downstream_reference_level_m=[None] * 3)
    table = {name: column[:1] for name, column in rows.items()}
    table["downstream_reference_level_m"] = pa.array([None], pa.float64())
    path = write_case(
        tmp_path, {GEOMETRY: geometry(), CURVES: table}, hydros=upper(), production=models(COMPUTED)
    )
    expected = fit_planes(function(300.0, 0.0), FitWindow(0.0, 200.0, 100.0)).planes
    np.testing.assert_allclose(load(path).production[0][0].planes, expected, rtol=1e-12, atol=1e-14)


def test_evaporation(tmp_path: Path) -> None:
    def edit(file: dict) -> None:
        file["hydros"][1]["evaporation"] = {
            "coefficients_mm": [float(mm) for mm in range(100, 112)],
            "reference_volumes_hm3": [30.0] * 12,
        }

    case = load(write_case(tmp_path, {GEOMETRY: geometry()}, hydros=edit))
    assert [by_hydro[0] for by_hydro in case.evaporation] == [None] * 3
    for stage, (mm, days) in enumerate([(100.0, 31), (101.0, 29), (102.0, 31)]):
        model = case.evaporation[stage][1]
        assert model is not None
        rate = mm / (3.6 * 24 * days)
        assert model.slope_m3s_per_hm3 == pytest.approx(rate / 60.0, rel=1e-14)
        assert model.intercept_m3s + 30.0 * model.slope_m3s_per_hm3 == pytest.approx(rate * 1.5, rel=1e-14)
        assert model.reference_volume_hm3 == 30.0


# ---------------------------------------------------------------------------------------------------------
# Faults


def edited(table: dict[str, list[Any]], **changes: Any) -> dict[str, list[Any]]:
    return {**table, **changes}


@pytest.mark.parametrize(
    ("column", "values", "field"),
    [
        ("volume_hm3", [0.0, 0.0, -1.0, 60.0, 200.0, 200.0], "volume_hm3[row 2]"),
        ("height_m", [0.0, 0.0, None, 0.0, 0.0, 0.0], "height_m[row 2]"),
        ("area_km2", [0.0, 0.0, 0.0, float("inf"), 0.0, 0.0], "area_km2[row 3]"),
        ("volume_hm3", [0.0, 0.0, 60.0, 60.0, 60.0, 200.0], "volume_hm3"),
        ("height_m", [9.0, 9.0, 9.0, 8.0, 9.0, 9.0], "height_m"),
        ("area_km2", [1.0, 2.0, 1.0, 1.0, 1.0, 1.0], "area_km2"),
    ],
)
def test_faulty_geometry(tmp_path: Path, column: str, values: list[Any], field: str) -> None:
    path = write_case(tmp_path, {GEOMETRY: edited(geometry(), **{column: values})})
    problem = only(path, "InvalidValue", file=GEOMETRY, field=field)
    assert problem.suggestion


def test_geometry_of_unknown_plant(tmp_path: Path) -> None:
    table = edited(geometry(), hydro_id=[1, 1, 1, 9, 9, 9], volume_hm3=[0.0, 1.0, 2.0] * 2)
    table |= {"height_m": [1.0] * 6, "area_km2": [1.0] * 6}
    only(write_case(tmp_path, {GEOMETRY: table}), "InvalidReference", value="9", rule="referential.1")


def test_geometry_that_is_missing(tmp_path: Path) -> None:
    path = write_case(tmp_path / "a", hydros=upper(), production=models(COMPUTED))
    only(path, "DimensionMismatch", file=GEOMETRY, value=0, rule="dimensional.7")
    one = {"hydro_id": [1], "volume_hm3": [1.0], "height_m": [1.0], "area_km2": [1.0]}
    hydros = upper(model="linearized_head")
    path = write_case(tmp_path / "b", {GEOMETRY: one}, hydros=hydros, production=models(HEAD))
    only(path, "DimensionMismatch", file=GEOMETRY, value=1, rule="dimensional.7")
    path = write_case(tmp_path / "c", hydros=upper(model="constant_productivity",
        evaporation={"coefficients_mm": [1.0] * 12}))  # fmt: skip
    only(path, "BusinessRuleViolation", field="evaporation", rule="5a.50")


def test_planes_that_are_missing(tmp_path: Path) -> None:
    extra: dict[str, Any] = {RATES: rates((1, None, 1.0, None, None))}
    path = write_case(tmp_path / "a", extra, hydros=upper(), production=models(GIVEN))
    only(path, "DimensionMismatch", file=PLANES, rule="dimensional.6")
    extra[PLANES] = planes(1)
    path = write_case(tmp_path / "b", extra, hydros=upper(), production=models(GIVEN))
    only(path, "BusinessRuleViolation", file=PLANES, rule="5a.11", value="0, 2")


@pytest.mark.parametrize(
    ("column", "values", "kind", "context"),
    [
        ("gamma_v", [-0.1, 0.0], "InvalidValue", {"field": "gamma_v[row 0]", "rule": "5a.12"}),
        ("gamma_s", [0.1, 0.0], "InvalidValue", {"field": "gamma_s[row 0]", "rule": "5a.12"}),
        ("gamma_q", [None, 0.0], "InvalidValue", {"field": "gamma_q[row 0]"}),
        ("gamma_0", [float("inf"), 0.0], "InvalidValue", {"field": "gamma_0[row 0]"}),
        ("kappa", [0.0, 1.5], "InvalidValue", {"field": "kappa[row 1]"}),
        ("plane_id", [3, 3], "DuplicateId", {"field": "plane_id"}),
        ("valid_v_min_hm3", [-1.0, None], "InvalidValue", {"field": "valid_v_min_hm3[row 0]"}),
        ("valid_q_max_m3s", [None, -2.0], "InvalidValue", {"field": "valid_q_max_m3s[row 1]"}),
    ],
)
def test_faulty_planes(
    tmp_path: Path, column: str, values: list[Any], kind: str, context: dict[str, Any]
) -> None:
    extra = {PLANES: edited(planes(), **{column: values}), RATES: rates((1, None, 1.0, None, None))}
    errors = errors_of(write_case(tmp_path, extra, hydros=upper(), production=models(GIVEN)))
    pick(errors, kind, file=PLANES, **context)
    assert {problem.context["file"] for problem in errors} == {PLANES}


def test_ranges_of_planes_are_compared_with_the_plant(tmp_path: Path) -> None:
    table = edited(
        planes(), valid_v_min_hm3=[0.0, 20.0], valid_v_max_hm3=[200.0, 300.0], valid_q_max_m3s=[99.0, None]
    )
    extra = {PLANES: table, RATES: rates((1, None, 1.0, None, None))}
    warnings = warnings_of(write_case(tmp_path, extra, hydros=upper(), production=models(GIVEN)))
    assert [problem.context["field"] for problem in warnings] == ["valid_v_min_hm3", "valid_q_max_m3s"]
    table["valid_v_max_hm3"] = [200.0, 10.0]
    path = write_case(tmp_path / "b", extra, hydros=upper(), production=models(GIVEN))
    only(path, "InvalidValue", field="valid_v_max_hm3[row 1]")


def test_fpha_needs_an_equivalent_productivity(tmp_path: Path) -> None:
    path = write_case(tmp_path, {PLANES: planes()}, hydros=upper(), production=models(GIVEN))
    only(path, "DimensionMismatch", file=RATES, rule="productivity_resolution.1")


def test_productivity_in_two_places(tmp_path: Path) -> None:
    path = write_case(tmp_path / "a", {RATES: rates((1, 1, 0.5, None, None))})
    only(path, "SchemaViolation", value="1", rule="productivity_resolution.2")
    part = {**COMPUTED, "productivity_mw_per_m3s": 1.0}
    path = write_case(tmp_path / "b", {GEOMETRY: geometry()}, hydros=upper(), production=models(part))
    only(path, "SchemaViolation", rule="productivity_resolution.2")


def test_fpha_at_all_stages_or_none(tmp_path: Path) -> None:
    constant = {"model": "constant_productivity", "productivity_mw_per_m3s": 1.0, "end_stage_id": 0}
    extra = {GEOMETRY: geometry()}
    path = write_case(tmp_path / "a", extra, hydros=upper(), production=models(constant, COMPUTED))
    only(path, "BusinessRuleViolation", value="0", rule="5a.11")
    path = write_case(tmp_path / "b", extra, production=models(constant, COMPUTED))
    errors = errors_of(path)
    pick(errors, "BusinessRuleViolation", value="1-2", rule="5a.11")
    late = {**COMPUTED, "start_stage_id": 1}
    path = write_case(tmp_path / "c", extra, hydros=upper(), production=models(late))
    only(path, "BusinessRuleViolation", value="0", rule="5a.11")
    path = write_case(tmp_path / "d", extra, hydros=upper(), production=models({"model": "fpha"}))
    only(path, "SchemaViolation", field="stage_ranges[0].fpha_config")


def test_computed_planes_need_a_tailrace(tmp_path: Path) -> None:
    def edit(file: dict) -> None:
        upper()(file)
        for key in ("tailrace", "hydraulic_losses", "efficiency"):
            del file["hydros"][0][key]

    path = write_case(tmp_path, {GEOMETRY: geometry()}, hydros=edit, production=models(COMPUTED))
    _, errors, warnings = check(path)
    assert [problem.context["field"] for problem in errors] == ["tailrace"]
    assert [problem.context["field"] for problem in warnings] == ["hydraulic_losses", "efficiency"]


@pytest.mark.parametrize(
    ("place", "value", "kind", "field"),
    [
        ("fpha_config", {}, "SchemaViolation", "stage_ranges[0].fpha_config.source"),
        ("fpha_config", {"source": "bad"}, "InvalidValue", "stage_ranges[0].fpha_config.source"),
        (
            "fpha_config",
            {"source": "computed", "volume_discretization_points": 1},
            "InvalidValue",
            "stage_ranges[0].fpha_config.volume_discretization_points",
        ),
        (
            "fpha_config",
            {"source": "computed", "fitting_window": {"volume_min_hm3": 1, "volume_min_percentile": 0.1}},
            "InvalidValue",
            "stage_ranges[0].fpha_config.fitting_window",
        ),
        (
            "fpha_config",
            {"source": "computed", "fitting_window": {"volume_min_hm3": 100, "volume_max_hm3": 50}},
            "InvalidValue",
            "fpha_config.fitting_window",
        ),
        ("reference_volume", {}, "InvalidValue", "stage_ranges[0].reference_volume"),
        (
            "reference_volume",
            {"volume_hm3": 1.0, "percentile": 0.5},
            "InvalidValue",
            "stage_ranges[0].reference_volume",
        ),
        (
            "reference_volume",
            {"percentile": 1.5},
            "InvalidValue",
            "stage_ranges[0].reference_volume.percentile",
        ),
        (
            "reference_volume",
            {"volume_hm3": 0},
            "InvalidValue",
            "stage_ranges[0].reference_volume.volume_hm3",
        ),
    ],
)
def test_faulty_keys(tmp_path: Path, place: str, value: Any, kind: str, field: str) -> None:
    edit = models({**COMPUTED, place: value})
    path = write_case(tmp_path, {GEOMETRY: geometry()}, hydros=upper(), production=edit)
    only(path, kind, file=PATHS["production"], field=field)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"outflow_min_m3s": [0.0, 0.0, 90.0]}, "outflow_min_m3s"),
        ({"outflow_max_m3s": [0.0, 100.0, 500.0]}, "outflow_max_m3s"),
        ({"downstream_reference_level_m": [380.0, 400.0, 401.0]}, "downstream_reference_level_m"),
        ({"downstream_reference_level_m": [400.0, 400.0, 400.0]}, "downstream_reference_level_m"),
        ({"downstream_reference_level_m": [None, 400.0, 400.0]}, "downstream_reference_level_m"),
        ({"coefficient_4": [0.0, None, 0.0]}, "coefficient_4[row 1]"),
        ({"outflow_min_m3s": [-1.0, 0.0, 100.0]}, "outflow_min_m3s[row 0]"),
    ],
)
def test_faulty_tailrace_curves(tmp_path: Path, changes: dict[str, list[Any]], field: str) -> None:
    only(write_case(tmp_path, {CURVES: curves(**changes)}), "InvalidValue", file=CURVES, field=field)
    only(
        write_case(tmp_path / "b", {CURVES: curves(segment_id=[0, 0, 0])}),
        "DuplicateId",
        file=CURVES,
        field="segment_id",
    )


def test_what_has_no_effect_is_said(tmp_path: Path) -> None:
    def edit(file: dict) -> None:
        part = file["production_models"][0]["stage_ranges"][0]
        part["fpha_config"] = {"source": "computed"}
        file["fpha_plane_reduction"] = {"method": "angle", "tolerance_deg": 1.0}

    table = curves(hydro_id=[9, 9, 9])
    extra = {CURVES: table, RATES: rates((8, None, 1.0, None, None), (1, 77, None, 1.0, None))}
    warnings = warnings_of(write_case(tmp_path / "a", extra, production=edit))
    fields = [(problem.context["file"], problem.context["field"]) for problem in warnings]
    assert sorted(fields) == [
        (RATES, "hydro_id"),
        (RATES, "stage_id"),
        (PATHS["production"], "fpha_plane_reduction"),
        (PATHS["production"], "stage_ranges[0].fpha_config"),
        (CURVES, "hydro_id"),
    ]
    part = {"model": "fpha", "fpha_config": {"source": "precomputed", "max_planes_per_hydro": 3}}
    extra = {PLANES: planes(), RATES: rates((1, None, 1.0, None, None))}
    path = write_case(tmp_path / "b", extra, hydros=upper(), production=models(part))
    (warning,) = warnings_of(path)
    assert warning.context["field"] == "stage_ranges[0].fpha_config.max_planes_per_hydro"


def test_poor_fits_and_odd_planes_are_warned_of(tmp_path: Path) -> None:
    # Level with a step: the hull lies far above the function.
    table = geometry()
    table["volume_hm3"] = [0.0, 0.0, 199.0, 199.0, 200.0, 200.0]
    table["height_m"] = [301.0, 301.0, 302.0, 302.0, 409.0, 409.0]
    path = write_case(tmp_path / "a", {GEOMETRY: table}, hydros=upper(), production=models(COMPUTED))
    (warning,) = warnings_of(path)
    assert "deviate" in warning.message
    odd = edited(planes(), gamma_0=[-8.0, 0.0])
    extra = {PLANES: odd, RATES: rates((1, None, 1.0, None, None))}
    path = write_case(tmp_path / "b", extra, hydros=upper(), production=models(GIVEN))
    (warning,) = warnings_of(path)
    assert warning.context["value"] == pytest.approx(-4.0 + 0.2)


def test_tables_that_cannot_be_read(tmp_path: Path) -> None:
    extra = dict.fromkeys((GEOMETRY, PLANES, RATES, CURVES), b"no parquet")
    errors = errors_of(write_case(tmp_path, extra, hydros=upper(), production=models(GIVEN)))
    assert {(problem.kind, problem.context["file"]) for problem in errors} == {
        ("ParseError", path) for path in extra
    }


def test_empty_tables_are_no_tables(tmp_path: Path) -> None:
    extra = {GEOMETRY: {name: pa.array([], pa.float64()) for name in geometry()}}
    empty = pa.table({name: pa.array([], pa.float64()) for name in curves()})
    assert load(write_case(tmp_path, {**extra, CURVES: empty, RATES: rates()})) is not None


SPOILT = [None, -1, 0, 1e308, -1e308, "text", [], {}, [1e308]]


@pytest.mark.parametrize("name", ["hydros", "production"])
def test_spoilt_values_give_problems_only(tmp_path: Path, name: str, whole_sweep: bool) -> None:
    def hydros(file: dict) -> None:
        upper(
            evaporation={"coefficients_mm": [1.0] * 12, "reference_volumes_hm3": [20.0] * 12},
            specific_productivity_mw_per_m3s_per_m=0.009,
        )(file)
        file["hydros"][1]["generation"]["model"] = "linearized_head"
        file["hydros"][1]["unit_groups"] = [group(0, 100.0)]

    def production(file: dict) -> None:
        config = {
            "source": "computed",
            "volume_discretization_points": 3,
            "max_planes_per_hydro": 3,
            "fitting_window": {"volume_min_hm3": 1.0, "volume_max_percentile": 0.9},
        }
        models(
            {"model": "fpha", "fpha_config": config, "reference_volume": {"percentile": 0.5}},
            fpha_plane_reduction={"method": "distance", "tolerance_pct": 0.1, "n_samples": 3},
        )(file)
        file["production_models"][1]["stage_ranges"][0]["model"] = "linearized_head"

    path = write_case(tmp_path, {GEOMETRY: geometry()}, hydros=hydros, production=production)
    assert check(path)[1] == []
    document = json.loads((path / PATHS[name]).read_text())
    for number, place in enumerate(places(document, first=2)):
        for value in dealt(SPOILT, number, whole_sweep):
            changed = copy.deepcopy(document)
            holder_of(changed, place)[place[-1]] = value
            (path / PATHS[name]).write_text(json.dumps(changed))
            case = judge(path, (place, value))
            if case is not None:
                for by_hydro in case.production:
                    assert all(np.isfinite(model.planes).all() for model in by_hydro), (place, value)
