"""The state of an extension in policies and checkpoints: energy in batteries."""

import pytest
from feature_files import write_files
from power_features import battery_under_noise

import cobre.case
from cobre.errors import OutputError
from cobre.policy_store import latest_checkpoint, read_checkpoint
from cobre.results import write_policy
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


def test_a_warm_start_takes_the_cuts_over(case, tmp_path):
    trained = train(case, iterations=6, output=tmp_path)
    warm = train(case, iterations=1, warm_start=tmp_path / "policy")
    assert warm.lower_bound >= trained.lower_bound * (1.0 - 1e-12)


def test_the_format_of_cobre_rs_cannot_hold_it(case, tmp_path):
    trained = train(case, iterations=1)
    with pytest.raises(OutputError, match="cobre-rs cannot hold"):
        write_policy(tmp_path / "policy", case, trained)
    assert not (tmp_path / "policy").exists()
