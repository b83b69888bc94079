"""The repository keeps its own rules: style, types, documented commands and snippets."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def run(*command: str) -> None:
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert finished.returncode == 0, finished.stdout + finished.stderr


@pytest.mark.parametrize("command", [("check",), ("format", "--check")], ids=lambda c: c[0])
def test_ruff(command):
    run(sys.executable, "-m", "ruff", *command, ".")


def test_mypy():
    run(sys.executable, "-m", "mypy")


def marked_command(name: str) -> str:
    """The one command that README.md gives under this mark."""
    text = (ROOT / "README.md").read_text()
    (block,) = re.findall(rf"<!-- {name} -->\n```sh\n(.*?)\n```\n<!-- end -->", text, re.S)
    assert "\n" not in block
    return block


def test_readme_gives_both_commands():
    main, test = marked_command("main-command"), marked_command("test-command")
    case = re.search(r"python -m cobre\.sddp train (\S+)", main)
    assert case is not None
    assert (ROOT / case.group(1) / "config.json").is_file()
    assert '-e ".[test]"' in test
    assert "-m pytest" in test


def test_ci_runs_the_command_of_the_readme():
    """The script, with an ``eval`` that only prints, shows what it would run."""
    script = (ROOT / ".ci" / "run").read_text().replace('eval "$command"', 'printf "%s" "$command"')
    shown = subprocess.run(
        ["bash", "-c", script, str(ROOT / ".ci" / "run")],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert shown.stdout.splitlines()[-1] == marked_command("test-command")


def test_ci_tries_the_wheel_on_every_python_of_the_project():
    """The script, told to print, names one interpreter for each version that pyproject.toml lists."""
    script = (ROOT / ".ci" / "wheel").read_text().replace("exec tools/check_wheel.sh", "printf '%s\\n'")
    path = ROOT / ".ci" / "wheel"
    shown = subprocess.run(["bash", "-c", script, str(path)], capture_output=True, text=True, cwd=ROOT)
    if "there is no Python" in shown.stderr:
        pytest.skip(shown.stderr.strip())
    names = "import sys; print('%d.%d' % sys.version_info[:2])"
    found = [
        subprocess.run([python, "-c", names], capture_output=True, text=True, check=True).stdout.strip()
        for python in shown.stdout.split()
    ]
    listed = re.findall(r":: Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    assert found == listed == ["3.10", "3.11", "3.12", "3.13"]


def python_snippets() -> list[tuple[str, str]]:
    files = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [
        (f"{file.name}-{number}", snippet)
        for file in files
        for number, snippet in enumerate(re.findall(r"^```python\n(.*?)^```", file.read_text(), re.S | re.M))
    ]


@pytest.mark.parametrize("snippet", [s for _, s in python_snippets()], ids=[n for n, _ in python_snippets()])
def test_documented_python_runs(snippet, monkeypatch, tmp_path):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")  # what a snippet writes must not stay here
    monkeypatch.chdir(tmp_path)
    exec(compile(snippet, "<snippet>", "exec"), {})


def test_no_machine_paths():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode != 0:
        pytest.skip("not a git checkout")
    pattern = re.compile(r"(/root/|/work/|/home/[a-z]+/|/tmp/[a-z])")
    found = [
        f"{name}: {line.strip()[:80]}"
        for name in tracked.stdout.splitlines()
        if name.endswith((".py", ".md", ".toml", ".json", "run")) and name != "tests/test_repository.py"
        for line in (ROOT / name).read_text().splitlines()
        if pattern.search(line)
    ]
    assert found == []


PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_of_a_page_are_whole(page):
    """A row with another number of cells, or a table without a blank line before it, is shown as text."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M)
    assert r"\"" not in prose
    for paragraph in re.split(r"\n\s*\n", prose):
        rows = paragraph.strip("\n").split("\n")
        if any(row.startswith("|") for row in rows):
            assert all(row.startswith("|") for row in rows), rows[0]
            assert re.fullmatch(r"[|: -]+", rows[1]), rows[0]
            widths = [row.replace(r"\|", "").count("|") for row in rows]
            assert len(set(widths)) == 1, rows[widths.index(next(w for w in widths if w != widths[0]))]


def test_benchmarks_can_be_imported():
    names = sorted(path.stem for path in (ROOT / "asv_benchmarks/benchmarks").glob("[a-z]*.py"))
    code = "; ".join(f"import benchmarks.{name}" for name in names)
    finished = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "asv_benchmarks", capture_output=True, text=True, timeout=120
    )
    assert finished.returncode == 0, finished.stderr
