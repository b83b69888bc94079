"""What the conformance suite does not know of: the configuration, and the directory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cobre_files.backend import FilesBackend, FilesConfig, FilesTransport
from cobre_files.rendezvous import Place

from cobre.comm import InitializationFailed, MissingConfiguration, ReduceOp, available_backends
from cobre.comm.launch import launch
from cobre.errors import ValidationError

VARIABLES = {"COBRE_FILES_DIRECTORY": "/shared/job", "COBRE_FILES_RANK": "1", "COBRE_FILES_SIZE": "3"}


def test_cobre_finds_it():
    assert "files" in available_backends()


def test_the_environment_of_a_rank_gives_its_configuration():
    with FilesTransport(3, timeout_s=7.0) as transport:
        for rank in range(3):
            assert FilesBackend().configuration(transport.environment(rank)) == transport.config(rank)
        directory = Path(transport.config(0).directory)
        assert directory.stat().st_mode & 0o777 == 0o700
    assert not directory.exists()


def test_every_missing_variable_is_named():
    with pytest.raises(MissingConfiguration) as caught:
        FilesBackend().configuration({"COBRE_FILES_RANK": "0"})
    assert caught.value.missing_vars == ("COBRE_FILES_DIRECTORY", "COBRE_FILES_SIZE")


@pytest.mark.parametrize(
    "wrong",
    [{"COBRE_FILES_RANK": "3"}, {"COBRE_FILES_SIZE": "two"}, {"COBRE_FILES_TIMEOUT_SECS": "soon"}],
)
def test_wrong_variables_are_named_with_their_value(wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(ValidationError, match=f"{name}={value}"):
        FilesBackend().configuration({**VARIABLES, **wrong})


def test_a_directory_that_others_may_write_to_is_refused(tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(InitializationFailed, match="not this user's alone"):
        Place(FilesConfig(str(tmp_path), 0, 1))


def test_a_place_is_taken_once_and_files_of_others_stay(tmp_path):
    tmp_path.chmod(0o700)
    (tmp_path / "notes.txt").write_text("mine")
    config = FilesConfig(str(tmp_path), 0, 1)
    place = Place(config)
    with pytest.raises(InitializationFailed, match="has a rank 0 already"):
        Place(config)
    place.leave()
    assert list(tmp_path.iterdir()) == [tmp_path / "notes.txt"]


def test_ranks_that_do_not_come_are_named(tmp_path):
    directory = tmp_path / "job"
    with pytest.raises(InitializationFailed, match=r"rank 0, 2 did not join within 0\.1 s"):
        Place(FilesConfig(str(directory), 1, 3, connect_timeout_s=0.1))
    assert not directory.exists()


def total(comm):
    """Return the sum over ranks, and where they have met."""
    result = np.zeros(1)
    comm.allreduce(np.array([1.0 + comm.rank]), result, ReduceOp.SUM)
    return comm.backend, result[0]


def test_launched_ranks_leave_no_directory(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert launch(total, 2, backend="files") == [("files", 3.0)] * 2
    assert list(tmp_path.glob("cobre-files-*")) == []
