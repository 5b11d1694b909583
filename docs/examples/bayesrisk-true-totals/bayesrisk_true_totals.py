"""Round every count at random, but publish some tables as they are."""

from dataclasses import replace

from bayesrisk import MechanismSpec
from bayesrisk.mechanisms import BaseMechanism, Protected
from bayesrisk.release import RoundingSpec, TrueCounts
from bayesrisk.tables import tabulate
from bayesrisk.tables.microdata import as_microdata


class TrueTotals(BaseMechanism):
    """Round every count to a multiple of a base so that its mean is the count, but for some tables.

    Parameters
    ----------
    base : int
        Base, at least 1.
    true : sequence of str
        Names of the tables whose true counts are published.
    """

    def __init__(self, *, base, true):
        self._base, self._true = base, tuple(true)
        rounded = RoundingSpec(base, "random")  # checks the base
        parameters = {"base": base, "true": self._true}
        super().__init__(MechanismSpec("true-totals", parameters, others=rounded))

    def _protect(self, microdata, workload, rng):
        tables = tabulate(as_microdata(microdata), workload)
        exact = {key: TrueCounts() for key in tables.counts if key[1] in self._true}
        counts = {
            key: part if key in exact else self._rounded(part, rng)
            for key, part in tables.counts.items()
        }
        return Protected(replace(tables, counts=counts), replace(self.spec, tables=exact))

    def _rounded(self, counts, rng):
        rounded = counts.copy()  # zeros stay zeros: only stored counts move
        below, rest = counts.data // self._base, counts.data % self._base
        up = rng.integers(self._base, size=rest.shape) < rest
        rounded.data = (below + up) * self._base
        rounded.eliminate_zeros()
        return rounded
