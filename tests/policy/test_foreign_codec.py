"""Policy files: what is written is read back, and no bytes whatsoever do harm."""

import struct
import tracemalloc
from dataclasses import replace

import flatbuffers
import numpy as np
import pytest
from flatbuffers import number_types
from flatbuffers.table import Table
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_records import END, make_manifest, make_pool, same_pool

from cobre.policy.foreign import Pool
from cobre.policy.foreign.decode import decode_manifest, decode_pool, decode_priced_date
from cobre.policy.foreign.encode import encode_manifest, encode_pool
from cobre.policy.foreign.flatbuffer import MalformedError

POOL = encode_pool(make_pool())
MANIFEST = encode_manifest(make_manifest())


def test_pool_survives_writing_and_reading():
    assert same_pool(decode_pool(POOL), make_pool())
    assert decode_priced_date(POOL) == END


def test_pool_without_cuts_or_owner():
    pool = make_pool(
        intercepts=np.zeros(0),
        slopes=np.zeros((0, 4)),
        active=np.zeros(0, np.bool_),
        cut_ids=np.zeros(0, np.uint64),
        slot_index=np.zeros(0, np.uint32),
        iterations=np.zeros(0, np.uint32),
        forward_passes=np.zeros(0, np.uint32),
        node_id=None,
        graph_stage_id=None,
        priced_date=None,
    )
    assert same_pool(decode_pool(encode_pool(pool)), pool)


@pytest.mark.parametrize(
    "changes",
    [{}, {"best_upper_bound": None, "cost_scale_factor": None, "software": None, "block_mode_per_stage": ()}],
)
def test_manifest_survives_writing_and_reading(changes):
    manifest = make_manifest(**changes)
    assert decode_manifest(encode_manifest(manifest)) == manifest


def test_layout_of_the_format():
    """Field ids and types, read with the package's own reader rather than ours."""
    assert POOL[4:8] == MANIFEST[4:8] == b"CBVF"
    root = Table(bytearray(POOL), struct.unpack_from("<I", POOL)[0])
    assert _number(root, 1, number_types.Uint32Flags) == 4
    assert _number(root, 6, number_types.Uint32Flags) == 3
    assert _number(root, 8, number_types.Float64Flags) == 1024.0
    assert _number(root, 9, number_types.Int32Flags) == 0
    assert _number(root, 10, number_types.Int32Flags) == 4
    assert _number(root, 11, number_types.Int32Flags) == 20240331
    cut = _item(root, 4, 0)
    assert _number(cut, 0, number_types.Uint64Flags) == 7
    assert _number(cut, 4, number_types.Float64Flags) == 1.0e6
    assert _number(cut, 6, number_types.BoolFlags)
    lag = _item(root, 7, 2)
    assert _number(lag, 0, number_types.Uint8Flags) == 1
    assert _number(lag, 1, number_types.Int32Flags) == 3
    assert _number(lag, 2, number_types.Uint32Flags) == 2
    assert _number(lag, 6, number_types.Int32Flags) == 20240101
    manifest = Table(bytearray(MANIFEST), struct.unpack_from("<I", MANIFEST)[0])
    assert _number(manifest, 0, number_types.Uint32Flags) == 3
    assert _number(_item(manifest, 6, 0), 2, number_types.Float64Flags) == 1.0
    assert manifest.String(manifest.Pos + manifest.Offset(4 + 2 * 20)) == b"cobre"


def _number(table, field, flags):
    return table.Get(flags, table.Pos + table.Offset(4 + 2 * field))


def _item(table, field, number):
    start = table.Vector(table.Offset(4 + 2 * field))
    return Table(table.Bytes, table.Indirect(start + 4 * number))


@pytest.mark.parametrize("content", [POOL, MANIFEST], ids=["pool", "manifest"])
def test_every_truncation_is_refused_or_harmless(content):
    decode = decode_pool if content is POOL else decode_manifest
    refused = 0
    for length in range(len(content)):
        try:
            decode(content[:length])
        except MalformedError:
            refused += 1
    # Only padding at the end may be missing.
    assert refused >= len(content) - 8


def attempt(decode, content):
    """What was read, and the message of the error: every other exception is a failure."""
    try:
        return decode(content), ""
    except MalformedError as error:
        return None, str(error)


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_damage_never_crashes(data):
    content, decode = data.draw(st.sampled_from([(POOL, decode_pool), (MANIFEST, decode_manifest)]))
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(damaged) - 1))
        damaged[place] = data.draw(st.integers(0, 255))
    found, error = attempt(decode, bytes(damaged))
    assert (found is None) == bool(error)
    assert not isinstance(found, Pool) or np.isfinite(found.slopes).all()


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_noise_never_crashes(noise):
    for decode in (decode_pool, decode_manifest, decode_priced_date):
        with pytest.raises(MalformedError):
            decode(noise)
        found, error = attempt(decode, noise[:4] + b"CBVF" + noise[4:])
        assert found is None or not error


@pytest.mark.parametrize(
    ("pool", "message"),
    [
        (make_pool(intercepts=np.array([1.0, np.nan, 2.0])), "finite"),
        (make_pool(slopes=np.full((3, 4), np.inf)), "finite"),
        (make_pool(slots=make_pool().slots[:3]), "names 3 of 4"),
        (make_pool(cost_scale_factor=0.0), "unit"),
    ],
)
def test_wrong_content_is_refused(pool, message):
    with pytest.raises(MalformedError, match=message):
        decode_pool(encode_pool(pool))


@pytest.mark.parametrize("wrong", [20240230, -1, 0, 2**31 - 1])
def test_what_is_no_date_is_refused(wrong):
    damaged = POOL.replace(struct.pack("<i", 20240331), struct.pack("<i", wrong))
    with pytest.raises(MalformedError, match="no date"):
        decode_priced_date(damaged)


def test_other_formats_are_refused():
    with pytest.raises(MalformedError, match="identifier"):
        decode_pool(POOL[:4] + b"XXXX" + POOL[8:])
    with pytest.raises(MalformedError, match="format version"):
        decode_manifest(POOL)


def test_a_small_file_cannot_ask_for_much_memory():
    """Ten thousand cuts that all are the same table with ten thousand coefficients."""
    builder = flatbuffers.Builder(0)
    coefficients = builder.CreateNumpyVector(np.zeros(10_000))
    builder.StartObject(7)
    builder.PrependUOffsetTRelativeSlot(5, coefficients, 0)
    cut = builder.EndObject()
    builder.StartVector(4, 10_000, 4)
    for _ in range(10_000):
        builder.PrependUOffsetTRelative(cut)
    cuts = builder.EndVector()
    builder.StartObject(12)
    builder.PrependUint32Slot(1, 10_000, 0)
    builder.PrependUOffsetTRelativeSlot(4, cuts, 0)
    builder.PrependUint32Slot(6, 10_000, 0)
    builder.Finish(builder.EndObject(), file_identifier=b"CBVF")
    content = bytes(builder.Output())
    tracemalloc.start()
    try:
        with pytest.raises(MalformedError, match="do not fit"):
            decode_pool(content)
        assert tracemalloc.get_traced_memory()[1] < 10 * len(content)
    finally:
        tracemalloc.stop()


def test_a_list_of_active_cuts_that_contradicts_the_flags_is_refused():
    flags = replace(make_pool(), active=np.array([True, True, True]))
    good = encode_pool(flags)
    listed = struct.pack("<IIII", 3, 0, 1, 2)
    assert good.count(listed) == 1
    with pytest.raises(MalformedError, match="active"):
        decode_pool(good.replace(listed, struct.pack("<IIII", 3, 0, 1, 9)))
