"""The JSON Schema of a sweep's configuration: current, and of one mind with the reader."""

import json
from pathlib import Path

import jsonschema
import pytest

from bayesrisk._files.text import read_toml
from bayesrisk.experiments.sweep.document import json_schema

ROOT = Path(__file__).parents[3]
SCHEMA = ROOT / "docs" / "reference" / "sweep.schema.json"
CHECK = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
WRITE = "from bayesrisk.experiments.sweep.document import json_schema; print(json_schema(), end='')"


def test_the_stored_schema_is_current():
    stored = SCHEMA.read_text(encoding="utf-8")
    assert stored == json_schema(), f'python -c "{WRITE}" > docs/reference/{SCHEMA.name}'


def test_samples_are_valid():
    CHECK.check_schema(CHECK.schema)
    for name in ("dare-county", "granville-county"):
        path = ROOT / "data" / "samples" / f"{name}-sweep.toml"
        assert not list(CHECK.iter_errors(read_toml(path, name=name)))


def test_every_form_is_valid(document):
    document["table"] = {"path": "t.csv"}
    document["grid"]["sensitivity"] = ["change-one", 2]
    document["grid"]["rho"] += [0.1, "1/864", {"linear": [1, 2], "points": 2}]
    assert not list(CHECK.iter_errors(document))
    document["grid"] |= {"rho": {"name": "half", "value": "1/2"}, "released": [3]}
    assert not list(CHECK.iter_errors(document))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("title", ""),
        ("scenario", "fishing"),
        ("grid.colour", 1),
        ("grid.rho", [-1]),
        ("grid.rho", [{"log": [1, 2]}]),
        ("grid.rho", [{"log": [1, 2], "points": 2, "step": 1}]),
        ("grid.prior", [1.0]),
        ("grid.released", {"from": 0}),
    ],
)
def test_what_the_reader_refuses_an_editor_marks(document, path, value):
    section, _, key = path.rpartition(".")
    (document[section] if section else document)[key] = value
    faults = [".".join(map(str, e.absolute_path)) for e in CHECK.iter_errors(document)]
    assert faults
    assert all(path.startswith(fault) or fault.startswith(path) for fault in faults)
