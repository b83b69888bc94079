"""The official client drives a whole study, over both transports and both generations of the protocol."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from mcp_helpers import Agent, copy_case, http_agent, http_server, stdio_agent

Connect = Callable[[Path], AbstractContextManager[Agent]]


@contextmanager
def by_stdio(root: Path) -> Iterator[Agent]:
    with stdio_agent(root, "--allow-write", "--max-threads", "1") as agent:
        yield agent


@contextmanager
def by_http(root: Path) -> Iterator[Agent]:
    with (
        http_server(root, "--allow-write", "--max-threads", "1") as address,
        http_agent(address, mode="legacy") as agent,
    ):
        assert agent.client.protocol_version < "2026"
        yield agent


@pytest.mark.usefixtures("finished")  # kernels are compiled then
@pytest.mark.parametrize("connect", [by_stdio, by_http])
def test_a_whole_study(tmp_path: Path, connect: Connect) -> None:
    copy_case(tmp_path)
    with connect(tmp_path) as agent:
        inspect_and_edit(agent, tmp_path)
        job = agent.call("cobre_train", case="plan", iterations=100_000)
        assert job["status"] in ("queued", "running")
        while not agent.progress:
            agent.call("cobre_job_status", job=job["job"], wait_s=1.0)
        assert agent.progress[0][1] == 100_000
    # The server has ended, the job has not; another server finds it.
    with connect(tmp_path) as agent:
        state = agent.call("cobre_job_status", job=job["job"], wait_s=0.5)
        assert state["status"] == "running"
        assert state["progress"] >= 1
        state = agent.call("cobre_cancel_job", job=job["job"], wait_s=600.0)
        assert (state["status"], state["resumable"]) == ("cancelled", True)
        done = state["result"]["iterations"]
        resumed = agent.call("cobre_resume", job=job["job"], iterations=done + 2, wait_s=600.0)
        assert (resumed["status"], resumed["resumes"]) == ("complete", job["job"])
        assert resumed["result"]["iterations"] == done + 2
        simulate_and_read(agent)
        if connect is by_stdio:
            compare_with_another(agent, done + 2)


def inspect_and_edit(agent: Agent, root: Path) -> None:
    assert agent.call("cobre_list") == {"cases": ["plan"], "outputs": [], "truncated": False}
    case = agent.call("cobre_inspect_case", case="plan")
    assert case["summary"]["entities"]["thermals"] == 3
    assert case["names"]["thermals"] == {"0": "Gas", "1": "Fuel oil", "2": "Diesel"}
    changes = [
        {"file": "config.json", "pointer": "/training/selection/forward_passes", "value": 120},
        {"file": "system/thermals.json", "pointer": "/thermals/name=Gas/cost_per_mwh", "value": -1.0},
    ]
    before = (root / "plan" / "config.json").read_bytes()
    shown = agent.call("cobre_edit_case", case="plan", changes=changes)
    assert not shown["valid"]
    assert not shown["applied"]
    assert shown["errors"][0]["context"]["file"] == "system/thermals.json"
    refused = agent.call("cobre_edit_case", case="plan", changes=changes, apply=True)
    assert not refused["applied"]
    assert (root / "plan" / "config.json").read_bytes() == before
    expected = {"apply": True, "expected_sha256": case["case_sha256"]}
    written = agent.call("cobre_edit_case", case="plan", changes=changes[:1], **expected)
    assert written["applied"]
    assert written["case_sha256"] != case["case_sha256"]
    assert '+      "forward_passes": 120' in written["diff"]
    assert (
        json.loads((root / "plan" / "config.json").read_text())["training"]["selection"]["forward_passes"]
        == 120
    )
    assert agent.kinds("cobre_edit_case", case="plan", changes=changes[:1], **expected) == {"CaseChanged"}
    wrong = agent.refused(
        "cobre_edit_case", case="plan", changes=[{**changes[0], "pointer": "/training/none"}]
    )
    assert wrong[0]["context"] == {"file": "config.json", "pointer": "/training/none"}
    assert agent.call("cobre_validate", case="plan")["valid"]
    estimate = agent.call("cobre_estimate", case="plan")
    assert estimate["training_lps"] == estimate["iterations"] * (120 * (4 + 3 * 4) + 4)
    assert estimate["max_threads"] == 1


def simulate_and_read(agent: Agent) -> None:
    job = agent.call("cobre_simulate", case="plan", scenarios=10, wait_s=600.0)
    assert (job["status"], job["progress"]) == ("complete", 10)
    rows = agent.call("cobre_query_results", output="plan/output", table="buses", scenario=[3], stage=[0])
    assert rows["rows_total"] == len(rows["rows"]) > 0
    assert rows["units"]["spot_price"] == "$/MWh"
    assert (
        agent.call("cobre_query_convergence", output="plan/output")["verdict"]["lower_bound_kind"] == "bound"
    )
    assert agent.call("cobre_list_scenarios", output="plan/output")["scenarios_total"] == 10
    price = agent.call("cobre_explain_price", output="plan/output", bus="Valley", stage=0)
    assert any(unit["sets_price"] for unit in price["units"]) or price["deficit_mw"] > 0.0
    water = agent.call("cobre_explain_water_value", output="plan/output", hydro="Serra", stage=0)
    assert water["matches_simulation"] is True
    assert agent.call("cobre_compare_results", a="plan/output", b="plan/output")["equal"]
    jobs = agent.call("cobre_jobs")
    assert [job["job"] for job in jobs["jobs"]] == ["simulate-3", "train-2", "train-1"]
    assert agent.resource("cobre://jobs/train-1")["status"] == "cancelled"
    kept = {"case": ".cobre-jobs/train-1/case", "changes": [{"file": "stages.json", "op": "remove"}]}
    assert not agent.call("cobre_edit_case", **kept)["valid"]
    assert agent.kinds("cobre_edit_case", **kept, apply=True, force=True) == {"PathOutsideRoot"}


def compare_with_another(agent: Agent, iterations: int) -> None:
    """A training that was never stopped makes the same policy; other scenarios have other costs."""
    job = agent.call("cobre_train", case="plan", iterations=iterations, output="at-once", wait_s=600.0)
    assert job["status"] == "complete"
    assert agent.call("cobre_compare_policies", a="plan/output", b="at-once")["equal"]
    job = agent.call("cobre_simulate", case="plan", scenarios=10, output="at-once", seed=7, wait_s=600.0)
    assert job["status"] == "complete"
    compared = agent.call("cobre_compare_results", a="plan/output", b="at-once")
    assert not compared["equal"]
    assert "expected" in {row["item"] for row in compared["quantities"] if row["topic"] == "cost"}
