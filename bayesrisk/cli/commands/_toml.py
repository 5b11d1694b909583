"""What keys of the TOML files of commands are checked to be; read by pydantic."""

from typing import Annotated, Any

from bayesrisk._files.bounds import Several
from bayesrisk._files.limits import Bound, refuse


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise refuse("a text")
    return value


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise refuse("a table")
    return value


TEXT = Bound("a text", _text, {"type": "string", "pattern": r"\S"})
TABLE = Bound("a table", _table, {"type": "object"})
Names = Annotated[list[Annotated[str, TEXT]], Several()]
