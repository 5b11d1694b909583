"""The TOML file of ``bayesrisk release`` as a pydantic model: its keys, and its JSON Schema.

pydantic takes a while to import, so only what reads such a file imports this module.
"""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from bayesrisk._files.bounds import Section, as_config_error, schema_text
from bayesrisk._files.parse import read_toml
from bayesrisk.cli.commands._toml import TABLE, TEXT, Names


class ReleaseFile(Section):
    """What a release publishes and how it is protected; options on the command line override it."""

    mechanism: Annotated[str, TEXT] | None = Field(
        None, description="Name of a protection, such as swapping, or of a plug-in."
    )
    parameters: Annotated[dict[str, Any], TABLE] = Field(
        {}, description="Parameters of the mechanism; it checks them itself."
    )
    tables: Names | None = Field(None, description="Built-in workloads to publish.")
    levels: Names | None = Field(
        None, description="Levels to publish; those of the workloads where left out."
    )
    only: Names | None = Field(None, description="Tables to publish; all where left out.")
    geography: Annotated[str, TEXT] | None = Field(None, description="Geography of the records.")
    schema_: Annotated[str, TEXT] | None = Field(
        None, alias="schema", description="Schema of a file of records; that of the tables."
    )
    dialect: Annotated[str, TEXT] | None = Field(
        None, description="Coding of a file of persons, where it is not that of the schema."
    )
    places: Annotated[str, TEXT] | None = Field(
        None, description="Public list of places, FILE[:COLUMN], or occupied."
    )


def read_release_file(file: Path) -> dict[str, Any]:
    """Return the keys that a file gives, each checked; the message of a fault names the file."""
    document = read_toml(file)
    try:
        read = ReleaseFile.model_validate(document)
    except ValidationError as error:
        raise as_config_error(error, str(file)) from error
    return read.model_dump(by_alias=True, exclude_unset=True)


def json_schema() -> str:
    """Return the JSON Schema of the file, which an editor can use."""
    return schema_text(ReleaseFile, "Release of bayesrisk")
