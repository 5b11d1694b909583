"""Many TopDown-like releases of one truth: all that the noise does not touch is done once."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bayesrisk._random import generator
from bayesrisk.mechanisms.base import BasePrepared, Protected
from bayesrisk.mechanisms.topdown._children import solve_family
from bayesrisk.mechanisms.topdown._tree import Level, Solve, solve_tree
from bayesrisk.release import MechanismSpec
from bayesrisk.tables import Histogram, PublishedTables, Workload

Key = tuple[str, str]


@dataclass(frozen=True, eq=False)
class PreparedTopDown(BasePrepared):
    """A TopDown-like release of one truth, ready to be drawn many times.

    It holds the confidential counts: it belongs to the custodian.

    Attributes
    ----------
    spec : MechanismSpec
        Spec of the releases.
    levels : tuple
        The tree.
    workload : Workload
        Published tables.
    rows : mapping of (level, table) to csc_array
        Published tables over cells, transposed.
    solve : callable
        Returns the integer counts of the children of a node.
    """

    spec: MechanismSpec
    levels: tuple[Level, ...]
    workload: Workload
    rows: Mapping[Key, sparse.csc_array]
    solve: Solve = solve_family

    def histograms(self, rng: np.random.Generator | int | None = None) -> dict[str, Histogram]:
        """Return one draw of the protected counts at every level of the tree.

        Parameters
        ----------
        rng : Generator or int, optional
            By default fresh entropy of the operating system, kept nowhere. A generator or a seed is
            for simulation, and the release says so (``simulation``): a seed can be guessed.

        Returns
        -------
        dict of str to Histogram
            By level, coarse to fine; children add up to their parent cell by cell.
        """
        solved = solve_tree(self.levels, generator(rng, optional=True), self.solve)
        return {
            level.name: Histogram(self.workload.schema, level.name, level.geoids, counts)
            for level, counts in zip(self.levels, solved, strict=True)
        }

    def _draw(self, rng: np.random.Generator) -> Protected:
        found = self.histograms(rng)
        finest = found[self.levels[-1].name]
        geoids: dict[str, NDArray[np.str_]] = {}
        counts: dict[Key, sparse.csr_array] = {}
        for level in self.workload.levels:
            own = found.get(level) or finest.aggregate(level)
            geoids[level] = own.geoids
            for name in self.workload.at(level):
                counts[level, name] = sparse.csr_array(own.counts @ self.rows[level, name])
        return Protected(PublishedTables(self.workload, geoids, counts), self.spec)
