"""``constraints/generic_constraints.json`` and ``constraints/generic_parameters.json``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from cobre.fields import FormatModel, Id, RootModel


class SlackEntry(FormatModel):
    """Whether a constraint may be violated, and at what price."""

    enabled: bool = Field(description="Whether the constraint may be violated at a price.")
    penalty: float | None = Field(
        default=None,
        description="$ per unit of violation and hour; greater than 0, and required when enabled.",
    )


class ConstraintEntry(FormatModel):
    """A linear constraint over the variables of the stage problem."""

    id: Id = Field(description="Referred to by constraint_id in generic_constraint_bounds.parquet.")
    name: str = Field(description="Name in reports and messages.")
    description: str | None = Field(default=None, description="Free text.")
    expression: str = Field(
        description="Sum of variables, such as '2 * thermal_generation(0) - line_exchange(1) <= 50'."
    )
    slack: SlackEntry = Field(description="What happens when the constraint cannot be met.")


class NamedExpressionEntry(FormatModel):
    """A sub-expression that others use as ``@name``."""

    name: str = Field(description="Name without the @; different from all names of parameters.")
    expression: str = Field(description="Sum of variables, without a relational operator.")
    description: str | None = Field(default=None, description="Free text.")


class GenericConstraintsFile(RootModel):
    """``constraints/generic_constraints.json``: linear constraints over variables of the stage problem."""

    constraints: list[ConstraintEntry] = Field(description="The constraints.")
    expressions: list[NamedExpressionEntry] | None = Field(default=None, description="Named sub-expressions.")


def _as_tuple(length: int, shape: str) -> BeforeValidator:
    """Let a JSON array of this length through as a tuple."""

    def convert(value: Any) -> Any:
        if isinstance(value, list) and len(value) == length:
            return tuple(value)
        raise PydanticCustomError("array_shape", "must be {shape}", {"shape": f"an array {shape}"})

    return BeforeValidator(convert)


StageValue = Annotated[tuple[Id, float], _as_tuple(2, "[stage_id, value]")]
SeasonValue = Annotated[tuple[Id, float], _as_tuple(2, "[season_id, value]")]
StageBlockValue = Annotated[tuple[Id, Id, float], _as_tuple(3, "[stage_id, block_id, value]")]

ComputedTag = Literal[
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
]


class ComputedSpec(FormatModel):
    """A property of a hydro plant."""

    tag: ComputedTag = Field(description="Which property.")
    hydro_id: Id = Field(description="Of which plant.")


class _Parameter(FormatModel):
    id: Id = Field(description="Id of the parameter.")
    name: str = Field(description="Expressions refer to it as @name.")


class ConstantParameter(_Parameter):
    """One number."""

    kind: Literal["constant"]
    """Names this form."""
    value: float = Field(description="The number, at every stage.")


class PerStageParameter(_Parameter):
    """A number for each study stage."""

    kind: Literal["per_stage"]
    """Names this form."""
    values: list[StageValue] = Field(description="[stage_id, value], exactly one for each study stage.")


class SeasonalParameter(_Parameter):
    """A number for each season."""

    kind: Literal["seasonal"]
    """Names this form."""
    values: list[SeasonValue] = Field(description="[season_id, value], one for each season of the study.")


class PerStageBlockParameter(_Parameter):
    """A number for each block of each study stage."""

    kind: Literal["per_stage_block"]
    """Names this form."""
    block_values: list[StageBlockValue] = Field(
        description="[stage_id, block_id, value], exactly one for each block of each study stage."
    )


class ComputedParameter(_Parameter):
    """A number that follows from the data of a hydro plant."""

    kind: Literal["computed"]
    """Names this form."""
    computed_spec: ComputedSpec = Field(description="What to compute.")


ParameterEntry = Annotated[
    ConstantParameter | PerStageParameter | SeasonalParameter | PerStageBlockParameter | ComputedParameter,
    Field(discriminator="kind"),
]
AnyParameter = (
    ConstantParameter | PerStageParameter | SeasonalParameter | PerStageBlockParameter | ComputedParameter
)


class GenericParametersFile(RootModel):
    """``constraints/generic_parameters.json``: named numbers for generic constraints."""

    scalar_parameters: list[ParameterEntry] = Field(description="The parameters.")
