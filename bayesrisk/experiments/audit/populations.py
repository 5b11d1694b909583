"""Populations of an audit: files of records or simulated ones, and results by population."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from bayesrisk import _validation as check
from bayesrisk import population as simulated
from bayesrisk._files.parse import shown
from bayesrisk._show import displayed
from bayesrisk.exceptions import ArgumentError, BayesRiskError
from bayesrisk.experiments.audit.by_place import Survey, survey
from bayesrisk.experiments.audit.state import digest_of
from bayesrisk.population import PopulationSpec
from bayesrisk.risk.audit import AuditQuestion
from bayesrisk.tables import Microdata, Records, Schema
from bayesrisk.tables.exchange.partitions import Partitions

POPULATION = "population"


@displayed
@dataclass(frozen=True)
class SimulatedPopulation:
    """A synthetic population, made anew from its seed wherever it is needed.

    Attributes
    ----------
    spec : PopulationSpec or str
        Settings, or the name of ready ones, as for :func:`~bayesrisk.simulate_population`.
    seed : int
        The same seed gives the same population; >= 0.
    """

    spec: PopulationSpec | str
    seed: int

    def __post_init__(self) -> None:
        spec = self.spec
        if isinstance(spec, str):
            object.__setattr__(self, "spec", simulated.population_spec(spec))
        else:
            check.instance(spec, PopulationSpec, "spec")
        check.integer(self.seed, "seed", lower=0)


Source = str | Path | SimulatedPopulation


def named_sources(population: Any) -> dict[str, Source]:
    """Return populations by name; a single one that has no name is called by an empty text."""
    if not isinstance(population, Mapping):
        return {"": population}
    if not population:
        raise ArgumentError("population must name at least one population, got none")
    for name in population:
        check.text(name, "name of a population")
        if not name.strip():
            raise ArgumentError(f"name of a population must not be empty, got {shown(name)}")
    return dict(population)


@contextmanager
def about_population(name: str) -> Iterator[None]:
    """Let errors say which of several populations they are about."""
    try:
        yield
    except BayesRiskError as error:
        if not name:
            raise
        raise type(error)(f"population {name!r}: {error}") from error


def digest(source: Source) -> str:
    """Return what tells a population from others: of its files, or of its settings and seed."""
    if isinstance(source, SimulatedPopulation):
        told = json.dumps(dataclasses.asdict(source), sort_keys=True, default=str)
        return hashlib.sha256(told.encode()).hexdigest()
    return digest_of(check.path(source, "population"))


def loaded(source: Source, schema: Schema) -> Microdata | Records:
    """Return the records of a population; ``schema`` is that of a file."""
    if isinstance(source, SimulatedPopulation):
        return simulated.simulate_population(source.spec, rng=source.seed)
    path = check.path(source, "population")
    return Microdata.read(path) if path.is_dir() else Records.read(path, schema=schema)


def surveyed(
    source: Source, question: AuditQuestion, *, seed: int, targets: int | None
) -> Survey | None:
    """Return what a population by place comes to; None of one that is read as a whole."""
    if isinstance(source, SimulatedPopulation):
        return None
    path = check.path(source, "population")
    return survey(path, question, seed=seed, targets=targets) if Partitions.there(path) else None


def population_names(frame: pd.DataFrame) -> list[str]:
    """Return the populations that rows are about; an empty text for the only one without name."""
    return list(dict.fromkeys(frame[POPULATION].tolist())) if POPULATION in frame else [""]


def of_population(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the rows about a population, without its name."""
    if POPULATION not in frame:
        return frame
    return frame[frame[POPULATION] == name].drop(columns=POPULATION)


def by_population(
    frame: pd.DataFrame, found: Callable[[pd.DataFrame, str], pd.DataFrame]
) -> pd.DataFrame:
    """Return what is found of each population: populations are never pooled.

    Parameters
    ----------
    frame : pandas.DataFrame
        Rows about all of them.
    found : callable
        Gets the rows about one, and its name.
    """
    if POPULATION not in frame:
        return found(frame, "")
    parts = []
    for name in population_names(frame):
        part = found(of_population(frame, name), name)
        part.insert(0, POPULATION, name)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)
