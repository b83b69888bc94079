"""Energy in water: productivity of a plant and of its cascade, at a point or on average over its storage.

For plant h at stage t:

* *equivalent productivity* rho: power for each unit of turbined flow at the reference storage, MW/(m3/s).
  Of a plant with constant productivity or linearised head it is the given one; else it is the specific
  productivity times the net head at the reference storage and the largest turbined flow.
* *integrated equivalent productivity*: the same with the mean forebay level between the limits of storage
  (exact integral of the geometry curve); equal to rho where rho was given by table, where there is no
  geometry or specific productivity, or where the limits are equal.
* *accumulated* of either: the sum of own values over the plant and all plants downstream of it.
* *largest stored energy*: integrated accumulated productivity times (largest - least storage),
  MW/(m3/s) * hm3.

Limits of storage are those of the plant itself, not those of a stage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

COMPUTED_TAGS: Final = (
    "equivalent_productivity",
    "accumulated_productivity",
    "reference_volume",
    "reference_turbine",
    "min_storage",
    "max_storage",
    "specific_productivity",
    "integrated_equivalent_productivity",
    "integrated_accumulated_productivity",
    "max_stored_energy",
)
"""What :meth:`EnergyData.parameter` can return."""


@dataclass(frozen=True, eq=False)
class EnergyData:
    """What the energy of every plant at every stage is computed from; read-only arrays.

    Attributes
    ----------
    downstream
        (hydro,) position of the next plant of the cascade, -1 = none.
    equivalent
        (stage, hydro) MW/(m3/s).
    integrated
        (stage, hydro) integrated equivalent productivity, MW/(m3/s).
    specific
        (stage, hydro) MW/(m3/s.m); NaN where it is not known.
    reference_volume_hm3, reference_turbine_m3s
        (stage, hydro) operating point that represents the plant.
    min_storage_hm3, max_storage_hm3
        (hydro,) limits of the plant.
    """

    downstream: NDArray[np.intp]
    equivalent: FloatArray
    integrated: FloatArray
    specific: FloatArray
    reference_volume_hm3: FloatArray
    reference_turbine_m3s: FloatArray
    min_storage_hm3: FloatArray
    max_storage_hm3: FloatArray

    def accumulated(self) -> FloatArray:
        """Return the equivalent productivity of each plant's cascade, (stage, hydro) MW/(m3/s)."""
        return accumulate(self.equivalent, self.downstream)

    def integrated_accumulated(self) -> FloatArray:
        """Return the integrated productivity of each plant's cascade, (stage, hydro) MW/(m3/s)."""
        return accumulate(self.integrated, self.downstream)

    def max_stored(self) -> FloatArray:
        """Return the largest stored energy, (stage, hydro) MW/(m3/s) * hm3."""
        stored: FloatArray = self.integrated_accumulated() * (self.max_storage_hm3 - self.min_storage_hm3)
        return stored

    def parameter(self, tag: str, hydro: int) -> FloatArray:
        """Return a computed parameter of one plant (position) at every stage.

        Parameters
        ----------
        tag
            One of :data:`COMPUTED_TAGS`.

        Returns
        -------
        array
            float64 (stages,); NaN where a specific productivity is asked for and not known.

        Raises
        ------
        KeyError
            If the tag is not one of them.
        """
        stages = len(self.equivalent)
        values: dict[str, Callable[[], FloatArray]] = {
            "equivalent_productivity": lambda: self.equivalent,
            "accumulated_productivity": self.accumulated,
            "reference_volume": lambda: self.reference_volume_hm3,
            "reference_turbine": lambda: self.reference_turbine_m3s,
            "min_storage": lambda: np.tile(self.min_storage_hm3, (stages, 1)),
            "max_storage": lambda: np.tile(self.max_storage_hm3, (stages, 1)),
            "specific_productivity": lambda: self.specific,
            "integrated_equivalent_productivity": lambda: self.integrated,
            "integrated_accumulated_productivity": self.integrated_accumulated,
            "max_stored_energy": self.max_stored,
        }
        column: FloatArray = values[tag]()[:, hydro]
        return column

    def __repr__(self) -> str:
        stages, hydros = self.equivalent.shape
        return f"EnergyData({stages} stages, {hydros} hydros)"


def accumulate(own: FloatArray, downstream: NDArray[np.intp]) -> FloatArray:
    """Return each plant's own value plus those of all plants downstream.

    Parameters
    ----------
    own
        (stage, hydro).
    downstream
        (hydro,) position of the next plant, -1 = none; without cycles.

    Examples
    --------
    >>> accumulate(np.array([[0.5, 0.3, 0.2]]), np.array([1, 2, -1])).tolist()
    [[1.0, 0.5, 0.2]]
    """
    total: FloatArray = own.copy()
    at = downstream.copy()
    while (at >= 0).any():
        moving = np.flatnonzero(at >= 0)
        total[:, moving] += own[:, at[moving]]
        at[moving] = downstream[at[moving]]
    return total
