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
from bayesrisk.reconstruction import OCCUPANCY_STATUS, OccupancyDetection
from bayesrisk.release import MechanismSpec
from bayesrisk.risk.intervals import binomial_interval
from bayesrisk.risk.occupancy._truth import household_frame
from bayesrisk.risk.statements.statements import TRUE_COUNTS

__all__ = ["OccupancyBlockRisk", "occupancy_block_risk", "occupancy_statements"]

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
    level : float
        Level of the intervals.
    version : str
        Version of bayesrisk.
    """

    blocks: int
    violating: int
    putative: int
    confirmed: int
    infeasible: int
    undecided: int
    level: float
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
        lower, upper = binomial_interval(confirmed, of, level=self.level)
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
        if self.level != other.level:
            raise ArgumentError(f"level must be {self.level}, got {other.level}")
        names = ("blocks", "violating", "putative", "confirmed", "infeasible", "undecided")
        total = {name: getattr(self, name) + getattr(other, name) for name in names}
        return OccupancyBlockRisk(**total, level=self.level)


def occupancy_block_risk(
    found: OccupancyDetection,
    truth: pd.DataFrame,
    *,
    infeasible: str = "apart",
    level: float = 0.95,
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
    level : float, default 0.95
        Level of the intervals.

    Returns
    -------
    OccupancyBlockRisk
        Counts.

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    ArgumentTypeError
        If an argument has the wrong type.
    DataError
        If the truth lacks a column or has a value out of range.

    References
    ----------
    Steed, Qing and Wu (2024, arXiv:2407.04776), Table 1.

    Examples
    --------
    >>> found = OccupancyDetection(
    ...     np.array(["1", "2"]), np.array([11, 12]), ("violation", "possible"), ("", ""), ("", ""))
    >>> truth = pd.DataFrame({"block": ["1", "2"], "size": [3, 3], "race_ethnicity": 0,
    ...                       "children": 1, "bedrooms": 1, "subsidised": 1})
    >>> occupancy_block_risk(found, truth).to_frame()["value"].tolist()
    [1.0, 0.5]
    """
    _check_detection(found)
    check.choice(infeasible, "infeasible", _READINGS)
    share = check.scalar(level, "level", lower=0.0, upper=1.0, bounds="()")
    true = _violating(found, truth)
    status = np.array(found.status)
    said = status == "violation"
    if infeasible == "violation":
        said |= status == "infeasible"
    return OccupancyBlockRisk(
        len(status),
        int(true.sum()),
        int(said.sum()),
        int((said & true).sum()),
        int((status == "infeasible").sum()),
        int((status == "undecided").sum()),
        share,
    )


def _check_detection(found: object) -> None:
    if not isinstance(found, OccupancyDetection):
        raise ArgumentTypeError(f"found must be a detection, got {type(found).__name__}")


def _violating(found: OccupancyDetection, truth: pd.DataFrame) -> NDArray[np.bool_]:
    """Return whether each block holds a violation."""
    homes = household_frame(truth, source="truth")
    return np.isin(found.geoids.astype(str), homes.loc[homes["violation"], "block"].unique())


def occupancy_statements(
    found: OccupancyDetection,
    *,
    spec: MechanismSpec,
    prior: float,
    truth: pd.DataFrame | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """Return what the attack says of every block, with prior, posterior and their ratio.

    The statement is that some subsidised household of the block violates the occupancy limit;
    blocks without subsidised households are left out.
    Where published counts are true ones a violation found is proved.  Elsewhere the posterior is
    the share of blocks with the same status that hold one: an estimate that needs the truth.

    Parameters
    ----------
    found : OccupancyDetection
        What is said of every block.
    spec : MechanismSpec
        How the tables were protected.
    prior : float
        Share of such blocks that the adversary believes to hold a violation, in (0, 1).
    truth : pandas.DataFrame, optional
        Confidential households, as for :func:`occupancy_block_risk`.
    level : float, default 0.95
        Level of the intervals of estimated posteriors.

    Returns
    -------
    pandas.DataFrame
        Columns ``attack, protection, target, statement, people, prior, posterior, lower, upper,
        ratio, status`` and ``finding``; ``people`` is the number of subsidised households,
        ``status`` one of ``proved``, ``estimated`` and ``unverified`` (no posterior), ``finding``
        the detection's.

    Raises
    ------
    ArgumentError
        If a number is out of range.
    ArgumentTypeError
        If an argument has the wrong type.
    DataError
        If the truth lacks a column or has a value out of range.

    Examples
    --------
    >>> found = OccupancyDetection(
    ...     np.array(["1", "2"]), np.array([11, 12]), ("violation", "possible"), ("", ""), ("", ""))
    >>> rows = occupancy_statements(found, spec=MechanismSpec("identity", {}), prior=0.25)
    >>> rows[["posterior", "ratio", "status"]].values.tolist()
    [[1.0, 4.0, 'proved'], [nan, nan, 'unverified']]
    """
    _check_detection(found)
    if not isinstance(spec, MechanismSpec):
        raise ArgumentTypeError(f"spec must be a MechanismSpec, got {type(spec).__name__}")
    believed = check.scalar(prior, "prior", lower=0.0, upper=1.0, bounds="()")
    share = check.scalar(level, "level", lower=0.0, upper=1.0, bounds="()")
    kept = found.subsidised > 0
    finding = np.array(found.status)[kept]
    proved = (finding == "violation") & (spec.mechanism in TRUE_COUNTS)
    values = np.where(proved, 1.0, np.nan)
    lower, upper, status = values.copy(), values.copy(), np.where(proved, "proved", "unverified")
    if truth is not None:
        true = _violating(found, truth)[kept]
        for kind in OCCUPANCY_STATUS:
            rows = (finding == kind) & ~proved
            if rows.any():
                hits, of = int(true[rows].sum()), int(rows.sum())
                bounds = binomial_interval(hits, of, level=share)
                values[rows], status[rows] = hits / of, "estimated"
                lower[rows], upper[rows] = bounds
    columns: dict[str, Any] = {
        "attack": "occupancy",
        "protection": spec.mechanism,
        "target": [f"block {geoid}" for geoid in found.geoids[kept]],
        "statement": "a subsidised household above the occupancy limit",
        "people": found.subsidised[kept],
        "prior": believed,
        "posterior": values,
        "lower": lower,
        "upper": upper,
        "ratio": values / believed,
        "status": status,
        "finding": finding,
    }
    frame = pd.DataFrame(columns)
    texts = ("attack", "protection", "target", "statement", "status", "finding")
    return frame.astype(dict.fromkeys(texts, "str"))
