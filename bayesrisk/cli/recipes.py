"""The TOML files of ``bayesrisk audit`` and ``bayesrisk release``: their keys and JSON Schemas.

pydantic takes a while to import, so only what reads such a file imports this module.
"""

import dataclasses
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import Discriminator, Field, Tag, ValidationError, create_model

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
    mechanism: Annotated[str, TEXT] = Field(
        description="Name or recipe of the mechanism, such as swapping:rate=0.05."
    )
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


_Protections = Annotated[
    list[
        Annotated[
            Annotated[str, TEXT, Tag("<recipe>")] | Annotated[ProtectionEntry, Tag("<table>")],
            Discriminator(lambda value: "<recipe>" if isinstance(value, str) else "<table>"),
        ]
    ],
    Several(),
]

#: Keys that are not what the option of their name is; all others are.
_COUNTS = ("targets", "releases")
_POSITIVE = ("target_ratio", "quantile")


def _model(
    name: str, about: str, options: Any, left_out: Sequence[str], **keys: Any
) -> type[Section]:
    """Return the model of a file whose keys are the options of a command, but for some."""
    hints = get_type_hints(options, include_extras=True)
    made: dict[str, Any] = {}
    for field in dataclasses.fields(options):
        if field.name in (*left_out, *keys):
            continue
        kind, option = get_args(hints[field.name])
        given = next(one for one in get_args(kind) if one is not type(None))
        said: Any = Annotated[str, TEXT]
        if get_origin(given) is list:
            said = Names
        elif given is int:
            said = Count if field.name in _COUNTS else Seed
        elif given is float:
            said = Positive if field.name in _POSITIVE else Annotated[float, Field(ge=0.0)]
        alias = field.name if field.name in ("schema", "known") else None  # names of models
        entry = Field(None, alias=alias, description=option.help)
        made[f"{field.name}_" if alias else field.name] = (said | None, entry)
    made |= keys
    model: type[Section] = create_model(name, __base__=Section, __doc__=about, **made)
    return model


@cache
def _audit_file(options: type) -> type[Section]:
    several = "or several populations, each a table."
    records = f"Folder of microdata, file of records, or sample:NAME; {several}"
    return _model(
        "AuditFile",
        "The recipe of an audit; options on the command line override it.",
        options,
        (),
        population=(_Populations | None, Field(None, description=records)),
        protection=(_Protections | None, Field(None, description="Protections.")),
    )


def read_audit_file(file: Path, options: type) -> dict[str, Any]:
    """Return the keys that a file gives, each checked; the message of a fault names the file."""
    settings = _read(file, _audit_file(options))
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


def audit_schema(options: type) -> str:
    """Return the JSON Schema of the file, which an editor can use."""
    return schema_text(_audit_file(options), "Audit of bayesrisk")


@cache
def _release_file(options: type) -> type[Section]:
    given: Any = Field({}, description="Parameters of the mechanism, beside those of its recipe.")
    levels = Field(None, description="Levels to publish; those of the workloads if left out.")
    return _model(
        "ReleaseFile",
        "The recipe of a release; options on the command line override it.",
        options,
        ("settings", "level", "config", "from_audit", "protection"),
        parameters=(Annotated[dict[str, Any], TABLE], given),
        levels=(Names | None, levels),
    )


def read_release_file(file: Path, options: type) -> dict[str, Any]:
    """Return the keys that a file gives, each checked; the message of a fault names the file."""
    return _read(file, _release_file(options))


def release_schema(options: type) -> str:
    """Return the JSON Schema of the file, which an editor can use."""
    return schema_text(_release_file(options), "Release of bayesrisk")
