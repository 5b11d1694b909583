"""Persons in the schema of 2010 whose attributes are drawn, with as few places as a test needs."""

import numpy as np
import pandas as pd


def persons(seed, count, blocks, *, p=None, ages=90, races=(1, 2, 8), shares=None, hispanic=None):
    """Return a frame; ``p`` and ``shares`` weigh blocks and races, half or a share are Hispanic."""
    rng = np.random.default_rng(seed)
    frame = {
        "block": rng.choice(blocks, count, p=p),
        "sex": rng.integers(0, 2, count),
        "age": rng.integers(0, ages, count),
        "race": rng.choice(races, count, p=shares),
    }
    half = rng.integers(0, 2, count) if hispanic is None else rng.random(count) < hispanic
    return pd.DataFrame(frame | {"hisp": half.astype(int)})
