"""Noisy measurement files read and recounted the plain way, without the package."""

import itertools
import math
from pathlib import Path

import mpmath
import numpy as np
import pandas as pd

AXES = ("hhgq", "votingage", "hispanic", "cenrace")
SIZES = (8, 2, 2, 63)
INSTITUTIONS = {0: 0, 1: 1, 2: 1, 3: 1, 4: 1, 5: 2, 6: 2, 7: 2}


def frame_of(folder, level, kind="DPQuery"):
    """Return every row of a level as pandas reads it, file by file."""
    files = sorted((Path(folder) / f"{level}.parquet" / kind).rglob("*.parquet"))
    return pd.concat([pd.read_parquet(f, partitioning=None) for f in files], ignore_index=True)


def values_of(folder, level, query, kind="DPQuery", suffix="_dpq"):
    """Return {geocode: (values, variance)} of one query."""
    frame = frame_of(folder, level, kind)
    frame = frame[frame["query_name"] == query + suffix]
    return {
        code: ([int(v) for v in value], float(variance))
        for code, value, variance in zip(
            frame["geocode"], frame["value"], frame["variance"], strict=True
        )
    }


def recount(histogram, query):
    """Count one 2,016-cell histogram for a query, cell by cell, in plain loops."""
    names = [] if query == "total" else query.split(" * ")
    if query == "detailed":
        names = list(AXES)
    sizes = [
        3 if axis == "hhgq" and "hhinstlevels" in names else size if axis in names else 1
        for axis, size in zip(AXES, SIZES, strict=True)
    ]
    counts = [0] * math.prod(sizes)
    for cell, count in zip(itertools.product(*map(range, SIZES)), histogram, strict=True):
        place = 0
        for axis, value, size in zip(AXES, cell, sizes, strict=True):
            index = 0
            if size == 3:
                index = INSTITUTIONS[value]
            elif axis in names:
                index = value
            place = place * size + index
        counts[place] += int(count)
    return counts


def variance(sigma2):
    """Return the variance of the discrete Gaussian, by direct sums in 40 digits."""
    with mpmath.workdps(40):
        rho = 1 / (2 * mpmath.mpf(sigma2))
        reach = int(mpmath.sqrt(100 / rho)) + 2
        weights = [(j, mpmath.exp(-rho * j * j)) for j in range(1, reach)]
        mass = 1 + 2 * sum(w for _, w in weights)
        return float(2 * sum(j * j * w for j, w in weights) / mass)


def posterior(y, *, sigma2, prior, known_count):
    """Return expit(logit p + (2 (y - k) - 1) / (2 sigma2)) as it is written."""
    t = np.log(prior / (1.0 - prior)) + (2.0 * (y - known_count) - 1.0) / (2.0 * sigma2)
    return 1.0 / (1.0 + np.exp(-t))


def pmf(x, sigma2):
    """Return the discrete Gaussian pmf by its defining sum."""
    reach = np.arange(-2000, 2001)
    weights = np.exp(-(reach**2) / (2.0 * sigma2))
    return np.exp(-(np.asarray(x, dtype=float) ** 2) / (2.0 * sigma2)) / weights.sum()
