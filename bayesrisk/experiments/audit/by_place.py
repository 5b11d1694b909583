"""A population by place under audit: looked through once, then read where targets live."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayesrisk._types import IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.experiments.by_place.above import coarse_levels
from bayesrisk.experiments.by_place.reach import check_reach
from bayesrisk.experiments.by_place.records import level_of_parts, open_index, read_place
from bayesrisk.interfaces import Mechanism
from bayesrisk.release import Release
from bayesrisk.risk.audit import AuditedPopulation, AuditQuestion
from bayesrisk.risk.audit.population import mean_errors
from bayesrisk.risk.audit.surroundings import (
    Surroundings,
    drawn_targets,
    fitted,
    sampled_places,
)
from bayesrisk.tables import Microdata

_WHOLE = "audit them as one folder of microdata, not by place"


@dataclass(frozen=True, eq=False)
class Survey:
    """What a population by place comes to: small, so that it is sent to workers.

    Attributes
    ----------
    digest : str
        Of the microdata.
    level : str
        Level of the parts.
    rows, places : ndarray of int64
        Records and places before each part, and after the last.
    composition : ndarray of int64
        Records in each cell of the schema.
    largest : int
        Records of the largest place.
    concentration : float
        How alike people of one place are.
    targets, target_places : ndarray of int64
        Rows of those who are asked about, sorted, and the places they live in.
    households : bool
        Whether persons come in households.
    """

    digest: str
    level: str
    rows: IntArray
    places: IntArray
    composition: IntArray
    largest: int
    concentration: float
    targets: IntArray
    target_places: IntArray
    households: bool


def survey(folder: Path, question: AuditQuestion, *, seed: int, targets: int | None) -> Survey:
    """Look through microdata by place, a part at a time.

    Parameters
    ----------
    folder : Path
        The microdata.
    question : AuditQuestion
        What is asked.
    seed : int
        Of the choice of targets.
    targets : int or None
        Number of targets; None for everybody.

    Raises
    ------
    ArgumentError
        If there is no record, or tables are of a level coarser than the parts.
    DataError
        If the microdata are damaged.
    """
    index, schema = open_index(folder), question.workload.schema
    level = level_of_parts(index, question.workload)
    if coarse := coarse_levels(question.workload, level):
        raise ArgumentError(
            f"workload must have no level coarser than a {level}, which the parts are, "
            f"got {coarse[0]}"
        )
    rows, places = [0], [0]
    composition, largest, households = np.zeros(schema.size, np.int64), 0, False
    for number in range(len(index.codes)):
        data = read_place(folder, number, index.digest)[1]
        households |= data.persons is not None and data.households is not None
        part = _part(data, question, seed, None)
        rows.append(rows[-1] + (0 if part is None else len(part.records)))
        places.append(places[-1] + (0 if part is None else part.codes.size))
        if part is not None:
            composition += np.bincount(part.cells, minlength=schema.size)
            largest = max(largest, part.largest)
    if not rows[-1]:
        raise ArgumentError("population must hold at least one record, got none")
    chosen = drawn_targets(seed, rows[-1], targets)
    asked = sampled_places(seed, places[-1])
    if question.concentration is not None:
        concentration, asked = float(question.concentration), asked[:0]
    elif places[-1] == 1:
        concentration, asked = float(schema.size), asked[:0]
    homes, counts = np.zeros(chosen.size, np.int64), np.zeros((asked.size, 0), np.int64)
    firsts = np.array(rows), np.array(places)
    for number in range(len(index.codes)):
        who = _inside(chosen, firsts[0], number)
        where = np.flatnonzero((asked >= places[number]) & (asked < places[number + 1]))
        if who.start == who.stop and not where.size:
            continue
        part = _part(read_place(folder, number, index.digest)[1], question, seed, None)
        if part is not None:
            homes[who] = places[number] + part.places_of(chosen[who] - rows[number])
            found = part.values_at(asked[where] - places[number]) if where.size else None
            if found is not None:
                counts = counts if counts.size else np.zeros((asked.size, found.shape[1]), np.int64)
                counts[where] = found
    if asked.size:
        concentration = fitted(counts)
    return Survey(
        index.digest,
        level,
        *firsts,
        composition,
        largest,
        concentration,
        chosen,
        homes,
        households,
    )


def _part(
    data: Microdata, question: AuditQuestion, seed: int, around: Surroundings | None
) -> AuditedPopulation | None:
    """Return a part as a population; None where nobody lives there."""
    if not len(data.for_schema(question.workload.schema)):
        return None
    return AuditedPopulation(data, question, seed=seed, around=around)


def _inside(rows: IntArray, firsts: IntArray, number: int) -> slice:
    """Return which of sorted rows are of a part."""
    start, stop = np.searchsorted(rows, firsts[number : number + 2])
    return slice(int(start), int(stop))


class PopulationByPlace:
    """A population of which one part is held at a time; used as an :class:`AuditedPopulation` is.

    Every part is protected by itself, with random numbers that its name chooses, and so is what is
    left of it without a record.

    Parameters
    ----------
    folder : Path
        The microdata.
    question : AuditQuestion
        What is asked.
    known : Survey
        What they come to.
    seed : int
        Of releases and chains.
    """

    def __init__(self, folder: Path, question: AuditQuestion, known: Survey, *, seed: int) -> None:
        self.folder, self.question, self.known, self.seed = folder, question, known, seed
        self._held = functools.lru_cache(maxsize=1)(self._read)

    def targets(self, number: int | None) -> IntArray:
        """Return the rows of targets, as they were drawn in the survey."""
        return self.known.targets

    def places_of(self, rows: IntArray) -> IntArray:
        """Return the numbers of the places of targets."""
        found: IntArray = self.known.target_places[np.searchsorted(self.known.targets, rows)]
        return found

    def check(self, mechanism: Mechanism) -> None:
        """Refuse a mechanism that needs more than a part."""
        check_reach(mechanism, self.question.workload, self.known.level, whole=_WHOLE)

    def release(self, protection: int, mechanism: Mechanism) -> ReleasedByPlace:
        """Return the release of every part, made when it is asked for."""
        return ReleasedByPlace(self, protection, mechanism)

    def errors(self, release: ReleasedByPlace) -> pd.DataFrame:
        """Return the errors of every table, in the parts where targets live."""
        sums = [part.error_sums(made) for part, made in release.parts(self.known.targets)]
        return mean_errors(pd.concat(sums, ignore_index=True))

    def statements(
        self,
        name: str,
        protection: int,
        mechanism: Mechanism,
        release: ReleasedByPlace,
        rows: IntArray,
    ) -> pd.DataFrame:
        """Return what :meth:`AuditedPopulation.statements` does, part after part."""
        frames = []
        for number in self._parts_of(rows):
            part, made = release.of(number)
            mine = np.sort(rows)[_inside(np.sort(rows), self.known.rows, number)]
            own = mine - self.known.rows[number]
            frames.append(part.statements(name, protection, mechanism, made, own))
        return pd.concat(frames, ignore_index=True)

    def part(self, number: int) -> AuditedPopulation:
        """Return a part, the last one kept."""
        return self._held(number)

    def _parts_of(self, rows: IntArray) -> list[int]:
        found = np.searchsorted(self.known.rows, np.unique(rows), side="right") - 1
        return [int(number) for number in np.unique(found)]

    def _read(self, number: int) -> AuditedPopulation:
        known = self.known
        code, data = read_place(self.folder, number, known.digest)
        around = Surroundings(
            code,
            int(known.rows[number]),
            int(known.places[number]),
            known.composition,
            known.largest,
            known.concentration,
        )
        part = _part(data, self.question, self.seed, around)
        if part is None:
            raise ArgumentError(f"part {code} must hold a target, got no record")
        return part


class ReleasedByPlace:
    """A protection of all parts, of which the release of one is held."""

    def __init__(
        self, population: PopulationByPlace, protection: int, mechanism: Mechanism
    ) -> None:
        self._population, self._protection, self._mechanism = population, protection, mechanism
        self._made: tuple[int, Release] | None = None

    def of(self, number: int) -> tuple[AuditedPopulation, Release]:
        """Return a part and its release, made once as long as it is the last one."""
        part = self._population.part(number)
        if self._made is None or self._made[0] != number:
            self._made = number, part.release(self._protection, self._mechanism)
        return part, self._made[1]

    def parts(self, rows: IntArray) -> Iterator[tuple[AuditedPopulation, Release]]:
        """Yield the parts of some rows with their releases."""
        for number in self._population._parts_of(rows):
            yield self.of(number)


def households_of(population: Any) -> bool:
    """Return whether persons of a population come in households."""
    if isinstance(population, PopulationByPlace):
        return population.known.households
    held = population.data
    return held.persons is not None and held.households is not None
