"""Measures of an audit: the right answers that remain, and their dependence on own records.

Let q be the probability that an adversary gives to the true statement about a target t. It has
three values: before any release, after a release without t's record, and after the release r. Over
people and releases,

    exp(-mean of log q)

is the number of equally probable answers among which the truth would be as uncertain. These
*remaining answers* are 1 where all is certain. If one release is made from another, it leaves no
fewer in the long run. No other mean here has this property, so they alone order protections.
Learning is split in the same unit: from before to without, taught by everybody else's records, and
from without to after, added by the own record.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from bayesrisk._base import validation as check
from bayesrisk._base.validation import BoolArray, FloatArray, IntArray
from bayesrisk.exceptions import DataError
from bayesrisk.risk.audit.place_beliefs import UNSTATED
from bayesrisk.risk.audit.reading import READINGS
from bayesrisk.risk.intervals import clustered_interval, number_interval
from bayesrisk.risk.statements.statements import OPEN, numbers, risk_ratio

KEYS = ["protection", "attack", "adversary"]
TEXTS = dict.fromkeys((*KEYS, "group"), "str")
#: What the beliefs of one adversary about one person are keyed by.
BELIEF = [*KEYS, "release", "target"]
THREE = ("prior", "without", "posterior")
#: Who is summarised: by what they are, and by the size of their place.
GROUPS = (
    "everybody", "unlike their place", "alone with what is known",
    "place of 1 to 9", "place of 10 to 49", "place of 50 to 249", "place of 250 or more",
)  # fmt: skip
_SIZES = (10, 50, 250)
#: Numbers of people who are affected, each with its interval.
AFFECTED = ("doubled", "proved", "tenfold", "certain", "proved_own", "false")
_QUANTILES = (0.5, 0.9, 0.99)
BINS = (0.0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98, 1.0)
_ENDS = ("", "_lower", "_upper", "_like_lower", "_like_upper")
_COLUMNS = [
    *KEYS, "group", "targets", "people", "left_out", "unstated", "places", "releases", "randomised",
    *(f"answers_{name}{end}" for name in THREE for end in _ENDS),
    *(f"{name}_factor{end}" for name in ("others", "own") for end in _ENDS[:3]),
    "error_people", "error_releases", "error_chains",
    *(f"{name}{end}" for name in AFFECTED for end in _ENDS[:3]), "brier",
    *(f"ratio_{round(100 * share)}" for share in _QUANTILES),
    *(f"believed_{name}" for name in THREE), "gain", "gain_lower", "gain_upper",
    *(f"right_{name}" for name in THREE),
]  # fmt: skip
_BINNED = [
    *KEYS, "from", "to", "statements", "posterior", "correct", "correct_lower", "correct_upper",
]  # fmt: skip
FLOOR = 1e-3
_FLAGS = ("correct", "nonmodal", "randomised")
_TIE = 1e-12
UNEXPLAINED = 0.5  # of beliefs: with more, no protection is judged by a model
_CERTAIN = 1.0 - 1e-12
_LIKELIHOOD = READINGS[0]
#: How a release is read with the best model of how it was made: one of these for each release.
BEST_READINGS = ("likelihood", "swap-aware", "working-error")


# The beliefs of each adversary in what is true of each person.


def audit_targets(statements: pd.DataFrame) -> pd.DataFrame:
    """Return each adversary's belief in the truth about each target, for each release.

    Parameters
    ----------
    statements : pandas.DataFrame
        Statements of an audit, with those of one target together.

    Returns
    -------
    pandas.DataFrame
        A row for each ``protection, attack, adversary, release, target``, with ``place``. Each of
        the three beliefs has three columns. ``right_*`` says whether the most probable statement is
        true, as a share if several are equally probable. ``truth_*`` is the probability of the true
        statement. ``certain_*`` says whether it is certain: 1 within 1e-12, and not an estimate.
        ``false`` says whether a false statement is certain. ``brier`` is the sum over statements of
        the squared difference of ``posterior`` and truth. ``error`` is the Monte Carlo standard
        error of ``truth_posterior`` less ``truth_without``. ``status``, ``randomised`` and the
        columns that define groups follow. Targets without a posterior (``undecided``) have the
        prior only.

    Examples
    --------
    >>> rows = pd.DataFrame({
    ...     "protection": "none", "attack": "likelihood", "adversary": "outsider", "release": 0,
    ...     "randomised": False, "target": ["7", "7"], "statement": ["a", "b"],
    ...     "prior": [0.5, 0.5], "without": [0.4, 0.6], "posterior": [0.9, 0.1],
    ...     "without_error": 0.0, "posterior_error": 0.0, "correct": [True, False],
    ...     "status": "calculated", "place": "1", "place_size": 12, "alike": 3, "nonmodal": False,
    ... })
    >>> targets = audit_targets(rows)
    >>> targets[["truth_prior", "truth_without", "truth_posterior"]].values.tolist()
    [[0.5, 0.4, 0.9]]
    """
    return believed_targets(statements, "statements")


def believed_targets(statements: pd.DataFrame, source: str) -> pd.DataFrame:
    """Return the targets of checked statements; ``source`` names the argument in errors."""
    errors = ("without_error", "posterior_error")
    frame = whole_columns(
        statements,
        source,
        (*KEYS, "target", "status", "place"),
        ("release", *THREE, *errors, "place_size", "alike", "correct", "nonmodal", "randomised"),
    )
    number = frame.groupby(BELIEF, sort=False).ngroup().to_numpy()
    size = int(number.max()) + 1 if number.size else 0
    first = np.unique(number, return_index=True)[1]
    columns = ["place", "place_size", "alike", "nonmodal", "status", "randomised"]
    targets = frame.iloc[first][[*BELIEF, *columns]].reset_index(drop=True)
    correct = frame["correct"].to_numpy(np.bool_)
    decided = ~targets["status"].isin(OPEN).to_numpy(np.bool_)
    square = np.zeros(size)
    for name in THREE:
        value = frame[name].to_numpy(np.float64)
        best = np.full(size, -np.inf)
        np.fmax.at(best, number, value)
        guessed = value >= best[number] - _TIE
        ways = np.bincount(number, guessed, minlength=size)
        hits = np.bincount(number, guessed & correct, minlength=size)
        right = np.divide(hits, ways, out=np.full(size, np.nan), where=ways > 0)
        truth = np.bincount(number, np.where(correct, value, 0.0), minlength=size)
        available = (name == "prior") | decided
        targets[f"right_{name}"] = np.where(available, right, np.nan)
        targets[f"truth_{name}"] = np.where(available, truth, np.nan)
        if name != "prior":
            error = frame[f"{name}_error"].to_numpy(np.float64)
            sure = (value >= _CERTAIN) & (error == 0.0) & decided[number]
            certain = np.bincount(number, sure & correct, minlength=size) > 0
            targets[f"certain_{name}"] = certain
            square += np.bincount(number, np.where(correct, error, 0.0) ** 2, minlength=size)
            if name == "posterior":
                targets["false"] = np.bincount(number, sure & ~correct, minlength=size) > 0
                off = np.bincount(number, (value - correct) ** 2, minlength=size)
                targets["brier"] = np.where(decided, off, np.nan)
    targets["error"] = np.where(decided, np.sqrt(square), np.nan)
    return targets


def whole_columns(
    frame: pd.DataFrame, name: str, texts: Sequence[str], wanted: Sequence[str]
) -> pd.DataFrame:
    """Return the required columns, as texts and (``wanted``) as numbers."""
    frame = check.frame(frame, name, (*texts, *wanted))
    columns: dict[str, Any] = {column: frame[column].astype("str") for column in texts}
    for column in wanted:
        columns[column] = numbers(frame, column, name)
        if column in _FLAGS and np.isnan(columns[column]).any():
            raise DataError(f"{name}: column {column!r} must be true or false, got none")
        if column == "release":
            columns[column] = columns[column].astype(np.int64)
    return pd.DataFrame(columns, index=frame.index)


# Means over people and releases, with their errors.


@dataclass(frozen=True, eq=False)
class Sample:
    """The sampled people and the number of releases of a protection.

    ``share`` of the population is among them, drawn without replacement; ``places`` are the numbers
    of the places where they live.  Under a protection that is not ``randomised`` there is one
    release, and no other could be.
    """

    places: IntArray  # (people,)
    releases: int
    share: float
    randomised: bool

    def variances(self, values: FloatArray, error: FloatArray | None) -> list[tuple[float, float]]:
        """Return variances of a mean of values (people, releases), with degrees of freedom.

        The first is that of drawing people. The second is that of releases, or of chains if there
        is one release and no other is possible.
        """
        people, m = values.shape
        sampling = 0.0
        if self.share < 1.0:
            spread = values.mean(axis=1).var(ddof=1) if people > 1 else np.inf
            sampling = float(spread) * (1.0 - self.share) / people
        if not self.randomised:
            return [(sampling, people - 1.0), (self.chains(error), np.inf)]
        spread = values.mean(axis=0).var(ddof=1) if m > 1 else np.inf
        return [(sampling, people - 1.0), (float(spread) / m, m - 1.0)]

    def interval(
        self, values: FloatArray, error: FloatArray | None, confidence: float, *, bound: float = 1.0
    ) -> tuple[float, float]:
        r"""Return the interval of this population's mean of values (people, releases).

        Its variance has two parts. One is that of the means :math:`G_r` of single releases,
        :math:`s^2(G) / m`. If n of N people are targets, the other is that of drawing them,
        :math:`(1 - n / N) s^2 / n`. For a protection that is not randomised, the errors of chains
        (people, releases) replace the first. It is NaN if releases or people are too few for a
        bound, and the value itself if exact. If all targets agree, as many of the others may differ
        as the sample can have missed. ``confidence`` is the probability that the interval holds the
        true mean.
        """
        mean, parts = float(values.mean()), self.variances(values, error)
        variance = sum(part for part, _ in parts)
        if not self.randomised and variance == 0.0:
            if self.share == 1.0:
                return mean, mean
            if np.isinf(bound) or not np.isfinite(mean):
                return np.nan, np.nan
            # All who were asked agree: as many of the others may be as far off as can be.
            n = len(values)
            everybody = round(n / self.share)
            unseen = number_interval((0, 0), n, everybody, confidence=confidence)[1] / everybody
            return mean - unseen * (mean + bound), mean + unseen * (bound - mean)
        return ends(mean, variance, satterthwaite(parts), confidence, bound=bound)

    def number(
        self, values: FloatArray, drawn_people: int, confidence: float
    ) -> tuple[float, float]:
        """Return the interval of the number of affected people in this population.

        ``values`` (people, releases) are 1 for affected people, and 0. ``drawn_people`` are all
        targets, these people and those of other groups: the size of a group is unknown, that of
        everybody is known. ``confidence`` is the probability that the interval holds the number.
        """
        everybody, people = round(drawn_people / self.share), round(len(values) / self.share)
        if self.randomised or self.share == 1.0:
            low, high = self.interval(values, None, confidence)
            return people * max(low, 0.0), people * min(high, 1.0)
        # Of an estimate that is between two numbers, the wider interval.
        total = round(float(values.mean(axis=1).sum()), 6)
        hits = math.floor(total), math.ceil(total)
        low, high = number_interval(hits, drawn_people, everybody, confidence=confidence)
        return float(low), float(high)

    def chains(self, error: FloatArray | None) -> float:
        """Return the variance of the mean from Monte Carlo errors, which places may share."""
        if error is None:
            return 0.0
        number = int(self.places.max()) + 1
        sums = [np.bincount(self.places, column, number) for column in error.T]
        return float((np.array(sums) ** 2).sum()) / error.size**2

    def wide_interval(
        self, values: FloatArray, confidence: float, *, bound: float = 1.0
    ) -> tuple[float, float]:
        """Return the interval, of a ``confidence``, of the mean for populations like this one."""
        variance, freedom = self.wide_variance(values)
        return ends(float(values.mean()), variance, freedom, confidence, bound=bound)

    def wide_variance(self, values: FloatArray) -> tuple[float, float]:
        r"""Return the mean's variance over populations like this one, and its degrees of freedom.

        Places vary as well as releases. Residuals are summed over a place, over a release, and over
        a place in a release. The variance is that of places plus that of releases less that of both
        (Cameron, Gelbach and Miller 2011). A place with a large share h of all people pulls the
        mean towards itself. So its residual is divided by :math:`\sqrt{1 - h}` (Bell and McCaffrey
        2002). The variance is infinite for a single place, or for one release of many.
        """
        people, m = values.shape
        rest = values - values.mean()
        sizes = np.bincount(self.places).astype(float)
        if sizes.size < 2 or (self.randomised and m < 2):
            return np.inf, 1.0
        cluster_sums = np.array([np.bincount(self.places, column, sizes.size) for column in rest.T])
        cluster_sums /= np.sqrt(1.0 - sizes / people)
        place_variance = (cluster_sums.sum(axis=0) ** 2).sum()
        freedom = [(place_variance, max((sizes**2).sum() ** 2 / (sizes**4).sum() - 1.0, 1.0))]
        if self.randomised:
            chance = (rest.sum(axis=0) ** 2).sum() * m / (m - 1)
            more = max(chance - (cluster_sums**2).sum(), 0.0)
            freedom.append((more, m - 1.0))
        variance = sum(part for part, _ in freedom)
        return float(variance) / values.size**2, satterthwaite(freedom)


def satterthwaite(parts: Sequence[tuple[float, float]]) -> float:
    """Return the degrees of freedom of a sum of (variance, degrees of freedom)."""
    whole = sum(variance for variance, _ in parts)
    if not 0.0 < whole < np.inf:
        return 1.0
    inverse = sum((variance / whole) ** 2 / max(freedom, 1.0) for variance, freedom in parts)
    return 1.0 / inverse if inverse > 0.0 else np.inf


def ends(
    mean: float, variance: float, freedom: float, confidence: float, *, bound: float = 1.0
) -> tuple[float, float]:
    """Return the ends of a Student interval, or NaN where it is not informative.

    ``confidence`` is the probability that the interval holds the true mean. An interval is not
    informative if it exceeds the possible range on both sides, or if values that could vary do not.
    """
    reach = float(stdtrit(freedom, 0.5 + confidence / 2.0) * np.sqrt(variance))
    if not 0.0 < reach < np.inf or variance <= (_TIE * (1.0 + abs(mean))) ** 2:
        return np.nan, np.nan
    if mean - reach < -bound and mean + reach > bound:
        return np.nan, np.nan
    return max(mean - reach, -bound), min(mean + reach, bound)


def widest_interval(targets: pd.DataFrame, *, share: float) -> float:
    """Return the largest half-width of mean gains over all adversaries and protections.

    Intervals have a confidence of 95 %; ``share`` of the population are targets, and releases are
    read with the best model of each.
    """
    rows = targets[compared_targets(targets) & targets["attack"].isin(BEST_READINGS).to_numpy()]
    widest = 0.0
    for _, group in rows.groupby(KEYS, sort=False):
        value = by_people(group)
        parts = value.sample(share).variances(value.gain, value.gain_error)
        reach = stdtrit(satterthwaite(parts), 0.975)
        widest = max(widest, float(reach * np.sqrt(sum(variance for variance, _ in parts))))
    return widest


def compared_targets(targets: pd.DataFrame) -> BoolArray:
    """Return a mask of rows whose target has a decided answer in all comparisons.

    Targets are compared under all releases, and all readings of a release answer one question.
    Another attack asks another question, perhaps about other targets, and is compared only with
    itself.
    """
    attack = targets["attack"]
    question = attack.where(~attack.isin(READINGS), _LIKELIHOOD)
    keys = [targets["adversary"], question, targets["target"]]
    decided = ~targets["status"].isin(OPEN)
    # Whoever decides nobody at all has no row, and shall not take those of others away.
    any_decided = decided.groupby([targets[name] for name in KEYS]).transform("any")
    compared = (decided | ~any_decided).groupby(keys).transform("all")
    return np.asarray(compared & decided, np.bool_)


def matrices(rows: pd.DataFrame, *names: str) -> tuple[pd.DataFrame, list[FloatArray]]:
    """Return a frame with one row per target, and columns as arrays (targets, releases).

    Refuse rows of which a target has not one for each release.
    """
    targets, number = np.unique(rows["target"].to_numpy(str), return_inverse=True)
    releases, column = np.unique(rows["release"].to_numpy(), return_inverse=True)
    if len(rows) != targets.size * releases.size or np.any(
        np.bincount(number * releases.size + column, minlength=len(rows)) != 1
    ):
        raise DataError(
            "statements: every target must be asked about once under every release of "
            f"{rows['protection'].iloc[0]!r}, got {len(rows)} rows of {targets.size} targets and "
            f"{releases.size} releases"
        )
    order = np.lexsort((column, number))
    shape = targets.size, releases.size
    values = [rows[name].to_numpy(np.float64)[order].reshape(shape) for name in names]
    return rows.iloc[order[:: releases.size]], values


def audit_measures(
    targets: pd.DataFrame, *, people: int | None = None, confidence: float = 0.95
) -> pd.DataFrame:
    r"""Return measures for each protection: remaining answers, gains, and people affected.

    All comparisons are about the same people. An adversary's row is about the targets with a
    posterior under every protection, release and reading.

    Parameters
    ----------
    targets : pandas.DataFrame
        As :func:`audit_targets` gives them.
    people : int, optional
        Size of the population from which the targets were drawn; by default the targets are all.
    confidence : float in (0, 1), default 0.95

    Returns
    -------
    pandas.DataFrame
        A row for each ``protection, attack, adversary`` and ``group``, with the columns of
        ``measures.csv`` on the reference page of audits. ``answers_posterior`` is infinite if the
        truth was held impossible. If no draw of a chain had the truth, its probability counts as
        0.001. Ends of an interval are missing if releases, people or places are too few.

    Notes
    -----
    For this population, releases vary, and so does the choice of targets unless everybody is one.
    For populations like it, places vary too (``Sample``). Intervals of answers and factors are
    those of mean logarithms. ``gain``, the mean of ``posterior`` less ``without``, is the measure
    for an adversary who knows everybody else. For other adversaries it ranks nothing: coarser
    tables teach less about everybody else too, so it may rise.

    Examples
    --------
    >>> targets = pd.DataFrame({
    ...     "protection": "noise", "attack": "likelihood", "adversary": "outsider",
    ...     "release": [0, 1, 0, 1], "randomised": True, "target": ["7", "7", "8", "8"],
    ...     "place": "1", "place_size": 12, "alike": 3, "nonmodal": False, "status": "calculated",
    ...     "truth_prior": 0.25, "truth_without": [0.25, 0.5, 0.25, 0.5],
    ...     "truth_posterior": [0.5, 0.75, 0.75, 0.75], "error": 0.0, "right_prior": 0.5,
    ...     "right_without": 0.5, "right_posterior": 1.0, "certain_without": False,
    ...     "certain_posterior": False, "false": False, "brier": [0.5, 0.125, 0.125, 0.125],
    ... })
    >>> found = audit_measures(targets).loc[0, ["answers_without", "answers_posterior", "doubled"]]
    >>> found.round(3).tolist()
    [2.828, 1.476, 1.0]
    """
    level = check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    flags = ("certain_without", "certain_posterior", "false")
    values = [f"{kind}_{name}" for kind in ("right", "truth") for name in THREE]
    numbers = (
        "release", *values, *flags, "brier", "error", "place_size", "alike", "nonmodal",
        "randomised",
    )  # fmt: skip
    frame = whole_columns(targets, "targets", (*KEYS, "place", "target", "status"), numbers)
    share, drawn_people = share_asked(frame, people), frame["target"].nunique()
    frame["compared"] = compared_targets(frame)
    lines = []
    for key, rows in frame.groupby(KEYS, sort=False):
        for group, member in _groups(rows).items():
            compared = rows[member & rows["compared"].to_numpy()]
            if len(compared):
                releases = compared["release"].nunique()
                line = {**dict(zip(KEYS, key, strict=True)), "group": group}
                line["left_out"] = int(np.count_nonzero(member)) // releases - (
                    len(compared) // releases
                )
                lines.append(line | _measures(compared, share, drawn_people, level))
    return pd.DataFrame(lines, columns=_COLUMNS) if lines else empty_frame(_COLUMNS, TEXTS)


def unexplained(measures: pd.DataFrame) -> pd.Series:
    """Return a mask of readings whose model explains the tables for too few people."""
    return measures["attack"].isin(READINGS) & (measures["unstated"] > UNEXPLAINED)


def share_asked(targets: pd.DataFrame, people: int | None) -> float:
    """Return the share of the population that are targets, or 1 if its size is unknown."""
    number = targets["target"].nunique()
    if people is None or not number:
        return 1.0
    return float(number / check.integer(people, "people", lower=number))


def _groups(rows: pd.DataFrame) -> dict[str, BoolArray]:
    size = rows["place_size"].to_numpy()
    size_class = np.searchsorted(_SIZES, size, side="right")
    everybody = np.ones(len(rows), np.bool_)
    members = [
        everybody, rows["nonmodal"].to_numpy(np.bool_), rows["alike"].to_numpy() == 1,
        *(size_class == i for i in range(len(_SIZES) + 1)),
    ]  # fmt: skip
    return dict(zip(GROUPS, members, strict=True))


def _measures(
    rows: pd.DataFrame, share: float, drawn_people: int, confidence: float
) -> dict[str, object]:
    """Return the measures of a group of people under all releases of one protection."""
    value = by_people(rows)
    sample, people = value.sample(share), round(len(value.units) / share)
    line: dict[str, object] = {
        "unstated": float((rows["status"] == UNSTATED).mean()),
        "targets": len(value.units), "people": people, "places": int(value.places.max()) + 1,
        "releases": sample.releases, "randomised": value.randomised,
    }  # fmt: skip
    for name in THREE:
        line[f"believed_{name}"] = float(rows[f"truth_{name}"].mean())
        line[f"right_{name}"] = float(rows[f"right_{name}"].mean())
        chains = None if name == "prior" else value.error
        limits = _mean_of_logs(sample, -value.score[name], chains, confidence)
        line |= dict(zip((f"answers_{name}{end}" for end in _ENDS), limits, strict=True))
    for part, (before, after) in {"others": THREE[:2], "own": THREE[1:]}.items():
        step = _less(value.score[before], value.score[after])
        limits = _mean_of_logs(sample, step, value.error, confidence, least=-np.inf)[:3]
        line |= dict(zip((f"{part}_factor{end}" for end in _ENDS[:3]), limits, strict=True))
    score = value.score["posterior"]
    parts = [0.0] * 3
    if np.isfinite(score).all():
        sampling, chance = (variance for variance, _ in sample.variances(score, value.error))
        parts = np.sqrt([sampling, chance, sample.chains(value.error)]).tolist()
    line |= dict(zip(("error_people", "error_releases", "error_chains"), parts, strict=True))
    line["gain"] = float(value.gain.mean())
    line["gain_lower"], line["gain_upper"] = sample.interval(
        value.gain, value.gain_error, confidence
    )
    for name in AFFECTED:
        low, high = sample.number(value.affected[name], drawn_people, confidence)
        line |= {f"{name}_lower": low, f"{name}_upper": high}
        line[name] = people * float(value.affected[name].mean())
    line["brier"] = float(rows["brier"].mean())
    sorted_ = np.sort(value.ratio[~np.isnan(value.ratio)])
    for quantile in _QUANTILES:  # of infinite ratios there is no average: one that occurs
        index = int(np.ceil(quantile * sorted_.size)) - 1
        one = float(sorted_[index]) if sorted_.size else np.nan
        line[f"ratio_{round(100 * quantile)}"] = one
    return line


@dataclass(frozen=True, eq=False)
class ByPeople:
    """Values (people, releases) under one protection, by one reading of an adversary.

    ``score`` has logarithms of the three probabilities of the truth, and ``error`` the errors of
    their differences by chains. ``affected`` is 1 for people who are doubled, proved and so on.
    """

    units: pd.DataFrame
    randomised: bool
    score: dict[str, FloatArray]
    error: FloatArray
    gain: FloatArray
    gain_error: FloatArray
    ratio: FloatArray
    affected: dict[str, FloatArray]

    @functools.cached_property
    def places(self) -> IntArray:
        """Number of the place of each person."""
        return place_numbers(self.units["place"])

    def sample(self, share: float) -> Sample:
        """Return the people and releases as a sample of a population."""
        return Sample(self.places, self.gain.shape[1], share, self.randomised)


def by_people(rows: pd.DataFrame) -> ByPeople:
    """Return the values by people for one protection and one reading of an adversary."""
    certain = rows["certain_posterior"].to_numpy(np.bool_)
    # Under noise everything is possible, however close to 1 a calculated probability may come.
    law = (rows["attack"] == _LIKELIHOOD) & (rows["status"] == "calculated")
    proof = (rows["status"] == "proved") | (law & (rows["randomised"] == 0.0))
    proved = certain & proof.to_numpy(np.bool_)
    by_record = proved & ~rows["certain_without"].to_numpy(np.bool_)
    flags = {"certain": certain, "proved": proved, "proved_own": by_record, "false": rows["false"]}
    scores = {f"score_{name}": log_score(rows, name) for name in THREE}
    truth = [f"truth_{name}" for name in THREE[1:]]
    units, (without, posterior, gain_error, *more) = matrices(
        rows.assign(**flags, **scores), *truth, "error", *scores, *flags
    )
    ratio = risk_ratio(posterior, without)
    with np.errstate(invalid="ignore"):
        twice, ten = ((ratio >= factor).astype(float) for factor in (2.0, 10.0))
    affected = {"doubled": twice, "tenfold": ten, **dict(zip(flags, more[3:], strict=True))}
    error = gain_error / np.maximum(posterior, FLOOR)  # d log q = d q / q
    score = dict(zip(THREE, more[:3], strict=True))
    random = bool(rows["randomised"].iloc[0])
    return ByPeople(units, random, score, error, posterior - without, gain_error, ratio, affected)


def _less(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return the difference of scores, 0 where both are the same infinity."""
    with np.errstate(invalid="ignore"):
        return np.where(one == other, 0.0, one - other)


def _mean_of_logs(
    sample: Sample, values: FloatArray, error: FloatArray | None, confidence: float, *,
    least: float = 0.0,
) -> list[float]:  # fmt: skip
    """Return exp of a mean of logarithms, with its intervals here and in similar populations.

    NaN if there are infinite logarithms of both signs.
    """
    with np.errstate(invalid="ignore"):
        mean = float(values.mean())
    limits = [mean, mean, mean, mean, mean]
    if np.isfinite(mean):
        near = sample.interval(values, error, confidence, bound=np.inf)
        wide = sample.wide_interval(values, confidence, bound=np.inf)
        limits = [mean, *(max(end, least) for end in (*near, *wide))]
    return [float(end) for end in np.exp(limits)]


def place_numbers(places: pd.Series) -> IntArray:
    """Return each place's index among the sorted names."""
    return np.unique(places.to_numpy(), return_inverse=True)[1].astype(np.int64)


def log_score(rows: pd.DataFrame, belief: str = "posterior") -> FloatArray:
    """Return the log probability of each target's true statement."""
    truth = rows[f"truth_{belief}"].to_numpy(np.float64)
    unseen = (truth == 0.0) & (rows["status"] == "sampled").to_numpy()
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.where(unseen, FLOOR, truth)))


def clustered_mean(
    values: FloatArray, places: IntArray, confidence: float, *, bound: float = 1.0
) -> tuple[float, float, float]:
    """Return the mean of values and its interval, with places as independent units.

    ``confidence`` is 1 - alpha, the probability that the interval holds the true mean.

    If places do not differ, a share of 1 - (alpha / 2)**(1 / places) of the values may be at the
    other extreme: that many places may all miss it. Places of different sizes count as fewer.
    Without bounds on the values there is no interval.
    """
    mean, number = float(values.mean()), int(places.max()) + 1
    if not np.isfinite(mean):
        return mean, mean, bound
    if number < 2:
        return mean, -bound, bound
    off = np.bincount(places, values - mean, minlength=number)
    error = float(np.sqrt((off**2).sum() * number / (number - 1))) / values.size
    reach = float(stdtrit(number - 1, 0.5 + confidence / 2.0)) * error
    if error > _TIE * (1.0 + abs(mean)):
        return mean, max(mean - reach, -bound), min(mean + reach, bound)
    if np.isinf(bound):
        return mean, -bound, bound
    worth = values.size**2 / float((np.bincount(places) ** 2).sum())
    unseen = 1.0 - ((1.0 - confidence) / 2.0) ** (1.0 / worth)
    return mean, mean - unseen * (mean + bound), mean + unseen * (bound - mean)


# How often statements of a probability are true.


def audit_calibration(statements: pd.DataFrame, *, confidence: float = 0.95) -> pd.DataFrame:
    """Return the share of statements that are true, by the probability stated.

    Parameters
    ----------
    statements : pandas.DataFrame
        Statements of an audit.
    confidence : float, default 0.95
        Confidence of the intervals, whose units are places.

    Returns
    -------
    pandas.DataFrame
        A row for each ``protection, attack, adversary`` and nonempty bin of probabilities. It has
        the number of ``statements``, their mean ``posterior``, the share that is true (``correct``)
        and its interval.

    Examples
    --------
    >>> rows = pd.DataFrame({
    ...     "protection": "none", "attack": "likelihood", "adversary": "outsider",
    ...     "target": ["7", "7"], "statement": ["a", "b"], "prior": [0.5, 0.5],
    ...     "without": [0.4, 0.6], "posterior": [0.9, 0.1], "correct": [True, False],
    ...     "status": "calculated", "place": "1", "place_size": 12, "alike": 3, "nonmodal": False,
    ... })
    >>> audit_calibration(rows)[["from", "to", "statements", "correct"]].values.tolist()
    [[0.1, 0.3, 1.0, 0.0], [0.9, 0.98, 1.0, 1.0]]
    """
    level = check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    # What is kept for its truth alone would count as a miss of a belief that nobody holds.
    whole = whole_columns(statements, "statements", (*KEYS, "status", "place"), (*THREE, "correct"))
    believed = whole[list(THREE)].max(axis=1) >= FLOOR
    frame = whole[believed & ~whole["status"].isin(OPEN)]
    lines = []
    for key, rows in frame.groupby(KEYS, sort=False):
        for part, members in binned(rows["posterior"]):
            bin_rows = rows[members]
            truth, posterior = bin_rows["correct"], bin_rows["posterior"].mean()
            interval = clustered_interval(truth, bin_rows["place"], confidence=level)
            limits = BINS[part], BINS[part + 1], len(bin_rows)
            lines.append((*key, *limits, posterior, truth.mean(), *interval))
    return pd.DataFrame(lines, columns=_BINNED) if lines else empty_frame(_BINNED, TEXTS)


def binned(probability: pd.Series) -> list[tuple[int, BoolArray]]:
    """Return the non-empty bins: each one's number, and a mask of its members."""
    part = np.searchsorted(BINS[1:-1], probability.to_numpy(np.float64), side="right")
    return [(int(one), part == one) for one in np.unique(part)]


def empty_frame(columns: Sequence[str], kinds: Mapping[str, str]) -> pd.DataFrame:
    """Return a frame without rows, with columns of the given types (default: numbers)."""
    return pd.DataFrame({name: pd.Series(dtype=kinds.get(name, "float64")) for name in columns})


# What a protection costs.


def costs(errors: pd.DataFrame) -> pd.DataFrame:
    """Return each protection's mean error of a count, and its share of withheld counts.

    ``errors`` has a row for each ``protection, release, level, table``. ``error`` is the mean
    absolute error of a reader's best value of a count, and ``withheld`` the share of withheld
    counts. The result has their means over tables and releases for each ``protection``. It also has
    a 95 % interval over releases, ``error_lower`` to ``error_upper``, missing if there is one
    release.

    Examples
    --------
    >>> errors = pd.DataFrame({
    ...     "protection": "noise", "release": [0, 1], "level": "block", "table": "a",
    ...     "error": [1.0, 2.0], "withheld": 0.0,
    ... })
    >>> costs(errors)[["protection", "error", "withheld"]].values.tolist()
    [['noise', 1.5, 0.0]]
    """
    names = ("protection", "level", "table"), ("release", "error", "withheld")
    frame = whole_columns(errors, "errors", *names)
    lines = []
    for name, rows in frame.groupby("protection", sort=False):
        means = rows.groupby("release")["error"].mean().to_numpy()
        mean, m = float(means.mean()), means.size
        low = high = np.nan
        if m > 1:
            low, high = ends(mean, float(means.var(ddof=1)) / m, m - 1.0, 0.95, bound=np.inf)
        line = {"protection": name, "error": mean, "error_lower": low, "error_upper": high}
        lines.append(line | {"withheld": float(rows["withheld"].mean())})
    return pd.DataFrame(lines)
