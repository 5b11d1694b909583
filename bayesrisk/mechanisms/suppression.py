"""Cell suppression: small counts are withheld, and others so that sums do not give them away."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bayesrisk import _validation as check
from bayesrisk.distributions._base import generator
from bayesrisk.exceptions import ArgumentTypeError
from bayesrisk.mechanisms._hidden import HiddenSystem, hidden_system, stacked
from bayesrisk.mechanisms._relations import Structure, structure
from bayesrisk.mechanisms._tabulation import true_tables
from bayesrisk.mechanisms.suppression_audit import ranges_of
from bayesrisk.release import MechanismSpec, Release
from bayesrisk.tables import Microdata, PublishedTables, Records, Workload

__all__ = ["Suppression"]

IntArray = NDArray[np.int64]
#: A cell: position of its level, of its place, and among the cells of the level.
_Cell = tuple[int, int, int]


class Suppression:
    """Withhold counts below a threshold, and what would reveal them.

    Primary suppression withholds every count from 1 to ``threshold - 1``.  Complementary
    suppression withholds further cells, small ones first, until no sum has one withheld cell
    alone, and then until linear programs over all published cells leave every withheld count a
    range of at least ``protection``.

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
    integer program.  The choice is deterministic; ties go to the first cell.

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
        """
        if not isinstance(tables, PublishedTables):
            raise ArgumentTypeError(f"tables must be PublishedTables, got {tables!r}")
        plan = structure(tables)
        counts, _ = stacked(tables, plan)
        hidden = [_small(part, self._threshold) for part in counts]
        if self._complementary:
            hidden = _Complement(plan, counts, self._protection).complete(hidden)
        return _withheld(tables, plan, hidden)

    def release(
        self,
        microdata: Microdata | Records,
        *,
        workload: Workload,
        rng: np.random.Generator | int,
    ) -> Release:
        """Return the tables with cells withheld.

        Parameters
        ----------
        microdata : Microdata or Records
            The records.
        workload : Workload
            Tables to publish.
        rng : Generator or int
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
        generator(rng)
        tables = self.suppress(true_tables(microdata, workload))
        cells = sum(part.nnz for part in tables.suppressed.values())
        return Release(self._spec, tables, {"suppressed_cells": float(cells)})


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


class _Complement:
    """The choice of further cells, round by round."""

    def __init__(self, plan: Structure, counts: list[sparse.csr_array], protection: int) -> None:
        self._plan, self._counts, self._protection = plan, counts, protection

    def complete(self, hidden: list[sparse.csr_array]) -> list[sparse.csr_array]:
        """Return the hidden cells with what protects them."""
        while True:
            system = hidden_system(self._plan, self._counts, hidden)
            alone = np.flatnonzero(np.diff(system.matrix.indptr) == 1)
            chosen = self._for_rows(system, [[row] for row in alone.tolist()], hidden)
            if not chosen:
                lower, upper = ranges_of(system)
                narrow = np.flatnonzero(upper - lower < self._protection)
                chosen = self._for_rows(system, self._rows_of(system, narrow), hidden)
            if not chosen:
                return hidden
            hidden = self._with(hidden, chosen)

    def _rows_of(self, system: HiddenSystem, narrow: IntArray) -> list[list[int]]:
        """Return for each part of the system with a narrow cell the sums to take a cell from.

        They are those of the cell, then, should these have no cell left, those of its part.
        """
        by_variable = system.matrix.tocsc()
        found = []
        for part in np.unique(system.components[narrow]).tolist():
            inside = np.flatnonzero(system.components == part)
            own = narrow[system.components[narrow] == part]
            first = np.unique(by_variable[:, own].indices).tolist()
            rest = np.unique(by_variable[:, inside].indices).tolist()
            found.append([*first, *(row for row in rest if row not in set(first))])
        return found

    def _for_rows(
        self, system: HiddenSystem, groups: list[list[int]], hidden: list[sparse.csr_array]
    ) -> set[_Cell]:
        """Return one more cell for each group of sums, the smallest of the first that has any."""
        chosen: set[_Cell] = set()
        for rows in groups:
            for row in rows:
                free, values = self._members(system, row, hidden)
                if any(cell in chosen for cell in free):
                    break  # this sum got one in this round
                if free:
                    # Zeros last: they protect, but a positive count widens the range more.
                    ranked = sorted(range(len(free)), key=lambda i: (values[i] == 0, values[i], i))
                    chosen.add(free[ranked[0]])
                    break
        return chosen

    def _members(
        self, system: HiddenSystem, row: int, hidden: list[sparse.csr_array]
    ) -> tuple[list[_Cell], list[int]]:
        """Return the published cells of a sum, and their counts."""
        source, place = int(system.source[row]), int(system.place[row])
        relation = int(system.relation[row])
        levels = len(self._plan.levels)
        if source < levels:
            part = self._plan.levels[source].relations
            cells = part.indices[part.indptr[relation] : part.indptr[relation + 1]].tolist()
            groups = [(source, [place], sorted(cells))]
        else:
            link = self._plan.links[source - levels]
            # Codes are prefixes, so children stand together in sorted order.
            first, last = np.searchsorted(link.parent, [place, place + 1]).tolist()
            groups = [
                (link.fine, list(range(first, last)), [int(link.fine_cells[relation])]),
                (link.coarse, [place], [int(link.coarse_cells[relation])]),
            ]
        free: list[_Cell] = []
        values: list[int] = []
        for level, places, cells in groups:
            span = slice(places[0], places[-1] + 1)
            counts = self._counts[level][span][:, cells].toarray()
            taken = hidden[level][span][:, cells].toarray()
            for i, j in zip(*np.nonzero(taken == 0), strict=True):
                free.append((level, places[i], cells[j]))
                values.append(int(counts[i, j]))
        return free, values

    def _with(self, hidden: list[sparse.csr_array], chosen: set[_Cell]) -> list[sparse.csr_array]:
        """Return the hidden cells with the chosen ones."""
        result = []
        for level, part in enumerate(hidden):
            own = np.array(
                [cell[1:] for cell in sorted(chosen) if cell[0] == level], dtype=np.int64
            )
            if own.size:
                ones = np.ones(len(own), dtype=np.int64)
                part = part + sparse.csr_array((ones, (own[:, 0], own[:, 1])), shape=part.shape)
            result.append(sparse.csr_array(part))
        return result
