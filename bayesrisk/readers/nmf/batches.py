"""What the reader of noisy measurement files hands out: rows of one query, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bayesrisk._show import displayed


@displayed
@dataclass(frozen=True)
class MeasurementBatch:
    """Noisy answers to one query in some units.

    Attributes
    ----------
    level, query : str
        What was asked, and where.
    shape : tuple of int
        Positions of each axis of the histogram; their product is the number of cells.
    geocodes : ndarray of str, shape (n,)
        The units.
    values : ndarray of int64, shape (n, cells)
        Noisy counts, cells in C order of ``shape``.
    variance : ndarray of float, shape (n,)
        Variance of the noise, as the file has it.
    sigma2 : ndarray of float, shape (n,)
        Scale parameter of the noise.
    file : pathlib.Path
        Where the rows are from.
    rows : ndarray of int64, shape (n,)
        Their numbers in the file, from 0.
    """

    level: str
    query: str
    shape: tuple[int, ...]
    geocodes: NDArray[np.str_]
    values: NDArray[np.int64]
    variance: NDArray[np.float64]
    sigma2: NDArray[np.float64]
    file: Path
    rows: NDArray[np.int64]


@displayed
@dataclass(frozen=True)
class ConstraintBatch:
    """Exact statements about one query in some units.

    Attributes
    ----------
    level, query : str
        What is stated, and where.
    shape : tuple of int
        Positions of each axis of the histogram.
    geocodes : ndarray of str, shape (n,)
        The units.
    values : ndarray of int64, shape (n, cells)
        Bounds or totals, cells in C order of ``shape``.
    signs : ndarray of str, shape (n,)
        ``=``, ``<=`` or ``>=``: the count stands to the left of it.
    file : pathlib.Path
        Where the rows are from.
    rows : ndarray of int64, shape (n,)
        Their numbers in the file, from 0.
    """

    level: str
    query: str
    shape: tuple[int, ...]
    geocodes: NDArray[np.str_]
    values: NDArray[np.int64]
    signs: NDArray[np.str_]
    file: Path
    rows: NDArray[np.int64]
