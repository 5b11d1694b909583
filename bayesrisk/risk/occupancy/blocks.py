"""Whether blocks said to hold a violation of the occupancy limit do hold one."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._show import displayed
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.reconstruction import OccupancyDetection
from bayesrisk.reconstruction.status import Status
from bayesrisk.risk.intervals import binomial_interval
from bayesrisk.risk.occupancy.households import household_frame

_READINGS = ("apart", "violation")


@displayed
@dataclass(frozen=True)
class OccupancyBlockRisk:
    """Blocks said to hold a violation, against those that do; counts, with their intervals.

    Attributes
    ----------
    blocks : int
        Blocks looked at.
    violating : int
        Blocks with a violation: ``violating / blocks`` is the precision of a blind guess.
    putative : int
        Blocks said to hold one: ``putative / blocks`` is the recall of a blind guess.
    confirmed : int
        Those of them that do.
    infeasible, undecided : int
        Blocks without any reconstruction, and those where a limit was reached.
    confidence : float
        Confidence of the intervals, between 0 and 1.
    version : str
        Version of bayesrisk.
    """

    blocks: int
    violating: int
    putative: int
    confirmed: int
    infeasible: int
    undecided: int
    confidence: float
    version: str = __version__

    def to_frame(self) -> pd.DataFrame:
        """Return precision and recall with Clopper-Pearson intervals and blind guesses.

        Returns
        -------
        pandas.DataFrame
            Rows ``precision`` and ``recall``: ``measure, confirmed, of, value, lower, upper,
            baseline``.
        """
        of = np.array([self.putative, self.violating])
        confirmed = np.full(2, self.confirmed)
        lower, upper = binomial_interval(confirmed, of, confidence=self.confidence)
        with np.errstate(invalid="ignore", divide="ignore"):
            value = confirmed / of
            baseline = np.array([self.violating, self.putative]) / np.full(2, self.blocks)
        columns: dict[str, Any] = {
            "measure": ["precision", "recall"],
            "confirmed": confirmed,
            "of": of,
            "value": value,
            "lower": lower,
            "upper": upper,
            "baseline": baseline,
        }
        return pd.DataFrame(columns)

    def __add__(self, other: "OccupancyBlockRisk") -> "OccupancyBlockRisk":
        """Return both sets of blocks together."""
        if not isinstance(other, OccupancyBlockRisk):
            return NotImplemented
        if self.confidence != other.confidence:
            raise ArgumentError(f"confidence must be {self.confidence}, got {other.confidence}")
        names = ("blocks", "violating", "putative", "confirmed", "infeasible", "undecided")
        total = {name: getattr(self, name) + getattr(other, name) for name in names}
        return OccupancyBlockRisk(**total, confidence=self.confidence)


def occupancy_block_risk(
    found: OccupancyDetection,
    truth: pd.DataFrame,
    *,
    infeasible: str = "apart",
    confidence: float = 0.95,
) -> OccupancyBlockRisk:
    """Return how many of the blocks said to hold a violation do.

    Parameters
    ----------
    found : OccupancyDetection
        What is said of every block.
    truth : pandas.DataFrame
        Confidential households in codes of ``household-occupancy``: ``block, size,
        race_ethnicity, children, bedrooms, subsidised``; other blocks than those of ``found`` are
        left out.
    infeasible : {"apart", "violation"}, default "apart"
        What a block without any reconstruction is; the reference counts it as a violation.
    confidence : float, default 0.95
        Confidence of the intervals, between 0 and 1.

    Returns
    -------
    OccupancyBlockRisk
        Counts.

    Raises
    ------
    DataError
        If the truth lacks a column or has a value out of range.

    References
    ----------
    Steed, Qing and Wu (2024, arXiv:2407.04776), Table 1.

    Examples
    --------
    >>> from bayesrisk.mechanisms import Identity
    >>> found = OccupancyDetection(
    ...     np.array(["1", "2"]), np.array([11, 12]), ("violation", "possible"), ("", ""), ("", ""))
    >>> truth = pd.DataFrame({"block": ["1", "2"], "size": [3, 3], "race_ethnicity": 0,
    ...                       "children": 1, "bedrooms": 1, "subsidised": 1})
    >>> occupancy_block_risk(found, truth).to_frame()["value"].tolist()
    [1.0, 0.5]
    """
    _check_detection(found)
    check.choice(infeasible, "infeasible", _READINGS)
    share = check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    true = violating_blocks(found, truth)
    status = np.array(found.status)
    said = status == Status.VIOLATION
    if infeasible == "violation":
        said |= status == Status.INFEASIBLE
    return OccupancyBlockRisk(
        len(status),
        int(true.sum()),
        int(said.sum()),
        int((said & true).sum()),
        int((status == Status.INFEASIBLE).sum()),
        int((status == Status.UNDECIDED).sum()),
        share,
    )


def _check_detection(found: object) -> None:
    if not isinstance(found, OccupancyDetection):
        raise ArgumentTypeError(f"found must be a detection, got {type(found).__name__}")


def violating_blocks(found: OccupancyDetection, truth: pd.DataFrame) -> NDArray[np.bool_]:
    """Return whether each block holds a violation."""
    homes = household_frame(truth, source="truth")
    return np.isin(found.geoids.astype(str), homes.loc[homes["violation"], "block"].unique())
