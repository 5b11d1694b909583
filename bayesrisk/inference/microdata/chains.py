"""Draws of chains over the records of a place, run until the chains agree.

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
from bayesrisk.inference.microdata.people_model import KINDS, ChainState, PeopleModel, put
from bayesrisk.inference.microdata.people_moves import sweep
from bayesrisk.inference.sampling.chains import (
    ChainNumbers,
    Step,
    chain_numbers,
    room_for,
    run_chains,
)

#: What draws must have for an answer.
LEAST_ESS, MOST_R_HAT = 400.0, 1.01
_EQUAL = 1e-9  # relative: what differs by less is equal
_EVERYBODY = np.zeros(0, np.int64)  # no slots in particular
_NO_COUNTS = np.empty((1, 0, 0), np.int64)  # which nobody asks for
_STATES = 2**20  # counts of the states that are held at a time
_COUNTS = 8  # that are looked at in the time of a proposal


@dataclass
class PeopleChain:
    """A chain over lists of people, with the number of proposals of a sweep.

    That is about one proposal for each person, or for every eighth count where these are more: to
    look at a state takes longer the more counts it has.
    """

    model: PeopleModel
    state: ChainState
    sweep_size: int
    rng: np.random.Generator

    @classmethod
    def begin(
        cls, model: PeopleModel, rng: np.random.Generator, fewest: int, share: float = 0.0
    ) -> Self:
        """Return a chain at a state of the prior, with at least ``fewest`` proposals a sweep.

        Chains of different ``share``, from 0 up to 1, start far apart (``PeopleModel.sizes``).
        """
        state = _first_state(model, rng, share)
        sweep_size = max(fewest, int(model.likely.sum()), state.x.size // _COUNTS)
        return cls(model, state, sweep_size, rng)

    def advance(self, sweeps: int) -> None:
        """Go on for so many sweeps."""
        self._sweep(sweeps * self.sweep_size, _EVERYBODY, _NO_COUNTS, np.empty(1))

    def advance_parts(self, parts: IntArray, rounds: int) -> None:
        """Change people of some parts only: so many proposals for each of their slots."""
        first = self.model.arrays.first
        slots = np.concatenate([np.arange(first[p], first[p + 1]) for p in parts])
        if slots.size:
            self._sweep(rounds * slots.size, slots, _NO_COUNTS, np.empty(1))

    def snapshot(self) -> tuple[IntArray, float]:
        """Return the counts of all classes and the log likelihood of the state."""
        return self.state.x.ravel(), float(self.state.density[0])

    def record(self, draws: int, sweeps: int) -> tuple[IntArray, FloatArray]:
        """Return the counts of all classes and the log likelihood after every so many sweeps."""
        counts, density = np.empty((draws, *self.state.x.shape), np.int64), np.empty(draws)
        self._sweep(sweeps * self.sweep_size, _EVERYBODY, counts, density)
        return counts.reshape(draws, -1), density

    def _sweep(self, each: int, slots: IntArray, counts: IntArray, density: FloatArray) -> None:
        sweep(self.rng, self.model.arrays, self.state, each, slots, counts, density)


def _first_state(model: PeopleModel, rng: np.random.Generator, share: float) -> ChainState:
    """Return a state drawn from the prior, with numbers of people as ``PeopleModel.sizes``."""
    arrays, sizes = model.arrays, model.sizes(share)
    occupant = np.zeros(int(arrays.first[-1]), np.int64)
    x = np.zeros((len(model.strata), model.classes), np.int64)
    spot = model.spot.copy()
    for part, n in enumerate(sizes):
        if n:
            mass = arrays.mass[arrays.law[part]]
            drawn = rng.choice(model.classes, size=int(n), p=mass / mass.sum())
            occupant[arrays.first[part] : arrays.first[part] + n] = drawn
            x[part] = np.bincount(drawn, minlength=model.classes)
    put(arrays, spot, x)
    density = np.array([float(arrays.table[spot].sum())])
    tally = np.zeros((len(KINDS), 2), np.int64)
    return ChainState(occupant, sizes, x, spot, tally, density, np.zeros(model.classes))


# Runs of any chains, kept draws, and whether the chains agree.


class Chain(Protocol):
    """A chain of states."""

    def advance(self, sweeps: int) -> None:
        """Go on for so many sweeps."""

    def record(self, draws: int, sweeps: int) -> tuple[IntArray, FloatArray]:
        """Return the counts and the log density after every so many sweeps."""


#: Is called with the number of the chain and the counts of the states that are kept, a row each.
Observer = Callable[[int, IntArray], None]


def no_observer() -> Observer:
    """Return an observer that does nothing."""
    return lambda chain, x: None


@dataclass(frozen=True)
class Draws:
    """Kept draws of several chains, and diagnostics of the chains."""

    counts: IntArray  # (chains, draws, functions): linear functions of the states
    # of the log density and of two random projections of the state, where they move
    watched: list[ChainNumbers]
    thin: int  # sweeps between two draws
    # by how many people a number may differ from that of all draws, if these are equal
    leap: int = 1

    @property
    def agreed(self) -> bool:
        """True if the chains agree in their watched numbers; False where nothing moved."""
        return agreed(self.watched)


def draw(
    chains: Sequence[Chain],
    functions: sp.csr_array,
    draws: int,
    *,
    thin: int,
    doublings: int,
    enough: Callable[[Draws], bool] = lambda _: True,
    observer: Callable[[], Observer] = no_observer,
    together: bool = False,
) -> Draws:
    """Return draws of chains that agree, or the last ones.

    An observer sees many states ``together``, or each while the chain is in it.
    """
    directions = np.random.default_rng(0).normal(size=(2, functions.shape[1]))
    for again in range(doublings + 1):
        counts = room_for(draws, len(chains), functions.shape[0])
        seen = np.zeros((3, len(chains), draws))  # log density and projections
        observe = observer()
        room = _STATES // max(functions.shape[1], 1) if together or observer is no_observer else 1
        begin = _steps(chains, functions, directions, thin << again, seen, observe, max(room, 1))
        run_chains(begin, counts, 0 if again else draws, None)
        found = Draws(counts, [chain_numbers(v) for v in moving(seen)], thin << again)
        if found.agreed and enough(found):
            break
    return found


def _steps(
    chains: Sequence[Chain],
    functions: sp.csr_array,
    directions: FloatArray,
    thin: int,
    seen: FloatArray,
    observe: Observer,
    room: int,
) -> Callable[[int], Step]:
    """Return the maker of a chain's step, which fills rows with functions of its states."""

    def begin(number: int) -> Step:
        chain, done = chains[number], 0

        def step(discard: int, out: IntArray) -> None:
            nonlocal done
            chain.advance(discard * thin)
            for start in range(0, len(out), room):
                x, density = chain.record(min(room, len(out) - start), thin)
                end = done + len(x)
                out[start : start + len(x)] = (functions @ x.T).T
                seen[0, number, done:end] = density
                # Row by row: a product of matrices may round otherwise in pieces of other sizes
                seen[1:, number, done:end] = [(x * d).sum(axis=1) for d in directions]
                observe(number, x)
                done = end

        return step

    return begin


def agreed(watched: Sequence[ChainNumbers]) -> bool:
    """Return whether something moves, and all of that agrees and is worth enough draws."""
    return bool(watched) and all(
        n.r_hat <= MOST_R_HAT and min(n.bulk, n.tail) >= LEAST_ESS for n in watched
    )


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
