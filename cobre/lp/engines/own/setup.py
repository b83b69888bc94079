"""The arrays of the own engine for a study, and the structs that kernels find by address."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cobre.lp.arrays import CutPool, LpArrays
from cobre.lp.engines.own.core import (
    CUT_BLOCK,
    LARGEST_CUT_BLOCK,
    CoreArrays,
    CoreStruct,
    CutColumns,
    CutStruct,
    FloatArray,
    SavedStruct,
    StoreStruct,
    WorkStruct,
    core_arrays,
    new_basis_store,
    new_saved_states,
    new_workspace,
)
from cobre.lp.engines.own.data import FormArrays, FormStruct, core_reach, drawn_components, form_arrays
from cobre.lp.engines.own.entry import engine_function
from cobre.lp.engines.own.trial import OwnArrays
from cobre.lp.opening_order import OpeningOrder, opening_order
from cobre.lp.reduction.form import CoreForm
from cobre.lp.shared_arrays import SharedArrays
from cobre.native import HeldStruct

_Parts = TypeVar("_Parts", CoreArrays, FormArrays)

WORKING_SET = 64
"""Slots for cuts in an LP; few of them are ever active."""

_BLOCK_ENTRIES = 1 << 15
"""Most numbers in a block of the archive that is wider than ``CUT_BLOCK``."""


class OwnEngine:
    """The own engine of a rank.

    Parameters
    ----------
    forms
        By node; ``None`` where another engine solves its LPs.
    openings
        By node: values of the random entities, float64[openings, E].
    passes
        Forward passes of this rank.
    make_archive
        Returns so many numbers for the archive of cuts, which ranks of a host may share.

    Attributes
    ----------
    arrays
        What kernels take; addresses in it are valid as long as this object lives.
    store
        Starting bases by (own pass, node).
    work
        One workspace for each worker.
    """

    def __init__(
        self,
        lp: LpArrays,
        pool: CutPool,
        forms: Sequence[CoreForm | None],
        openings: Sequence[FloatArray],
        workers: int,
        passes: int,
        make_archive: Callable[[int], FloatArray] = np.zeros,
    ) -> None:
        nodes, capacity = pool.record.shape[:2]
        orders = [opening_order(values) for values in openings]
        data = _shared_data(forms)
        drawn = [
            np.zeros((0, 0)) if part is None else drawn_components(part[1], part[0].num_state_rows, values)
            for part, values in zip(data, openings, strict=True)
        ]
        rows = [
            0 if part is None else len(part[1].archive_row) + len(of_openings)
            for part, of_openings in zip(data, drawn, strict=True)
        ]
        sizes = archive_sizes(rows, capacity)
        archive = make_archive(sum(sizes))
        used = [form for form in forms if form is not None]
        most_cols = max((form.num_cols for form in used), default=1)
        most_rows = max((form.num_rows for form in used), default=1)
        extended = max((len(form.base) for form in used), default=1)
        kept = max(1, *(order.num_kept for order in orders)) if used else 1
        slots = min(WORKING_SET, max(capacity, 1)) if used else 1
        cuts = capacity if used else 0
        self.work = [new_workspace(most_cols, most_rows, slots, cuts) for _ in range(workers)]
        self.store = new_basis_store(self.work[0], passes * nodes if used else 1)
        self._held: list[Any] = []
        ends = np.cumsum([0, *sizes])
        places = [archive[first:last] for first, last in pairwise(ends)]
        columns = [
            None
            if part is None
            else CutColumns(
                places[node].reshape(_archive_shape(rows[node], capacity)),
                pool.num_cuts[node : node + 1],
                drawn[node],
            )
            for node, part in enumerate(data)
        ]
        saved = [new_saved_states(workspace, kept) for workspace in self.work]
        self.arrays = OwnArrays(
            engine=np.zeros(1, np.intp),
            uses_own=np.array([form is not None for form in forms], np.int8),
            core=self._addresses(CoreStruct, [None if part is None else part[0] for part in data]),
            form=self._addresses(FormStruct, [None if part is None else part[1] for part in data]),
            cuts=self._addresses(CutStruct, columns),
            work=self._addresses(WorkStruct, self.work),
            saved=self._addresses(SavedStruct, saved),
            store=self._addresses(StoreStruct, [self.store]),
            archived=np.zeros(nodes, np.int64),
            intercept=np.zeros((nodes, cuts)),
            spread=_floor_spread(lp, forms),
            last_root=np.array([len(order.order) - 1 for order in orders], np.int64),
            order_start=np.cumsum([0, *(order.order.size for order in orders)])[:-1],
            order=_flat(orders, "order"),
            parent=_flat(orders, "parent"),
            keep=_flat(orders, "keep"),
            at_state=np.zeros((workers, extended)),
            extended=np.zeros((workers, extended)),
            expected=np.zeros((workers, extended)),
            change=np.zeros((workers, extended)),
            past=np.zeros((workers, lp.truncated.shape[1])),
            worth=np.zeros((workers, extended)),
            carried=np.zeros((workers, lp.state_col.shape[1])),
            constant=np.zeros((workers, cuts)),
        )

    def load_engine(self) -> None:
        """Compile the engine, or load it; to be called before the first LP."""
        if self.arrays.uses_own.any():
            self._engine = engine_function()
            self.arrays.engine[0] = self._engine.address

    def _addresses(self, struct_class: Any, parts: Sequence[Any]) -> NDArray[np.intp]:
        """Hold structs of these tuples; return their addresses, 0 for ``None``."""
        held = [None if part is None else HeldStruct(struct_class, part) for part in parts]
        self._held += held
        return np.array([0 if part is None else part.address for part in held], np.intp)


def archive_sizes(rows: Sequence[int], capacity: int) -> list[int]:
    """Return how many numbers the archive of each node has for ``capacity`` cuts of so many rows."""
    return [math.prod(_archive_shape(count, capacity)) for count in rows]


def _archive_shape(rows: int, capacity: int) -> tuple[int, int, int]:
    """Return blocks, rows, and cuts of a block: few where rows are many, for memory grows by whole blocks."""
    width = LARGEST_CUT_BLOCK
    while width > CUT_BLOCK and width * rows > _BLOCK_ENTRIES:
        width //= 2
    width = min(width, -(-max(capacity, 1) // 8) * 8)
    return -(-capacity // width), rows, width


def _shared_data(forms: Sequence[CoreForm | None]) -> list[tuple[CoreArrays, FormArrays] | None]:
    """Return engine arrays and data by node; nodes share every array whose content they have in common."""
    alike: dict[tuple[int, ...], list[CoreForm]] = {}
    for form in forms:
        if form is not None:
            alike.setdefault(_identity(form), []).append(form)
    shared = SharedArrays()
    made = {
        key: (
            _sharing(core_arrays(group[0], core_reach(group)), shared),
            _sharing(form_arrays(group[0]), shared),
        )
        for key, group in alike.items()
    }
    return [None if form is None else made[_identity(form)] for form in forms]


def _identity(form: CoreForm) -> tuple[int, ...]:
    """Return what is the same for forms that have all their arrays in common."""
    return tuple(id(part) for part in vars(form).values() if isinstance(part, np.ndarray))


def _sharing(parts: _Parts, shared: SharedArrays) -> _Parts:
    """Return a tuple whose arrays are shared with equal ones."""
    fields: dict[str, Any] = {
        name: shared.one_of(part) for name, part in parts._asdict().items() if isinstance(part, np.ndarray)
    }
    return parts._replace(**fields)


def _floor_spread(lp: LpArrays, forms: Sequence[CoreForm | None]) -> FloatArray:
    """Return how large structural 0 can become without cuts."""
    floor = np.abs(lp.col_least[lp.col_offset + lp.theta_col])
    scale = np.array([1.0 if form is None else form.theta_scale for form in forms])
    spread: FloatArray = 2.0 * np.where(np.isfinite(floor), floor, 0.0) / scale
    return spread


def _flat(orders: Sequence[OpeningOrder], name: str) -> NDArray[np.int32]:
    return np.concatenate([getattr(order, name).ravel() for order in orders])
