"""The JSON Schema of the ``config.json`` that every run in shards keeps in its folder."""

import json
from typing import Any, Literal

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from bayesrisk.experiments.audit.populations import AuditConfig
from bayesrisk.experiments.by_place.release import NationConfig, ReleaseConfig, TabulationConfig
from bayesrisk.experiments.claims import ClaimsConfig
from bayesrisk.experiments.occupancy_attack import OccupancyAttackConfig
from bayesrisk.experiments.occupancy_study import OccupancyConfig
from bayesrisk.experiments.reconstruction import ReconstructionConfig
from bayesrisk.experiments.runs.parts import RunSettings
from bayesrisk.experiments.sweep.config import SweepConfig

#: Configurations of the studies, by the command that runs them.
CONFIGS: dict[str, type[RunSettings]] = {
    "audit": AuditConfig,
    "claims": ClaimsConfig,
    "occupancy attack": OccupancyAttackConfig,
    "occupancy study": OccupancyConfig,
    "reconstruct": ReconstructionConfig,
    "release": ReleaseConfig,
    "simulate": NationConfig,
    "sweep": SweepConfig,
    "tabulate": TabulationConfig,
}


class _Drawing(GenerateJsonSchema):
    """Leaves out what would change with each version, and what the reference says already."""

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        drawn = super().dataclass_schema(schema)
        drawn.pop("description", None)
        drawn["properties"].get("version", {}).pop("default", None)
        return drawn


def runs_schema() -> str:
    """Return the schema: a file is the configuration of one of the studies."""
    inputs: list[tuple[str, Literal["validation"], TypeAdapter[Any]]] = [
        (name, "validation", TypeAdapter(kind)) for name, kind in CONFIGS.items()
    ]
    places, schema = TypeAdapter.json_schemas(inputs, schema_generator=_Drawing)
    document = {
        "$schema": _Drawing.schema_dialect,
        "title": "Configuration of a run of bayesrisk",
        "anyOf": [places[name, "validation"] for name in CONFIGS],
        **schema,
    }
    return json.dumps(document, indent=2, sort_keys=True) + "\n"
