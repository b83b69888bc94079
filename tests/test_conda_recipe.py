"""The conda recipe renders, and asks for what the Python package asks for."""

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from cobre._version import __version__

ROOT = Path(__file__).resolve().parents[1]
RECIPE = ROOT / "conda-recipe" / "recipe.yaml"

CONDA_NAMES = {"flatbuffers": "python-flatbuffers", "highsbox": "highs"}
"""Names that differ; HiGHS itself is a package of conda."""


def wheel_requirements(table: str) -> dict[str, str]:
    """Versions of a list of requirements in pyproject.toml, by conda name."""
    text = (ROOT / "pyproject.toml").read_text()
    (listed,) = re.findall(rf"^{table} = \[(.*?)\]$", text, re.S | re.M)
    found = [Requirement(line) for line in re.findall(r'"(.*?)"', listed)]
    return {
        CONDA_NAMES.get(part.name, part.name): str(part.specifier) for part in found if part.name != "highspy"
    }


def specifiers(version: str) -> set[str]:
    return set(version.replace(" ", "").split(","))


@pytest.fixture(scope="module")
def recipe():
    rattler_build = pytest.importorskip("rattler_build", reason="py-rattler-build is not installed")
    (variant,) = rattler_build.Stage0Recipe.from_file(str(RECIPE)).render()
    return variant.recipe.to_dict()


def test_version_is_that_of_the_package(recipe):
    assert recipe["package"] == {"name": "cobre", "version": __version__}


def test_package_is_for_any_python_on_linux(recipe):
    assert recipe["build"]["noarch"] == "python"
    minimum = re.search(r'requires-python = ">=(.*?)"', (ROOT / "pyproject.toml").read_text())[1]
    assert "__linux" in recipe["requirements"]["run"]
    assert f"python >={minimum}" in recipe["requirements"]["run"]
    assert f"python {minimum}.*" in recipe["requirements"]["host"]


def test_requirements_are_those_of_the_wheel(recipe):
    listed = dict(line.split(" ", 1) for line in recipe["requirements"]["run"] if line != "__linux")
    del listed["python"]
    wanted = wheel_requirements("dependencies")
    assert {name: specifiers(version) for name, version in listed.items()} == {
        name: specifiers(version) for name, version in wanted.items()
    }


def test_build_asks_for_no_wheel_of_highs(recipe):
    """Otherwise `pip check` in the finished package would miss highsbox, which conda does not have."""
    script = recipe["build"]["script"][0]
    expression = re.search(r"sed -i '/(.*?)/d' pyproject.toml", script)[1].replace("\\|", "|")
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    gone = {
        Requirement(line.strip(' ",').replace('"', "")).name for line in lines if re.search(expression, line)
    }
    assert gone == {"highsbox", "highspy"}
