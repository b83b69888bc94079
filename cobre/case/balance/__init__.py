"""Is the case plausible? Power and energy that it has, against what its load takes.

:mod:`~cobre.case.balance.capacity` adds up power by bus and block, :mod:`~cobre.case.balance.energy`
inflow and storage; :mod:`~cobre.case.balance.model` puts them together,
:mod:`~cobre.case.balance.findings` states what is probably not meant.
"""

from cobre.case.balance.findings import balance_warnings
from cobre.case.balance.model import BusBalance, EnergyBalance, energy_balance

__all__ = ["BusBalance", "EnergyBalance", "balance_warnings", "energy_balance"]
