"""The worked examples of CONTRIBUTING.md: put into a copy of the package, they do what is stated."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
CHECKS = re.findall(r"^```python check=(\w+)$", TEXT, re.MULTILINE)


def section_of(check: str) -> str:
    """Return the section of the document that ends in a check."""
    return next(part for part in re.split(r"^## ", TEXT, flags=re.MULTILINE) if f"check={check}\n" in part)


def blocks(text: str, kind: str, key: str) -> list[tuple[str, str]]:
    return re.findall(rf"^```{kind} {key}=(\S+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def apply(file: Path, change: str) -> None:
    """Replace the lines of a diff without line numbers, which must occur once."""
    lines = change.splitlines()
    old, new = ("".join(f"{line[1:]}\n" for line in lines if line[0] in kept) for kept in (" -", " +"))
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{file.name} does not hold once:\n{old}"
    file.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize("check", CHECKS)
def test_worked_example(tmp_path: Path, check: str) -> None:
    section = section_of(check)
    shutil.copytree(ROOT / "cobre", tmp_path / "cobre", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for name, code in blocks(section, "python", "file"):
        assert not (tmp_path / name).exists()
        (tmp_path / name).write_text(code, encoding="utf-8")
    for name, change in blocks(section, "diff", "file"):
        apply(tmp_path / name, change)
    ((_, script),) = blocks(section, "python", "check")
    located = f"import cobre\nassert cobre.__file__.startswith({str(tmp_path)!r})\n{script}"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    finished = subprocess.run(
        [sys.executable, "-c", located],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert finished.returncode == 0, finished.stderr


def test_every_row_of_the_table_has_its_section() -> None:
    additions, _, _ = TEXT.partition("\n## One number")
    headings = {
        heading.lower().replace(" ", "-") for heading in re.findall(r"^## (.*)$", additions, re.MULTILINE)
    }
    assert set(re.findall(r"^\| \[.*?\]\(#([a-z-]+)\)", TEXT, re.MULTILINE)) == headings
    assert sorted(CHECKS) == ["byte", "config", "number", "risk", "selection", "stopping"]


def test_a_battery_is_five_files_of_the_package() -> None:
    named = {
        str(path.relative_to(ROOT / "cobre"))
        for path in (ROOT / "cobre").rglob("*.py")
        if "batter" in path.read_text(encoding="utf-8").lower()
    }
    assert named == {
        "case/balance/capacity.py",
        "case/catalogue.py",
        "case/format/schema/batteries.py",
        "lp/entities/battery.py",
        "results/simulation/extensions/battery.py",
    }
