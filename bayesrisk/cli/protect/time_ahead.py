"""How long a release of all records at once takes, by releases of a few of its places."""

from dataclasses import replace
from typing import Any

import numpy as np

import bayesrisk as br
from bayesrisk.interfaces import Mechanism

#: Mechanisms whose release takes long.
_LONG = ("topdown",)


def release_seconds(
    protection: Mechanism, data: "br.tables.Microdata", workload: "br.Workload", **options: Any
) -> float:
    """Return about how many seconds of a processor a release takes; 0 where it is short."""
    from bayesrisk.experiments.runs.pilot import evenly, foretold

    if protection.spec.mechanism not in _LONG:
        return 0.0
    given = data.geoids()
    units = [one for one in (data.persons, data.households) if one is not None]
    places = np.unique(np.concatenate([one.geoids for one in units])) if given is None else given

    def release(_: int, amount: float) -> float:
        chosen = places[evenly(places.size, amount)]
        few = replace(
            data,
            persons=_inside(data.persons, chosen),
            households=_inside(data.households, chosen),
            blocks=None if data.blocks is None else data.blocks[data.blocks["block"].isin(chosen)],
        )
        listed = options if data.blocks is not None else {**options, "places": "occupied"}
        protection.release(few, workload=workload, **listed)
        return float(chosen.size)

    return foretold({0: float(places.size)}, release).get(0, 0.0)


def _inside(records: "br.Records | None", places: Any) -> "br.Records | None":
    """Return the records of some places."""
    return None if records is None else records.take(np.isin(records.geoids, places))
