"""Neither ranks, threads nor the order of entities in the files change a bit of the noise."""

import json
import sys
import threading

import numpy as np
import pytest
import tree_ranks
from builders.uncertain_cases import shuffled_copy, synthetic_documents

import cobre.case
from cobre.case.format import layout
from cobre.comm import create_communicator
from cobre.comm.launch import launch
from cobre.stochastic import build_opening_tree
from cobre.stochastic.par import inflow_model

METHODS = ("saa", "lhs", "qmc_sobol", "qmc_halton", "owen_sobol", "owen_halton")


def all_methods(tmp_path):
    """Write a case with correlated PAR(3) inflows and noisy load whose months take turns in methods."""
    documents = synthetic_documents(hydros=7, order=3, correlation=0.6, openings=13)
    for number, stage in enumerate(documents[layout.STAGES]["stages"]):
        stage["sampling_method"] = METHODS[number % len(METHODS)]
    load = documents[layout.LOAD_STATS].to_pydict()
    load["std_mw"] = [0.1 * mean for mean in load["mean_mw"]]
    documents[layout.LOAD_STATS] = load
    path = tmp_path / "case"
    cobre.case.build(documents).save(path)
    return path


def test_order_of_entities_and_rows(tmp_path):
    path = all_methods(tmp_path)
    case = cobre.case.load(path)
    tree, model = build_opening_tree(case), inflow_model(case)
    assert {stage.sampling_method for stage in case.stages} == set(METHODS)
    assert np.abs(np.corrcoef(tree.noise[:, :7].T)[0, 1:]).max() > 0.2
    before = (path / "system" / "hydros.json").read_text()
    for seed in (1, 2):
        copy = tmp_path / f"shuffled-{seed}"
        other = shuffled_copy(path, copy, seed)
        assert [
            hydro["id"] for hydro in json.loads((copy / "system" / "hydros.json").read_text())["hydros"]
        ] != [hydro["id"] for hydro in json.loads(before)["hydros"]]
        again, same = build_opening_tree(other), inflow_model(other)
        for name in ("offset", "noise", "inflow_m3s", "load_mw", "ncs_mw"):
            assert getattr(again, name).tobytes() == getattr(tree, name).tobytes(), name
        for name in ("base_m3s", "psi", "sigma_m3s"):
            assert getattr(same, name).tobytes() == getattr(model, name).tobytes(), name


@pytest.mark.skipif(sys.platform != "linux", reason="shm needs Linux")
def test_ranks(tmp_path):
    path = all_methods(tmp_path)
    alone = tree_ranks.tree_digest(None, path)
    assert tree_ranks.tree_digest(create_communicator("local"), path) == alone
    assert launch(tree_ranks.tree_digest, 3, backend="shm", args=(path,), pin=False) == [alone] * 3
    assert launch(tree_ranks.tree_digest, 2, backend="tcp", args=(path,), pin=False) == [alone] * 2


def test_threads(tmp_path):
    """Trees that threads draw at the same time are all the same one."""
    case = cobre.case.load(all_methods(tmp_path))
    expected = build_opening_tree(case).noise.tobytes()
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(build_opening_tree(case).noise.tobytes()))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4
