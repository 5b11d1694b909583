"""The TOML file of ``bayesrisk audit`` as a pydantic model: its keys, and its JSON Schema.

pydantic takes a while to import, so only what reads such a file imports this module.
"""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from bayesrisk._files.bounds import Section, as_config_error, schema_text
from bayesrisk._files.limits import Count, Positive, Seed
from bayesrisk._files.parse import read_toml
from bayesrisk.cli.commands._toml import TABLE, TEXT, Names

__all__ = ["AuditFile", "json_schema", "read_audit_file"]


class ProtectionEntry(Section):
    """A protection."""

    name: Annotated[str, TEXT] | None = Field(None, description="How results call it.")
    mechanism: Annotated[str, TEXT] = Field(description="Name of the mechanism.")
    parameters: Annotated[dict[str, Any], TABLE] = Field(
        {}, description="Parameters of the mechanism; usual ones stand for those left out."
    )


class AuditFile(Section):
    """What an audit is about; options on the command line override it."""

    population: Annotated[str, TEXT] | None = Field(
        None, description="Folder of microdata, file of records, or sample:NAME."
    )
    protection: list[ProtectionEntry] | None = Field(None, description="Protections.")
    attack: Names | None = Field(None, description="Adversaries.")
    method: Names | None = Field(
        None, description="How they conclude: posterior, reconstruction, majority, claims."
    )
    known_: Names | None = Field(
        None, alias="known", description="What a linker knows of the target."
    )
    stated: Names | None = Field(None, description="What is to be learned.")
    tables: Names | None = Field(None, description="Workloads to publish.")
    only: Names | None = Field(None, description="Tables to publish; all where left out.")
    schema_: Annotated[str, TEXT] | None = Field(
        None, alias="schema", description="Schema of a file of records; that of the tables."
    )
    targets: Count | None = Field(None, description="People who are asked about.")
    concentration: Annotated[str, TEXT] | None = Field(
        None, description="How alike people of one place are, in records; fitted if left out."
    )
    target_ratio: Positive | None = Field(
        None, description="Posterior over belief without the own record, not to be exceeded."
    )
    quantile: Positive | None = Field(None, description="Share of people for whom it shall hold.")
    against: Annotated[str, TEXT] | None = Field(
        None, description="Adversary for whom it shall hold; the worst if left out."
    )
    steps: Seed | None = Field(None, description="Bisections of every range.")
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
