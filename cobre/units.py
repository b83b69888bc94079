"""Every conversion factor, once.

Storage is in hm3, flow in m3/s, power in MW, energy in MWh, time in hours, money in $.

A flow of 100 m3/s fills in a month of 730 hours

>>> round(100.0 * 730.0 * HM3_PER_M3S_HOUR, 6)  # hm3
262.8
"""

SECONDS_PER_HOUR = 3600.0
M3_PER_HM3 = 1.0e6

HM3_PER_M3S_HOUR = SECONDS_PER_HOUR / M3_PER_HM3
"""Volume (hm3) that a flow of 1 m3/s carries in one hour."""

DAYS_PER_YEAR = 365.25
"""Length of the year by which annual discount rates are spread over calendar days."""
