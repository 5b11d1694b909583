"""Rounding and ranges of counts, and the named rules of agencies."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrisk._base import validation as check
from bayesrisk.mechanisms.base import BaseMechanism, Dial, Protected, TableMechanism
from bayesrisk.release import MechanismSpec, RangeSpec, RoundingSpec, TrueCounts
from bayesrisk.tables import Microdata, PublishedTables, Records, Workload, tabulate
from bayesrisk.tables.likelihoods import ROUNDINGS

_LARGEST = 2**31


class _OneByOne(TableMechanism):
    """Base of mechanisms that replace each count by a number that depends on it alone."""

    grain = 0
    _nothing = 0  # number that is published for a count of 0

    @abstractmethod
    def round(self, counts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Return the published numbers of counts >= 0."""

    def _protect_tables(self, tables: PublishedTables, rng: np.random.Generator) -> Protected:
        published: Any = {}
        for key, counts in tables.counts.items():
            if self._nothing:
                published[key] = self.round(counts.toarray(), rng)
                continue
            part = counts.copy()  # zeros stay zeros: only stored counts move
            if part.nnz:
                part.data = self.round(part.data, rng)
                part.eliminate_zeros()
            published[key] = part
        return Protected(replace(tables, counts=published))


class Rounding(_OneByOne):
    """Round every count independently to a multiple of a base.

    ``nearest`` takes the nearest multiple, with halves upwards. ``random`` takes the multiple below
    or above so that the mean is the count: above with probability r / b, for remainder r and base
    b. A multiple of the base, 0 included, never changes. Rounded tables need not add up.

    The likelihood is that of :class:`bayesrisk.release.RoundingSpec`, exact.

    Parameters
    ----------
    base : int
        Base, in [2, 2**31].
    method : {"nearest", "random"}, default "random"
        Choice of the multiple.

    Examples
    --------
    >>> Rounding(base=3).spec.parameters
    {'base': 3, 'method': 'random'}
    """

    dial = Dial("base", 100.0, 2.0, whole=True)

    def __init__(self, *, base: int, method: str = "random") -> None:
        self._base = check.integer(base, "base", lower=2, upper=_LARGEST)
        self._method = check.choice(method, "method", ROUNDINGS)
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


# No protection: the release that every protection is compared with.


class Identity(BaseMechanism):
    """Publish the true tables: no protection.

    Examples
    --------
    >>> Identity().spec.true_counts
    True
    """

    grain = -1

    def __init__(self) -> None:
        super().__init__(MechanismSpec("none", others=TrueCounts()))

    def _protect(
        self, microdata: Microdata | Records, workload: Workload, rng: np.random.Generator
    ) -> Protected:
        return Protected(tabulate(microdata, workload))


class _InRanges(_OneByOne):
    """Base of mechanisms that publish a number for the range of each count."""

    def __init__(self, name: str, parameters: dict[str, Any], law: RangeSpec) -> None:
        super().__init__(MechanismSpec(name, parameters, others=law))
        self._law, self._nothing = law, int(law.publish(0))

    def round(self, counts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Return the number of each count's range; this is not random."""
        return self._law.publish(counts)


class Ranges(_InRanges):
    """Publish the range of every count, independently of other counts.

    The published value is one number for each range, by default its smallest count. Nothing is
    drawn. So other tables of the same people can leave one count of a range, and a count of a short
    range is nearly published. ``bayesrisk.reconstruction.count_bounds`` finds such counts.

    The likelihood is exact: 1 for the counts of the range, 0 for others.

    Parameters
    ----------
    edges : sequence of int
        Smallest count of every range, increasing from 0.
    values : sequence of int, optional
        Published number of every range, increasing; by default ``edges``.
    step : int, optional
        Width of further ranges after the last edge, whose numbers grow by it. By default the last
        range has no upper end.

    Examples
    --------
    >>> Ranges(edges=[0, 1, 3, 6, 10, 20, 50]).spec.others.support(3)
    (array(3), array(5))
    """

    def __init__(
        self, *, edges: Sequence[int], values: Sequence[int] | None = None, step: int | None = None
    ) -> None:
        edges = check.items(edges, "edges")
        law = RangeSpec(tuple(edges), tuple(edges if values is None else values), step)
        parameters = {"edges": list(law.edges), "values": list(law.values), "step": law.step}
        super().__init__("ranges", parameters, law)


class Threshold(_InRanges):
    """Publish counts below a threshold as one range, and all others unchanged.

    A threshold alone reveals many small counts, because published totals and other tables contain
    them. ``suppression`` withholds further cells, which prevents this.

    The published number of the range is its smallest count, 1 or 0.

    Parameters
    ----------
    least : int
        Smallest count that is published unchanged, in [2, 2**31].
    zeros : {"apart", "within"}, default "apart"
        Whether zeros are published (``"apart"``), or belong to the range of small counts.

    Examples
    --------
    >>> Threshold(least=5).spec.others.support([0, 1, 5])
    (array([0, 1, 5]), array([0, 4, 5]))
    """

    dial = Dial("least", 100.0, 2.0, whole=True)

    def __init__(self, *, least: int, zeros: str = "apart") -> None:
        least = check.integer(least, "least", lower=2, upper=_LARGEST)
        check.choice(zeros, "zeros", ("apart", "within"))
        edges = (0, 1, least) if zeros == "apart" else (0, least)
        super().__init__("threshold", {"least": least, "zeros": zeros}, RangeSpec(edges, edges, 1))


# Rules of agencies by name; each is one of the mechanisms, with the rule's numbers.


def cms_11() -> Threshold:
    """Return the CMS rule: counts from 1 to 10 are not shown.

    Source: Centers for Medicare & Medicaid Services, cell size suppression policy; it also asks for
    further cells where sums would give one back, which a threshold alone does not withhold.
    """
    return Threshold(least=11)


def opensafely_midpoint_6() -> Ranges:
    """Return the OpenSAFELY rule: counts 1 to 6, 7 to 12 and so on become midpoints; 0 stays.

    Source: OpenSAFELY documentation, statistical disclosure control, midpoint 6 rounding.
    """
    return Ranges(edges=(0, 1), values=(0, 3), step=6)


def ons_10_5() -> Ranges:
    """Return the ONS rule: counts below 10 become one range, others the nearest multiple of 5.

    Source: outputs of the Office for National Statistics and NHS England from health records.
    """
    return Ranges(edges=(0, 10, 13), values=(0, 10, 15), step=5)


def nearest_5() -> Rounding:
    """Return the rule that rounds to the nearest multiple of 5, halves upwards.

    Source: usual for counts of pupils and patients in statistics of England.
    """
    return Rounding(base=5, method="nearest")
