"""Facts about the whole population, for audits of one part of a very large population."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesrisk._base.validation import IntArray
from bayesrisk.inference.microdata.prior import fit_concentration

_FIT_PLACES = 2000
#: Streams of random numbers, apart from each other.
MECHANISM, CHAINS, INSIDERS, _TARGETS, _FIT = range(5)


@dataclass(frozen=True, eq=False)
class Surroundings:
    """The population that an audited part belongs to."""

    code: str  # of the part
    first_row: int  # records of all parts before it
    first_place: int  # places of all parts before it
    composition: IntArray  # Records of all parts in each cell of the schema
    largest: int  # Records of the largest place of all
    concentration: float  # Dirichlet concentration: pseudo-records shared by a place


def audit_rng(seed: int, *key: int) -> np.random.Generator:
    """Return a separate random stream for a seed and key."""
    return np.random.default_rng(np.random.SeedSequence([seed, *key]))


def drawn_targets(seed: int, everybody: int, number: int | None) -> IntArray:
    """Return the rows of targets, drawn without replacement, or all rows for None."""
    if number is None or number >= everybody:
        return np.arange(everybody, dtype=np.int64)
    rows = audit_rng(seed, _TARGETS).choice(everybody, number, replace=False)
    return np.sort(rows).astype(np.int64)


def sampled_places(seed: int, places: int) -> IntArray:
    """Return the places to which a concentration is fitted."""
    return audit_rng(seed, _FIT).permutation(places)[:_FIT_PLACES].astype(np.int64)


def fit_place_concentration(counts: IntArray) -> float:
    """Return the Dirichlet concentration of a place's people, from counts (places, values)."""
    return fit_concentration(counts, counts.sum(axis=0) / counts.sum())
