"""Bounds of the keys of a configuration, for pydantic, and its faults as package errors."""

import json
from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PlainValidator,
    ValidationError,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from bayesrisk.exceptions import ConfigError, did_you_mean, name_list, number_advice, quote


def refuse(bound: str, **details: object) -> PydanticCustomError:
    """Return the fault that a value breaks a bound.

    ``value`` is quoted in place of the checked value, and ``key`` ends the name of the key.
    ``indexed=False`` omits the number of a list's entry from that name.
    """
    return PydanticCustomError("bound", "{bound}", {"bound": bound, **details})


def choice(options: Iterable[str]) -> PlainValidator:
    """Return a check that a text is one of several words."""
    words = tuple(options)

    def check(value: object) -> str:
        if not isinstance(value, str) or value not in words:
            raise refuse(f"one of {', '.join(words)}", indexed=False)
        return value

    return PlainValidator(check)


#: Whole numbers from 1 and from 0, and numbers above 0.
Count = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0.0)]


_UNKNOWN = "unknown_key"
#: Keys of files of settings, and the command that takes a file with them.
_COMMANDS = {
    "population": "audit FILE -o OUT",
    "grid": "sweep FILE -o OUT",
    "hierarchy": "sweep FILE -o OUT",
    "parameters": "release RECORDS -o OUT --config FILE",
    "ladder": "plan RECORDS -o OUT --ladders FILE",
    "counts": "attack TABLES -o OUT --assume FILE",
    "attributes": "release RECORDS -o OUT --schema FILE",
}
#: What pydantic's own faults say that a value must be, with what they know filled in.
_RULES = {
    "greater_than": "> {gt}",
    "greater_than_equal": ">= {ge}",
    "less_than": "< {lt}",
    "less_than_equal": "<= {le}",
    "int_type": "of type int",
    "int_from_float": "of type int",
    "float_type": "of type float",
    "string_type": "of type str",
    "string_pattern_mismatch": "a text",
    "string_too_short": "a text",
    "string_too_long": "text of at most {max_length} characters",
    "bool_type": "of type bool",
    "tuple_type": "a list",
    "list_type": "a list",
    "dataclass_type": "an object",
    "model_type": "a table",
}


def as_config_error(error: ValidationError, source: str) -> ConfigError:
    """Return the first fault in our own words."""
    fault = error.errors(include_url=False)[0]
    context = fault.get("ctx", {})
    key = _key(fault["loc"], context.get("indexed", True))
    if fault["type"] == _UNKNOWN:
        prefix = f"{key}." if key else ""
        text = f"{source}: unknown key {prefix}{context['name']}"
        if context["command"] and not key:
            return ConfigError(text, advice=f"; it is a file for `bayesrisk {context['command']}`")
        advice = did_you_mean(context["name"], context["known"])
        names = name_list([f"{prefix}{name}" for name in context["known"]], advice)
        if context["name"] == "epsilon" and "rho" in context["known"]:
            advice = "; `bayesrisk convert --epsilon 1 --delta 1e-10` gives the rho of an epsilon"
        return ConfigError(f"{text}; known: {names}", advice=advice)
    if fault["type"] == "said":
        return ConfigError(f"{source}: {key}: {context['words']}")
    if fault["type"] == "value_error":  # of the class that is made of the values
        return ConfigError(f"{source}: {context['error']}")
    if fault["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        return ConfigError(f"{source}: unknown key {key}")
    if fault["type"] == "missing":
        return ConfigError(f"{source}: {key} must be given")
    key = f"{key}{context.get('key', '')}".removeprefix(".")
    if context.get("section"):
        key = f"[{key}]"
    value = context.get("value", fault["input"])
    name = f"{key} " if key else ""
    if fault["type"] not in (*_RULES, "bound") and "should be" not in fault["msg"]:
        return ConfigError(f"{source}: {key}: {fault['msg']}, got {quote(value)}")
    rule = _RULES.get(fault["type"], fault["msg"].removeprefix("Input should be "))
    rule = rule.format(**context)
    text = f"{source}: {name}must be {rule}, got {quote(value)}"
    return ConfigError(text, advice=_advice(value, rule))


def _advice(value: object, rule: str) -> str:
    """Return advice about a value of a file, as the command line gives it."""
    if "type int" in rule and isinstance(value, float) and value.is_integer():
        return f": write {int(value)}"
    if "type str" in rule and isinstance(value, (int, float)):
        return f': write "{value}", in quotes'
    if rule.startswith("one of "):
        return did_you_mean(value, rule.removeprefix("one of ").split(", "))
    if rule.startswith("a list") and isinstance(value, (int, float, str)):
        return f": write [{json.dumps(value)}]"
    return number_advice(value, rule) if not isinstance(value, bool) else ""


def _key(place: tuple[int | str, ...], indexed: bool) -> str:
    """Return a place as it is written; the tags of alternatives, in angles, are not part of it."""
    parts = [p for p in place if not (isinstance(p, str) and p.startswith("<"))]
    if parts and isinstance(parts[-1], int) and not indexed:
        parts.pop()
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return text.removeprefix(".")


class Section(BaseModel):
    """A table of a configuration: unknown keys are told before any value."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    @model_validator(mode="before")
    @classmethod
    def _names_are_known(cls, values: object) -> object:
        if not isinstance(values, Mapping):
            raise refuse("a table", section=True)
        names = [field.alias or name for name, field in cls.model_fields.items()]
        for name in values:
            if name not in names:
                foreign_keys = (one for one in _COMMANDS if one in values and one not in names)
                command = next((_COMMANDS[one] for one in foreign_keys), "")
                details = {"name": f"{name!s:.200}", "known": names, "command": command}
                raise PydanticCustomError(_UNKNOWN, "unknown key", details)
        return values


class Several:
    """A list with at least one entry; the type of the entries checks each of them.

    ``read`` is the type of the list in the file, if the field keeps another type.
    """

    def __init__(self, read: object = None) -> None:
        self.read = read

    def _check(self, value: object) -> object:
        if not isinstance(value, list) or not value:
            raise refuse("a list with at least one entry")
        return value

    def __get_pydantic_core_schema__(
        self, kind: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Return the check before that of the entries."""
        entries = handler(kind) if self.read is None else handler.generate_schema(self.read)
        return core_schema.no_info_before_validator_function(self._check, entries)
