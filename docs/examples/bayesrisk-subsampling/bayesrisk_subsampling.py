"""Publish the tables of a random part of the records."""

import numpy as np

from bayesrisk import ArgumentError, MechanismSpec, Release
from bayesrisk.accounting import exact_number
from bayesrisk.tables import as_microdata, tabulate


class Subsampling:
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
        self.spec = MechanismSpec("subsampling", {"fraction": share})

    def release(self, microdata, *, workload, rng=None):
        """Return the tables of the records that are kept."""
        data = as_microdata(microdata)
        records = data.for_schema(workload.schema)
        kept = np.random.default_rng(rng).random(len(records)) < self._share
        tables = tabulate(records.take(kept), workload, geoids=_places(data, records))
        return Release(self.spec, tables, simulation=rng is not None)


def _places(data, records):
    """Return all places, so that one without a kept record is a published zero."""
    return records.places()[0] if data.geoids() is None else data.geoids()
