"""Arguments, paths, requests and crowds that mean no good, against real servers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from mcp import Client, MCPError
from mcp_helpers import HELLO, Agent, command, copy_case, environment, http_server, stdio_agent

SECRET = "a-secret-beside-the-root"


@pytest.fixture(scope="module")
def place(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with a run, and links out of it; beside it secrets that answers must not hold."""
    base = tmp_path_factory.mktemp("hostile")
    shutil.copytree(finished, base / "root", symlinks=True)
    (base / "secret").mkdir()
    (base / "secret" / "config.json").write_text(json.dumps({SECRET: 1}))
    root = base / "root"
    (root / "out").symlink_to("../secret")
    (root / "absolute").symlink_to(base / "secret")
    copy_case(root, to="linked")
    (root / "linked" / "config.json").unlink()
    (root / "linked" / "config.json").symlink_to("../../secret/config.json")
    copy_case(root, to="system-out")
    shutil.move(root / "system-out" / "system", base / "secret" / "system")
    (root / "system-out" / "system").symlink_to("../../secret/system")
    shutil.copytree(root / "plan" / "output", root / "results-out", symlinks=True)
    shutil.rmtree(root / "results-out" / "simulation" / "buses")
    (root / "results-out" / "simulation" / "buses").symlink_to(
        finished / "plan" / "output" / "simulation" / "buses"
    )
    copy_case(root, to="boundary")
    config = json.loads((root / "boundary" / "config.json").read_text())
    config["policy"] = {"boundary": {"path": str(base / "secret")}}
    (root / "boundary" / "config.json").write_text(json.dumps(config))
    unreadable = root / os.fsdecode(b"\xff\xfe")
    (unreadable / "system").mkdir(parents=True)
    (unreadable / "config.json").write_text("{}")
    (unreadable / os.fsdecode(b"\xfd.json")).write_text("{}")
    return root


@pytest.fixture(scope="module")
def reader(place: Path) -> Iterator[Agent]:
    with stdio_agent(place, "--workers", "2") as agent:
        yield agent


@pytest.fixture(scope="module")
def writer(place: Path) -> Iterator[Agent]:
    with stdio_agent(
        place, "--allow-write", "--workers", "1", "--max-threads", "2", "--max-ranks", "1"
    ) as agent:
        yield agent


def text_of(result: Any) -> str:
    return "\n".join(part.text for part in result.content)


ESCAPES = [
    ("cobre_inspect_case", {"case": "../secret"}),
    ("cobre_inspect_case", {"case": "out"}),
    ("cobre_inspect_case", {"case": "absolute"}),
    ("cobre_inspect_case", {"case": "plan/../../secret"}),
    ("cobre_inspect_case", {"case": "linked", "file": "config.json"}),
    ("cobre_inspect_case", {"case": "system-out", "file": "system/buses.json"}),
    ("cobre_inspect_case", {"case": "plan", "file": "../../secret/config.json"}),
    ("cobre_inspect_case", {"case": "boundary"}),
    ("cobre_validate", {"case": "linked"}),
    ("cobre_validate", {"case": "boundary"}),
    ("cobre_estimate", {"case": "system-out"}),
    ("cobre_list", {"directory": "out"}),
    ("cobre_list", {"directory": "/"}),
    ("cobre_query_results", {"output": "results-out"}),
    ("cobre_query_results", {"output": "results-out", "table": "buses"}),
    ("cobre_query_results", {"output": "../../"}),
    ("cobre_query_convergence", {"output": "out"}),
    ("cobre_list_scenarios", {"output": "results-out"}),
    ("cobre_compare_results", {"a": "plan/output", "b": "results-out"}),
    ("cobre_inspect_policy", {"policy": "absolute"}),
    ("cobre_compare_policies", {"a": "plan/output", "b": "../secret"}),
    ("cobre_explain_price", {"output": "results-out", "bus": "Valley", "stage": 0, "case": "plan"}),
    ("cobre_edit_case", {"case": "out", "changes": [{"file": "config.json", "op": "remove"}]}),
    (
        "cobre_edit_case",
        {
            "case": "plan",
            "changes": [
                {
                    "file": "config.json",
                    "op": "add",
                    "pointer": "/policy",
                    "value": {"boundary": {"path": "../../secret"}},
                }
            ],
        },
    ),
]


@pytest.mark.parametrize(("tool", "arguments"), ESCAPES, ids=[f"{n}-{t}" for n, (t, _) in enumerate(ESCAPES)])
def test_no_tool_leaves_the_root(reader: Agent, place: Path, tool: str, arguments: dict[str, Any]) -> None:
    result = reader.raw(tool, arguments)
    assert result.is_error, result.structured_content
    text = text_of(result)
    assert SECRET not in text
    assert str(place.parent) not in text


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("cobre_train", {"case": "plan", "output": "out/x"}),
        ("cobre_train", {"case": "plan", "output": "/etc/x"}),
        ("cobre_train", {"case": "plan", "output": ".cobre-jobs/x"}),
        ("cobre_train", {"case": "plan", "output": "plan"}),
        ("cobre_train", {"case": "boundary"}),
        ("cobre_train", {"case": "linked"}),
        ("cobre_train", {"case": "plan", "warm_start": "absolute"}),
        ("cobre_train", {"case": "plan", "ranks": 2}),
        ("cobre_train", {"case": "plan", "threads": 3}),
        ("cobre_simulate", {"case": "plan", "policy": "../secret"}),
        ("cobre_resume", {"job": "../x"}),
        ("cobre_export_results", {"output": "plan/output", "table": "buses", "file": "out/buses.csv"}),
        ("cobre_export_results", {"output": "plan/output", "table": "buses", "file": "../buses.csv"}),
        ("cobre_export_results", {"output": "plan/output", "table": "buses", "file": ".cobre-jobs/b.csv"}),
        ("cobre_export_results", {"output": "plan/output", "table": "buses", "file": "plan/x.sh"}),
        ("cobre_create_case", {"directory": "out/new"}),
        ("cobre_create_case", {"directory": "plan"}),
        ("cobre_create_case", {"directory": "new", "template": "../x"}),
        (
            "cobre_edit_case",
            {
                "case": "out",
                "apply": True,
                "force": True,
                "changes": [{"file": "config.json", "op": "remove"}],
            },
        ),
    ],
)
def test_nothing_is_written_elsewhere(
    writer: Agent, place: Path, tool: str, arguments: dict[str, Any]
) -> None:
    before = sorted(str(path) for path in place.parent.rglob("*"))
    writer.refused(tool, **arguments)
    after = sorted(str(path) for path in place.parent.rglob("*") if ".cobre-jobs" not in str(path))
    assert [path for path in before if ".cobre-jobs" not in path] == after


def test_a_link_in_the_place_of_a_file_is_replaced_and_its_target_kept(writer: Agent, place: Path) -> None:
    (place / "mine.csv").symlink_to("../secret/config.json")
    arguments = {"output": "plan/output", "table": "buses", "file": "mine.csv"}
    assert "PathOutsideRoot" in writer.kinds("cobre_export_results", **arguments)
    writer.call("cobre_export_results", **arguments, overwrite=True)
    assert not (place / "mine.csv").is_symlink()
    assert SECRET in (place.parent / "secret" / "config.json").read_text()


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("cobre_train", {"case": "plan"}),
        ("cobre_simulate", {"case": "plan"}),
        ("cobre_run", {"case": "plan"}),
        ("cobre_resume", {"job": "train-1"}),
        ("cobre_cancel_job", {"job": "train-1"}),
        ("cobre_create_case", {"directory": "new"}),
        ("cobre_export_results", {"output": "plan/output", "table": "buses", "file": "x.csv"}),
        (
            "cobre_edit_case",
            {"case": "plan", "changes": [{"file": "config.json", "op": "remove"}], "apply": True},
        ),
    ],
)
def test_a_server_only_reads_unless_allowed(reader: Agent, tool: str, arguments: dict[str, Any]) -> None:
    assert reader.kinds(tool, **arguments) == {"ReadOnly"}


def test_limits_of_rows(reader: Agent) -> None:
    arguments = {"output": "plan/output", "table": "buses"}
    answer = reader.call("cobre_query_results", **arguments, limit=2, offset=1)
    assert (len(answer["rows"]), answer["truncated"]) == (2, True)
    assert reader.tools["cobre_query_results"].input_schema["properties"]["limit"]["default"] == 1_000
    for limit in (0, -1, 10_001, 2**70, "many", 1.5):
        assert reader.kinds("cobre_query_results", **arguments, limit=limit) == {"InvalidArgument"}


def test_names_that_are_no_text_are_shown(reader: Agent) -> None:
    assert "\\udcff\\udcfe" in reader.call("cobre_list")["cases"]
    assert reader.kinds("cobre_inspect_case", case="\\udcff\\udcfe") == {"FileNotFound"}


def test_errors_name_directories_as_the_client_does(reader: Agent) -> None:
    (problem,) = reader.refused("cobre_query_results", output="other")
    assert problem["kind"] == "OutputNotFound"
    assert problem["message"] == "there are no results in other"
    # A case directory stands for the output in it.
    assert reader.call("cobre_query_results", output="plan")["output"] == "plan"


def test_names_of_the_older_texts_are_understood(reader: Agent) -> None:
    for name in ("cobre/list", "cobre/inspect-case", "cobre/query-convergence"):
        assert not reader.raw(
            name, {"case": "plan"} if "case" in name else {"output": "plan/output"} if "query" in name else {}
        ).is_error
    with pytest.raises(MCPError, match="there is no tool 'cobre_none'"):
        reader.raw("cobre_none", {})


URIS = [
    "cobre://case/plan/../../secret/config",
    "cobre://case/..%2Fsecret/config",
    "cobre://case/%2Fetc/config",
    "cobre://case/out/config",
    "cobre://case/plan%00/config",
    "cobre://output/plan/output/results/none",
    "cobre://schemas/../../x",
    "cobre://jobs/none",
    "cobre://none",
    "file:///etc/passwd",
    "",
]


@pytest.mark.parametrize("uri", URIS)
def test_resources_that_are_none(reader: Agent, place: Path, uri: str) -> None:
    with pytest.raises(MCPError) as caught:
        reader.resource(uri)
    assert SECRET not in str(caught.value)
    assert str(place.parent) not in str(caught.value)


def test_resources(reader: Agent) -> None:
    assert reader.resource("cobre://case/plan/config")["training"]["tree_seed"] == 42
    assert len(reader.resource("cobre://case/plan/entities/thermals")["thermals"]) == 3
    assert reader.resource("cobre://case/plan/scenarios/inflow_seasonal_stats")["rows_total"] == 8
    assert reader.resource("cobre://output/plan/output/convergence")["iterations"] == 10
    assert reader.resource("cobre://output/plan/output/results/buses")["table"] == "buses"
    assert reader.resource("cobre://output/plan/output/policy/summary")["iterations"] == 10
    assert "config.json" in reader.resource("cobre://schemas")
    assert reader.resource("cobre://schemas/system/hydros.json")["title"] == "system/hydros.json"
    listed = reader.do(reader.client.list_resource_templates).resource_templates
    assert {part.uri_template for part in listed} >= {
        "cobre://case/{+dir}/config",
        "cobre://case/{+dir}/entities/{type}",
        "cobre://case/{+dir}/scenarios/{id}",
        "cobre://output/{+dir}/convergence",
        "cobre://output/{+dir}/results/{type}",
        "cobre://output/{+dir}/policy/summary",
    }
    for resource in reader.do(reader.client.list_resources).resources:
        reader.resource(str(resource.uri))


def test_prompts(reader: Agent) -> None:
    prompts = {prompt.name: prompt for prompt in reader.do(reader.client.list_prompts).prompts}
    assert list(prompts) == ["setup-study", "diagnose-convergence", "compare-runs", "explain-results"]
    for name, prompt in prompts.items():
        given = {part.name: "{x} " + part.name for part in prompt.arguments or [] if part.required}
        text = reader.do(reader.client.get_prompt, name, given).messages[0].content.text
        assert all(value in text for value in given.values())
        named = {word.strip(".,:;()") for word in text.split() if word.startswith("cobre_")}
        assert named <= set(reader.tools)
        for wrong in ({}, {**given, "none": "x"}):
            with pytest.raises(MCPError):
                reader.do(reader.client.get_prompt, name, wrong)


PLAUSIBLE = st.sampled_from(
    [
        *("plan", "plan/output", "plan/output/policy", ".", "out", "../secret", "train-1", "config.json"),
        *("buses", "hydros", "costs", "scenarios/inflow_seasonal_stats.parquet", "system/thermals.json"),
        *("Serra", "Valley", "spot_price", "spot_price > 1", "scenario_id", "replace", "/training", "-cost"),
        *(0, 1, 3, -1, True, None, 2**31, 2**70, 1e300, 0.5),
    ]
)
JUNK = st.recursive(
    PLAUSIBLE
    | st.text(st.characters(codec="utf-8"), max_size=20)
    | st.sampled_from(["\0", "x" * 5_000, "[" * 900]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def draw_arguments(data: st.DataObject, schema: dict[str, Any]) -> dict[str, Any]:
    names = list(schema.get("properties", {}))
    required = schema.get("required", [])
    chosen = set(required) | set(data.draw(st.lists(st.sampled_from([*names, "none"]), max_size=4)))
    change = st.fixed_dictionaries(
        {"file": PLAUSIBLE | JUNK},
        optional=dict.fromkeys(("op", "pointer", "value", "where", "set", "scale", "rows"), PLAUSIBLE | JUNK),
    )
    found = {name: data.draw(PLAUSIBLE | JUNK, name) for name in sorted(chosen)}
    if "changes" in chosen:
        found["changes"] = data.draw(st.lists(change, max_size=3) | JUNK)
    if data.draw(st.integers(0, 30)) == 0:
        found[data.draw(st.sampled_from([*names, "none"]))] = deep(120)
    found.pop("wait_s", None)
    return found


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_any_arguments_get_an_answer_or_an_error(reader: Agent, place: Path, data: st.DataObject) -> None:
    """On a server that only reads, so that drawn arguments start no trainings."""
    name = data.draw(st.sampled_from(sorted(reader.tools)))
    arguments = draw_arguments(data, reader.tools[name].input_schema)
    result = reader.raw(name, arguments)
    text = text_of(result)
    if result.is_error:
        problems = json.loads(result.content[1].text)["problems"]
        assert {problem["kind"] for problem in problems}.isdisjoint(
            {"InternalError", "WorkerLost", "Timeout"}
        ), (
            name,
            arguments,
            text,
        )
    assert "Traceback" not in text
    assert SECRET not in text
    assert str(place.parent) not in text


def test_ten_clients_at_once(place: Path) -> None:
    answers: list[Any] = []

    async def one(address: str, number: int) -> None:
        async with Client(address, mode="legacy" if number % 2 else "auto") as client:
            for _ in range(2):
                for tool, arguments in (
                    ("cobre_list", {}),
                    (
                        "cobre_query_results",
                        {"output": "plan/output", "table": "buses", "scenario": [number % 8]},
                    ),
                    ("cobre_inspect_case", {"case": "plan"}),
                    ("cobre_inspect_case", {"case": "../secret"}),
                    ("cobre_jobs", {}),
                ):
                    result = await client.call_tool(tool, arguments)
                    answers.append((number, tool, result.is_error))
                    if tool == "cobre_query_results":
                        rows = result.structured_content["rows"]
                        assert {row["scenario_id"] for row in rows} == {number % 8}

    async def crowd(address: str) -> None:
        async with anyio.create_task_group() as group:
            for number in range(10):
                group.start_soon(one, address, number)

    with http_server(place) as address:
        anyio.run(crowd, address)
    assert len(answers) == 10 * 2 * 5
    assert sum(failed for _, _, failed in answers) == 10 * 2


def request(number: int, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def test_standard_output_carries_the_protocol_and_nothing_else(place: Path) -> None:
    """Also where the client talks nonsense; the server ends when the client goes away."""
    process = subprocess.Popen(
        command(place),
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=place,
    )
    lines = [
        *HELLO,
        request(2, name="cobre_validate", arguments={"case": "plan"}),
        request(3, name=5),
        {"jsonrpc": "2.0", "id": 4, "method": "none"},
        request(5, name="cobre_list", arguments="text"),
    ]
    wanted = [json.dumps(line).encode() for line in lines]
    wanted[2:2] = [b"", b"nonsense", b"\xff\xfe", b'{"jsonrpc"', b"[" * 5_000, b'"\\ud800"', b"{}"]
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"\n".join(wanted) + b"\n")
    process.stdin.flush()
    answered: dict[int, Any] = {}
    while not {1, 2, 3, 4, 5} <= set(answered):
        document = json.loads(process.stdout.readline())
        assert document["jsonrpc"] == "2.0"
        if document.get("id") is not None:
            answered[document["id"]] = document
    rest, errors = process.communicate(timeout=30)
    assert rest == b""
    assert process.returncode == 0, errors
    assert answered[2]["result"]["structuredContent"]["valid"]
    assert all("error" in answered[number] for number in (3, 4, 5))


def test_modules_beside_a_case_are_not_imported(place: Path, tmp_path: Path) -> None:
    """Neither by the server, which is started there as the command is, nor by processes that it starts."""
    for name in ("numpy", "cobre", "anyio", "pyarrow", "sitecustomize", "json"):
        (place / f"{name}.py").write_text("open('stolen', 'w'); raise SystemExit(7)")
    (tmp_path / "script.py").write_text("import sys; from cobre.cli import main; sys.exit(main())")
    name, _, _, *options = command(place)
    server = subprocess.Popen(
        [name, str(tmp_path / "script.py"), *options],
        env=environment(),
        cwd=place,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    lines = [*HELLO, request(2, name="cobre_estimate", arguments={"case": "plan"})]
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    server.stdin.flush()
    answers = [json.loads(server.stdout.readline()) for _ in range(2)]
    server.communicate(timeout=30)
    assert answers[1]["result"]["isError"] is False, answers
    assert not (place / "stolen").exists()
