"""How an adversary reads a release: by its likelihood, or by a working model where it has none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from bayesrisk._show import displayed
from bayesrisk.release import Likelihood, MechanismSpec, NoiseSpec, Release, TrueCounts

#: Names of all readings: of one question, so that answers of one can be held against another's.
READINGS = ("likelihood", "as-true", "swap-aware", "working-error")

_MOVED = "realised_rate"  # diagnostic of releases whose records change places
_LEAST = Fraction(1, 10**4)  # variance of a table without an error that anybody saw

Key = tuple[str, str]


@displayed
@dataclass(frozen=True)
class Reading:
    """A release as an adversary takes it.

    Attributes
    ----------
    name : str
        ``likelihood``: as its spec says; ``as-true``: as if nothing had been protected;
        ``swap-aware``: as true, but the target's household is from elsewhere with the public
        probability; ``working-error``: true counts with independent errors of the public variance.
    release : Release
        With a likelihood in closed form for every table.
    moved : float
        Probability that a record of a place is from elsewhere.
    """

    name: str
    release: Release
    moved: float = 0.0


def is_additive(spec: MechanismSpec) -> bool:
    """Return whether every released count is the true one plus what does not depend on records."""
    return all(isinstance(law, (TrueCounts, NoiseSpec)) for law in spec.tables.values())


def readings(release: Release, errors: Mapping[Key, float]) -> list[Reading]:
    """Return how a release is read.

    Parameters
    ----------
    release : Release
        What was published.
    errors : mapping of (level, table) to float
        Mean squared error of every table: what an agency publishes of its accuracy.

    Returns
    -------
    list of Reading
        One by the likelihood, where every table has one.  Else, where records changed places: one
        that takes all counts as true, and one that knows of the exchange; otherwise one with a
        working model of the error.
    """
    laws = release.spec.tables
    unknown = [key for key, law in laws.items() if not is_readable(law)]
    if not unknown:
        return [Reading("likelihood", release)]
    moved = release.diagnostics.get(_MOVED)
    if moved is not None:
        naive = _with(release, {key: TrueCounts() for key in unknown})
        return [Reading("as-true", naive), Reading("swap-aware", naive, float(moved))]
    working: dict[Key, Likelihood] = {}
    for key in unknown:
        variance = Fraction(float(errors.get(key, 0.0))).limit_denominator(10**6)
        working[key] = NoiseSpec("discrete-gaussian", max(variance, _LEAST))
    return [Reading("working-error", _with(release, working))]


def is_readable(law: Likelihood) -> bool:
    """Return whether a published count has a likelihood given the true one alone."""
    return law.exact or law.probability(0, 0) is not None


def _with(release: Release, laws: Mapping[Key, Likelihood]) -> Release:
    spec = MechanismSpec(
        release.spec.mechanism, release.spec.parameters, {**release.spec.tables, **laws}
    )
    return replace(release, spec=spec)
