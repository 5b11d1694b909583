"""Chains on the points of a system with hard rows, from starts that lie far apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

from bayesrisk._types import FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.inference.microdata import _lattice_kernels as kernels
from bayesrisk.inference.microdata._lattice import MAX_GROUPS, kernel_basis, lattice, moves_of
from bayesrisk.inference.microdata._presolve import SmallSystem
from bayesrisk.inference.microdata._watch import Watch

__all__ = ["LatticeChain"]

_COMBINATIONS = 8  # random combinations of moves for every basis move, and at least so many
_FEWEST = 200
_SOLVER_SECONDS = 30.0


class LatticeChain:
    """Starts, moves and the steps of every chain.

    Parameters
    ----------
    system : SmallSystem
        Rows by groups.
    chains : int
        Number of starts.
    rng : Generator
        For the moves and the starts.
    thin : int
        Sweeps between draws.
    """

    def __init__(
        self, system: SmallSystem, chains: int, rng: np.random.Generator, thin: int = 1
    ) -> None:
        self._system = system
        if system.matrix.shape[1] > MAX_GROUPS:
            raise ArgumentError(
                f"place must have at most {MAX_GROUPS} kinds of records that its exact counts tell "
                f"apart, got {system.matrix.shape[1]}"
            )
        hard = system.matrix[np.flatnonzero(system.hard), :].toarray().astype(np.int64)
        self.basis = kernel_basis(hard)
        self.starts = _far_apart(system, chains, rng)
        apart = np.array([a - b for i, a in enumerate(self.starts) for b in self.starts[:i]])
        more = apart.reshape(-1, system.matrix.shape[1]).astype(np.int64)
        tries = max(_FEWEST, _COMBINATIONS * len(self.basis))
        self.moves = moves_of(self.basis, more, rng, tries)
        self._lattice = lattice(system, self.moves)
        longest = max((p.size for p in system.priors), default=1)
        self._work = longest + 1
        self._soft = np.flatnonzero(~system.hard)
        self.thin = thin * max(1, len(self.moves))

    def step(
        self, chain: int, rng: np.random.Generator, asked: sp.csr_array, watch: Watch
    ) -> Callable[[int, IntArray], None]:
        """Return what goes on with a chain: discards sweeps, then fills rows with answers."""
        x = self.starts[chain].copy()
        sums = np.asarray(self._system.matrix @ x, np.int64)
        work, tally = np.zeros(self._work), np.zeros(2, np.int64)
        of = self._lattice

        def go(discard: int, out: IntArray) -> None:
            kernels.go(rng, of, x, sums, work, tally, discard * self.thin)
            for row in out:
                kernels.go(rng, of, x, sums, work, tally, self.thin)
                row[:] = asked @ x
                density = of.prior[of.prior_ptr[:-1] + x].sum()
                density += of.soft[of.soft_ptr[self._soft] + sums[self._soft]].sum()
                watch.note(chain, x, float(density))

        return go


def _far_apart(system: SmallSystem, count: int, rng: np.random.Generator) -> list[IntArray]:
    """Return solutions at the ends of random directions, checked in whole numbers."""
    low, high = _row_bounds(system)
    rows = LinearConstraint(system.matrix.astype(float), low, high)
    found = []
    for _ in range(count):
        answer: Any = milp(
            rng.normal(size=system.matrix.shape[1]),
            constraints=rows,
            integrality=np.ones(system.matrix.shape[1], np.int64),
            bounds=Bounds(0, system.top),
            options={"time_limit": _SOLVER_SECONDS},
        )
        if answer.x is None:
            raise DataError(
                "release contradicts itself or the prior, or no counts that agree with all of it "
                f"were found in {_SOLVER_SECONDS:g} s"
            )
        x = np.rint(answer.x).astype(np.int64)
        sums = system.matrix @ x
        if np.any(x < 0) or np.any(x > system.top) or np.any((sums < low) | (sums > high)):
            raise DataError("the solver's counts do not agree with the release")
        found.append(x)
    return found


def _row_bounds(system: SmallSystem) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and largest sum of every row that has a weight."""
    low, high = system.given.astype(float), system.given.astype(float)
    for r in np.flatnonzero(~system.hard):
        finite = np.flatnonzero(system.soft[r] > -np.inf)
        if not finite.size:
            raise DataError("release contradicts itself or the prior: a count cannot be as it is")
        low[r], high[r] = finite[0], finite[-1]
    return low, high
