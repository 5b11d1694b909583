"""Publish the tables of a random part of the records."""

from bayesrisk import ArgumentError, MechanismSpec
from bayesrisk.accounting.budget import exact_number
from bayesrisk.mechanisms import BaseMechanism, Protected
from bayesrisk.tables import tabulate
from bayesrisk.tables.microdata import as_microdata


class Subsampling(BaseMechanism):
    """Keep every record with the same probability, one by one.

    A released count is binomial, given the true one: P(y | x) = C(x, y) f**y (1 - f)**(x - y).

    Parameters
    ----------
    fraction : number
        Probability f that a record is kept, in (0, 1].
    """

    def __init__(self, *, fraction):
        share = exact_number(fraction, "fraction")
        if not 0 < share <= 1:
            raise ArgumentError(f"fraction must be in (0, 1], got {fraction!r}")
        self._share = float(share)
        super().__init__(MechanismSpec("subsampling", {"fraction": share}))

    def _protect(self, microdata, workload, rng):
        data = as_microdata(microdata)
        records = data.for_schema(workload.schema)
        kept = rng.random(len(records)) < self._share
        # All places, so that one without a kept record is a published zero.
        return Protected(tabulate(records.take(kept), workload, geoids=data.geoids()))
