"""Build and test the conda recipe without a conda channel: ``python tools/build_conda_package.py``.

A channel on disk is made from what pip can get: an interpreter, and the wheels of what cobre depends on, each
as a conda package with the files of its distribution. HiGHS becomes ``lib/libhighs.so`` of ``highs``,
as on conda-forge. Then rattler-build renders the recipe, solves its environments, builds the package and runs
its tests: imports, ``pip check``, the command, a training, and one on two ranks of MPI.

Needs ``py-rattler-build`` here, and a Python of the oldest version that the recipe supports for the channel:
``--python``, else the one on the path or of pyenv. This does not show that the packages of conda-forge fit
together.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import rattler_build

ROOT = Path(__file__).resolve().parents[1]
RECIPE = ROOT / "conda-recipe" / "recipe.yaml"
PLATFORM = "linux-64"
BUILD_TOOLS = ("pip", "setuptools>=77")
RENAMED = {"flatbuffers": "python-flatbuffers", "highsbox": "highs"}
"""Names of distributions that conda-forge has under another one."""

_DESCRIBE = """
import json, platform, sys
from importlib.metadata import distributions
print(json.dumps({
    "version": platform.python_version(),
    "base": sys.base_prefix,
    "distributions": [
        {"name": d.metadata["Name"], "version": d.version, "requires": d.requires or [],
         "files": [str(d.locate_file(f).resolve()) for f in d.files or []]}
        for d in distributions()
    ],
}))
"""
"""Run by the Python of the channel."""


def main() -> None:
    """Make the channel, build and test."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", help="interpreter of the channel")
    parser.add_argument("--output", type=Path, help="directory that the package is put into")
    arguments = parser.parse_args()
    python = arguments.python or oldest_python()
    with tempfile.TemporaryDirectory(prefix="cobre-conda-") as scratch:
        channel = make_channel(python, Path(scratch))
        built = build(channel, Path(scratch) / "output")
        if arguments.output is not None:
            arguments.output.mkdir(parents=True, exist_ok=True)
            shutil.copy(built, arguments.output)
        print(f"{built.name}: built and tested")


def oldest_python() -> str:
    """Return the interpreter of the version ``python_min`` of the recipe."""
    (version,) = re.findall(r'python_min: "(.*?)"', RECIPE.read_text(encoding="utf-8"))
    places = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    for found in (shutil.which(f"python{version}"), *map(str, reversed(places))):
        if found is not None and subprocess.run([found, "--version"], capture_output=True).returncode == 0:
            return found
    raise SystemExit(f"there is no Python {version} here: name one by --python")


def make_channel(python: str, scratch: Path) -> Path:
    """Return a channel with the interpreter, cobre's dependencies and what builds it."""
    environment, channel = scratch / "environment", scratch / "channel"
    subprocess.run([python, "-m", "venv", str(environment)], check=True)
    inside = str(environment / "bin" / "python")
    pip = [inside, "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--upgrade", *BUILD_TOOLS, f"{ROOT}[mpi]"], check=True)
    found = json.loads(subprocess.run([inside, "-c", _DESCRIBE], check=True, capture_output=True).stdout)
    packages = [interpreter_package(Path(found["base"]), found["version"], scratch, channel)]
    packages += [
        distribution_package(each, environment.resolve(), found["version"], scratch, channel)
        for each in found["distributions"]
        if each["name"] != "cobre-sddp"
    ]
    write_index(channel, packages)
    return channel


def interpreter_package(base: Path, version: str, scratch: Path, channel: Path) -> Path:
    """Return the package ``python``: an interpreter without tests and what was installed into it."""
    minor = ".".join(version.split(".")[:2])
    files = scratch / "python"
    skipped = shutil.ignore_patterns("site-packages", "test", "tests", "__pycache__", "config-*", "idlelib")
    shutil.copytree(base / "lib" / f"python{minor}", files / "lib" / f"python{minor}", ignore=skipped)
    (files / "lib" / f"python{minor}" / "site-packages").mkdir()
    for library in (base / "lib").glob("libpython*.so*"):
        shutil.copy(library, files / "lib" / library.name)
    (files / "bin").mkdir()
    for name in ("python", "python3", f"python{minor}"):
        shutil.copy(base / "bin" / f"python{minor}", files / "bin" / name)
    return assemble("python", version, files, [], channel)


def distribution_package(
    found: dict[str, Any], environment: Path, version: str, scratch: Path, channel: Path
) -> Path:
    """Return the package of an installed distribution; of highsbox the libraries alone."""
    name = conda_name(found["name"])
    files = scratch / "packages" / name
    files.mkdir(parents=True)
    for source in map(Path, found["files"]):
        if not source.is_file() or not source.is_relative_to(environment) or "__pycache__" in source.parts:
            continue
        place = source.relative_to(environment)
        if name == "highs":
            if not source.name.startswith("libhighs") or ".so" not in source.name:
                continue
            place = Path("lib") / source.name
        elif place.parts[0] == "bin" and source.read_bytes()[:2] == b"#!":
            continue  # starts the interpreter of that environment
        (files / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, files / place)
    minor = ".".join(version.split(".")[:2])
    needs = [] if name == "highs" else [f"python {minor}.*", *requirements(found["requires"], version)]
    return assemble(name, found["version"], files, needs, channel)


def conda_name(name: str) -> str:
    """Return the name of a distribution's package."""
    normal = re.sub(r"[-_.]+", "-", name).lower()
    return RENAMED.get(normal, normal)


def requirements(lines: Sequence[str], version: str) -> list[str]:
    """Return the packages that a distribution needs without extras; versions are as pip chose them."""
    from packaging.requirements import Requirement

    surroundings = {"python_version": ".".join(version.split(".")[:2]), "python_full_version": version}
    parts = map(Requirement, lines)
    return [
        conda_name(part.name)
        for part in parts
        if part.marker is None or part.marker.evaluate({**surroundings, "extra": ""})
    ]


def assemble(name: str, version: str, files: Path, depends: Sequence[str], channel: Path) -> Path:
    """Return the conda package of a directory of files."""
    made = rattler_build.assemble_package(
        name,
        version,
        PLATFORM,
        "0",
        channel / PLATFORM,
        files_dir=files,
        depends=list(depends),
        compression_level=1,
        detect_prefix=False,
    )
    return Path(made.path)


def write_index(channel: Path, packages: Sequence[Path]) -> None:
    """Write what solvers read of a channel."""
    entries = {}
    for path in packages:
        package = rattler_build.Package.from_file(str(path))
        content = path.read_bytes()
        entries[path.name] = {
            "name": package.name,
            "version": package.version,
            "build": package.build_string,
            "build_number": package.build_number,
            "depends": package.depends,
            "subdir": PLATFORM,
            "sha256": hashlib.sha256(content).hexdigest(),
            "size": len(content),
        }
    for subdir, listed in ((PLATFORM, entries), ("noarch", {})):
        (channel / subdir).mkdir(exist_ok=True)
        index = {"info": {"subdir": subdir}, "packages": {}, "packages.conda": listed}
        (channel / subdir / "repodata.json").write_text(json.dumps(index), encoding="utf-8")


def build(channel: Path, output: Path) -> Path:
    """Render the recipe, build its package with the channel, and run all its tests."""
    (variant,) = rattler_build.Stage0Recipe.from_file(str(RECIPE)).render()
    result = variant.run_build(
        tool_config=rattler_build.ToolConfiguration(test_strategy="skip"),
        output_dir=output,
        channels=[channel.as_uri()],
    )
    (path,) = map(Path, result.packages)
    package = rattler_build.Package.from_file(str(path))
    failed = []
    for number in range(package.test_count):
        outcome = package.run_test(number, channel=[channel.as_uri(), output.as_uri()])
        print(f"test {number}: {'passed' if outcome.success else 'failed'}", flush=True)
        if not outcome.success:
            failed.append(f"test {number}\n" + "\n".join(map(str, outcome.output)))
    if failed:
        raise SystemExit("\n".join(failed))
    return path


if __name__ == "__main__":
    main()
