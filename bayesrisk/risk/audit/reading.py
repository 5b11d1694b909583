"""Readings of a release: by its likelihood, or by a working model if it has none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from bayesrisk._base.display import displayed
from bayesrisk.exceptions import ArgumentError, quote
from bayesrisk.release import Likelihood, MechanismSpec, NoiseSpec, Release, TrueCounts

#: Names of all readings: of one question, so that answers of one can be held against another's.
READINGS = ("likelihood", "as-true", "swap-aware", "working-error")

_MOVED = {"rate", "swap_key"}  # parameters of releases whose records change places
_LEAST = Fraction(1, 10**4)  # variance of a table without an error that anybody saw

Key = tuple[str, str]


@displayed
@dataclass(frozen=True)
class Reading:
    """A release, and the model with which an adversary reads it."""

    # ``likelihood``: as its spec says; ``as-true``: as if nothing had been protected; ``swap-
    # aware``: as true, but the target's record is counted elsewhere with the public probability;
    # ``working-error``: true counts with independent errors of the public variance
    name: str
    release: Release  # With a likelihood in closed form for every table
    moved: float = 0.0  # Probability that a record of a place is counted elsewhere


def readings(release: Release, errors: Mapping[Key, float]) -> list[Reading]:
    """Return an adversary's possible readings of a release.

    A release is read by its likelihood, if every table has one for each count given its true count
    alone. If records changed places there are two readings: all counts are taken as true, or the
    exchange is known. Otherwise the one reading is a working model of the error, from the mean
    squared error of every table that an agency publishes.
    """
    laws = release.spec.tables
    unknown = [key for key, law in laws.items() if not law.closed]
    if not unknown:
        return [Reading("likelihood", release)]
    parameters = release.spec.parameters
    if set(parameters) >= _MOVED:  # the stated rate: the one that was reached is not published
        naive = _under_laws(release, {key: TrueCounts() for key in unknown})
        moved = float(Fraction(parameters["rate"]))
        return [Reading("as-true", naive), Reading("swap-aware", naive, moved)]
    if errors and set(unknown).isdisjoint(errors):
        other = unknown[0]
        raise ArgumentError(
            "protection",
            "must not compose releases without a likelihood in closed form",
            shown=f"table {quote(other[1])}: audit that release by itself",
        )
    working: dict[Key, Likelihood] = {}
    for key in unknown:
        variance = Fraction(float(errors.get(key, 0.0))).limit_denominator(10**6)
        working[key] = NoiseSpec("discrete-gaussian", max(variance, _LEAST))
    return [Reading("working-error", _under_laws(release, working))]


def _under_laws(release: Release, laws: Mapping[Key, Likelihood]) -> Release:
    spec = MechanismSpec(
        release.spec.mechanism, release.spec.parameters, {**release.spec.tables, **laws}
    )
    return replace(release, spec=spec)
