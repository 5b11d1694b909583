"""Many swapped releases of one truth: all that chance does not touch is done once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrisk._types import IntArray
from bayesrisk.mechanisms.base import BasePrepared, Protected
from bayesrisk.mechanisms.swapping._units import Units
from bayesrisk.release import MechanismSpec
from bayesrisk.tables import Microdata, Records, Workload

#: Level, table, cell, geographic code.
Cell = tuple[str, str, str, str]


@dataclass(frozen=True, eq=False)
class Plan:
    """Units to be swapped, with what decides of each: arrays have one entry per eligible unit.

    Attributes
    ----------
    data : Microdata
        The records.
    units : Units
        All units.
    eligible : ndarray of int64
        Those that have persons.
    region, frequency, block_persons, group : ndarray of int64
        Region; how many share what makes it unique; persons of its block; region and swap key.
    points : ndarray of float64
        Coordinates of the places of the units.
    nearest : dict
        Blocks of each group by distance, filled when first needed.
    """

    data: Microdata
    units: Units
    eligible: IntArray
    region: IntArray
    frequency: IntArray
    block_persons: IntArray
    group: IntArray
    points: NDArray[np.float64]
    nearest: dict[int, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class PreparedSwapping(BasePrepared):
    """Swapped releases of one truth, ready to be drawn many times.

    It holds the confidential records: it belongs to the custodian.

    Attributes
    ----------
    plan : Plan
        Units and what decides of their swaps.
    spec : MechanismSpec
        Spec of the mechanism; a release's says also which tables do not change.
    unit : str
        ``"household"`` or ``"person"``.
    workload : Workload
        Published tables.
    records : Records
        The records that the workload counts.
    partners, protect : callable
        Draw the partners alone, and the protected tables.
    """

    plan: Plan
    spec: MechanismSpec
    unit: str
    workload: Workload
    records: Records
    partners: Callable[[np.random.Generator], IntArray]
    protect: Callable[[np.random.Generator], Protected]
    _watched: dict[tuple[Cell, ...], Any] = field(default_factory=dict)

    def _draw(self, rng: np.random.Generator) -> Protected:
        return self.protect(rng)

    def observed(self, rng: np.random.Generator, cells: Sequence[Cell]) -> IntArray | None:
        """Return the counts of some cells in one release, without making its tables.

        Parameters
        ----------
        rng : Generator
            Source of randomness: the counts are those of ``draw`` with it.
        cells : sequence of (level, table, cell, place)
            Cells of the workload.

        Returns
        -------
        ndarray of int64 or None
            Their counts; None, and nothing drawn, where the workload's records are not those that
            were swapped, row by row.
        """
        key = tuple(cells)
        if key not in self._watched:
            self._watched[key] = self._watch(key)
        watched = self._watched[key]
        if watched is None:
            return None
        partner = self.partners(rng)
        source = np.where(partner >= 0, partner, np.arange(len(partner)))
        new_place = self.plan.units.place[source]
        counts = np.empty(len(key), dtype=np.int64)
        for i, (stay, weight, inside, unit) in enumerate(watched):
            counts[i] = stay + weight @ inside[new_place[unit]]
        return counts

    def _watch(self, cells: tuple[Cell, ...]) -> list[Any] | None:
        """Return, for each cell, what never moves of it; weights, places and units of the rest."""
        places, place = self.records.places()
        unit = self._unit_of_records()
        if unit is None:
            return None
        geography, schema = self.workload.schema.geography, self.workload.schema
        distinct, kind = np.unique(self.records.cells(), return_inverse=True)
        found = []
        for level, name, cell, code in cells:
            table = self.workload.tables[level, name]
            row = table.incidence(schema, distinct)[[table.cells.index(cell)]].toarray()[0]
            weight = row[kind]
            counted = weight != 0
            here = geography.ancestors(places, level) == code
            fixed = counted & (unit < 0)
            stay = int(weight[fixed] @ here[place[fixed]])
            moving = counted & (unit >= 0)
            inside = geography.ancestors(self.plan.units.places, level) == code
            found.append((stay, weight[moving], inside.astype(np.int64), unit[moving]))
        return found

    def _unit_of_records(self) -> IntArray | None:
        """Return the unit that each counted record moves with, -1 for none; None if unknown.

        Recoding may leave records out, whose places then tell that the rows are others.
        """
        units, data = self.plan.units, self.plan.data
        for records in (data.persons, data.households):
            if records is None or len(records) != len(self.records):
                continue
            if records is not self.records and not np.array_equal(
                records.geoids, self.records.geoids
            ):
                continue
            if records is data.persons:
                return units.member
            count = len(records)
            moves = self.unit == "household"
            return np.arange(count) if moves else np.full(count, -1, dtype=np.int64)
        return None
