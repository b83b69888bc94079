"""Checkpoints survive whatever happens to their writer, and only as many stay as asked for."""

import fcntl
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from stored import checkpoint, same

from cobre.errors import OutputError, ValidationError
from cobre.policy import latest_checkpoint, read_checkpoint, write_checkpoint

HERE = Path(__file__).resolve()

WRITER = """
import sys
from pathlib import Path
from stored import checkpoint
from cobre.policy import latest_checkpoint, read_checkpoint, write_checkpoint

root = Path(sys.argv[1])
found = latest_checkpoint(root)
first = 1 if found is None else read_checkpoint(found.path).policy.completed_iterations + 1
print("ready", flush=True)
for iteration in range(first, first + 10_000):
    write_checkpoint(root, checkpoint(iteration, seed=iteration, nodes=4, passes=20, hydros=40), keep_last=2)
"""


def names(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


def test_oldest_are_removed_and_latest_points_to_the_newest(tmp_path: Path) -> None:
    for iteration in (2, 4, 6, 8):
        path = write_checkpoint(tmp_path, checkpoint(iteration), keep_last=2)
        assert (tmp_path / "latest").resolve() == path
        assert (tmp_path / "latest").readlink() == Path(path.name)
    assert names(tmp_path) == ["checkpoint-000006", "checkpoint-000008", "latest"]


def test_a_run_that_starts_again_writes_the_newest(tmp_path: Path) -> None:
    """The iteration does not tell which is newest."""
    for iteration in (5, 6, 7):
        write_checkpoint(tmp_path, checkpoint(iteration))
    path = write_checkpoint(tmp_path, checkpoint(1))
    found = latest_checkpoint(tmp_path)
    assert found is not None
    assert found.path == path
    assert names(tmp_path) == ["checkpoint-000001", "checkpoint-000006", "checkpoint-000007", "latest"]
    write_checkpoint(tmp_path, checkpoint(7, seed=9))
    found = latest_checkpoint(tmp_path)
    assert found is not None
    assert same(read_checkpoint(found.path), checkpoint(7, seed=9))


def test_only_own_checkpoints_are_removed(tmp_path: Path) -> None:
    foreign = tmp_path / "checkpoint-000001"
    foreign.mkdir()
    (foreign / "mine.txt").write_text("mine")
    mixed = write_checkpoint(tmp_path, checkpoint(2))
    (mixed / "note.txt").write_text("mine too")
    (tmp_path / "checkpoint-000003").symlink_to(foreign)
    (tmp_path / "results.csv").write_text("1")
    for iteration in (4, 5, 6):
        write_checkpoint(tmp_path, checkpoint(iteration), keep_last=1)
    left = ["checkpoint-000001", "checkpoint-000002", "checkpoint-000003", "checkpoint-000006"]
    assert names(tmp_path) == [*left, "latest", "results.csv"]
    with pytest.raises(OutputError, match=r"mine\.txt"):
        write_checkpoint(tmp_path, checkpoint(1))
    with pytest.raises(OutputError, match=r"note\.txt"):
        write_checkpoint(tmp_path, checkpoint(2))
    with pytest.raises(OutputError, match="checkpoint-000003"):
        write_checkpoint(tmp_path, checkpoint(3))
    assert (foreign / "mine.txt").read_text() == "mine"


def test_at_least_the_new_one_stays(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="keep_last"):
        write_checkpoint(tmp_path, checkpoint(), keep_last=0)


def test_a_foreign_latest_is_refused(tmp_path: Path) -> None:
    (tmp_path / "latest").write_text("mine")
    with pytest.raises(OutputError, match="latest"):
        write_checkpoint(tmp_path, checkpoint())
    assert names(tmp_path) == ["latest"]


def test_leftovers_are_ignored_and_removed(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path, checkpoint(1))
    ends = ("staging", "staging.previous", "removed")
    for end in ends:
        half = tmp_path / f".checkpoint-000001.0123abcd.{end}"
        half.mkdir()
        (half / "cuts.parquet").write_text("half")
    (tmp_path / ".latest.0123abcd.link").symlink_to("nowhere")
    kept = tmp_path / ".checkpoint-mine.staging"
    kept.mkdir()
    found = latest_checkpoint(tmp_path)
    assert found is not None
    assert (found.path, found.warnings) == (path, ())
    write_checkpoint(tmp_path, checkpoint(2))
    assert names(tmp_path) == [kept.name, "checkpoint-000001", "checkpoint-000002", "latest"]


@pytest.mark.parametrize("name", ["cuts.parquet", "manifest.json", "manifest.sha256", "bases.parquet"])
def test_a_damaged_newest_falls_back_with_a_warning(tmp_path: Path, name: str) -> None:
    good = write_checkpoint(tmp_path, checkpoint(1))
    bad = write_checkpoint(tmp_path, checkpoint(2))
    content = (bad / name).read_bytes()
    (bad / name).write_bytes(content[: len(content) // 2])
    found = latest_checkpoint(tmp_path)
    assert found is not None
    assert found.path == good
    (warning,) = found.warnings
    assert "passed over" in warning.message
    assert str(bad) in warning.message
    (good / "cuts.parquet").unlink()
    with pytest.raises(ValidationError) as error:
        latest_checkpoint(tmp_path)
    assert len(error.value.problems) == 2


@pytest.mark.parametrize("name", ["cuts.parquet", "manifest.json", "manifest.sha256"])
def test_a_damaged_checkpoint_is_replaced_when_its_iteration_comes_again(tmp_path: Path, name: str) -> None:
    write_checkpoint(tmp_path, checkpoint(1))
    bad = write_checkpoint(tmp_path, checkpoint(2))
    (bad / name).write_bytes(b"zeros after a power cut")
    assert write_checkpoint(tmp_path, checkpoint(2)) == bad
    found = latest_checkpoint(tmp_path)
    assert found is not None
    assert (found.path, found.warnings) == (bad, ())


def test_no_checkpoint(tmp_path: Path) -> None:
    assert latest_checkpoint(tmp_path) is None
    assert latest_checkpoint(tmp_path / "none") is None


def test_two_writers_do_not_meet(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        with pytest.raises(OutputError, match="another process"):
            write_checkpoint(tmp_path, checkpoint())
    finally:
        os.close(descriptor)
    write_checkpoint(tmp_path, checkpoint())


def test_unwritable_root(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError) as found:
        write_checkpoint(tmp_path / "file" / "root", checkpoint())
    assert "file" in found.value.message


def test_an_error_while_writing_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_checkpoint(tmp_path, checkpoint(1))
    calls = []

    def fail(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 4:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OutputError, match="No space left"):
        write_checkpoint(tmp_path, checkpoint(2))
    monkeypatch.undo()
    found = latest_checkpoint(tmp_path)
    assert found is not None
    assert found.path == path
    assert names(tmp_path) == ["checkpoint-000001", "latest"]


def test_same_iteration_is_replaced_without_exchange_of_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cobre.durable._exchange", lambda one, other: False)
    write_checkpoint(tmp_path, checkpoint(1))
    path = write_checkpoint(tmp_path, checkpoint(1, seed=4))
    assert same(read_checkpoint(path), checkpoint(1, seed=4))
    assert names(tmp_path) == ["checkpoint-000001", "latest"]


@pytest.mark.timeout(280)
def test_killed_writers_leave_an_intact_checkpoint(tmp_path: Path) -> None:
    """SIGKILL at random moments, 20 times; each writer goes on from what the one before left (CKP-02)."""
    moments = random.Random(7)
    path = os.pathsep.join([str(HERE.parent), str(HERE.parents[2])])
    reached = 0
    kills_inside = 0
    for attempt in range(20):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)],
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        # Writing one takes some tens of milliseconds; the first writer must finish one.
        deadline = time.monotonic() + 60
        while attempt == 0 and not (tmp_path / "latest").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(moments.uniform(0.0, 0.25))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        kills_inside += any(name.startswith(".") for name in names(tmp_path))
        found = latest_checkpoint(tmp_path)
        assert found is not None
        assert found.warnings == ()
        stored = read_checkpoint(found.path)
        iteration = stored.policy.completed_iterations
        assert iteration >= reached
        assert same(stored, checkpoint(iteration, seed=iteration, nodes=4, passes=20, hydros=40))
        # A writer that is killed before it removes the oldest leaves one more.
        assert len([name for name in names(tmp_path) if not name.startswith((".", "latest"))]) <= 4
        assert (tmp_path / "latest").resolve().is_dir()
        reached = iteration
    assert kills_inside > 0, "no writer was killed while it wrote"
    write_checkpoint(tmp_path, replace(checkpoint(reached + 1)), keep_last=2)
    assert not [name for name in names(tmp_path) if name.startswith(".")]


STEPPER = """
import os, sys
from pathlib import Path
import numpy, pyarrow
from stored import checkpoint
from cobre.policy import latest_checkpoint, write_checkpoint

pyarrow.array(numpy.zeros(1))  # loads pandas where it is installed: once, not in every child

CHANGES = ("os.rename", "os.symlink", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree", "open")


def in_child(work):
    process = os.fork()
    if process == 0:
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def dying_before(step, root, data):
    left = step

    def audit(event, arguments):
        nonlocal left
        left -= event in CHANGES
        if left == 0:
            os._exit(9)

    sys.addaudithook(audit)
    write_checkpoint(root, data, keep_last=1)


for step in range(1, 500):
    root = Path(sys.argv[1]) / str(step)
    assert in_child(lambda: write_checkpoint(root, checkpoint(2))) == 0
    ended = in_child(lambda: dying_before(step, root, checkpoint(3)))
    found = latest_checkpoint(root)
    assert found is not None and found.warnings == (), (step, found)
    assert ended == 9 or found.path.name == "checkpoint-000003", (step, ended)
    if ended == 0:
        print(step)
        break
"""


def test_every_single_step_may_be_the_last(tmp_path: Path) -> None:
    """A writer that dies before its n-th change of the disk, for every n."""
    path = os.pathsep.join([str(HERE.parent), str(HERE.parents[2])])
    ended = subprocess.run(
        [sys.executable, "-c", STEPPER, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        check=True,
    )
    steps = int(ended.stdout)
    assert steps > 20
    for step in range(1, steps):
        found = latest_checkpoint(tmp_path / str(step))
        assert found is not None
        iterations = read_checkpoint(found.path).policy.completed_iterations
        assert same(read_checkpoint(found.path), checkpoint(iterations))
