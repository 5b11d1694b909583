"""Cell suppression: small counts are withheld, and others so that sums do not give them away."""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._types import IntArray
from bayesrisk.exceptions import ArgumentTypeError, DataError
from bayesrisk.mechanisms.base import BaseMechanism, Dial, Protected
from bayesrisk.mechanisms.suppression._complementary import complement
from bayesrisk.mechanisms.suppression._group_ranges import some_histogram
from bayesrisk.mechanisms.suppression._groups import Structure, structure_of
from bayesrisk.mechanisms.tabulation import true_tables
from bayesrisk.release import MechanismSpec, SuppressedCounts
from bayesrisk.tables import (
    Histogram,
    Microdata,
    PublishedTables,
    Records,
    Workload,
    as_microdata,
)


class Suppression(BaseMechanism):
    """Withhold counts below a threshold, and what would reveal them.

    Primary suppression withholds every count from 1 to ``threshold - 1``.  Complementary
    suppression withholds further counts above 0, small ones first, so that every withheld count
    keeps a range of at least ``protection``: there is another histogram of whole, non-negative
    numbers with every published count, and no withheld count of 0, whose count there is as far
    away as that.  A zero is always published.

    Parameters
    ----------
    threshold : int
        Smallest count that is published besides 0, >= 2.
    complementary : bool, default True
        Whether further cells are withheld; without them sums give many counts away.
    protection : int, default 1
        Smallest difference between the largest and the smallest count that a withheld cell may
        have, >= 1; 1 means that no count can be recovered.

    Notes
    -----
    The adversary of the guarantee knows all published counts of all tables and levels, what each
    counts, and that a withheld count is at least 1, because zeros are published; not which cells
    are primary, and nobody's record.  Whoever knows more, such as people of the place or how the
    cells were chosen, may recover more.

    For each withheld count that no known histogram moves, two linear programs look for the
    cheapest direction up and down, where moving a published count by one costs that count; what it
    moves is withheld.  A direction counts if it is whole, which is checked.  If neither is, one
    more record like a true one is, which is always a direction.  The cells are sufficient, not the
    fewest possible.  The choice is deterministic:
    nothing is drawn.  Which cells are withheld depends on the records and is published;
    ``diagnostics["suppressed_cells"]`` of a release is their number.
    Tables may tell at most 4,194,304 kinds of records apart, and counts are below 2**31.

    Places are protected one by one where tables have one level, and together below each place of
    the coarsest level where they have several.  A program has as many variables as a place has
    cells of its histogram that no published zero holds, and two for each count above 0.

    Examples
    --------
    >>> Suppression(threshold=3).spec.parameters
    {'threshold': 3, 'complementary': True, 'protection': 1}
    """

    dial = Dial("threshold", 100.0, 2.0, whole=True)
    totals = ("suppressed_cells",)

    def __init__(self, *, threshold: int, complementary: bool = True, protection: int = 1) -> None:
        self._threshold = check.integer(threshold, "threshold", lower=2)
        if not isinstance(complementary, bool):
            raise ArgumentTypeError(
                f"complementary must be true or false, got {shown(complementary)}"
            )
        self._complementary = complementary
        self._protection = check.integer(protection, "protection", lower=1)
        parameters = {
            "threshold": self._threshold,
            "complementary": complementary,
            "protection": self._protection,
        }
        super().__init__(MechanismSpec("suppression", parameters, others=SuppressedCounts()))

    def suppress(self, tables: PublishedTables) -> PublishedTables:
        """Return true tables with cells withheld.

        Parameters
        ----------
        tables : PublishedTables
            As they are.

        Returns
        -------
        PublishedTables
            With suppressed cells, whose counts are gone.

        Raises
        ------
        ArgumentError
            If tables tell more than 4,194,304 kinds of records apart.
        DataError
            If counts are negative or 2**31 or more, no records have them, or none were found.

        Notes
        -----
        Protection is proved from records that have the counts.  :meth:`release` has them; here
        some are looked for first, which is harder than all the rest, and other records may lead to
        other cells.
        """
        if not isinstance(tables, PublishedTables):
            raise ArgumentTypeError(f"tables must be PublishedTables, got {shown(tables)}")
        return self._suppress(tables, None)

    def acts_within(self, workload: Workload) -> str | None:
        """Return the coarsest published level, below whose places cells are protected together."""
        return check.instance(workload, Workload, "workload").levels[0]

    def _protect(
        self, microdata: Microdata | Records, workload: Workload, rng: np.random.Generator
    ) -> Protected:
        tables = true_tables(microdata, workload)
        records = as_microdata(microdata).for_schema(workload.schema)
        histogram = Histogram.from_records(records, level=workload.levels[-1])
        tables = self._suppress(tables, histogram)
        cells = sum(part.nnz for part in tables.suppressed.values())
        return Protected(tables, diagnostics={"suppressed_cells": float(cells)})

    def _suppress(self, tables: PublishedTables, histogram: Histogram | None) -> PublishedTables:
        """Return the tables with cells withheld; their records are known or looked for."""
        if tables.signed:
            raise DataError("tables: true counts must be >= 0, got a negative one")
        plan = structure_of(replace(tables, suppressed={}))
        hidden = [_small(part, self._threshold) for part in plan.counts]
        if self._complementary:
            hidden = self._complemented(plan, hidden, histogram)
        return _withheld(tables, plan, hidden)

    def _complemented(
        self, plan: Structure, hidden: list[sparse.csr_array], histogram: Histogram | None
    ) -> list[sparse.csr_array]:
        """Return the hidden cells of each level with those that protect them."""
        records = None if histogram is None else plan.of_records(histogram)
        found: list[list[tuple[IntArray, IntArray]]] = [[] for _ in hidden]
        for group in plan.groups():
            mask = np.zeros(len(group.level), dtype=np.bool_)
            for level, part in enumerate(hidden):
                own = np.flatnonzero((group.level == level) & ~group.tie)
                mask[own] = np.asarray(part[group.place[own], group.cell[own]]).reshape(-1) > 0
            if not mask.any():
                continue
            if records is None:
                known = some_histogram(group)
            else:
                known = np.asarray(records[group.finest, group.column]).reshape(-1)
            mask = complement(group, plan.cliques, known, mask, self._protection)
            for level, kept in enumerate(found):
                own = np.flatnonzero(mask & (group.level == level))
                kept.append((group.place[own], group.cell[own]))
        return [
            _marked(kept, part.shape) if kept else part
            for kept, part in zip(found, hidden, strict=True)
        ]


def _marked(cells: list[tuple[IntArray, IntArray]], shape: tuple[int, int]) -> sparse.csr_array:
    """Return 1 at some cells."""
    where = tuple(np.concatenate(part) for part in zip(*cells, strict=True))
    return sparse.csr_array((np.ones(len(where[0]), dtype=np.int64), where), shape=shape)


def _small(counts: sparse.csr_array, threshold: int) -> sparse.csr_array:
    """Return which counts are from 1 to below the threshold."""
    hidden = counts.copy()
    hidden.data = ((counts.data > 0) & (counts.data < threshold)).astype(np.int64)
    hidden.eliminate_zeros()
    return hidden


def _withheld(
    tables: PublishedTables, plan: Structure, hidden: list[sparse.csr_array]
) -> PublishedTables:
    """Return the tables without the counts of hidden cells."""
    counts: dict[tuple[str, str], Any] = {}
    suppressed: dict[tuple[str, str], Any] = {}
    for level, starts, part in zip(tables.workload.levels, plan.start, hidden, strict=True):
        for name, start in starts.items():
            key = (level, name)
            own = sparse.csr_array(part[:, start : start + tables.counts[key].shape[1]])
            counts[key] = sparse.csr_array(tables.counts[key] - tables.counts[key].multiply(own))
            suppressed[key] = own.astype(np.bool_)
    return replace(tables, counts=counts, suppressed=suppressed)
