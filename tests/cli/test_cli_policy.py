"""``cobre policy``: what a stored policy is, in another format, and against another one."""

from pathlib import Path

import pytest
from cli_helpers import check_envelope, copy_example, edit_json, run, snapshot, strict_json

from cobre.cli import main
from cobre.policy.foreign import PolicyDirectory


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> tuple[Path, Path]:
    """A case, and the output of training it with 3 iterations."""
    root = tmp_path_factory.mktemp("trained")
    case = copy_example(root)
    assert main(["train", str(case), "--iterations", "3", "--output", str(root / "out"), "--quiet"]) == 0
    return case, root / "out"


def answer(capsys, *arguments: object, code: int = 0) -> dict:
    """Run a command of ``cobre policy`` with JSON output, and return its envelope."""
    assert main(["policy", *map(str, arguments), "--output-format", "json"]) == code
    envelope = strict_json(capsys.readouterr().out)
    check_envelope(envelope, f"policy {arguments[0]}", code)
    return envelope


def test_show(trained, capsys):
    _, out = trained
    data = answer(capsys, "show", out / "policy")["data"]
    assert (data["format"], data["kind"], data["iterations"]) == ("cobre", "policy", 3)
    assert data["entities"] == {"buses": 1, "hydros": 2, "thermals": 3}
    assert data["lower_bound_kind"] == "bound"
    assert [node["end_date"] for node in data["nodes"]] == [
        "2024-06-01",
        "2024-07-01",
        "2024-08-01",
        "2024-09-01",
    ]
    assert answer(capsys, "show", out / "checkpoints" / "latest")["data"]["kind"] == "checkpoint"
    assert main(["policy", "show", str(out / "policy")]) == 0
    shown = capsys.readouterr().out
    for text in (
        "Policy of cobre",
        data["digest"],
        data["study"],
        "hydros 2",
        "(bound)",
        "hydro_storage[Serra]",
    ):
        assert text in shown


def test_convert_there_and_back_is_the_same_policy(trained, tmp_path, capsys):
    case, out = trained
    there, back = tmp_path / "there", tmp_path / "back"
    data = answer(capsys, "convert", out / "policy", there, "--to", "cobre-rs", "--case", case)["data"]
    assert sorted(path.name for path in there.iterdir()) == ["basis", "cuts", "manifest.bin"]
    again = answer(capsys, "convert", there, back, "--to", "cobre", "--case", case)["data"]
    assert again["policy_sha256"] == data["policy_sha256"]
    assert again["lower_bound_kind"] == "estimate"
    assert answer(capsys, "compare", out / "policy", back)["data"]["equal"] is True
    assert answer(capsys, "compare", there, back, "--case", case)["data"]["same_cuts"] is True


def test_the_version_that_shall_load_it_is_the_users_choice(trained, tmp_path, capsys):
    case, out = trained
    convert = ("convert", out / "policy", tmp_path / "rs", "--to", "cobre-rs", "--case", case)
    (warning,) = answer(capsys, *convert)["warnings"]
    assert warning["kind"] == "NoReaderVersion"
    assert answer(capsys, *convert, "--force", "--for-version", "0.18.0")["warnings"] == []
    assert PolicyDirectory(tmp_path / "rs").manifest.software_version == "0.18.0"


def test_the_policy_of_a_checkpoint_on_its_own(trained, tmp_path, capsys):
    _, out = trained
    answer(capsys, "convert", out / "checkpoints" / "latest", tmp_path / "policy", "--to", "cobre")
    assert main(["policy", "compare", str(out / "policy"), str(tmp_path / "policy")]) == 0
    assert "The same policy" in capsys.readouterr().out


def test_compare_names_what_differs(trained, tmp_path, capsys):
    case, out = trained
    other = tmp_path / "other"
    assert (
        main(["train", str(case), "--iterations", "4", "--seed", "7", "--output", str(other), "--quiet"]) == 0
    )
    envelope = answer(capsys, "compare", out / "policy", other / "policy", code=5)
    assert envelope["errors"][0]["kind"] == "PoliciesDiffer"
    assert envelope["summary"]["topics"] == ["bounds", "cuts", "study", "training"]
    messages = [item["message"] for item in envelope["data"]["differences"]]
    assert "options of training (tree_seed): 42 in A, 7 in B" in messages
    assert "completed_iterations: 3 in A, 4 in B" in messages


def test_what_is_missing_or_taken_is_named_and_nothing_lost(trained, tmp_path, capsys):
    _, out = trained
    policy, target = out / "policy", tmp_path / "target"
    error = answer(capsys, "convert", policy, target, "--to", "cobre-rs", code=1)["errors"][0]
    assert error["context"]["argument"] == "--case"
    target.mkdir()
    (target / "mine.txt").write_text("mine")
    before = snapshot(target)
    for force in ([], ["--force"]):
        answer(capsys, "convert", policy, target, "--to", "cobre", *force, code=2)
    assert snapshot(target) == before
    answer(capsys, "convert", policy, policy, "--to", "cobre", code=1)
    error = answer(capsys, "show", tmp_path / "nothing", code=3)["errors"][0]
    assert error["context"]["file"] == str(tmp_path / "nothing")
    assert answer(capsys, "convert", policy, tmp_path / "x", "--to", "cobre", "--case", tmp_path, code=3)[
        "errors"
    ]


def test_the_case_of_another_study_is_a_warning(trained, tmp_path, capsys):
    _, out = trained
    other = copy_example(tmp_path)
    edit_json(other / "config.json", lambda config: config["training"].update(tree_seed=5))
    envelope = answer(capsys, "convert", out / "policy", tmp_path / "rs", "--to", "cobre-rs", "--case", other)
    assert any("42 in the policy, 5 in the case" in problem["message"] for problem in envelope["warnings"])


def test_usage_errors_name_the_command():
    ended = run("policy", "convert", "a", "b", "--output-format", "json")
    check_envelope(strict_json(ended.stdout), "policy convert", 1)
    ended = run("policy", "--output-format", "json")
    assert ended.returncode == 1
    assert "cobre policy --help" in ended.stdout


@pytest.mark.parametrize("command", ["show", "convert", "compare"])
def test_help_has_examples(command, capsys):
    assert main(["policy", command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert f"cobre policy {command} " in " ".join(shown.split())
    assert "Exit codes" in shown


def test_a_split_study_by_the_command_line(trained, tmp_path, capsys):
    """The policy of the whole study, in either format, values the end of its first stages."""
    case, out = trained
    rs = tmp_path / "rs"
    answer(capsys, "convert", out / "policy", rs, "--to", "cobre-rs", "--case", case)
    digests = []
    for name, boundary in (("own", out / "policy"), ("foreign", rs)):
        part = copy_example(tmp_path / name)
        edit_json(
            part / "config.json",
            lambda config, path=boundary: config.update(policy={"boundary": {"path": str(path)}}),
        )
        edit_json(part / "stages.json", lambda document: document.update(stages=document["stages"][:2]))
        for file in ("inflow_seasonal_stats", "load_seasonal_stats"):
            cut_rows(part / "scenarios" / f"{file}.parquet")
        assert main(["train", str(part), "--iterations", "5", "--output-format", "json"]) == 0
        digests.append(strict_json(capsys.readouterr().out)["data"]["policy_sha256"])
    assert digests[0] == digests[1]


def cut_rows(path: Path) -> None:
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    if path.exists():
        table = pq.read_table(path)
        pq.write_table(table.filter(pc.less(table["stage_id"], 2)), path)
