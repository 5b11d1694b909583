"""What a field of a configuration must be, written beside its type; read by pydantic.

A configuration names its bounds when its module is imported, and pydantic takes a while to import:
so this module does without it until something is read.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic.annotated_handlers import GetJsonSchemaHandler
    from pydantic_core import CoreSchema, PydanticCustomError


def refuse(bound: str, **told: Any) -> "PydanticCustomError":
    """Return the fault that a value is not as it must be.

    ``value`` is quoted instead of what was checked, ``key`` ends the name of the key, and
    ``indexed=False`` leaves the number of the entry of a list out of it.
    """
    from pydantic_core import PydanticCustomError

    return PydanticCustomError("bound", "{bound}", {"bound": bound, **told})


@dataclass(frozen=True, eq=False)
class Bound:
    """What one value must be: in words, as a check, and in the JSON Schema."""

    words: str
    check: Callable[[Any], Any]
    drawn: dict[str, Any]

    def __get_pydantic_core_schema__(
        self, kind: Any, handler: "GetCoreSchemaHandler"
    ) -> "CoreSchema":
        """Return the check; what it raises is a fault of ours."""
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(
        self, schema: "CoreSchema", handler: "GetJsonSchemaHandler"
    ) -> dict[str, Any]:
        """Return what an editor is told."""
        return dict(self.drawn)


def choice(options: Iterable[str], words: str = "") -> Bound:
    """Return the bound of one of several words."""
    known = tuple(options)
    words = words or f"one of {', '.join(known)}"

    def check(value: Any) -> str:
        if not isinstance(value, str) or value not in known:
            raise refuse(words, indexed=False)
        return value

    return Bound(words, check, {"enum": list(known)})


@dataclass(frozen=True)
class _Limit:
    """A lower limit of a number, by pydantic's name of it."""

    name: str
    value: float

    def __get_pydantic_core_schema__(
        self, kind: Any, handler: "GetCoreSchemaHandler"
    ) -> dict[str, Any]:
        """Return the check of the type with the limit."""
        return {**handler(kind), self.name: self.value}


#: Whole numbers from 1 and from 0, and numbers above 0.
Count = Annotated[int, _Limit("ge", 1)]
Seed = Annotated[int, _Limit("ge", 0)]
Positive = Annotated[float, _Limit("gt", 0.0)]
