"""What training keeps on disk, and goes on from: checkpoints.

A checkpoint holds everything that later iterations depend on: the cut pool, the starting bases of all passes,
what cut selection remembers and the visited states. Noise is a function of seed and iteration, and an LP one
of template and active cuts, so nothing else is needed: a resumed run makes the same bytes as one that was
never stopped, on any number of ranks. Rank 0 writes, and reads for all: it sends the files to the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import Case, CheckpointOptions, PolicyMode
from cobre.comm import Communicator
from cobre.errors import Problem, ValidationError
from cobre.lp.arrays import BasisStore, CutPool, LpArrays
from cobre.policy import (
    CheckpointData,
    Fingerprint,
    Policy,
    StartingBases,
    StoredDirectory,
    VisitedStates,
    history_columns,
    history_records,
    with_fingerprint,
    write_checkpoint,
)
from cobre.sddp.kernel.buffers import IterationBuffers
from cobre.sddp.progress import IterationRecord
from cobre.sddp.ranks.agreement import failing_together, files_of_root, gather_bytes

if TYPE_CHECKING:
    from cobre.sddp.rules.selection import CutSelector

KEEP_LAST = 3
KEEP_LAST_OPTION = "keep_last"
_NODES = "visited_state_nodes"
"""Array of a checkpoint: nodes of the archived states by (stage, state)."""


@dataclass(frozen=True)
class Storage:
    """Where a run keeps its checkpoints, and what it starts from; :mod:`cobre.sddp.plan` makes it.

    Attributes
    ----------
    checkpoints
        Directory of the checkpoints; ``None`` = none are written.
    schedule
        When they are written besides at the end; ``None`` = only then.
    resume_from, opened
        Checkpoint that the run goes on from, and its files where this process has read them already.
    loaded_before
        Cuts that a node of the run that is resumed had started with, at most.
    warm_start
        Policy directory (of cobre, or of cobre-rs) whose cuts the run starts with.
    keep_last
        Checkpoints that stay.
    held_iterations
        A stored checkpoint holds so many iterations of this very run: shorter ones are not written.
    started_from
        Digest of the policy whose cuts the run, or the one that it resumes, started with.
    fingerprint
        Of the study; on the rank that writes.
    """

    checkpoints: Path | None = None
    schedule: CheckpointOptions | None = None
    resume_from: Path | None = None
    opened: StoredDirectory | None = field(default=None, compare=False, repr=False)
    loaded_before: int = 0
    warm_start: Path | None = None
    keep_last: int = KEEP_LAST
    held_iterations: int = 0
    started_from: str | None = None
    fingerprint: Fingerprint | None = None

    @property
    def policy_mode(self) -> PolicyMode:
        """What training starts from."""
        if self.resume_from is not None:
            return "resume"
        return "fresh" if self.warm_start is None else "warm_start"


def too_many_iterations(path: Path, iterations: int, limit: int) -> ValidationError:
    """Return the error of a run that is to resume more iterations than it may make."""
    problem = Problem(
        "InvalidValue",
        f"{path} holds {iterations} iterations, more than the limit of {limit}",
        {"field": "iterations", "value": limit},
        f"to resume from it, ask for at least {iterations} iterations",
    )
    return ValidationError([problem], source="arguments")


class Checkpointer:
    """Writes and restores the checkpoints of one run; all ranks call the same methods at the same time.

    Parameters
    ----------
    lp, pool, basis, buffers, selector, visited
        Of this rank; restoring fills them.
    """

    def __init__(
        self,
        storage: Storage,
        case: Case,
        comm: Communicator,
        lp: LpArrays,
        pool: CutPool,
        basis: BasisStore,
        buffers: IterationBuffers,
        selector: CutSelector,
        visited: VisitedStates,
    ) -> None:
        self.storage, self.case, self.comm = storage, case, comm
        self.lp, self.pool, self.basis, self.buffers = lp, pool, basis, buffers
        self.selector, self.visited = selector, visited
        self.warnings: tuple[Problem, ...] = ()
        self._written = 0

    def due(self, iteration: int) -> bool:
        """Whether a checkpoint follows ``iteration`` (from 1)."""
        schedule = self.storage.schedule
        return schedule is not None and schedule.due(iteration)

    def write(self, policy: Policy, history: Sequence[IterationRecord]) -> None:
        """Write a checkpoint of the iterations in ``history``, unless it is there already; collective."""
        storage = self.storage
        done = len(history)
        if storage.checkpoints is None or self._written == done or done < storage.held_iterations:
            return
        schedule = storage.schedule
        bases = self._gathered_bases() if schedule is None or schedule.store_basis else None
        with failing_together(self.comm):
            if self.comm.rank == 0:
                data = CheckpointData(
                    policy=with_fingerprint(policy, self.case),
                    history=history_columns(history),
                    bases=bases,
                    states=self.visited.rows(len(self.buffers.pass_all)),
                    extra_arrays={**self.selector.memory(), _NODES: self.visited.nodes()},
                    checkpointing=self._given_options(),
                )
                compress = schedule is None or schedule.compress
                write_checkpoint(storage.checkpoints, data, storage.keep_last, compress=compress)
        self._written = done

    def _given_options(self) -> dict[str, int]:
        """Return the options of checkpoints that are not the case's: a resumed run goes on with them."""
        storage = self.storage
        given: dict[str, int] = {}
        if storage.schedule is not None and storage.schedule != self.case.policy.checkpointing:
            given |= asdict(storage.schedule)
        if storage.keep_last != KEEP_LAST:
            given[KEEP_LAST_OPTION] = storage.keep_last
        return given

    def restore(self) -> list[IterationRecord]:
        """Go on from the checkpoint that the run resumes; return its history, empty where there is none.

        Collective: rank 0 reads each file once, and all ranks decode the same bytes.

        Raises
        ------
        ValidationError
            On all ranks, when it is damaged, or holds more than the run may make.
        """
        path = self.storage.resume_from
        if path is None:
            return []
        files: dict[str, bytes] = {}
        with failing_together(self.comm):
            if self.comm.rank == 0:
                directory = self.storage.opened or StoredDirectory(path)
                files = directory.files()
                directory.release()
        stored = StoredDirectory(path, files=files_of_root(self.comm, files))
        files.clear()
        with failing_together(self.comm):
            return self._go_on_from(stored.checkpoint(), path)

    def _go_on_from(self, data: CheckpointData, path: Path) -> list[IterationRecord]:
        self._fill_pool(data.policy, path)
        own = len(self.buffers.pass_own)
        first = int(self.buffers.pass_start[self.comm.rank])
        if data.bases is not None:
            store = self.basis
            data.bases.spread(
                self.lp.num_cols, store.num_rows[:own], store.col_status, store.row_status, first
            )
        else:
            self.warnings += (
                Problem(
                    "NotBitForBit",
                    f"{path} holds no starting bases: training goes on validly, but where LPs have "
                    "several solutions not bit for bit as if it had not been stopped",
                    {"field": "policy.checkpointing.store_basis", "value": False},
                    "store them with checkpoints",
                ),
            )
        self.selector.remember(data.extra_arrays)
        nodes = data.extra_arrays.get(_NODES)
        if data.states is not None and nodes is not None:
            self.visited.restore(data.states, nodes.astype(np.int64))
        history = list(history_records(IterationRecord, data.history))
        self._written = len(history)
        return history

    def _gathered_bases(self) -> StartingBases:
        """Return the bases of all passes, on every rank."""
        own = len(self.buffers.pass_own)
        store = self.basis
        rows = self._gathered(np.ascontiguousarray(store.num_rows[:own]))
        col_status = self._gathered(np.ascontiguousarray(store.col_status[:own]))
        row_status = self._gathered(np.ascontiguousarray(store.row_status[:own]))
        return StartingBases.gather(self.lp.num_cols, rows, col_status, row_status)

    def _gathered(self, own: NDArray[Any]) -> NDArray[Any]:
        """Gather what every rank has for its passes (the first axis), in the order of passes."""
        if self.comm.size == 1:
            return own
        shape = (int(self.buffers.pass_count.sum()), *own.shape[1:])
        lengths = self.buffers.pass_count * (int(np.prod(own.shape[1:])) * own.itemsize)
        received = np.concatenate(gather_bytes(self.comm, own.reshape(-1).view(np.uint8), lengths))
        return received.view(own.dtype).reshape(shape)

    def _fill_pool(self, policy: Policy, path: Path) -> None:
        pool = self.pool
        if max(len(cuts) for cuts in policy.cuts) > pool.intercept.shape[1]:
            limit = self.case.training.iteration_limit
            raise too_many_iterations(path, policy.completed_iterations, limit)
        for node, cuts in enumerate(policy.cuts):
            count = len(cuts)
            pool.intercept[node, :count] = cuts.intercept
            pool.slope[node, :count] = cuts.slopes
            pool.iteration[node, :count] = cuts.iteration
            pool.forward_pass[node, :count] = cuts.forward_pass
            pool.active[node, :count] = cuts.active
            pool.num_cuts[node] = count
            pool.version[node] += 1
