"""Calls of what reads, writes and runs into folders: inputs from the damaged files, all small.

Outputs are relative: each call is made in a folder of its own.
"""

import contextlib
import io
from pathlib import Path
from typing import Any

import pandas as pd
from fuzz import file_kinds as kinds
from oracles import readers as oracle
from writing_cases import inputs

import bayesrisk as br
from bayesrisk import experiments, population, readers, reconstruction

Call = tuple[str, Any, dict[str, Any]]


def calls(folder: Path) -> list[Call]:
    """Return the calls: the name, the function, the arguments by name."""
    files = {}
    for kind in ("ppmf-csv", "ppmf-units", "form-csv", "ipums-ddi", "sf1-zip", "nhgis-folder",
                 "hud-csv", "run", "reconstruction"):  # fmt: skip
        (folder / kind).mkdir()
        files[kind] = kinds.KINDS[kind](folder / kind).files
    return [*_readers(files), *_writers(), *_studies(inputs(folder / "inputs"), files)]


def _readers(files: dict[str, list[Path]]) -> list[Call]:
    (people,), (units,), (form,) = files["ppmf-csv"], files["ppmf-units"], files["form-csv"]
    book, fixed = files["ipums-ddi"]
    (sf1,), (data, *_), (hud,) = files["sf1-zip"], files["nhgis-folder"], files["hud-csv"]
    plain = {
        "ppmf": {"path": people, "state": None},
        "ppmf_units": {"path": units, "state": None},
        "record_form": {"path": form, "state": None, "dialect": "schema"},
        "ipums_1940": {"path": fixed, "ddi": book},
        "sf1": {"path": sf1, "workload": kinds.P1},
        "nhgis": {"path": data, "workload": kinds.P1, "codebook": None, "state": None},
        "hud": {"path": hud, "level": "tract"},
    }
    each = [
        (f"iter_{n}", getattr(readers, f"iter_{n}"), a | {"chunk": 5}) for n, a in plain.items()
    ]
    return [*each, *((f"read_{n}", getattr(readers, f"read_{n}"), a) for n, a in plain.items())]


def _writers() -> list[Call]:
    people, rng = kinds.people(), kinds.np.random.default_rng(1)
    units = oracle.household_records(rng, 6)
    frame = pd.read_csv(io.StringIO(kinds.HUD), dtype=str)
    given: dict[str, dict[str, Any]] = {
        "ppmf": {"records": oracle.pl94_records(rng, 6), "vintage": "2010-demonstration"},
        "ppmf_units": {"records": units, "vintage": "2020"},
        "record_form": {"records": people, "dialect": "schema"},
        "ipums_1940": {"records": oracle.records_1940(rng, 4), "ddi": "book.xml"},
        "sf1": {"tables": kinds.tables()},
        "nhgis": {"tables": kinds.tables(), "described": True},
        "hud": {"frame": frame},
    }
    ends = {"sf1": "zip", "nhgis": "zip", "ipums_1940": "dat"}
    return [
        (f"write_{name}", getattr(readers, f"write_{name}"),
         own | {"path": f"vt2010.{name}.{ends.get(name, 'csv')}"})
        for name, own in given.items()
    ]  # fmt: skip


def _studies(at: Path, files: dict[str, list[Path]]) -> list[Call]:
    sweep = experiments.load_config(at / "sweep.toml")
    settings = experiments.OccupancyConfig(
        seeds=(1,), blocks=4, protections=("none",), solutions=2, sample_blocks=20
    )
    tables, homes = at / "tables", at / "occupancy-tables"
    ran, rebuilt = files["run"][0].parent, files["reconstruction"][0].parent
    made = population.population_spec("tract")
    known = {"all": at / "known.parquet"}
    with contextlib.suppress(AttributeError):
        made = made.spec
    return [
        ("ReconstructionStudy", experiments.ReconstructionStudy, {
            "tables": tables, "scope": "block", "variability": None, "solver": "highs",
            "time_limit": None, "nearest": False, "blocks_per_shard": None}),
        ("ClaimsStudy", experiments.ClaimsStudy, {
            "tables": at / "household-tables", "columns": ["size"], "max_columns": None,
            "tenure": "merged", "blocks_per_shard": None}),
        ("OccupancyAttackStudy", experiments.OccupancyAttackStudy, {
            "blocks": homes, "sample": None, "level": "block", "hud": "counts",
            "solutions": 2, "seed": 1, "blocks_per_shard": 250}),
        ("OccupancyStudy", experiments.OccupancyStudy, {
            "settings": settings, "households": None, "sample": None}),
        ("OccupancyConfig", experiments.OccupancyConfig, {"seeds": (1,), "blocks": 4}),
        ("run", experiments.run, {
            "study": sweep, "folder": "run", "workers": 1,
            "executor": None, "shard": None, "resume": False, "progress": None}),
        ("read_results", experiments.read_results, {"folder": ran}),
        ("read_reconstruction", experiments.read_reconstruction, {"folder": rebuilt}),
        ("write_report", experiments.write_report, {"folder": ran}),
        ("write_reidentification", experiments.write_reidentification, {
            "folder": at / "records", "output": "linked", "attackers": known,
            "truth": at / "truth.parquet", "seed": 1, "confidence": 0.95, "dialect": "schema"}),
        ("PopulationSpec", population.PopulationSpec, dict(vars(made))),
        ("path", br.datasets.path, {"name": "dare-county-sweep"}),
        ("source", br.datasets.source, {"name": "dare-county-sweep"}),
        ("Limits", reconstruction.Limits, {"seconds": 1.0, "gap": 0.0}),
    ]  # fmt: skip
