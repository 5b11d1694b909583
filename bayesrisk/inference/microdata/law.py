"""The law of the records of a place itself: means, draws, and what one record less would change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from bayesrisk._random import Seed
from bayesrisk._types import FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.microdata._exact import TooManyPointsError, weigh
from bayesrisk.inference.microdata._presolve import SmallSystem, presolve
from bayesrisk.inference.microdata.chains.lattice import LatticeChains
from bayesrisk.inference.microdata.chains.people import PeopleChain
from bayesrisk.inference.microdata.chains.people_model import people_model, suits
from bayesrisk.inference.microdata.chains.running import Chain, draw
from bayesrisk.inference.microdata.system import MicrodataSystem
from bayesrisk.inference.sampling.chains import spawn

_FEWEST = 500  # proposals between draws: to come back to Python costs about so many
_MOST_DOUBLINGS = 5
_POINTS = 300_000
_CERTAIN = 1.0 - 1e-9


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
        Draws kept of each chain, after as many that are discarded.  While the chains do not agree,
        they go on for as long again, up to five times: as many draws are kept, further apart.
    max_points : int
        Most points that an exact law may have.

    Raises
    ------
    DataError
        If the prior forbids what was released, or the tables contradict each other.
    """
    people = suits(system)
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
        of = people_model(system)
        begun: Sequence[Chain] = [
            PeopleChain.begin(of, own, _FEWEST, i / chains) for i, own in enumerate(generators[:-1])
        ]
        shares = system.classes.mass(system.prior.shares)
        mass = np.tile(shares * (system.prior.concentration or 1.0), len(system.places))
        group, weight = np.arange(system.size, dtype=np.int64), np.ones(system.size)
    else:
        begun = LatticeChains(small, chains, generators[-1]).begin(generators[:-1])
        group, weight, mass = small.group, small.weight, small.mass
    identity = sp.csr_array(sp.eye_array(mass.size, dtype=np.int64))
    drawn = draw(begun, identity, draws, thin=1, doublings=_MOST_DOUBLINGS)
    mean, engine = drawn.counts.mean(axis=(0, 1)), "people" if people else "lattice"
    return RecordLaw(group, weight, mass, mean, drawn.counts, engine, drawn.agreed)


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
