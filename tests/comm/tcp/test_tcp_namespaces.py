"""Jobs whose ranks are in network namespaces of their own, joined by a link that can be cut: as two hosts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from cobre.sddp.study import train

CASE = Path(__file__).parents[3] / "examples" / "two-plant-cascade"
PORT = 29500
ADDRESSES = ("10.213.7.1", "10.213.7.2")
FEW_ITERATIONS = 3
FOREVER = 1_000_000


class TwoHosts:
    """Two network namespaces, joined by a pair of virtual interfaces."""

    def __init__(self) -> None:
        self.names = [f"cobre-{os.getpid()}-{place}" for place in range(2)]
        self._interfaces = [f"cb{os.getpid()}{place}" for place in "ab"]

    def set_up(self) -> None:
        for name in self.names:
            _ip("netns", "add", name)
        first, second = self._interfaces
        _ip("link", "add", first, "type", "veth", "peer", "name", second)
        for name, interface, address in zip(self.names, self._interfaces, ADDRESSES, strict=True):
            _ip("link", "set", interface, "netns", name)
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", interface)
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "link", "set", interface, "up")

    def cut(self) -> None:
        """Cut the link: what is sent from now on gets lost, and nobody is told."""
        _ip("-n", self.names[0], "link", "set", self._interfaces[0], "down")

    def take_down(self) -> None:
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, timeout=10)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=10)


@pytest.fixture
def hosts() -> Iterator[TwoHosts]:
    if shutil.which("ip") is None:
        pytest.skip("no command ip to make network namespaces with")
    made = TwoHosts()
    try:
        try:
            made.set_up()
        except subprocess.CalledProcessError as refused:
            pytest.skip(f"no network namespaces here: {refused.stderr.decode().strip()}")
        yield made
    finally:
        made.take_down()


def start_rank(
    hosts: TwoHosts, rank: int, host: int, tmp_path: Path, size: int, command: Sequence[str], **settings: str
) -> subprocess.Popen[str]:
    """Start a rank by hand on a host, as somebody without a launcher would."""
    token = tmp_path / "token"
    if not token.exists():
        token.touch(mode=0o600)
        token.write_text("a secret of this job")
    environment = os.environ | {
        "COBRE_COMM_BACKEND": "tcp",
        "COBRE_TCP_COORDINATOR": f"{ADDRESSES[0]}:{PORT}",
        "COBRE_TCP_BIND_ADDR": ADDRESSES[0],
        "COBRE_TCP_RANK": str(rank),
        "COBRE_TCP_SIZE": str(size),
        "COBRE_TCP_TOKEN_FILE": str(token),
        **settings,
    }
    return subprocess.Popen(
        ["ip", "netns", "exec", hosts.names[host], sys.executable, "-m", "cobre", *command],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_ranks_on_two_hosts_make_the_policy_of_one(hosts: TwoHosts, tmp_path: Path) -> None:
    output = tmp_path / "output"
    command = ["train", str(CASE), "--iterations", str(FEW_ITERATIONS), "--output", str(output)]
    ranks = [
        start_rank(hosts, rank, host, tmp_path, 3, [*command, "--output-format", "json"])
        for rank, host in enumerate((0, 1, 1))
    ]
    said = [rank.communicate(timeout=120) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0, 0], said
    alone = train(CASE, iterations=FEW_ITERATIONS, output=tmp_path / "alone")
    assert json.loads(said[0][0])["data"]["policy_sha256"] == alone.policy_sha256


def test_a_cut_link_ends_the_ranks_on_both_sides(hosts: TwoHosts, tmp_path: Path) -> None:
    output = tmp_path / "output"
    command = ["train", str(CASE), "--iterations", str(FOREVER), "--output", str(output), "--no-progress"]
    settings = {"COBRE_TCP_HEARTBEAT_SECS": "0.2", "COBRE_TCP_SILENCE_SECS": "2"}
    ranks = [start_rank(hosts, place, place, tmp_path, 2, command, **settings) for place in range(2)]
    deadline = time.monotonic() + 120
    while not list(output.glob("**/events*")) and time.monotonic() < deadline:
        assert all(rank.poll() is None for rank in ranks), [rank.communicate() for rank in ranks]
        time.sleep(0.1)
    time.sleep(1.0)
    hosts.cut()
    said = [rank.communicate(timeout=60) for rank in ranks]
    for place, rank in enumerate(ranks):
        assert rank.returncode not in (0, None)
        assert f"rank {1 - place} gives no sign of life" in said[place][1]
