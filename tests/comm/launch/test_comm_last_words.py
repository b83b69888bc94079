"""A rank that ends the job waits until its output has been read."""

from __future__ import annotations

import os
import pty
import socket
import sys
import threading
import time

import pytest

from cobre.comm.launch.last_words import unread_bytes, wait_until_read

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems count otherwise")


def pipe() -> tuple[int, int]:
    return os.pipe()


def sockets() -> tuple[int, int]:
    first, second = socket.socketpair()
    return first.detach(), second.detach()


@pytest.mark.parametrize("make", [pipe, sockets])
def test_waits_for_the_reader(make):
    reading, writing = make()
    story: list[bytes] = []

    def read_late() -> None:
        time.sleep(0.2)
        story.append(os.read(reading, 100))

    try:
        os.write(writing, b"the traceback")
        assert unread_bytes(writing) > 0
        reader = threading.Thread(target=read_late)
        reader.start()
        assert wait_until_read([writing], 30.0)
        assert unread_bytes(writing) == 0
        reader.join()
        assert story == [b"the traceback"]
    finally:
        os.close(reading)
        os.close(writing)


def test_does_not_wait_for_ever():
    reading, writing = os.pipe()
    try:
        os.write(writing, b"nobody reads this")
        assert not wait_until_read([writing], 0.01)
    finally:
        os.close(reading)
        os.close(writing)


def test_what_nobody_has_to_read_is_not_waited_for(tmp_path):
    with (tmp_path / "output").open("wb", buffering=0) as file:
        file.write(b"kept")
        assert unread_bytes(file.fileno()) == 0
        closed = os.dup(file.fileno())
    os.close(closed)
    assert unread_bytes(closed) == 0
    controller, terminal = pty.openpty()
    try:
        assert wait_until_read([terminal], 1.0)
    finally:
        os.close(controller)
        os.close(terminal)
