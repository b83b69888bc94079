"""A policy directory gives back every bit, and any damage to it is found and named."""

import contextlib
import copy
import json
import shutil
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from stored import checkpoint, node, policy, same, storage

from cobre.errors import OutputError, ValidationError
from cobre.policy import (
    CheckpointData,
    Fingerprint,
    NodeCuts,
    Policy,
    StartingBases,
    StoredDirectory,
    history_columns,
    history_records,
    latest_checkpoint,
    read_checkpoint,
    read_policy_directory,
    write_checkpoint,
    write_policy_directory,
)
from cobre.policy.store.manifest import manifest_bytes

FLOATS = st.floats(allow_nan=False, width=64)
SLOW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    states, passes = draw(st.integers(0, 4)), draw(st.integers(1, 3))
    iterations = draw(st.integers(0, 3))
    nodes, cuts = [], []
    for position in range(draw(st.integers(1, 3))):
        loaded, made = draw(st.integers(0, 2)), iterations * passes
        count = loaded + made
        steps = draw(hnp.arrays(np.int64, count, elements=st.integers(1, 2**40)))
        cuts.append(
            NodeCuts(
                slot=np.cumsum(steps),
                iteration=np.append(np.zeros(loaded, np.int64), np.repeat(np.arange(iterations) + 1, passes)),
                forward_pass=draw(hnp.arrays(np.int64, count, elements=st.integers(0, passes - 1))),
                intercept=draw(hnp.arrays(np.float64, count, elements=FLOATS)),
                slopes=draw(hnp.arrays(np.float64, (count, states), elements=FLOATS)),
                active=draw(hnp.arrays(np.bool_, count)),
            )
        )
        nodes.append(node(position, loaded_cuts=loaded, future_cost_floor=draw(FLOATS)))
    return Policy(
        components=tuple(storage(h) for h in range(states)),
        nodes=tuple(nodes),
        transitions=(),
        cuts=tuple(cuts),
        is_chain=draw(st.booleans()),
        forward_passes=passes,
        seed=draw(st.integers(0, 2**64 - 1)),
        completed_iterations=iterations,
        lower_bounds=draw(hnp.arrays(np.float64, iterations, elements=FLOATS)),
        upper_bounds=draw(hnp.arrays(np.float64, iterations, elements=FLOATS)),
        fingerprint=Fingerprint({}),
        cost_scale_factor=draw(st.floats(1e-300, 1e300)),
    )


@SLOW
@given(stored=policies(), compress=st.booleans())
def test_policy_comes_back_bit_for_bit(tmp_path: Path, stored: Policy, compress: bool) -> None:
    write_policy_directory(tmp_path / "policy", stored, compress=compress)
    found = read_policy_directory(tmp_path / "policy")
    assert same(stored, found)
    assert found.sha256() == stored.sha256()
    assert [path.name for path in tmp_path.iterdir()] == ["policy"]


@SLOW
@given(
    array=st.sampled_from(["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]).flatmap(
        lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0))
    )
)
def test_named_arrays_come_back_bit_for_bit(tmp_path: Path, array: np.ndarray) -> None:
    shutil.rmtree(tmp_path / "root", ignore_errors=True)
    path = write_checkpoint(tmp_path / "root", replace(checkpoint(), extra_arrays={"one": array}))
    assert same(read_checkpoint(path).extra_arrays["one"], array)


@pytest.mark.parametrize("sizes", [{}, {"hydros": 0}, {"iterations": 0}, {"nodes": 1, "passes": 1}])
def test_checkpoint_comes_back_bit_for_bit(tmp_path: Path, sizes: dict[str, int]) -> None:
    stored = checkpoint(**sizes)
    path = write_checkpoint(tmp_path, stored)
    assert same(read_checkpoint(path), stored)
    assert same(read_policy_directory(path), stored.policy)


def test_checkpoint_without_what_is_optional(tmp_path: Path) -> None:
    stored = CheckpointData(policy())
    assert same(read_checkpoint(write_checkpoint(tmp_path, stored)), stored)


def test_numbers_that_compare_equal_stay_apart(tmp_path: Path) -> None:
    bits = np.array([0x7FF8000000000001, 0x7FF8000000000002, 1 << 63, 0, 1], np.uint64)
    numbers = bits.view(np.float64)
    stored = checkpoint()
    history = {"bound": np.tile(numbers, 2)[:3]}
    stored = replace(stored, history=history, extra_arrays={"odd": numbers})
    found = read_checkpoint(write_checkpoint(tmp_path, stored))
    np.testing.assert_array_equal(found.extra_arrays["odd"].view(np.uint64), bits)
    assert same(found.history, history)


@dataclass(frozen=True)
class Record:
    iteration: int
    bound: float
    kind: str
    gap: float | None
    costs: tuple[float, ...] = ()
    exact: bool = False
    passing: object = field(default=None, metadata={"stored": False})


def test_records_become_columns_and_come_back(tmp_path: Path) -> None:
    records = tuple(
        Record(
            i, -0.0 if i == 1 else i / 3, "sample", None if i < 3 else 1e-300 * i, (0.1,) * (i % 2), i == 2
        )
        for i in range(1, 4)
    )
    stored = replace(checkpoint(), history=history_columns(records))
    history = read_checkpoint(write_checkpoint(tmp_path, stored)).history
    found = history_records(Record, history)
    assert same(found, records)
    older = {name: column for name, column in history.items() if name not in ("costs", "exact")}
    assert history_records(Record, older)[1] == Record(2, 2 / 3, "sample", None)
    assert "passing" not in history_columns([replace(records[0], passing=object())])
    assert history_columns([]) == {}
    with pytest.raises(TypeError, match="gap"):
        history_columns([replace(records[0], gap=[])])


def test_bases_return_to_a_store_of_some_passes() -> None:
    random = np.random.default_rng(5)
    cols, rows = np.array([3, 2]), random.integers(0, 4, (5, 2))
    col, row = (random.integers(0, 5, (5, 2, 4)).astype(np.int8) for _ in range(2))
    bases = StartingBases.gather(cols, rows, col, row)
    store = np.ones((2, 2), np.int64), np.zeros((2, 2, 4), np.int8), np.zeros((2, 2, 9), np.int8)
    bases.spread(cols, *store, first_pass=2)
    np.testing.assert_array_equal(store[0], rows[2:4])
    again = StartingBases.gather(cols, *store, first_pass=2)
    mine = (bases.forward_pass >= 2) & (bases.forward_pass < 4)
    np.testing.assert_array_equal(again.forward_pass, bases.forward_pass[mine])
    first = int(np.flatnonzero(mine)[0])
    np.testing.assert_array_equal(
        again.row_status,
        bases.row_status[bases.row_end[first - 1] if first else 0 :][: len(again.row_status)],
    )
    with pytest.raises(ValueError, match="columns and"):
        bases.spread(cols + 1, *store, first_pass=2)


def test_digest_depends_on_cuts_alone(tmp_path: Path) -> None:
    stored = policy()
    first, second = (tmp_path / name for name in ("first", "second"))
    write_policy_directory(first, stored)
    document = json.loads((first / "manifest.json").read_text())
    write_policy_directory(second, replace(stored, fingerprint=Fingerprint({}), seed=3), compress=False)
    other = json.loads((second / "manifest.json").read_text())
    assert document["policy_sha256"] == other["policy_sha256"] == stored.sha256()
    flipped = stored.cuts[0].active.copy()
    flipped[0] = not flipped[0]
    changed = replace(stored, cuts=(replace(stored.cuts[0], active=flipped), *stored.cuts[1:]))
    assert changed.sha256() != stored.sha256()
    negative = replace(stored.cuts[0], intercept=np.nextafter(stored.cuts[0].intercept, np.inf))
    assert replace(stored, cuts=(negative, *stored.cuts[1:])).sha256() != stored.sha256()


def test_files_are_readable_without_cobre(tmp_path: Path) -> None:
    stored = policy()
    write_policy_directory(tmp_path / "policy", stored)
    table = pq.read_table(tmp_path / "policy" / "cuts.parquet")
    rows = table.filter(np.asarray(table["node"]) == 1)
    np.testing.assert_array_equal(np.stack(rows["slopes"].to_numpy()), stored.cuts[1].slopes)
    assert (
        pq.ParquetFile(tmp_path / "policy" / "cuts.parquet").metadata.row_group(0).column(0).compression
        == "ZSTD"
    )
    checked = subprocess.run(["sha256sum", "-c", "manifest.sha256"], cwd=tmp_path / "policy", check=False)
    assert checked.returncode == 0


FILES = (
    *("manifest.json", "manifest.sha256", "cuts.parquet", "bases.parquet", "states.parquet"),
    *("history.parquet", "arrays/selection_ages.parquet", "arrays/upper_bound.parquet"),
)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def swap(path: Path) -> None:
    other = "bases.parquet" if path.name == "cuts.parquet" else "cuts.parquet"
    root = path.parent.parent if path.parent.name == "arrays" else path.parent
    path.write_bytes((root / other).read_bytes())


def delete(path: Path) -> None:
    path.unlink()


def become_link(path: Path) -> None:
    moved = path.rename(path.with_name("moved"))
    path.symlink_to(moved.name)


def become_device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("harm", [flip, truncate, swap, delete, become_link, become_device])
def test_every_damage_is_found_and_named(tmp_path: Path, name: str, harm) -> None:
    path = write_checkpoint(tmp_path, checkpoint())
    harm(path / name)
    with pytest.raises(ValidationError) as found:
        read_checkpoint(path)
    assert "manifest" in found.value.message or name in found.value.message
    assert str(path) in found.value.context["file"]
    assert found.value.suggestion
    with pytest.raises(ValidationError):
        StoredDirectory(path, verify=False).keep()
    with pytest.raises(ValidationError, match=r"PolicyDamaged|checkpoint|manifest|parquet"):
        latest_checkpoint(tmp_path)


def test_every_flipped_bit_of_a_small_file_is_found(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path, checkpoint())
    file = path / "arrays" / "upper_bound.parquet"
    content = file.read_bytes()
    for place in range(len(content)):
        file.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(ValidationError, match="upper_bound"):
            read_checkpoint(path)
    file.write_bytes(content)
    read_checkpoint(path)


def rewritten(path: Path, edit) -> None:
    """Change the manifest, and its digest too: what a forger would do."""
    document = json.loads((path / "manifest.json").read_text())
    edit(document)
    content, digest = manifest_bytes(document)
    (path / "manifest.json").write_bytes(content)
    (path / "manifest.sha256").write_bytes(digest)


FORGERIES = {
    "newer": (lambda d: d.update(format_version=2), "format version 2"),
    "version": (lambda d: d.update(format_version=True), "format_version"),
    "format": (lambda d: d.update(format="other"), "not of a policy directory"),
    "kind": (lambda d: d.update(kind="dream"), "dream"),
    "file outside": (lambda d: d["files"].update({"../x.parquet": d["files"]["cuts.parquet"]}), "no file of"),
    "file absolute": (lambda d: d["files"].update({"/etc/passwd": {"bytes": 1, "sha256": ""}}), "no file of"),
    "no cuts": (lambda d: d["files"].pop("cuts.parquet"), "cuts.parquet"),
    "more cuts": (lambda d: d["nodes"][0].update(cuts=10**6), "rows"),
    "moved cuts": (lambda d: (d["nodes"][0].update(cuts=7), d["nodes"][1].update(cuts=5)), "other nodes"),
    "negative cuts": (lambda d: d["nodes"][0].update(cuts=-1), "impossible"),
    "date": (lambda d: d["nodes"][0].update(end_date="tomorrow"), "tomorrow"),
    "order of dates": (lambda d: d["nodes"][0].update(end_date="1999-01-01"), "before it starts"),
    "states": (lambda d: d["components"].pop(), "columns"),
    "same state": (lambda d: d["components"].__setitem__(1, d["components"][0]), "twice"),
    "same node": (lambda d: d["nodes"][1].update(id=0), "node"),
    "seed": (lambda d: d.update(seed=2**64), "64 bits"),
    "seed text": (lambda d: d.update(seed="1"), "whole number"),
    "passes": (lambda d: d.update(forward_passes=1), "forward pass"),
    "iterations": (lambda d: d.update(completed_iterations=2), "lower_bounds"),
    "bounds": (lambda d: d.update(lower_bounds=["much"] * 3), "no number"),
    "missing": (lambda d: d.pop("nodes"), "nodes"),
    "edge": (lambda d: d["transitions"][0].update(target_id=99), "unknown nodes"),
    "probability": (lambda d: d["transitions"][0].update(probability=-1), "probability"),
    "digest": (lambda d: d.update(policy_sha256="0" * 64), "policy_sha256"),
    "array type": (lambda d: d["arrays"]["upper_bound"].update(dtype="O"), "unknown type"),
    "array shape": (lambda d: d["arrays"]["upper_bound"].update(shape=[2**60]), "impossible shape"),
    "array size": (lambda d: d["arrays"]["selection_ages"].update(shape=[2, 3, 5]), "rows"),
    "array unknown": (lambda d: d["arrays"].update(other={"dtype": "f8", "shape": []}), "does not list"),
    "history type": (lambda d: d["history"].update(iteration="object"), "unknown type"),
    "fingerprint": (lambda d: d.update(fingerprint=[]), "no object"),
    "activity": (lambda d: d.update(activity={"duty": "float64"}), "columns"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_manifests_are_refused(tmp_path: Path, name: str) -> None:
    path = write_checkpoint(tmp_path, checkpoint())
    edit, message = FORGERIES[name]
    rewritten(path, edit)
    with pytest.raises(ValidationError) as found:
        read_checkpoint(path)
    assert message in found.value.message


def test_manifest_of_any_json_is_refused(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path, checkpoint())
    for content in (b"", b"[]", b"null", b"[" * 10**5, b"\xff", b'{"format": "cobre-policy"}'):
        (path / "manifest.json").write_bytes(content)
        with pytest.raises(ValidationError):
            read_policy_directory(path, verify=False)


def places(part: object) -> list[tuple[dict | list, object]]:
    """Every place of a JSON document: an object or list, and a key or index of it."""
    if not isinstance(part, (dict, list)):
        return []
    keys = list(part) if isinstance(part, dict) else list(range(len(part)))
    return [(part, key) for key in keys] + [place for key in keys for place in places(part[key])]


@pytest.mark.parametrize("value", [None, -1, 2**70, 0.5, "x", [], {}, True], ids=str)
def test_no_value_in_the_manifest_gives_a_crash(tmp_path: Path, value: object) -> None:
    path = write_checkpoint(tmp_path, checkpoint())
    document = json.loads((path / "manifest.json").read_text())
    for number in range(0, len(places(document)), 7):

        def edit(changed: dict, number: int = number) -> None:
            changed.clear()
            changed.update(copy.deepcopy(document))
            part, key = places(changed)[number]
            part[key] = value

        rewritten(path, edit)
        with contextlib.suppress(ValidationError):
            read_checkpoint(path)


def test_impossible_statuses_are_refused(tmp_path: Path) -> None:
    stored = checkpoint()
    assert stored.bases is not None
    status = stored.bases.row_status.copy()
    status[0] = 7
    with pytest.raises(ValueError, match="outside 0 to 4"):
        replace(stored, bases=replace(stored.bases, row_status=status))


def test_a_policy_is_no_checkpoint(tmp_path: Path) -> None:
    write_policy_directory(tmp_path / "policy", policy())
    with pytest.raises(ValidationError, match="not a checkpoint"):
        read_checkpoint(tmp_path / "policy")


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(ValidationError) as found:
        read_policy_directory(tmp_path / "none")
    assert found.value.kind == "FileNotFound"
    assert found.value.message.endswith("none is no directory")
    (tmp_path / "none").mkdir()
    with pytest.raises(ValidationError, match=r"manifest.json does not exist"):
        read_policy_directory(tmp_path / "none")


def test_policy_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "policy"
    write_policy_directory(path, policy(seed=1))
    leftovers = [tmp_path / f".policy.0123abcd.{end}" for end in ("staging", "staging.previous")]
    for leftover in leftovers:
        leftover.mkdir()
    write_policy_directory(path, policy(seed=2))
    assert read_policy_directory(path).sha256() == policy(seed=2).sha256()
    assert [entry.name for entry in tmp_path.iterdir()] == ["policy"]


def test_policy_without_its_name_gets_it_back(tmp_path: Path) -> None:
    """Without an exchange of names, a kill between two renames leaves the old policy under another name."""
    path = tmp_path / "policy"
    write_policy_directory(path, policy(seed=1))
    path.rename(tmp_path / ".policy.0123abcd.staging.previous")
    write_policy_directory(tmp_path / "other", policy(seed=2))
    write_policy_directory(path, policy(seed=2))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["other", "policy"]


@pytest.mark.parametrize("foreign", ["notes.txt", "arrays/mine.csv", "manifest.bin"])
def test_foreign_files_are_left_alone(tmp_path: Path, foreign: str) -> None:
    path = tmp_path / "policy"
    write_policy_directory(path, policy())
    (path / foreign).parent.mkdir(exist_ok=True)
    (path / foreign).write_text("mine")
    with pytest.raises(OutputError) as found:
        write_policy_directory(path, policy(seed=2))
    assert foreign in found.value.message
    assert (path / foreign).read_text() == "mine"
    assert read_policy_directory(path).sha256() == policy().sha256()


def test_foreign_directory_with_our_names(tmp_path: Path) -> None:
    path = tmp_path / "policy"
    path.mkdir()
    (path / "cuts.parquet").write_text("someone else's")
    with pytest.raises(OutputError, match=r"cuts\.parquet"):
        write_policy_directory(path, policy())
    path = tmp_path / "file"
    path.write_text("mine")
    with pytest.raises(OutputError, match="file"):
        write_policy_directory(path, policy())


def test_empty_directory_is_filled(tmp_path: Path) -> None:
    (tmp_path / "policy").mkdir()
    write_policy_directory(tmp_path / "policy", policy())
    read_policy_directory(tmp_path / "policy")


BAD_CUTS = {
    "nan": lambda c: replace(c, intercept=np.full(len(c), np.nan)),
    "nan slope": lambda c: replace(c, slopes=np.full(c.slopes.shape, np.nan)),
    "slots": lambda c: replace(c, slot=c.slot[::-1].copy()),
    "negative": lambda c: replace(c, slot=c.slot - 5),
    "type": lambda c: replace(c, slot=c.slot.astype(np.int32)),
    "length": lambda c: replace(c, active=c.active[1:]),
    "name": lambda c: replace(c, activity={"../x": c.slot}),
    "iteration": lambda c: replace(
        policy(), cuts=(replace(c, iteration=c.iteration + 3), *policy().cuts[1:])
    ),
    "pass": lambda c: replace(
        policy(), cuts=(replace(c, forward_pass=c.forward_pass - 1), *policy().cuts[1:])
    ),
}


@pytest.mark.parametrize("name", BAD_CUTS)
def test_impossible_cuts_cannot_be_made(name: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        BAD_CUTS[name](policy().cuts[0])
