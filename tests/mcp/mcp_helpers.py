"""A real server in a process of its own, and the official client, for tests without ``async``."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from builders.paths import EXAMPLES
from jsonschema import Draft202012Validator
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

TOKEN = "a-token-of-more-than-16-bytes"
HELLO = (
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
)
"""How a client of the older protocol begins."""
_KEPT = ("COBRE_CACHE_DIR", "COBRE_TEST_SESSION", "HOME", "PATH", "XDG_CACHE_HOME", "LANG")


def environment(**further: str) -> dict[str, str]:
    """An environment that states nothing about cobre but where kernels are."""
    return {**{name: os.environ[name] for name in _KEPT if name in os.environ}, **further}


def command(root: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "cobre", "mcp", "--root", str(root), *options]


def copy_case(root: Path, name: str = "random-inflow", to: str = "plan") -> Path:
    """Copy an example below a root."""
    return Path(shutil.copytree(EXAMPLES / name, root / to, ignore=shutil.ignore_patterns("output")))


class Agent:
    """Calls tools, and holds every answer against the schema that the server gave for it.

    Attributes
    ----------
    progress
        What was reported during the last call: (progress, total, message).
    """

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal, self.client = portal, client
        self.tools = {tool.name: tool for tool in self.do(client.list_tools).tools}
        self.progress: list[tuple[float, float | None, str | None]] = []

    def do(self, function: Any, *arguments: Any, **named: Any) -> Any:
        """Call a coroutine function of the client."""
        return self._portal.call(partial(function, *arguments, **named))

    def raw(self, name: str, arguments: dict[str, Any]) -> Any:
        """Return the result of a call, whatever it is."""
        self.progress = []

        async def report(progress: float, total: float | None, message: str | None) -> None:
            self.progress.append((progress, total, message))

        return self.do(self.client.call_tool, name, arguments, progress_callback=report)

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Return the answer of a call that succeeds."""
        result = self.raw(name, arguments)
        assert not result.is_error, result.content[0].text
        answer = result.structured_content
        Draft202012Validator(self.tools[name].output_schema).validate(answer)
        assert json.loads(result.content[1].text) == answer
        assert 0 < len(result.content[0].text) < 2_000
        done = [progress for progress, _, _ in self.progress]
        assert done == sorted(set(done))
        return answer

    def refused(self, name: str, **arguments: Any) -> list[dict[str, Any]]:
        """Return the problems of a call that fails."""
        result = self.raw(name, arguments)
        assert result.is_error, result.structured_content
        assert result.structured_content is None
        problems = json.loads(result.content[1].text)["problems"]
        assert problems
        assert "Traceback" not in result.content[0].text
        return problems

    def kinds(self, name: str, **arguments: Any) -> set[str]:
        """Return the kinds of problems of a call that fails."""
        return {problem["kind"] for problem in self.refused(name, **arguments)}

    def resource(self, uri: str) -> Any:
        """Return the JSON content of a resource."""
        return json.loads(self.do(self.client.read_resource, uri).contents[0].text)


@contextmanager
def stdio_agent(root: Path, *options: str, mode: str = "auto", **variables: str) -> Iterator[Agent]:
    """Start a server that an agent talks to by its standard input and output; it ends with the block."""
    name, *arguments = command(root, *options)
    server = StdioServerParameters(command=name, args=arguments, env=environment(**variables))
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(server, mode=mode)) as client,
    ):
        yield Agent(portal, client)


@contextmanager
def http_server(root: Path, *options: str, **variables: str) -> Iterator[str]:
    """Start a server that listens, and give its address; it is asked to end with the block."""
    process = subprocess.Popen(
        command(root, "--http", "--port", "0", *options),
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found is not None, line + process.stderr.read()
        yield found.group()
    finally:
        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=30)
    assert out == ""
    assert "Traceback" not in errors, errors


@contextmanager
def http_agent(address: str, token: str | None = None, mode: str = "auto") -> Iterator[Agent]:
    """Connect an agent to a server that listens."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with start_blocking_portal() as portal:
        connection = portal.call(partial(_connection, headers))
        transport = streamable_http_client(address, http_client=connection)
        with portal.wrap_async_context_manager(Client(transport, mode=mode)) as client:
            yield Agent(portal, client)


async def _connection(headers: dict[str, str]) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(30.0, read=300.0))
