"""Policies and checkpoints made up for tests, and a comparison bit for bit."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import numpy as np

from cobre.policy import (
    CheckpointData,
    Fingerprint,
    FirstBases,
    NodeCuts,
    NodeEntry,
    Policy,
    StartingBases,
    StateEntry,
    Topic,
    TransitionEntry,
    VisitedRows,
)

START = datetime.date(2024, 1, 1)
MONTH = datetime.timedelta(days=30)


def node(position: int, **values: Any) -> NodeEntry:
    start = START + position * MONTH
    fields = {"id": position, "stage_id": position + 1, "start_date": start, "end_date": start + MONTH}
    return NodeEntry(**{**fields, "future_cost_floor": -0.0, **values})


def storage(hydro: int) -> StateEntry:
    return StateEntry("storage", hydro, 0, f"hydro_storage[{hydro}]")


def node_cuts(
    random: np.random.Generator, iterations: int, passes: int, states: int, loaded: int = 0
) -> NodeCuts:
    made = iterations * passes
    count = loaded + made
    return NodeCuts(
        slot=np.arange(count, dtype=np.int64),
        iteration=np.concatenate([np.zeros(loaded, np.int64), np.repeat(np.arange(iterations) + 1, passes)]),
        forward_pass=np.concatenate([np.zeros(loaded, np.int64), np.tile(np.arange(passes), iterations)]),
        intercept=random.normal(size=count) * 1e6,
        slopes=random.normal(size=(count, states)),
        active=random.random(count) < 0.8,
        activity={"last_active": random.integers(0, 9, count), "duty": random.random(count)},
    )


def policy(iterations: int = 3, passes: int = 2, hydros: int = 3, nodes: int = 3, seed: int = 0) -> Policy:
    random = np.random.default_rng(seed)
    return Policy(
        components=tuple(storage(h) for h in range(hydros)),
        nodes=tuple(node(n, loaded_cuts=2 if n == nodes - 1 else 0) for n in range(nodes)),
        transitions=tuple(TransitionEntry(n, n + 1, 1.0) for n in range(nodes - 1)),
        cuts=tuple(
            node_cuts(random, iterations, passes, hydros, 2 if n == nodes - 1 else 0) for n in range(nodes)
        ),
        is_chain=True,
        forward_passes=passes,
        seed=2**64 - 1,
        completed_iterations=iterations,
        lower_bounds=random.normal(size=iterations),
        upper_bounds=np.full(iterations, np.inf),
        fingerprint=Fingerprint(
            {
                "training.tree_seed": Topic("a" * 64, True, 42),
                "hydros.id": Topic("b" * 64, parts={"hydro 0": "12345678"}),
                "odd": Topic("c" * 64, True, -np.inf),
            }
        ),
        cost_scale_factor=1024.0,
        first_bases=FirstBases.of(
            (
                n,
                random.integers(0, 2**32, 4 + n, np.uint32),
                np.sort(random.permutation(iterations * passes)[:n]).astype(np.int32),
            )
            for n in range(0, nodes, 2)
        ),
    )


def checkpoint(iterations: int = 3, seed: int = 0, **sizes: int) -> CheckpointData:
    made = policy(iterations, seed=seed, **sizes)
    random = np.random.default_rng(seed + 1)
    passes, nodes, states = made.forward_passes, len(made.nodes), len(made.components)
    num_cols, num_rows = np.arange(nodes) + 4, random.integers(0, 6, (passes, nodes))
    rows = np.indices((iterations, nodes, passes)).reshape(3, -1).astype(np.int64)
    return CheckpointData(
        policy=made,
        history={
            "iteration": np.arange(iterations) + 1,
            "lower_bound": random.normal(size=iterations),
            "upper_bound_kind": ("statistical",) * iterations,
            "exact": random.random(iterations) < 0.5,
            "true_bound": tuple(None if i % 2 else 1.0 / (i + 1) for i in range(iterations)),
            "stage_costs": tuple((0.1,) * (i + 1) for i in range(iterations)),
        },
        bases=StartingBases.gather(
            num_cols,
            num_rows,
            random.integers(0, 5, (passes, nodes, nodes + 3)).astype(np.int8),
            random.integers(0, 5, (passes, nodes, 6)).astype(np.int8),
        ),
        states=VisitedRows(rows[0] + 1, rows[1], rows[2], random.normal(size=(rows.shape[1], states))),
        extra_arrays={
            "selection_ages": random.integers(0, 9, (2, 3, 4)).astype(np.uint16),
            "upper_bound": np.array(-0.0),
            "nothing": np.zeros((0, 5), np.bool_),
        },
    )


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal bit by bit."""
    if isinstance(one, np.ndarray):
        return (
            isinstance(other, np.ndarray)
            and (one.dtype, one.shape) == (other.dtype, other.shape)
            and np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(other).tobytes()
        )
    if dataclasses.is_dataclass(one):
        return type(one) is type(other) and all(
            same(getattr(one, f.name), getattr(other, f.name)) for f in dataclasses.fields(one)
        )
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, float):
        return isinstance(other, float) and np.float64(one).tobytes() == np.float64(other).tobytes()
    return type(one) is type(other) and bool(one == other)
