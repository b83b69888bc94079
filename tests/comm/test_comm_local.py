"""The local communicator beyond the conformance suite: its compiled form and its owner."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from cobre.comm import SUPPORTED_DTYPES, InvalidCommunicator, ReduceOp, Topology
from cobre.comm.local import LocalCommunicator, LocalKernel
from cobre.comm.status import new_detail
from cobre.errors import ValidationError


@pytest.fixture
def communicator():
    with LocalCommunicator() as owner:
        yield owner


@njit
def wait_and_copy(kernel, buf):
    for _ in range(3):
        status = kernel.barrier()
        if status != 0:
            return status
    return kernel.broadcast(buf, 0)


@njit
def gather(kernel, send, recv, counts, displs):
    return kernel.allgatherv(send, recv, counts, displs)


@njit
def reduce_by_name(kernel, send, recv):
    return kernel.allreduce(send, recv, ReduceOp.MAX)


@njit
def build_inside(detail, send, recv):
    kernel = LocalKernel(detail)
    return kernel.allreduce(send, recv, 0), kernel.rank(), kernel.size()


def calls(function) -> list[str]:
    (ir,) = function.inspect_llvm().values()
    return [line for line in ir.splitlines() if re.search(r"\b(call|invoke)\b", line)]


def test_barrier_and_broadcast_compile_to_nothing(communicator):  # SEL-08
    assert wait_and_copy(communicator.kernel, np.zeros(2)) == 0
    assert not [line for line in calls(wait_and_copy) if "barrier" in line or "broadcast" in line]
    (ir,) = wait_and_copy.inspect_llvm().values()
    body = re.search(r"^define [^\n]*@_ZN[^\n]*wait_and_copy[^\n]*\{\n(.*?)^\}", ir, re.MULTILINE | re.DOTALL)
    assert body is not None
    instructions = [line.strip() for line in body[1].splitlines() if line.startswith("  ")]
    assert len(instructions) == 2, instructions  # store status 0, return
    assert instructions[0].startswith("store i32 0")
    assert instructions[1] == "ret i32 0"


def test_the_search_for_calls_finds_those_that_exist(communicator):
    # guards the test above: names of callees do show up in the IR
    gather(communicator.kernel, np.zeros(1), np.zeros(1), np.array([1]), np.array([0]))
    assert [line for line in calls(gather) if "allgatherv" in line]


def test_kernel_can_be_built_inside_nopython():
    recv = np.zeros(2)
    assert build_inside(new_detail(), np.array([1.0, 2.0]), recv) == (0, 0, 1)
    assert recv.tolist() == [1.0, 2.0]


def test_enum_members_are_accepted_in_nopython(communicator):
    recv = np.zeros(2)
    assert reduce_by_name(communicator.kernel, np.array([1.0, 2.0]), recv) == 0
    assert recv.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("send", "recv"),
    [
        (np.zeros(2, np.float32), np.zeros(2)),
        (np.zeros(2, np.complex128), np.zeros(2, np.complex128)),
        (np.zeros(2, np.int16), np.zeros(2, np.int16)),
        (np.zeros((2, 1)), np.zeros((2, 1))),
        (np.zeros(4)[::2], np.zeros(2)),
    ],
    ids=["mixed", "complex", "int16", "2-D", "strided"],
)
def test_other_buffers_do_not_compile(communicator, send, recv):  # COM-03
    with pytest.raises(TypingError, match=r"collective|different dtypes"):
        reduce_by_name(communicator.kernel, send, recv)


UNALIGNED = np.zeros(17, np.uint8)[1:].view(np.float64)


@pytest.mark.parametrize(
    ("buffer", "fault"),
    [
        ([1.0, 2.0], "is a list"),
        (np.zeros(2, np.int16), "has dtype int16"),
        (np.zeros(2, ">f8"), "has dtype >f8"),
        (np.zeros((2, 1)), "has 2 dimensions"),
        (np.zeros(4)[::2], "is not C-contiguous"),
        (UNALIGNED, "is not aligned"),
    ],
    ids=["list", "dtype", "byte order", "2-D", "strided", "unaligned"],
)
def test_owner_refuses_other_buffers(communicator, buffer, fault):  # COM-03
    good = np.zeros(2)
    for call, name in (
        (lambda: communicator.broadcast(buffer, 0), "broadcast: buf"),
        (lambda: communicator.allreduce(buffer, good, ReduceOp.SUM), "allreduce: send"),
        (lambda: communicator.allreduce(good, buffer, ReduceOp.SUM), "allreduce: recv"),
        (lambda: communicator.allgatherv(buffer, good, [2], [0]), "allgatherv: send"),
        (lambda: communicator.allgatherv(good, buffer, [2], [0]), "allgatherv: recv"),
    ):
        with pytest.raises(ValidationError, match=f"{name} {fault}") as caught:
            call()
        assert caught.value.kind == "TypeMismatch"


def test_owner_refuses_mixed_dtypes(communicator):
    with pytest.raises(ValidationError, match="recv has dtype float64 while send has float32"):
        communicator.allreduce(np.zeros(2, np.float32), np.zeros(2), ReduceOp.SUM)


def test_read_only_buffers_may_be_sent_but_not_received_into(communicator):
    frozen = np.array([1.0, 2.0])
    frozen.flags.writeable = False
    recv = np.zeros(2)
    communicator.allreduce(frozen, recv, ReduceOp.SUM)
    communicator.allgatherv(frozen, recv, [2], [0])
    assert recv.tolist() == [1.0, 2.0]
    for call in (
        lambda: communicator.broadcast(frozen, 0),
        lambda: communicator.allreduce(recv, frozen, ReduceOp.SUM),
        lambda: communicator.allgatherv(recv, frozen, [2], [0]),
    ):
        with pytest.raises(ValidationError, match="read-only"):
            call()


@pytest.mark.parametrize(
    "make", [list, tuple, np.array, lambda x: np.array(x, np.uint8), lambda x: np.array(x, "i4")]
)
def test_counts_and_displacements_may_be_any_integers(communicator, make):
    recv = np.full(4, -1.0)
    communicator.allgatherv(np.array([5.0, 6.0]), recv, make([2]), make([1]))
    assert recv.tolist() == [-1.0, 5.0, 6.0, -1.0]


@pytest.mark.parametrize(
    ("counts", "fault"),
    [
        ([2.0], "not integers"),
        (["2"], "not integers"),
        ([[2]], "2 dimensions"),
        (2, "0 dimensions"),
        (np.array([2**64 - 1], np.uint64), "int64 cannot hold"),
    ],
)
def test_other_counts_and_displacements_are_refused(communicator, counts, fault):
    with pytest.raises(ValidationError, match=f"counts .*{fault}"):
        communicator.allgatherv(np.zeros(2), np.zeros(2), counts, [0])
    with pytest.raises(ValidationError, match=f"displs .*{fault}"):
        communicator.allgatherv(np.zeros(2), np.zeros(2), [2], counts)


@pytest.mark.parametrize("dtype", SUPPORTED_DTYPES, ids=str)
def test_bits_are_copied_unchanged(communicator, dtype):  # LOC-03
    bits = np.random.default_rng(7).integers(0, 256, 64 * dtype.itemsize, np.uint8)
    send = bits.view(dtype)
    gathered, reduced = np.zeros(64, dtype), np.zeros(64, dtype)
    communicator.allgatherv(send, gathered, [64], [0])
    communicator.allreduce(send, reduced, ReduceOp.SUM)
    assert gathered.tobytes() == send.tobytes() == reduced.tobytes()


def test_after_close_only_the_kernel_is_gone():  # COM-32
    owner = LocalCommunicator()
    owner.close()
    for attribute in ("kernel", "kernel_arguments"):
        with pytest.raises(InvalidCommunicator):
            getattr(owner, attribute)
    assert (owner.rank, owner.size, owner.backend) == (0, 1, "local")


def test_topology(monkeypatch):  # COM-45
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "node[1-2]")
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "4")
    topology = LocalCommunicator().topology()
    assert topology.backend == "local"
    assert (topology.world_size, topology.num_hosts, topology.is_homogeneous) == (1, 1, True)
    assert topology.leader_hostname == socket.gethostname()
    assert topology.slurm is not None
    assert (topology.slurm.job_id, topology.slurm.node_list, topology.slurm.cpus_per_task) == (
        "77",
        "node[1-2]",
        4,
    )
    monkeypatch.delenv("SLURM_JOB_ID")
    assert LocalCommunicator().topology().slurm is None


def test_topology_without_hosts():
    nowhere = Topology("local", 0, ())
    assert nowhere.is_homogeneous
    assert nowhere.leader_hostname == "unknown"


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_abort_ends_the_process_at_once():  # COM-02
    done = run(
        "from cobre.comm import create_communicator\n"
        "try:\n    print('before'); create_communicator('local').abort(7)\nfinally:\n    print('after')"
    )
    assert (done.returncode, done.stdout) == (7, "before\n"), done.stderr


CACHED = """
import numpy as np
from cobre.comm import faces, local
from cobre.native import kernel_cache_stats
with local.LocalCommunicator() as owner:
    recv = np.zeros(2)
    for face in faces.faces(owner):
        face.allgatherv(np.ones(2), recv, [2], [0])
print(recv.sum(), *kernel_cache_stats(owner.entries.allgatherv), *kernel_cache_stats(faces._allgatherv))
"""


def test_a_second_process_compiles_neither_face(tmp_path):
    first = run(CACHED, COBRE_CACHE_DIR=str(tmp_path))
    assert first.stdout == "2.0 0 1 0 1\n", first.stderr
    second = run(CACHED, COBRE_CACHE_DIR=str(tmp_path))
    assert second.stdout == "2.0 1 0 1 0\n", second.stderr


def test_both_faces_work_without_the_jit(tmp_path):
    done = run(CACHED, COBRE_CACHE_DIR=str(tmp_path), NUMBA_DISABLE_JIT="1")
    assert done.stdout == "2.0 0 0 0 0\n", done.stderr


def test_import_compiles_nothing(tmp_path):
    done = run(
        "import cobre.comm, sys\nprint('cobre.comm.local' in sys.modules, 'numba' in sys.modules)",
        COBRE_CACHE_DIR=str(tmp_path / "cache"),
    )
    assert done.stdout == "False False\n", done.stderr
    assert not (tmp_path / "cache").exists()
