"""The TOML file of ``bayesrisk audit`` as a pydantic model: its keys, and its JSON Schema.

pydantic takes a while to import, so only what reads such a file imports this module.
"""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from bayesrisk._files.bounds import Section, Several, as_config_error, schema_text
from bayesrisk._files.limits import Bound, Count, Seed, refuse
from bayesrisk._files.parse import read_toml

__all__ = ["AuditFile", "json_schema", "read_audit_file"]


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise refuse("a text")
    return value


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise refuse("a table")
    return value


_TEXT = Bound("a text", _text, {"type": "string", "pattern": r"\S"})
_TABLE = Bound("a table", _table, {"type": "object"})
_Names = Annotated[list[Annotated[str, _TEXT]], Several()]


class ProtectionEntry(Section):
    """A protection."""

    name: Annotated[str, _TEXT] | None = Field(None, description="How results call it.")
    mechanism: Annotated[str, _TEXT] = Field(description="Name of the mechanism.")
    parameters: Annotated[dict[str, Any], _TABLE] = Field(
        {}, description="Parameters of the mechanism; usual ones stand for those left out."
    )


class AuditFile(Section):
    """What an audit is about; options on the command line override it."""

    population: Annotated[str, _TEXT] | None = Field(
        None, description="Folder of microdata, file of records, or sample:NAME."
    )
    protection: list[ProtectionEntry] | None = Field(None, description="Protections.")
    attack: _Names | None = Field(None, description="Adversaries.")
    method: _Names | None = Field(
        None, description="How they conclude: posterior, reconstruction, majority, claims."
    )
    known_: _Names | None = Field(
        None, alias="known", description="What a linker knows of the target."
    )
    stated: _Names | None = Field(None, description="What is to be learned.")
    tables: _Names | None = Field(None, description="Workloads to publish.")
    only: _Names | None = Field(None, description="Tables to publish; all where left out.")
    schema_: Annotated[str, _TEXT] | None = Field(
        None, alias="schema", description="Schema of a file of records; that of the tables."
    )
    targets: Count | None = Field(None, description="People who are asked about.")
    concentration: Annotated[str, _TEXT] | None = Field(
        None, description="How alike people of one place are, in records; fitted if left out."
    )
    seed: Seed | None = Field(None, description="Of releases, targets and chains.")


def read_audit_file(file: Path) -> dict[str, Any]:
    """Return the keys that a file gives, each checked; the message of a fault names the file."""
    document = read_toml(file)
    try:
        read = AuditFile.model_validate(document)
    except ValidationError as error:
        raise as_config_error(error, str(file)) from error
    return read.model_dump(by_alias=True, exclude_unset=True)


def json_schema() -> str:
    """Return the JSON Schema of the file, which an editor can use."""
    return schema_text(AuditFile, "Audit of bayesrisk")
