"""Stage LPs in core form: fewer rows and columns, piecewise linear costs, the same optimal values."""

from cobre.lp.reduction.form import CoreForm
from cobre.lp.reduction.reduce import core_form, core_forms

__all__ = ["CoreForm", "core_form", "core_forms"]
