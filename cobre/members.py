"""The modules of a package that are found instead of being listed."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType


def members_of(package: str) -> tuple[ModuleType, ...]:
    """Import every module of a package, in the order of their names.

    >>> [module.__name__ for module in members_of("cobre.hydro")][:3]
    ['cobre.hydro.energy', 'cobre.hydro.evaporation', 'cobre.hydro.fpha']

    Kernels that are made of the members are stamped with all of them (:mod:`cobre.native.stamp`).
    """
    found = pkgutil.iter_modules(importlib.import_module(package).__path__)
    return tuple(importlib.import_module(f"{package}.{name}") for name in sorted(item.name for item in found))
