"""The exact law of a place with one unknown record at most: every kind of record is tried."""

import numpy as np

from bayesrisk._base.validation import FloatArray
from bayesrisk.exceptions import DataError
from bayesrisk.inference.microdata.contraction import WeighedModel


def one_record_means(system: WeighedModel) -> FloatArray:
    """Return the probability that each group has the one record.

    The points are x = 0 and x = e_g for every group g, with the weight of all rows r,
    w(x) = prior(x) prod_r weight_r((A x)_r).
    """
    matrix = system.model.rows.toarray()
    # Column 0 has the sums A 0, column g + 1 the sums A e_g.
    sums = np.concatenate([np.zeros((len(matrix), 1), np.int64), matrix], axis=1)
    weight = np.array([0.0, *(p[1] if p.size > 1 else -np.inf for p in system.priors)])
    for row_weights, first, row in zip(system.row_weights, system.model.row_low, sums, strict=True):
        place = row - first
        inside = (place >= 0) & (place < row_weights.size)
        weight = weight + np.where(inside, row_weights[np.where(inside, place, 0)], -np.inf)
    if not (weight > -np.inf).any():
        raise DataError("release contradicts itself or the prior: no counts agree with all of it")
    mass: FloatArray = np.exp(weight - weight.max())
    means: FloatArray = mass[1:] / mass.sum()
    return means
