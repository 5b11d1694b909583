"""Measures of an audit: belief in the truth, and how much of it is due to people's own records.

Of a target t under release r, let q be the probability that an adversary gives to the statement
that is true of t: before any release, after a release without t's own record, and after release r.
The gain from the own record is the third less the second,

    d_tr = q(t | release r) - q(t | release r without t's record),

and an audit estimates its mean over people and over releases.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from bayesrisk import _validation as check
from bayesrisk._validation import BoolArray, FloatArray, IntArray
from bayesrisk.exceptions import DataError
from bayesrisk.risk.audit.adversaries import READINGS, UNSTATED
from bayesrisk.risk.intervals import clustered_interval
from bayesrisk.risk.statements.claims import OPEN, numbers, risk_ratio

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
_QUANTILES = (0.5, 0.9, 0.99)
BINS = (0.0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98, 1.0)
_COLUMNS = [
    *KEYS, "group", "targets", "people", "left_out", "unstated", "places", "releases", "randomised",
    *(f"believed_{name}" for name in THREE),
    "gain", "gain_lower", "gain_upper", "like_lower", "like_upper",
    "error_people", "error_releases", "error_chains",
    "doubled", "doubled_lower", "doubled_upper", "tenfold", "certain", "proved", "proved_own",
    "false", *(f"ratio_{round(100 * share)}" for share in _QUANTILES),
    *(f"right_{name}" for name in THREE), "log_score", "log_score_lower", "log_score_upper",
]  # fmt: skip
_BINNED = [
    *KEYS, "from", "to", "statements", "posterior", "correct", "correct_lower", "correct_upper",
]  # fmt: skip
FLOOR = 1e-3
_FLAGS = ("correct", "nonmodal", "randomised")
_TIE = 1e-12
_UNEXPLAINED = 0.5  # of beliefs: with more, no protection is judged by a model
_CERTAIN = 1.0 - 1e-12
_LIKELIHOOD = READINGS[0]
#: How a release is read with the best model of how it was made: one of these for each release.
BEST_READINGS = ("likelihood", "swap-aware", "working-error")


# -----------------------------------------------------------------------------
# The beliefs of each adversary in what is true of each person.


def audit_targets(statements: pd.DataFrame) -> pd.DataFrame:
    """Return the beliefs of each adversary in what is true of each target, for each release.

    Parameters
    ----------
    statements : pandas.DataFrame
        Statements of an audit, those of one target together.

    Returns
    -------
    pandas.DataFrame
        A row for each ``protection, attack, adversary, release, target``, with ``place``; for each
        of the three beliefs ``right_*`` (whether the most probable statement is true; a share where
        several are as probable), ``truth_*`` (the probability of the true one) and
        ``certain_*`` (whether it is certain: 1 but for 1e-12, and no estimate); ``false`` (whether
        something that is not true is certain); ``error`` (Monte Carlo standard error of
        ``truth_posterior`` less ``truth_without``); ``status``; ``randomised``; and what groups are
        made of.  Of targets without a posterior (``undecided``) only the prior is there.

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
    return _targets(statements, "statements")


def _targets(statements: pd.DataFrame, source: str) -> pd.DataFrame:
    """Return the targets of statements, which an argument of a name gave."""
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
    targets["error"] = np.where(decided, np.sqrt(square), np.nan)
    return targets


def whole_columns(
    frame: pd.DataFrame, name: str, texts: Sequence[str], wanted: Sequence[str]
) -> pd.DataFrame:
    """Return the columns that are needed, as texts and (``wanted``) as numbers."""
    frame = check.frame(frame, name, (*texts, *wanted))
    columns: dict[str, Any] = {column: frame[column].astype("str") for column in texts}
    for column in wanted:
        columns[column] = numbers(frame, column, name)
        if column in _FLAGS and np.isnan(columns[column]).any():
            raise DataError(f"{name}: column {column!r} must be true or false, got none")
        if column == "release":
            columns[column] = columns[column].astype(np.int64)
    return pd.DataFrame(columns, index=frame.index)


# -----------------------------------------------------------------------------
# Means over people and releases, with their errors.


@dataclass(frozen=True, eq=False)
class Sample:
    """The people who were asked about, under the releases of a protection.

    ``share`` of the population is among them, drawn without replacement; ``places`` are the numbers
    of the places where they live.  Under a protection that is not ``randomised`` there is one
    release, and no other could be.
    """

    places: IntArray  # (people,)
    releases: int
    share: float
    randomised: bool

    def variances(self, values: FloatArray, error: FloatArray | None) -> list[tuple[float, float]]:
        """Return variances of the mean of values (people, releases), with degrees of freedom.

        The first is that of drawing people, the second that of releases, or of chains where there
        is one release and no other could be.
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
        r"""Return the interval of the mean of values (people, releases) of this population.

        Its variance has two parts: that of the means :math:`G_r` of single releases,
        :math:`s^2(G) / m`, and where n of N people were asked that of drawing them,
        :math:`(1 - n / N) s^2 / n`.  Of a protection that is not randomised the errors of chains
        (people, releases) stand for the first.  NaN where so few releases or people bound nothing;
        the value itself where it is exact.
        """
        mean, parts = float(values.mean()), self.variances(values, error)
        variance = sum(part for part, _ in parts)
        if not self.randomised and variance == 0.0:
            return mean, mean
        return ends(mean, variance, satterthwaite(parts), confidence, bound=bound)

    def chains(self, error: FloatArray | None) -> float:
        """Return the variance of the mean by chains, whose errors in a place may be the same."""
        if error is None:
            return 0.0
        number = int(self.places.max()) + 1
        sums = [np.bincount(self.places, column, number) for column in error.T]
        return float((np.array(sums) ** 2).sum()) / error.size**2

    def wide_interval(self, values: FloatArray, confidence: float) -> tuple[float, float]:
        r"""Return the interval of the mean of values for populations like this one.

        Places vary as well as releases.  With residuals summed over a place, over a release, and
        over a place in a release, the variance is that of places plus that of releases less that
        of both (Cameron, Gelbach and Miller 2011).  A residual of a place with a share h of all
        people is divided by :math:`\sqrt{1 - h}`, as a large one pulls the mean towards itself
        (Bell and McCaffrey 2002).
        """
        people, m = values.shape
        rest = values - values.mean()
        sizes = np.bincount(self.places).astype(float)
        if sizes.size < 2 or (self.randomised and m < 2):
            return np.nan, np.nan
        cluster_sums = np.array([np.bincount(self.places, column, sizes.size) for column in rest.T])
        cluster_sums /= np.sqrt(1.0 - sizes / people)
        place_variance = (cluster_sums.sum(axis=0) ** 2).sum()
        freedom = [(place_variance, max((sizes**2).sum() ** 2 / (sizes**4).sum() - 1.0, 1.0))]
        if self.randomised:
            chance = (rest.sum(axis=0) ** 2).sum() * m / (m - 1)
            more = max(chance - (cluster_sums**2).sum(), 0.0)
            freedom.append((more, m - 1.0))
        variance = sum(part for part, _ in freedom)
        return ends(
            float(values.mean()), variance / values.size**2, satterthwaite(freedom), confidence
        )


def satterthwaite(parts: Sequence[tuple[float, float]]) -> float:
    """Return the degrees of freedom of a sum of variances, each with its own."""
    whole = sum(variance for variance, _ in parts)
    if not 0.0 < whole < np.inf:
        return 1.0
    inverse = sum((variance / whole) ** 2 / max(freedom, 1.0) for variance, freedom in parts)
    return 1.0 / inverse if inverse > 0.0 else np.inf


def ends(
    mean: float, variance: float, freedom: float, confidence: float, *, bound: float = 1.0
) -> tuple[float, float]:
    """Return the ends of a Student interval; NaN where it says nothing.

    That is where it reaches beyond what the quantity can be on either side, and where what was seen
    does not vary although it may.
    """
    reach = float(stdtrit(freedom, 0.5 + confidence / 2.0) * np.sqrt(variance))
    if not 0.0 < reach < np.inf or variance <= (_TIE * (1.0 + abs(mean))) ** 2:
        return np.nan, np.nan
    if mean - reach < -bound and mean + reach > bound:
        return np.nan, np.nan
    return max(mean - reach, -bound), min(mean + reach, bound)


def widest_interval(targets: pd.DataFrame, *, share: float) -> float:
    """Return the largest half-width of the gain of everybody, of all who ask and protections.

    It is that of 95 % intervals; ``share`` of the population are targets, and releases are read
    with the best model of each.
    """
    rows = targets[compared_targets(targets) & targets["attack"].isin(BEST_READINGS).to_numpy()]
    widest = 0.0
    for _, group in rows.groupby(KEYS, sort=False):
        units, (without, posterior, error) = matrices(
            group, "truth_without", "truth_posterior", "error"
        )
        random = bool(group["randomised"].iloc[0])
        sample = Sample(place_numbers(units["place"]), without.shape[1], share, random)
        parts = sample.variances(posterior - without, error)
        reach = stdtrit(satterthwaite(parts), 0.975)
        widest = max(widest, float(reach * np.sqrt(sum(variance for variance, _ in parts))))
    return widest


def compared_targets(targets: pd.DataFrame) -> BoolArray:
    """Return which rows are about a target that is decided wherever it is compared.

    That is under all releases, and all readings of a release answer one question.  Another attack
    asks another one, perhaps about other targets: it is compared with itself.
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
    """Return one row for each target, and columns as arrays (targets, releases).

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
    r"""Return beliefs in the truth, and what people's own records add to them.

    What is compared is about the same people: under every protection, release and way to read it,
    an adversary's row is about the targets who have a posterior under all of them.

    Parameters
    ----------
    targets : pandas.DataFrame
        As :func:`audit_targets` gives them.
    people : int, optional
        Size of the population that the targets were drawn from; by default they are all of it.
    confidence : float in (0, 1), default 0.95

    Returns
    -------
    pandas.DataFrame
        A row for each ``protection, attack, adversary`` and ``group``, with the columns of
        ``measures.csv`` on the reference page of audits.  ``log_score`` is minus infinity where the
        truth was held impossible, and where no draw of a chain had it, it counts as 0.001; ends of
        an interval are missing where so few releases, people or places say nothing.

    Notes
    -----
    For this population releases vary, and the choice of targets where not everybody is one; for
    populations like it places vary, too (``Sample``).  The gain need not fall with more noise,
    which takes from what is believed without the own record as well.

    Examples
    --------
    >>> targets = pd.DataFrame({
    ...     "protection": "noise", "attack": "likelihood", "adversary": "outsider",
    ...     "release": [0, 1, 0, 1], "randomised": True, "target": ["7", "7", "8", "8"],
    ...     "place": "1", "place_size": 12, "alike": 3, "nonmodal": False, "status": "calculated",
    ...     "truth_prior": 0.25, "truth_without": [0.25, 0.5, 0.25, 0.5],
    ...     "truth_posterior": [0.5, 0.75, 0.75, 0.75], "error": 0.0, "right_prior": 0.5,
    ...     "right_without": 0.5, "right_posterior": 1.0, "certain_without": False,
    ...     "certain_posterior": False, "false": False,
    ... })
    >>> audit_measures(targets).loc[0, ["gain", "doubled", "error_releases"]].tolist()
    [0.3125, 1.0, 0.0625]
    """
    level = check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    flags = ("certain_without", "certain_posterior", "false")
    values = [f"{kind}_{name}" for kind in ("right", "truth") for name in THREE]
    numbers = (
        "release", *values, *flags, "error", "place_size", "alike", "nonmodal", "randomised",
    )  # fmt: skip
    frame = whole_columns(targets, "targets", (*KEYS, "place", "target", "status"), numbers)
    share = share_asked(frame, people)
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
                lines.append(line | _measures(compared, share, level))
    return pd.DataFrame(lines, columns=_COLUMNS) if lines else empty_frame(_COLUMNS, TEXTS)


def share_asked(targets: pd.DataFrame, people: int | None) -> float:
    """Return the share of a population who are targets; of a size that is not given, all."""
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


def _measures(rows: pd.DataFrame, share: float, confidence: float) -> dict[str, object]:
    """Return the measures of some people under all releases of one protection."""
    units, (without, posterior, error) = matrices(rows, "truth_without", "truth_posterior", "error")
    releases = posterior.shape[1]
    randomised = bool(rows["randomised"].iloc[0])
    places = place_numbers(units["place"])
    sample = Sample(places, releases, share, randomised)
    gain = posterior - without
    people = round(len(units) / share)
    line: dict[str, object] = {
        "unstated": float((rows["status"] == UNSTATED).mean()),
        "targets": len(units), "people": people, "places": int(places.max()) + 1,
        "releases": releases, "randomised": randomised,
    }  # fmt: skip
    for name in THREE:
        line[f"believed_{name}"] = float(rows[f"truth_{name}"].mean())
        line[f"right_{name}"] = float(rows[f"right_{name}"].mean())
    low, high = sample.interval(gain, error, confidence)
    sampling, chance = (variance for variance, _ in sample.variances(gain, error))
    parts = np.sqrt([sampling, chance, sample.chains(error)]).tolist()
    wide = sample.wide_interval(gain, confidence)
    line |= {"gain": float(gain.mean()), "gain_lower": low, "gain_upper": high}
    line |= {"like_lower": wide[0], "like_upper": wide[1]}
    line |= dict(zip(("error_people", "error_releases", "error_chains"), parts, strict=True))
    ratio = risk_ratio(posterior, without)
    with np.errstate(invalid="ignore"):
        twice, ten = ((ratio >= factor).astype(float) for factor in (2.0, 10.0))
    low, high = sample.interval(twice, None, confidence)
    line |= {"doubled": people * float(twice.mean()), "tenfold": people * float(ten.mean())}
    line |= {"doubled_lower": people * max(low, 0.0), "doubled_upper": people * min(high, 1.0)}
    certain = rows["certain_posterior"].to_numpy(np.bool_)
    # Under noise everything is possible, however close to 1 a calculated probability may come.
    law = (rows["attack"] == _LIKELIHOOD) & (rows["status"] == "calculated")
    proof = (rows["status"] == "proved") | (law & (rows["randomised"] == 0.0))
    proved = certain & proof.to_numpy(np.bool_)
    attributable = proved & ~rows["certain_without"].to_numpy(np.bool_)
    shares = {
        "certain": certain,
        "proved": proved,
        "proved_own": attributable,
        "false": rows["false"],
    }
    line |= {name: people * float(share.mean()) for name, share in shares.items()}
    sorted_ = np.sort(ratio[~np.isnan(ratio)])
    for quantile in _QUANTILES:  # of infinite ratios there is no average: one that occurs
        index = int(np.ceil(quantile * sorted_.size)) - 1
        value = float(sorted_[index]) if sorted_.size else np.nan
        line[f"ratio_{round(100 * quantile)}"] = value
    _, (score,) = matrices(rows.assign(score=log_score(rows)), "score")
    low = high = mean = float(score.mean())
    if np.isfinite(mean):
        low, high = sample.interval(score, None, confidence, bound=np.inf)
    return line | {"log_score": mean, "log_score_lower": low, "log_score_upper": min(high, 0.0)}


def place_numbers(places: pd.Series) -> IntArray:
    """Return names as numbers 0, 1, ..."""
    return np.unique(places.to_numpy(), return_inverse=True)[1].astype(np.int64)


def log_score(rows: pd.DataFrame) -> FloatArray:
    """Return the logarithm of each target's true statement's posterior."""
    truth = rows["truth_posterior"].to_numpy(np.float64)
    unseen = (truth == 0.0) & (rows["status"] == "sampled").to_numpy()
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.where(unseen, FLOOR, truth)))


def clustered_mean(
    values: FloatArray, places: IntArray, confidence: float, *, bound: float = 1.0
) -> tuple[float, float, float]:
    """Return the mean of values and its interval, places being the independent units.

    Where places do not differ, a share of 1 - (alpha / 2)**(1 / places) of the values may be as far
    off as can be: of so many places, none may show it.  Places of different sizes count as fewer.
    Nothing is said where nothing bounds the values.
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


# -----------------------------------------------------------------------------
# How often statements of a probability are true.


def audit_calibration(statements: pd.DataFrame, *, confidence: float = 0.95) -> pd.DataFrame:
    """Return the shares of true statements, by the probability that they are given.

    Parameters
    ----------
    statements : pandas.DataFrame
        Statements of an audit.
    confidence : float, default 0.95
        Of the intervals, whose units are places.

    Returns
    -------
    pandas.DataFrame
        A row for each ``protection, attack, adversary`` and bin of probabilities that has
        statements: how many (``statements``), their mean ``posterior``, the share that is true
        (``correct``) and its interval.

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
    """Return the bins that have a probability: the number of each, and which are in it."""
    part = np.searchsorted(BINS[1:-1], probability.to_numpy(np.float64), side="right")
    return [(int(one), part == one) for one in np.unique(part)]


def empty_frame(columns: Sequence[str], kinds: Mapping[str, str]) -> pd.DataFrame:
    """Return a frame without rows, of columns of the kinds that are given, all others numbers."""
    return pd.DataFrame({name: pd.Series(dtype=kinds.get(name, "float64")) for name in columns})


# -----------------------------------------------------------------------------
# What a protection costs.


def costs(errors: pd.DataFrame) -> pd.DataFrame:
    """Return the error of a count under each protection, and the share of counts withheld.

    ``errors`` has a row for each ``protection, release, level, table``, with ``error``, the mean
    absolute error of a reader's best value of a count, and ``withheld``, the share of counts.  The
    answer has their means over tables and releases for each ``protection``, and ``error_lower`` and
    ``error_upper``, a 95 % interval over releases that is missing where there is one release.

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


# -----------------------------------------------------------------------------
# Protections held against each other: which lets less be learned, where an audit can tell.


LESS, MORE, UNTOLD = "less", "more", "cannot tell"
_COMPARED = [
    "adversary", "protection", "against", "attack", "attack_against", "targets", "releases",
    "difference", "lower", "upper", "p", "verdict", "needed", "construction", "explained",
]  # fmt: skip
_MOST_RELEASES = 10_000  # more are not worth being proposed


def compare(
    audit: pd.DataFrame,
    *,
    people: int | None = None,
    constructions: Collection[tuple[str, str]] = (),
    confidence: float = 0.95,
) -> pd.DataFrame:
    r"""Return which of two protections lets less be learned from people's own records.

    Parameters
    ----------
    audit : pandas.DataFrame
        Statements of an audit, or its targets (:func:`audit_targets`).
    people : int, optional
        Size of the population that the targets were drawn from; by default they are all of it.
    constructions : collection of (str, str)
        Pairs of protections the second of which can be made from the first by further
        randomisation.
    confidence : float, default 0.95
        Of all verdicts together, and of all intervals together.

    Returns
    -------
    pandas.DataFrame
        A row for each adversary and pair of protections, in their order, with the columns of
        ``comparisons.csv`` on the reference page of audits.  ``less`` and ``more`` say what is
        learned under ``protection``; ``needed`` is missing where no number of releases would tell.

    Notes
    -----
    Differences are taken of the same people, and of releases of the same number, whose random
    numbers settings of one mechanism share.  With m releases and differences :math:`D_r` of their
    mean gains the variance is :math:`s^2(D) / m`, and that of drawing targets besides; p-values are
    Student's, and Holm's rule holds the chance of any false verdict to one less the confidence.
    Intervals are Bonferroni's.  A difference between protections that are not randomised, of
    everybody and without chains, is exact.  Where an adversary's model does not explain the tables
    of a protection for most people (``explained`` is false), to learn nothing from them is the
    model's failure: there is no interval, and the verdict is that the audit cannot tell.

    Examples
    --------
    >>> targets = pd.DataFrame({
    ...     "protection": ["none"] * 2 + ["withheld"] * 2, "attack": "likelihood",
    ...     "adversary": "outsider", "release": 0, "randomised": False, "target": ["7", "8"] * 2,
    ...     "place": "1", "status": "calculated", "error": 0.0,
    ...     "truth_without": 0.25, "truth_posterior": [0.75, 1.0, 0.5, 0.75],
    ... })
    >>> compare(targets)[["protection", "against", "difference", "verdict"]].values.tolist()
    [['withheld', 'none', -0.25, 'less']]
    """
    level = check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    frame = check.frame(audit, "audit")
    targets = frame if "truth_posterior" in frame else _targets(frame, "audit")
    numbers = ("release", "randomised", "error", "truth_without", "truth_posterior")
    frame = whole_columns(targets, "audit", (*KEYS, "place", "target", "status"), numbers)
    share = share_asked(frame, people)
    constructible = set(check.instances(constructions, tuple, "constructions"))
    rows = frame[compared_targets(frame) & frame["attack"].isin(BEST_READINGS).to_numpy()]
    lines = []
    for adversary, part in rows.groupby("adversary", sort=False):
        gains = {str(name): _Gains(group) for name, group in part.groupby("protection", sort=False)}
        for against, protection in itertools.combinations(gains, 2):
            line = {"adversary": adversary, "protection": protection, "against": against}
            pair = {(against, protection), (protection, against)}
            line["construction"] = not pair.isdisjoint(constructible)
            lines.append(line | gains[protection].less(gains[against], share))
    return _verdicts(pd.DataFrame(lines), level) if lines else empty_frame(_COMPARED, TEXTS)


def unexplained(measures: pd.DataFrame) -> pd.Series:
    """Return which rows have a model of the release that explains the tables of few people only."""
    return measures["attack"].isin(READINGS) & (measures["unstated"] > _UNEXPLAINED)


class _Gains:
    """Gains of people (people, releases) from their own records."""

    def __init__(self, rows: pd.DataFrame) -> None:
        units, (without, posterior, error) = matrices(
            rows, "truth_without", "truth_posterior", "error"
        )
        self.value, self.error = posterior - without, error
        self.places = place_numbers(units["place"])
        self.randomised = bool(rows["randomised"].iloc[0])
        self.attack = str(rows["attack"].iloc[0])
        self.explained = bool((rows["status"] == UNSTATED).mean() <= _UNEXPLAINED)

    def less(self, other: _Gains, share: float) -> dict[str, object]:
        """Return the difference of mean gains, its variances and their degrees of freedom."""
        number = min(
            g.value.shape[1] for g in (self, other) if g.randomised or not self._any(other)
        )
        difference = self._first(number) - other._first(number)
        size = len(difference)
        sample = Sample(self.places, number, share, self._any(other))
        sampling, chance = sample.variances(difference, None)
        if not self._any(other):  # errors of chains alone, which those of one place share at most
            chance = sum(float(g.error.sum()) ** 2 for g in (self, other)) / size**2, np.inf
        return {
            "attack": self.attack, "attack_against": other.attack, "targets": size,
            "releases": number, "difference": float(difference.mean()),
            "chance": chance[0], "sampling": sampling[0],
            "freedom": satterthwaite([sampling, chance]),
            "randomised": self._any(other), "explained": self.explained and other.explained,
        }  # fmt: skip

    def _any(self, other: _Gains) -> bool:
        return self.randomised or other.randomised

    def _first(self, number: int) -> FloatArray:
        """Return the gains of so many releases; of one that is no draw, as often."""
        if self.randomised:
            return self.value[:, :number]
        return np.broadcast_to(self.value, (len(self.value), number))


def _verdicts(frame: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Return the rows with intervals, adjusted p-values and verdicts, of all rows together."""
    size, alpha = len(frame), 1.0 - confidence
    difference = frame["difference"].to_numpy()
    chance, sampling = frame["chance"].to_numpy(), frame["sampling"].to_numpy()
    error, freedom = np.sqrt(chance + sampling), frame["freedom"].to_numpy()
    different = np.abs(difference) > _TIE
    exact = (error == 0.0) & ~frame["randomised"].to_numpy(bool)
    # Releases that do not differ although they might say nothing about others.
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.where(error > _TIE, 2.0 * stdtr(freedom, -np.abs(difference) / error), 1.0)
    p = np.where(exact, np.where(different, 0.0, 1.0), p)
    p = np.where(frame["explained"], p, 1.0)
    # Holm: the k-th smallest of n times n - k + 1, and never less than one before it.
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(size)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * (size - np.arange(size))), 1.0)
    reach = stdtrit(freedom, 1.0 - alpha / (2.0 * size)) * error
    reach = np.where(exact, 0.0, np.where((error > _TIE) & np.isfinite(reach), reach, np.nan))
    reach = np.where(frame["explained"], reach, np.nan)
    sure = adjusted <= alpha
    verdict = np.where(sure, np.where(difference < 0.0, LESS, MORE), UNTOLD)
    columns = {
        "lower": np.maximum(difference - reach, -2.0),
        "upper": np.minimum(difference + reach, 2.0),
        "p": adjusted,
        "verdict": verdict,
        "needed": np.where(sure, frame["releases"], _needed(frame, alpha / size)),
    }
    return frame.assign(**columns)[_COMPARED]


def _needed(frame: pd.DataFrame, alpha: float) -> FloatArray:
    """Return the releases that tell two protections apart, if what was seen is true."""
    quantile = float(stdtrit(np.inf, 1.0 - alpha / 2.0))
    releases = frame["releases"].to_numpy(np.float64)
    # The difference in its standard errors is the quantile where d^2 = q^2 (v / m + a).
    spare = (frame["difference"].to_numpy() / quantile) ** 2 - frame["sampling"].to_numpy()
    unit_variance = frame["chance"].to_numpy() * releases
    with np.errstate(divide="ignore", invalid="ignore"):
        number = np.maximum(np.ceil(unit_variance / spare), releases + 1.0)  # so many did not tell
    reachable = (spare > 0.0) & (number <= _MOST_RELEASES)
    reachable &= (frame["randomised"] & frame["explained"]).to_numpy(bool)
    return np.where(reachable, number, np.nan)
