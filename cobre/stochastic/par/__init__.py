"""Models of inflow: how the inflow of a stage follows from earlier inflows and noise."""

from cobre.stochastic.par.model import InflowModel, LagDynamics, inflow_model

__all__ = ["InflowModel", "LagDynamics", "inflow_model"]
