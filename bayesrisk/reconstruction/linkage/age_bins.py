"""The 38 age bins that the block tables of the 2010 Summary File 1 can tell apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrisk import _validation as check

#: First age of every bin (Abowd et al. 2023, Table S3): single years to 21, then those of P12.
AGE_BIN_STARTS = (
    *range(23),
    *(25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85),
)


def age_bin(age: ArrayLike) -> NDArray[np.int64]:
    """Return the bin of each age.

    Parameters
    ----------
    age : array_like of int
        Ages in years, 0 to 110.

    Returns
    -------
    ndarray of int64
        Bins 0 to 37.

    Examples
    --------
    >>> age_bin([0, 21, 22, 24, 25, 84, 110])
    array([ 0, 21, 22, 22, 23, 36, 37])
    """
    ages = check.count_array(age, "age", lower=0, upper=110)
    return np.searchsorted(AGE_BIN_STARTS, ages, side="right") - 1
