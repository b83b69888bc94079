"""The site: links between pages, commands of the how-to guides, pages made from code, and the build."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
GENERATED = {DOCS / "reference" / "commands.md", DOCS / "reference" / "case-keys.md"}
GUIDES = sorted((DOCS / "how-to").glob("*.md"))
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(set(DOCS.rglob("*.md")) - GENERATED)]
_FENCE = re.compile(r"^(`{3,}|~{3,}).*?^\1\s*?$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generated_pages", DOCS / "generated_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """What ``#...`` may name: headings, as they are turned into anchors by Sphinx and GitHub."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        if linked in GENERATED:
            continue
        assert linked.exists(), f"{page.name}: {target}"
        assert not anchor or anchor in anchors(linked), f"{page.name}: {target}"


def test_every_page_is_in_the_contents() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    listed = {
        line for block in re.findall(r"```\{toctree\}.*?```", index, re.DOTALL) for line in block.split()
    }
    written = {str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.rglob("*.md")} - {"index"}
    made = {str(page.relative_to(DOCS).with_suffix("")) for page in GENERATED}
    assert written | made <= listed


def guide_commands(guide: Path) -> str:
    blocks = re.findall(r"^```sh\n(.*?)^```", guide.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return "".join(blocks)


def documented_commands() -> list[tuple[str, str]]:
    """Every line with a command of cobre in a block of commands, and where it is."""
    fence = re.compile(r"^```([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return [
        (page.name, line)
        for page in TEXTS
        for kind, block in fence.findall(page.read_text(encoding="utf-8"))
        if kind in ("sh", "text", "") or kind.startswith("{code-cell}")
        for line in block.splitlines()
        if re.match(r"(cobre|(mpiexec|srun) .*-m cobre\.sddp) \w", line)
    ]


def test_documented_commands_have_these_options(pages: ModuleType) -> None:
    known = pages.commands()
    found = documented_commands()
    assert len(found) > 50
    for page, line in found:
        words = shlex.split(re.sub(r"^.*-m cobre\.sddp", "cobre", line), comments=True)
        ends = [place for place, word in enumerate(words) if word in ("|", "||", "&&", ">", "<", "--", ";")]
        words = words[: ends[0]] if ends else words
        name = next((name for size in (3, 2) if (name := " ".join(words[:size])) in known), None)
        assert name is not None, f"{page}: {line}"
        options = {option for parameter in known[name].params for option in parameter.opts} | {"--help"}
        used = {word.partition("=")[0] for word in words if re.match(r"-[-a-z]", word)}
        assert used <= options, f"{page}: {line}"


@pytest.mark.sweep
@pytest.mark.parametrize("guide", [*filter(guide_commands, GUIDES)], ids=lambda guide: guide.stem)
def test_commands_of_a_guide_run(guide: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    finished = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", guide_commands(guide)],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr


def test_commands_page_has_every_command_and_option(pages: ModuleType) -> None:
    text = pages.commands_page()
    sections = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    assert list(sections) == list(pages.commands())
    assert {"cobre", "cobre train", "cobre policy convert", "cobre launch"} <= set(sections)
    for name, command in pages.commands().items():
        for parameter in command.params:
            for option in parameter.opts:
                if option.startswith("--") and not getattr(parameter, "hidden", False):
                    assert re.search(rf"^\| `.*{option}\b.*` \| \S", sections[name], re.MULTILINE), (
                        name,
                        option,
                    )


def test_keys_page_has_every_file_and_column(pages: ModuleType) -> None:
    from cobre.case.format import describe, schema_paths

    text = pages.keys_page()
    sections = dict(re.findall(r"^## `(.*?)`\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    assert list(sections) == list(schema_paths())
    columns = [column["name"] for column in describe("scenarios/inflow_history.parquet")["columns"]]
    assert re.findall(r"^\| `(\w+)`", sections["scenarios/inflow_history.parquet"], re.MULTILINE) == columns
    assert (
        "| **`source_bus_id`** | integer | Where the direct flow starts. |" in sections["system/lines.json"]
    )
    assert "| `losses_percent` | number ≥ 0 ≤ 100 or null |" in sections["system/lines.json"]


@pytest.mark.sweep
def test_site_builds_without_warnings(tmp_path: Path) -> None:
    """Executes the notebooks, each of which asserts a known number."""
    for name in ("sphinx", "myst_nb", "furo", "plotly"):
        pytest.importorskip(name)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(DOCS)]
    finished = subprocess.run(
        [*command, "-d", str(tmp_path / "doctrees"), str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    page = (tmp_path / "site" / "tutorial" / "first-study.html").read_text(encoding="utf-8")
    assert page.count("Plotly.newPlot(") == 4
    assert (tmp_path / "site" / "_static" / "plotly.min.js").stat().st_size > 1_000_000
