"""HiGHS: where its C library is, its symbols for nopython code, and a small Python handle.

The library is opened once with ``ctypes`` (RTLD_LOCAL, so that another HiGHS in the process cannot
interpose its symbols). Hot calls go through ``symbols`` (by name, hence cacheable); set-up and
diagnosis use the :class:`HighsModel` handle from Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from cobre.errors import CobreError
from cobre.lp.highs_library import open_library
from cobre.native import bind_library

if TYPE_CHECKING:
    from cobre.lp.template import StageTemplate

HANDLE = types.intp
I32 = types.int32
F64 = types.float64
P_I32 = types.CPointer(I32)
P_F64 = types.CPointer(F64)
P_CHAR = types.CPointer(types.uint8)

# HighsModelStatus values the kernels look at.
STATUS_OPTIMAL = 7
STATUS_INFEASIBLE = 8

STATUS_NAMES = {
    0: "not set",
    1: "load error",
    2: "model error",
    3: "presolve error",
    4: "solve error",
    5: "postsolve error",
    6: "model empty",
    7: "optimal",
    8: "infeasible",
    9: "unbounded or infeasible",
    10: "unbounded",
    11: "objective bound",
    12: "objective target",
    13: "time limit",
    14: "iteration limit",
    15: "unknown",
    16: "solution limit",
    17: "interrupted",
}

INFINITE = 1.0e20
"""What HiGHS takes for infinite: right-hand sides, limits and costs lie below it."""

PRIMAL_TOLERANCE = 1.0e-9
"""What a limit may be violated by, in units of the LP."""

SMALLEST_COEFFICIENT = 1.0e-12
"""HiGHS drops coefficients up to this size, without an error; it can be set no lower."""

LARGEST_COEFFICIENT = 1.0e15
"""HiGHS refuses larger ones."""

# HighsBasisStatus values.
BASIC = 1

Basis = tuple[NDArray[np.int32], NDArray[np.int32]]
"""Status of every column and of every row."""

_NOPYTHON_API = {
    "passLp": I32(HANDLE, *[I32] * 5, F64, *[P_F64] * 5, P_I32, P_I32, P_F64),
    "run": I32(HANDLE),
    "clearSolver": I32(HANDLE),
    "getModelStatus": I32(HANDLE),
    "getObjectiveValue": F64(HANDLE),
    "getSolution": I32(HANDLE, P_F64, P_F64, P_F64, P_F64),
    "getSimplexIterationCount": I32(HANDLE),
    "changeRowsBoundsByRange": I32(HANDLE, I32, I32, P_F64, P_F64),
    "addRows": I32(HANDLE, I32, P_F64, P_F64, I32, P_I32, P_I32, P_F64),
    "deleteRowsByRange": I32(HANDLE, I32, I32),
    "setBasis": I32(HANDLE, P_I32, P_I32),
    "getBasis": I32(HANDLE, P_I32, P_I32),
    "setStringOptionValue": I32(HANDLE, P_CHAR, P_CHAR),
    "setIntOptionValue": I32(HANDLE, P_CHAR, I32),
    "setDoubleOptionValue": I32(HANDLE, P_CHAR, F64),
}


library = open_library()
symbols = bind_library(library, "Highs_", _NOPYTHON_API)

_P = ctypes.c_void_p
_D = ctypes.c_double
_I = ctypes.c_int
_S = ctypes.c_char_p


def _function(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    # A second foreign-function object for the same address, so that prototypes set here never
    # disturb those that bind_library sets.
    prototype = ctypes.CFUNCTYPE(result, *arguments)
    address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    assert address is not None
    return prototype(address)


_create = _function("Highs_create", _P)
_destroy = _function("Highs_destroy", None, _P)
_set_bool = _function("Highs_setBoolOptionValue", _I, _P, _S, _I)
_set_int = _function("Highs_setIntOptionValue", _I, _P, _S, _I)
_set_double = _function("Highs_setDoubleOptionValue", _I, _P, _S, _D)
_set_string = _function("Highs_setStringOptionValue", _I, _P, _S, _S)
_pass_lp = _function("Highs_passLp", _I, _P, _I, _I, _I, _I, _I, _D, *([_P] * 8))
_add_rows = _function("Highs_addRows", _I, _P, _I, _P, _P, _I, _P, _P, _P)
_change_rows = _function("Highs_changeRowsBoundsByRange", _I, _P, _I, _I, _P, _P)
_pass_row_name = _function("Highs_passRowName", _I, _P, _I, _S)
_pass_col_name = _function("Highs_passColName", _I, _P, _I, _S)
_write_model = _function("Highs_writeModel", _I, _P, _S)
_clear_solver = _function("Highs_clearSolver", _I, _P)
_set_basis = _function("Highs_setBasis", _I, _P, _P, _P)
_get_basis = _function("Highs_getBasis", _I, _P, _P, _P)
_run = _function("Highs_run", _I, _P)
_model_status = _function("Highs_getModelStatus", _I, _P)
_objective = _function("Highs_getObjectiveValue", _D, _P)
_double_info = _function("Highs_getDoubleInfoValue", _I, _P, _S, _P)
_solution = _function("Highs_getSolution", _I, _P, _P, _P, _P, _P)
_relax = _function("Highs_feasibilityRelaxation", _I, _P, _D, _D, _D, _P, _P, _P)
_version = _function("Highs_version", _S)

# threads=1: each calling thread would otherwise get a scheduler of its own with several workers.
# No cost perturbation and devex pricing: restarts from a given basis are cheap and reproducible.
# Tolerances below HiGHS' 1e-7: a cut violated by less than the tolerance is not seen at all.
_OPTIONS: tuple[tuple[str, bool | int | float | str], ...] = (
    ("output_flag", False),
    ("threads", 1),
    ("parallel", "off"),
    ("solver", "simplex"),
    ("presolve", "off"),
    ("simplex_strategy", 1),
    ("simplex_scale_strategy", 0),
    ("simplex_dual_edge_weight_strategy", 1),
    ("dual_simplex_cost_perturbation_multiplier", 0.0),
    ("primal_feasibility_tolerance", PRIMAL_TOLERANCE),
    ("dual_feasibility_tolerance", 1e-9),
    ("small_matrix_value", SMALLEST_COEFFICIENT),
    ("large_matrix_value", LARGEST_COEFFICIENT),
)


def version() -> str:
    """Return the version of the HiGHS library in use."""
    text = _version()
    return bytes(text).decode()


class HighsModel:
    """A HiGHS object that holds a stage LP; owns the native handle.

    Parameters
    ----------
    template
        The stage LP to load (cuts are added later); ``None`` for an object that kernels load.

    Raises
    ------
    CobreError
        When HiGHS refuses an option or the model.
    """

    def __init__(self, template: StageTemplate | None) -> None:
        self.handle: int = _create()
        self._closed = False
        try:
            self._set_options()
            if template is not None:
                self._load(template)
        except CobreError:
            self.close()
            raise

    def _set_options(self) -> None:
        for name, value in _OPTIONS:
            key = name.encode()
            if isinstance(value, bool):
                status = _set_bool(self.handle, key, int(value))
            elif isinstance(value, int):
                status = _set_int(self.handle, key, value)
            elif isinstance(value, float):
                status = _set_double(self.handle, key, value)
            else:
                status = _set_string(self.handle, key, value.encode())
            _check(status, f"option {name}={value}")

    def _load(self, template: StageTemplate) -> None:
        arrays = (
            template.cost,
            template.col_lower,
            template.col_upper,
            template.row_lower,
            template.row_upper,
            template.matrix_start,
            template.matrix_row,
            template.matrix_value,
        )
        columns, rows = template.num_cols, template.num_rows
        column_wise, minimise, offset = 1, 1, 0.0
        _check(
            _pass_lp(
                self.handle,
                columns,
                rows,
                len(template.matrix_value),
                column_wise,
                minimise,
                offset,
                *(array.ctypes.data for array in arrays),
            ),
            f"LP of stage {template.stage_id}",
        )

    def set_row_bounds(self, first: int, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> None:
        """Replace the bounds of ``len(lower)`` rows from ``first`` on."""
        if len(lower):
            last = first + len(lower) - 1
            _check(_change_rows(self.handle, first, last, lower.ctypes.data, upper.ctypes.data), "row bounds")

    def add_row(self, lower: float, index: NDArray[np.int32], value: NDArray[np.float64]) -> None:
        """Append the row ``sum(value * x[index]) >= lower``."""
        bounds = np.array([lower, np.inf])
        start = np.zeros(1, np.int32)
        _check(
            _add_rows(
                self.handle,
                1,
                bounds[:1].ctypes.data,
                bounds[1:].ctypes.data,
                len(index),
                start.ctypes.data,
                index.ctypes.data,
                value.ctypes.data,
            ),
            "adding a row",
        )

    def set_names(self, columns: list[str], rows: list[str]) -> None:
        """Name columns and rows, for files and messages."""
        for position, name in enumerate(columns):
            _check(_pass_col_name(self.handle, position, name.encode()), f"column name {name!r}")
        for position, name in enumerate(rows):
            _check(_pass_row_name(self.handle, position, name.encode()), f"row name {name!r}")

    def write(self, path: Path) -> None:
        """Write the model; the suffix of ``path`` chooses the format (``.mps``, ``.lp``)."""
        _check(_write_model(self.handle, str(path).encode()), f"writing {path}")

    def solve(self) -> str:
        """Solve and return the name of the model status; "solve error" where HiGHS reports an error."""
        if _run(self.handle) < 0:
            return "solve error"
        return STATUS_NAMES.get(_model_status(self.handle), "unknown")

    def basis(self, num_cols: int, num_rows: int) -> Basis:
        """Return the basis of the last solve."""
        columns, rows = np.empty(num_cols, np.int32), np.empty(num_rows, np.int32)
        _check(_get_basis(self.handle, columns.ctypes.data, rows.ctypes.data), "reading the basis")
        return columns, rows

    def restart(self, basis: Basis | None = None) -> None:
        """Forget all earlier solves; the next one starts from ``basis``, or from scratch."""
        _check(_clear_solver(self.handle), "clearing the solver")
        if basis is not None:
            columns, rows = basis
            _check(_set_basis(self.handle, columns.ctypes.data, rows.ctypes.data), "setting a basis")

    def objective(self) -> float:
        """Return the objective value of the last solve."""
        return float(_objective(self.handle))

    def objective_above(self, num_cols: int, num_rows: int, largest_cost: float) -> float:
        """Return an upper bound of the optimal value: the objective, and what a feasible point costs more.

        The solver accepts a point that violates limits by its tolerance, which is worth its price.

        Parameters
        ----------
        largest_cost
            Of the LP's columns; the dearest thing that can make good for a violation.
        """
        violated = ctypes.c_double()
        _check(
            _double_info(self.handle, b"sum_primal_infeasibilities", ctypes.addressof(violated)),
            "reading the primal infeasibilities",
        )
        if violated.value == 0.0:
            return self.objective()
        duals = self._solution(num_cols, num_rows)[2]
        return self.objective() + violated.value * max(largest_cost, float(np.abs(duals).max(initial=0.0)))

    def relax(self) -> None:
        """Find a point that violates the rows as little as possible (columns keep their bounds)."""
        keep = -1.0
        _check(_relax(self.handle, keep, keep, 1.0, None, None, None), "feasibility relaxation")

    def row_activity(self, num_cols: int, num_rows: int) -> NDArray[np.float64]:
        """Return the row activities of the last solution."""
        return self._solution(num_cols, num_rows)[1]

    def column_values(self, num_cols: int, num_rows: int) -> NDArray[np.float64]:
        """Return the column values of the last solution."""
        return self._solution(num_cols, num_rows)[0]

    def _solution(self, num_cols: int, num_rows: int) -> tuple[NDArray[np.float64], ...]:
        """Return values of columns and rows, and the duals of rows."""
        columns, column_duals = np.empty(num_cols), np.empty(num_cols)
        rows, row_duals = np.empty(num_rows), np.empty(num_rows)
        _check(
            _solution(
                self.handle,
                columns.ctypes.data,
                column_duals.ctypes.data,
                rows.ctypes.data,
                row_duals.ctypes.data,
            ),
            "reading the solution",
        )
        return columns, rows, row_duals

    def close(self) -> None:
        """Free the native object; further calls do nothing."""
        if not self._closed:
            self._closed = True
            _destroy(self.handle)

    def __enter__(self) -> HighsModel:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            self.close()


def _check(status: int, what: str) -> None:
    # HiGHS answers -1 for an error, 0 for success, 1 for a warning.
    if status < 0:
        raise CobreError("SolverFailure", f"HiGHS refused: {what}", {"highs_status": status})
