"""Jitclasses with a name that is the same in every process, and changes with what they are made of."""

from __future__ import annotations

import re
import sys
from typing import Annotated, Any, NamedTuple

import numba
import numpy as np
import pytest
from numba import int64, njit, types

from cobre.native import HeldStruct, array_struct, stable_jitclass, struct_at
from cobre.native.jitclass import _digest, _source

CLASS = """
from numba import int64
from cobre.native import stable_jitclass
from cobre.helper import factor

@stable_jitclass([("value", int64)], depends_on=(factor,))
class Box:
    def __init__(self, value):
        self.value = value

    def scaled(self):
        return factor(self.value) + 0
"""
HELPER = """
from numba import njit
import cobre.native

@njit
def factor(x):
    return 10 * x
"""
# outside of the package: Numba watches this file only, and knows the class by its name
USER = """
from numba import njit
from cobre.native import kernel_cache_stats
from cobre.box import Box

@njit(cache=True)
def use(box):
    return box.scaled() + 1
"""
RUN = "from user import *; print(use(Box(2)), *kernel_cache_stats(use))"


@pytest.fixture
def files(sandbox):
    sandbox.write("cobre/box.py", CLASS)
    sandbox.write("cobre/helper.py", HELPER)
    sandbox.write("user.py", USER)
    return sandbox


def test_cached_function_hits_until_the_class_or_its_dependency_changes(files):
    assert files.run(RUN) == "21 0 1"
    assert files.run(RUN) == "21 1 0"
    files.write("cobre/box.py", CLASS.replace("+ 0", "+ 5"))
    assert files.run(RUN) == "26 0 1"
    files.write("cobre/helper.py", HELPER.replace("10 * x", "100 * x"))
    assert files.run(RUN) == "206 0 1"
    assert files.run(RUN) == "206 1 0"


def test_works_without_the_jit(files):
    assert files.run(RUN, NUMBA_DISABLE_JIT="1") == "21 0 0"


@stable_jitclass([("value", int64)])
class Plain:
    def __init__(self, value):
        self.value = value

    def get(self):
        return self.value


@njit
def get(box):
    return box.get()


def test_numba_still_names_and_interns_types_as_this_relies_on():
    # Fails when a new Numba builds jitclass types in another way; see cobre.native.jitclass.
    name = Plain.class_type.name
    assert re.fullmatch(rf"jitclass\.{re.escape(__name__)}\.Plain\.[0-9a-f]{{20}}", name)
    instance = numba.typeof(Plain(1))
    assert str(instance) == f"instance.{name}"
    assert type(instance) is types.ClassInstanceType
    # one interned type, so that calls from Python find compiled code by its type code
    assert instance is Plain.class_type.instance_type
    assert get(Plain(3)) == 3
    assert get.signatures[0][0] is instance
    assert Plain.__module__ == __name__


class First:
    pass


class Second:
    pass


def test_digest_tells_fields_classes_and_dependencies_apart():
    one = [("a", int64)]
    digests = {
        _digest(one, [_source(First)]),
        _digest([("b", int64)], [_source(First)]),
        _digest([("a", types.float64)], [_source(First)]),
        _digest(one, [_source(Second)]),
        _digest(one, [_source(First), _source(get)]),
        _digest(one, [_source(First), _source(re)]),
        _digest(one, [_source(First), _source(Plain)]),
    }
    assert len(digests) == 7


class Pair(NamedTuple):
    values: Annotated[Any, types.float64[::1]]
    scale: float
    shift: int


PairStruct = array_struct(Pair)


@njit
def _scaled_sum(pair):
    struct = PairStruct(pair)
    total = 0.0
    for value in struct.values:
        total += struct.scale * value + struct.shift
    struct.values[0] = -1.0
    return total


def test_array_struct_reads_and_writes_the_arrays_of_the_tuple():
    pair = Pair(np.array([1.0, 2.0]), 10.0, 3)
    assert _scaled_sum(pair) == 36.0
    assert pair.values[0] == -1.0


def test_array_struct_needs_numba_types():
    class Untyped(NamedTuple):
        values: list

    with pytest.raises(TypeError, match="'values' needs a Numba type"):
        array_struct(Untyped)


def test_a_module_without_source_is_refused():
    with pytest.raises(TypeError, match="no source file"):
        _source(type(re)("made_up"))


@njit
def _sum_at(address):
    pair = struct_at(PairStruct, address)
    return pair.values[0] * pair.scale + pair.values[len(pair.values) - 1] + pair.shift


def test_a_held_struct_is_found_by_its_address_and_holds_its_arrays():
    pair = Pair(np.array([5.0, 2.0]), 10.0, 3)
    counts = [sys.getrefcount(pair)]  # not in an assertion, which holds what it looks at
    held = HeldStruct(PairStruct, pair)
    counts.append(sys.getrefcount(pair))
    assert _sum_at(held.address) == _sum_at(held.address) == 55.0
    pair.values[1] = 4.0
    assert _sum_at(held.address) == 57.0
    del held
    counts.append(sys.getrefcount(pair))
    assert [count - counts[0] for count in counts] == [0, 1, 0]


@pytest.mark.parametrize("values", [np.array([1, 2]), np.ones((2, 2)), np.ones(4)[::2]])
def test_a_held_struct_takes_no_arrays_of_other_types(values):
    with pytest.raises(TypeError, match="field 'values' is array"):
        HeldStruct(PairStruct, Pair(values, 10.0, 3))
