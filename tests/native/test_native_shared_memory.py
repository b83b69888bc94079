"""Atomics, raw bytes, C functions and signal handlers, as kernels use them to talk to other processes."""

from __future__ import annotations

import errno as error_codes
import multiprocessing
import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from cobre.native import atomic_fetch_add, monotonic_ns
from cobre.native.atomics import (
    atomic_compare_exchange,
    atomic_fence,
    atomic_load,
    atomic_load_ordered,
    atomic_store,
    atomic_store_ordered,
    cpu_pause,
    prefetch_to_write,
)
from cobre.native.libc import errno, futex_wait, futex_wake, poll, sched_yield
from cobre.native.memory import address_of, borrowed, copy_bytes, load_element, load_int32, load_int64
from cobre.native.signals import PENDING_SIZE, signal_handler_raised, take_pending


@njit
def exercise(array):
    atomic_store(array, 0, 5)
    old = atomic_compare_exchange(array, 0, 5, 7)
    refused = atomic_compare_exchange(array, 0, 5, 9)
    atomic_store_ordered(array, 1, atomic_load(array, 0) + atomic_load_ordered(array, 0))
    cpu_pause()
    prefetch_to_write(array, 1)
    return old, refused, atomic_fetch_add(array, 1, 3)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_atomics_on_both_widths(dtype):
    array = np.zeros(2, dtype)
    assert exercise(array) == (5, 7, 14)
    assert array.tolist() == [7, 17]


@pytest.mark.parametrize("array", [np.zeros(2), np.zeros((2, 2), np.int64), np.zeros(4, np.int64)[::2]])
def test_atomics_refuse_other_arrays(array):
    with pytest.raises(TypingError, match="1-D C-contiguous int32 or int64"):
        exercise(array)


@njit(nogil=True)
def add_many(array, turns):
    for _ in range(turns):
        while atomic_compare_exchange(array, 0, 0, 1) != 0:
            cpu_pause()
        array[1] += 1  # a plain addition: exact only if the lock excludes the other thread
        atomic_store(array, 0, 0)
        atomic_fetch_add(array, 2, 1)


def test_a_lock_of_compare_exchange_excludes():
    array = np.zeros(3, np.int64)
    add_many(array, 0)
    threads = [threading.Thread(target=add_many, args=(array, 100_000)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert array.tolist() == [0, 200_000, 200_000]


@njit(nogil=True)
def store_then_look(flags, seen, mine, turns):
    for turn in range(1, turns + 1):
        atomic_store(flags, 16 * mine, turn)
        atomic_fence()
        seen[mine, turn - 1] = atomic_load(flags, 16 * (1 - mine))
        atomic_store(flags, 16 * (2 + mine), turn)
        looks = 0
        while atomic_load(flags, 16 * (3 - mine)) < turn:  # until the other has looked, too
            looks += 1
            if looks > 100:
                sched_yield()


def test_a_fence_lets_one_of_two_see_the_other():
    flags, seen = np.zeros(64, np.int64), np.zeros((2, 100_000), np.int64)
    store_then_look(flags, seen, 0, 0)
    threads = [
        threading.Thread(target=store_then_look, args=(flags, seen, mine, seen.shape[1])) for mine in (0, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    turns = np.arange(1, seen.shape[1] + 1)
    assert not ((seen[0] < turns) & (seen[1] < turns)).any()


@njit
def borrow_parts(array, number):
    view = borrowed(array)
    view[1] = borrowed(number)
    return view[1:].sum() + len(borrowed(view))


def test_a_borrowed_array_is_the_array_and_leaves_its_owner_alone():
    array = np.arange(4.0)
    references = sys.getrefcount(array)
    assert borrow_parts(array, 5.0) == 14.0
    assert array.tolist() == [0.0, 5.0, 2.0, 3.0]
    assert sys.getrefcount(array) == references


@njit
def move(target, source, data):
    copy_bytes(target, 8, source, 16, 24)
    return load_element(data, 4, source), load_int32(address_of(data, 0)), load_int64(address_of(source, 1))


def test_bytes_and_addresses():
    target, source = np.zeros(5), np.arange(10.0, 16.0)
    data = np.zeros(12, np.uint8)
    data[:4] = np.array([-3], np.int32).view(np.uint8)
    data[4:] = np.array([2.5]).view(np.uint8)
    assert move(target, source, data) == (2.5, -3, np.array([11.0]).view(np.int64)[0])
    assert target.tolist() == [0.0, 12.0, 13.0, 14.0, 0.0]


def test_copy_refuses_a_read_only_target():
    target = np.zeros(5)
    target.flags.writeable = False
    with pytest.raises(TypingError, match="writable"):
        move(target, np.zeros(6), np.zeros(12, np.uint8))


@njit
def bad_poll(descriptors):
    outcome = poll(address_of(descriptors, 0), -1, 0)
    return outcome, errno()


def test_errno_of_a_failed_call():
    assert bad_poll(np.zeros(1, np.int64)) == (-1, error_codes.EINVAL)


@njit(nogil=True)
def sleep_on(words, expected, timeout_ns, scratch):
    return futex_wait(words, 0, expected, timeout_ns, scratch, 0)


@njit(nogil=True)
def set_and_wake(words, value):
    atomic_store_ordered(words, 0, value)
    return futex_wake(words, 0)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_futex(dtype):
    words, scratch = np.full(1, -5, dtype), np.zeros(2, np.int64)
    assert sleep_on(words, 4, 10**9, scratch) == error_codes.EAGAIN
    assert sleep_on(words, -5, 10**6, scratch) == error_codes.ETIMEDOUT
    assert set_and_wake(words, -5) == 0
    outcomes = []
    thread = threading.Thread(target=lambda: outcomes.append(sleep_on(words, -5, 30 * 10**9, scratch)))
    thread.start()
    deadline = time.monotonic() + 20
    woken = 0
    while woken == 0 and time.monotonic() < deadline:  # until the thread sleeps
        woken = set_and_wake(words, -5)
    thread.join(20)
    assert (woken, outcomes) == (1, [0])


@njit(nogil=True)
def wait_for_handlers(words, scratch, pending, timeout_ns):
    deadline = monotonic_ns() + timeout_ns
    interruptions = 0
    atomic_store(words, 1, 1)
    while monotonic_ns() < deadline and atomic_load(words, 0) == 0:
        sched_yield()
        if futex_wait(words, 0, 0, 50_000_000, scratch, 0) == error_codes.EINTR:
            interruptions += 1
            if signal_handler_raised(pending, 0):
                return -interruptions
    return interruptions


def interrupted_wait(handler):
    """Wait in a kernel while another thread sends a signal; return outcome and kept exception."""
    words, scratch, pending = np.zeros(2, np.int64), np.zeros(2, np.int64), np.zeros(PENDING_SIZE, np.int64)
    wait_for_handlers(words, scratch, pending, 0)
    words[1] = 0
    finished = threading.Event()
    handled = []

    def handle(number, frame):
        handled.append(number)
        handler(words)

    def send():
        while words[1] == 0:  # until the kernel runs
            finished.wait(0.01)
        while not handled and not finished.is_set():
            os.kill(os.getpid(), signal.SIGUSR1)
            finished.wait(0.2)

    previous = signal.signal(signal.SIGUSR1, handle)
    sender = threading.Thread(target=send)
    try:
        sender.start()
        outcome = wait_for_handlers(words, scratch, pending, 20 * 10**9)
    finally:
        finished.set()
        sender.join(20)
        signal.signal(signal.SIGUSR1, previous)
    return outcome, take_pending(pending)


def test_a_handler_that_raises_ends_the_wait():
    def handler(words):
        raise KeyError("from the handler")

    outcome, exception = interrupted_wait(handler)
    assert outcome < 0
    assert isinstance(exception, KeyError)
    assert exception.args == ("from the handler",)


def test_a_handler_that_sets_a_flag_lets_the_kernel_wait_on():
    def handler(words):
        words[0] = 1

    outcome, exception = interrupted_wait(handler)
    assert outcome >= 1
    assert exception is None


def test_nothing_pending():
    assert take_pending(np.zeros(PENDING_SIZE, np.int64)) is None
    assert take_pending(np.zeros(0, np.int64)) is None


def _count(name, turns):
    from multiprocessing import shared_memory

    segment = shared_memory.SharedMemory(name)
    words = np.frombuffer(segment.buf, np.int64, 3)
    add_many(words, turns)
    del words
    segment.close()


def test_atomics_between_processes():
    from multiprocessing import shared_memory

    context = multiprocessing.get_context("spawn")
    segment = shared_memory.SharedMemory(create=True, size=64)
    try:
        words = np.frombuffer(segment.buf, np.int64, 3)
        processes = [context.Process(target=_count, args=(segment.name, 50_000)) for _ in range(2)]
        for process in processes:
            process.start()
        for process in processes:
            process.join(100)
        assert [process.exitcode for process in processes] == [0, 0]
        assert words.tolist() == [0, 100_000, 100_000]
        del words
    finally:
        segment.unlink()
        segment.close()
