"""The law of the records of a place itself: means, draws, and what one record less would change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from bayesrisk._random import Seed
from bayesrisk._types import FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.microdata import _people, _people_kernels
from bayesrisk.inference.microdata._exact import TooManyPointsError, weigh
from bayesrisk.inference.microdata._lattice import LatticeChain
from bayesrisk.inference.microdata._presolve import SmallSystem, presolve
from bayesrisk.inference.microdata._records import moving
from bayesrisk.inference.microdata.system import MicrodataSystem
from bayesrisk.inference.sampling.arviz_io import chain_numbers
from bayesrisk.inference.sampling.chains import room_for, spawn

__all__ = ["RecordLaw", "record_law"]

_FEWEST = 500  # proposals between draws: to come back to Python costs about so many
_MOST_DOUBLINGS = 5
_ESS, _RHAT = 400.0, 1.01
_POINTS = 300_000
_CERTAIN = 1.0 - 1e-9

Step = Callable[[IntArray, FloatArray], None]


@dataclass(frozen=True)
class RecordLaw:
    """Means, and draws where there is no exact law, of groups of unknowns.

    A group is a set of unknowns that no row tells apart; inside it records are exchangeable.

    Attributes
    ----------
    group, weight : ndarray
        For every unknown its group (-1: there are none for certain) and its share of the group.
    mass : ndarray of float
        Share, or Dirichlet parameter, of every group.
    mean : ndarray of float
        Mean number of records of every group.
    draws : ndarray of int64, shape (chains, draws, groups), or None
        Draws of a chain; None where the law is exact, and the number of records certain.
    engine : str
        ``exact``, ``people`` or ``lattice``.
    decided : bool
        Whether chains agree: rank-normalised R-hat at most 1.01 and bulk and tail effective sizes
        of at least 400, of the log density and of two random projections of the state.
    """

    group: IntArray
    weight: FloatArray
    mass: FloatArray
    mean: FloatArray
    draws: IntArray | None
    engine: str
    decided: bool = True


def record_law(
    system: MicrodataSystem,
    *,
    rng: Seed | None = None,
    draws: int = 250,
    chains: int = 4,
    max_points: int = _POINTS,
) -> RecordLaw:
    """Return the law of the records of a system: exact where it can be, else by chains.

    An exact law has means alone, and so is taken only where the number of records is certain.

    Parameters
    ----------
    system : MicrodataSystem
        What is unknown and what is published.
    rng : Generator, int or other seed, optional
        For the chains.
    draws, chains : int
        Draws kept of each chain at first: twice as many are taken, up to five times, while the
        chains do not agree.
    max_points : int
        Most points that an exact law may have.

    Raises
    ------
    ArgumentError
        If there must be a chain and ``rng`` is not given.
    DataError
        If the prior forbids what was released, or the tables contradict each other.
    """
    people = _people.suits(system)
    if not people or _one_record(system):
        one = np.ones((1, system.classes.size), np.int64)
        places = sp.eye_array(len(system.places), dtype=np.int64)
        small, numbers = presolve(system, sp.csr_array(sp.kron(places, one)))
        found = _exact(small, numbers, max_points)
        if found is not None:
            return found
    if rng is None:
        raise ArgumentError("rng must be given: this place needs a chain")
    generators, _ = spawn(rng, chains + 1)
    if people:
        shares = system.classes.mass(system.prior.shares)
        mass = np.tile(shares * (system.prior.concentration or 1.0), len(system.places))
        steps = _people_steps(system, generators[:-1])
        everything = np.arange(system.size, dtype=np.int64)
        return _sampled(steps, draws, (everything, np.ones(system.size), mass), "people")
    of = LatticeChain(small, chains, generators[-1])
    steps = [_lattice_step(of, chain, own) for chain, own in enumerate(generators[:-1])]
    return _sampled(steps, draws, (small.group, small.weight, small.mass), "lattice")


def _one_record(system: MicrodataSystem) -> bool:
    size = system.prior.size
    return len(system.places) == 1 and size is not None and bool(np.all(size[2:] == 0.0))


def _exact(small: SmallSystem, numbers: sp.csr_array, max_points: int) -> RecordLaw | None:
    """Return the exact law; None if it is too large, or leaves open how many records there are."""
    try:
        law = weigh(small, numbers, max_points)
    except TooManyPointsError:
        return None
    if any(p.max() < _CERTAIN for p in law.answers):
        return None
    mean = np.array([np.arange(p.size) @ p for p in law.laws])
    return RecordLaw(small.group, small.weight, small.mass, mean, None, "exact")


def _people_steps(system: MicrodataSystem, generators: Sequence[np.random.Generator]) -> list[Step]:
    of = _people.people_model(system)
    thin = max(_FEWEST, int(of.likely.sum()))

    def chain(own: np.random.Generator) -> Step:
        state = _people.first_state(of, own)

        def step(out: IntArray, density: FloatArray) -> None:
            for i, row in enumerate(out):
                _people_kernels.go(own, of.model, state, thin)
                row[:] = state.x.ravel()
                density[i] = float(state.density[0])

        return step

    return [chain(own) for own in generators]


def _lattice_step(of: LatticeChain, chain: int, own: np.random.Generator) -> Step:
    identity = sp.csr_array(sp.eye_array(of.starts[0].size, dtype=np.int64))
    log = _Densities()
    go = of.step(chain, own, identity, log)

    def step(out: IntArray, density: FloatArray) -> None:
        log.seen.clear()
        go(0, out)
        density[:] = log.seen

    return step


class _Densities:
    """The log densities of the states that a chain went through."""

    def __init__(self) -> None:
        self.seen: list[float] = []

    def note(self, chain: int, x: IntArray, density: float) -> None:
        """Note a state."""
        self.seen.append(density)


def _sampled(
    steps: Sequence[Step],
    draws: int,
    groups: tuple[IntArray, FloatArray, FloatArray],
    engine: str,
) -> RecordLaw:
    """Return draws of chains, which go on until they agree or the patience is at its end."""
    group, weight, mass = groups
    chains, size = len(steps), mass.size
    directions = np.random.default_rng(0).normal(size=(size, 2))
    counts, density = np.empty((chains, 0, size), np.int64), np.empty((chains, 0))
    wanted = draws
    for step in range(_MOST_DOUBLINGS + 1):
        new = 2 * draws if step == 0 else wanted - counts.shape[1]
        more, seen = room_for(new, chains, size), np.empty((chains, new))
        for chain, go in enumerate(steps):
            go(more[chain], seen[chain])
        if step == 0:  # as many draws as are kept at first are discarded
            more, seen = more[:, draws:], seen[:, draws:]
        counts = np.concatenate([counts, more], axis=1)
        density = np.concatenate([density, seen], axis=1)
        decided = _agree([density, *np.moveaxis(counts @ directions, -1, 0)])
        if decided:
            break
        wanted *= 2
    mean = counts.mean(axis=(0, 1))
    return RecordLaw(group, weight, mass, mean, counts, engine, decided)


def _agree(seen: Sequence[FloatArray]) -> bool:
    """Return whether chains agree about all that moves."""
    found = [chain_numbers(v) for v in moving(seen)]
    return bool(found) and all(n.r_hat <= _RHAT and min(n.bulk, n.tail) >= _ESS for n in found)
