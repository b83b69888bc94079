"""Makes the dialogue in ``docs/how-to/agents.md``: ``python docs/make_dialogue.py``, with the extra ``mcp``.

The questions are written here; the calls go to a real server over standard input and output, and what stands
below each is what it answered: its sentence, and what else a step picks from the answer.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters

PAGE = Path(__file__).resolve().parent / "how-to" / "agents.md"
BEGIN, END = "<!-- dialogue: made by docs/make_dialogue.py -->\n", "<!-- end of the dialogue -->\n"
WIDTH = 150


@dataclass(frozen=True)
class Step:
    """A call, and what led to it.

    Attributes
    ----------
    said
        By the person before it; empty where the agent goes on by itself.
    shown
        What the page shows of the answer besides its sentence.
    """

    tool: str
    arguments: dict[str, Any]
    said: str = ""
    shown: Callable[[dict[str, Any]], str] = field(default=lambda answer: "")


def _lines(values: list[Any]) -> str:
    return "\n".join(str(value) for value in values)


def _rows(answer: dict[str, Any]) -> str:
    """Return rows with six digits: the last ones may be others on another processor."""
    return _lines(
        [
            ", ".join(
                f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
                for name, value in row.items()
            )
            for row in answer["rows"]
        ]
    )


def _issues(answer: dict[str, Any]) -> str:
    return _lines([f"{issue['message']} -> {issue['suggestion']}" for issue in answer["errors"]])


def _differences(answer: dict[str, Any]) -> str:
    wanted = [row for row in answer["quantities"] if row["topic"] in ("cost", "mean marginal cost")]
    return _lines(
        [
            f"{row['topic']}, {row['item']}: {row['a']:.6g} -> {row['b']:.6g} {row['unit']} "
            f"({row['percent']:+.1f} %)"
            for row in wanted
        ]
    )


DEARER = {"file": "system/thermals.json", "pointer": "/thermals/name=Gas/cost_per_mwh", "value": 130.0}
DRIER = {"file": "scenarios/inflow_seasonal_stats.parquet", "where": {}, "scale": {"mean_m3s": 0.9}}

STEPS = (
    Step(
        "cobre_create_case",
        {"directory": "base", "template": "toy"},
        said="Set up a small study with one lake, and a variant of it with gas at 130 $/MWh and 10 % "
        "less inflow.",
    ),
    Step("cobre_create_case", {"directory": "dry", "template": "toy"}),
    Step("cobre_edit_case", {"case": "dry", "changes": [DEARER, DRIER]}, shown=lambda answer: answer["diff"]),
    Step("cobre_edit_case", {"case": "dry", "changes": [DEARER, DRIER], "apply": True}, said="Yes, do that."),
    Step(
        "cobre_edit_case",
        {
            "case": "dry",
            "changes": [{**DEARER, "pointer": "/thermals/name=Coal/bus_id", "value": 7}],
            "apply": True,
        },
        said="And put the coal plant at bus 7.",
        shown=_issues,
    ),
    Step("cobre_estimate", {"case": "dry"}, said="There is none, leave it. How long will it take?"),
    Step(
        "cobre_run", {"case": "base", "scenarios": 200, "wait_s": 300}, said="Run both, 200 scenarios each."
    ),
    Step("cobre_run", {"case": "dry", "scenarios": 200, "wait_s": 300}),
    Step("cobre_query_convergence", {"output": "dry/output", "limit": 1}, said="Has it converged?"),
    Step(
        "cobre_compare_results",
        {"a": "base/output", "b": "dry/output"},
        said="What does the change cost?",
        shown=_differences,
    ),
    Step(
        "cobre_query_results",
        {
            "output": "dry/output",
            "table": "buses",
            "columns": ["scenario_id", "stage_id", "spot_price"],
            "where": "spot_price > 129",
            "limit": 3,
        },
        said="When is power dear?",
        shown=_rows,
    ),
    Step(
        "cobre_explain_price",
        {"output": "dry/output", "bus": "Town", "stage": 0, "scenario": 0},
        said="Why is it what it is in the first month?",
        shown=lambda answer: _lines(answer["statements"]),
    ),
    Step(
        "cobre_explain_water_value",
        {"output": "dry/output", "hydro": "Lake", "stage": 0, "scenario": 0},
        shown=lambda answer: _lines(answer["statements"]),
    ),
)


def record() -> str:
    """Hold the dialogue in a directory of its own, and return it as Markdown."""
    with tempfile.TemporaryDirectory() as root:
        options = ["-m", "cobre", "mcp", "--root", root, "--allow-write", "--max-threads", "1"]
        server = StdioServerParameters(command=sys.executable, args=options, env=_environment())
        return "\n".join(anyio.run(_hold, Client(server)))


def _environment() -> dict[str, str]:
    kept = ("COBRE_CACHE_DIR", "COBRE_TEST_SESSION", "XDG_CACHE_HOME")
    return {name: os.environ[name] for name in kept if name in os.environ}


async def _hold(connection: AbstractAsyncContextManager[Client]) -> list[str]:
    parts: list[str] = []
    async with connection as client:
        for step in STEPS:
            parts += await _answered(client, step)
    return parts


async def _answered(client: Client, step: Step) -> list[str]:
    result = await client.call_tool(step.tool, step.arguments)
    if result.is_error:
        raise RuntimeError(f"{step.tool}: {result.content[0]}")
    answer: Any = result.structured_content
    headline: Any = result.content[0]
    said = [f"**{step.said}**", ""] if step.said else []
    shown = [headline.text, *step.shown(answer).splitlines()]
    call = f"{step.tool} {json.dumps(step.arguments)}"
    wrapped = [line for text in shown for line in _wrapped(text)]
    return [*said, "```text", *_wrapped(f"> {call}"), *wrapped, "```", ""]


def _wrapped(text: str) -> Iterator[str]:
    """Yield a line in pieces that fit the page."""
    while len(text) > WIDTH:
        cut = text.rfind(" ", 20, WIDTH)
        cut = WIDTH if cut < 0 else cut
        yield text[:cut]
        text = f"    {text[cut:].strip()}"
    yield text.rstrip()


def recorded() -> str:
    """Return the dialogue that the page holds."""
    text = PAGE.read_text(encoding="utf-8")
    return text.partition(BEGIN)[2].partition(END)[0].removeprefix("\n")


def main() -> None:
    """Record the dialogue and put it into the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, found, rest = text.partition(BEGIN)
    if not found:
        raise SystemExit(f"{PAGE} has no place for the dialogue")
    PAGE.write_text(f"{before}{BEGIN}\n{record()}{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
