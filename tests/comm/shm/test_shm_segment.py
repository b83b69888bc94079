"""Which segments of the shm backend are refused, and which are cleaned up."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cobre.comm import AllocationFailed, InitializationFailed, RankLost
from cobre.comm.config import ShmConfig
from cobre.comm.launch.processes import start_time
from cobre.comm.shm.communicator import clean_stale_segments
from cobre.comm.shm.join import join
from cobre.comm.shm.layout import H_STAMP, H_VERSION, WORD_BYTES, data_offset, slot_bytes, total_bytes
from cobre.comm.shm.segment import create_segment, open_segment

DIRECTORY = Path("/dev/shm")
NONCE = secrets.token_bytes(16)


@pytest.fixture
def name():
    """A name of its own, and nothing left under it."""
    text = f"/cobre_test_{secrets.token_hex(8)}"
    yield text
    for path in DIRECTORY.glob(f"{text[1:]}*"):
        path.unlink()


def config(name, rank, **changes):
    return ShmConfig(
        **{"name": name, "rank": rank, "size": 2, "connect_timeout_s": 5.0, "nonce": NONCE, **changes}  # type: ignore[arg-type]
    )


@pytest.fixture
def segment(name):
    """A segment as rank 0 makes it."""
    made = create_segment(config(name, 0))
    yield made
    made.unlink()
    made.close()


def attach(name, **changes):
    found = open_segment(config(name, 1, **changes), time.monotonic() + 0.5)
    found.close()
    return found


def path_of(name):
    return DIRECTORY / name[1:]


def test_what_is_made_can_be_found(name, segment):  # SHM-01, SHM-04
    assert path_of(name).stat().st_mode & 0o777 == 0o600
    found = attach(name)
    assert found.slot_bytes == segment.slot_bytes
    segment.words[-1] = 42
    assert found.words[-1] == 42
    assert found.data.nbytes == path_of(name).stat().st_size


def test_layout_is_aligned():  # SHM-02
    for size in (1, 2, 7, 64):
        assert data_offset(size) % 4096 == 0
        slot = slot_bytes(10**6, size)
        assert slot % 128 == 0
        assert 2 * size * slot <= max(10**6, 2 * size * 4096)
        assert total_bytes(slot, size) == data_offset(size) + 2 * size * slot


@pytest.mark.parametrize(
    ("changes", "story"),
    [
        ({"nonce": secrets.token_bytes(16)}, "nonce"),
        ({"nonce": None}, "nonce"),
        ({"size": 3}, "expects 2 ranks"),
    ],
    ids=["other nonce", "no nonce", "other size"],
)
def test_another_jobs_segment_is_refused(name, segment, changes, story):  # SHM-04, 10.6
    with pytest.raises(InitializationFailed, match=story):
        attach(name, **changes)


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o606])
def test_a_segment_open_to_others_is_refused(name, segment, mode):
    path_of(name).chmod(mode)
    with pytest.raises(InitializationFailed, match=f"mode 0{mode:o}"):
        attach(name)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_foreign_users_segment_is_refused_and_not_cleaned(name, segment):
    os.chown(path_of(name), 12345, -1)
    with pytest.raises(InitializationFailed, match="user id 12345"):
        attach(name)
    segment.close()
    assert name[1:] not in clean_stale_segments()
    assert path_of(name).exists()
    path_of(name).unlink()


@pytest.mark.parametrize(
    ("word", "story"), [(H_VERSION, "layout"), (H_STAMP, "another version")], ids=["layout", "sources"]
)
def test_another_versions_segment_is_refused(name, segment, word, story):
    os.pwrite(segment.descriptor, b"\x7f", word * WORD_BYTES)
    with pytest.raises(InitializationFailed, match=story):
        attach(name)


def test_a_segment_of_another_length_is_refused(name, segment):
    length = path_of(name).stat().st_size
    os.truncate(path_of(name), length + 4096)
    with pytest.raises(InitializationFailed, match=f"{length + 4096} bytes"):
        attach(name)


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"x" * 10_000], ids=["empty", "short", "garbage"])
def test_a_segment_that_is_never_completed_is_refused(name, content):
    path_of(name).touch(mode=0o600)
    path_of(name).write_bytes(content)
    with pytest.raises(InitializationFailed, match="did not complete"):
        attach(name)


def test_what_is_no_file_is_refused(name, tmp_path):
    target = tmp_path / "elsewhere"
    target.write_bytes(b"x" * 10_000)
    path_of(name).symlink_to(target)
    with pytest.raises(InitializationFailed, match="cannot be opened"):
        attach(name)
    path_of(name).unlink()
    os.mkfifo(path_of(name), 0o600)
    with pytest.raises(InitializationFailed, match="is no segment"):
        attach(name)


def test_a_taken_name_is_refused_and_kept(name, segment):  # SHM-05
    with pytest.raises(InitializationFailed, match=r"exists already.*clean-shm"):
        create_segment(config(name, 0))
    assert path_of(name).exists()


@pytest.mark.parametrize("capacity", [2**45, 2**62], ids=["more than there is", "more than can be addressed"])
def test_a_capacity_that_cannot_be_had(name, capacity):  # SHM-13, ERR-06
    with pytest.raises(AllocationFailed) as caught:
        join(config(name, 0, capacity_bytes=capacity))
    assert caught.value.requested_bytes >= capacity // 2
    assert not path_of(name).exists()


def leave_behind(name, *, complete=True):
    """Let a process end without cleaning up."""
    config = f"ShmConfig({name!r}, 0, 2)"
    make = f"create_segment({config})" if complete else f"_create_locked(_path({config}))"
    code = (
        "import os\nfrom cobre.comm.config import ShmConfig\n"
        "from cobre.comm.shm.segment import create_segment, _create_locked, _path\n"
        f"{make}\nos._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert path_of(name).exists()


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.usefixtures("only_cleaner_of_segments")
def test_what_a_crash_left_behind_is_cleaned(name, complete):  # SHM-05
    leave_behind(name, complete=complete)
    assert name[1:] in clean_stale_segments()
    assert not path_of(name).exists()
    assert name[1:] not in clean_stale_segments()


@pytest.mark.usefixtures("only_cleaner_of_segments")
def test_what_a_crash_left_behind_is_refused(name):
    leave_behind(name)
    with pytest.raises(RankLost, match=r"rank 0 .*has ended.*clean-shm"):
        attach(name, nonce=None)


@pytest.mark.usefixtures("only_cleaner_of_segments")
def test_running_jobs_and_other_files_are_not_cleaned(name, segment):
    other = DIRECTORY / f"not_ours_{secrets.token_hex(8)}"
    other.write_bytes(b"x" * 1000)
    try:
        cleaned = clean_stale_segments()
        assert name[1:] not in cleaned
        assert other.name not in cleaned
        assert path_of(name).exists()
        assert other.exists()
    finally:
        other.unlink()


def test_a_name_given_away_meanwhile_is_not_removed(name, segment):
    path_of(name).unlink()
    path_of(name).write_bytes(b"somebody else's")
    segment.unlink()
    assert path_of(name).exists()


def test_start_times_tell_processes_apart():
    assert start_time(os.getpid()) == start_time(os.getpid()) != 0
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert start_time(child.pid) is not None
    child.communicate(b"\n", timeout=30)
    assert start_time(child.pid) is None


def test_a_single_rank_needs_nobody(name):
    segment, peers = join(config(name, 0, size=1))
    assert not path_of(name).exists()
    assert peers.descriptors == {}
    assert isinstance(segment.words, np.ndarray)
