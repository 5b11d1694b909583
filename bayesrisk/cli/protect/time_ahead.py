"""How long a release of all records at once takes, by releases of a few of its places."""

from dataclasses import replace
from typing import Any

import numpy as np

import bayesrisk as br
from bayesrisk._base.plugins import is_own
from bayesrisk.interfaces import Mechanism


def release_seconds(
    protection: Mechanism, data: "br.tables.Microdata", workload: "br.Workload", **options: Any
) -> float:
    """Return about how many seconds of a processor a release takes; 0 where it is short."""
    from bayesrisk.experiments.runs.engine import evenly, forecast

    # Those that estimate counts from noisy measurements take long.
    if not hasattr(protection, "measurement_noise") or not is_own(type(protection)):
        return 0.0
    listed_places = data.geoids()
    units = [one for one in (data.persons, data.households) if one is not None]
    places = (
        np.unique(np.concatenate([one.geoids for one in units]))
        if listed_places is None
        else listed_places
    )

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

    return forecast({0: float(places.size)}, release).get(0, 0.0)


def _inside(records: "br.Records | None", places: Any) -> "br.Records | None":
    """Return the records of some places."""
    return None if records is None else records.take(np.isin(records.geoids, places))
