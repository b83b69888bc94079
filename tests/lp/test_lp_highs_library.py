"""Where HiGHS is looked for."""

import importlib.util
import sys
from pathlib import Path

import pytest

from cobre.errors import CobreError
from cobre.lp import highs_library


@pytest.fixture
def library():
    """The file that is in use here."""
    return Path(highs_library.open_library()._name)


@pytest.fixture
def nothing_installed(monkeypatch, tmp_path):
    """No package has a library; the environment of Python lies in a directory of the test."""
    monkeypatch.delenv(highs_library.LIBRARY_VARIABLE, raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return tmp_path


@pytest.mark.skipif(sys.platform != "linux", reason="names of libraries are those of Linux")
def test_the_library_of_a_conda_environment_is_found(library, nothing_installed):
    (nothing_installed / "lib").mkdir()
    (nothing_installed / "lib" / "libhighs.so").symlink_to(library)
    assert hasattr(highs_library.open_library(), "Highs_run")


def test_without_any_the_packages_to_install_are_named(nothing_installed):
    with pytest.raises(CobreError) as refused:
        highs_library.open_library()
    assert "highsbox" in refused.value.suggestion
    assert "conda" in refused.value.suggestion
