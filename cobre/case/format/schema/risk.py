"""``risk_measure`` of stages.json: one of the measures of :mod:`cobre.rules.risk`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
    create_model,
)
from pydantic_core import CoreSchema, PydanticCustomError

from cobre.fields import FormatModel
from cobre.rules.contracts import RiskMeasure
from cobre.rules.risk import MEASURES

_EXPECTATION = "expectation"
_PLAIN = {rule.key: rule for rule in MEASURES.values() if rule.content is None}
_FILLED = {rule.key: rule for rule in MEASURES.values() if rule.content is not None}


class _Entry(FormatModel):
    plain: str | None = None
    """A measure that is its name alone; no key of the format."""


_ENTRY: type[_Entry] = create_model(  # type: ignore[call-overload]
    "RiskEntry",
    __base__=_Entry,
    **{
        key: (rule.content | None, Field(None, description=f"Content of the measure {key}."))
        for key, rule in _FILLED.items()
    },
)


def _is_object(content: Any) -> bool:
    return isinstance(content, type) and issubclass(content, BaseModel)


def _example(key: str, content: Any) -> str:
    """Return what an entry looks like, such as ``{"entropic": {"gamma": ...}}``."""
    if not _is_object(content):
        return f'{{"{key}": [...]}}'
    keys = ", ".join(f'"{field.alias or name}": ...' for name, field in content.model_fields.items())
    return f'{{"{key}": {{{keys}}}}}'


_FORMS = [f'"{name}"' for name in (_EXPECTATION, *_PLAIN)]
_FORMS += [_example(key, rule.content) for key, rule in _FILLED.items()]


def _check_shape(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, str) and value in (_EXPECTATION, *_PLAIN):
        return _ENTRY(plain=value)
    if isinstance(value, dict) and len(value) == 1:
        ((key, content),) = value.items()
        if key in _FILLED and isinstance(content, dict if _is_object(_FILLED[key].content) else list):
            return value
    raise PydanticCustomError("risk_measure", f"must be {', '.join(_FORMS[:-1])} or {_FORMS[-1]}")


def _measure(entry: _Entry | None) -> RiskMeasure | None:
    if entry is None:
        return None
    if entry.plain is not None:
        return RiskMeasure() if entry.plain == _EXPECTATION else _PLAIN[entry.plain].measure(None)
    contents = ((rule, getattr(entry, key)) for key, rule in _FILLED.items())
    return next(rule.measure(content) for rule, content in contents if content is not None)


def _without_titles(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _without_titles(value) for key, value in schema.items() if key != "title"}
    return [_without_titles(item) for item in schema] if isinstance(schema, list) else schema


@dataclass(frozen=True)
class _RiskField:
    """Validates an entry of the format and gives the measure that it means."""

    members: tuple[type[FormatModel], ...] = (_ENTRY,)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(
            Annotated[_ENTRY | None, BeforeValidator(_check_shape), AfterValidator(_measure)]
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        filled = [
            {
                "type": "object",
                "properties": {key: _without_titles(TypeAdapter(rule.content).json_schema(by_alias=True))},
                "required": [key],
                "additionalProperties": False,
            }
            for key, rule in _FILLED.items()
        ]
        return {
            "anyOf": [{"enum": [_EXPECTATION, *_PLAIN]}, *filled, {"type": "null"}],
            "description": "Expectation, worst case, or a risk measure with its parameters.",
        }


RiskField = Annotated[RiskMeasure | None, _RiskField()]
