"""Probabilities of kinds of households, estimated from a public sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk._base.display import displayed
from bayesrisk._base.validation import BoolArray, IntArray
from bayesrisk.exceptions import ArgumentError, DataError

#: Log-likelihoods are whole multiples of this part of a nat, so that optima are proved exactly.
UNIT = 10_000
COLUMNS = ("size", "race_ethnicity", "children")
_BOUNDS = {"size": (1, 7), "race_ethnicity": (0, 13), "children": (0, 6)}


@displayed
@dataclass(frozen=True, eq=False)
class HouseholdLaw:
    """Kinds of households and their log probabilities.

    Attributes
    ----------
    size, race_ethnicity, children : ndarray of int64
        Codes of the schema ``household-occupancy`` (7 is 7 or more people, 6 is 6 or more
        children), one entry for each kind.
    log_probability : ndarray of int64
        Natural logarithm of the probability, in units of 1e-4, rounded.
    in_sample : ndarray of bool
        Whether the kind was in the sample; the others serve blocks that no sampled kinds fit.
    adults : int
        Least number of adults in a household.
    """

    size: IntArray
    race_ethnicity: IntArray
    children: IntArray
    log_probability: IntArray
    in_sample: BoolArray
    adults: int

    def __len__(self) -> int:
        return int(self.size.size)

    @classmethod
    def from_sample(
        cls, sample: pd.DataFrame, *, smoothing: float, adults: int = 1
    ) -> HouseholdLaw:
        r"""Return the law of kinds of households from a sample, sampled kinds first.

        If ``c`` of ``n`` households are of a kind, its probability is :math:`(c + s) / (n + s K)`
        with smoothing ``s`` and ``K`` possible kinds. Kinds outside the sample are used only in
        blocks that the others cannot explain, and flagged there. Columns of the sample are
        ``size``, ``race_ethnicity`` and ``children`` in codes of ``household-occupancy``.
        ``weight`` is optional: the number of households that a row stands for. ``adults``, 0 or 1,
        is the least number of adults in a household.

        Source: Steed, Qing and Wu (2024), Eq. 2.

        Examples
        --------
        >>> sample = pd.DataFrame({"size": [1, 1, 3], "race_ethnicity": 0, "children": [0, 0, 1]})
        >>> law = HouseholdLaw.from_sample(sample, smoothing=0.5)
        >>> len(law), int(law.in_sample.sum())
        (392, 2)
        """
        sample = check.frame(sample, "sample")
        added = check.scalar(smoothing, "smoothing", lower=0.0, upper=1e6, bounds="(]")
        least = check.integer(adults, "adults", lower=0, upper=1)
        codes = {name: _codes(sample, name, *_BOUNDS[name]) for name in COLUMNS}
        weight = _codes(sample, "weight", 0, 2**40) if "weight" in sample else None
        size, race, children = (a.ravel() for a in np.indices((7, 14, 7)))
        size = size + 1
        counts = np.zeros((7, 14, 7), dtype=np.int64)
        index = (codes["size"] - 1, codes["race_ethnicity"], codes["children"])
        np.add.at(counts, index, 1 if weight is None else weight)
        possible = children <= np.maximum(size - least, 0)
        flat = counts.ravel()
        impossible = np.flatnonzero((flat > 0) & ~possible)
        if impossible.size:
            culprit = impossible[0]
            raise DataError(
                f"sample: children must be <= size - {least}, got {children[culprit]} in a "
                f"household of {size[culprit]}"
            )
        if not flat.any():
            raise DataError("sample: must hold households, got none")
        order = np.flatnonzero(possible)
        order = order[np.argsort(flat[order] == 0, kind="stable")]
        whole = flat.sum() + added * order.size
        log = np.log((flat[order] + added) / whole)
        return cls(
            size[order].astype(np.int64),
            race[order].astype(np.int64),
            children[order].astype(np.int64),
            np.rint(UNIT * log).astype(np.int64),
            flat[order] > 0,
            least,
        )


def _codes(sample: pd.DataFrame, name: str, low: int, high: int) -> IntArray:
    sample = check.frame(sample, "sample", (name,))
    try:
        return check.count_array(sample[name].to_numpy(), name, lower=low, upper=high)
    except ArgumentError as error:
        raise DataError(f"sample: {error}") from error
