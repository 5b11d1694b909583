"""The chain over lists of people, for systems whose published counts are noisy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from bayesrisk._types import IntArray
from bayesrisk.inference.microdata.chains.people_model import PeopleModel, put
from bayesrisk.inference.microdata.chains.people_moves import go, stay
from bayesrisk.inference.microdata.chains.people_rows import KINDS, State

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
