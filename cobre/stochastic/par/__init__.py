"""Inflow models: periodic autoregression with lags in every season map, given or estimated from history."""

from cobre.stochastic.par.contract import InflowModel, LagDynamics
from cobre.stochastic.par.correlation import estimated_correlation
from cobre.stochastic.par.fit import InflowFit, Reduction
from cobre.stochastic.par.model import inflow_model

__all__ = ["InflowFit", "InflowModel", "LagDynamics", "Reduction", "estimated_correlation", "inflow_model"]
