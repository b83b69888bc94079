"""What the server promises of itself: light, documented, its tools within their time."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import pytest
from mcp_helpers import (
    HELLO,
    TOKEN,
    Agent,
    command,
    copy_case,
    environment,
    http_agent,
    http_server,
    stdio_agent,
)

from cobre.mcp.calls import Calls
from cobre.mcp.catalogue import TOOLS, Outcome, carry_out
from cobre.mcp.contract import Arguments, Settings
from cobre.mcp.paths import Root
from cobre.mcp.texts import Hider
from cobre.mcp.tools.case import Listed

ROOT = Path(__file__).resolve().parents[2]


def children(pid: int) -> list[int]:
    return [int(part) for part in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_the_server_loads_neither_compiler_nor_tables() -> None:
    script = "import sys, cobre.mcp.server, cobre.mcp.transports; print(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", script], env=environment(), capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in found.stdout.split()}
    assert "mcp" in loaded
    assert loaded.isdisjoint({"numba", "llvmlite", "pyarrow", "numpy"})


def test_the_process_of_a_job_does_not_load_the_protocol() -> None:
    script = "import sys, cobre.mcp.jobs.runner; print(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", script], env=environment(), capture_output=True, text=True, check=True
    )
    assert {"mcp", "numba", "pyarrow", "starlette"}.isdisjoint(found.stdout.split())


def test_every_tool_is_documented_and_has_schemas(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "agents.md").read_text(encoding="utf-8")
    table = page.partition("## What it offers")[2].partition("## Jobs")[0]
    assert set(re.findall(r"`(cobre_\w+)`", table)) == set(TOOLS)
    with stdio_agent(tmp_path, mode="legacy") as agent:
        assert list(agent.tools) == list(TOOLS)
        for tool in agent.tools.values():
            assert tool.output_schema["type"] == tool.input_schema["type"] == "object"
            assert tool.input_schema["additionalProperties"] is False
            assert len(tool.description) > 20
            assert tool.annotations.read_only_hint is not (
                TOOLS[tool.name].writes or TOOLS[tool.name].destructive
            )
        assert "cobre_list" in (agent.client.instructions or "")


def never_ends(name: str, settings: Settings, arguments: Arguments) -> Outcome:
    while True:
        time.sleep(1.0)


def crashes(name: str, settings: Settings, arguments: Arguments) -> Outcome:
    os.abort()


@pytest.mark.parametrize(
    ("work", "timeout_s", "kind"), [(never_ends, 1.0, "Timeout"), (crashes, 120.0, "WorkerLost")]
)
def test_a_call_that_takes_too_long_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: Any, timeout_s: float, kind: str
) -> None:
    """And one that crashes harms no other."""
    calls = Calls(Settings(Root.at(tmp_path)))
    tool = replace(TOOLS["cobre_list"], timeout_s=timeout_s)

    async def report(progress: float, total: float | None, message: str) -> None:
        raise AssertionError

    async def call() -> tuple[Outcome, Outcome]:
        with monkeypatch.context() as patch:
            patch.setattr("cobre.mcp.calls.carry_out_apart", work)
            failed = await calls.call(tool, {}, report)
        return failed, await calls.call(TOOLS["cobre_list"], {}, report)

    failed, after = anyio.run(call)
    assert failed.problems[0]["kind"] == kind
    assert after.content == {"cases": [], "outputs": [], "truncated": False}


def test_a_fault_of_ours_is_reported_without_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(settings: Settings, arguments: Arguments) -> Listed:
        raise RuntimeError(f"in {settings.root.path}/secret")

    tool = replace(TOOLS["cobre_list"], work=fails)
    monkeypatch.setitem(TOOLS, "cobre_list", tool)
    found = carry_out("cobre_list", Settings(Root.at(tmp_path)), tool.arguments())
    assert found.problems[0]["kind"] == "InternalError"
    assert "secret" not in str((found.headline, found.problems))
    assert "RuntimeError: in" in found.log


def test_processes_do_not_get_the_token(tmp_path: Path) -> None:
    copy_case(tmp_path)
    with http_server(tmp_path, COBRE_MCP_TOKEN=TOKEN) as address, http_agent(address, TOKEN) as agent:
        agent.call("cobre_validate", case="plan")
        started = [pid for pid in children(os.getpid()) if "--http" in command_line(pid)]
        workers = [child for pid in started for child in children(pid)]
        assert workers
        assert all(TOKEN.encode() not in Path(f"/proc/{pid}/environ").read_bytes() for pid in workers)


def command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")


def test_paths_are_taken_out_of_texts() -> None:
    hider = Hider(Path("/srv/plans"))
    for text, hidden in (
        ("/srv/plans/a/b is wrong", "a/b is wrong"),
        ("in '/srv/plans/a'", "in 'a'"),
        ("/etc/plans2/a", "<path>"),
        ("/etc", "<path>"),
        ("such as /training/forward_passes, /etcetera/x", "such as /training/forward_passes, /etcetera/x"),
        ("see /etc/passwd: denied", "see <path>: denied"),
        ("/proc/self/fd/12/training is missing", "training is missing"),
        ("3 MW/(m3/s) and 5 $/MWh, 1/2", "3 MW/(m3/s) and 5 $/MWh, 1/2"),
    ):
        assert hider.text(text) == hidden


@pytest.fixture
def dialogue() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_dialogue", ROOT / "docs" / "make_dialogue.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


@pytest.mark.usefixtures("finished")  # kernels are compiled then
def test_the_recorded_dialogue_is_what_happens(dialogue: ModuleType) -> None:
    assert dialogue.record() == dialogue.recorded()


def test_what_is_wrong_with_the_root_is_reported(tmp_path: Path) -> None:
    for root in (tmp_path / "none", Path("/")):
        found = subprocess.run(
            [sys.executable, "-m", "cobre", "mcp", "--root", str(root)],
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert found.returncode == 2
        assert found.stdout == ""
        assert "[InvalidRoot]" in found.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_a_server_ends_when_it_is_asked_to(tmp_path: Path, number: int, code: int) -> None:
    """Although its client is still there."""
    process = subprocess.Popen(
        command(tmp_path), env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(HELLO[0]).encode() + b"\n")
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["id"] == 1
    process.send_signal(number)
    assert process.wait(timeout=30) == code
    process.communicate()


def test_a_job_is_stopped_at_its_limit_of_time(tmp_path: Path) -> None:
    copy_case(tmp_path)
    with stdio_agent(tmp_path, "--allow-write", "--max-minutes", "0.05", "--max-threads", "1") as agent:
        stopped_with_results(agent)


def stopped_with_results(agent: Agent) -> None:
    """3 seconds may end before the first iteration: the job is stopped either way."""
    job = agent.call("cobre_train", case="plan", iterations=10_000_000, wait_s=600.0)
    assert job["status"] == "stopped"
    assert job["progress"] < 10_000_000
