"""Who may talk to a server that listens."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from mcp_helpers import HELLO, TOKEN, command, copy_case, environment, http_agent, http_server

from cobre.errors import CobreError
from cobre.mcp.transports import Address

JSON = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


def status(address: str, **headers: str) -> int:
    return httpx2.post(
        address, content=json.dumps(HELLO[0]), headers={**JSON, **headers}, timeout=60.0
    ).status_code


@pytest.fixture(scope="module")
def listening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Addresses of a server without a token, and of one with it."""
    root = tmp_path_factory.mktemp("http")
    copy_case(root)
    with (
        http_server(root) as free,
        http_server(root, "--allow-origin", "https://a.example", COBRE_MCP_TOKEN=TOKEN) as guarded,
    ):
        yield free, guarded


def test_only_this_machine_is_listened_to_unless_asked(listening: tuple[str, str]) -> None:
    assert all(address.startswith("http://127.0.0.1:") for address in listening)


def test_a_token_is_needed_where_there_is_one(listening: tuple[str, str]) -> None:
    _, address = listening
    near = (TOKEN, f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", "")
    for header in ({}, *({"Authorization": text} for text in near)):
        assert status(address, **header) == 401
    assert status(address, Authorization=f"Bearer {TOKEN}") == 200
    assert httpx2.get(address.replace("/mcp", "/")).status_code == 401
    with http_agent(address, TOKEN) as agent:
        assert agent.call("cobre_list")["cases"] == ["plan"]


def test_pages_of_others_are_refused(listening: tuple[str, str]) -> None:
    free, guarded = listening
    own = free.removesuffix("/mcp")
    port = own.rpartition(":")[2]
    assert status(free, Origin=own) == 200
    for origin in (
        "https://a.example",
        "null",
        "http://127.0.0.1:1",
        f"http://127.0.0.1.evil:{port}",
        "file://",
    ):
        assert status(free, Origin=origin) == 403
    assert status(guarded, Origin="https://a.example", Authorization=f"Bearer {TOKEN}") == 200


def test_names_of_others_are_refused(listening: tuple[str, str]) -> None:
    """What a page gets whose name was made to lead here (DNS rebinding)."""
    free, _ = listening
    port = free.removesuffix("/mcp").rpartition(":")[2]
    assert status(free, Host=f"localhost:{port}") == 200
    for host in ("evil.example", f"evil.example:{port}", f"localhost.evil:{port}", "127.0.0.1:1"):
        assert status(free, Host=host) == 421


def test_what_is_no_request_is_refused(listening: tuple[str, str]) -> None:
    free, _ = listening
    assert httpx2.post(free, content="{}", headers={**JSON, "Content-Type": "text/plain"}).status_code == 400
    assert httpx2.post(free, content="nonsense", headers=JSON).status_code == 400
    assert httpx2.post(free, content=b" " * (5 << 20), headers=JSON).status_code == 413
    assert httpx2.get(free.replace("/mcp", "/none")).status_code == 404
    assert status(free) == 200


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        (Address("0.0.0.0"), "TokenNeeded"),
        (Address("192.0.2.7"), "TokenNeeded"),
        (Address("server.example"), "TokenNeeded"),
        (Address("127.0.0.1", token="short"), "InvalidToken"),
        (Address("0.0.0.0", token=TOKEN), "HostNameNeeded"),
    ],
)
def test_addresses_that_anybody_could_use_are_refused(address: Address, kind: str) -> None:
    with pytest.raises(CobreError) as caught:
        address.check()
    assert caught.value.kind == kind


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_addresses_of_this_machine_need_no_token(host: str) -> None:
    Address(host).check()
    Address("0.0.0.0", token=TOKEN, names=("server.example",)).check()


def ended(*options: str, root: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(root, "--http", *options),
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_what_cannot_be_served_ends_with_a_clear_error(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o644)
    found = ended("--token-file", str(token), root=tmp_path)
    assert (found.returncode, found.stdout) == (2, "")
    assert "use 0600" in found.stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        found = ended("--port", str(taken.getsockname()[1]), root=tmp_path)
    assert found.returncode == 2
    assert "cannot be listened on" in found.stderr
    found = ended("--host", "0.0.0.0", root=tmp_path, COBRE_MCP_TOKEN="")
    assert "need a token" in found.stderr
    assert "Traceback" not in found.stderr
