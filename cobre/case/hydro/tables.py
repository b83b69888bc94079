"""Tables of ``system/``: geometry, tailrace curves, given planes, productivities by stage.

Problems count rows from 0. Rows of a table may come in any order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.case.format import layout
from cobre.case.format.documents import CaseDocuments
from cobre.case.format.sources import Sources
from cobre.case.format.tables import MAX_LISTED, NO_ID, Columns, read_table
from cobre.case.problems import Reporter, known_ids, name_entity, short_ids
from cobre.hydro.geometry import GeometryCurve
from cobre.hydro.tailrace import SegmentedCurve, TailraceFamilies

FloatArray = NDArray[np.float64]

_COEFFICIENTS = tuple(f"coefficient_{power}" for power in range(5))
_JOINT = 1e-6
"""Gap between two segments of a tailrace curve, relative to the outflow, that still counts as none."""


@dataclass(frozen=True)
class PlantRates:
    """Values of ``hydro_energy_productivity.parquet`` by stage id; ``None`` as key = every other stage.

    Each value may be NaN: not given.
    """

    equivalent: Mapping[int | None, float] = field(default_factory=dict)
    outflow: Mapping[int | None, float] = field(default_factory=dict)
    specific: Mapping[int | None, float] = field(default_factory=dict)

    def by_stage(self, which: str, stage_ids: Sequence[int]) -> FloatArray:
        """Return one of the three values at every stage, NaN where it is not given."""
        values: Mapping[int | None, float] = getattr(self, which)
        common = values.get(None, np.nan)
        return np.array([values.get(number, common) for number in stage_ids], np.float64)


@dataclass(frozen=True)
class HydroTables:
    """The tables, by plant id; a plant without usable rows is not in them.

    Attributes
    ----------
    geometry_rows
        Number of rows of each plant, faulty ones too.
    planes
        By plant, then stage id (``None`` = every other stage): float64 (planes, 4), by plane id.
    unreadable
        Paths of tables that could not be read at all; nothing can be missed in them.
    """

    geometry: Mapping[int, GeometryCurve] = field(default_factory=dict)
    geometry_rows: Mapping[int, int] = field(default_factory=dict)
    planes: Mapping[int, Mapping[int | None, FloatArray]] = field(default_factory=dict)
    rates: Mapping[int, PlantRates] = field(default_factory=dict)
    tailrace: Mapping[int, TailraceFamilies] = field(default_factory=dict)
    unreadable: frozenset[str] = frozenset()


def read_hydro_tables(files: CaseDocuments, sources: Sources, reporter: Reporter) -> HydroTables:
    """Read the tables that are present and report everything that is wrong with them."""
    reader = _Reader(files, sources, reporter)
    geometry, rows = reader.geometry()
    planes, rates, tailrace = reader.planes(), reader.rates(), reader.tailrace()
    return HydroTables(geometry, rows, planes, rates, tailrace, frozenset(reader.unreadable))


class _Reader:
    def __init__(self, files: CaseDocuments, sources: Sources, reporter: Reporter) -> None:
        self.files, self.sources, self.reporter = files, sources, reporter
        self.names = sources.hydros.names
        self.unreadable: set[str] = set()
        self.limits = {item.id: item for item in sources.hydros.items}

    # -- one method for each file ---------------------------------------------------------------------

    def geometry(self) -> tuple[dict[int, GeometryCurve], dict[int, int]]:
        path = layout.GEOMETRY
        values = ("volume_hm3", "height_m", "area_km2")
        table = self._read(path, {"hydro_id": "id", **dict.fromkeys(values, "value")})
        if table is None:
            return {}, {}
        self._check_hydros(table, path, refuse=True)
        usable = np.ones(len(table["hydro_id"]), np.bool_)
        for column in values:
            usable &= self._check_cells(table, path, column, table[column] >= 0.0, ">= 0")
        curves, counts = {}, {}
        for hydro, rows in _by_hydro(table):
            counts[hydro] = rows.size
            if not usable[rows].all():
                continue
            rows = rows[np.argsort(table["volume_hm3"][rows], kind="stable")]
            volume, height, area = (table[column][rows] for column in values)
            if self._check_rises(hydro, path, volume, height, area):
                curves[hydro] = GeometryCurve(volume.tolist(), height.tolist(), area.tolist())
        return curves, counts

    def planes(self) -> dict[int, dict[int | None, FloatArray]]:
        path = layout.FPHA_PLANES
        slopes = ("gamma_0", "gamma_v", "gamma_q", "gamma_s")
        table = self._read(
            path,
            {"hydro_id": "id", "plane_id": "id", **dict.fromkeys(slopes, "value")},
            {
                "stage_id": "nullable_id",
                "kappa": "value",
                "valid_v_min_hm3": "value",
                "valid_v_max_hm3": "value",
                "valid_q_max_m3s": "value",
            },
        )
        if table is None:
            return {}
        self._check_hydros(table, path, refuse=True)
        self._check_stages(table, path)
        usable = np.ones(len(table["hydro_id"]), np.bool_)
        for column in slopes:
            usable &= self._check_cells(table, path, column, np.isfinite(table[column]), "a finite number")
        for column, good, wanted in (
            ("gamma_v", table["gamma_v"] >= 0.0, ">= 0"),
            ("gamma_s", table["gamma_s"] <= 0.0, "<= 0"),
        ):
            finite = np.isfinite(table[column])
            usable &= self._check_cells(table, path, column, good | ~finite, wanted, rule="5a.12")
        kappa = table["kappa"]
        usable &= self._check_cells(
            table, path, "kappa", np.isnan(kappa) | ((kappa > 0.0) & (kappa <= 1.0)), "> 0 and at most 1"
        )
        usable &= self._check_validity(table, path)
        usable &= self._check_repeated(table, path, ("hydro_id", "stage_id", "plane_id"), "plane")
        factor = np.where(np.isnan(kappa), 1.0, kappa)
        found: dict[int, dict[int | None, FloatArray]] = {}
        for hydro, rows in _by_hydro(table):
            if not usable[rows].all():
                continue
            of_plant = found.setdefault(hydro, {})
            stages = table["stage_id"][rows]
            for stage in np.unique(stages).tolist():
                part = rows[stages == stage]
                part = part[np.argsort(table["plane_id"][part], kind="stable")]
                planes = np.column_stack([table[column][part] for column in slopes])
                planes[:, 0] *= factor[part]
                planes.setflags(write=False)
                of_plant[None if stage == NO_ID else stage] = planes
        return found

    def rates(self) -> dict[int, PlantRates]:
        path = layout.ENERGY_PRODUCTIVITY
        columns = {
            "equivalent": "equivalent_productivity_mw_per_m3s",
            "outflow": "reference_outflow_m3s",
            "specific": "specific_productivity_mw_per_m3s_per_m",
        }
        table = self._read(
            path,
            {"hydro_id": "id"},
            {"stage_id": "nullable_id", **dict.fromkeys(columns.values(), "value")},
        )
        if table is None:
            return {}
        self._check_hydros(table, path, refuse=False)
        self._check_stages(table, path)
        for column in columns.values():
            values = table[column]
            good = np.isnan(values) | ((values >= 0.0) & np.isfinite(values))
            self._check_cells(table, path, column, good, "a finite number >= 0")
        self._check_repeated(table, path, ("hydro_id", "stage_id"), "row")
        found: dict[int, PlantRates] = {}
        stages: list[int | None] = [
            None if number == NO_ID else number for number in table["stage_id"].tolist()
        ]
        for hydro, rows in _by_hydro(table):
            given: dict[str, dict[int | None, float]] = {}
            for name, column in columns.items():
                values = table[column][rows].tolist()
                given[name] = {
                    stages[row]: value
                    for row, value in zip(rows.tolist(), values, strict=True)
                    if value == value
                }
            found[hydro] = PlantRates(**given)
        return found

    def tailrace(self) -> dict[int, TailraceFamilies]:
        path = layout.TAILRACE_CURVES
        bounds = ("outflow_min_m3s", "outflow_max_m3s")
        level, values = "downstream_reference_level_m", (*bounds, *_COEFFICIENTS)
        table = self._read(
            path,
            {"hydro_id": "id", "family_id": "id", "segment_id": "id", **dict.fromkeys(values, "value")},
            {level: "value"},
        )
        if table is None:
            return {}
        self._check_hydros(table, path, refuse=False)
        usable = np.ones(len(table["hydro_id"]), np.bool_)
        for column in (level, *values):
            good = np.isfinite(table[column])
            wanted = "a finite number"
            if column == level:
                good, wanted = ~np.isinf(table[column]), "a finite number or null"
            if column in bounds:
                good, wanted = good & (table[column] >= 0.0), "a finite number >= 0"
            usable &= self._check_cells(table, path, column, good, wanted)
        usable &= self._check_repeated(table, path, ("hydro_id", "family_id", "segment_id"), "segment")
        found = {}
        for hydro, rows in _by_hydro(table):
            if usable[rows].all():
                families = self._families(hydro, rows, table, path)
                if families is not None:
                    found[hydro] = families
        return found

    def _families(
        self, hydro: int, rows: NDArray[np.intp], table: Columns, path: str
    ) -> TailraceFamilies | None:
        curves: dict[float, SegmentedCurve] = {}
        ids = table["family_id"][rows]
        for family in np.unique(ids).tolist():
            part = rows[ids == family]
            part = part[np.argsort(table["outflow_min_m3s"][part], kind="stable")]
            low, high = table["outflow_min_m3s"][part], table["outflow_max_m3s"][part]
            levels = np.unique(table["downstream_reference_level_m"][part])
            if levels.size > 1:
                self._refuse_family(
                    hydro, family, path, "downstream_reference_level_m", levels.tolist(),
                    "has several reference levels", "Give all segments of a family the same level.",
                )  # fmt: skip
                return None
            if (low >= high).any():
                at = int(np.flatnonzero(low >= high)[0])
                self._refuse_family(
                    hydro, family, path, "outflow_max_m3s", float(high[at]),
                    f"has a segment that ends at {high[at]}, not above its start {low[at]}",
                    "Give each segment an end above its start.",
                )  # fmt: skip
                return None
            gap = np.abs(low[1:] - high[:-1]) > _JOINT * np.maximum(1.0, high[:-1])
            if gap.any():
                at = int(np.flatnonzero(gap)[0])
                self._refuse_family(
                    hydro, family, path, "outflow_min_m3s", float(low[at + 1]),
                    f"has a segment that starts at {low[at + 1]} where the one before ends at {high[at]}",
                    "Segments must join: each starts where the one before ends.",
                )  # fmt: skip
                return None
            level = float(levels[0])
            if np.isnan(level) and (ids != family).any():
                self._refuse_family(
                    hydro, family, path, "downstream_reference_level_m", None,
                    "has no reference level, which only a single family of a plant may lack",
                    "Give each family of a plant a level of its own.",
                )  # fmt: skip
                return None
            if level in curves:
                self._refuse_family(
                    hydro, family, path, "downstream_reference_level_m", level,
                    f"has the same reference level ({level}) as another family",
                    "Give each family of a plant a level of its own.",
                )  # fmt: skip
                return None
            coefficients = np.column_stack([table[column][part] for column in _COEFFICIENTS])
            curves[level] = SegmentedCurve(
                (float(low[0]), *high.tolist()), tuple(tuple(row) for row in coefficients.tolist())
            )
        ordered = sorted(curves)
        return TailraceFamilies(tuple(ordered), tuple(curves[level] for level in ordered))

    # -- checks all files share -----------------------------------------------------------------------

    def _read(
        self, path: str, columns: Mapping[str, Any], optional: Mapping[str, Any] | None = None
    ) -> Columns | None:
        if path not in self.sources.present:
            return None
        table = read_table(self.files, path, columns, self.reporter, optional)
        if table is None:
            self.unreadable.add(path)
        return table

    def _name(self, hydro: int) -> str:
        return name_entity("hydro", hydro, self.names.get(hydro))

    def _check_hydros(self, table: Columns, path: str, *, refuse: bool) -> None:
        """Report rows of plants that do not exist, as errors or (``refuse`` false) as warnings."""
        hydros = self.sources.hydros
        if hydros.ids is None:
            return
        unknown = np.setdiff1d(table["hydro_id"], np.array(sorted(hydros.id_set), np.int64)).tolist()
        if unknown and not refuse:
            self.reporter.warning(
                "SemanticAmbiguity",
                f"{path}: rows of hydro {short_ids(unknown)} are ignored, there is no such plant.",
                file=path,
                field="hydro_id",
                value=short_ids(unknown),
                suggestion=known_ids(hydros.ids, "hydro"),
            )
        elif unknown:
            self.reporter.error(
                "InvalidReference",
                f"{path}: hydro_id {short_ids(unknown)} is no hydro id.",
                file=path,
                field="hydro_id",
                value=short_ids(unknown),
                rule="referential.1",
                suggestion=known_ids(hydros.ids, "hydro"),
            )

    def _check_stages(self, table: Columns, path: str) -> None:
        stages = self.sources.stages
        if stages.ids is None:
            return
        known = np.array([*stages.id_set, NO_ID], np.int64)
        extra = np.setdiff1d(table["stage_id"], known).tolist()
        if extra:
            self.reporter.warning(
                "SemanticAmbiguity",
                f"{path}: rows of stage {short_ids(extra)} are ignored, there is no such stage.",
                file=path,
                field="stage_id",
                value=short_ids(extra),
                suggestion=f"Study stages are {short_ids(sorted(stages.id_set))}; null means every stage.",
            )

    def _check_cells(
        self,
        table: Columns,
        path: str,
        column: str,
        good: NDArray[np.bool_],
        wanted: str,
        rule: str | None = None,
    ) -> NDArray[np.bool_]:
        """Report the cells that are infinite or not ``good``; return a mask of the valid ones."""
        good = good & ~np.isinf(table[column])
        bad = np.flatnonzero(~good)
        for row in bad[:MAX_LISTED].tolist():
            value = float(table[column][row])
            entity = self._name(int(table["hydro_id"][row]))
            shown = "NaN or null" if np.isnan(value) else repr(value)
            self.reporter.error(
                "InvalidValue",
                f"{path}: {column} in row {row} ({entity}) must be {wanted}, but is {shown}.",
                file=path,
                entity=entity,
                field=f"{column}[row {row}]",
                value=value,
                rule=rule,
                suggestion=f"Give {wanted if wanted.startswith('a') else 'a number ' + wanted}.",
            )
        rest = bad[MAX_LISTED:]
        if rest.size:
            self.reporter.error(
                "InvalidValue",
                f"{path}: {column} must be {wanted} in {rest.size} more rows: {short_ids(rest.tolist())}.",
                file=path,
                field=column,
                rule=rule,
            )
        return good

    def _check_repeated(self, table: Columns, path: str, keys: Sequence[str], word: str) -> NDArray[np.bool_]:
        """Report rows with the same key and return which rows are alone with theirs."""
        stacked = np.column_stack([table[key].astype(np.int64) for key in keys])
        _, inverse, counts = np.unique(stacked, axis=0, return_inverse=True, return_counts=True)
        inverse = inverse.reshape(-1)
        groups = np.flatnonzero(counts > 1)
        for group in groups[:MAX_LISTED].tolist():
            rows = np.flatnonzero(inverse == group)
            entity = self._name(int(table["hydro_id"][rows[0]]))
            parts = []
            for key in keys[1:]:
                number = int(table[key][rows[0]])
                parts.append(f"{key} {'null' if number == NO_ID else number}")
            self.reporter.error(
                "DuplicateId",
                f"{path}: {entity} has several rows for {', '.join(parts)}: rows {short_ids(rows.tolist())}.",
                file=path,
                entity=entity,
                field=keys[-1],
                value=", ".join(parts),
                suggestion=f"Keep one row for each {word}.",
            )
        if groups.size > MAX_LISTED:
            self.reporter.error(
                "DuplicateId",
                f"{path}: {groups.size - MAX_LISTED} more keys ({', '.join(keys)}) repeat.",
                file=path,
                field=keys[-1],
            )
        alone: NDArray[np.bool_] = counts[inverse] == 1
        return alone

    def _check_rises(
        self, hydro: int, path: str, volume: FloatArray, height: FloatArray, area: FloatArray
    ) -> bool:
        rises = True
        for column, values, bad, wanted in (
            ("volume_hm3", volume, np.diff(volume) <= 0.0, "have a volume of its own"),
            ("height_m", height, np.diff(height) < 0.0, "not be lower than the one below"),
            ("area_km2", area, np.diff(area) < 0.0, "not be smaller than the one below"),
        ):
            if bad.any():
                rises = False
                at = int(np.flatnonzero(bad)[0]) + 1
                entity = self._name(hydro)
                self.reporter.error(
                    "InvalidValue",
                    f"{path}: each point of {entity} must {wanted}, but {column} is {values[at]} after "
                    f"{values[at - 1]} at volume {volume[at]}.",
                    file=path,
                    entity=entity,
                    field=column,
                    value=float(values[at]),
                    suggestion="Volumes must rise from row to row; heights and areas must not fall.",
                )
        return rises

    def _check_validity(self, table: Columns, path: str) -> NDArray[np.bool_]:
        """Check the ranges in which planes hold, and warn where the plant can leave them."""
        low, high = table["valid_v_min_hm3"], table["valid_v_max_hm3"]
        flow = table["valid_q_max_m3s"]
        good = np.ones(len(low), np.bool_)
        for column in ("valid_v_min_hm3", "valid_v_max_hm3", "valid_q_max_m3s"):
            good &= self._check_cells(
                table, path, column, np.isnan(table[column]) | (table[column] >= 0.0), ">= 0"
            )
        good &= self._check_cells(table, path, "valid_v_max_hm3", ~(high < low), "at least valid_v_min_hm3")
        for hydro, rows in _by_hydro(table):
            plant = self.limits.get(hydro)
            if plant is None or not good[rows].all():
                continue
            beyond = [
                ("valid_v_min_hm3", low[rows] > plant.reservoir.min_storage_hm3, "storage falls below"),
                ("valid_v_max_hm3", high[rows] < plant.reservoir.max_storage_hm3, "storage rises above"),
                ("valid_q_max_m3s", flow[rows] < plant.generation.max_turbined_m3s, "turbined flow exceeds"),
            ]
            for column, outside, what in beyond:
                if outside.any():
                    entity = self._name(hydro)
                    value = float(table[column][rows[np.flatnonzero(outside)[0]]])
                    self.reporter.warning(
                        "ModelQuality",
                        f"{path}: planes of {entity} are used where {what} {column} = {value}, too.",
                        file=path,
                        entity=entity,
                        field=column,
                        value=value,
                        suggestion="Planes bind everywhere; give planes that hold within the plant's limits.",
                    )
        return good

    def _refuse_family(
        self, hydro: int, family: int, path: str, column: str, value: object, fault: str, what: str
    ) -> None:
        entity = self._name(hydro)
        self.reporter.error(
            "InvalidValue",
            f"{path}: family {family} of {entity} {fault}.",
            file=path,
            entity=entity,
            field=column,
            value=value,
            suggestion=what,
        )


def _by_hydro(table: Columns) -> list[tuple[int, NDArray[np.intp]]]:
    """Return the rows of each plant, plants in ascending id."""
    ids = table["hydro_id"]
    if not ids.size:
        return []
    order = np.argsort(ids, kind="stable")
    found, starts = np.unique(ids[order], return_index=True)
    return list(zip(found.tolist(), np.split(order, starts[1:]), strict=True))
