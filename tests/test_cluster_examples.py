"""Scripts of ``examples/cluster``: shells parse them, and cobre accepts every command in them."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
import typer
import typer.main
from builders.paths import EXAMPLES

from cobre.cli.app import app

CLUSTER = EXAMPLES / "cluster"
SCRIPTS = sorted(path.name for path in CLUSTER.glob("*.sbatch"))
VALUES = {
    "case": str(EXAMPLES / "random-inflow"),
    "CASE": str(EXAMPLES / "random-inflow"),
    "output": "out",
    "ranks": "4",
    "threads": "8",
    "resume": "--resume",
    "resume[@]": "--resume",
}


def parses(script: str) -> None:
    done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def sections(recipe: str) -> dict[str, str]:
    parts = re.split(r"^%(\w+)\n", recipe, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def texts() -> dict[str, str]:
    return {
        path.name: path.read_text(encoding="utf-8") for path in sorted(CLUSTER.iterdir()) if path.is_file()
    }


def commands(text: str) -> list[list[str]]:
    """Arguments of each command of cobre in a text, with the variables of the scripts filled in."""
    found = []
    joined = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in joined.replace("\\\n", " ").splitlines():
        start = re.search(r"(?:^|[ `;])(?:cobre (?=[a-z-])|python -m cobre\.sddp )(?![^`]*`\s*\|)", line)
        if start is None or line.lstrip().startswith("|"):
            continue
        module = "cobre.sddp" in start[0]
        rest = re.split(r"[`;>&|)]", line[start.end() :])[0]
        filled = re.sub(r"\$\{?([A-Za-z_]+(?:\[@\])?)\}?", lambda name: VALUES[name[1]], rest)
        arguments = shlex.split(filled)
        if not arguments or arguments[0] not in KNOWN:
            continue
        found.append(arguments)
        assert not module or arguments[0] == "train"
    return found


ROOT_COMMAND = typer.main.get_command(app)
KNOWN = set(ROOT_COMMAND.commands)


def accept(arguments: list[str]) -> None:
    """Parse a command line and check its values, without running it."""
    name, *rest = arguments
    with ROOT_COMMAND.make_context("cobre", arguments, resilient_parsing=True) as context:
        ROOT_COMMAND.commands[name].make_context(name, rest, parent=context)


@pytest.mark.parametrize("name", SCRIPTS)
def test_bash_parses_the_script(name: str) -> None:
    parses((CLUSTER / name).read_text(encoding="utf-8"))


def test_shells_parse_the_recipe_and_the_launcher() -> None:
    parts = sections(texts()["apptainer.def"])
    assert {"files", "post", "environment", "runscript", "test"} <= set(parts)
    for name in ("post", "environment", "runscript", "test"):
        parses(parts[name])
    import yaml

    job = yaml.safe_load(texts()["mpijob.yaml"])
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v2beta1", "MPIJob")
    replicas = job["spec"]["mpiReplicaSpecs"]
    (launcher,) = replicas["Launcher"]["template"]["spec"]["containers"]
    parses(launcher["args"][0])
    ranks = int(re.search(r"mpiexec -n (\d+)", launcher["args"][0])[1])
    assert ranks == replicas["Worker"]["replicas"] * job["spec"]["slotsPerWorker"]
    images = {c["image"] for r in replicas.values() for c in r["template"]["spec"]["containers"]}
    assert images == {"REGISTRY/cobre:0.1.0"}
    assert "REGISTRY/cobre:0.1.0" in texts()["Containerfile"]


def test_cobre_accepts_every_command() -> None:
    found = {name: commands(text) for name, text in texts().items()}
    assert {name: [line[0] for line in lines] for name, lines in found.items() if name != "README.md"} == {
        "Containerfile": ["warmup"],
        "apptainer.def": ["warmup"] * 3 + ["init", "train", "train", "train"],
        "many-nodes.sbatch": ["warmup", "train"],
        "mpijob.yaml": ["train"],
        "one-node.sbatch": ["warmup", "train"],
        "preemptible.sbatch": ["warmup", "train"],
    }
    for line in (line for lines in found.values() for line in lines):
        accept(line)


def test_a_wrong_command_would_be_noticed() -> None:
    accept(["train", VALUES["case"], "--ranks", "2"])
    usage_error = typer.BadParameter.__mro__[1]  # click is a part of typer, or a package of its own
    with pytest.raises(usage_error, match="--rank-count"):
        accept(["train", VALUES["case"], "--rank-count", "2"])
    with pytest.raises(typer.BadParameter, match="integer"):
        accept(["train", VALUES["case"], "--ranks", "none"])


def test_the_readme_names_every_file_and_states_what_was_not_tried() -> None:
    readme = texts()["README.md"]
    assert {name for name in texts() if f"]({name})" not in readme} == {"README.md"}
    assert "not run on a cluster" in readme


def test_the_recipe_copies_a_private_cache_once(tmp_path: Path) -> None:
    """The script of the image, with a cache beside it."""
    script = sections(texts()["apptainer.def"])["runscript"]
    source, target = tmp_path / "image", tmp_path / "home" / "cache"
    (source / "py").mkdir(parents=True)
    (source / "py" / "kernel.nbc").write_bytes(b"code")
    script = script.replace("/opt/cobre-cache", str(source))
    run = ["bash", "-c", f"set -e\n{script}", "image", "echo", "started"]
    for _ in range(2):
        done = subprocess.run(
            run, env={"COBRE_CACHE_DIR": str(target), "PATH": "/usr/bin:/bin"}, capture_output=True
        )
        assert done.stdout == b"started\n", done.stderr
    assert (target / "py" / "kernel.nbc").read_bytes() == b"code"
    assert [path.stat().st_mode & 0o777 for path in (target, target / "py")] == [0o700, 0o700]
    assert [path.name for path in target.parent.iterdir()] == ["cache"]
