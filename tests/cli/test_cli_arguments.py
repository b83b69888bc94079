"""Arguments, help, version: what needs neither a case nor compiled code."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from cli_helpers import check_envelope, run, strict_json

import cobre
from cobre.cli import main

WRONG = [
    ["train"],
    ["nonsense"],
    ["train", "case", "extra"],
    ["train", "case", "--nonsense"],
    ["train", "case", "--threads", "0"],
    ["train", "case", "--threads", "two"],
    ["train", "case", "--iterations", "0"],
    ["train", "case", "--iterations", "-3"],
    ["train", "case", "--iterations", "1.5"],
    ["train", "case", "--seed", "-1"],
    ["train", "case", "--seed", str(2**64)],
    ["train", "case", "--output-format", "xml"],
    ["train", "case", "--output"],
]


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_wrong_arguments_exit_1(arguments, capsys):
    assert main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "InvalidArgument" in captured.err
    assert "--help" in captured.err


def test_no_arguments_show_the_help_and_exit_1(capsys):
    assert main([]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Usage" in captured.err
    assert "validate" in captured.err


def test_wrong_arguments_as_json(capsys):
    assert main(["train", "case", "--threads", "0", "--output-format", "json"]) == 1
    envelope = strict_json(capsys.readouterr().out)
    check_envelope(envelope, "train", 1)
    assert envelope["errors"][0]["kind"] == "InvalidArgument"
    assert envelope["errors"][0]["context"] == {"field": "--threads", "value": "0"}
    assert envelope["data"] is None


def test_a_wrong_choice_is_shown_with_its_value(capsys):
    assert main(["train", "case", "--backend=smh"]) == 1
    shown = capsys.readouterr().err
    assert "--backend = smh" in shown
    assert "'--backend': 'smh' is not one of 'auto', 'mpi', 'tcp', 'shm', 'local'" in shown


def test_wrong_arguments_as_json_lines(capsys):
    assert main(["train", "case", "--output-format=json-lines", "--nonsense"]) == 1
    lines = [strict_json(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["type"] for line in lines] == ["started", "terminated", "result"]
    del lines[-1]["type"]
    check_envelope(lines[-1], "train", 1)


def test_validate_does_not_stream(capsys):
    assert main(["validate", "case", "--output-format", "json-lines"]) == 1
    last = strict_json(capsys.readouterr().out.splitlines()[-1])
    assert "'json-lines' is not one of" in last["errors"][0]["message"]


@pytest.mark.parametrize("command", ["train", "validate", "warmup", "version", None])
def test_help_tells_the_exit_codes(command, capsys):
    assert main([*filter(None, [command]), "--help"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    text = " ".join(captured.out.split())
    assert "Usage" in text
    assert "3 wrong input" in text
    assert "130" in text


@pytest.mark.parametrize("command", ["train", "launch", "init", None])
def test_help_shows_flags_without_a_type(command, capsys):
    assert main([*filter(None, [command]), "--help"]) == 0
    text = capsys.readouterr().out
    assert "bool" not in text.lower()
    assert "range>" not in text
    if command == "launch":
        assert "Put [rank] before each line" in text


def test_help_of_train_names_every_option(capsys):
    assert main(["train", "--help"]) == 0
    text = capsys.readouterr().out
    for option in (
        "--output",
        "--iterations",
        "--seed",
        "--threads",
        "--output-format",
        "--quiet",
        "--no-progress",
    ):
        assert option in text


def test_version_as_json(capsys):
    assert main(["version", "--output-format", "json"]) == 0
    envelope = strict_json(capsys.readouterr().out)
    check_envelope(envelope, "version", 0)
    assert envelope["data"]["version"] == cobre.__version__
    assert envelope["data"]["libraries"]["numba"] is not None


def test_version_for_people(capsys):
    assert main(["version"]) == 0
    out = capsys.readouterr().out
    assert f"cobre {cobre.__version__}" in out
    assert "numba" in out


def test_both_modules_run_the_same_program():
    for module in ("cobre", "cobre.sddp"):
        done = subprocess.run(
            [sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=True
        )
        assert done.stdout == f"cobre {cobre.__version__}\n"


def _loaded_after(code: str) -> set[str]:
    show = "import sys; print('\\n'.join(sys.modules), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{show}"], capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


def test_importing_cobre_is_light():
    loaded = _loaded_after("import cobre")
    assert "cobre" in loaded
    assert not {"numba", "pyarrow", "pydantic", "numpy", "rich", "typer"} & loaded


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["version"], ["train", "--nonsense"]])
def test_help_and_version_do_not_load_the_engine(arguments):
    loaded = _loaded_after(f"from cobre.cli import main; main({arguments!r})")
    assert not {"numba", "pyarrow", "numpy"} & loaded


def test_lazy_names_of_the_package():
    assert cobre.ValidationError.__module__ == "cobre.errors"
    assert set(cobre.__all__) <= set(dir(cobre))
    for name in cobre.__all__:
        assert getattr(cobre, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        cobre.nonsense  # noqa: B018


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_cannot_be_written():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "cobre", "version"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 4
    assert done.stderr == "error: standard output cannot be written: No space left on device\n"


def test_closed_standard_output():
    command = f"{shlex.quote(sys.executable)} -m cobre version >&-"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_unknown_command_in_a_process_of_its_own():
    done = run("nonsense")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr
