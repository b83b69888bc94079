"""C functions by name: callable, checked, cacheable."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from numba import njit, types

from cobre.errors import CobreError
from cobre.native import bind_library, c_string

LIBC = ctypes.CDLL(None)

_libc = bind_library(LIBC, "str", {"len": types.uintp(types.CPointer(types.uint8))})
strlen = _libc.len
TEXT = c_string("cobre")


@njit
def length(text):
    return strlen(text.ctypes)


def test_bound_function_is_called_from_nopython():
    assert length(TEXT) == 5


def test_all_missing_symbols_are_named():
    signature = types.int32()
    with pytest.raises(CobreError) as caught:
        bind_library(LIBC, "no_such_", {"first": signature, "second": signature})
    assert caught.value.kind == "MissingSymbol"
    assert caught.value.context["missing"] == ["no_such_first", "no_such_second"]
    assert "no_such_first, no_such_second" in str(caught.value)


def test_cached_kernel_calls_the_symbol_in_a_new_process(sandbox):
    sandbox.write(
        "cobre/kernels.py",
        "import ctypes\nfrom numba import njit, types\n"
        "from cobre.native import bind_library, c_string, kernel_cache_stats\n"
        "_c = bind_library(ctypes.CDLL(None), 'str', {'len': types.uintp(types.CPointer(types.uint8))})\n"
        "strlen = _c.len\nTEXT = c_string('cobre')\n"
        "@njit(cache=True)\ndef length():\n    return strlen(TEXT.ctypes)\n",
    )
    run = "from cobre.kernels import *; print(int(length()), *kernel_cache_stats(length))"
    assert sandbox.run(run) == "5 0 1"
    assert sandbox.run(run) == "5 1 0"
    assert sandbox.run(run, NUMBA_DISABLE_JIT="1") == "5 0 0"


def test_a_type_without_a_c_counterpart_is_refused(monkeypatch):
    monkeypatch.setattr("numba.config.DISABLE_JIT", True)
    with pytest.raises(TypeError, match="complex128"):
        bind_library(LIBC, "", {"abs": types.complex128(types.int32)})


def test_c_string_ends_with_nul():
    np.testing.assert_array_equal(c_string("é"), np.frombuffer("é".encode() + b"\0", np.uint8))
    with pytest.raises(ValueError, match="NUL"):
        c_string("a\0b")
