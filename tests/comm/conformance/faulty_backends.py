"""Communicators with a fault each, made in the ranks of a conformance job."""

from __future__ import annotations

import os
import signal

from cobre.comm.local import LocalCommunicator


class Crashing(LocalCommunicator):
    """Its process dies in a barrier."""

    def barrier(self):
        os.kill(os.getpid(), signal.SIGKILL)


class Forgetful(LocalCommunicator):
    """Its gathers are one element short."""

    def allgatherv(self, send, recv, counts, displs):
        kept = recv[-1:].copy()
        super().allgatherv(send, recv, counts, displs)
        recv[-1:] = kept


def make_sound(seat):
    return LocalCommunicator()


def make_crashing(seat):
    return Crashing()


def make_forgetful(seat):
    return Forgetful()


def make_nothing(seat):
    raise RuntimeError("no communicator today")
