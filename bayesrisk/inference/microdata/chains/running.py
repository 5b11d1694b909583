"""How chains are run: until they agree, or their time is over.

Chains that do not agree yet go on for as long again as they have gone; all that they drew before
is then warm-up.  So at any time half of what a chain did is kept, at as many draws as at first,
further apart: longer runs need no more memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from bayesrisk._types import FloatArray, IntArray
from bayesrisk.inference.sampling.arviz_io import ChainNumbers, chain_numbers
from bayesrisk.inference.sampling.chains import Step, room_for, run_chains

#: What draws must have for an answer.
LEAST_ESS, MOST_R_HAT = 400.0, 1.01
_EQUAL = 1e-9  # relative: what differs by less is equal


class Chain(Protocol):
    """A chain of states."""

    def go(self, sweeps: int) -> None:
        """Go on for so many sweeps."""

    def now(self) -> tuple[IntArray, float]:
        """Return the counts and the log density of the state."""


#: What else is told of every state that is kept: the chain and its counts.
Note = Callable[[int, IntArray], None]


def silent() -> Note:
    """Return what takes no notice of states."""
    return lambda chain, x: None


@dataclass(frozen=True)
class Draws:
    """States that are kept, and what they are watched by.

    Attributes
    ----------
    counts : ndarray of int64, shape (chains, draws, functions)
        Linear functions of the states.
    watched : list of ChainNumbers
        Of the log density and of two random projections of the state, where they move.
    thin : int
        Sweeps between two draws.
    leap : int
        By how many people a number may differ from that of all draws, if these are equal.
    """

    counts: IntArray
    watched: list[ChainNumbers]
    thin: int
    leap: int = 1

    @property
    def agreed(self) -> bool:
        """Whether the chains agree in what is watched; where nothing moved nothing is known."""
        return agreed(self.watched)


def draw(
    chains: Sequence[Chain],
    functions: sp.csr_array,
    draws: int,
    *,
    thin: int,
    doublings: int,
    enough: Callable[[Draws], bool] = lambda _: True,
    fresh: Callable[[], Note] = silent,
    leap: int = 1,
) -> Draws:
    """Return draws of chains that agree, or the last ones.

    Parameters
    ----------
    chains : sequence of Chain
        At their starts.
    functions : scipy.sparse.csr_array of int64, shape (functions, unknowns)
        What is kept of every state.
    draws : int
        Draws kept of each chain, after as many that are discarded.
    thin : int
        Sweeps between two draws, at first.
    doublings : int
        How often the chains go on for as long again, with twice as many sweeps between draws.
    enough : callable
        Whether draws of chains that agree are enough.
    fresh : callable
        Returns what is told of every kept state: called anew whenever what was kept is discarded.
    leap : int
        As in :class:`Draws`.
    """
    directions = np.random.default_rng(0).normal(size=(2, functions.shape[1]))
    for again in range(doublings + 1):
        counts = room_for(draws, len(chains), functions.shape[0])
        begin = _Begin(chains, functions, thin << again, directions, draws, fresh())
        run_chains(begin, counts, 0 if again else draws, None)
        watched = [chain_numbers(v) for v in moving(begin.seen)]
        found = Draws(counts, watched, thin << again, leap)
        if found.agreed and enough(found):
            break
    return found


class _Begin:
    """The steps of all chains, and what is watched of the states that they keep."""

    def __init__(
        self,
        chains: Sequence[Chain],
        functions: sp.csr_array,
        thin: int,
        directions: FloatArray,
        draws: int,
        note: Note,
    ) -> None:
        self._chains, self._functions, self._thin = chains, functions, thin
        self._directions, self._note = directions, note
        self.seen = np.zeros((3, len(chains), draws))

    def __call__(self, at: int) -> Step:
        """Return what goes on with a chain: discards draws, then fills rows with answers."""
        chain, thin, done = self._chains[at], self._thin, 0

        def step(discard: int, out: IntArray) -> None:
            nonlocal done
            chain.go(discard * thin)
            for row in out:
                chain.go(thin)
                x, density = chain.now()
                row[:] = self._functions @ x
                self.seen[0, at, done] = density
                self.seen[1:, at, done] = self._directions @ x
                self._note(at, x)
                done += 1

        return step


def good(numbers: ChainNumbers) -> bool:
    """Return whether draws say enough: they agree, and are worth enough independent ones."""
    return numbers.r_hat <= MOST_R_HAT and min(numbers.bulk, numbers.tail) >= LEAST_ESS


def agreed(watched: Sequence[ChainNumbers]) -> bool:
    """Return whether all that moves is good, and something moves."""
    return bool(watched) and all(good(n) for n in watched)


def moving(seen: Iterable[FloatArray]) -> list[FloatArray]:
    """Return those of several variables that move, rid of rounding errors.

    A density that is added up along a chain is off by a different rounding error in each.  Equal
    states would then have ranks of their own chain, and chains that agree seem to disagree.  What
    is no number stays: its diagnostics are none either, and such chains do not agree.
    """
    found = []
    for values in seen:
        size = 1.0 + float(np.abs(values).max())
        even = np.rint(values / (_EQUAL * size)) if np.isfinite(size) else values
        if np.ptp(even) != 0.0:  # also of no numbers
            found.append(even)
    return found
