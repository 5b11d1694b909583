"""The TOML files of ``bayesrisk audit`` and ``bayesrisk release``: their keys.

pydantic takes a while to import, so only what reads such a file imports this module.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import Discriminator, Field, Tag, ValidationError, create_model

from bayesrisk._base.disk.limits import Count, Positive, Section, Seed, Several, as_config_error
from bayesrisk._base.disk.text import read_toml
from bayesrisk.exceptions import ConfigError

Text = Annotated[str, Field(pattern=r"\S", strict=True)]
Names = Annotated[list[Text], Several()]


def _read(file: Path, kind: type[Section]) -> dict[str, Any]:
    """Return the keys that a file gives, each checked; the message of a fault names the file."""
    document = read_toml(file)
    try:
        return kind.model_validate(document).model_dump(by_alias=True, exclude_unset=True)
    except ValidationError as error:
        raise as_config_error(error, str(file)) from error


class ProtectionEntry(Section):
    """A protection."""

    name: Text | None = None
    mechanism: Text
    parameters: dict[str, Any] = Field(default_factory=dict)


class PopulationEntry(Section):
    """A population of several: records, or a synthetic one that is made from a seed."""

    name: Text
    records: Text | None = None
    simulate: Text | None = None
    seed: Seed | None = None
    blocks: Count | None = None


_Populations = Annotated[
    Annotated[Text, Tag("<one>")] | Annotated[list[PopulationEntry], Several(), Tag("<several>")],
    Discriminator(lambda value: "<several>" if isinstance(value, list) else "<one>"),
]


_Protections = Annotated[
    list[
        Annotated[
            Annotated[Text, Tag("<recipe>")] | Annotated[ProtectionEntry, Tag("<table>")],
            Discriminator(lambda value: "<recipe>" if isinstance(value, str) else "<table>"),
        ]
    ],
    Several(),
]

#: Keys that are not what the option of their name is; all others are.
_COUNTS = ("targets", "releases")
_POSITIVE = ("target_ratio", "quantile")


def _model(name: str, options: Any, left_out: Sequence[str], **keys: Any) -> type[Section]:
    """Return the model of a file whose keys are the options of a command, but for some."""
    hints = get_type_hints(options)
    fields: dict[str, Any] = {}
    for field in dataclasses.fields(options):
        if field.name in (*left_out, *keys):
            continue
        option_type = next(one for one in get_args(hints[field.name]) if one is not type(None))
        key_type: Any = Text
        if get_origin(option_type) is list:
            key_type = Names
        elif option_type is int:
            key_type = Count if field.name in _COUNTS else Seed
        elif option_type is float:
            key_type = Positive if field.name in _POSITIVE else Annotated[float, Field(ge=0.0)]
        alias = field.name if field.name in ("schema", "known") else None  # names of models
        fields[f"{field.name}_" if alias else field.name] = (
            key_type | None,
            Field(None, alias=alias),
        )
    fields |= keys
    model: type[Section] = create_model(name, __base__=Section, **fields)
    return model


def read_audit_file(file: Path, options: type) -> dict[str, Any]:
    """Return the keys that a file of an audit gives."""
    entries: dict[str, Any] = {
        "population": (_Populations | None, None),
        "protection": (_Protections | None, None),
    }
    settings = _read(file, _model("AuditFile", options, (), **entries))
    if isinstance(settings.get("population"), list):
        for number, entry in enumerate(settings["population"]):
            _check_population(f"{file}: population[{number}]", entry)
    return settings


def _check_population(label: str, entry: dict[str, Any]) -> None:
    """Check that a population is either of records, or simulated from a seed."""
    if ("records" in entry) == ("simulate" in entry):
        raise ConfigError(f"{label} must have one of records and simulate")
    if "simulate" in entry and "seed" not in entry:
        raise ConfigError(f"{label}.seed must be given where simulate is")
    for name in ("seed", "blocks"):
        if "records" in entry and name in entry:
            raise ConfigError(f"{label}.{name} goes with simulate")


def read_release_file(file: Path, options: type) -> dict[str, Any]:
    """Return the keys that a file of a release gives."""
    if "mechanism" in read_toml(file):
        raise ConfigError(f"{file}: the key mechanism is now protection")
    left_out = ("settings", "level", "config", "from_audit")
    entries: dict[str, Any] = {"parameters": (dict[str, Any], {}), "levels": (Names | None, None)}
    return _read(file, _model("ReleaseFile", options, left_out, **entries))
