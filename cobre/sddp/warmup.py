"""Compiling the kernels ahead, by training a tiny study that exists in memory only."""

from __future__ import annotations

import datetime
import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cobre.case.model import (
    Block,
    Bus,
    Case,
    CutSelection,
    DeficitSegment,
    Hydro,
    SamplingMethod,
    ScenarioSource,
    SimulationOptions,
    Stage,
    Thermal,
    TrainingOptions,
    UnitGroup,
)
from cobre.case.model.horizon import chain_graph
from cobre.case.model.uniform import constant_production, scenarios, stage_data
from cobre.comm import Communicator, create_communicator
from cobre.comm.launch import launch
from cobre.comm.registry import find_backend, make_transport
from cobre.native import cache_directory, kernel_cache_stats
from cobre.sddp.entry import entry_of
from cobre.sddp.study import simulate, train

_STAGES = 2
_METHODS: tuple[SamplingMethod, ...] = ("saa", "lhs")
_HOURS = 730.0


@dataclass(frozen=True)
class WarmupReport:
    """What warming up did.

    Attributes
    ----------
    cache_directory
        Where compiled kernels are kept.
    hits, misses
        Specialisations of the iteration kernel that were loaded from there, and that were compiled.
    seconds
        How long it took.
    """

    cache_directory: Path
    hits: int
    misses: int
    seconds: float


def warm_kernels(backend: str = "local") -> WarmupReport:
    """Compile all kernels of training and simulation into the cache, or load them; write no other file.

    Parameters
    ----------
    backend
        Whose kernels. Those of one that launchers can start are compiled by one rank in a process of its
        own, others in this process, which is all of the job.

    Raises
    ------
    CobreError
        When the cache cannot be used, or the backend is not available.
    """
    began = time.perf_counter()
    if find_backend(backend).transport is not None:
        ((hits, misses),) = launch(_train_tiny_study, 1, backend=backend)
    else:
        with create_communicator(backend) as comm:
            hits, misses = _train_tiny_study(comm)
    return WarmupReport(cache_directory(), hits, misses, time.perf_counter() - began)


def train_tiny_study_alone(backend: str) -> None:
    """Load the kernels of training and simulation, or compile them, into this process as the only rank."""
    described = find_backend(backend)
    with make_transport(backend, 1) as transport:
        config = transport.config(0)
        descriptors = [os.dup(descriptor) for descriptor in transport.descriptors(0)]
        if descriptors:
            config = described.with_descriptors(config, descriptors)
        with create_communicator(backend, config) as comm:
            _train_tiny_study(comm)


def _train_tiny_study(comm: Communicator) -> tuple[int, int]:
    """Return how many kernels were loaded and how many compiled."""
    if comm.backend != "local":
        # What only several ranks do, from Python.
        comm.allgatherv(np.zeros(1), np.zeros(1), [1], [0])
        comm.create_shared_region(1, np.float64).close()
    entry = entry_of(comm)
    hits_before, misses_before = kernel_cache_stats(entry)
    study = tiny_study()
    simulate(study, train(study, communicator=comm), communicator=comm)
    hits, misses = kernel_cache_stats(entry)
    return hits - hits_before, misses - misses_before


def tiny_study() -> Case:
    """Return a study of two stages: one bus, one thermal, one reservoir with random inflow."""
    hydro = Hydro(0, "hydro", None, (UnitGroup(0, "units", 0),), initial_storage_hm3=50.0)
    stages = tuple(
        Stage(
            id=position,
            start_date=datetime.date(2024, 1 + position, 1),
            end_date=datetime.date(2024, 2 + position, 1),
            season_id=None,
            blocks=(Block(0, "all", _HOURS),),
            num_openings=2,
            discount_factor=1.0,
            sampling_method=method,
        )
        for position, method in enumerate(_METHODS)
    )
    return Case(
        path=Path("warmup"),
        training=TrainingOptions(
            tree_seed=1,
            forward_passes=1,
            iteration_limit=1,
            inflow_method="penalty",
            cost_scale_factor=None,
            # Each compiles a kernel of its own.
            cut_selection=CutSelection("level1"),
            source=ScenarioSource(load="out_of_sample"),
        ),
        simulation=SimulationOptions(num_scenarios=1, source=ScenarioSource(load="out_of_sample")),
        stages=stages,
        graph=chain_graph(_STAGES),
        buses=(Bus(0, "bus", (DeficitSegment(None, 1000.0),)),),
        lines=(),
        thermals=(Thermal(0, "thermal", 0),),
        hydros=(hydro,),
        stage_data=(
            stage_data(
                1,
                hydros=1,
                thermals=1,
                thermal_max_mw=100.0,
                thermal_cost=50.0,
                storage_max_hm3=100.0,
                turbined_max_m3s=50.0,
                generation_max_mw=50.0,
                group_turbined_max_m3s=50.0,
                group_generation_max_mw=50.0,
                excess_cost=1.0,
                penalties={"spillage": 0.01, "inflow_nonnegativity": 1000.0},
            ),
        )
        * _STAGES,
        production=constant_production(_STAGES, [1.0]),
        scenarios=scenarios(
            inflow_mean_m3s=np.full((_STAGES, 1), 20.0),
            inflow_std_m3s=np.full((_STAGES, 1), 5.0),
            load_mean_mw=np.full((_STAGES, 1), 60.0),
            load_std_mw=np.zeros((_STAGES, 1)),
        ),
        evaporation=((None,),) * _STAGES,
        generic=((),) * _STAGES,
    )
