"""Run a function, or a command, on several ranks of this machine (API-02, API-05, API-08).

``launch`` starts Python processes that each make a communicator and call one function with it::

    def work(comm, n):
        ...                       # the same collectives on every rank
        return result

    if __name__ == "__main__":
        results = launch(work, 4, args=(1000,))

:func:`~cobre.comm.launch.command.run_command` starts copies of any command instead, which find their ranks in
the environment.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from cobre.comm.descriptors import require_descriptors
from cobre.comm.launch.calls import check_arguments, check_not_importing, make_call
from cobre.comm.launch.launched import Task
from cobre.comm.launch.processes import cpu_slices, end_processes, scrubbed
from cobre.comm.launch.rank_process import OnProgress, RankProcess
from cobre.comm.launch.watching import watch
from cobre.comm.registry import make_transport
from cobre.errors import WorkerError

DESCRIPTORS_OF_A_RANK: Final = 2
"""Of the process that starts it: its pipe, and the descriptor that signals its end."""

_EXIT_SECONDS: Final = 10.0


def launch(
    function: Callable[..., Any],
    ranks: int,
    *,
    backend: str = "shm",
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    timeout_s: float | None = None,
    on_progress: OnProgress | None = None,
    pin: bool = True,
    environment: Mapping[str, str] | None = None,
) -> list[Any]:
    """Run ``function(communicator, *args, **kwargs)`` in several new processes and return their results.

    The processes start afresh, never by fork (API-03), whatever multiprocessing is set to, and without the
    variables of any other launcher. They end with this call, also when it raises or this process is killed.
    Data does not go through the parent: ranks exchange it by their communicator; arguments and results are
    for small things, such as paths.

    Parameters
    ----------
    function
        Defined at the top level of a module that the new processes can import. A script that calls ``launch``
        needs ``if __name__ == "__main__":`` around the call.
    ranks
        Number of processes.
    backend
        ``"shm"``, ``"tcp"`` (on the loopback interface), or another that has a transport.
    args, kwargs
        Further arguments; pickled.
    timeout_s
        Give up after so many seconds.
    on_progress
        Called here with ``(rank, item)`` for each ``progress(item)`` and ``ask(item)`` of a rank, while it
        runs; items of one rank come in their order. ``ask`` answers whether it returned something true.
    pin
        Give each rank CPUs of its own, if there are at least as many CPUs as ranks.
    environment
        Variables that the new processes get besides this one's.

    Returns
    -------
    list
        What the function returned, by rank.

    Raises
    ------
    WorkerError
        When a rank raises, is killed, or ends without a result, or the time is over; describes the first
        failure. All other ranks have been ended.
    ValidationError
        When an argument is wrong, or cannot be sent to another process.
    CobreError
        Kind ``IncompatibleSettings`` when a rank calls ``launch`` while it imports its main module.
    """
    check_arguments("launch", ranks=ranks, timeout_s=timeout_s)
    check_not_importing("launch")
    call = make_call(function, tuple(args), dict(kwargs or {}), "launch")
    require_descriptors(backend, DESCRIPTORS_OF_A_RANK * ranks, f"the launcher of {ranks} ranks")
    started: list[RankProcess] = []
    with make_transport(backend, ranks) as transport:
        try:
            variables = {**scrubbed(os.environ), **(environment or {})}
            slices = cpu_slices(ranks) if pin else None
            for number in range(ranks):
                rank = RankProcess(number, variables, descriptors=transport.descriptors(number))
                started.append(rank)
                cpus = None if slices is None else tuple(slices[number])
                config = transport.config(number)
                rank.give(Task(call.preparation, cpus, transport.backend, config, call.body, last=True))
            transport.started()
            failure = watch(started, on_progress, timeout_s=timeout_s)
            if failure is not None:
                _await_exit(failure, started)
                raise failure from failure.inner
            return [rank.value() for rank in started]
        finally:
            end_processes([rank.process for rank in started])
            for rank in started:
                rank.connection.close()


def _await_exit(failure: WorkerError, ranks: Sequence[RankProcess]) -> None:
    """End all other ranks, and complete the failure with the exit code of its own, which is about to end."""
    end_processes([rank.process for rank in ranks if rank.number != failure.rank])
    if failure.exit_code is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = ranks[failure.rank].process.wait(_EXIT_SECONDS)
            failure.exit_code = failure.context["exit_code"] = code
