"""How chains are run: until they agree, or their time is over.

Chains that do not agree yet go on for as long again as they have gone; all that they drew before
is then warm-up.  So at any time half of what a chain did is kept, at as many draws as at first,
further apart: longer runs need no more memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import scipy.sparse as sp

from bayesrisk._validation import FloatArray, IntArray
from bayesrisk.inference.microdata.people_model import KINDS, PeopleModel, State, put
from bayesrisk.inference.microdata.people_moves import go, stay
from bayesrisk.inference.sampling.chains import (
    ChainNumbers,
    Step,
    chain_numbers,
    room_for,
    run_chains,
)

# -----------------------------------------------------------------------------
# The chain over lists of people, for systems whose published counts are noisy.


_COUNTS = 8  # that are looked at in the time of a proposal


def first_state(of: PeopleModel, rng: np.random.Generator, share: float = 0.0) -> State:
    """Return a state drawn from the prior, with numbers of people as ``PeopleModel.sizes``."""
    model = of.model
    who = np.zeros(int(model.first[-1]), np.int64)
    count = of.sizes(share)
    x = np.zeros((len(of.strata), of.classes), np.int64)
    spot = of.spot.copy()
    for part, n in enumerate(count):
        if n:
            mass = model.mass[model.law[part]]
            drawn = rng.choice(of.classes, size=int(n), p=mass / mass.sum())
            who[model.first[part] : model.first[part] + n] = drawn
            x[part] = np.bincount(drawn, minlength=of.classes)
    put(model, spot, x)
    density = np.array([float(model.table[spot].sum())])
    tally = np.zeros((len(KINDS), 2), np.int64)
    return State(who, count, x, spot, tally, density, np.zeros(of.classes))


@dataclass
class PeopleChain:
    """A chain over lists of people.

    A sweep is about one proposal for each person, or for every eighth count where these are more:
    to look at a state takes longer the more counts it has.

    Attributes
    ----------
    of : PeopleModel
        What does not change.
    state : State
        What does.
    sweep : int
        Proposals of a sweep.
    rng : Generator
        Of this chain.
    """

    of: PeopleModel
    state: State
    sweep: int
    rng: np.random.Generator

    @classmethod
    def begin(
        cls, of: PeopleModel, rng: np.random.Generator, fewest: int, share: float = 0.0
    ) -> Self:
        """Return a chain at a state of the prior, with at least ``fewest`` proposals a sweep.

        Chains of different ``share``, from 0 up to 1, start far apart (``PeopleModel.sizes``).
        """
        state = first_state(of, rng, share)
        sweep = max(fewest, int(of.likely.sum()), state.x.size // _COUNTS)
        return cls(of, state, sweep, rng)

    def go(self, sweeps: int) -> None:
        """Go on for so many sweeps."""
        go(self.rng, self.of.model, self.state, sweeps * self.sweep)

    def stay(self, parts: IntArray, rounds: int) -> None:
        """Change people of some parts only: so many proposals for each of their slots."""
        first = self.of.model.first
        slots = np.concatenate([np.arange(first[p], first[p + 1]) for p in parts])
        if slots.size:
            stay(self.rng, self.of.model, self.state, slots, rounds * slots.size)

    def now(self) -> tuple[IntArray, float]:
        """Return the counts of all classes and the log likelihood of the state."""
        return self.state.x.ravel(), float(self.state.density[0])


# -----------------------------------------------------------------------------


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
