"""Statistics of blocks from dictionaries, and laws of households from a few of them."""

import numpy as np
import pandas as pd

from bayesrisk.census import HouseholdLaw
from bayesrisk.census.occupancy.statistics import OccupancyStatistics

NAMES = (
    *("households", "population", "sizes", "race", "children", "hud_households", "hud_people"),
    *("hud_race", "hud_children", "hud_bedrooms"),
)
MOST = ("hud_race_most", "hud_bedrooms_most")


def as_blocks(rows):
    names = NAMES + MOST if "hud_race_most" in rows[0] else NAMES
    arrays = [np.array([row[name] for row in rows]) for name in names]
    return OccupancyStatistics(np.array([f"{i:015d}" for i in range(len(rows))]), *arrays)


def law_of(sample):
    """Return the smoothed law of a sample, or of households of these sizes without children."""
    if not isinstance(sample, pd.DataFrame):
        sample = pd.DataFrame({"size": sample, "race_ethnicity": 0, "children": 0})
    return HouseholdLaw.from_sample(sample, smoothing=0.5)
