"""The TOML files of ``bayesrisk audit`` and ``bayesrisk release``: their keys and JSON Schemas.

pydantic takes a while to import, so only what reads such a file imports this module.
"""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag, ValidationError

from bayesrisk._files.limits import (
    Bound,
    Count,
    Positive,
    Section,
    Seed,
    Several,
    as_config_error,
    refuse,
    schema_text,
)
from bayesrisk._files.text import read_toml
from bayesrisk.exceptions import ConfigError


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise refuse("a text")
    return value


def _table(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise refuse("a table")
    return value


TEXT = Bound("a text", _text, {"type": "string", "pattern": r"\S"})
TABLE = Bound("a table", _table, {"type": "object"})
Names = Annotated[list[Annotated[str, TEXT]], Several()]


def _read(file: Path, kind: type[Section]) -> dict[str, Any]:
    """Return the keys that a file gives, each checked; the message of a fault names the file."""
    document = read_toml(file)
    try:
        return kind.model_validate(document).model_dump(by_alias=True, exclude_unset=True)
    except ValidationError as error:
        raise as_config_error(error, str(file)) from error


class ProtectionEntry(Section):
    """A protection."""

    name: Annotated[str, TEXT] | None = Field(None, description="How results call it.")
    mechanism: Annotated[str, TEXT] = Field(description="Name of the mechanism.")
    parameters: Annotated[dict[str, Any], TABLE] = Field(
        {}, description="Parameters of the mechanism; usual ones stand for those left out."
    )


class PopulationEntry(Section):
    """A population of several: records, or a synthetic one that is made from a seed."""

    name: Annotated[str, TEXT] = Field(description="How results call it.")
    records: Annotated[str, TEXT] | None = Field(
        None, description="Folder of microdata, file of records, or sample:NAME."
    )
    simulate: Annotated[str, TEXT] | None = Field(
        None, description="Instead of records: tract, county or state, as bayesrisk simulate."
    )
    seed: Seed | None = Field(None, description="Of the simulated population.")
    blocks: Count | None = Field(None, description="Its blocks, instead of the preset's.")


_Populations = Annotated[
    Annotated[str, TEXT, Tag("<one>")]
    | Annotated[list[PopulationEntry], Several(), Tag("<several>")],
    Discriminator(lambda value: "<several>" if isinstance(value, list) else "<one>"),
]


class AuditFile(Section):
    """The recipe of an audit; options on the command line override it."""

    population: _Populations | None = Field(
        None,
        description="Folder of microdata, file of records, or sample:NAME; or several "
        "populations, each a table.",
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
    targets: Count | None = Field(
        None, description="People who are asked about; everybody of up to 2000 if left out."
    )
    releases: Count | None = Field(None, description="Most releases of each randomised protection.")
    half_width: Annotated[float, Field(ge=0.0)] | None = Field(
        None, description="Half-width of the interval of every gain that is enough, in points."
    )
    prior_from: Annotated[str, TEXT] | None = Field(
        None, description="Public records that adversaries take their prior from."
    )
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
    settings = _read(file, AuditFile)
    if isinstance(settings.get("population"), list):
        for number, entry in enumerate(settings["population"]):
            _check_population(f"{file}: population[{number}]", entry)
    return settings


def _check_population(where: str, entry: dict[str, Any]) -> None:
    """Check that a population is either of records, or simulated from a seed."""
    if ("records" in entry) == ("simulate" in entry):
        raise ConfigError(f"{where} must have one of records and simulate")
    if "simulate" in entry and "seed" not in entry:
        raise ConfigError(f"{where}.seed must be given where simulate is")
    for name in ("seed", "blocks"):
        if "records" in entry and name in entry:
            raise ConfigError(f"{where}.{name} goes with simulate")


def audit_schema() -> str:
    """Return the JSON Schema of the file, which an editor can use."""
    return schema_text(AuditFile, "Audit of bayesrisk")


class ReleaseFile(Section):
    """The recipe of a release; options on the command line override it."""

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
    return _read(file, ReleaseFile)


def release_schema() -> str:
    """Return the JSON Schema of the file, which an editor can use."""
    return schema_text(ReleaseFile, "Release of bayesrisk")
