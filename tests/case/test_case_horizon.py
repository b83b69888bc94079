"""Seasons, pre-study stages, policy graphs, risk measures and options."""

from pathlib import Path
from typing import Any

import pytest
from builders.base_case import errors_of, only, pick, warnings_of, write_case
from builders.base_case_time import MONTHS

from cobre.case import check, load
from cobre.case.model import CutSelection, RiskMeasure
from cobre.rules.stopping.bound_stalling import BoundStalling
from cobre.rules.stopping.gap import Gap
from cobre.rules.stopping.time_limit import TimeLimit


def seasons(entries: list[dict[str, Any]] | None = None, cycle: str = "monthly", **stages: Any) -> Any:
    """Return an edit that adds season definitions, and sets keys of stages (``s0={...}``)."""

    def edit(file: dict) -> None:
        file["season_definitions"] = {"cycle_type": cycle, "seasons": MONTHS if entries is None else entries}
        for name, values in stages.items():
            file["stages"][int(name[1:])].update(values)

    return edit


def custom(number: int, start: tuple[int, int], end: tuple[int, int]) -> dict[str, Any]:
    return {
        "id": number,
        "label": f"C{number}",
        "month_start": start[0],
        "day_start": start[1],
        "month_end": end[0],
        "day_end": end[1],
    }


def test_season_comes_from_the_date(tmp_path: Path) -> None:
    case = load(write_case(tmp_path, stages=seasons(s1={"season_id": 1})))
    assert [stage.season_id for stage in case.stages] == [0, 1, 2]
    assert case.seasons is not None
    assert case.seasons.cycle_type == "monthly"
    assert [season.month_start for season in case.seasons.seasons] == list(range(1, 13))
    pick(case.warnings, "UnusedEntity", rule="5b.30", value="3-11")


def test_weekly_season_is_the_iso_week(tmp_path: Path) -> None:
    weeks = [{"id": n, "label": f"W{n}", "month_start": 1} for n in range(52)]
    case = load(write_case(tmp_path, stages=seasons(weeks, "weekly")))
    # 2024-01-01 is a Monday (week 1), 2024-02-01 lies in week 5, 2024-03-01 in week 9.
    assert [stage.season_id for stage in case.stages] == [0, 4, 8]


def test_custom_seasons_of_several_lengths(tmp_path: Path) -> None:
    entries = [
        custom(0, (1, 1), (1, 31)),
        custom(1, (2, 1), (2, 29)),
        custom(2, (3, 1), (3, 31)),
        custom(12, (12, 1), (2, 29)),
        custom(13, (3, 1), (5, 31)),
    ]
    case = load(write_case(tmp_path, stages=seasons(entries, "custom")))
    assert [stage.season_id for stage in case.stages] == [0, 1, 2]


@pytest.mark.parametrize(
    ("edit", "kind", "context"),
    [
        (seasons(s1={"season_id": 40}), "InvalidReference", {"rule": "5b.27", "value": 40}),
        (seasons(s1={"season_id": 0}), "SchemaViolation", {"entity": "stage 1", "value": 0}),
        (seasons(MONTHS[:2]), "InvalidValue", {"entity": "stage 2", "field": "season_id"}),
        (seasons([]), "InvalidValue", {"field": "season_definitions.seasons"}),
        (
            seasons([*MONTHS, {"id": 12, "label": "again", "month_start": 3}]),
            "SchemaViolation",
            {"value": 3},
        ),
        (
            seasons(
                [custom(0, (1, 1), (2, 1)), custom(1, (2, 1), (2, 29)), custom(2, (3, 1), (3, 31))], "custom"
            ),
            "SchemaViolation",
            {"value": [0, 1]},
        ),
        (seasons([{"id": 0, "label": "x", "month_start": 1}], "custom"), "SchemaViolation", {}),
        (seasons([custom(0, (1, 1), (2, 30))], "custom"), "InvalidValue", {}),
    ],
)
def test_season_faults(tmp_path: Path, edit: Any, kind: str, context: dict[str, Any]) -> None:
    only(write_case(tmp_path, stages=edit), kind, file="stages.json", **context)


def test_short_stages_may_count_for_any_season_but_not_beside_long_ones(tmp_path: Path) -> None:
    week = {"season_id": 0, "start_date": "2024-02-01", "end_date": "2024-02-08"}
    path = write_case(tmp_path, stages=seasons(s1=week))
    only(path, "BusinessRuleViolation", rule="5b.29", value=0)


def test_seasons_without_definitions_are_free(tmp_path: Path) -> None:
    case = load(write_case(tmp_path, stages=lambda f: f["stages"][0].update(season_id=77)))
    assert [stage.season_id for stage in case.stages] == [77, None, None]


def pre_study(*ids: int) -> Any:
    span = {"start_date": "2023-12-01", "end_date": "2024-01-01"}
    return lambda f: f.update(pre_study_stages=[{"id": number, **span} for number in ids])


def test_pre_study_stages_may_have_statistics(tmp_path: Path) -> None:
    def edit(table: dict) -> None:
        for name, value in (("hydro_id", 1), ("stage_id", -1), ("mean_m3s", 5.0), ("std_m3s", 1.0)):
            table[name].append(value)

    assert warnings_of(write_case(tmp_path / "a", stages=pre_study(-1), inflow=edit)) == []


def test_rows_of_inflow_models_may_count_periods_back_from_the_first_stage(tmp_path: Path) -> None:
    """Stage -1 is the period before the study, also without an entry in pre_study_stages, as in exports."""

    def edit(table: dict) -> None:
        for name, value in (("hydro_id", 1), ("stage_id", -1), ("mean_m3s", 5.0), ("std_m3s", 1.0)):
            table[name].append(value)

    path = write_case(tmp_path, inflow=edit)
    assert warnings_of(path) == []
    before = load(path).scenarios.pre_study
    assert before is not None
    assert before.stage_id.tolist() == [-1]
    assert before.mean_m3s[0, 0] == 5.0


def test_pre_study_faults(tmp_path: Path) -> None:
    only(write_case(tmp_path / "a", stages=pre_study(-1, -1)), "DuplicateId", field="pre_study_stages")
    only(write_case(tmp_path / "b", stages=pre_study(0)), "InvalidValue", value=0)

    def both(file: dict) -> None:
        pre_study(-1)(file)
        file["stages"].append({**file["stages"][0], "id": -1})

    only(write_case(tmp_path / "c", stages=both), "DuplicateId", value=-1)


def test_risk_measure_blocks_and_state(tmp_path: Path) -> None:
    def edit(file: dict) -> None:
        file["stages"][0].update(risk_measure={"cvar": {"alpha": 0.25, "lambda": 0.5}})
        file["stages"][1].update(block_mode="chronological", state_variables={"inflow_lags": True})
        file["stages"][2].update(state_variables={"storage": False})

    case = load(write_case(tmp_path, stages=edit))
    assert [stage.risk for stage in case.stages] == [RiskMeasure(0.5, 0.25), RiskMeasure(), RiskMeasure()]
    assert [stage.block_mode for stage in case.stages] == ["parallel", "chronological", "parallel"]
    assert [stage.lags_are_state for stage in case.stages] == [False, True, False]
    assert [stage.storage_is_state for stage in case.stages] == [True, True, False]
    pick(case.warnings, "SemanticAmbiguity", field="state_variables.storage", entity="stage 2")


@pytest.mark.parametrize(
    ("measure", "kind", "field"),
    [
        ({"cvar": {"alpha": 0, "lambda": 0.5}}, "InvalidValue", "risk_measure.cvar.alpha"),
        ({"cvar": {"alpha": 0.5, "lambda": 1.5}}, "InvalidValue", "risk_measure.cvar.lambda"),
        ({"cvar": {"alpha": 0.5}}, "SchemaViolation", "risk_measure.cvar.lambda"),
        ({"cvar": {"alpha": 0.5, "lambda": 0.5, "x": 1}}, "SchemaViolation", "risk_measure.cvar.x"),
        ({"entropic": {}}, "SchemaViolation", "risk_measure.entropic.gamma"),
        ({"entropic": {"gamma": 0}}, "InvalidValue", "risk_measure.entropic.gamma"),
        ({"entropic": 0.1}, "InvalidValue", "risk_measure"),
        ({"weights": []}, "InvalidValue", "risk_measure.weights"),
        ({"weights": [0.5, 0.4]}, "InvalidValue", "risk_measure.weights"),
        ({"weights": [0.4, 0.6]}, "InvalidValue", "risk_measure.weights"),
        ({"weights": [1.5, -0.5]}, "InvalidValue", "risk_measure.weights[1]"),
        ({"cvar": {"alpha": 0.5, "lambda": 0.5}, "weights": [1.0]}, "InvalidValue", "risk_measure"),
        ({"worst_case": True}, "InvalidValue", "risk_measure"),
        ("cvar", "InvalidValue", "risk_measure"),
    ],
)
def test_risk_measure_faults(tmp_path: Path, measure: Any, kind: str, field: str) -> None:
    path = write_case(tmp_path, stages=lambda f: f["stages"][0].update(risk_measure=measure))
    only(path, kind, entity="stage 0", field=field)


def test_sobol_points_want_a_power_of_two(tmp_path: Path) -> None:
    def edit(file: dict) -> None:
        for stage, count in zip(file["stages"], (1, 6, 8), strict=True):
            stage.update(sampling_method="qmc_sobol", num_openings=count)

    _, errors, warnings = check(write_case(tmp_path, stages=edit))
    assert errors == []
    pick(warnings, "ModelQuality", rule="5b.25", entity="stage 1")


NODES = [(10, 0), (20, 1), (21, 1), (30, 2)]
EDGES = [(10, 20, 0.25), (10, 21, 0.75), (20, 30, 1.0), (21, 30, 1.0)]


def graph(nodes: list[tuple] = NODES, edges: list[tuple] | None = EDGES, **stages: Any) -> Any:
    """Return an edit that adds nodes (id, stage, scenario) and edges."""

    def edit(file: dict) -> None:
        file["policy_graph"]["nodes"] = [
            {"id": n, "stage_id": s, "scenario_id": (rest or [None])[0]} for n, s, *rest in nodes
        ]
        if edges is not None:
            file["policy_graph"]["transitions"] = [
                {"source_id": s, "target_id": t, "probability": p} for s, t, p in edges
            ]
        for name, values in stages.items():
            file["stages"][int(name[1:])].update(values)

    return edit


def test_node_graph(tmp_path: Path) -> None:
    case = load(write_case(tmp_path, stages=graph(list(reversed(NODES)), list(reversed(EDGES)))))
    assert [(node.id, node.stage) for node in case.graph.nodes] == NODES
    assert [(edge.source, edge.target, edge.probability) for edge in case.graph.transitions] == [
        (0, 1, 0.25),
        (0, 2, 0.75),
        (1, 3, 1.0),
        (2, 3, 1.0),
    ]
    assert not case.graph.is_chain


def test_nodes_without_transitions_are_a_chain(tmp_path: Path) -> None:
    case = load(write_case(tmp_path, stages=graph([(7, 1), (8, 0), (9, 2)], None)))
    assert [node.id for node in case.graph.nodes] == [8, 7, 9]
    assert [(edge.source, edge.target) for edge in case.graph.transitions] == [(0, 1), (1, 2)]
    assert case.graph.is_chain


@pytest.mark.parametrize(
    ("nodes", "edges", "kind", "context"),
    [
        ([*NODES, (10, 2)], EDGES, "DuplicateId", {"value": 10}),
        ([*NODES, (40, 9)], EDGES, "InvalidReference", {"value": 9, "entity": "node 40"}),
        (NODES[:3], EDGES[:2], "BusinessRuleViolation", {"value": "2"}),
        ([*NODES, (11, 0)], [*EDGES, (11, 20, 1.0)], "BusinessRuleViolation", {"value": 2}),
        (NODES, None, "BusinessRuleViolation", {"field": "policy_graph.transitions"}),
        (NODES, [*EDGES, (30, 99, 1.0)], "InvalidReference", {"rule": "5b.1", "value": 99}),
        (NODES, [(10, 20, 0.5), *EDGES[1:]], "BusinessRuleViolation", {"rule": "5b.2", "value": 1.25}),
        (NODES, [*EDGES, (30, 10, 1.0)], "BusinessRuleViolation", {"value": [30, 10]}),
        (NODES, EDGES[:3], "BusinessRuleViolation", {"value": "21"}),
        (
            NODES,
            [(10, 20, 1.0), (20, 30, 1.0), (21, 30, 1.0)],
            "BusinessRuleViolation",
            {"value": "21"},
        ),
        (NODES, [(10, 20, 0.5), (10, 20, 0.5), *EDGES[2:]], "DuplicateId", {"value": [10, 20]}),
    ],
)
def test_graph_faults(tmp_path: Path, nodes: Any, edges: Any, kind: str, context: dict[str, Any]) -> None:
    pick(errors_of(write_case(tmp_path, stages=graph(nodes, edges))), kind, file="stages.json", **context)


def test_discount_of_a_transition_is_not_for_nodes(tmp_path: Path) -> None:
    def edit(file: dict) -> None:
        graph()(file)
        file["policy_graph"]["transitions"][0]["annual_discount_rate_override"] = 0.1

    only(write_case(tmp_path, stages=edit), "BusinessRuleViolation", value=0.1)


def external(**columns: Any) -> dict[str, Any]:
    """Return scenarios of stage 1: two of them, for both hydros."""
    table = {
        "stage_id": [1, 1, 1, 1],
        "scenario_id": [1, 0, 0, 1],
        "hydro_id": [4, 1, 4, 1],
        "value_m3s": [14.0, 1.0, 4.0, 11.0],
    }
    return {**table, **columns}


SCENARIO_NODES = [(10, 0), (20, 1, 0), (21, 1, 1), (30, 2)]


def use_external(scheme: str = "external", method: str = "enumerated") -> Any:
    def edit(file: dict) -> None:
        selection = {"method": method}
        if method == "sampled":
            selection["forward_passes"] = 1  # type: ignore[assignment]
        file["training"].update(
            selection=selection, scenario_source={"seed": 1, "inflow": {"scheme": scheme}}
        )

    return edit


def no_load_noise(table: dict) -> None:
    table["std_mw"] = [0.0] * 6


def write_external(path: Path, table: Any = None, nodes: Any = None, **changes: Any) -> Path:
    stages = graph(nodes or SCENARIO_NODES)

    def edit(file: dict) -> None:
        stages(file)
        del file["stages"][1]["num_openings"]

    defaults = {"config": use_external(), "stages": edit, "load": no_load_noise}
    extra = {"scenarios/external_inflow_scenarios.parquet": external() if table is None else table}
    return write_case(path, extra=extra, **{**defaults, **changes})


def test_nodes_take_external_scenarios(tmp_path: Path) -> None:
    case = load(write_external(tmp_path))
    assert case.training.enumerated
    assert case.training.forward_passes == 0
    assert [node.scenario_id for node in case.graph.nodes] == [None, 0, 1, None]
    assert [stage.num_openings for stage in case.stages] == [1, 1, 4]
    assert case.scenarios.external_inflow_m3s is not None
    assert [array.tolist() for array in case.scenarios.external_inflow_m3s] == [[], [[1, 4], [11, 14]], []]
    assert case.scenarios.external_load_mw is None


def test_external_scenario_faults(tmp_path: Path) -> None:
    sampled = write_external(tmp_path / "a", config=use_external(method="sampled"))
    only(sampled, "BusinessRuleViolation", field="policy_graph.nodes[].scenario_id")
    errors = errors_of(write_external(tmp_path / "b", config=use_external("in_sample")))
    pick(errors, "BusinessRuleViolation", field="policy_graph.nodes[].scenario_id", value="20-21")
    unknown = write_external(tmp_path / "c", nodes=[(10, 0), (20, 1, 0), (21, 1, 2), (30, 2)])
    only(unknown, "InvalidReference", file="stages.json", entity="stage 1", value="2")
    random = write_external(tmp_path / "d", load=lambda f: None)
    assert "load is random" in only(random, "SchemaViolation", entity="stage 1", field="num_openings").message
    beside = write_external(tmp_path / "g", load=lambda f: None, stages=graph(SCENARIO_NODES))
    assert [stage.num_openings for stage in load(beside).stages] == [1, 4, 4]
    openings = write_external(tmp_path / "e", stages=graph(SCENARIO_NODES))
    only(openings, "BusinessRuleViolation", entity="stage 1", field="num_openings", value=4)
    only(write_external(tmp_path / "f", table=b"PAR1"), "ParseError")


@pytest.mark.parametrize(
    ("columns", "kind", "context"),
    [
        ({"value_m3s": [1.0, float("nan"), 1.0, 1.0]}, "InvalidValue", {"field": "value_m3s[row 1]"}),
        ({"hydro_id": [4, 1, 4, 9]}, "InvalidReference", {"value": 9}),
        ({"scenario_id": [1, 0, 0, 0]}, "DuplicateId", {}),
        ({"scenario_id": [2, 0, 0, 2]}, "DimensionMismatch", {"entity": "stage 1", "value": "1"}),
        ({"scenario_id": [-1, 0, 0, 1]}, "InvalidValue", {"field": "scenario_id[row 0]"}),
        ({"scenario_id": [1, 0, 2, 1]}, "DimensionMismatch", {"field": "value_m3s"}),
        ({"value_m3s": ["a", "b", "c", "d"]}, "SchemaViolation", {"field": "value_m3s"}),
    ],
)
def test_external_table_faults(
    tmp_path: Path, columns: dict[str, Any], kind: str, context: dict[str, Any]
) -> None:
    errors = errors_of(write_external(tmp_path, table=external(**columns)))
    pick(errors, kind, file="scenarios/external_inflow_scenarios.parquet", **context)


def test_external_file_that_is_not_used_is_still_checked(tmp_path: Path) -> None:
    file = "scenarios/external_inflow_scenarios.parquet"
    warnings = warnings_of(write_case(tmp_path / "a", extra={file: external()}))
    assert "not used" in pick(warnings, "SemanticAmbiguity", file=file).message
    only(write_case(tmp_path / "b", extra={file: external(hydro_id=[4, 1, 4, 9])}), "InvalidReference")


def test_external_scheme_without_file_or_nodes(tmp_path: Path) -> None:
    errors = errors_of(write_case(tmp_path, config=use_external(), load=no_load_noise))
    pick(errors, "FileNotFound", field="training.scenario_source.inflow.scheme")
    assert len(errors) == 1


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        (None, RiskMeasure()),
        ("expectation", RiskMeasure()),
        ("worst_case", RiskMeasure(kind="worst_case")),
        ({"entropic": {"gamma": 1e-6}}, RiskMeasure(kind="entropic", gamma=1e-6)),
        ({"weights": [0.5, 0.25, 0.25]}, RiskMeasure(kind="spectral", spectrum=(0.5, 0.25, 0.25))),
    ],
)
def test_risk_measures_of_stage_and_root(tmp_path: Path, measure: Any, expected: RiskMeasure) -> None:
    def edit(file: dict) -> None:
        file["stages"][1]["risk_measure"] = measure
        file["policy_graph"]["root_risk_measure"] = measure

    case = load(write_case(tmp_path, stages=edit))
    assert case.stages[0].risk.is_expectation
    assert case.stages[1].risk == expected
    assert case.graph.root_risk == (None if measure is None else expected)


def test_stopping_rules_and_cut_selection(tmp_path: Path) -> None:
    def edit(file: dict) -> None:
        file["training"]["stopping_rules"] += [
            {"type": "time_limit", "seconds": 5},
            {"type": "bound_stalling", "iterations": 3, "tolerance": 0.1},
            {"type": "gap", "relative_tolerance": 2, "bound": "statistical"},
        ]
        file["training"].update(
            stopping_mode="all",
            selection={"method": "sampled", "forward_passes": 4},
            cut_selection={
                "row_activity_tolerance": 1e-6,
                "max_active_per_stage": 10,
                "selection": {"method": "dynamic", "seed_window": 0, "violation_tolerance": 1e-3},
            },
        )

    options = load(write_case(tmp_path, config=edit)).training
    assert options.stopping_mode == "all"
    assert options.stopping_rules == (
        TimeLimit(type="time_limit", seconds=5.0),
        BoundStalling(type="bound_stalling", iterations=3, tolerance=0.1),
        Gap(type="gap", relative_tolerance=2.0, bound="statistical"),
    )
    assert options.cut_selection == CutSelection(
        method="dynamic",
        tolerance=1e-3,
        seed_window=0,
        max_active_per_stage=10,
        activity_tolerance=1e-6,
    )


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        (None, CutSelection()),
        ({"selection": None}, CutSelection()),
        ({"selection": {"method": "level1"}}, CutSelection(method="level1")),
        (
            {"selection": {"method": "lml1", "check_frequency": 2, "tie_tolerance": 0}},
            CutSelection(method="lml1", check_frequency=2, tolerance=0.0),
        ),
        (
            {"selection": {"method": "domination", "domination_tolerance": 7}},
            CutSelection(method="domination", tolerance=7.0),
        ),
    ],
)
def test_cut_selection_of_config(tmp_path: Path, section: Any, expected: CutSelection) -> None:
    case = load(write_case(tmp_path, config=lambda f: f["training"].update(cut_selection=section)))
    assert case.training.cut_selection == expected


def test_a_gap_rule_under_risk_aversion_warns(tmp_path: Path) -> None:
    def edit(file: dict) -> None:
        file["training"]["selection"] = {"method": "enumerated"}
        file["training"]["stopping_rules"].append({"type": "gap", "tolerance": 1.0})

    path = write_case(
        tmp_path, config=edit, stages=lambda f: f["stages"][1].update(risk_measure="worst_case")
    )
    _, errors, warnings = check(path)
    assert errors == []
    assert "bounds nothing" in pick(warnings, "SemanticAmbiguity", file="config.json").message


def test_external_scheme_on_a_chain_needs_scenarios_at_every_stage(tmp_path: Path) -> None:
    file = "scenarios/external_inflow_scenarios.parquet"
    options = {"config": use_external(method="sampled"), "load": no_load_noise}
    problem = only(write_case(tmp_path / "a", extra={file: external()}, **options), "DimensionMismatch")
    assert problem.context["value"] == "0, 2"
    cells = [(s, n, h) for s, count in ((0, 1), (1, 2), (2, 3)) for n in range(count) for h in (1, 4)]
    stage, scenario, hydro = (list(column) for column in zip(*cells, strict=True))
    table = {"stage_id": stage, "scenario_id": scenario, "hydro_id": hydro, "value_m3s": [1.0] * len(cells)}
    case = load(write_case(tmp_path / "b", extra={file: table}, **options))
    assert case.training.source.inflow == "external"
    assert case.scenarios.external_inflow_m3s is not None
    assert [len(values) for values in case.scenarios.external_inflow_m3s] == [1, 2, 3]
