"""What every Parquet file of a case holds: columns, their types, units and meaning.

The readers lie beside the data they read; a test holds what they ask for against this list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cobre.case.bounds import files
from cobre.case.bounds.files import BoundFile
from cobre.case.catalogue import EXTENSIONS
from cobre.case.format import layout

ArrowType = Literal["int32", "float64", "date32"]


@dataclass(frozen=True)
class Column:
    """A column of a Parquet file.

    Attributes
    ----------
    type
        Arrow type in which the column is best written; any integer or floating-point type that converts
        without loss is read.
    unit
        ``None`` for ids, dates and numbers without a unit.
    required
        Whether the column must be there; one that may be left out reads as null in every row.
    nullable
        Whether single cells may be null.
    """

    name: str
    type: ArrowType
    description: str
    unit: str | None = None
    required: bool = True
    nullable: bool = False


@dataclass(frozen=True)
class ParquetFile:
    """A Parquet file.

    Attributes
    ----------
    key
        The columns that identify a row.
    """

    path: str
    description: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]


def _id(name: str, description: str) -> Column:
    return Column(name, "int32", description)


def _value(name: str, unit: str | None, description: str) -> Column:
    return Column(name, "float64", description, unit)


def _optional(name: str, unit: str | None, description: str) -> Column:
    return Column(name, "float64", description, unit, required=False, nullable=True)


_HYDRO = _id("hydro_id", "The hydro plant.")
_STAGE = _id("stage_id", "The stage, by its declared id.")
_ANY_STAGE = Column("stage_id", "int32", "The stage; null = every stage.", required=False, nullable=True)
_BLOCK = Column(
    "block_id",
    "int32",
    "The block; null = every block of the stage that has no row of its own.",
    required=False,
    nullable=True,
)
_SCENARIO = _id("scenario_id", "Scenario of the stage: 0, 1, 2, ... without gaps.")

_BOUND_COLUMNS = {
    **{limit.key: (limit.unit, limit.description) for kind in EXTENSIONS for limit in kind.limits},
    "min_generation_mw": ("MW", "Least generation."),
    "max_generation_mw": ("MW", "Most generation."),
    "cost_per_mwh": ("$/MWh", "Cost of generation; for the whole stage only."),
    "min_turbined_m3s": ("m3/s", "Least turbined flow."),
    "max_turbined_m3s": ("m3/s", "Most turbined flow."),
    "min_outflow_m3s": ("m3/s", "Least outflow, turbined and spilt."),
    "max_outflow_m3s": ("m3/s", "Most outflow, turbined and spilt."),
    "min_diversion_m3s": ("m3/s", "Least flow in the diversion channel."),
    "max_diversion_m3s": ("m3/s", "Most flow in the diversion channel."),
    "min_storage_hm3": ("hm3", "Least storage; for the whole stage only."),
    "max_storage_hm3": ("hm3", "Most storage; for the whole stage only."),
    "filling_min_rate_m3s": (
        "m3/s",
        "Least flow retained while the reservoir is filled; for the whole stage only.",
    ),
    "water_withdrawal_m3s": (
        "m3/s",
        "Water taken from the reservoir, negative = returned to it; for the whole stage only.",
    ),
    "direct_mw": ("MW", "Most that can leave the source bus."),
    "reverse_mw": ("MW", "Most that can leave the target bus."),
    "min_m3s": ("m3/s", "Least pumped flow."),
    "max_m3s": ("m3/s", "Most pumped flow."),
    "min_mw": ("MW", "Least power of the contract."),
    "max_mw": ("MW", "Most power of the contract."),
    "price_per_mwh": ("$/MWh", "Cost of each MWh; negative = revenue."),
    "available_generation_mw": ("MW", "Power that is available; not used where the source has statistics."),
    "excess_cost": ("$/MWh", "Price of energy that nobody takes."),
    "exchange_cost": ("$/MWh", "Cost of a flow in either direction."),
    "curtailment_cost": ("$/MWh", "Cost of available energy that is not fed in."),
    "spillage_cost": ("$/(m3/s.h)", "Cost of spilling."),
    "diversion_cost": ("$/(m3/s.h)", "Cost of diverting."),
    "turbined_cost": ("$/(m3/s.h)", "Cost of turbining."),
    "storage_violation_below_cost": ("$/hm3", "Price of storage below its minimum."),
    "filling_target_violation_cost": ("$/hm3", "Price of water missing in a filling."),
    "turbined_violation_below_cost": ("$/(m3/s.h)", "Price of turbined flow below its minimum."),
    "outflow_violation_below_cost": ("$/(m3/s.h)", "Price of outflow below its minimum."),
    "outflow_violation_above_cost": ("$/(m3/s.h)", "Price of outflow above its maximum."),
    "generation_violation_below_cost": ("$/MWh", "Price of generation below its minimum."),
    "evaporation_violation_cost": ("$/(m3/s.h)", "Price of evaporation other than the model gives."),
    "evaporation_violation_pos_cost": ("$/(m3/s.h)", "Price of more evaporation than the model gives."),
    "evaporation_violation_neg_cost": ("$/(m3/s.h)", "Price of less evaporation than the model gives."),
    "water_withdrawal_violation_cost": ("$/(m3/s.h)", "Price of a withdrawal other than asked for."),
    "water_withdrawal_violation_pos_cost": ("$/(m3/s.h)", "Price of more withdrawal than asked for."),
    "water_withdrawal_violation_neg_cost": ("$/(m3/s.h)", "Price of less withdrawal than asked for."),
    "inflow_nonnegativity_cost": ("$/(m3/s.h)", "Price of the flow that lifts a negative inflow to 0."),
}


def _bounds(file: BoundFile, entity: str, description: str) -> ParquetFile:
    """Describe a file of bounds or cost overrides, whose columns :mod:`cobre.case.bounds.files` lists."""
    ids = [_id(file.id_column, f"The {entity}.")]
    if file.group_column:
        ids.append(_id(file.group_column, "Unit group of the plant."))
    ids.append(_STAGE)
    if file.has_blocks:
        ids.append(_BLOCK)
    values = [
        _value(column.name, *_BOUND_COLUMNS[column.name])
        if column.required
        else _optional(column.name, *_BOUND_COLUMNS[column.name])
        for column in file.columns
    ]
    return ParquetFile(file.path, description, tuple(column.name for column in ids), (*ids, *values))


def _stats(path: str, id_column: str, entity: str, quantity: str, unit: str | None) -> ParquetFile:
    suffix = {"m3/s": "_m3s", "MW": "_mw"}.get(unit or "", "")
    return ParquetFile(
        path,
        f"Mean and standard deviation of {quantity} by stage.",
        (id_column, "stage_id"),
        (
            _id(id_column, f"The {entity}."),
            _STAGE,
            _value(f"mean{suffix}", unit, f"Mean {quantity}."),
            _value(f"std{suffix}", unit, f"Standard deviation of {quantity}; 0 = known for certain."),
        ),
    )


def _external(
    path: str, id_column: str, entity: str, value: str, unit: str | None, quantity: str
) -> ParquetFile:
    return ParquetFile(
        path,
        f"Scenarios of {quantity} for the scheme 'external'.",
        ("stage_id", "scenario_id", id_column),
        (
            _STAGE,
            _SCENARIO,
            _id(id_column, f"The {entity}."),
            _value(value, unit, f"{quantity.capitalize()}."),
        ),
    )


_CHANGED = "what is null keeps the value of the entity"
_COSTS = "what is null keeps the cost of the entity, or the global one"
_SOURCE = "non-controllable source"

_FILES = (
    ParquetFile(
        layout.GEOMETRY,
        "Level and surface of reservoirs by storage; each plant's curve is interpolated linearly.",
        ("hydro_id", "volume_hm3"),
        (
            _HYDRO,
            _value("volume_hm3", "hm3", "Storage; strictly increasing along the curve."),
            _value("height_m", "m", "Level above sea at this storage."),
            _value("area_km2", "km2", "Surface at this storage."),
        ),
    ),
    ParquetFile(
        layout.FPHA_PLANES,
        "Planes of piecewise linear production functions: generation <= kappa * gamma_0 + gamma_v * mean "
        "storage + gamma_q * turbined flow + gamma_s * spilt flow.",
        ("hydro_id", "stage_id", "plane_id"),
        (
            _HYDRO,
            _id("plane_id", "Unique for the plant and stage."),
            _value("gamma_0", "MW", "Constant."),
            _value("gamma_v", "MW/hm3", "Slope in the mean of initial and final storage; >= 0."),
            _value("gamma_q", "MW/(m3/s)", "Slope in turbined flow."),
            _value("gamma_s", "MW/(m3/s)", "Slope in spilt flow; <= 0."),
            _ANY_STAGE,
            _optional("kappa", None, "Factor on the constant, in (0, 1]; null = 1."),
            _optional("valid_v_min_hm3", "hm3", "Lower end of the storage the plane was fitted to."),
            _optional("valid_v_max_hm3", "hm3", "Upper end of the storage the plane was fitted to."),
            _optional("valid_q_max_m3s", "m3/s", "Upper end of the turbined flow the plane was fitted to."),
        ),
    ),
    ParquetFile(
        layout.ENERGY_PRODUCTIVITY,
        "Productivity of hydro plants by stage, in place of the production models and system/hydros.json.",
        ("hydro_id", "stage_id"),
        (
            _HYDRO,
            _ANY_STAGE,
            _optional("equivalent_productivity_mw_per_m3s", "MW/(m3/s)", "Power for each unit of flow."),
            _optional("reference_outflow_m3s", "m3/s", "Outflow at which the tailrace level is taken."),
            _optional(
                "specific_productivity_mw_per_m3s_per_m",
                "MW/(m3/s.m)",
                "Power for each unit of flow and net head.",
            ),
        ),
    ),
    ParquetFile(
        layout.TAILRACE_CURVES,
        "Tailrace levels by outflow: polynomials by segment, one family for each level downstream.",
        ("hydro_id", "family_id", "segment_id"),
        (
            _HYDRO,
            _id("family_id", "Curve of the plant."),
            _id("segment_id", "Segment of the curve; segments must abut."),
            _optional(
                "downstream_reference_level_m",
                "m",
                "Level downstream for which the family holds; null only for the one family of a plant.",
            ),
            _value("outflow_min_m3s", "m3/s", "Lower end of the segment."),
            _value("outflow_max_m3s", "m3/s", "Upper end of the segment."),
            *(
                _value(
                    f"coefficient_{power}",
                    "m" if power == 0 else f"m/(m3/s)^{power}",
                    f"Coefficient of outflow to the power of {power}.",
                )
                for power in range(5)
            ),
        ),
    ),
    _stats(layout.INFLOW_STATS, "hydro_id", "hydro plant", "incremental inflow", "m3/s"),
    ParquetFile(
        layout.INFLOW_HISTORY,
        "Observed incremental inflows.",
        ("hydro_id", "start_date"),
        (
            _HYDRO,
            Column("start_date", "date32", "First day of the window."),
            Column("end_date", "date32", "First day after the window."),
            _value("value_m3s", "m3/s", "Mean incremental inflow over the window."),
        ),
    ),
    ParquetFile(
        layout.INFLOW_AR,
        "Autoregressive inflow models by stage.",
        ("hydro_id", "stage_id", "lag"),
        (
            _HYDRO,
            _STAGE,
            _id("lag", "1, 2, ... periods back; a lag without a row has coefficient 0."),
            _value("coefficient", None, "Coefficient of the standardised inflow."),
        ),
    ),
    ParquetFile(
        layout.INFLOW_ANNUAL,
        "The part of the inflow that follows the mean inflow of the last 12 months.",
        ("hydro_id", "stage_id"),
        (
            _HYDRO,
            _STAGE,
            _value("annual_coefficient", None, "Coefficient of the standardised annual mean."),
            _value("annual_mean_m3s", "m3/s", "Mean of the annual mean."),
            _value("annual_std_m3s", "m3/s", "Standard deviation of the annual mean; > 0."),
        ),
    ),
    _stats(layout.LOAD_STATS, "bus_id", "bus", "load", "MW"),
    _stats(layout.NCS_STATS, "ncs_id", _SOURCE, "availability as a share of the installed power", None),
    ParquetFile(
        layout.NOISE_OPENINGS,
        "The noise of every opening, read when training.scenario_source.openings.source is 'file'.",
        ("stage_id", "opening_index", "entity_index"),
        (
            _STAGE,
            _id("opening_index", "Opening of the stage, from 0."),
            _id(
                "entity_index",
                "From 0: hydro plants by id, then buses with uncertain load, then sources with statistics.",
            ),
            _value("value", None, "Standardised noise."),
        ),
    ),
    _external(layout.EXTERNAL_INFLOW, "hydro_id", "hydro plant", "value_m3s", "m3/s", "incremental inflow"),
    _external(layout.EXTERNAL_LOAD, "bus_id", "bus", "value_mw", "MW", "load"),
    _external(
        layout.EXTERNAL_NCS,
        "ncs_id",
        _SOURCE,
        "availability_factor",
        None,
        "availability as a share of the installed power",
    ),
    _bounds(files.THERMAL, "thermal plant", f"Limits and costs of thermal plants by stage; {_CHANGED}."),
    _bounds(files.HYDRO, "hydro plant", f"Limits of hydro plants by stage; {_CHANGED}."),
    _bounds(files.UNIT_GROUP, "hydro plant", f"Tighter limits of unit groups by stage; {_CHANGED}."),
    _bounds(files.LINE, "line", f"Limits of lines by stage; {_CHANGED}."),
    _bounds(files.PUMPING, "pumping station", f"Limits of pumping stations by stage; {_CHANGED}."),
    _bounds(files.CONTRACT, "contract", f"Limits and prices of contracts by stage; {_CHANGED}."),
    _bounds(files.NCS, _SOURCE, "Available power of non-controllable sources by stage."),
    *(
        _bounds(
            files.EXTENSION_BOUNDS[kind.attribute],
            kind.word,
            f"Limits of {kind.attribute} by stage; {_CHANGED}.",
        )
        for kind in EXTENSIONS
        if kind.attribute in files.EXTENSION_BOUNDS
    ),
    ParquetFile(
        layout.GENERIC_BOUNDS,
        "Where generic constraints hold, and their bounds; a row adds to the bound in the expression.",
        ("constraint_id", "stage_id", "block_id"),
        (
            _id("constraint_id", "The constraint."),
            _STAGE,
            _BLOCK,
            _optional("bound_lower", None, "Least value of the expression, in its unit; null = none."),
            _optional("bound_upper", None, "Most value of the expression, in its unit; null = none."),
        ),
    ),
    _bounds(files.BUS_COSTS, "bus", f"Costs at buses by stage; {_COSTS}."),
    _bounds(files.LINE_COSTS, "line", f"Costs of lines by stage; {_COSTS}."),
    _bounds(files.HYDRO_COSTS, "hydro plant", f"Costs of hydro plants by stage; {_COSTS}."),
    _bounds(files.NCS_COSTS, _SOURCE, f"Costs of non-controllable sources by stage; {_COSTS}."),
)

PARQUET_FILES = {file.path: file for file in _FILES}
"""Every Parquet file of the format, by its path in the case directory."""
