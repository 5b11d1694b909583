"""No protection: the release that every protection is compared with."""

import numpy as np

from bayesrisk._random import generator
from bayesrisk.mechanisms.tabulation import true_tables
from bayesrisk.release import MechanismSpec, Release
from bayesrisk.tables import Microdata, Records, Workload

__all__ = ["Identity"]


class Identity:
    """Publish the tables as they are.

    Examples
    --------
    >>> Identity().spec
    MechanismSpec(mechanism='identity', parameters={}, noise={}, invariants=())
    """

    def __init__(self) -> None:
        self._spec = MechanismSpec("identity")

    @property
    def spec(self) -> MechanismSpec:
        """What the mechanism does: nothing."""
        return self._spec

    def release(
        self,
        microdata: Microdata | Records,
        *,
        workload: Workload,
        rng: np.random.Generator | int | None = None,
    ) -> Release:
        """Return the true tables.

        Parameters
        ----------
        microdata : Microdata or Records
            The records.
        workload : Workload
            Tables to publish.
        rng : Generator or int, optional
            Not drawn from; every mechanism takes one.

        Returns
        -------
        Release
            Tables, all of them invariant.

        Raises
        ------
        ArgumentError
            If ``rng`` is not a seed or a generator, or the records lack what a table needs.
        """
        generator(rng, optional=True)
        tables = true_tables(microdata, workload)
        spec = MechanismSpec("identity", invariants=tuple(tables.counts))
        return Release(spec, tables, simulation=rng is not None)
