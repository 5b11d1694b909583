"""No protection: the release that every protection is compared with."""

import numpy as np

from bayesrisk import _validation as check
from bayesrisk.mechanisms.base import BaseMechanism, Protected
from bayesrisk.mechanisms.tabulation import true_tables
from bayesrisk.release import MechanismSpec, TrueCounts
from bayesrisk.tables import Microdata, Records, Workload


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
        return Protected(true_tables(microdata, workload))
