"""Files are complete or not there."""

from __future__ import annotations

import os
import stat

import pytest

from cobre.errors import OutputError
from cobre.results.files import atomic_write, write_json


def test_content_replaces_an_older_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    atomic_write(path, lambda file: file.write(b"new"))
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_failure_leaves_nothing_behind_and_the_old_file_alone(tmp_path, error):
    path = tmp_path / "file"
    path.write_text("old")

    def fail(file):
        file.write(b"half")
        raise error

    with pytest.raises(error):
        atomic_write(path, fail)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_name_appears_only_with_the_whole_content(tmp_path):
    path = tmp_path / "file"
    seen = []

    def write(file):
        file.write(b"half")
        file.flush()
        seen.append(path.exists())
        file.write(b" and half")

    atomic_write(path, write)
    assert seen == [False]
    assert path.read_bytes() == b"half and half"


def test_files_have_the_permissions_of_ordinary_files(tmp_path):
    old = os.umask(0o022)
    try:
        atomic_write(tmp_path / "file", lambda file: None)
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o644


def test_a_full_disk_is_an_output_error(tmp_path):
    def fail(file):
        raise OSError(28, "No space left on device")

    with pytest.raises(OutputError, match=r"file cannot be written: No space left on device") as caught:
        atomic_write(tmp_path / "file", fail)
    assert caught.value.kind == "OutputNotWritable"
    assert list(tmp_path.iterdir()) == []


def test_a_missing_directory_is_an_output_error(tmp_path):
    with pytest.raises(OutputError, match="cannot be written"):
        atomic_write(tmp_path / "no" / "file", lambda file: None)


def test_json_refuses_what_is_not_json(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "file", {"a": float("nan")})
    assert list(tmp_path.iterdir()) == []
