"""The state of an extension in policies and checkpoints: energy in batteries."""

import pytest
from builders.case_files import write_files
from power_features import battery_under_noise

import cobre.case
from cobre.errors import OutputError
from cobre.policy import latest_checkpoint, read_checkpoint, read_policy_directory, write_flatbuffers
from cobre.sddp import train


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    return cobre.case.load(write_files(tmp_path_factory.mktemp("case"), battery_under_noise().files))


def test_a_resumed_run_and_a_second_thread_make_the_same_bytes(case, tmp_path):
    whole = train(case, iterations=6)
    assert train(case, iterations=6, threads=2).policy_sha256 == whole.policy_sha256
    train(case, iterations=3, output=tmp_path, checkpoint_every=3)
    found = latest_checkpoint(tmp_path / "checkpoints")
    kinds = [part.kind for part in read_checkpoint(found.path).policy.components]
    assert kinds == ["storage", "battery_energy"]
    resumed = train(case, iterations=6, output=tmp_path, resume=True)
    assert resumed.policy_sha256 == whole.policy_sha256


def test_a_warm_start_takes_the_cuts_over_and_the_format_of_cobre_rs_cannot_hold_them(case, tmp_path):
    trained = train(case, iterations=6, output=tmp_path)
    warm = train(case, iterations=1, warm_start=tmp_path / "policy")
    assert warm.lower_bound >= trained.lower_bound * (1.0 - 1e-12)
    with pytest.raises(OutputError, match="battery_energy of entity 0"):
        write_flatbuffers(tmp_path / "foreign", read_policy_directory(tmp_path / "policy"), case)
    assert not (tmp_path / "foreign").exists()
