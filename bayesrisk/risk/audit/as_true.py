"""Three attacks on the tables of one place, taken as true: what each states of a target.

Each is made from tables once and asked about many targets.  It answers with weights of the values
that a statement can have, or with None where it says nothing of a target.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np
import pandas as pd
from scipy import sparse

from bayesrisk._types import BoolArray, FloatArray, IntArray
from bayesrisk.inference import RecordPrior
from bayesrisk.inference.microdata.classes import Classes
from bayesrisk.reconstruction import Status, reconstruct, verify_claims
from bayesrisk.risk.audit.belief import Asked
from bayesrisk.tables import PublishedTables, Schema, Workload

_ROUNDING = 1e-9  # of least squares over counts


class AsTrue(Protocol):
    """An attack on tables that are taken as true."""

    #: How it found what it says.
    engine: str
    #: Whether nothing else fits the tables.
    proof: bool

    def parts(self, asked: Asked, prior: RecordPrior) -> FloatArray | None:
        """Return weights of the values, of which one at least is positive, or None."""


def tables_of(tables: PublishedTables, level: str, code: str, off: IntArray) -> PublishedTables:
    """Return the tables of one place, less records that are known.

    Parameters
    ----------
    tables : PublishedTables
        Of all places.
    level, code : str
        The place.
    off : ndarray of int64
        Cells of the schema of the records that are taken off; counts may become negative.
    """
    workload = tables.workload.select(levels=[level])
    row = tables.row(level, code)
    counts, hidden = {}, {}
    for name, table in workload.at(level).items():
        key = level, name
        own = np.asarray(table.incidence(workload.schema, off).sum(axis=1), np.int64)
        hidden[key] = sparse.csr_array(tables.hidden(*key)[[row]])
        left = np.where(hidden[key].toarray(), 0, tables.count(*key, code) - own)
        counts[key] = sparse.csr_array(left)
    laws = {key: law for key, law in tables.laws.items() if key in counts}
    return PublishedTables(workload, {level: np.array([code])}, counts, hidden, laws)


class Reconstructed:
    """Records that fit the tables, or deviate least where none fit, taken at their word."""

    def __init__(self, tables: PublishedTables) -> None:
        level = tables.workload.levels[-1]
        found = reconstruct(tables, scope=level, nearest=True, taken_as_true=True)
        space = found.problem.space
        self.engine = str(found.status[0])
        self.proof = found.status[0] == Status.UNIQUE
        self._cells = Classes(space.schema, space.bins)
        self._count = found.histogram().toarray()[0]

    def parts(self, asked: Asked, prior: RecordPrior) -> FloatArray | None:
        """Return how many reconstructed records that agree with what is known have each value."""
        found: FloatArray = self._count @ asked.shares(self._cells, prior.shares_of_cells)
        return found if found.sum() > 0 else None


class Majority:
    """How many people of the place have each value, by published counts of these values alone.

    Nothing is linked, and nothing used that is known of the target but the place: what a stranger
    would guess.  Counts are put together by least squares, and what they leave open is shared as in
    the prior.  Where a place has none, the next larger one that has counts.
    """

    engine = "margins"
    proof = False

    def __init__(self, nearest_first: Iterable[PublishedTables], prior: RecordPrior) -> None:
        self._places, self._prior = nearest_first, prior
        self._found: FloatArray | None = None

    def parts(self, asked: Asked, prior: RecordPrior) -> FloatArray | None:
        """Return the numbers of people of every value: the same whoever is asked about."""
        if self._found is None:
            shares = self._prior.shares_of_cells
            scale = np.sqrt(np.bincount(asked.value, shares, minlength=asked.values))
            self._found = np.zeros(asked.values)
            for tables in self._places:
                self._found = _margins(tables, asked, scale)
                if self._found.any():
                    break
        return self._found if self._found.any() else None


class Claimed:
    """What must be true of everybody like the target, if the tables are true."""

    engine = "claims"
    proof = True

    def __init__(self, tables: PublishedTables) -> None:
        self._tables = tables
        self._refuted: dict[bytes, BoolArray | None] = {}

    def parts(self, asked: Asked, prior: RecordPrior) -> FloatArray | None:
        """Return the prior of the values that nobody like the target is proved not to have."""
        key = asked.possible.tobytes()
        if key not in self._refuted:
            self._refuted[key] = self._found(asked)
        refuted = self._refuted[key]
        if refuted is None:
            return None
        left = np.where(refuted, 0.0, asked.sums(prior.shares_of_cells))
        # Everything refuted: the tables have nobody like the target.
        return left if left.any() and refuted.any() else None

    def _found(self, asked: Asked) -> BoolArray | None:
        """Return which values the tables, taken as true, leave to nobody like the target."""
        workload = self._tables.workload
        level = workload.levels[-1]
        frame: dict[str, object] = {level: str(self._tables.geoids[level][0]), "multiplicity": 0}
        for name, (low, high) in _codes(workload.schema, asked, asked.possible).items():
            codes = pd.array(low, dtype="Int64")
            codes[low < high] = pd.NA
            frame[name] = codes
        values = np.unique(asked.value[asked.possible])
        claims = pd.DataFrame(frame, index=np.arange(asked.values)).loc[values]
        found = verify_claims(self._tables, claims, among={}, taken_as_true=True)
        if found.blocks["status"].iloc[0] in (Status.INFEASIBLE, Status.UNKNOWN):
            return None
        refuted = np.ones(asked.values, np.bool_)
        refuted[values] = (found.claims["status"] == Status.VERIFIED).to_numpy()
        return refuted


def _codes(
    schema: Schema, asked: Asked, possible: BoolArray
) -> dict[str, tuple[IntArray, IntArray]]:
    """Return the least and the greatest code of each attribute among the cells of every value."""
    cells = np.flatnonzero(possible)
    value, found = asked.value[cells], {}
    for name, index in schema.indices(cells).items():
        code = index + schema.attribute(name).first
        low = np.full(asked.values, np.iinfo(np.int64).max)
        high = np.full(asked.values, np.iinfo(np.int64).min)
        np.minimum.at(low, value, code)
        np.maximum.at(high, value, code)
        found[name] = low, high
    return found


def _margins(tables: PublishedTables, asked: Asked, scale: FloatArray) -> FloatArray:
    """Return the numbers of people of every value, at least 0, by least squares.

    ``scale`` is the root of the prior share of each value: of all numbers that fit equally well,
    those that deviate least, in its units, from nobody.
    """
    workload: Workload = tables.workload
    level, schema = workload.levels[-1], workload.schema
    everybody = np.ones(schema.size, np.bool_)
    codes = _codes(schema, asked, everybody)
    free = [name for name, (low, high) in codes.items() if (low < high).any()]
    first = np.unique(asked.value, return_index=True)[1]
    rows, counts = [], []
    for name, table in workload.at(level).items():
        told = ~tables.hidden(level, name).toarray()[0]
        for other in free:
            if other in table.factors:
                told &= np.ptp(np.asarray(table.factors[other]), axis=1) == 0
        rows.append(table.incidence(schema, first).toarray()[told])
        counts.append(tables.count(level, name, str(tables.geoids[level][0]))[told])
    matrix, count = np.concatenate(rows).astype(np.float64), np.concatenate(counts)
    if not matrix.any():
        return np.zeros(asked.values)
    found = scale * np.linalg.lstsq(matrix * scale, count, rcond=None)[0]
    return np.where(found > _ROUNDING, found, 0.0)
