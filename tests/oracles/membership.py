"""The best test of two hypotheses as a linear program over its probabilities of rejection."""

from itertools import product
from math import prod

import numpy as np
from scipy.optimize import linprog


def best_power(absent, present, false_positive_rate):
    """Return the largest power of a randomised test of a given size."""
    found = linprog(
        -np.asarray(present),
        A_ub=[absent],
        b_ub=[false_positive_rate],
        bounds=(0.0, 1.0),
        method="highs",
    )
    return -found.fun


def releases(pmf, values, changes):
    """Return the probabilities of all tuples of released values, without and with the record."""
    pairs = [
        (prod(pmf(y) for y in row), prod(pmf(y - d) for y, d in zip(row, changes, strict=True)))
        for row in product(values, repeat=len(changes))
    ]
    return np.array(pairs).T
