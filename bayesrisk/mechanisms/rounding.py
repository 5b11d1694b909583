"""Rounding of every count to a multiple of a base."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk.mechanisms.base import (
    BaseMechanism,
    Dial,
    Protected,
    TableMechanism,
)
from bayesrisk.release import MechanismSpec, RoundingSpec, TrueCounts
from bayesrisk.tables import Microdata, PublishedTables, Records, Workload, tabulate

_METHODS = ("nearest", "random")


class Rounding(TableMechanism):
    """Round every count, each by itself, to a multiple of a base.

    ``nearest`` takes the nearest multiple, halves upwards.  ``random`` takes the multiple below
    or above so that the mean is the count: with remainder r and base b, above with probability
    r / b.  A multiple of the base, 0 included, never changes.  Rounded tables need not add up.

    Parameters
    ----------
    base : int
        Base, in [2, 2**31].
    method : {"nearest", "random"}
        Which multiple is taken.

    Notes
    -----
    The likelihood is :func:`bayesrisk.rounding_probability`, exact; the spec's
    ``count_likelihood`` evaluates it.

    Examples
    --------
    >>> Rounding(base=3, method="random").spec.parameters
    {'base': 3, 'method': 'random'}
    """

    dial = Dial("base", 100.0, 2.0, whole=True)

    def __init__(self, *, base: int, method: str) -> None:
        self._base = check.integer(base, "base", lower=2, upper=2**31)
        self._method = check.choice(method, "method", _METHODS)
        parameters = {"base": self._base, "method": self._method}
        law = RoundingSpec(self._base, self._method)
        super().__init__(MechanismSpec("rounding", parameters, others=law))

    def round(self, counts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Return counts >= 0 as multiples of the base; only ``random`` draws from ``rng``."""
        base = self._base
        if self._method == "nearest":
            return (2 * counts + base) // (2 * base) * base
        below, rest = counts // base, counts % base
        return (below + (rng.integers(base, size=counts.shape) < rest)) * base

    def acts_within(self, workload: Workload) -> str | None:
        """Return the coarsest published level: every count is rounded by itself."""
        return check.instance(workload, Workload, "workload").levels[0]

    def _protect_tables(self, tables: PublishedTables, rng: np.random.Generator) -> Protected:
        rounded: Any = {}
        for key, counts in tables.counts.items():
            part = counts.copy()  # zeros stay zeros: only stored counts move
            part.data = self.round(part.data, rng)
            part.eliminate_zeros()
            rounded[key] = part
        return Protected(replace(tables, counts=rounded))


# No protection: the release that every protection is compared with.


class Identity(BaseMechanism):
    """Publish the tables as they are, whatever the source of randomness.

    Examples
    --------
    >>> Identity().spec.true_counts
    True
    """

    def __init__(self) -> None:
        super().__init__(MechanismSpec("identity", others=TrueCounts()))

    def acts_within(self, workload: Workload) -> str | None:
        """Return the finest level: all tables are sums over its places."""
        return check.instance(workload, Workload, "workload").levels[-1]

    def _protect(
        self, microdata: Microdata | Records, workload: Workload, rng: np.random.Generator
    ) -> Protected:
        return Protected(tabulate(microdata, workload))
