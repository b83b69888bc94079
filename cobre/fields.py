"""What all JSON models of the format share: strictness, common types, the mark "not supported yet"."""

from __future__ import annotations

import datetime
import functools
import operator
import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationInfo,
    field_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError

ACCEPT_UNSUPPORTED = "accept_unsupported"
"""Key of the validation context: true lets well-formed but unsupported values through."""

NOT_SUPPORTED = "not_supported"
"""Error type of a value that the format knows and this version cannot honour."""


LARGEST_NUMBER = 1.0e15
"""Largest magnitude of a number in a case, whatever its unit: beyond it LPs lose what is beside it."""


EARLIEST_DATE = datetime.date(1000, 1, 1)
"""Calendars look at years before a date; an earlier one is a slip of the pen anyway."""


class FormatModel(BaseModel):
    """A JSON object of the format: no unknown keys, no type coercion, no NaN or infinity.

    Numbers are at most :data:`LARGEST_NUMBER` in magnitude.
    """

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        frozen=True,
        # The text below a field describes it in the exported JSON Schema.
        use_attribute_docstrings=True,
    )

    @field_validator("*")
    @classmethod
    def _limit_magnitude(cls, value: Any) -> Any:
        if isinstance(value, float):
            too_large = not abs(value) <= LARGEST_NUMBER
        elif isinstance(value, list):
            too_large = any(isinstance(item, float) and not abs(item) <= LARGEST_NUMBER for item in value)
        else:
            return value
        if too_large:
            raise PydanticCustomError("magnitude", f"must be at most {LARGEST_NUMBER:.0e} in magnitude")
        return value


class RootModel(FormatModel):
    """The root object of a JSON file."""

    json_schema: str | None = Field(default=None, alias="$schema")
    """Address of a JSON Schema, for editors; ignored."""


def _parse_date(value: Any) -> datetime.date:
    if not isinstance(value, str):
        raise PydanticCustomError("date_type", "must be a date written as a string YYYY-MM-DD")
    # fromisoformat alone would also take "20240101" and week dates in newer Python versions.
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", value, re.ASCII):
        try:
            date = datetime.date.fromisoformat(value)
        except ValueError:
            pass  # falls through to the error: right shape, no such day
        else:
            if date >= EARLIEST_DATE:
                return date
            raise PydanticCustomError("date_value", f"must not be before {EARLIEST_DATE}")
    raise PydanticCustomError("date_value", "must be an existing date written as YYYY-MM-DD")


@dataclass(frozen=True)
class _Unsupported(AfterValidator):
    """A check that also states in the JSON Schema which values pass it."""

    honoured: tuple[Any, ...] = ()

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), "x-honoured": list(self.honoured)}


def unsupported(feature: str, *neutral: Any) -> AfterValidator:
    """Mark a field whose only honoured values are ``None`` and ``neutral``.

    Any other well-formed value gives an error of type ``not_supported`` that names ``feature``, unless
    the validation context accepts unsupported values (used to go on checking a case already refused).
    """

    def check(value: Any, info: ValidationInfo) -> Any:
        if value is None or value in neutral:
            return value
        if info.context and info.context.get(ACCEPT_UNSUPPORTED):
            return value
        raise PydanticCustomError(NOT_SUPPORTED, "not supported yet", {"feature": feature})

    return _Unsupported(check, neutral)


@dataclass(frozen=True)
class OneOf:
    """Marks a field of a base class that takes one of ``members``, chosen by the value of a common key."""

    members: tuple[type[FormatModel], ...]
    key: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(
            Annotated[functools.reduce(operator.or_, self.members), Field(discriminator=self.key)]
        )


Id = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
"""An int32 id."""

Count = Annotated[int, Field(ge=0, le=2**32 - 1)]
PositiveCount = Annotated[int, Field(ge=1, le=2**32 - 1)]
SampleCount = Annotated[int, Field(ge=1, le=1_000_000)]
"""Passes or openings, each of which takes memory and an LP in every iteration."""

Int64 = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
NonNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Hours = Annotated[float, Field(gt=0, le=1e6)]
"""A duration, h; sums of a few of them stay finite."""
IsoDate = Annotated[datetime.date, BeforeValidator(_parse_date)]
JsonObject = dict[str, Any]
"""An object of a feature that is refused as a whole, so its inside is not read."""
