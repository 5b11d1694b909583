"""People of a place divided by what is known of them, and the laws of their numbers and kinds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from bayesrisk._validation import FloatArray, IntArray
from bayesrisk.exceptions import DataError
from bayesrisk.inference.microdata.knowledge import KnownGroup
from bayesrisk.inference.microdata.prior import RecordPrior
from bayesrisk.inference.microdata.system import MicrodataSystem


@dataclass(frozen=True)
class Stratum:
    """People of one finest place whose classes have the same law, given how many they are."""

    place: int  # position of the place
    # (classes,): share, or Dirichlet parameter, of every class; 0 where it is impossible
    mass: FloatArray
    # how many they are; None where that has a law (of the others of a place alone)
    count: int | None
    known: int  # people of the place outside of the stratum
    held: int  # those of them of whom nobody else may be like, see ``log_size``
    name: str  # of the people who are known; empty for the others

    def log_size(self, most: int, prior: RecordPrior, total: float) -> FloatArray:
        r"""Return the log prior weight of 0, 1, ... ``most`` people, given what is known.

        Of u = held + r people who are not known by name, ``held`` have the classes that nobody
        else has: with shares, P(n) u! / r! s**r for the share s of all other classes; with
        Dirichlet parameters of sum A, the ratio of gamma functions that takes its place.
        ``total`` is the sum of the masses of all classes of the place.
        """
        r = np.arange(most + 1)
        u, s = r + self.held, float(self.mass.sum())
        value: FloatArray = np.zeros(r.size)
        if self.held or abs(s - total) > 1e-12 * total:  # else these terms are 0
            value += gammaln(u + 1.0) - gammaln(r + 1.0)
            if prior.concentration is None:
                value += r * np.log(s / total) if s > 0.0 else np.where(r > 0, -np.inf, 0.0)
            elif s > 0.0:
                value += gammaln(s + r) - gammaln(total + u)
            else:
                value[1:] = -np.inf
        return value + prior.log_size(r + self.known)


def strata_of(system: MicrodataSystem) -> list[list[Stratum]] | None:
    """Return the strata of every place, the others last; None where conditions overlap."""
    prior, known, n_places = system.prior, system.known, len(system.places)
    shares = system.classes.mass(prior.shares) * (prior.concentration or 1.0)
    settled = known.settled.toarray()
    plain = not settled.any() or prior.concentration is None
    found = []
    for place in range(n_places):
        mass = shares if plain else shares + settled[place] * (shares > 0.0)
        here = [g for g in known.exactly if g.place == place]
        partly = [g for g in known.partly if g.place == place]
        groups = _disjoint(here, partly, shares.size)
        if groups is None:
            return None
        people = int(known.people[place])
        found.append(_of_place(place, groups, partly, settled[place], mass, people))
    return found


def _of_place(
    place: int,
    groups: list[KnownGroup],
    partly: list[KnownGroup],
    settled: IntArray,
    mass: FloatArray,
    people: int,
) -> list[Stratum]:
    rest, strata, held = mass, [], 0
    for group in groups:
        of_them = [g for g in partly if np.isin(g.classes[0], group.classes)]
        left = group.count - int(settled[group.classes].sum()) - sum(g.count for g in of_them)
        if left < 0:
            raise DataError(
                f"known contradicts itself: {group.name} is {group.count}, and "
                f"{group.count - left} are known"
            )
        inside = np.zeros(mass.size)
        inside[group.classes] = mass[group.classes]
        rest = np.where(inside > 0.0, 0.0, rest)
        held += left
        if left:
            strata.append(Stratum(place, inside, left, 0, 0, ""))
    for group in partly:
        inside = np.zeros(mass.size)
        inside[group.classes] = group.mass
        strata.append(Stratum(place, inside, group.count, 0, 0, group.name))
    strata.append(Stratum(place, rest, None, people + held, held, ""))
    return strata


def _disjoint(
    exactly: list[KnownGroup], partly: list[KnownGroup], classes: int
) -> list[KnownGroup] | None:
    """Return the conditions, each once; None if two overlap, or known people lie across one."""
    kept: list[KnownGroup] = []
    owner = np.full(classes, -1, np.int64)
    for group in exactly:
        held = np.unique(owner[group.classes])
        if held.size == 1 and held[0] >= 0:
            other = kept[held[0]]
            if other.classes.size != group.classes.size:
                return None
            if other.count != group.count:
                raise DataError(
                    f"known contradicts itself: {group.name} is {group.count} and {other.count}"
                )
        elif np.any(held >= 0):
            return None
        else:
            owner[group.classes] = len(kept)
            kept.append(group)
    if any(np.unique(owner[group.classes]).size > 1 for group in partly):
        return None
    return kept
