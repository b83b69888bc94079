"""Choosing a backend: by argument, by environment, by how the process was launched."""

from __future__ import annotations

import pytest

from cobre.comm import (
    BackendKind,
    BackendNotAvailable,
    InvalidBackend,
    available_backends,
    create_communicator,
)
from cobre.comm.environment import detect_launch

LAUNCH_VARIABLES = [
    ("OMPI_COMM_WORLD_SIZE", "mpi"),
    ("PMI_SIZE", "mpi"),
    ("MPI_LOCALNRANKS", "mpi"),
    ("SLURM_STEP_NUM_TASKS", "mpi"),
    ("COBRE_TCP_SIZE", "tcp"),
    ("COBRE_SHM_SIZE", "shm"),
]


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch):
    for name in ("COBRE_COMM_BACKEND", *(variable for variable, _ in LAUNCH_VARIABLES)):
        monkeypatch.delenv(name, raising=False)


def test_available():
    assert available_backends() == ("local",)


@pytest.mark.parametrize("backend", ["auto", "local", BackendKind.AUTO, BackendKind.LOCAL])
def test_local_is_made(backend):
    with create_communicator(backend) as communicator:
        assert communicator.backend == "local"


@pytest.mark.parametrize("value", ["", "auto", "local"])
def test_environment_may_be_empty(monkeypatch, value):  # SEL-01
    monkeypatch.setenv("COBRE_COMM_BACKEND", value)
    assert create_communicator().backend == "local"


@pytest.mark.parametrize("name", ["mpi", "tcp", "shm"])
def test_known_but_not_available(monkeypatch, name):
    with pytest.raises(BackendNotAvailable) as caught:
        create_communicator(name)
    assert (caught.value.requested, caught.value.available) == (name, ("local",))
    monkeypatch.setenv("COBRE_COMM_BACKEND", name)
    with pytest.raises(BackendNotAvailable):
        create_communicator()


@pytest.mark.parametrize("name", ["MPI", "Local", "nccl", " local", "none"])
def test_unknown(monkeypatch, name):
    with pytest.raises(InvalidBackend) as caught:
        create_communicator(name)
    assert caught.value.requested == name
    assert caught.value.available == ("mpi", "tcp", "shm", "local")
    monkeypatch.setenv("COBRE_COMM_BACKEND", name)
    with pytest.raises(InvalidBackend):
        create_communicator()


def test_an_explicit_choice_ignores_the_environment(monkeypatch):  # SEL-06
    monkeypatch.setenv("COBRE_COMM_BACKEND", "nonsense")
    monkeypatch.setenv("PMI_SIZE", "8")
    assert create_communicator("local").backend == "local"


@pytest.mark.parametrize(("variable", "backend"), LAUNCH_VARIABLES)
def test_no_independent_copies_under_a_launcher(monkeypatch, variable, backend):
    monkeypatch.setenv(variable, "4")
    with pytest.raises(BackendNotAvailable, match=f"{variable}=4") as caught:
        create_communicator()
    assert caught.value.requested == backend
    assert "COBRE_COMM_BACKEND=local" in str(caught.value)
    monkeypatch.setenv("COBRE_COMM_BACKEND", "local")
    assert create_communicator().backend == "local"


@pytest.mark.parametrize("value", ["1", "0", "", "many", "-3", "²"])
def test_a_launch_of_one_is_no_launch(value):
    assert detect_launch({"PMI_SIZE": value}) is None
    assert detect_launch({"PMI_SIZE": value, "COBRE_SHM_SIZE": "2"}).backend == "shm"
