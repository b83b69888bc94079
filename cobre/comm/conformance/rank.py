"""One rank of a conformance job: ``python -m cobre.comm.conformance.rank``, started by the job.

It connects to the job's socket, sends its rank, and executes commands: create a communicator, run one check
on it, report the outcome. Messages are lines of JSON.
"""

from __future__ import annotations

import argparse
import importlib
import json
import socket
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

from cobre.comm.conformance.catalogue import Case, check_named
from cobre.comm.conformance.targets import load_factory
from cobre.comm.contract import Communicator
from cobre.comm.environment import detect_mpi
from cobre.comm.faces import faces
from cobre.comm.registry import Seat, Traits

_TRACEBACK_LINES: Final = 40
_ANOTHER: Final = "-2"


class RankRunner:
    """Executes the commands of the job.

    Parameters
    ----------
    stream
        The connection to the job.
    rank, size
        This process's rank, and how many there are.
    factory
        Makes a communicator.
    """

    def __init__(
        self, stream: IO[str], rank: int, size: int, factory: Callable[[Seat], Communicator]
    ) -> None:
        self._stream = stream
        self._rank = rank
        self._size = size
        self._factory = factory
        self._kept: Communicator | None = None
        self._publishes = False

    def serve(self) -> None:
        """Execute commands until the job sends the end."""
        self._tell({"rank": self._rank})
        while True:
            order = self._hear()
            if order["do"] == "end":
                break
            self._tell(self._outcome(order))
        if self._kept is not None:
            self._kept.close()

    def _outcome(self, order: dict[str, Any]) -> dict[str, Any]:
        start = time.monotonic()
        value = None
        try:
            value = self._carry_out(order)
            fault = None
        except BaseException as error:  # any error is reported to the job
            lines = traceback.format_exception(type(error), error, error.__traceback__)
            fault = "".join(lines[-_TRACEBACK_LINES:])
        return {"outcome": fault is None, "fault": fault, "value": value, "seconds": time.monotonic() - start}

    def _carry_out(self, order: dict[str, Any]) -> Any:
        communicator = self._communicator(order)
        failed = True
        try:
            face = faces(communicator)[order["face"]] if order["face"] else communicator
            if order["do"] == "call":
                module, _, name = order["function"].partition(":")
                value = getattr(importlib.import_module(module), name)(face, **order["arguments"])
            else:
                directory = Path(order["directory"])
                traits = Traits(**order["traits"])
                another = partial(self._make, order, _ANOTHER)
                case = Case(face, communicator, traits, directory, self._sync, another, self._stay_away)
                value = check_named(order["check"])(case)
            failed = False
            return value
        finally:
            if not order["keep"] or failed:
                self._kept = None
                _dispose(communicator, failed)

    def _communicator(self, order: dict[str, Any]) -> Communicator:
        if order["keep"] and self._kept is not None:
            return self._kept
        communicator = self._make(order)
        if order["keep"]:
            self._kept = communicator
        return communicator

    def _make(self, order: dict[str, Any], suffix: str = "") -> Communicator:
        session = order["session"] + suffix
        return self._factory(Seat(self._rank, self._size, session, order["timeout_s"], self._publish))

    def _stay_away(self) -> None:
        if self._publishes:  # every rank publishes, or none receives the value of rank 0
            self._publish(None)

    def _publish(self, value: Any) -> Any:
        self._publishes = True
        self._tell({"publish": value})
        return self._hear()["published"]

    def _sync(self) -> None:
        self._tell({"sync": True})
        self._hear()

    def _tell(self, message: dict[str, Any]) -> None:
        self._stream.write(json.dumps(message) + "\n")
        self._stream.flush()

    def _hear(self) -> dict[str, Any]:
        line = self._stream.readline()
        if not line:
            raise SystemExit("the job is gone")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _dispose(communicator: Communicator, failed: bool) -> None:
    if failed:
        # as a with block that an exception leaves: without waiting for anybody
        communicator.__exit__(RuntimeError, RuntimeError("a check failed"), None)
    else:
        communicator.close()


def main() -> None:
    """Run one rank."""
    parser = argparse.ArgumentParser(description="One rank of a conformance job; started by the job.")
    parser.add_argument("--socket", required=True)
    parser.add_argument("--factory", required=True)
    parser.add_argument("--rank", type=int)
    parser.add_argument("--size", type=int)
    given = parser.parse_args()
    rank, size = given.rank, given.size
    if rank is None:
        launch = detect_mpi()
        if launch is None or launch.size is None:
            parser.error("no launcher of MPI jobs has started this process")
        rank, size = launch.rank, launch.size
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(given.socket)
        with connection.makefile("rw", encoding="utf-8") as stream:
            RankRunner(stream, rank, size, load_factory(given.factory)).serve()


if __name__ == "__main__":
    main()
