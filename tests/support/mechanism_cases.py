"""A little county and mechanisms made by hand, for the risk of protections."""

import numpy as np
import pandas as pd

from bayesrisk.release import MechanismSpec, Release
from bayesrisk.tables import (
    Attribute,
    Microdata,
    PublishedTables,
    Records,
    Schema,
    Workload,
    tabulate,
)

BLOCKS = [f"50001010100100{i}" for i in range(4)]
COUNTY = Schema(
    "colours", (Attribute("colour", 3), Attribute("shape", 2)), Schema.named("sf1-person").geography
)


def county():
    """Return 13 persons in 5 households in three of four blocks."""
    place = [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2]
    frame = pd.DataFrame(
        {
            "block": [BLOCKS[i] for i in place],
            "household": [0, 0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4],
            "person": range(100, 113),
            "colour": [0, 0, 1, 0, 2, 2, 0, 1, 1, 1, 0, 0, 2],
            "shape": [0, 1, 1, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1],
        }
    )
    blocks = pd.DataFrame({"block": BLOCKS, "x": range(4), "y": range(4)})
    return Microdata(persons=Records.from_frame(frame, schema=COUNTY), blocks=blocks)


def tables(*levels):
    """Return the total, and counts by colour and by both attributes."""
    return Workload.from_dict(
        {
            "schema": COUNTY.to_dict(),
            "levels": list(levels),
            "tables": [
                {"name": "total"},
                {"name": "colour", "cross": ["colour"]},
                {"name": "detail", "cross": ["colour", "shape"]},
            ],
        }
    )


class ByHand:
    """A plug-in: ``change(counts, rng)`` makes the released counts of every table."""

    def __init__(self, change):
        self.change = change
        self.spec = MechanismSpec("by-hand")

    def release(self, microdata, *, workload, rng):
        truth = tabulate(microdata, workload)
        counts = {}
        for key, part in truth.counts.items():
            counts[key] = self.change(part.toarray().astype(np.int64), rng)
        return Release(self.spec, PublishedTables(workload, truth.geoids, counts))


def ignores(counts, rng):
    """Release noise alone."""
    return rng.integers(0, 4, counts.shape)


def leaks(counts, rng):
    """Release the counts, twice as large, and a coin in the second digit."""
    return 10 * counts + rng.integers(0, 2, counts.shape)


def uniform_noise(counts, rng):
    """Add -1, 0 or 1."""
    return counts + rng.integers(-1, 2, counts.shape)
