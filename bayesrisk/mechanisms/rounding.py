"""Rounding of every count to a multiple of a base."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._random import generator
from bayesrisk.mechanisms.tabulation import replace_counts, true_tables
from bayesrisk.release import MechanismSpec, Release
from bayesrisk.tables import Microdata, Records, Workload

__all__ = ["Rounding"]

_METHODS = ("nearest", "random")


class Rounding:
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

    Raises
    ------
    ArgumentError
        If the base is out of range or the method unknown.

    Notes
    -----
    The likelihood is :func:`bayesrisk.rounding_probability`, exact; the spec's
    ``count_likelihood`` evaluates it.

    Examples
    --------
    >>> Rounding(base=3, method="random").spec.parameters
    {'base': 3, 'method': 'random'}
    """

    def __init__(self, *, base: int, method: str) -> None:
        self._base = check.integer(base, "base", lower=2, upper=2**31)
        self._method = check.choice(method, "method", _METHODS)
        self._spec = MechanismSpec("rounding", {"base": self._base, "method": self._method})

    @property
    def spec(self) -> MechanismSpec:
        """What the mechanism does."""
        return self._spec

    def round(self, counts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Return rounded counts.

        Parameters
        ----------
        counts : ndarray of int64
            Counts, >= 0.
        rng : Generator
            Drawn from by ``random`` only.

        Returns
        -------
        ndarray of int64
            Multiples of the base.
        """
        base = self._base
        if self._method == "nearest":
            return (2 * counts + base) // (2 * base) * base
        below, rest = counts // base, counts % base
        return (below + (rng.integers(base, size=counts.shape) < rest)) * base

    def release(
        self,
        microdata: Microdata | Records,
        *,
        workload: Workload,
        rng: np.random.Generator | int | None = None,
    ) -> Release:
        """Return the tables, every count rounded.

        Parameters
        ----------
        microdata : Microdata or Records
            The records.
        workload : Workload
            Tables to publish.
        rng : Generator or int, optional
            By default fresh entropy of the operating system, kept nowhere. A generator or a seed is
            for simulation, and the release says so (``simulation``): a seed can be guessed.

        Returns
        -------
        Release
            Rounded tables.

        Raises
        ------
        ArgumentError
            If ``rng`` is not a seed or a generator, or the records lack what a table needs.
        """
        random = generator(rng, optional=True)
        tables = true_tables(microdata, workload)
        rounded: Any = {}
        for key, counts in tables.counts.items():
            part = counts.copy()  # zeros stay zeros: only stored counts move
            part.data = self.round(part.data, random)
            part.eliminate_zeros()
            rounded[key] = part
        protected = replace_counts(tables, rounded)
        return Release(self._spec, protected, simulation=rng is not None)
