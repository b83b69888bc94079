"""Numbers as people read them."""

from __future__ import annotations

import math

_LARGE = ((1e12, "trillion $"), (1e9, "billion $"), (1e6, "million $"))


def money(value: float) -> str:
    """Return a cost with four digits.

    >>> money(794593482.8), money(-1234.5), money(2.5e12)
    ('794.6 million $', '-1,234 $', '2.500 trillion $')
    """
    for size, name in _LARGE:
        if abs(value) >= size:
            return f"{_digits(value / size, 4)} {name}"
    return f"{_digits(value, 4)} $"


def cost_unit(largest: float) -> tuple[float, str]:
    """Return the unit in which costs up to ``largest`` $ are drawn, in $, and its name.

    >>> cost_unit(3.2e9), cost_unit(4e5)
    ((1000000.0, 'million $'), (1.0, '$'))
    """
    if abs(largest) >= 1e11:
        return 1e9, "billion $"
    return (1e6, "million $") if abs(largest) >= 1e7 else (1.0, "$")


def percent(value: float) -> str:
    """Return a percentage with three digits.

    >>> percent(12.3456), percent(0.0), percent(-0.00001), percent(100.0)
    ('12.3 %', '0 %', '> -0.001 %', '100 %')
    """
    if 0.0 < abs(value) < 1e-3:
        return "< 0.001 %" if value > 0.0 else "> -0.001 %"
    return f"{value:.3g} %"


def energy(mwh: float) -> str:
    """Return an energy with a fitting unit.

    >>> energy(0.0), energy(12345678.0), energy(1234.5)
    ('0 MWh', '12,346 GWh', '1,234 MWh')
    """
    return f"{_digits(mwh / 1e3, 4)} GWh" if abs(mwh) >= 1e5 else f"{_digits(mwh, 4)} MWh"


def duration(seconds: float) -> str:
    """Return a time.

    >>> duration(29.42), duration(754.0), duration(0.0421)
    ('29.4 s', '12 min 34 s', '0.0421 s')
    """
    if seconds < 60.0:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def words(name: str) -> str:
    """Return an identifier as words.

    >>> words("inflow_penalty")
    'inflow penalty'
    """
    return name.replace("_", " ")


def _digits(value: float, digits: int) -> str:
    if value == 0.0 or not math.isfinite(value):
        return "0" if value == 0.0 else str(value)
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(places, 6)}f}"
