"""Configurations of tcp and shm: made in the program, and read from the environment."""

from __future__ import annotations

import os

import pytest

from cobre.comm import ShmConfig, TcpConfig
from cobre.comm.backends import ShmTransport, TcpTransport
from cobre.comm.config import DEFAULT_CAPACITY_BYTES
from cobre.comm.environment import shm_config, tcp_config
from cobre.errors import ValidationError

TOKEN = "a secret of thirty-two characters"
PLACE = {"COBRE_TCP_COORDINATOR": "node1", "COBRE_TCP_RANK": "1", "COBRE_TCP_SIZE": "2"}
TCP = {**PLACE, "COBRE_TCP_TOKEN": TOKEN}
SHM = {"COBRE_SHM_NAME": "/job", "COBRE_SHM_RANK": "1", "COBRE_SHM_SIZE": "2"}


def settings_of(error):
    return [problem.context["setting"] for problem in error.problems]


def test_defaults():  # SEL-04, SEL-06
    tcp = tcp_config(TCP)
    assert tcp == TcpConfig("node1", 1, 2, 29500, "127.0.0.1", 30.0, 3600.0, TOKEN.encode(), None, 1.0, 30.0)
    assert shm_config(SHM) == ShmConfig("/job", 1, 2, 60.0, 3600.0, None, DEFAULT_CAPACITY_BYTES)


def test_every_variable_is_honoured():
    tcp = tcp_config(
        {
            **TCP,
            "COBRE_TCP_PORT": "4711",
            "COBRE_TCP_BIND_ADDR": "0.0.0.0",
            "COBRE_TCP_CONNECT_TIMEOUT_MS": "1500",
            "COBRE_TCP_TIMEOUT_SECS": "2.5",
            "COBRE_TCP_LISTENER_FD": "7",
            "COBRE_TCP_HEARTBEAT_SECS": "0.5",
            "COBRE_TCP_SILENCE_SECS": "90",
        }
    )
    assert tcp == TcpConfig("node1", 1, 2, 4711, "0.0.0.0", 1.5, 2.5, TOKEN.encode(), 7, 0.5, 90.0)
    shm = shm_config(
        {
            **SHM,
            "COBRE_SHM_CONNECT_TIMEOUT_MS": "2500",
            "COBRE_SHM_TIMEOUT_SECS": "3",
            "COBRE_SHM_NONCE": "0f" * 16,
            "COBRE_SHM_SEGMENT": "/proc/1/fd/2",
        }
    )
    assert shm.segment == "/proc/1/fd/2"
    assert (shm.connect_timeout_s, shm.timeout_s, shm.nonce) == (2.5, 3.0, b"\x0f" * 16)


def test_a_slow_rank_is_given_more_than_minutes():  # 10.7
    ten_minutes_s = 600.0
    assert tcp_config(TCP).timeout_s > ten_minutes_s
    assert shm_config(SHM).timeout_s > ten_minutes_s


@pytest.mark.parametrize("make", [ShmTransport, TcpTransport])
def test_launched_ranks_get_the_same_by_either_way(make, monkeypatch):
    read = shm_config if make is ShmTransport else tcp_config
    prefix = f"COBRE_{make.backend.upper()}_"
    with make(2) as transport:
        for rank in range(2):
            assert read(transport.environment(rank)) == transport.config(rank)
        assert transport.config(0).timeout_s > 600.0
    monkeypatch.setenv(prefix + "TIMEOUT_SECS", "7200")
    monkeypatch.setenv(prefix + "CONNECT_TIMEOUT_MS", "1500")
    with make(2) as transport:
        assert (transport.config(1).timeout_s, transport.config(1).connect_timeout_s) == (7200.0, 1.5)
        assert read(transport.environment(1)) == transport.config(1)
    monkeypatch.setenv(prefix + "TIMEOUT_SECS", "soon")
    with pytest.raises(ValidationError, match="is no number"):
        make(2)


@pytest.mark.parametrize(
    ("coordinator", "host", "port"),
    [
        ("node1:4711", "node1", 4711),
        ("[::1]:4711", "::1", 4711),
        ("[::1]", "::1", 29500),
        ("::1", "::1", 29500),
        ("node1", "node1", 29500),
    ],
)
def test_coordinator_with_a_port(coordinator, host, port):  # SEL-04
    config = tcp_config({**TCP, "COBRE_TCP_COORDINATOR": coordinator})
    assert (config.coordinator, config.port) == (host, port)


def test_conflicting_ports_are_refused():
    variables = {**TCP, "COBRE_TCP_COORDINATOR": "node1:4711"}
    assert tcp_config({**variables, "COBRE_TCP_PORT": "4711"}).port == 4711
    with pytest.raises(ValidationError, match="disagrees with COBRE_TCP_PORT=4712"):
        tcp_config({**variables, "COBRE_TCP_PORT": "4712"})


def test_rank_0_needs_no_coordinator():  # SEL-05
    config = tcp_config({"COBRE_TCP_RANK": "0", "COBRE_TCP_SIZE": "2", "COBRE_TCP_TOKEN": TOKEN})
    assert (config.rank, config.coordinator) == (0, "127.0.0.1")


def test_all_wrong_values_are_told_at_once():
    with pytest.raises(ValidationError) as caught:
        tcp_config({**TCP, "COBRE_TCP_RANK": "one", "COBRE_TCP_TIMEOUT_SECS": "soon", "COBRE_TCP_PORT": "-1"})
    assert settings_of(caught.value) == ["COBRE_TCP_PORT", "COBRE_TCP_RANK", "COBRE_TCP_TIMEOUT_SECS"]
    with pytest.raises(ValidationError) as caught:
        tcp_config({**TCP, "COBRE_TCP_RANK": "2", "COBRE_TCP_PORT": "65536", "COBRE_TCP_TIMEOUT_SECS": "nan"})
    assert settings_of(caught.value) == ["COBRE_TCP_RANK", "COBRE_TCP_PORT", "COBRE_TCP_TIMEOUT_SECS"]


@pytest.mark.parametrize("nonce", ["0f", "xx" * 16, "0f" * 17])
def test_nonce(nonce):
    with pytest.raises(ValidationError) as caught:
        shm_config({**SHM, "COBRE_SHM_NONCE": nonce})
    assert settings_of(caught.value) == ["COBRE_SHM_NONCE"]
    assert nonce not in str(caught.value)


@pytest.fixture
def token_file(tmp_path):
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    path.chmod(0o600)
    return path


def read_token(path):
    return tcp_config({**PLACE, "COBRE_TCP_TOKEN_FILE": str(path)}).token


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_token_file(token_file, mode):
    token_file.chmod(mode)
    assert read_token(token_file) == TOKEN.encode()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o602])
def test_a_token_file_that_others_can_use_is_refused(token_file, mode):  # 10.6
    token_file.chmod(mode)
    with pytest.raises(ValidationError, match=f"{mode:04o}") as caught:
        read_token(token_file)
    assert "secret" not in str(caught.value)


def test_token_files_that_are_none(tmp_path, token_file):
    with pytest.raises(ValidationError, match="No such file"):
        read_token(tmp_path / "absent")
    with pytest.raises(ValidationError, match="regular file"):
        read_token(tmp_path)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo, 0o600)
    with pytest.raises(ValidationError, match="regular file"):  # and does not wait for a writer
        read_token(fifo)
    for content in (b"", b" \n", b"x" * 5000):
        token_file.write_bytes(content)
        with pytest.raises(ValidationError, match="no token"):
            read_token(token_file)


def test_a_short_token_is_named_by_its_variable():
    with pytest.raises(ValidationError, match="at least 16 bytes") as caught:
        tcp_config({**PLACE, "COBRE_TCP_TOKEN": "short"})
    assert settings_of(caught.value) == ["COBRE_TCP_TOKEN"]
    assert "short" not in str(caught.value)


def test_one_token_only(token_file):
    with pytest.raises(ValidationError, match="both set"):
        tcp_config({**TCP, "COBRE_TCP_TOKEN": TOKEN, "COBRE_TCP_TOKEN_FILE": str(token_file)})


def test_secrets_are_not_shown():  # 10.6
    assert "hidden" not in repr(TcpConfig("a", 0, 1, token=b"hidden" * 3))
    assert "hidden" not in repr(ShmConfig("/a", 0, 1, nonce=b"hidden..........."[:16]))


@pytest.mark.parametrize(
    ("fields", "settings"),
    [
        ({"rank": 2}, ["rank"]),
        ({"rank": -1}, ["rank"]),
        ({"rank": True}, ["rank"]),
        ({"size": 0}, ["size"]),
        ({"size": 10**9}, ["size"]),
        ({"port": 0}, ["port"]),
        ({"port": "80"}, ["port"]),
        ({"coordinator": ""}, ["coordinator"]),
        ({"coordinator": "node1:80"}, ["coordinator"]),
        ({"coordinator": "a b"}, ["coordinator"]),
        ({"bind_addr": None}, ["bind_addr"]),
        ({"connect_timeout_s": 0}, ["connect_timeout_s"]),
        ({"timeout_s": float("inf")}, ["timeout_s"]),
        ({"timeout_s": "60"}, ["timeout_s"]),
        ({"token": b""}, ["token"]),
        ({"token": "text"}, ["token"]),
        ({"token": b"fifteen bytes.."}, ["token"]),
        ({"token": None}, ["token"]),
        ({"heartbeat_s": 0}, ["heartbeat_s"]),
        ({"silence_s": "10"}, ["silence_s"]),
        ({"silence_s": 2.9}, ["silence_s"]),
        ({"listener_fd": -1}, ["listener_fd"]),
        ({"port": 0, "rank": 5, "token": b""}, ["rank", "port", "token"]),
    ],
)
def test_wrong_tcp_configurations(fields, settings):
    with pytest.raises(ValidationError) as caught:
        TcpConfig(**{"coordinator": "node1", "rank": 0, "size": 2, "token": TOKEN.encode(), **fields})
    assert settings_of(caught.value) == settings


@pytest.mark.parametrize(
    ("fields", "settings"),
    [
        ({"name": "job"}, ["name"]),
        ({"name": "/"}, ["name"]),
        ({"name": "/../x"}, ["name"]),
        ({"name": "/.."}, ["name"]),
        ({"name": "/a\n"}, ["name"]),
        ({"name": "/" + "x" * 250}, ["name"]),
        ({"name": 3}, ["name"]),
        ({"nonce": b"short"}, ["nonce"]),
        ({"capacity_bytes": 0}, ["capacity_bytes"]),
        ({"capacity_bytes": 1.5}, ["capacity_bytes"]),
        ({"timeout_s": -1, "size": 0}, ["size", "timeout_s"]),
        ({"connect_timeout_s": 0}, ["connect_timeout_s"]),
        ({"segment": "/etc/passwd"}, ["segment"]),
    ],
)
def test_wrong_shm_configurations(fields, settings):
    with pytest.raises(ValidationError) as caught:
        ShmConfig(**{"name": "/job", "rank": 0, "size": 2, **fields})
    assert settings_of(caught.value) == settings
