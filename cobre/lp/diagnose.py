"""What is wrong with an LP that could not be solved: which rows cannot hold, and the LP as a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cobre.errors import CobreError
from cobre.lp.highs import HighsModel
from cobre.lp.template import StageTemplate

_VIOLATION_TOLERANCE = 1e-7


@dataclass(frozen=True)
class RowViolation:
    """A row that the least infeasible point violates, and by how much (in the row's unit)."""

    row: str
    amount: float


@dataclass(frozen=True)
class Diagnosis:
    """The status HiGHS gives the LP from scratch, the rows that cannot hold, and where the LP was written.

    ``status`` is ``None`` where the LP could not be rebuilt; ``trouble`` is what went wrong then, or while
    the file was written.
    """

    status: str | None
    violations: tuple[RowViolation, ...]
    model_file: Path | None
    trouble: str | None


def diagnose(
    template: StageTemplate,
    intercepts: NDArray[np.float64],
    slopes: NDArray[np.float64],
    state: NDArray[np.float64],
    noise: NDArray[np.float64],
    model_file: Path,
) -> Diagnosis:
    """Rebuild the LP that failed, write it to ``model_file`` and find the rows that cannot hold.

    Parameters
    ----------
    intercepts, slopes
        The cuts of the stage in $, in slot order.
    state
        Incoming state.
    noise
        Values of the random entities, see :class:`cobre.lp.template.StageTemplate`.
    """
    try:
        return _solve_anew(template, intercepts, slopes, state, noise, model_file)
    except (CobreError, OSError, ValueError, MemoryError) as error:
        # The LP that failed is the story; what fails while it is explained must not hide it.
        return Diagnosis(None, (), None, f"{type(error).__name__}: {error}")


def _solve_anew(
    template: StageTemplate,
    intercepts: NDArray[np.float64],
    slopes: NDArray[np.float64],
    state: NDArray[np.float64],
    noise: NDArray[np.float64],
    model_file: Path,
) -> Diagnosis:
    with HighsModel(template) as model:
        rhs = template.rhs_at(noise, state)
        model.set_row_bounds(0, rhs, rhs)
        index = np.concatenate([[template.theta_col], template.state_col]).astype(np.int32)
        for intercept, slope in zip(intercepts, slopes, strict=True):
            value = np.concatenate([[1.0], -slope / template.cost_scale])
            model.add_row(float(intercept) / template.cost_scale, index, value)
        cuts = [f"cut[{slot}]" for slot in range(len(intercepts))]
        names = [*template.row_names, *cuts]
        model.set_names(_file_names(template.col_names), _file_names(names))
        written, trouble = _write(model, model_file)
        status = model.solve()
        lower = np.concatenate([template.row_lower, intercepts / template.cost_scale])
        upper = np.concatenate([template.row_upper, np.full(len(cuts), np.inf)])
        lower[: len(rhs)] = rhs
        upper[: len(rhs)] = rhs
        violations = () if status == "optimal" else _violations(model, template, names, lower, upper)
    return Diagnosis(status, violations, written, trouble)


def _write(model: HighsModel, path: Path) -> tuple[Path | None, str | None]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.stem}.part{path.suffix}")
        model.write(temporary)
        temporary.replace(path)
    except (OSError, CobreError) as error:
        # The solver's failure is the story; a file that cannot be written must not hide it.
        return None, str(error)
    return path, None


def _violations(
    model: HighsModel,
    template: StageTemplate,
    names: Sequence[str],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
) -> tuple[RowViolation, ...]:
    model.relax()
    activity = model.row_activity(template.num_cols, len(names))
    amount = np.maximum(lower - activity, activity - upper)
    worst_first = np.argsort(-amount, kind="stable")
    return tuple(
        RowViolation(names[row], float(amount[row]))
        for row in worst_first
        if amount[row] > _VIOLATION_TOLERANCE
    )


def _file_names(names: Sequence[str]) -> list[str]:
    """Make names that model files can hold: no blanks, none twice."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        plain = re.sub(r"\s+", "_", name)
        seen[plain] = seen.get(plain, 0) + 1
        result.append(plain if seen[plain] == 1 else f"{plain}#{seen[plain]}")
    return result
