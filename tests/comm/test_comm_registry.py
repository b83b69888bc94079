"""Backends of other distributions: found by their entry points, and kept from harming the rest."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cobre import _communicators
from cobre.cli import main
from cobre.comm import (
    BackendNotAvailable,
    InvalidBackend,
    MissingConfiguration,
    available_backends,
    create_communicator,
    explain_selection,
    registry,
)
from cobre.comm.conformance import targets_named
from cobre.comm.information import as_text, describe
from cobre.comm.launch.processes import scrubbed
from cobre.comm.registry import find_backend, launchable_backends, make_transport
from cobre.errors import ValidationError

RING = """
from cobre.comm.errors import MissingConfiguration
from cobre.comm.local import LocalCommunicator
from cobre.comm.registry import Backend

class RingConfig:
    pass

class RingBackend(Backend):
    name = "ring"
    description = "processes in a ring"
    config_type = RingConfig
    how_to_start = "start rings with ringexec"
    sizes = (1,)

    def configuration(self, environment, *, automatic=False):
        if "COBRE_RING_RANK" not in environment:
            raise MissingConfiguration(self.name, ["COBRE_RING_RANK"])
        return RingConfig()

    def create(self, config):
        return LocalCommunicator()
"""
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch) -> Install:
    """Install distributions that each have a module ``<name>_module`` and an entry point."""
    for variable in ("COBRE_COMM_BACKEND", "COBRE_RING_SIZE", "COBRE_RING_RANK"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    _communicators.claims.cache_clear()

    def add(distribution: str, name: str, source: str, attribute: str = "RingBackend") -> None:
        module = f"{distribution}_module"
        (tmp_path / f"{module}.py").write_text(source)
        metadata = tmp_path / f"{distribution}-1.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1\n")
        point = f"[{_communicators.GROUP}]\n{name} = {module}:{attribute}\n"
        (metadata / "entry_points.txt").write_text(point)
        _communicators.claims.cache_clear()

    yield add
    _communicators.claims.cache_clear()
    registry._described.cache_clear()
    for module in [name for name in sys.modules if name.endswith("_module")]:
        del sys.modules[module]


@pytest.fixture
def ring(install: Install) -> None:
    install("fastring", "ring", RING)


def test_names_are_known_without_an_import(install: Install):
    install("fastring", "ring", "raise AssertionError('imported')")
    assert _communicators.backend_names() == ("mpi", "tcp", "shm", "ring", "local")
    assert "fastring_module" not in sys.modules


@pytest.mark.usefixtures("ring")
def test_one_of_another_distribution_is_made_by_its_name(monkeypatch, capsys):
    assert "ring" in available_backends()
    assert available_backends()[-1] == "local"
    with pytest.raises(MissingConfiguration, match="COBRE_RING_RANK"):
        create_communicator("ring")
    config = find_backend("ring").config_type()
    assert create_communicator("ring", config).size == create_communicator(config=config).size == 1
    with pytest.raises(ValidationError, match="'shm' does not take a RingConfig"):
        create_communicator("shm", config)
    monkeypatch.setenv("COBRE_RING_RANK", "0")
    monkeypatch.setenv("COBRE_COMM_BACKEND", "ring")
    assert explain_selection().backend == "ring"
    create_communicator().close()
    assert [target.name for target in targets_named("ring")] == ["ring"]
    assert main(["train", "--help"]) == 0
    assert "ring" in capsys.readouterr().out


@pytest.mark.usefixtures("ring")
def test_its_ranks_are_recognised_and_none_of_them_runs_alone():
    assert explain_selection(environment={}).backend == "local"
    selection = explain_selection(environment={"COBRE_RING_SIZE": "2", "COBRE_RING_RANK": "1"})
    assert (selection.backend, selection.error) == ("ring", None)
    assert selection.reasons[-1] == "ring: COBRE_RING_SIZE is set"
    assert isinstance(explain_selection(environment={"COBRE_RING_SIZE": "2"}).error, MissingConfiguration)
    assert scrubbed({"COBRE_RING_SIZE": "2", "COBRE_NUM_THREADS": "3"}) == {"COBRE_NUM_THREADS": "3"}


@pytest.mark.usefixtures("ring")
def test_one_without_a_transport_cannot_be_launched():
    assert "ring" not in launchable_backends()
    with pytest.raises(BackendNotAvailable, match="cannot start ranks of the backend 'ring'") as caught:
        make_transport("ring", 2)
    assert caught.value.suggestion == "start rings with ringexec"


@pytest.mark.usefixtures("ring")
def test_an_unknown_name_lists_what_is_installed(capsys):
    with pytest.raises(InvalidBackend, match="known: mpi, tcp, shm, ring, local"):
        create_communicator("rings")
    assert main(["train", "case", "--backend", "rings"]) == 1
    assert "'rings' is not one of 'auto', 'mpi', 'tcp', 'shm', 'ring', 'local'" in capsys.readouterr().err


BROKEN = {
    "import": ("import surely_not_there", "ModuleNotFoundError: No module named 'surely_not_there'"),
    "attribute": ("x = 1", "AttributeError"),
    "type": ("RingBackend = dict", "it is a dict, not a cobre.comm.registry.Backend"),
    "name": (RING.replace('"ring"', '"circle"'), "it is named 'circle', the entry point 'ring'"),
    "abstract": ("from cobre.comm.registry import Backend as RingBackend", "abstract"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_one_is_reported_by_name_and_breaks_no_other(install: Install, fault: str):
    source, story = BROKEN[fault]
    install("fastring", "ring", source)
    with pytest.raises(BackendNotAvailable, match="'ring' is not available here") as caught:
        create_communicator("ring")
    assert story in str(caught.value)
    assert "fastring" in caught.value.suggestion
    assert "ring" not in available_backends()
    assert create_communicator("local").size == create_communicator().size == 1
    selection = explain_selection(environment={})
    assert any(reason.startswith("ring: ") and story in reason for reason in selection.reasons)
    assert story in as_text(describe())
    alone = explain_selection(environment={"COBRE_RING_SIZE": "2"})
    assert isinstance(alone.error, BackendNotAvailable), "each rank would run the whole job"


@pytest.mark.parametrize("name", ["ring", "shm", "local"])
def test_a_name_that_is_claimed_twice_is_refused(install: Install, name: str):
    install("fastring", name, RING)
    if name == "ring":
        install("slowring", name, RING)
    with pytest.raises(BackendNotAvailable, match=f"'{name}' .* 2 distributions claim this name") as caught:
        create_communicator(name)
    assert "fastring (fastring_module:RingBackend)" in str(caught.value)
    assert ("slowring" if name == "ring" else "cobre-sddp") in str(caught.value)
    assert "tcp" in available_backends()
    chosen = explain_selection(environment={})
    assert (chosen.error is not None) == (name == "local")


@pytest.mark.parametrize("name", ["auto", "all", "num", "Ring", "my-ring"])
def test_names_that_would_mean_something_else_are_refused(install: Install, name: str):
    install("fastring", name, RING.replace('"ring"', repr(name)))
    with pytest.raises(BackendNotAvailable, match=r"reserved|a name is a lower-case letter"):
        find_backend(name)
    assert scrubbed({"COBRE_NUM_THREADS": "3"}) == {"COBRE_NUM_THREADS": "3"}


def test_the_order_of_choice_is_that_of_priority(install: Install):
    install("fastring", "ring", RING)
    install("early", "first", RING.replace('"ring"', '"first"').replace("sizes", "priority = 5\n    sizes"))
    names = [reason.partition(":")[0] for reason in explain_selection(environment={}).reasons[1:]]
    assert names == ["first", "mpi", "tcp", "shm", "ring", "local"]
