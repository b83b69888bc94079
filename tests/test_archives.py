"""The archives that are published: what is in them, and that their bytes depend on the files alone."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from cobre._version import __version__

ROOT = Path(__file__).resolve().parents[1]
STEM = f"cobre_sddp-{__version__}"
PARTS = ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in", "CHANGELOG.md", "SECURITY.md")
BUILD = (
    "import sys; sys.path.insert(0, 'tools'); import reproducible_build as backend; "
    "target = sys.argv[1]; backend.build_sdist(target); backend.build_wheel(target)"
)


def build(target: Path, mode: int, age_s: int) -> Path:
    """Build both archives from a copy of the sources whose files have this mode and age."""
    source, archives = target / "source", target / "archives"
    archives.mkdir(parents=True)
    ignored = shutil.ignore_patterns("__pycache__", "output")
    for name in ("cobre", "tools", "examples"):
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    for name in PARTS:
        shutil.copy(ROOT / name, source / name)
    (source / "tests").mkdir()
    (source / "tests" / "test_nothing.py").write_text("")
    (source / "examples/random-inflow/output").mkdir()
    (source / "examples/random-inflow/output/policy.bin").write_bytes(b"left over")
    for path in source.rglob("*"):
        if path.is_file():
            path.chmod(mode | (0o111 if path.suffix == ".sh" else 0))
            os.utime(path, (1.6e9 - age_s, 1.6e9 - age_s))
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1600000000"}
    command = [sys.executable, "-c", BUILD, str(archives)]
    done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    return archives


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("one"), 0o644, 0)


def test_the_wheel_holds_the_package_only(archives: Path) -> None:
    with zipfile.ZipFile(archives / f"{STEM}-py3-none-any.whl") as wheel:
        names = set(wheel.namelist())
        metadata = message_from_bytes(wheel.read(f"{STEM}.dist-info/METADATA"))
        entry_points = wheel.read(f"{STEM}.dist-info/entry_points.txt").decode()
        licence = wheel.read(f"{STEM}.dist-info/licenses/LICENSE")
    package = ROOT / "cobre"
    expected = {
        path.relative_to(ROOT).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {"cobre/py.typed", "cobre/cli/app.py"} < expected
    assert any(name.endswith(".npz") for name in expected)
    extra = {"METADATA", "WHEEL", "RECORD", "top_level.txt", "entry_points.txt", "licenses/LICENSE"}
    assert names == expected | {f"{STEM}.dist-info/{name}" for name in extra}
    assert metadata["Name"] == "cobre-sddp"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert "cobre = cobre.cli:main" in entry_points
    assert licence == (ROOT / "LICENSE").read_bytes()
    assert metadata["Requires-Python"] == ">=3.10"
    pythons = [line for line in metadata.get_all("Classifier") if ":: Python :: 3." in line]
    assert [line.rpartition(".")[2] for line in pythons] == ["10", "11", "12", "13"]
    extras = set(metadata.get_all("Provides-Extra"))
    assert {"mpi", "mpi-system", "report", "docs", "bench", "test", "frames"} <= extras
    needed = [Requirement(line) for line in metadata.get_all("Requires-Dist")]
    behind = {
        extra: {part.name for part in needed if f'extra == "{extra}"' in str(part.marker)} for extra in extras
    }
    assert all(behind.values()), behind
    assert behind["mpi"] == {"mpi4py", "mpich"}


def test_the_source_archive_can_be_built_and_tested_from(archives: Path) -> None:
    with tarfile.open(archives / f"{STEM}.tar.gz") as source:
        names = {member.name.removeprefix(f"{STEM}/") for member in source.getmembers()}
        owners = {(member.uid, member.gid, member.uname, member.gname) for member in source.getmembers()}
    assert {*PARTS, "tools/reproducible_build.py", "cobre/py.typed", "tests/test_nothing.py"} <= names
    assert "examples/random-inflow/config.json" in names
    assert not [name for name in names if "/output/" in name or name.endswith(".pyc")]
    assert owners == {(0, 0, "", "")}


def test_archives_depend_on_their_files_alone(archives: Path, tmp_path: Path) -> None:
    again = build(tmp_path, 0o600, 5000)
    for name in (f"{STEM}-py3-none-any.whl", f"{STEM}.tar.gz"):
        assert (again / name).read_bytes() == (archives / name).read_bytes(), name
