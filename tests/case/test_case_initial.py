"""Water under way, plants committed ahead of time, observations and post-study stages."""

from pathlib import Path
from typing import Any

import pytest
from builders.base_case import errors_of, only, pick, warnings_of, write_case
from builders.base_case_time import FEBRUARY, JANUARY, POST, ahead, committed, post_study, release

from cobre.case import load
from cobre.case.model import AnticipatedDelivery

INITIAL = "initial_conditions.json"


def travelling(hours: float, *releases: dict[str, Any]) -> dict[str, Any]:
    return {
        "hydros": lambda f: f["hydros"][0].update(travel_time_hours=hours),
        "initial": lambda f: f.update(past_defluences=list(releases)),
    }


def test_water_under_way_arrives_by_stage(tmp_path: Path) -> None:
    """A travel time of 800 h; releases of 10 m3/s, then 20 m3/s on the last two days.

    Released in [-800, -48) h at 10 m3/s: arrives in [0, 752) h; at 20 m3/s: in [752, 800) h. The first stage
    has 744 h, so 8 h at 10 m3/s and 48 h at 20 m3/s are left for the second.
    """
    changes = travelling(800, release("2023-11-01", "2023-12-30"), release("2023-12-30", "2024-01-01", 20))
    case = load(write_case(tmp_path, **changes))
    assert case.hydros[0].travel_time_hours == 800
    assert case.hydros[0].past_outflow_hm3 == pytest.approx((0.0036 * 7440, 0.0036 * (80 + 960)), rel=1e-14)
    assert case.hydros[1].past_outflow_hm3 == ()


def test_releases_must_cover_the_travel_time(tmp_path: Path) -> None:
    rule = {"file": INITIAL, "entity": "hydro 1 (UPPER)", "field": "past_defluences"}
    short = travelling(49, release("2023-12-30", "2024-01-01"))
    only(write_case(tmp_path / "a", **short), "BusinessRuleViolation", value=2, **rule)
    gap = travelling(49, release("2023-12-01", "2023-12-29"), release("2023-12-30", "2024-01-01"))
    only(write_case(tmp_path / "b", **gap), "BusinessRuleViolation", value=2, **rule)
    only(write_case(tmp_path / "c", **travelling(1)), "BusinessRuleViolation", value=0, **rule)
    whole = travelling(48, release("2023-12-30", "2024-01-01"))
    assert warnings_of(write_case(tmp_path / "d", **whole)) == []


def test_release_faults(tmp_path: Path) -> None:
    good = release("2023-12-30", "2024-01-01")

    def write(name: str, *releases: dict[str, Any]) -> Path:
        return write_case(tmp_path / name, **travelling(24, *releases))

    only(write("a", release("2023-12-30", "2024-01-02")), "BusinessRuleViolation")
    only(write("b", good, release("2023-12-29", "2023-12-31")), "BusinessRuleViolation")
    only(write("c", good, release("2023-12-29", "2023-12-29")), "InvalidValue")
    only(write("d", good, release("2023-12-29", "2023-12-30", hydro=9)), "InvalidReference", value=9)
    only(write("e", release("2023-12-30", "2024-01-01", -1.0)), "InvalidValue", value=-1.0)
    assert (
        "no effect" in warnings_of(write("f", good, release("2023-12-29", "2023-12-30", hydro=4)))[0].message
    )


def test_observations(tmp_path: Path) -> None:
    def write(name: str, *entries: dict[str, Any]) -> Path:
        return write_case(tmp_path / name, initial=lambda f: f.update(recent_observations=list(entries)))

    warnings = warnings_of(write("a", release("2023-12-01", "2024-01-01", -3.0)))
    pick(warnings, "ModelQuality", rule="5a.34a", value=-3.0)
    pick(warnings, "SemanticAmbiguity", field="recent_observations")
    assert len(warnings) == 2
    only(write("b", release("2023-12-01", "2024-01-02")), "BusinessRuleViolation", rule="5a.32")
    twice = [release("2023-12-01", "2024-01-01")] * 2
    only(write("c", *twice), "BusinessRuleViolation", rule="5a.32", field="recent_observations[1].start_date")


def test_filling_storage_repeats_storage(tmp_path: Path) -> None:
    def edit(file: dict) -> None:
        file["filling_storage"] = [{"hydro_id": 1, "value_hm3": 2.0}]

    errors = errors_of(write_case(tmp_path, initial=edit))
    pick(errors, "DuplicateId", field="filling_storage", value=1)


def test_deliveries_by_stages(tmp_path: Path) -> None:
    case = load(write_case(tmp_path, thermals=ahead(lead_stages=1), initial=committed(JANUARY)))
    thermal = case.thermals[0]
    assert thermal.anticipated == (
        AnticipatedDelivery(0, -1, 12.0, 1.0, 40.0, 50.0, 744.0),
        AnticipatedDelivery(1, 0, None, 1.0, 40.0, 50.0, 696.0),
        AnticipatedDelivery(2, 1, None, 1.0, 40.0, 50.0, 744.0),
    )
    assert case.thermals[1].anticipated == ()
    # The cost is charged at the decision, so the delivery stages have none.
    assert [data.thermal_cost.tolist() for data in case.stage_data] == [[0.0, 52.0]] * 3


def test_deliveries_after_the_study(tmp_path: Path) -> None:
    extra = {POST: post_study((0, 60.0, 2.0, 30.0), (1, 61.0, 3.0, 31.0))}
    changes = {"thermals": ahead(lead_stages=2), "initial": committed(JANUARY, FEBRUARY)}
    case = load(write_case(tmp_path / "a", extra=extra, **changes))
    assert [(d.delivery, d.decision, d.hours) for d in case.thermals[0].anticipated] == [
        (0, -1, 744.0),
        (1, -1, 696.0),
        (2, 0, 744.0),
        (3, 1, 720.0),
        (4, 2, 744.0),
    ]
    last = case.thermals[0].anticipated[-1]
    assert (last.min_mw, last.max_mw, last.cost_per_mwh) == (3.0, 31.0, 61.0)
    assert [stage.hours for stage in case.post_study_stages] == [720.0, 744.0]
    missing = write_case(tmp_path / "b", extra={POST: post_study((0, 60.0, 2.0, 30.0))}, **changes)
    only(missing, "DimensionMismatch", file=POST, rule="5a.47", value="1")


@pytest.mark.parametrize(
    ("hours", "decisions"),
    [
        # March 1st less 29 days is February 1st, less an hour more it lies in January.
        (29 * 24, [-1, 0, 1]),
        (29 * 24 + 1, [-1, 0, 0]),
        (31 * 24, [-1, 0, 0]),
        (60 * 24, [-1, -1, 0]),
        (1, [-1, 0, 1]),
    ],
)
def test_deliveries_by_hours(tmp_path: Path, hours: float, decisions: list[int]) -> None:
    windows = [JANUARY, FEBRUARY][: decisions.count(-1)]
    case = load(write_case(tmp_path, thermals=ahead(lead_time_hours=hours), initial=committed(*windows)))
    assert [item.decision for item in case.thermals[0].anticipated] == decisions


def test_only_what_is_decided_inside_the_study_is_delivered_after_it(tmp_path: Path) -> None:
    """A lead of 20 days: April is decided in March, May (decided in April) never."""
    extra = {POST: post_study((0, 60.0, 2.0, 30.0))}
    changes = {"thermals": ahead(lead_time_hours=480), "initial": committed(JANUARY)}
    case = load(write_case(tmp_path, extra=extra, **changes))
    assert [(d.delivery, d.decision) for d in case.thermals[0].anticipated][-1] == (3, 2)


def test_a_stage_may_be_committed_in_parts(tmp_path: Path) -> None:
    parts = [("2024-01-01", "2024-01-11", 31.0), ("2024-01-11", "2024-02-01", 0.0)]
    case = load(write_case(tmp_path, thermals=ahead(lead_stages=1), initial=committed(*parts)))
    assert case.thermals[0].anticipated[0].committed_mw == pytest.approx(10.0, rel=1e-14)


@pytest.mark.parametrize(
    ("windows", "kind", "context"),
    [
        ([], "BusinessRuleViolation", {"rule": "5a.15", "value": "0"}),
        ([JANUARY, FEBRUARY], "BusinessRuleViolation", {"rule": "5a.15", "value": "2024-02-01"}),
        ([("2024-01-01", "2024-01-31", 12.0)], "BusinessRuleViolation", {"value": "0"}),
        ([("2024-01-01", "2024-02-01", 41.0)], "InvalidValue", {"rule": "5a.15", "value": 41.0}),
        ([("2024-01-01", "2024-02-01", 0.5)], "InvalidValue", {"rule": "5a.15", "value": 0.5}),
        ([JANUARY, JANUARY], "BusinessRuleViolation", {}),
    ],
)
def test_commitment_faults(tmp_path: Path, windows: Any, kind: str, context: dict[str, Any]) -> None:
    path = write_case(tmp_path, thermals=ahead(lead_stages=1), initial=committed(*windows))
    pick(errors_of(path), kind, file=INITIAL, **context)


def test_commitments_of_an_ordinary_plant(tmp_path: Path) -> None:
    only(write_case(tmp_path, initial=committed(JANUARY)), "BusinessRuleViolation", rule="5a.15")


def test_lead_longer_than_the_study(tmp_path: Path) -> None:
    windows = [JANUARY, FEBRUARY, ("2024-03-01", "2024-04-01", 9.0)]
    path = write_case(tmp_path / "a", thermals=ahead(lead_stages=4), initial=committed(*windows))
    only(path, "BusinessRuleViolation", rule="5a.14", value=4)
    path = write_case(tmp_path / "b", thermals=ahead(lead_time_hours=1e14), initial=committed(*windows))
    only(path, "BusinessRuleViolation", rule="5a.14", value=1e14)


@pytest.mark.parametrize(
    ("change", "kind", "field"),
    [
        (
            lambda f: f["stages"][0].update(start_date="2024-04-02"),
            "BusinessRuleViolation",
            "stages[0].start_date",
        ),
        (
            lambda f: f["stages"][1].update(start_date="2024-05-08"),
            "BusinessRuleViolation",
            "stages[1].start_date",
        ),
        (lambda f: f["stages"][0].update(duration_hours=0), "InvalidValue", "stages[0].duration_hours"),
        (
            lambda f: f["thermal_bounds"][0].update(thermal_id=9),
            "InvalidReference",
            "thermal_bounds[0].thermal_id",
        ),
        (
            lambda f: f["thermal_bounds"][0].update(thermal_id=2),
            "BusinessRuleViolation",
            "thermal_bounds[0].thermal_id",
        ),
        (lambda f: f["thermal_bounds"].append(f["thermal_bounds"][0]), "DuplicateId", "thermal_bounds[1]"),
        (lambda f: f["thermal_bounds"][0].update(min_mw=99), "InvalidValue", "thermal_bounds[0].min_mw"),
        (
            lambda f: f["thermal_bounds"][0].update(post_study_stage_index=2),
            "InvalidReference",
            "thermal_bounds[0].post_study_stage_index",
        ),
    ],
)
def test_post_study_faults(tmp_path: Path, change: Any, kind: str, field: str) -> None:
    content = post_study((0, 60.0, 2.0, 30.0))
    change(content)
    path = write_case(
        tmp_path, extra={POST: content}, thermals=ahead(lead_stages=1), initial=committed(JANUARY)
    )
    pick(errors_of(path), kind, file=POST, field=field)
