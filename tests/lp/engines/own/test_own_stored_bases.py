"""Bases of the own engine in checkpoints: packed, taken back, and refused where they do not fit."""

from types import SimpleNamespace

import numpy as np
import pytest

from cobre.lp.engines.own.core import AT_KINK, IN_SEGMENT, NONBASIC, BasisStore
from cobre.lp.engines.own.stored_bases import BasisPacker, PackedBases

PASSES, SLOTS = 3, 4
# Kinks of each variable of the LPs of three nodes, of which another engine solves the second.
KINKS = ([2, 1, 3], None, [1, 20_000])
NODES = len(KINKS)
POOL_CUTS = np.array([9, 0, 2])


@pytest.fixture(scope="module", autouse=True)
def representation():
    """Here no LP is solved."""


def forms(kinks=KINKS):
    starts = [None if part is None else np.cumsum([0, *(count + 2 for count in part)]) for part in kinks]
    return [None if start is None else SimpleNamespace(piece_start=start) for start in starts]


def empty_store():
    keys = PASSES * NODES
    return BasisStore(
        np.zeros(keys, np.int64),
        np.zeros((keys, 3), np.int32),
        np.zeros((keys, 3), np.int8),
        np.zeros(keys, np.int64),
        np.zeros((keys, SLOTS), np.int32),
    )


def put(store, own_pass, node, basis, cuts):
    key = own_pass * NODES + node
    store.known[key] = 1
    for var, (place, kind) in enumerate(basis):
        store.place[key, var], store.kind[key, var] = place, kind
    store.num_cuts[key] = len(cuts)
    store.cut[key, : len(cuts)] = cuts


def filled_store():
    store = empty_store()
    put(store, 0, 0, [(2, NONBASIC), (0, IN_SEGMENT), (3, AT_KINK)], [3, 8])
    put(store, 1, 2, [(1, IN_SEGMENT), (20_000, NONBASIC)], [])
    put(store, 2, 0, [(1, AT_KINK), (1, IN_SEGMENT), (3, IN_SEGMENT)], [0])
    return store


def of_keys(store):
    known = np.flatnonzero(store.known)
    cuts = [store.cut[key, : store.num_cuts[key]].tolist() for key in known]
    return known.tolist(), store.place[known].tolist(), store.kind[known].tolist(), cuts


def test_bases_come_back_as_they_were():
    store, other = filled_store(), empty_store()
    packed = PackedBases.among(BasisPacker(store, forms()).pack(0, PASSES).arrays())
    assert len(packed.code) == 3 + 2 + 3
    BasisPacker(other, forms()).unpack(packed, 0, PASSES, POOL_CUTS)
    assert of_keys(other) == of_keys(store)


def test_codes_are_short_where_variables_have_few_kinks():
    packed = BasisPacker(filled_store(), forms()).pack(0, PASSES)
    assert (packed.code.dtype, packed.code.max()) == (np.uint32, 4 * 20_000)
    few = forms(([2, 1, 3], None, [1, 16_000]))
    assert BasisPacker(empty_store(), few).pack(0, PASSES).code.dtype == np.uint16


def test_a_rank_takes_the_bases_of_its_passes():
    packed = BasisPacker(filled_store(), forms()).pack(5, PASSES)
    assert packed.forward_pass.tolist() == [5, 6, 7]
    other = empty_store()
    BasisPacker(other, forms()).unpack(packed, 6, 2, POOL_CUTS)
    assert np.flatnonzero(other.known).tolist() == [2, NODES]


def test_nodes_that_another_engine_solves_now_are_left_out():
    packed = BasisPacker(filled_store(), forms()).pack(0, PASSES)
    other = empty_store()
    BasisPacker(other, forms((None, [1], KINKS[2]))).unpack(packed, 0, PASSES, POOL_CUTS)
    assert np.flatnonzero(other.known).tolist() == [NODES + 2]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"num_cuts": np.array([2, 0, 2])}, "add up"),
        ({"num_codes": np.array([3, 2, 4])}, "add up"),
        ({"node": np.array([0, 3, 0])}, "unknown"),
        ({"node": np.array([0, 0, 0])}, "another LP"),
        ({"cut": np.array([3, 9, 0], np.int32)}, "another LP"),
        ({"cut": np.array([8, 3, 0], np.int32)}, "another LP"),
        ({"cut": np.array([-1, 3, 0], np.int32)}, "another LP"),
        ({"code": np.array([3, 1, 4, 5, 4, 6, 5, 5])}, "another LP"),
        ({"code": np.array([0, 1, 4, 5, 4, 6, 5, 5])}, "another LP"),
        ({"code": np.array([12, 1, 4, 5, 4, 6, 5, 5])}, "another LP"),
    ],
)
def test_what_does_not_fit_is_refused(changes, text):
    packed = BasisPacker(filled_store(), forms()).pack(0, PASSES)._replace(**changes)
    with pytest.raises(ValueError, match=text):
        BasisPacker(empty_store(), forms()).unpack(packed, 0, PASSES, POOL_CUTS)
