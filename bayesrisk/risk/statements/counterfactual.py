"""Releases of the data without one record."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from bayesrisk._base.validation import IntArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError
from bayesrisk.interfaces import Mechanism
from bayesrisk.release import MechanismSpec, NoiseSpec, Release, TrueCounts
from bayesrisk.tables import Microdata, Records
from bayesrisk.tables.published import select_rows


def is_additive(spec: MechanismSpec) -> bool:
    """Return True if every count is the true one plus noise that does not depend on records."""
    return all(isinstance(law, (TrueCounts, NoiseSpec)) for law in spec.tables.values())


def counted_unit(data: Microdata, records: Records) -> Records:
    """Return the persons or households of microdata that records are of, row by row."""
    for unit in (data.persons, data.households):
        if unit is not None and len(unit) == len(records):
            return unit
    raise DataError("microdata must have a row for each record that is counted")


def microdata_without(data: Microdata, records: Records, row: int) -> Microdata:
    """Return microdata without the record of a row."""
    unit = counted_unit(data, records)
    remaining = unit.take(np.arange(len(records)) != row)
    if unit is data.persons:
        return replace(data, persons=remaining)
    return replace(data, households=remaining)


class Counterfactual:
    """Releases of everybody but one, of the tables of the places that an attack reads together.

    Where every published count is the true one, or that plus noise that knows no records, the
    release of the others is the release less the record.  Others are made again from the same seed.
    """

    def __init__(
        self, release: Release, truth: Microdata, mechanism: Mechanism | None, rng: int | None
    ) -> None:
        self._release, self._truth = release, truth
        self._mechanism, self._rng = mechanism, rng
        self.records = truth.for_schema(release.tables.workload.schema)
        self._cells = self.records.cells()
        self._additive = is_additive(release.spec)
        self.possible = self._additive or mechanism is not None
        if mechanism is None or self._additive:
            return
        if rng is None:
            raise ArgumentTypeError("rng must be the seed of the release, with mechanism: got None")
        repeated = mechanism.release(truth, workload=release.tables.workload, rng=rng)
        if repeated.tables != release.tables:
            raise ArgumentError(
                "truth, mechanism and rng must be those of the release: they make another one"
            )

    def groups(self, rows: IntArray) -> IntArray:
        """Return a number for each record: equal ones leave the same release behind."""
        place = np.unique(self.records.geoids, return_inverse=True)[1]
        kind: IntArray = place * self.records.schema.size + self._cells
        return kind[rows] if self._additive else rows

    def without(self, row: int, level: str | None) -> Release:
        """Return the release without a record: tables of its place of a level, or all of them."""
        release, code = self._release, str(self.records.geoids[row])
        if self._additive or self._mechanism is None:
            return tables_within(release, level, code, self._cells[row : row + 1])
        remaining = microdata_without(self._truth, self.records, row)
        workload = release.tables.workload
        reduced = self._mechanism.release(remaining, workload=workload, rng=self._rng)
        return tables_within(reduced, level, code, None)


def tables_within(release: Release, level: str | None, code: str, cell: IntArray | None) -> Release:
    """Return the tables around a finest place, at a level and below it, less a record of a cell.

    All tables are kept where ``level`` is None.
    """
    tables, schema = release.tables, release.tables.workload.schema
    geography = schema.geography
    top = tables.workload.levels[0] if level is None else level
    levels = [one for one in tables.workload.levels if geography.rank(one) >= geography.rank(top)]
    finest = np.array([code])
    rows = {}
    for one in levels:
        around = geography.ancestors(tables.geoids[one], top) == geography.ancestors(finest, top)
        rows[one] = np.flatnonzero(around | (level is None))
    part = select_rows(tables, rows)
    if cell is not None:
        counts = {}
        for key, table in part.workload.tables.items():
            match = part.geoids[key[0]] == geography.ancestors(finest, key[0])
            place = sp.csr_array(match[:, None].astype(np.int64))
            counts[key] = sp.csr_array(part.counts[key] - place @ table.incidence(schema, cell).T)
        part = replace(part, counts=counts)
    laws = {key: release.spec.likelihood(*key) for key in part.counts}
    return Release(MechanismSpec(release.spec.mechanism, {}, laws), part)
