"""Trainings and simulations as jobs: directories that hold all there is to know, and processes of their own.

A job is ``ROOT/.cobre-jobs/ID``:

    job.json       what was asked for; never changes
    case/          the case as it was then
    alive          locked while a process works on the job, or waits for its turn
    started.json   when its turn came
    log.jsonl      what the command prints: progress, and at its end the result
    messages.log   what it says besides
    cancel         somebody asks it to stop; ``now`` inside: at once
    result.json    how it ended

:mod:`~cobre.mcp.jobs.runner` is the process: it waits for its turn, carries out the ordinary command line and
writes the result. It needs no server. :mod:`~cobre.mcp.jobs.store` submits jobs and reads them,
:mod:`~cobre.mcp.jobs.state` says what became of one. What counts as alive is a lock, not a process number:
the system releases it however a process ends.
"""
