"""Reconstructed violations compared with true households: rankings, precision and recall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed
from bayesrisk._base.validation import BoolArray, FloatArray, IntArray
from bayesrisk.census.occupancy.detection import OccupancyDetection
from bayesrisk.census.occupancy.solutions import OccupancyReconstruction
from bayesrisk.census.population.subsidies import occupancy_violation
from bayesrisk.constraints.model import Status
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError, quote
from bayesrisk.risk.intervals import binomial_interval, block_moments, moment_intervals

#: What a match key is made of.
Key = str | tuple[str, ...] | list[str]
#: What a match key may hold.
KEY_COLUMNS = ("subsidised", "bedrooms", "race_ethnicity", "child")
#: Match keys of the reference: HUD's variables; the same without bedrooms; and what a data broker
#: sells, with no knowledge of who is subsidised.
MATCH_KEYS = {
    "hud": ("subsidised", "bedrooms", "race_ethnicity", "child"),
    "subsidised": ("subsidised", "race_ethnicity", "child"),
    "broker": ("race_ethnicity", "child"),
}
_BASE = (2, 4, 14, 2)
_BOUNDS = {
    "size": (1, 7),
    "race_ethnicity": (0, 13),
    "children": (0, 6),
    "bedrooms": (0, 3),
    "subsidised": (0, 1),
}


def household_frame(households: pd.DataFrame, *, source: str) -> pd.DataFrame:
    """Return checked households, with the derived columns ``child`` and ``violation``."""
    households = check.frame(households, source, ("block", *_BOUNDS))
    columns = {}
    for name, (low, high) in _BOUNDS.items():
        values = pd.to_numeric(households[name], errors="coerce").to_numpy(dtype=float)
        bad = ~((values >= low) & (values <= high) & (values == np.floor(values)))
        rule = f"be a whole number in [{low}, {high}]"
        check.refuse_row(bad, households[name], source, name, rule)
        columns[name] = values.astype(np.int64)
    breach = occupancy_violation(columns["size"], columns["bedrooms"])
    return pd.DataFrame(
        {
            "block": households["block"].astype("str").to_numpy(),
            **columns,
            "child": (columns["children"] > 0).astype(np.int64),
            "violation": breach & (columns["subsidised"] == 1),
        }
    )


def checked_key(key: object) -> tuple[str, ...]:
    """Return the columns of a match key, given by columns or by a known name."""
    if isinstance(key, str) and key in MATCH_KEYS:
        return MATCH_KEYS[key]
    if isinstance(key, str) or not isinstance(key, tuple | list) or not key:
        raise ArgumentTypeError(
            f"key must be columns of {', '.join(KEY_COLUMNS)}, or one of {', '.join(MATCH_KEYS)}, "
            f"got {quote(key)}"
        )
    for name in key:
        if name not in KEY_COLUMNS or list(key).count(name) > 1:
            raise DataError(f"key: must be columns of {', '.join(KEY_COLUMNS)}, got {quote(name)}")
    return tuple(key)


def key_codes(frame: pd.DataFrame, key: tuple[str, ...]) -> IntArray:
    """Return a code for each row's values of the key."""
    code = np.zeros(len(frame), dtype=np.int64)
    for name, base in zip(KEY_COLUMNS, _BASE, strict=True):
        code *= base
        if name in key:
            code += frame[name].to_numpy(np.int64)
    return code


#: How a block without any reconstruction is read.
INFEASIBLE_AS = ("apart", "violation")


@displayed
@dataclass(frozen=True)
class OccupancyBlockRisk(Tabular):
    """Blocks found to hold a violation compared with those that do, with intervals.

    Attributes
    ----------
    blocks, violating, putative, confirmed : int
        Numbers of blocks, of those with a violation, of those found to hold one, and of those found
        correctly. A blind guess has precision ``violating / blocks`` and recall
        ``putative / blocks``.
    infeasible, undecided : int
        Blocks without any reconstruction, and blocks where a limit was reached.
    confidence : float
        Confidence of the intervals, between 0 and 1.
    """

    blocks: int
    violating: int
    putative: int
    confirmed: int
    infeasible: int
    undecided: int
    confidence: float

    def to_frame(self) -> pd.DataFrame:
        """Return precision and recall with Clopper-Pearson intervals and blind guesses."""
        trials = np.array([self.putative, self.violating])
        confirmed = np.full(2, self.confirmed)
        lower, upper = binomial_interval(confirmed, trials, confidence=self.confidence)
        with np.errstate(invalid="ignore", divide="ignore"):
            value, baseline = confirmed / trials, trials[::-1] / self.blocks
        columns: dict[str, Any] = {
            "measure": ["precision", "recall"],
            "confirmed": confirmed,
            "of": trials,
            "value": value,
            "lower": lower,
            "upper": upper,
            "baseline": baseline,
        }
        return pd.DataFrame(columns)

    def __add__(self, other: OccupancyBlockRisk) -> OccupancyBlockRisk:
        """Return the counts of both sets of blocks together."""
        if not isinstance(other, OccupancyBlockRisk):
            return NotImplemented
        if self.confidence != other.confidence:
            raise ArgumentError(f"confidence must be {self.confidence}, got {other.confidence}")
        total = {name: value + getattr(other, name) for name, value in vars(self).items()}
        return OccupancyBlockRisk(**total | {"confidence": self.confidence})


def occupancy_block_risk(
    detection: OccupancyDetection,
    truth: pd.DataFrame,
    *,
    infeasible: str = "apart",
    confidence: float = 0.95,
) -> OccupancyBlockRisk:
    """Return the counts of blocks found to hold a violation, and of those that do.

    Source: Steed, Qing and Wu (2024, arXiv:2407.04776), Table 1.

    Parameters
    ----------
    detection : OccupancyDetection
        The finding for every block.
    truth : pandas.DataFrame
        Confidential households in codes of ``household-occupancy``: ``block, size, race_ethnicity,
        children, bedrooms, subsidised``. Blocks that are not in ``detection`` are left out.
    infeasible : {"apart", "violation"}, default "apart"
        Treatment of a block without any reconstruction; the reference counts it as a violation.
    confidence : float in (0, 1), default 0.95

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
    check.instance(detection, OccupancyDetection, "detection")
    check.choice(infeasible, "infeasible", INFEASIBLE_AS)
    share = check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    homes = household_frame(truth, source="truth")
    true = np.isin(detection.geoids.astype(str), homes.loc[homes["violation"], "block"].unique())
    return count_blocks(np.array(detection.status), true, infeasible=infeasible, confidence=share)


def count_blocks(
    status: NDArray[Any], true: BoolArray, *, infeasible: str, confidence: float
) -> OccupancyBlockRisk:
    """Return the counts of blocks by status and truth; ``confidence`` is that of the intervals."""
    unsolved = status == Status.INFEASIBLE
    putative = (status == Status.VIOLATION) | (unsolved & (infeasible == "violation"))
    return OccupancyBlockRisk(
        len(status),
        int(true.sum()),
        int(putative.sum()),
        int((putative & true).sum()),
        int(unsolved.sum()),
        int((status == Status.UNDECIDED).sum()),
        confidence,
    )


@displayed
@dataclass(frozen=True, eq=False)
class LinkageCurve(Tabular):
    """Known households matched by the first k entries of a ranking, for every k.

    Entries with equal scores are in random order; counts are expectations over it.

    Attributes
    ----------
    key, unique : tuple of str, bool
        Columns of the match key, and whether only households count that are alone in their block
        with their key.
    putative, hits, matched : ndarray
        Expected numbers for k = 1, 2, ...: of matched households, of those that violate the limit,
        and of entries that match a household in violation.
    violations, households : int
        Households in violation, and households that could be matched (subsidised ones if the key
        says so), in all blocks.
    precision_bounds, recall_bounds : ndarray
        Ends of the intervals, shape (2, number of entries).
    confidence : float
        Confidence of the intervals, between 0 and 1.
    """

    key: tuple[str, ...]
    unique: bool
    putative: FloatArray
    hits: FloatArray
    matched: FloatArray
    violations: int
    households: int
    precision_bounds: FloatArray
    recall_bounds: FloatArray
    confidence: float

    def __len__(self) -> int:
        return int(self.putative.size)

    @property
    def precision(self) -> FloatArray:
        """Expected hits over expected matches, Eq. 4; NaN if nothing is matched."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.hits / self.putative)

    @property
    def recall(self) -> FloatArray:
        """Expected hits over violations, Eq. 5."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.hits / self.violations)

    @property
    def match_rate(self) -> FloatArray:
        """Share of the first k entries that match a violation, Eq. 9."""
        return np.asarray(self.matched / np.arange(1, len(self) + 1))

    @property
    def baseline(self) -> float:
        """Precision of a blind guess: the rate of violations."""
        return self.violations / self.households if self.households else np.nan

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each k."""
        columns = {"k": np.arange(1, len(self) + 1), "putative": self.putative, "hits": self.hits}
        for name in ("precision", "recall"):
            columns[name] = getattr(self, name)
            columns[f"{name}_lower"], columns[f"{name}_upper"] = getattr(self, f"{name}_bounds")
        frame = pd.DataFrame(columns)
        return frame.assign(match_rate=self.match_rate, baseline=self.baseline)


def occupancy_ranking(result: OccupancyReconstruction, *, key: Key) -> pd.DataFrame:
    """Return the kinds of reconstructed violations, most frequent first.

    Columns are ``block``, those of the key, and ``score``: the average number of violating
    households of that kind over the solutions of the block.
    """
    check.instance(result, OccupancyReconstruction, "result")
    names = list(checked_key(key))
    frame = result.to_frame()
    frame["child"] = (frame["children"] > 0).astype(np.int64)
    share = frame["households"].to_numpy() / result.solutions[result.block]
    frame = frame.assign(score=share)[frame["violation"]]
    rows = frame.groupby(["block", *names], sort=True)["score"].sum().reset_index()
    return rows.sort_values("score", ascending=False, kind="stable", ignore_index=True)


def sampling_ranking(
    sample: pd.DataFrame, targets: NDArray[np.str_] | list[str], *, key: Key
) -> pd.DataFrame:
    """Return the kinds of violations in a sample of the truth, as a strong baseline.

    As :func:`occupancy_ranking`: for every target the same entries, ``score`` the number of
    households of the kind in violation in the sample (Steed, Qing and Wu 2024, section 4.1).
    """
    names = list(checked_key(key))
    places = check.text_array(targets, "targets")
    homes = household_frame(sample, source="sample")
    counts = homes[homes["violation"]].groupby(names, sort=True).size().rename("score")
    rows = counts.astype(float).reset_index()
    every = pd.DataFrame({"block": pd.Series(places, dtype="str")}).merge(rows, how="cross")
    return every.sort_values("score", ascending=False, kind="stable", ignore_index=True)


def occupancy_linkage(
    ranking: OccupancyReconstruction | pd.DataFrame,
    truth: pd.DataFrame,
    *,
    key: Key,
    unique: bool,
    confidence: float = 0.95,
) -> LinkageCurve:
    r"""Return the number of known households matched by the k most suspicious entries, for every k.

    The adversary knows the key and the place of every household. Households that agree with one of
    the first ``k`` entries are taken for violations :math:`\hat V_k`. With the true violations
    :math:`V`, precision is :math:`|V \cap \hat V_k| / |\hat V_k|` and recall
    :math:`|V \cap \hat V_k| / |V|`. Source: Steed, Qing and Wu (2024, arXiv:2407.04776), Eq. 4, 5
    and 9.

    Parameters
    ----------
    ranking : OccupancyReconstruction or pandas.DataFrame
        Solutions of blocks, whose violations are ranked by frequency; or a ranking: ``block``, the
        columns of the key, and ``score``.
    truth : pandas.DataFrame
        Confidential households: ``block, size, race_ethnicity, children, bedrooms, subsidised``.
        All must be given: violations in blocks outside the ranking count as missed.
    key : str or sequence of str
        Columns of ``subsidised, bedrooms, race_ethnicity, child``; or a key of the reference:
        ``"hud"`` (all of them), ``"subsidised"`` (without bedrooms), or ``"broker"``, the data of a
        data broker (race and ethnicity, and whether there are children).
    unique : bool
        Whether only households count that are alone in their block with their key.
    confidence : float in (0, 1), default 0.95

    Examples
    --------
    >>> truth = pd.DataFrame({"block": "1", "size": [3, 1], "race_ethnicity": 0,
    ...                       "children": [1, 0], "bedrooms": 1, "subsidised": 1})
    >>> ranking = pd.DataFrame({"block": ["1"], "race_ethnicity": [0], "score": [1.0]})
    >>> curve = occupancy_linkage(ranking, truth, key=["race_ethnicity"], unique=False)
    >>> curve.precision, curve.recall
    (array([0.5]), array([1.]))
    """
    names = checked_key(key)
    share = check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    if isinstance(ranking, OccupancyReconstruction):
        ranking = occupancy_ranking(ranking, key=names)
    ranking = check.frame(ranking, "ranking", ("block", *names, "score"))
    check.flag(unique, "unique")
    homes = household_frame(truth, source="truth")
    if "subsidised" in names:
        homes = homes[homes["subsidised"] == 1]
    homes = homes.assign(code=key_codes(homes, names), violation=homes["violation"].astype(int))
    groups = homes.groupby(["block", "code"], sort=False)["violation"].agg(["size", "sum"])
    if unique:
        groups = groups[groups["size"] == 1]
    score = ranking["score"].to_numpy(np.float64)
    entries = pd.DataFrame(
        {"block": ranking["block"].astype("str"), "code": key_codes(ranking, names)}
    )
    if entries.duplicated(["block", "code"]).any():
        raise DataError("ranking: must have every entry once")
    joined = entries.join(groups, on=["block", "code"]).fillna({"size": 0.0, "sum": 0.0})
    size, hits = (joined[name].to_numpy(np.float64) for name in ("size", "sum"))
    violations = groups.groupby(level="block", sort=False)["sum"].sum()
    bounds = _bounds(joined["block"], score, size, hits, violations[violations > 0], share)
    return LinkageCurve(
        names,
        bool(unique),
        _expected(score, size),
        _expected(score, hits),
        _expected(score, (hits > 0).astype(np.float64)),
        int(groups["sum"].sum()),
        int(groups["size"].sum()),
        *bounds,
        share,
    )


def _expected(score: FloatArray, values: FloatArray) -> FloatArray:
    """Return the expected sum of the first k values by decreasing score, ties at random."""
    if not score.size:
        return np.empty(0)
    _, tie, count = np.unique(-score, return_inverse=True, return_counts=True)
    ends = np.concatenate([[0], np.cumsum(count)])
    sums = np.concatenate([[0.0], np.cumsum(np.bincount(tie, values))])
    return np.asarray(np.interp(np.arange(1, score.size + 1), ends, sums))


def _bounds(
    blocks: pd.Series,
    score: FloatArray,
    size: FloatArray,
    hits: FloatArray,
    violations: pd.Series,
    confidence: float,
) -> tuple[FloatArray, FloatArray]:
    """Return intervals of precision and recall for every k, with blocks as units.

    Every entry adds to the trials and hits of its block. So sums over blocks of functions of both
    are running sums of the changes by each entry.
    """
    order = np.argsort(-score, kind="stable")
    block = pd.Series(blocks.to_numpy()[order])
    trials, right = (pd.Series(values[order]) for values in (size, hits))
    whole = violations.reindex(block).fillna(0.0).to_numpy(np.float64)
    after_n, after_y = (values.groupby(block).cumsum().to_numpy() for values in (trials, right))
    before_n, before_y = after_n - trials.to_numpy(), after_y - right.to_numpy()
    total = block_moments(np.zeros(len(violations)), violations).sum(axis=1)
    every = []
    for after, before, start in (
        ((after_y, after_n), (before_y, before_n), 0.0),
        ((after_y, whole), (before_y, whole), total[:, None]),
    ):
        change = block_moments(*after) - block_moments(*before)
        sums = np.stack([_expected(score[order], row) for row in change]) + start
        every.append(np.stack(moment_intervals(sums, confidence=confidence)))
    return every[0], every[1]
