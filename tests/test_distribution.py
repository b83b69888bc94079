"""The name of the distribution, and the other one that has a package ``cobre``."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cobre._distribution import DISTRIBUTION, install_hint

ROOT = Path(__file__).resolve().parents[1]
PROJECT = (ROOT / "pyproject.toml").read_text()
FOREIGN_INIT = "from . import _native\n"


def test_hints_name_the_distribution_and_extras_that_exist():
    assert f'\nname = "{DISTRIBUTION}"\n' in PROJECT
    assert '\ncobre = "cobre.cli:main"\n' in PROJECT
    for extra in ("report", "mpi"):
        assert f"\n{extra} = [" in PROJECT
        assert install_hint(extra) == f"pip install 'cobre-sddp[{extra}]'"


def imported(directory: Path, code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=directory, capture_output=True, text=True)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of what ``import cobre`` reads."""
    target = tmp_path / "cobre"
    shutil.copytree(ROOT / "cobre", target, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def test_files_of_the_other_distribution_are_named(package: Path):
    assert imported(package.parent, "import cobre").stderr == ""
    (package / "_native.abi3.so").touch()
    done = imported(package.parent, "import cobre; print(cobre.__version__)")
    assert done.returncode == 0
    assert "cobre-python and cobre-sddp are both installed" in done.stderr
    assert "pip uninstall" in done.stderr


@pytest.mark.parametrize("module", ["cobre.cli", "cobre.case", "cobre.sddp"])
def test_a_package_that_the_other_distribution_has_replaced_is_refused(package: Path, module: str):
    (package / "_native.py").touch()
    (package / "__init__.py").write_text(FOREIGN_INIT)
    done = imported(package.parent, f"import {module}")
    assert done.returncode == 1
    assert "ImportError: cobre-python has replaced" in done.stderr.splitlines()[-1]
