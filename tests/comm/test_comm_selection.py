"""Choosing a backend: by argument, by environment, by how the process was launched."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

from cobre.comm import (
    BackendKind,
    BackendNotAvailable,
    InvalidBackend,
    MissingConfiguration,
    ShmConfig,
    TcpConfig,
    available_backends,
    create_communicator,
    explain_selection,
)
from cobre.comm.environment import advertised_size, detect_mpi
from cobre.errors import ValidationError

PREFIXES = ("COBRE_COMM_", "COBRE_TCP_", "COBRE_SHM_", "PMI", "OMPI_", "SLURM_", "MPI_LOCAL")

# What a rank saw under each launcher: (variables, launcher, rank, size).
MPI_LAUNCHES = {
    "hydra": ({"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1"}, "pmi", 1, 2),
    "gforker": ({"PMI_RANK": "1", "PMI_SIZE": "2"}, "pmi", 1, 2),
    "prterun": (
        {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "PMIX_RANK": "1", "PMIX_NAMESPACE": "j"},
        "openmpi",
        1,
        2,
    ),
    "srun pmi2": (
        {"PMI_RANK": "1", "PMI_SIZE": "2", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"},
        "pmi",
        1,
        2,
    ),
    "srun pmix": (
        {
            "PMIX_RANK": "1",
            "PMIX_NAMESPACE": "slurm.pmix.7.0",
            "SLURM_PROCID": "1",
            "SLURM_STEP_ID": "0",
            "SLURM_STEP_NUM_TASKS": "2",
        },
        "pmix",
        1,
        2,
    ),
    "pmix alone": ({"PMIX_RANK": "1", "PMIX_NAMESPACE": "j"}, "pmix", 1, None),
}
NO_LAUNCHES = {
    "nothing": {},
    "salloc shell": {
        "SLURM_JOB_ID": "7",
        "SLURM_NTASKS": "2",
        "SLURM_PROCID": "0",
        "SLURM_STEP_ID": "4294967290",
        "SLURM_STEP_NUM_TASKS": "1",
    },
    "batch body": {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "2", "SLURM_PROCID": "0"},
    "interactive step of many": {"SLURM_STEP_ID": "4294967290", "SLURM_STEP_NUM_TASKS": "4"},
    "srun with one task": {"SLURM_PROCID": "0", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "1"},
    "a rank without size": {"PMI_RANK": "0"},
    "a size without rank": {"OMPI_COMM_WORLD_SIZE": "4"},
    "no numbers": {"PMI_RANK": "zero", "PMI_SIZE": "²"},
    "size 0": {"PMI_RANK": "0", "PMI_SIZE": "0"},
    "digits without end": {"PMI_RANK": "0", "PMI_SIZE": "9" * 5000},
    "pmix without namespace": {"PMIX_RANK": "0"},
}
TCP = {
    "COBRE_TCP_COORDINATOR": "node1",
    "COBRE_TCP_RANK": "1",
    "COBRE_TCP_SIZE": "2",
    "COBRE_TCP_TOKEN": "a secret of thirty-two characters",
}
SHM = {"COBRE_SHM_NAME": "/job", "COBRE_SHM_RANK": "0", "COBRE_SHM_SIZE": "2"}


@pytest.fixture(autouse=True)
def _no_launch(monkeypatch):
    for name in list(os.environ):
        if name.startswith(PREFIXES):
            monkeypatch.delenv(name)


@pytest.fixture
def no_mpi4py(monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "mpi4py" else find_spec(name, *rest)
    )


@pytest.fixture
def with_mpi4py(monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: find_spec("sys" if name == "mpi4py" else name, *rest),
    )


@pytest.mark.skipif(sys.platform != "linux", reason="tcp and shm are for Linux")
def test_available(with_mpi4py):  # SEL-07
    assert available_backends() == ("mpi", "tcp", "shm", "local")


def test_available_without_mpi4py(no_mpi4py):
    assert available_backends() == tuple(n for n in ("tcp", "shm", "local") if n in available_backends())
    assert "mpi" not in available_backends()


def test_looking_for_backends_imports_none_of_them():  # SEL-07
    code = (
        "import sys, cobre.comm as c; c.available_backends(); c.explain_selection(); c.create_communicator();"
        "print([m for m in ('mpi4py', 'mpi4py.MPI', 'cobre.comm.mpi', 'cobre.comm.tcp') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("backend", ["auto", "local", BackendKind.AUTO, BackendKind.LOCAL])
def test_local_is_made(backend):
    with create_communicator(backend) as communicator:
        assert communicator.backend == "local"


@pytest.mark.parametrize("value", ["", "auto", "local"])
def test_environment_may_be_empty(monkeypatch, value):  # SEL-01
    monkeypatch.setenv("COBRE_COMM_BACKEND", value)
    assert create_communicator().backend == "local"


def test_known_but_not_available(monkeypatch, no_mpi4py):
    with pytest.raises(BackendNotAvailable, match="mpi4py is not installed") as caught:
        create_communicator("mpi")
    assert (caught.value.requested, caught.value.available) == ("mpi", available_backends())
    monkeypatch.setenv("COBRE_COMM_BACKEND", "mpi")
    with pytest.raises(BackendNotAvailable):
        create_communicator()


@pytest.mark.parametrize("name", ["tcp", "shm"])
def test_not_available_outranks_missing_configuration(monkeypatch, name):  # ERR-03
    monkeypatch.setattr(sys, "platform", "plan9")
    with pytest.raises(BackendNotAvailable, match="needs Linux"):
        create_communicator(name)


@pytest.mark.parametrize("name", ["MPI", "Local", "nccl", " local", "none"])
def test_unknown(monkeypatch, name):
    with pytest.raises(InvalidBackend) as caught:
        create_communicator(name)
    assert caught.value.requested == name
    assert caught.value.available == ("mpi", "tcp", "shm", "local")
    monkeypatch.setenv("COBRE_COMM_BACKEND", name)
    with pytest.raises(InvalidBackend, match="that COBRE_COMM_BACKEND asks for"):
        create_communicator()


def test_an_explicit_choice_ignores_the_environment(monkeypatch):  # SEL-06
    monkeypatch.setenv("COBRE_COMM_BACKEND", "nonsense")
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "8")
    assert create_communicator("local").backend == "local"


@pytest.mark.parametrize("name", MPI_LAUNCHES)
def test_mpi_launches(name):  # SEL-03, comm-patterns 3
    variables, launcher, rank, size = MPI_LAUNCHES[name]
    launch = detect_mpi(variables)
    assert (launch.launcher, launch.rank, launch.size) == (launcher, rank, size)


@pytest.mark.parametrize("name", MPI_LAUNCHES)
def test_a_launch_by_mpi_chooses_mpi(with_mpi4py, name):  # SEL-02
    selection = explain_selection(environment={**MPI_LAUNCHES[name][0], **TCP, **SHM})
    assert (selection.backend, selection.error) == ("mpi", None)
    assert "RANK=1" in selection.reasons[-1]


@pytest.mark.parametrize("name", MPI_LAUNCHES)
def test_no_independent_copies_under_a_launcher(monkeypatch, no_mpi4py, name):
    for variable, value in MPI_LAUNCHES[name][0].items():
        monkeypatch.setenv(variable, value)
    with pytest.raises(BackendNotAvailable, match="each would run the whole job") as caught:
        create_communicator()
    assert caught.value.requested == "mpi"
    assert "COBRE_COMM_BACKEND=local" in str(caught.value)
    monkeypatch.setenv("COBRE_COMM_BACKEND", "local")
    assert create_communicator().backend == "local"


@pytest.mark.parametrize("name", NO_LAUNCHES)
def test_not_fooled(with_mpi4py, name):  # 10.5
    variables = NO_LAUNCHES[name]
    assert detect_mpi(variables) is None
    selection = explain_selection(environment=variables)
    assert (selection.backend, selection.error) == ("local", None)


def test_an_mpi_launch_of_one_without_mpi4py_is_local(no_mpi4py):
    selection = explain_selection(environment={"PMI_RANK": "0", "PMI_SIZE": "1"})
    assert (selection.backend, selection.error) == ("local", None)


def test_srun_without_mpi_is_refused_with_a_warning(with_mpi4py):
    variables = {"SLURM_PROCID": "0", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "4"}
    selection = explain_selection(environment=variables)
    assert any("srun started 4 tasks without MPI" in reason for reason in selection.reasons)
    assert isinstance(selection.error, BackendNotAvailable)
    assert "--mpi=pmix" in str(selection.error)
    assert advertised_size(variables) == (4, "SLURM_STEP_NUM_TASKS=4")
    assert explain_selection(environment={**variables, **TCP}).backend == "tcp"
    assert explain_selection(environment={**variables, "COBRE_COMM_BACKEND": "local"}).error is None


def test_the_chain_tcp_then_shm(no_mpi4py):  # SEL-02
    assert explain_selection(environment={**TCP, **SHM}).backend == "tcp"
    selection = explain_selection(environment=SHM)
    assert (selection.backend, selection.error) == ("shm", None)
    assert [reason.split(":")[0] for reason in selection.reasons[1:]] == ["mpi", "tcp", "shm"]


def test_tcp_joins_processes_of_an_mpi_launcher(no_mpi4py):
    selection = explain_selection(environment={"PMI_RANK": "0", "PMI_SIZE": "2", **TCP})
    assert (selection.backend, selection.error) == ("tcp", None)


@pytest.mark.parametrize(
    ("backend", "variables", "missing"),
    [
        ("tcp", {}, ("COBRE_TCP_COORDINATOR", "COBRE_TCP_RANK", "COBRE_TCP_SIZE", "COBRE_TCP_TOKEN")),
        ("tcp", {"COBRE_TCP_RANK": "1"}, ("COBRE_TCP_COORDINATOR", "COBRE_TCP_SIZE", "COBRE_TCP_TOKEN")),
        ("tcp", {"COBRE_TCP_RANK": "0"}, ("COBRE_TCP_SIZE", "COBRE_TCP_TOKEN")),
        ("shm", {}, ("COBRE_SHM_NAME", "COBRE_SHM_RANK", "COBRE_SHM_SIZE")),
        ("shm", {"COBRE_SHM_NAME": "/x", "COBRE_SHM_RANK": ""}, ("COBRE_SHM_RANK", "COBRE_SHM_SIZE")),
        # a launch of several that lacks its trigger is no launch of one
        ("auto", {"COBRE_TCP_SIZE": "2"}, ("COBRE_TCP_COORDINATOR", "COBRE_TCP_RANK", "COBRE_TCP_TOKEN")),
        (
            "auto",
            {"COBRE_TCP_SIZE": "2", "COBRE_TCP_RANK": "0"},
            ("COBRE_TCP_COORDINATOR", "COBRE_TCP_TOKEN"),
        ),
        ("auto", {"COBRE_SHM_SIZE": "2"}, ("COBRE_SHM_NAME", "COBRE_SHM_RANK")),
        ("auto", {"COBRE_TCP_COORDINATOR": "a"}, ("COBRE_TCP_RANK", "COBRE_TCP_SIZE", "COBRE_TCP_TOKEN")),
    ],
)
def test_every_missing_variable_is_named(monkeypatch, backend, variables, missing):  # ERR-03, SEL-05
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(MissingConfiguration) as caught:
        create_communicator(backend)
    assert caught.value.missing_vars == missing


def test_a_configuration_belongs_to_its_backend():
    with pytest.raises(ValidationError, match="does not take a ShmConfig"):
        create_communicator("tcp", ShmConfig("/x", 0, 1))
    with pytest.raises(ValidationError, match="does not take a TcpConfig"):
        create_communicator("local", TcpConfig("localhost", 0, 1))
    with pytest.raises(InvalidBackend):
        create_communicator("nccl", ShmConfig("/x", 0, 1))


@pytest.mark.parametrize("name", ["tcp", "shm"])
def test_a_configuration_does_not_help_where_the_backend_is_missing(monkeypatch, name):
    monkeypatch.setattr(sys, "platform", "plan9")
    config = TcpConfig("localhost", 0, 1) if name == "tcp" else ShmConfig("/x", 0, 1)
    with pytest.raises(BackendNotAvailable) as caught:
        create_communicator(config=config)
    assert caught.value.requested == name
