"""The processes in which checks run, started once for each backend and number of ranks.

The job sends commands to its ranks over a local socket and receives their outcomes. That connection is not
the communicator under test, so a check that fails, hangs or kills a rank is reported like any other. The next
check then runs in new processes; if a rank was meant to die and all others passed, only it is replaced.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final

from cobre.comm.conformance.catalogue import Check
from cobre.comm.conformance.targets import DEFAULT_TIMEOUT_SECONDS, Target, new_session
from cobre.comm.launch.processes import bind_to_parent, end_processes

_START_SECONDS: Final = 120.0
_CHECK_SECONDS: Final = 240.0  # the first one may compile
_END_SECONDS: Final = 20.0
_DEATH_SECONDS: Final = 60.0
_OUTPUT_CHARACTERS: Final = 2000


@dataclass(frozen=True)
class RankOutcome:
    """How one rank fared.

    Attributes
    ----------
    rank
        The rank.
    fault
        What went wrong, as text; ``None`` when it passed.
    value
        What the check returned.
    seconds
        How long it took, with the making of the communicator.
    died
        Whether the process ended.
    """

    rank: int
    fault: str | None
    value: Any = None
    seconds: float = 0.0
    died: bool = False


class _Link:
    """The connection to one rank."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._buffer = b""

    def tell(self, message: dict[str, Any]) -> None:
        self.connection.sendall(json.dumps(message).encode() + b"\n")

    def read(self) -> list[dict[str, Any]] | None:
        """Return the messages that have arrived in full; ``None`` at the end."""
        try:
            part = self.connection.recv(1 << 16)
        except ConnectionResetError:
            part = b""
        if not part:
            return None
        *lines, self._buffer = (self._buffer + part).split(b"\n")
        return [json.loads(line) for line in lines]


class ConformanceJob:
    """Ranks that run checks; a context manager that ends them.

    Parameters
    ----------
    target
        The backend.
    size
        Number of ranks.
    """

    def __init__(self, target: Target, size: int) -> None:
        self.target = target
        self.size = size
        self._processes: dict[int, subprocess.Popen[bytes]] = {}  # by rank; a launcher's is at 0
        self._links: dict[int, _Link] = {}
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._output: IO[bytes] | None = None
        self._kept_session = new_session()
        self._keeps_communicator = False

    def __enter__(self) -> ConformanceJob:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def run(self, check: Check, face: int = 0) -> list[RankOutcome]:
        """Run a check on all ranks, on a communicator of its own."""
        session = new_session()
        self._start()
        assert self._directory is not None
        directory = Path(self._directory.name) / session
        directory.mkdir()
        order = {
            "do": "check",
            "check": check.name,
            "face": face,
            "traits": asdict(self.target.traits),
            "directory": str(directory),
            "session": session,
            "timeout_s": check.timeout_s or DEFAULT_TIMEOUT_SECONDS,
            "keep": False,
        }
        patience_s = _DEATH_SECONDS if check.victim is not None else _CHECK_SECONDS
        outcomes = self._order(order, patience_s, check.victim)
        if check.victim is not None:
            outcomes = [_judge_victim(outcome, check.victim) for outcome in outcomes]
            if self._links:
                self._bury(check.victim)
        left = self.target.leftovers(session) if self.target.leftovers is not None else []
        if left and all(outcome.fault is None for outcome in outcomes):
            outcomes[0] = RankOutcome(0, f"left behind: {', '.join(left)}")
        return outcomes

    def call(self, function: str, face: int = 0, **arguments: Any) -> list[RankOutcome]:
        """Call ``module:function`` with a face and arguments on all ranks, on a communicator that is kept.

        Parameters
        ----------
        function
            Its path; arguments and results are values that JSON can hold.
        face
            0 for the owner, 1 for the kernel.
        **arguments
            Further arguments.
        """
        self._start()
        self._keeps_communicator = True
        order = {
            "do": "call",
            "function": function,
            "arguments": arguments,
            "face": face,
            "session": self._kept_session,
            "timeout_s": DEFAULT_TIMEOUT_SECONDS,
            "keep": True,
        }
        outcomes = self._order(order, _CHECK_SECONDS)
        if any(outcome.fault is not None for outcome in outcomes):
            self.close()  # some ranks may have kept their communicator, others not
        return outcomes

    def close(self) -> None:
        """End the ranks; the next check starts new ones."""
        processes = list(self._processes.values())
        for link in self._links.values():
            try:
                link.tell({"do": "end"})
            except OSError:
                break  # dead already: the others are ended below
        else:
            _wait_for_all(processes, _END_SECONDS)
        for link in self._links.values():
            link.connection.close()
        end_processes(processes)
        self._links, self._processes = {}, {}
        self._kept_session = new_session()
        self._keeps_communicator = False
        if self._output is not None:
            self._output.close()
            self._output = None
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None

    def _start(self) -> None:
        missing = [rank for rank in range(self.size) if rank not in self._links]
        if not missing:
            return
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="cobre-conformance-")
            self._output = (Path(self._directory.name) / "output").open("w+b")
        path = Path(self._directory.name) / "socket"
        try:
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(path))
                listener.listen(self.size)
                arguments = ["--socket", str(path), "--factory", self.target.factory]
                commands = self.target.commands(self.size, arguments)
                for rank in missing if self.target.launcher is None else [0]:
                    command, environment = commands[rank]
                    self._processes[rank] = subprocess.Popen(
                        command,
                        env=environment,
                        stdin=subprocess.DEVNULL,
                        stdout=self._output,
                        stderr=self._output,
                        start_new_session=True,
                        preexec_fn=partial(bind_to_parent, os.getpid(), signal.SIGTERM),
                    )
                self._links.update(self._accept(listener, len(missing)))
            path.unlink()
        except BaseException:
            self.close()
            raise

    def _bury(self, victim: int) -> None:
        self._links.pop(victim).connection.close()
        end_processes([self._processes.pop(victim)])

    def _accept(self, listener: socket.socket, count: int) -> dict[int, _Link]:
        deadline = time.monotonic() + _START_SECONDS
        links: dict[int, _Link] = {}
        while len(links) < count:
            listener.settimeout(0.2)
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                ended = [p.returncode for p in self._processes.values() if p.poll() is not None]
                if ended or time.monotonic() > deadline:
                    text = f"the ranks did not start (exit codes {ended}):\n{self._last_output()}"
                    raise RuntimeError(text) from None
                continue
            connection.settimeout(max(0.1, deadline - time.monotonic()))
            link = _Link(connection)
            hello = link.read()
            while hello == []:
                hello = link.read()
            if hello is None:
                connection.close()  # it ended at once, which is noticed above
            else:
                links[hello[0]["rank"]] = link
                connection.settimeout(None)
        return links

    def _order(
        self, order: dict[str, Any], patience_s: float, victim: int | None = None
    ) -> list[RankOutcome]:
        outcomes: dict[int, RankOutcome] = {}
        syncing: set[int] = set()
        published: dict[int, Any] = {}
        deadline = time.monotonic() + patience_s
        for rank, link in self._links.items():
            try:
                link.tell(order)
            except OSError:
                outcomes[rank] = RankOutcome(rank, f"died:\n{self._last_output()}", died=True)
        with selectors.DefaultSelector() as selector:
            for rank, link in self._links.items():
                if rank not in outcomes:
                    selector.register(link.connection, selectors.EVENT_READ, rank)
            while len(outcomes) < self.size:
                ready = selector.select(max(0.0, deadline - time.monotonic()))
                if not ready:
                    break
                for rank, message in _messages(ready, selector, self._links):
                    if message is None:
                        outcomes[rank] = RankOutcome(rank, f"died:\n{self._last_output()}", died=True)
                    elif "outcome" in message:
                        outcomes[rank] = RankOutcome(
                            rank, message["fault"], message["value"], message["seconds"]
                        )
                    elif "sync" in message:
                        syncing.add(rank)
                    else:
                        published[rank] = message["publish"]
                if len(syncing | outcomes.keys()) == self.size:
                    self._answer(syncing, {"synced": True})
                if 0 in published and len(published.keys() | outcomes.keys()) == self.size:
                    self._answer(set(published), {"published": published[0]})
                    published.clear()
        return self._complete(outcomes, patience_s, victim)

    def _answer(self, ranks: set[int], answer: dict[str, Any]) -> None:
        for rank in sorted(ranks):
            self._links[rank].tell(answer)
        if "synced" in answer:
            ranks.clear()

    def _complete(
        self, outcomes: dict[int, RankOutcome], patience_s: float, victim: int | None
    ) -> list[RankOutcome]:
        hung = [rank for rank in range(self.size) if rank not in outcomes]
        for rank in hung:
            outcomes[rank] = RankOutcome(rank, f"no answer within {patience_s} s")
        result = [outcomes[rank] for rank in range(self.size)]
        if victim is None:
            sound = not hung and not any(outcome.died for outcome in result)
        else:
            # the others go on, unless the launcher has ended them or a communicator is kept with the dead one
            sound = all(outcome.died if outcome.rank == victim else not outcome.fault for outcome in result)
            sound = sound and self.target.launcher is None and not self._keeps_communicator
        if not sound:
            end_processes(list(self._processes.values()))
            self.close()
        return result

    def _last_output(self) -> str:
        if self._output is None:
            return ""
        text = (Path(str(self._output.name))).read_text(errors="replace")
        return text[-_OUTPUT_CHARACTERS:]


def _messages(
    ready: list[tuple[selectors.SelectorKey, int]], selector: selectors.BaseSelector, links: dict[int, _Link]
) -> Iterator[tuple[int, dict[str, Any] | None]]:
    for key, _ in ready:
        rank: int = key.data
        messages = links[rank].read()
        if messages is None:
            selector.unregister(key.fileobj)
            yield rank, None
        else:
            for message in messages:
                yield rank, message


def _judge_victim(outcome: RankOutcome, victim: int) -> RankOutcome:
    if outcome.rank != victim:
        return outcome
    fault = None if outcome.died else f"rank {victim} was to die and did not"
    return RankOutcome(victim, fault, died=outcome.died)


def _wait_for_all(processes: list[subprocess.Popen[bytes]], patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return


Progress = Callable[[Check, int, list[RankOutcome]], None]
