"""From the bytes of a policy file to records; field ids are those of the format."""

from __future__ import annotations

import datetime
import math

import numpy as np
from numpy.typing import NDArray

from cobre.policy.foreign.flatbuffer import MalformedError, TableView, root_table
from cobre.policy.foreign.records import (
    FORMAT_VERSION,
    NO_DATE,
    NO_ID,
    NO_SEASONS,
    Manifest,
    ManifestEdge,
    ManifestNode,
    Pool,
    SeasonManifest,
    StateSlot,
    decode_date,
)


def decode_manifest(buffer: bytes) -> Manifest:
    """Return what ``manifest.bin`` holds.

    Raises
    ------
    MalformedError
        When the bytes are damaged, or of another version of the format.
    """
    root = root_table(buffer)
    version = root.scalar(0, "I")
    if version != FORMAT_VERSION:
        raise MalformedError(f"it is of format version {version}; this program reads {FORMAT_VERSION}")
    return Manifest(
        num_stages=root.scalar(3, "I"),
        num_pools=root.scalar(4, "I"),
        nodes=tuple(
            ManifestNode(node.scalar(0, "i"), node.scalar(1, "i"), node.scalar(2, "I"))
            for node in root.tables(5)
        ),
        edges=tuple(
            ManifestEdge(edge.scalar(0, "i"), edge.scalar(1, "i"), _finite(edge, 2, "a probability"))
            for edge in root.tables(6)
        ),
        software=root.text(20),
        software_version=root.text(1) or "",
        created_at=root.text(2) or "",
        completed_iterations=root.scalar(7, "I"),
        final_lower_bound=root.scalar(8, "d", 0.0),
        best_upper_bound=root.scalar(9, "d", None),
        max_iterations=root.scalar(10, "I"),
        forward_passes=root.scalar(11, "I"),
        rng_seed=root.scalar(14, "Q"),
        training_block_mode=root.text(16) or "",
        block_mode_per_stage=tuple(root.texts(17)),
        cost_scale_factor=root.scalar(18, "d", None),
        lower_bound_history=tuple(root.numbers(21, "<f8").tolist()),
        warm_start_counts=tuple(root.numbers(13, "<u4").tolist()),
        seasons=_seasons(root.table(19)),
    )


def _seasons(table: TableView | None) -> SeasonManifest:
    if table is None:
        return SeasonManifest()
    seasons = table.scalar(1, "I")
    rows = table.tables(2)
    table.must_hold(4, sum(row.count(1) for row in rows), "orders of inflow models")
    orders = tuple((row.scalar(0, "i"), tuple(row.numbers(1, "<u4").tolist())) for row in rows)
    return SeasonManifest(table.scalar(0, "B", NO_SEASONS), seasons, orders)


def decode_priced_date(buffer: bytes) -> datetime.date | None:
    """Return the date that a pool values states at, without reading its cuts."""
    return _date(root_table(buffer), 11)


def decode_pool(buffer: bytes) -> Pool:
    """Return the cuts of a pool.

    Raises
    ------
    MalformedError
        When the bytes are damaged, counts disagree, or a number is not finite.
    """
    root = root_table(buffer)
    states, count = root.scalar(1, "I"), root.count(4)
    # A file that lets many cuts share one list of coefficients could ask for far more than its size.
    root.must_hold(8, states * count, "coefficients")
    if root.scalar(6, "I") != count:
        raise MalformedError(f"it states {root.scalar(6, 'I')} cuts and holds {count}")
    if root.count(7) != states:
        raise MalformedError(f"it names {root.count(7)} of {states} state variables")
    scale = root.scalar(8, "d", None)
    if scale is None:
        raise MalformedError("it does not state the unit of its costs (cost_scale_factor is missing)")
    cuts = root.tables(4)
    intercepts = np.array([cut.scalar(4, "d", 0.0) for cut in cuts], np.float64)
    slopes = np.zeros((count, states))
    for place, cut in enumerate(cuts):
        coefficients = cut.numbers(5, "<f8")
        if len(coefficients) != states:
            raise MalformedError(f"cut {place} has {len(coefficients)} coefficients for {states} states")
        slopes[place] = coefficients
    if not (np.isfinite(intercepts).all() and np.isfinite(slopes).all()):
        raise MalformedError("an intercept or a coefficient of a cut is not a finite number")
    slot_index = np.array([cut.scalar(1, "I") for cut in cuts], np.uint32)
    active = np.array([cut.flag(6) for cut in cuts], np.bool_)
    _check_active(root.numbers(5, "<u4"), active, slot_index)
    return Pool(
        pool_id=root.scalar(0, "I"),
        slots=tuple(_slot(table) for table in root.tables(7)),
        intercepts=intercepts,
        slopes=slopes,
        active=active,
        cut_ids=np.array([cut.scalar(0, "Q") for cut in cuts], np.uint64),
        slot_index=slot_index,
        iterations=np.array([cut.scalar(2, "I") for cut in cuts], np.uint32),
        forward_passes=np.array([cut.scalar(3, "I") for cut in cuts], np.uint32),
        cost_scale_factor=scale,
        node_id=_id(root, 9),
        graph_stage_id=_id(root, 10),
        priced_date=_date(root, 11),
        capacity=root.scalar(2, "I"),
        warm_start_count=root.scalar(3, "I"),
    )


def _check_active(
    listed: NDArray[np.uint32], active: NDArray[np.bool_], slot_index: NDArray[np.uint32]
) -> None:
    """Check that the list of active cuts (their places, or slots) agrees with the cuts' own flags."""
    expected = (np.flatnonzero(active), np.sort(slot_index[active]))
    if not any(np.array_equal(np.sort(listed), numbers) for numbers in expected):
        raise MalformedError(
            f"its list of {len(listed)} active cuts contradicts the {int(active.sum())} cuts marked active"
        )


def _slot(table: TableView) -> StateSlot:
    start, end = _date(table, 7), _date(table, 8)
    return StateSlot(
        kind=table.scalar(0, "B"),
        entity_id=table.scalar(1, "i"),
        subindex=table.scalar(2, "I"),
        was_active=table.flag(3),
        reference_date=_date(table, 6),
        interval=None if start is None or end is None else (start, end),
    )


def _id(table: TableView, field: int) -> int | None:
    number = table.scalar(field, "i", NO_ID)
    return None if number == NO_ID else int(number)


def _date(table: TableView, field: int) -> datetime.date | None:
    number = table.scalar(field, "i", NO_DATE)
    try:
        return decode_date(number)
    except ValueError:
        raise MalformedError(f"{number} is no date (expected YYYYMMDD)") from None


def _finite(table: TableView, field: int, what: str) -> float:
    number = float(table.scalar(field, "d", 0.0))
    if not math.isfinite(number):
        raise MalformedError(f"{what} is not a finite number")
    return number
