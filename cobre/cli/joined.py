"""A command as one rank of a job that something else has started: mpiexec, ``cobre launch``, Slurm.

Rank 0 checks the case, shows progress and writes; the others are quiet. All end with the same exit code:
a rank that fails alone notifies the others, or they notice that it is gone.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from cobre.cli.environment import reserve_threads
from cobre.cli.exit_codes import ConfigurationError, ExitCode, exit_code_of
from cobre.cli.outcome import Outcome
from cobre.cli.runner import record_failure
from cobre.cli.study_command import StudyRequest, Work, load_case, warn_of_threads, watch_signals
from cobre.cli.views import RankView
from cobre.errors import CobreError, ValidationError
from cobre.machine import usable_cpus
from cobre.sddp.ranks.cpus import requested_threads

if TYPE_CHECKING:
    from cobre.case.model import Case
    from cobre.comm import Communicator

_ROOT = 0


def work_joined(
    request: StudyRequest, view: RankView, outcome: Outcome, work: Work, after_a_loss: str
) -> None:
    """Carry out a command on this rank; fills the outcome in and raises what goes wrong.

    Parameters
    ----------
    after_a_loss
        What to do when a rank is lost.
    """
    threads = request.threads or _requested_threads()
    if threads is not None:
        reserve_threads(threads)
        if threads > usable_cpus():
            warn_of_threads(outcome, threads)
    from cobre.comm import CommError, create_communicator

    with create_communicator(request.backend) as comm:
        view.rank = comm.rank
        try:
            _carry_out(comm, request, threads, view, outcome, work)
        except CobreError as error:
            if error.on_all_ranks:
                _fail_together(comm, error, view, outcome)
                return
            if isinstance(error, CommError):
                # Rank 0 reports a lost rank, unless it is the lost one.
                view.reported = "rank 0 " not in f"{error.message} "
                error.suggestion = error.suggestion or after_a_loss
            _end_job(comm, error, view, outcome)
            raise
        except BaseException as error:
            _end_job(comm, error, view, outcome)
            raise


def _carry_out(
    comm: Communicator,
    request: StudyRequest,
    threads: int | None,
    view: RankView,
    outcome: Outcome,
    work: Work,
) -> None:
    from cobre.sddp.ranks.agreement import largest

    case = _load_everywhere(comm, request, view, outcome)
    if case is None:
        return
    with watch_signals(view, outcome) as interrupts:
        # A rank that left alone would fail the others: even the first signal waits for a boundary.
        interrupts.saving = True
        conclude = work(case, 1, threads, interrupts, view, outcome, comm)
        signalled = largest(comm, signal.SIGINT if interrupts.interrupted else interrupts.number)
        by_sigint = bool(largest(comm, interrupts.interrupted))
    conclude(signalled, by_sigint)
    view.reported = True


def _load_everywhere(
    comm: Communicator, request: StudyRequest, view: RankView, outcome: Outcome
) -> Case | None:
    """Load the case on rank 0, and where it is right there on the others; ``None`` when it is wrong."""
    from cobre.sddp.ranks.agreement import failing_together, largest

    case: Case | None = None
    with failing_together(comm):
        if comm.rank == _ROOT:
            case = load_case(request, outcome)
    code = largest(comm, int(outcome.exit_code))
    if code != int(ExitCode.OK):
        outcome.exit_code = ExitCode(code)
        view.reported = True
        return None
    with failing_together(comm):
        if comm.rank != _ROOT:
            mine = Outcome(outcome.command)
            case = load_case(request, mine)
            if case is None:
                raise ValidationError(mine.errors)
    return case


def _requested_threads() -> int | None:
    try:
        return requested_threads()
    except CobreError as error:
        raise ConfigurationError(error.kind, error.message, error.context, error.suggestion) from None


def _fail_together(comm: Communicator, error: CobreError, view: RankView, outcome: Outcome) -> None:
    """End with the lowest exit code of all ranks, which is that of the cause; the others repeat its error."""
    from cobre.sddp.ranks.agreement import largest

    code = ExitCode(-largest(comm, -int(exit_code_of(error))))
    outcome.fail(code, error.problems)
    view.reported = True


def _end_job(comm: Communicator, error: BaseException, view: RankView, outcome: Outcome) -> None:
    """End all ranks where they would wait for this one: not every backend reports that a rank has left."""
    from cobre.comm.registry import find_backend

    if find_backend(comm.backend).traits.detects_death or comm.size == 1:
        return
    record_failure(outcome, error)
    view.finish(outcome)
    comm.abort(int(outcome.exit_code))
