"""Kernels of the package are cached in one private directory, each under the stamp of its sources."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import numba
import pytest
from numba import njit
from numba.core import caching

from cobre.errors import CobreError
from cobre.native import cache, cache_directory, stamp

KERNELS = """
from numba import njit
from cobre.native import kernel_cache_stats
from cobre.callee import double

@njit(cache=True)
def kernel(x):
    return double(x) + 1
"""
CALLEE = """
from numba import njit
import cobre.native

@njit(cache=True)
def double(x):
    return 2 * x
"""
RUN = "from cobre.kernels import *; print(kernel(20), *kernel_cache_stats(kernel))"


@pytest.fixture(autouse=True)
def _forget_the_resolved_directory():
    cache._resolve.cache_clear()
    yield
    cache._resolve.cache_clear()


def test_second_process_loads_from_disk(sandbox):
    sandbox.write("cobre/kernels.py", KERNELS)
    sandbox.write("cobre/callee.py", CALLEE)
    assert sandbox.run(RUN) == "41 0 1"
    assert sandbox.run(RUN) == "41 1 0"
    (directory,) = sandbox.cache.iterdir()
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(sandbox.cache.stat().st_mode) == 0o700
    assert list(directory.glob("kernels.kernel-kernels.*.nbi"))
    assert not list((sandbox.root / "cobre").rglob("*.nbi"))


def test_an_edit_in_another_file_is_noticed(sandbox):
    sandbox.write("cobre/kernels.py", KERNELS)
    sandbox.write("cobre/callee.py", CALLEE)
    assert sandbox.run(RUN) == "41 0 1"
    sandbox.write("cobre/callee.py", CALLEE.replace("2 * x", "3 * x"))
    assert sandbox.run(RUN) == "61 0 1"


def test_a_kernel_over_a_type_of_a_missing_package_spoils_no_other(sandbox):
    sandbox.write("cobre/kernels.py", "import cobre.native\n" + KERNELS.replace("double(x) + 1", "x.value"))
    sandbox.write("cobre/callee.py", CALLEE)
    holder = """
from numba import int64
from cobre.native import stable_jitclass

@stable_jitclass([("value", int64)])
class Holder:
    def __init__(self, value):
        self.value = value
"""
    for package in ("ours", "theirs"):
        sandbox.write(f"{package}.py", holder)
    over = RUN.replace("from", "from {0} import Holder; from", 1).replace("kernel(20)", "kernel(Holder(41))")
    assert sandbox.run(over.format("theirs")) == "41 0 1"
    (sandbox.root / "theirs.py").rename(sandbox.root / "away")
    assert sandbox.run(over.format("ours")) == "41 0 1"
    assert sandbox.run(over.format("ours")) == "41 1 0"
    (sandbox.root / "away").rename(sandbox.root / "theirs.py")
    assert sandbox.run(over.format("theirs")) == "41 1 0"


def test_kernels_of_the_same_name_and_line_are_told_apart(sandbox):
    code = "from numba import njit\nimport cobre.native\n@njit(cache=True)\ndef f(x):\n    return x + {}\n"
    for number, package in enumerate(("one", "two")):
        (sandbox.root / "cobre" / package).mkdir()
        sandbox.write(f"cobre/{package}/__init__.py", "")
        sandbox.write(f"cobre/{package}/same.py", code.format(number))
    run = "import cobre.one.same as a, cobre.two.same as b; print(a.f(1), b.f(1))"
    assert sandbox.run(run) == "1 2"
    assert sandbox.run(run) == "1 2"
    (directory,) = sandbox.cache.iterdir()
    assert len(list(directory.glob("same.f-*.nbi"))) == 2


def test_other_packages_keep_the_rules_of_numba():
    @njit(cache=True)
    def outside(x):
        return x

    assert not isinstance(outside._cache._impl.locator, cache.PackageCacheLocator)


def test_locator_outlives_a_reload_of_the_configuration(monkeypatch):
    monkeypatch.setenv("NUMBA_DEBUG_FRONTEND", "0")
    numba.core.config.reload_config()
    found = caching.CacheImpl._locator_classes[0].from_function(cache.require_private, cache.__file__)
    assert isinstance(found, cache.PackageCacheLocator)
    assert found.get_disambiguator().startswith("native.cache.")
    assert found.get_source_stamp() == stamp.kernel_stamp(Path(cache.__file__))


def test_a_users_own_locators_come_after_ours(monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_LOCATOR_CLASSES", "InTreeCacheLocator")
    cache.install_cache_locator()
    cache.install_cache_locator()
    assert numba.config.CACHE_LOCATOR_CLASSES == "cobre.native.cache.PackageCacheLocator,InTreeCacheLocator"


def test_an_edit_beside_the_kernels_recompiles_nothing(sandbox):
    sandbox.write("cobre/driver.py", "from cobre.kernels import kernel\nHELP = 'a text'\n")
    sandbox.write("cobre/kernels.py", "from cobre.texts import greeting\n" + KERNELS)
    sandbox.write("cobre/texts.py", "def greeting():\n    return 'hello'\n")
    sandbox.write("cobre/callee.py", CALLEE)
    assert sandbox.run(RUN) == "41 0 1"
    sandbox.write("cobre/driver.py", "HELP = 'another text'\n")
    sandbox.write("cobre/texts.py", "def greeting():\n    return 'good morning'\n")
    assert sandbox.run(RUN) == "41 1 0"


def test_an_edit_of_a_constant_is_noticed(sandbox):
    with_import = "from cobre.constants import OFFSET\n" + KERNELS.replace("+ 1", "+ OFFSET")
    sandbox.write("cobre/kernels.py", with_import)
    sandbox.write("cobre/callee.py", CALLEE)
    sandbox.write("cobre/constants.py", "OFFSET = 1\n")
    assert sandbox.run(RUN) == "41 0 1"
    sandbox.write("cobre/constants.py", "OFFSET = 2\n")
    assert sandbox.run(RUN) == "42 0 1"


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", ["flip", "cut", "empty"])
def test_a_damaged_file_is_dropped_and_compiled_anew(sandbox, suffix, damage):
    sandbox.write("cobre/kernels.py", KERNELS)
    sandbox.write("cobre/callee.py", CALLEE)
    assert sandbox.run(RUN) == "41 0 1"
    (path,) = sandbox.cache.glob(f"*/kernels.kernel-*.{suffix}")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    damaged = {"flip": content, "cut": content[: len(content) // 2], "empty": b""}[damage]
    path.write_bytes(damaged)
    process = sandbox.start(RUN)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert output.strip() == "41 0 1"
    assert "kernel cache was damaged" in errors
    assert str(path) in errors
    assert sandbox.run(RUN) == "41 1 0"


def test_directory_is_private_also_when_the_umask_is_not(tmp_path, monkeypatch):
    monkeypatch.setenv("COBRE_CACHE_DIR", str(tmp_path / "new"))
    old = os.umask(0)
    try:
        directory = cache_directory()
    finally:
        os.umask(old)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(directory.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
@pytest.mark.parametrize("which", ["directory", "root"])
def test_a_directory_that_others_may_write_is_refused(tmp_path, monkeypatch, mode, which):
    root = tmp_path / "root"
    monkeypatch.setenv("COBRE_CACHE_DIR", str(root))
    directory = cache_directory()
    (directory if which == "directory" else root).chmod(mode)
    cache._resolve.cache_clear()
    with pytest.raises(CobreError, match=f"mode {mode:04o}") as caught:
        cache_directory()
    assert caught.value.kind == "UnsafeCacheDirectory"
    assert "chmod" in caught.value.suggestion


def test_a_world_writable_directory_above_the_cache_is_refused(tmp_path, monkeypatch):
    above = tmp_path / "open"
    above.mkdir()
    above.chmod(0o777)
    monkeypatch.setenv("COBRE_CACHE_DIR", str(above / "mine" / "cache"))
    with pytest.raises(CobreError, match=f"may not lie in {above}: other users may write to it") as caught:
        cache_directory()
    assert caught.value.kind == "UnsafeCacheDirectory"
    above.chmod(0o1777)
    assert cache_directory().parent == above / "mine" / "cache"


def test_a_directory_of_another_user_is_refused(tmp_path, monkeypatch):
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    with pytest.raises(CobreError, match=f"belongs to user id {owner}"):
        cache.require_private(tmp_path)


def test_a_link_in_place_of_the_directory_is_refused(tmp_path, monkeypatch):
    root = tmp_path / "root"
    monkeypatch.setenv("COBRE_CACHE_DIR", str(root))
    directory = cache_directory()
    directory.rename(tmp_path / "elsewhere")
    directory.symlink_to(tmp_path / "elsewhere")
    cache._resolve.cache_clear()
    with pytest.raises(CobreError, match="not a directory"):
        cache_directory()


def test_a_chosen_directory_that_cannot_be_written_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("COBRE_CACHE_DIR", str(tmp_path / "file" / "below"))
    with pytest.raises(CobreError) as caught:
        cache_directory()
    assert caught.value.kind == "CacheUnavailable"


def test_defaults_follow_xdg_then_home(tmp_path, monkeypatch):
    monkeypatch.setenv("COBRE_CACHE_DIR", "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_directory().parent == tmp_path / "xdg" / "cobre"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_directory().parent == tmp_path / "home" / ".cache" / "cobre"


def test_a_home_that_cannot_be_written_falls_back_to_the_temporary_directory(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.delenv("COBRE_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    fallback: Path = cache_directory().parent
    assert fallback == tmp_path / f"cobre-{os.getuid()}"
    fallback.chmod(0o770)
    cache._resolve.cache_clear()
    with pytest.raises(CobreError, match="other users may write"):
        cache_directory()
