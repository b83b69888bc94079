"""Files in ``scenarios/``: checked to the last cell, also where what they ask for is not supported yet."""

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from builders.base_case import errors_of, only, pick, warnings_of, write_case
from builders.base_case_time import (
    ANNUAL,
    AR,
    CORRELATION,
    HISTORY,
    MONTHS,
    NCS_STATS,
    NOISE,
    SOURCES,
    annual,
    coefficients,
    correlation,
    history,
    ncs_stats,
    openings,
)

from cobre.case import check, load
from cobre.stochastic.par import inflow_model


def with_months(file: dict) -> None:
    file["season_definitions"] = {"cycle_type": "monthly", "seasons": MONTHS}


def observed(*months: tuple[str, str]) -> Any:
    """Return an edit that adds observations of both plants over months before the study."""

    def edit(file: dict) -> None:
        file["recent_observations"] = [
            {"hydro_id": hydro, "start_date": start, "end_date": end, "value_m3s": 10.0 * hydro}
            for hydro in (1, 4)
            for start, end in months
        ]

    return edit


DECEMBER = ("2023-12-01", "2024-01-01")


def test_autoregressive_models(tmp_path: Path) -> None:
    files = {AR: coefficients()}
    case = load(write_case(tmp_path / "a", stages=with_months, initial=observed(DECEMBER), extra=files))
    given = case.scenarios.ar_coefficients
    assert given is not None
    assert given[:2].tolist() == [[[0.5, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.5, 0.3]]]
    assert case.scenarios.estimation_path == "user_provided_no_history"
    assert case.summary().estimation_path == "user_provided_no_history"
    assert "given statistics and coefficients" in str(case.summary())
    recent = case.scenarios.recent_observations
    assert recent is not None
    assert recent.value_m3s.tolist() == [10.0, 40.0]
    errors = errors_of(write_case(tmp_path / "b", extra={AR: coefficients()}))
    assert "season_definitions" in pick(errors, "BusinessRuleViolation", file=AR).message
    neutral = write_case(tmp_path / "c", extra={AR: coefficients(coefficient=[0.0] * 3)})
    assert warnings_of(neutral) == []


@pytest.mark.parametrize(
    ("columns", "kind", "context"),
    [
        ({"lag": [1, 0, 2]}, "InvalidValue", {"field": "lag[row 1]"}),
        ({"lag": [1, 1, 1]}, "DuplicateId", {"field": "lag"}),
        ({"hydro_id": [1, 4, 9]}, "InvalidReference", {"value": 9}),
        ({"coefficient": [0.5, 0.5, float("inf")]}, "InvalidValue", {"field": "coefficient[row 2]"}),
        ({"coefficient": [1.2, 0.5, 0.3]}, "InvalidValue", {"entity": "hydro 1 (UPPER)", "value": "0"}),
        # Each correlation is possible, but together they explain more than all variance.
        ({"coefficient": [0.5, 0.9, 0.9]}, "InvalidValue", {"entity": "hydro 4 (LOWER)", "value": "1"}),
    ],
)
def test_coefficient_faults(tmp_path: Path, columns: dict, kind: str, context: dict) -> None:
    files = {AR: coefficients(**columns)}
    only(
        write_case(tmp_path, stages=with_months, initial=observed(DECEMBER), extra=files),
        kind,
        file=AR,
        **context,
    )


def test_implied_correlation_builds_up_over_stages(tmp_path: Path) -> None:
    """With phi = 1 at lag 1, z_1 = z_0; then phi = (0.9, 0.9) implies a correlation of 1.8."""
    table = {
        "hydro_id": [1, 1, 1],
        "stage_id": [1, 2, 2],
        "lag": [1, 1, 2],
        "coefficient": [1.0, 0.9, 0.9],
    }
    path = write_case(tmp_path, stages=with_months, extra={AR: table})
    only(path, "InvalidValue", file=AR, entity="hydro 1 (UPPER)", value="2")


def test_lags_need_observations(tmp_path: Path) -> None:
    """Lag 1 of stage 0 and lag 2 of stage 1 are both December."""
    files = {AR: coefficients()}
    path = write_case(tmp_path / "a", stages=with_months, extra=files)
    errors = errors_of(path)
    assert [problem.context["rule"] for problem in errors] == ["5a.30"] * 2
    assert [problem.context["entity"] for problem in errors] == ["hydro 1 (UPPER)", "hydro 4 (LOWER)"]
    assert errors[0].context["value"] == "2023-12-01 to 2024-01-01"
    assert "lag 1" in errors[0].message
    part = observed(("2023-12-11", "2024-01-01"))
    path = write_case(tmp_path / "b", stages=with_months, initial=part, extra=files)
    assert "21 of its 31 days" in errors_of(path)[0].message
    more = observed(DECEMBER, ("2023-11-20", "2023-12-01"))
    path = write_case(tmp_path / "c", stages=with_months, initial=more, extra=files)
    (warning,) = [problem for problem in check(path)[2] if problem.context.get("rule") == "5a.31"]
    assert "2023-11-01 to 2023-12-01" in warning.message


def test_annual_component(tmp_path: Path) -> None:
    errors = errors_of(write_case(tmp_path / "a", stages=with_months, extra={ANNUAL: annual()}))
    # Twelve months for plant 1 at stage 0; at stage 1 the first of them is in the study.
    assert len([item for item in errors if item.context["entity"] == "hydro 1 (UPPER)"]) == 12
    assert len([item for item in errors if item.context["entity"] == "hydro 4 (LOWER)"]) == 11
    year = observed(("2023-01-01", "2024-01-01"))
    case = load(write_case(tmp_path / "d", stages=with_months, initial=year, extra={ANNUAL: annual()}))
    found = case.scenarios.annual
    assert found is not None
    assert found.coefficient[:2].tolist() == [[0.2, 0.0], [0.0, 0.3]]
    assert found.std_m3s[:2].tolist() == [[2.0, 1.0], [1.0, 3.0]]
    only(write_case(tmp_path / "b", extra={ANNUAL: annual()}), "BusinessRuleViolation", rule="5a.29")
    zero = annual(annual_std_m3s=[0.0, 1.0])
    path = write_case(tmp_path / "c", stages=with_months, extra={ANNUAL: zero})
    only(path, "InvalidValue", field="annual_std_m3s[row 0]", value=0.0)


def whole_history() -> dict[str, Any]:
    """Return observations of both plants in all seasons of the study."""
    days = [datetime.date(2023, month, 1) for month in (1, 2, 3, 4)]
    return {
        "hydro_id": [1, 1, 1, 4, 4, 4],
        "start_date": days[:3] * 2,
        "end_date": days[1:] * 2,
        "value_m3s": [1.0, 2.0, 1.5, 3.0, 4.0, 5.0],
    }


def test_history(tmp_path: Path) -> None:
    whole = whole_history()
    shuffled = {key: [values[at] for at in (2, 5, 1, 0, 4, 3)] for key, values in whole.items()}
    for name, table in (("a", whole), ("c", shuffled)):
        case = load(write_case(tmp_path / name, stages=with_months, extra={HISTORY: table}))
        found = case.scenarios.inflow_history
        assert found is not None
        assert found.hydro.tolist() == [0, 0, 0, 1, 1, 1]
        assert found.value_m3s.tolist() == [1.0, 2.0, 1.5, 3.0, 4.0, 5.0]
        assert found.start.astype(str).tolist()[:3] == ["2023-01-01", "2023-02-01", "2023-03-01"]
        assert case.scenarios.estimation_path == "partial_estimation"
        # The history also gives the correlation of noise.
        assert case.summary().uncertainty["inflow"].startswith("correlated normal noise")
    case = load(write_case(tmp_path / "d", stages=with_months, inflow=None, extra={HISTORY: whole}))
    assert case.scenarios.estimation_path == "full_estimation"
    assert case.summary().uncertainty["inflow"] == "noise as in the history at 2 hydros (saa)"
    errors = errors_of(write_case(tmp_path / "b", extra={HISTORY: history()}))
    pick(errors, "BusinessRuleViolation", file=HISTORY, rule="5b.21")


def test_a_season_of_the_study_without_observations_is_found_at_load(tmp_path: Path) -> None:
    path = write_case(tmp_path / "a", stages=with_months, inflow=None, extra={HISTORY: history()})
    pick(errors_of(path), "BusinessRuleViolation", file=HISTORY, entity="hydro 4 (LOWER)", value=1)
    # With statistics given, its inflow there has them and does not depend on earlier inflow.
    case = load(write_case(tmp_path / "b", stages=with_months, extra={HISTORY: history()}))
    model = inflow_model(case)
    assert (model.order[1:, 1] == 0).all()
    note = pick(model.notes, "ModelQuality", file=HISTORY, entity="hydro 4 (LOWER)", value=1)
    assert "does not depend on earlier inflow" in note.message


def test_a_plant_without_history_has_the_statistics_that_are_given(tmp_path: Path) -> None:
    """Order 0 and a warning; only without statistics is there nothing to go by."""
    rows = [at for at, number in enumerate(whole_history()["hydro_id"]) if number == 1]
    table = {name: [column[at] for at in rows] for name, column in whole_history().items()}
    path = write_case(tmp_path / "a", stages=with_months, extra={HISTORY: table})
    warning = pick(warnings_of(path), "ModelQuality", file=HISTORY, rule="5b.19", value="4")
    assert warning.context["entity"] == "hydro 4"
    case = load(path)
    model = inflow_model(case)
    assert (model.order[:, 1] == 0).all()
    assert (model.sigma_m3s[:, 1] == case.scenarios.inflow_std_m3s[:, 1]).all()
    path = write_case(tmp_path / "b", stages=with_months, inflow=None, extra={HISTORY: table})
    pick(errors_of(path), "BusinessRuleViolation", file=HISTORY, rule="5b.19", value="4")


def test_a_history_without_rows_is_refused(tmp_path: Path) -> None:
    empty: dict[str, Any] = {
        "hydro_id": pa.array([], pa.int32()),
        "start_date": pa.array([], pa.date32()),
        "end_date": pa.array([], pa.date32()),
        "value_m3s": pa.array([], pa.float64()),
    }
    path = write_case(tmp_path, stages=with_months, extra={HISTORY: pa.table(empty)})
    assert "remove the file" in str(
        only(path, "BusinessRuleViolation", file=HISTORY, rule="5b.19").suggestion
    )


def test_a_year_of_few_digits_is_refused(tmp_path: Path) -> None:
    early = [datetime.date(23, 1, 1), *history()["start_date"][1:]]
    path = write_case(tmp_path, stages=with_months, extra={HISTORY: history(start_date=early)})
    only(path, "InvalidValue", file=HISTORY, field="start_date[row 0]", value="0023-01-01")


DAY = datetime.date(2023, 1, 15)


@pytest.mark.parametrize(
    ("columns", "kind", "context"),
    [
        ({"end_date": [DAY, DAY, DAY]}, "InvalidValue", {"field": "end_date[row 1]"}),
        (
            {"start_date": [DAY, DAY, DAY], "end_date": [datetime.date(2023, 2, 1)] * 3},
            "InvalidValue",
            {"field": "start_date[row 1]"},
        ),
        ({"hydro_id": [1, 1, 9]}, "InvalidReference", {"value": 9}),
        ({"start_date": [1, 2, 3]}, "SchemaViolation", {"field": "start_date"}),
        ({"start_date": [None, DAY, DAY]}, "InvalidValue", {"field": "start_date"}),
        ({"value_m3s": [1.0, None, 1.0]}, "InvalidValue", {"field": "value_m3s[row 1]"}),
    ],
)
def test_history_faults(tmp_path: Path, columns: dict, kind: str, context: dict) -> None:
    path = write_case(tmp_path, stages=with_months, extra={HISTORY: history(**columns)})
    pick(errors_of(path), kind, file=HISTORY, **context)


def test_history_with_one_date_is_an_older_layout(tmp_path: Path) -> None:
    table = {"hydro_id": [1], "date": [DAY], "value_m3s": [1.0]}
    path = write_case(tmp_path, stages=with_months, extra={HISTORY: table})
    assert "older layout" in only(path, "SchemaViolation", file=HISTORY, field="date").message


def test_correlation_is_kept_by_profile_and_stage(tmp_path: Path) -> None:
    content = correlation()
    content["profiles"]["wet"] = correlation(0.25, entities=[{"type": "load", "id": n} for n in (3, 0)])[
        "profiles"
    ]["default"]
    content["schedule"] = [{"stage_id": 1, "profile_name": "wet"}]
    found = load(write_case(tmp_path, extra={CORRELATION: content})).scenarios.correlation
    assert found is not None
    assert found.of_stage == ("default", "wet", "default")
    (group,) = found.profiles["default"]
    assert (group.name, group.kind, group.members.tolist()) == ("g", "inflow", [0, 1])
    (group,) = found.profiles["wet"]
    assert (group.kind, group.members.tolist()) == ("load", [1, 0])
    assert group.matrix.tolist() == [[1.0, 0.25], [0.25, 1.0]]


def test_the_same_id_in_two_classes_does_not_collide(tmp_path: Path) -> None:
    content = correlation()
    loads = [{"type": "load", "id": 0}, {"type": "load", "id": 3}]
    second = correlation(0.1, entities=loads)["profiles"]["default"]["correlation_groups"]
    content["profiles"]["default"]["correlation_groups"] += second
    found = load(write_case(tmp_path, extra={CORRELATION: content})).scenarios.correlation
    assert found is not None
    assert [group.kind for group in found.profiles["default"]] == ["inflow", "load"]


@pytest.mark.parametrize(
    ("content", "kind", "context"),
    [
        (correlation(matrix=[[1.0]]), "DimensionMismatch", {"value": [1]}),
        (correlation(matrix=[[1.0, 0.1], [0.2, 1.0]]), "InvalidValue", {}),
        (correlation(matrix=[[0.9, 0.1], [0.1, 1.0]]), "InvalidValue", {}),
        (correlation(1.5), "InvalidValue", {}),
        (
            correlation(entities=[{"type": "inflow", "id": 1}, {"type": "load", "id": 0}]),
            "BusinessRuleViolation",
            {},
        ),
        (
            correlation(entities=[{"type": "inflow", "id": 1}, {"type": "inflow", "id": 0}]),
            "InvalidReference",
            {"value": 0},
        ),
        (correlation(entities=[{"type": "inflow", "id": 1}] * 2), "DuplicateId", {"value": 1}),
        ({**correlation(), "method": "cholesky"}, "InvalidValue", {"field": "method"}),
        ({**correlation(), "profiles": {}}, "InvalidValue", {"field": "profiles"}),
        (
            {**correlation(), "schedule": [{"stage_id": 0, "profile_name": "wet"}]},
            "InvalidReference",
            {"rule": "dimensional.5"},
        ),
        (
            {**correlation(), "schedule": [{"stage_id": 8, "profile_name": "default"}]},
            "InvalidReference",
            {"value": 8},
        ),
    ],
)
def test_correlation_faults(tmp_path: Path, content: dict, kind: str, context: dict) -> None:
    pick(errors_of(write_case(tmp_path, extra={CORRELATION: content}))[:1], kind, file=CORRELATION, **context)


def test_impossible_correlations_are_warned_of(tmp_path: Path) -> None:
    """Three plants cannot all be opposite to each other."""
    three = [{"type": "load", "id": 0}, {"type": "load", "id": 3}]
    content = correlation(entities=three, matrix=[[1.0, -1.0], [-1.0, 1.0]])
    assert check(write_case(tmp_path / "a", extra={CORRELATION: content}))[2] == []

    def more(file: dict) -> None:
        file["buses"].append({"id": 8, "name": "EAST", "operational_start_date": "1900-01-01"})

    matrix = [[1.0, -0.9, -0.9], [-0.9, 1.0, -0.9], [-0.9, -0.9, 1.0]]
    content = correlation(entities=[*three, {"type": "load", "id": 8}], matrix=matrix)
    path = write_case(tmp_path / "b", buses=more, load=None, extra={CORRELATION: content})
    problem = pick(check(path)[2], "ModelQuality", file=CORRELATION)
    # Eigenvalues 1.9, 1.9 and -0.8; what is left has correlations of -1/2.
    assert "semidefinite (lowest eigenvalue -0.8)" in problem.message
    assert "by up to 0.4." in problem.message


def test_repeated_rows_are_found_among_wide_ids(tmp_path: Path) -> None:
    low, high = -(2**31), 2**31 - 1
    table = {
        "stage_id": [0, 0, 0, 0],
        "opening_index": [low, high, low, 0],
        "entity_index": [high, low, high, 0],
        "value": [0.0] * 4,
    }
    pick(errors_of(write_case(tmp_path, extra={NOISE: table})), "DuplicateId", file=NOISE, value=high)


def test_noise_openings(tmp_path: Path) -> None:
    warnings = warnings_of(write_case(tmp_path / "a", extra={NOISE: openings()}))
    assert "not used" in pick(warnings, "SemanticAmbiguity", file=NOISE).message
    errors = errors_of(write_case(tmp_path / "b", extra={NOISE: openings(2)}))
    assert [problem.context["entity"] for problem in errors] == ["stage 0", "stage 1", "stage 2"]
    assert {problem.kind for problem in errors} == {"DimensionMismatch"}

    def use(file: dict) -> None:
        file["training"]["scenario_source"] = {"openings": {"source": "file"}}

    path = write_case(tmp_path / "c", config=use, extra={NOISE: openings()})
    found = load(path).scenarios.noise_openings
    assert found is not None
    assert [values.shape for values in found] == [(1, 3), (4, 3), (4, 3)]


def test_statistics_of_sources(tmp_path: Path) -> None:
    case = load(write_case(tmp_path, extra={**SOURCES, NCS_STATS: ncs_stats()}))
    assert case.scenarios.ncs_has_stats.tolist() == [False, True]
    np.testing.assert_array_equal(case.scenarios.ncs_mean, [[0, 0.5], [0, 0.6], [0, 1.0]])
    np.testing.assert_array_equal(case.scenarios.ncs_std, [[0, 0.1], [0, 0.0], [0, 0.2]])


def test_source_without_a_row_gives_nothing(tmp_path: Path) -> None:
    table = {name: column[:2] for name, column in ncs_stats().items()}
    case = load(write_case(tmp_path, extra={**SOURCES, NCS_STATS: table}))
    assert case.scenarios.ncs_mean[2].tolist() == [0, 0]
    pick(case.warnings, "ModelQuality", file=NCS_STATS, value="2")


@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        ({"mean": [0.5, 1.1, 0.5]}, "InvalidValue"),
        ({"mean": [0.5, -0.1, 0.5]}, "InvalidValue"),
        ({"std": [0.5, -0.1, 0.5]}, "InvalidValue"),
        ({"ncs_id": [7, 8, 7]}, "InvalidReference"),
        ({"stage_id": [0, 1, 1]}, "DuplicateId"),
    ],
)
def test_faults_in_statistics_of_sources(tmp_path: Path, columns: dict, kind: str) -> None:
    path = write_case(tmp_path, extra={**SOURCES, NCS_STATS: ncs_stats(**columns)})
    only(path, kind, file=NCS_STATS)


def test_inflow_statistics_are_not_needed_out_of_service(tmp_path: Path) -> None:
    def drop(table: dict) -> None:
        for column in table.values():
            del column[0]  # hydro 1, stage 0

    path = write_case(tmp_path / "a", inflow=drop)
    only(path, "DimensionMismatch", rule="dimensional.1")

    def enter(file: dict) -> None:
        file["hydros"][0]["entry_stage_id"] = 1

    case = load(write_case(tmp_path / "b", inflow=drop, hydros=enter))
    assert case.scenarios.inflow_mean_m3s[:, 0].tolist() == [0.0, 41.0, 42.0]
