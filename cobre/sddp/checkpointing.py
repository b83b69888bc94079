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
from cobre.lp.engines.own.stored_bases import BasisPacker, PackedBases
from cobre.policy import (
    CheckpointData,
    Fingerprint,
    FirstBases,
    LpEngines,
    Policy,
    StartingBases,
    StoredDirectory,
    VisitedStates,
    history_columns,
    history_records,
    with_fingerprint,
    write_checkpoint,
)
from cobre.policy.store.failures import damaged
from cobre.sddp.kernel.buffers import IterationBuffers
from cobre.sddp.progress import IterationRecord
from cobre.sddp.ranks.agreement import failing_together, files_of_root, gather_bytes, gather_rows
from cobre.sddp.upper_bound import KnownValues

if TYPE_CHECKING:
    from cobre.sddp.rules.selection import CutSelector

KEEP_LAST = 3
KEEP_LAST_OPTION = "keep_last"
_NODES = "visited_state_nodes"
"""Array of a checkpoint: nodes of the archived states by (stage, state)."""
_USES_OWN = "lp_engine_own"
"""Array of a checkpoint: by node whether the own engine solves its LPs, else HiGHS does."""


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
    uses_own
        By node: whether the own engine solves its LPs.
    own_bases
        Bases of that engine.
    known
        What the upper bound goes on from, where there is one.
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
        uses_own: NDArray[np.int8],
        own_bases: BasisPacker,
        known: KnownValues | None = None,
    ) -> None:
        self.storage, self.case, self.comm = storage, case, comm
        self.lp, self.pool, self.basis, self.buffers = lp, pool, basis, buffers
        self.selector, self.visited = selector, visited
        self.uses_own, self.own_bases, self.known = uses_own, own_bases, known
        self.warnings: tuple[Problem, ...] = ()
        self.engines_before: LpEngines | None = None
        self._written = 0

    def due(self, iteration: int) -> bool:
        """Whether a checkpoint follows ``iteration`` (from 1)."""
        schedule = self.storage.schedule
        return schedule is not None and schedule.due(iteration)

    def write(self, policy: Policy, history: Sequence[IterationRecord]) -> bool:
        """Write a checkpoint of the iterations in ``history``, unless it is there already; collective.

        Returns whether it was written.
        """
        storage = self.storage
        done = len(history)
        if storage.checkpoints is None or self._written == done or done < storage.held_iterations:
            return False
        schedule = storage.schedule
        bases: StartingBases | None = None
        own_bases: dict[str, NDArray[Any]] = {}
        if schedule is None or schedule.store_basis:
            bases = self._gathered_bases()
            own_bases = {_USES_OWN: self.uses_own, **self._gathered_own_bases().arrays()}
        known = {} if self.known is None else self.known.arrays()
        with failing_together(self.comm):
            if self.comm.rank == 0:
                data = CheckpointData(
                    policy=with_fingerprint(policy, self.case),
                    history=history_columns(history),
                    bases=bases,
                    states=self.visited.rows(len(self.buffers.pass_all)),
                    extra_arrays={
                        **self.selector.memory(),
                        _NODES: self.visited.nodes(),
                        **own_bases,
                        **known,
                    },
                    checkpointing=self._given_options(),
                )
                compress = schedule is None or schedule.compress
                write_checkpoint(storage.checkpoints, data, storage.keep_last, compress=compress)
        self._written = done
        return True

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
        self.engines_before = data.policy.lp_engine
        self._restore_bases(data, path)
        self.selector.remember(data.extra_arrays)
        nodes = data.extra_arrays.get(_NODES)
        if data.states is not None and nodes is not None:
            self.visited.restore(data.states, nodes.astype(np.int64))
            self._restore_known(data, path)
        history = list(history_records(IterationRecord, data.history))
        self._written = len(history)
        return history

    def _restore_known(self, data: CheckpointData, path: Path) -> None:
        if self.known is not None:
            try:
                self.known.restore(data.extra_arrays)
            except ValueError as error:
                raise damaged(path, f"cannot be resumed: {error}") from error

    def _restore_bases(self, data: CheckpointData, path: Path) -> None:
        """Take the starting bases back where the engine of a node is the one that they are of."""
        store, own = self.basis, len(self.buffers.pass_own)
        first = int(self.buffers.pass_start[self.comm.rank])
        used = data.extra_arrays.get(_USES_OWN, np.zeros_like(self.uses_own))
        own_bases = PackedBases.among(data.extra_arrays)
        try:
            if data.bases is not None:
                data.bases.spread(
                    self.lp.num_cols, store.num_rows[:own], store.col_status, store.row_status, first
                )
                store.num_rows[:, self.uses_own != 0] = 0
            if own_bases is not None:
                self.own_bases.unpack(own_bases, first, own, self.pool.num_cuts)
        except ValueError as error:
            raise damaged(path, f"cannot be resumed: {error}") from error
        if data.bases is None:
            self._warn(
                f"{path} holds no starting bases",
                {"field": "policy.checkpointing.store_basis", "value": False},
                "store them with checkpoints",
            )
        elif not np.array_equal(used, self.uses_own):
            self._warn(
                f"{path} was made with another LP engine",
                {"field": "lp_engine"},
                "ask for the engine that it was made with (--lp-engine)",
            )

    def _warn(self, why: str, context: dict[str, Any], suggestion: str) -> None:
        text = (
            f"{why}: training goes on validly, but where LPs have several solutions not bit for bit as if it "
            "had not been stopped"
        )
        self.warnings += (Problem("NotBitForBit", text, context, suggestion),)

    def _gathered_bases(self) -> StartingBases:
        """Return the bases of HiGHS of all passes, on every rank."""
        own = len(self.buffers.pass_own)
        store = self.basis
        rows = self._gathered(np.ascontiguousarray(store.num_rows[:own]))
        if not rows.any():
            return StartingBases.gather(self.lp.num_cols, rows, store.col_status, store.row_status)
        col_status = self._gathered(np.ascontiguousarray(store.col_status[:own]))
        row_status = self._gathered(np.ascontiguousarray(store.row_status[:own]))
        return StartingBases.gather(self.lp.num_cols, rows, col_status, row_status)

    def _gathered_own_bases(self, passes: int | None = None) -> PackedBases:
        """Return the bases of the own engine on every rank, of all passes or so many of this rank."""
        first = int(self.buffers.pass_start[self.comm.rank])
        own = self.own_bases.pack(first, len(self.buffers.pass_own) if passes is None else passes)
        sizes = gather_rows(self.comm, np.array([len(part) for part in own], np.float64)).astype(np.int64)
        gathered: list[NDArray[Any]] = []
        parts: tuple[NDArray[Any], ...] = own
        for part, lengths in zip(parts, sizes.T, strict=True):
            pieces = gather_bytes(self.comm, part.view(np.uint8), lengths * part.itemsize)
            gathered.append(np.concatenate(pieces).view(part.dtype))
        return PackedBases(*gathered)

    def first_bases(self) -> FirstBases | None:
        """Return the bases of the own engine of the first pass, on every rank; collective."""
        packed = self._gathered_own_bases(1 if self.comm.rank == 0 else 0)
        if not len(packed.node):
            return None
        return FirstBases(
            packed.node, packed.num_codes, packed.num_cuts, packed.code.astype(np.uint32), packed.cut
        )

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
