"""What a run of training leaves: the events of its beginning and end, and its results on disk."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from cobre.errors import OutputError

if TYPE_CHECKING:
    from cobre.sddp.plan import TrainingPlan
    from cobre.sddp.progress import TrainingResult


@contextmanager
def logged(plan: TrainingPlan | None) -> Iterator[Callable[[TrainingResult], TrainingResult]]:
    """Write the events of a run's beginning and end; give a function that takes the result for the latter."""
    from cobre.sddp.events import event_log, failed, finished, started

    log = event_log(None if plan is None else plan.output)
    if plan is not None:
        log.write([started(plan)])

    def finish(result: TrainingResult) -> TrainingResult:
        log.write([finished(result)])
        known = {problem.kind for problem in result.warnings}
        new = tuple(problem for problem in log.problems() if problem.kind not in known)
        return replace(result, warnings=(*result.warnings, *new)) if new else result

    try:
        yield finish
    except BaseException as error:
        log.discard()  # a run that ends before its first iteration leaves nothing
        if log.path is not None and log.path.exists():
            log.write([failed(error)])
        raise
    finally:
        log.close()


def placed(plan: TrainingPlan, result: TrainingResult) -> TrainingResult:
    """Return the result with what only this process knows: the study, where it goes, and earlier warnings."""
    return replace(
        result,
        policy=replace(result.policy, study=plan.case),
        output=plan.output,
        warnings=(*plan.warnings, *result.warnings),
    )


def written(plan: TrainingPlan, result: TrainingResult, began: datetime.datetime) -> TrainingResult:
    """Write the results, unless the output holds a longer run of this study; further exports come last."""
    from cobre.results import write_stochastic, write_training
    from cobre.sddp.plan import kept_instead

    if plan.output is None:
        return result
    try:
        kept = kept_instead(plan, result.iterations)
        if kept is not None:
            return replace(result, warnings=(*result.warnings, kept))
        write_training(plan.output, plan.case, result, began, now(), result.status)
        if plan.case.exports.stochastic:
            write_stochastic(plan.output, plan.case.stochastic())
    except OutputError as error:
        error.result = result
        raise
    return result


def now() -> datetime.datetime:
    """Return the date and time, with its time zone."""
    return datetime.datetime.now(datetime.timezone.utc)
