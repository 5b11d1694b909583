"""The JSON Schema of stored configurations: current, and of one mind with what runs write."""

import json
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path

import jsonschema
import pytest

from bayesrisk.exceptions import ConfigError
from bayesrisk.experiments import (
    AuditConfig,
    ClaimsConfig,
    NationConfig,
    OccupancyConfig,
    ReconstructionConfig,
    ReleaseConfig,
    TabulationConfig,
    load_config,
)
from bayesrisk.experiments.occupancy_attack import OccupancyAttackConfig
from bayesrisk.experiments.schemas import CONFIGS, runs_schema

SCHEMA = Path(__file__).parents[2] / "docs" / "reference" / "runs.schema.json"
CHECK = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
WRITE = "from bayesrisk.experiments.schemas import runs_schema; print(runs_schema(), end='')"
MADE = {
    "audit": AuditConfig(
        "ab",
        "cd",
        ("race",),
        ({"name": "none", "mechanism": "identity", "parameters": {}},),
        ({"name": "outsider", "known": [], "neighbours": 0.0},),
        10,
        None,
        ("posterior",),
        1,
        25,
        1.5,
        0.9,
        "outsider",
        6,
        2,
    ),
    "claims": ClaimsConfig("ab", ("sex",), 3, True, "merged", "highs", 1.5, 10, 2),
    "occupancy attack": OccupancyAttackConfig(
        "ab", None, "block", "counts", True, "none", 5, 0.5, 1, None, 250, 1
    ),
    "occupancy study": OccupancyConfig(seeds=(1, 2)),
    "reconstruct": ReconstructionConfig(
        "ab", "tract", "tract-bounds", "tract", "highs", None, 100, False, 250, 1
    ),
    "release": ReleaseConfig("ab", "cd", '{"mechanism": "identity"}', None, "county", 2),
    "simulate": NationConfig(5539, "ab", 1, 2),
    "sweep": load_config("sample:granville-county-sweep"),
    "tabulate": TabulationConfig("ab", "cd", "county", 2),
}


@pytest.mark.skipif(
    tuple(map(int, version("pydantic").split(".")[:2])) < (2, 14),
    reason="older ones leave out that a dataclass has no further fields",
)
def test_the_stored_schema_is_current():
    assert SCHEMA.read_text(encoding="utf-8") == runs_schema(), (
        f'python -c "{WRITE}" > docs/reference/{SCHEMA.name}'
    )
    CHECK.check_schema(CHECK.schema)


@pytest.mark.parametrize("command", CONFIGS)
def test_what_a_run_keeps_is_valid_and_read_back(command):
    config = MADE[command]
    assert type(config) is CONFIGS[command]
    stored = json.loads(json.dumps(config.to_dict()))
    assert not list(CHECK.iter_errors(stored))
    assert CONFIGS[command].from_dict(stored) == config


@pytest.mark.parametrize("command", CONFIGS)
def test_every_key_is_checked(command):
    """A value of no type, a key left out and one too many: each is named, with the source."""
    kind, stored = CONFIGS[command], json.loads(json.dumps(MADE[command].to_dict()))
    for field in fields(kind):
        for value in ({"no": 1}, -1.5):
            with pytest.raises(ConfigError, match=rf"f\.json: (unknown key )?{field.name}\b"):
                kind.from_dict({**stored, field.name: value}, source="f.json")
    without = {key: value for key, value in stored.items() if key != fields(kind)[0].name}
    with pytest.raises(ConfigError, match=f"{fields(kind)[0].name} must be given"):
        kind.from_dict(without)
    with pytest.raises(ConfigError, match="unknown key colour"):
        kind.from_dict({**stored, "colour": 1})
    assert list(CHECK.iter_errors({**stored, "colour": 1}))
    for nothing in ([], None, 3, "x"):
        with pytest.raises(ConfigError, match="config: must be an object"):
            kind.from_dict(nothing)


@pytest.mark.parametrize(
    ("command", "change", "words"),
    [
        ("claims", {"max_columns": 0}, "max_columns must be >= 1, got 0"),
        ("claims", {"time_limit": 0.0}, "time_limit must be > 0.0, got 0.0"),
        ("reconstruct", {"shards": True}, "shards must be of type int, got True"),
        ("reconstruct", {"variability": "all"}, "variability must be one of block, tract-bounds"),
        ("occupancy attack", {"error": "big"}, "error must be one of none, absolute, squared"),
        ("occupancy study", {"seeds": [1, 1]}, "seeds must be different"),
        ("occupancy study", {"rho": "-1"}, "rho"),
        ("sweep", {"noise": ["loud"]}, "noise must be one of discrete-gaussian"),
        ("sweep", {"targets": [{"label": 3, "count": 1}]}, r"targets\[0\].label must be of type"),
    ],
)
def test_bounds_are_named(command, change, words):
    with pytest.raises(ConfigError, match=f"config: {words}"):
        CONFIGS[command].from_dict({**MADE[command].to_dict(), **change})
