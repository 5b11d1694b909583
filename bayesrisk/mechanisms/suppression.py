"""Cell suppression: small counts are withheld, and others so that sums do not give them away."""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from bayesrisk import _validation as check
from bayesrisk._random import generator
from bayesrisk.exceptions import ArgumentTypeError
from bayesrisk.mechanisms._complement import complement
from bayesrisk.mechanisms._hidden import stacked
from bayesrisk.mechanisms._relations import Structure, structure
from bayesrisk.mechanisms._tabulation import true_tables
from bayesrisk.release import MechanismSpec, Release
from bayesrisk.tables import Microdata, PublishedTables, Records, Workload

__all__ = ["Suppression"]


class Suppression:
    """Withhold counts below a threshold, and what would reveal them.

    Primary suppression withholds every count from 1 to ``threshold - 1``.  Complementary
    suppression withholds further counts above 0, small ones first, so that every withheld count
    keeps a range of at least ``protection``: there are other tables with the same published cells
    whose counts there are as far away as that.

    Parameters
    ----------
    threshold : int
        Smallest count that is published besides 0, >= 2.
    complementary : bool, default True
        Whether further cells are withheld; without them sums give many counts away.
    protection : int, default 1
        Smallest difference between the largest and the smallest count that a withheld cell may
        have, >= 1; 1 means that no count can be recovered.

    Raises
    ------
    ArgumentError
        If a parameter is out of range.
    ArgumentTypeError
        If ``complementary`` is no truth value.

    Notes
    -----
    Which sums are known is that of :func:`bayesrisk.audit_suppression`, which anybody can apply
    to the release.  The cells chosen are sufficient, not the fewest possible: that would be an
    integer program.  They are those that the cheapest table within reach changes, where moving a
    published count by one costs that count.  The choice is deterministic.

    Let n be the number of counts above 0.  There are at most four linear programs a round, of at
    most 2 n variables and as many entries as counts have sums; whatever the number of withheld
    cells, there is one round where sums form trees or two-way tables.

    Examples
    --------
    >>> Suppression(threshold=3).spec.parameters
    {'threshold': 3, 'complementary': True, 'protection': 1}
    """

    def __init__(self, *, threshold: int, complementary: bool = True, protection: int = 1) -> None:
        self._threshold = check.integer(threshold, "threshold", lower=2)
        if not isinstance(complementary, bool):
            raise ArgumentTypeError(f"complementary must be true or false, got {complementary!r}")
        self._complementary = complementary
        self._protection = check.integer(protection, "protection", lower=1)
        self._spec = MechanismSpec(
            "suppression",
            {
                "threshold": self._threshold,
                "complementary": complementary,
                "protection": self._protection,
            },
        )

    @property
    def spec(self) -> MechanismSpec:
        """What the mechanism does; a published count is true."""
        return self._spec

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
        ArgumentTypeError
            If ``tables`` are no published tables.
        DataError
            If counts are negative or do not add up, or 50 rounds do not protect all.
        """
        if not isinstance(tables, PublishedTables):
            raise ArgumentTypeError(f"tables must be PublishedTables, got {tables!r}")
        plan = structure(tables)
        counts, _ = stacked(tables, plan)
        hidden = [_small(part, self._threshold) for part in counts]
        if self._complementary:
            hidden = complement(plan, counts, hidden, self._protection)
        return _withheld(tables, plan, hidden)

    def release(
        self,
        microdata: Microdata | Records,
        *,
        workload: Workload,
        rng: np.random.Generator | int | None = None,
    ) -> Release:
        """Return the tables with cells withheld.

        Parameters
        ----------
        microdata : Microdata or Records
            The records.
        workload : Workload
            Tables to publish.
        rng : Generator or int, optional
            Not drawn from; every mechanism takes one.

        Returns
        -------
        Release
            Tables; ``diagnostics`` holds the number of suppressed cells.

        Raises
        ------
        ArgumentError
            If ``rng`` is no seed, or the records lack what a table needs.
        """
        generator(rng, optional=True)
        tables = self.suppress(true_tables(microdata, workload))
        cells = sum(part.nnz for part in tables.suppressed.values())
        found = {"suppressed_cells": float(cells)}
        return Release(self._spec, tables, found, simulation=rng is not None)


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
    for level, part in zip(plan.levels, hidden, strict=True):
        for name, start in level.start.items():
            key = (level.name, name)
            own = sparse.csr_array(part[:, start : start + tables.counts[key].shape[1]])
            counts[key] = sparse.csr_array(tables.counts[key] - tables.counts[key].multiply(own))
            suppressed[key] = own.astype(np.bool_)
    return replace(tables, counts=counts, suppressed=suppressed)
