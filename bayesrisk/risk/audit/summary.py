"""Results of an audit: how often adversaries are right, and how much is due to own records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import betainc, stdtrit

from bayesrisk import _validation as check
from bayesrisk._validation import FloatArray, IntArray
from bayesrisk.exceptions import DataError
from bayesrisk.risk.audit.adversaries import READINGS
from bayesrisk.risk.intervals import clustered_interval
from bayesrisk.risk.statements.claims import OPEN, ratio_of

KEYS = ["protection", "attack", "adversary"]
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
    *KEYS, "group", "targets", "left_out", "places",
    *(f"right_{name}" for name in THREE), "own", "own_lower", "own_upper",
    *(f"truth_{name}" for name in THREE), "log_score", "log_score_lower", "log_score_upper",
    *(f"{name}_{round(100 * share)}" for name in ("learned", "own") for share in _QUANTILES),
]  # fmt: skip
_BINNED = [
    *KEYS, "from", "to", "statements", "posterior", "correct", "correct_lower", "correct_upper",
]  # fmt: skip
FLOOR = 1e-3
_FLAGS = ("correct", "nonmodal")
_TIE = 1e-12


def audit_targets(statements: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each target, adversary, reading and protection.

    Parameters
    ----------
    statements : pandas.DataFrame
        Statements of an audit, those of one target together.

    Returns
    -------
    pandas.DataFrame
        ``protection, attack, adversary, target, place``; for each of the three beliefs ``right_*``
        (whether the most probable statement is true; a share where several are as probable) and
        ``truth_*`` (the probability of the true one); ``status``; and what groups are made of.
        Of targets without a posterior (``undecided``) only the prior is there.

    Examples
    --------
    >>> rows = pd.DataFrame({
    ...     "protection": "none", "attack": "likelihood", "adversary": "outsider",
    ...     "target": ["7", "7"], "statement": ["a", "b"], "prior": [0.5, 0.5],
    ...     "without": [0.4, 0.6], "posterior": [0.9, 0.1], "correct": [True, False],
    ...     "status": "calculated", "place": "1", "place_size": 12, "alike": 3, "nonmodal": False,
    ... })
    >>> targets = audit_targets(rows)
    >>> targets[["right_prior", "right_without", "right_posterior"]].values.tolist()
    [[0.5, 0.0, 1.0]]
    """
    keys = [*KEYS, "target"]
    frame = whole_columns(
        statements,
        "statements",
        (*keys, "status", "place"),
        (*THREE, "place_size", "alike", "correct", "nonmodal"),
    )
    number = frame.groupby(keys, sort=False).ngroup().to_numpy()
    size = int(number.max()) + 1 if number.size else 0
    first = np.unique(number, return_index=True)[1]
    about = ["place", "place_size", "alike", "nonmodal", "status"]
    found = frame.iloc[first][[*keys, *about]].reset_index(drop=True)
    correct = frame["correct"].to_numpy(np.bool_)
    for name in THREE:
        value = frame[name].to_numpy(np.float64)
        best = np.full(size, -np.inf)
        np.fmax.at(best, number, value)
        guessed = value >= best[number] - _TIE
        ways = np.bincount(number, guessed, minlength=size)
        hits = np.bincount(number, guessed & correct, minlength=size)
        right = np.divide(hits, ways, out=np.full(size, np.nan), where=ways > 0)
        truth = np.bincount(number, np.where(correct, value, 0.0), minlength=size)
        known = (name == "prior") | ~found["status"].isin(OPEN).to_numpy(np.bool_)
        found[f"right_{name}"] = np.where(known, right, np.nan)
        found[f"truth_{name}"] = np.where(known, truth, np.nan)
    return found


def audit_summary(targets: pd.DataFrame, *, confidence: float = 0.95) -> pd.DataFrame:
    r"""Return the shares of right guesses of adversaries, and the part due to own records.

    What is compared is about the same people: under every protection and every way to read its
    release, an adversary's row is about the targets who have a posterior under all of them.

    Parameters
    ----------
    targets : pandas.DataFrame
        As :func:`audit_targets` gives them.
    confidence : float, default 0.95
        Of the intervals, whose units are places.

    Returns
    -------
    pandas.DataFrame
        A row for each ``protection, attack, adversary`` and ``group``: ``targets``; ``left_out``,
        those without a posterior under this protection or one that it is compared with;
        ``right_prior``, ``right_without`` and ``right_posterior``, shares of targets about whom
        the most probable statement is true; ``own``, the last less the one before, with
        ``own_lower`` and ``own_upper``; ``truth_*``, the mean probability of the true statement;
        ``log_score``, the mean natural logarithm of its posterior, with ``log_score_lower`` and
        ``log_score_upper``: minus infinity if a true one was held impossible, and where no draw of
        a chain had it, it counts as 0.001;
        ``learned_50, _90, _99``, quantiles of posterior over prior of the true statement, and
        ``own_50, _90, _99``, of posterior over without.

    Examples
    --------
    >>> rows = pd.DataFrame({
    ...     "protection": "none", "attack": "likelihood", "adversary": "outsider",
    ...     "target": ["7", "7"], "statement": ["a", "b"], "prior": [0.5, 0.5],
    ...     "without": [0.4, 0.6], "posterior": [0.9, 0.1], "correct": [True, False],
    ...     "status": "calculated", "place": "1", "place_size": 12, "alike": 3, "nonmodal": False,
    ... })
    >>> found = audit_summary(audit_targets(rows))
    >>> found.loc[[0], ["group", "targets", "own", "learned_50", "own_50"]].values.tolist()
    [['everybody', 1, 1.0, 1.8, 2.25]]
    """
    level = check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    measures = [f"{kind}_{name}" for kind in ("right", "truth") for name in THREE]
    numbers = (*measures, "place_size", "alike", "nonmodal")
    found = whole_columns(targets, "targets", (*KEYS, "place", "target", "status"), numbers)
    found["compared"] = _compared(found)
    lines = []
    for key, rows in found.groupby(KEYS, sort=False):
        for group, member in _groups(rows).items():
            some = rows[member & rows["compared"].to_numpy()]
            if len(some):
                line = {**dict(zip(KEYS, key, strict=True)), "group": group, "targets": len(some)}
                line["left_out"] = int(np.count_nonzero(member)) - len(some)
                lines.append(line | _measures(some, level))
    return pd.DataFrame(lines, columns=_COLUMNS) if lines else empty_frame(_COLUMNS)


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
    kept = whole[list(THREE)].max(axis=1) >= FLOOR
    frame = whole[kept & ~whole["status"].isin(OPEN)]
    lines = []
    for key, rows in frame.groupby(KEYS, sort=False):
        value = rows["posterior"].to_numpy(np.float64)
        at = np.searchsorted(BINS[1:-1], value, side="right")
        for part in np.unique(at):
            some = rows[at == part]
            hit = some["correct"].to_numpy(np.float64)
            low, high = clustered_interval(hit, some["place"], confidence=level)
            lines.append(
                dict(zip(KEYS, key, strict=True))
                | {
                    "from": BINS[part],
                    "to": BINS[part + 1],
                    "statements": len(some),
                    "posterior": float(some["posterior"].mean()),
                    "correct": float(hit.mean()),
                    "correct_lower": low,
                    "correct_upper": high,
                }
            )
    return pd.DataFrame(lines) if lines else empty_frame(_BINNED)


def empty_frame(columns: Sequence[str]) -> pd.DataFrame:
    """Return an empty statements frame with the right dtypes."""
    texts = (*KEYS, "group")
    return pd.DataFrame({c: pd.Series([], dtype="str" if c in texts else float) for c in columns})


def whole_columns(
    frame: pd.DataFrame, name: str, texts: Sequence[str], numbers: Sequence[str]
) -> pd.DataFrame:
    """Return the columns that are needed, as texts and as numbers."""
    check.frame(frame, name, (*texts, *numbers))
    found: dict[str, Any] = {column: frame[column].astype("str") for column in texts}
    for column in numbers:
        try:
            found[column] = frame[column].to_numpy(np.float64, na_value=np.nan)
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(f"{name}: column {column!r} must hold numbers: {error}") from error
        if column in _FLAGS and np.isnan(found[column]).any():
            raise DataError(f"{name}: column {column!r} must be true or false, got none")
    return pd.DataFrame(found, index=frame.index)


def _compared(targets: pd.DataFrame) -> NDArray[np.bool_]:
    """Return which rows are about a target that is decided wherever it is compared.

    All readings of a release answer one question.  Another attack asks another one, perhaps about
    other targets: it is compared with itself.
    """
    attack = targets["attack"]
    question = attack.where(~attack.isin(READINGS), READINGS[0])
    keys = [targets["adversary"], question, targets["target"]]
    decided = ~targets["status"].isin(OPEN)
    # Whoever decides nobody at all has no row, and shall not take those of others away.
    anybody = decided.groupby([targets[name] for name in KEYS]).transform("any")
    compared = (decided | ~anybody).groupby(keys).transform("all")
    found: NDArray[np.bool_] = (compared & decided).to_numpy(np.bool_)
    return found


def _groups(rows: pd.DataFrame) -> dict[str, NDArray[np.bool_]]:
    size = rows["place_size"].to_numpy()
    at = np.searchsorted(_SIZES, size, side="right")
    everybody = np.ones(len(rows), np.bool_)
    members = [
        everybody, rows["nonmodal"].to_numpy(np.bool_), rows["alike"].to_numpy() == 1,
        *(at == i for i in range(len(_SIZES) + 1)),
    ]  # fmt: skip
    return dict(zip(GROUPS, members, strict=True))


def _measures(rows: pd.DataFrame, confidence: float) -> dict[str, float]:
    places = place_numbers(rows["place"])
    found: dict[str, float] = {"places": int(places.max()) + 1}
    for name in THREE:
        found[f"right_{name}"] = float(rows[f"right_{name}"].mean())
    gain = (rows["right_posterior"] - rows["right_without"]).to_numpy(np.float64)
    found["own"], found["own_lower"], found["own_upper"] = clustered_mean(gain, places, confidence)
    for name in THREE:
        found[f"truth_{name}"] = float(rows[f"truth_{name}"].mean())
    score, low, high = clustered_mean(log_score(rows), places, confidence, bound=np.inf)
    found["log_score"], found["log_score_lower"] = score, low
    found["log_score_upper"] = min(high, 0.0)
    for name, below in (("learned", "prior"), ("own", "without")):
        ratio = ratio_of(*(rows[f"truth_{n}"].to_numpy(np.float64) for n in ("posterior", below)))
        known = np.sort(ratio[~np.isnan(ratio)])
        for share in _QUANTILES:  # of infinite ratios there is no average: one that occurs
            at = int(np.ceil(share * known.size)) - 1
            found[f"{name}_{round(100 * share)}"] = float(known[at]) if known.size else np.nan
    return found


def place_numbers(places: pd.Series) -> IntArray:
    """Return names as numbers 0, 1, ..."""
    found: IntArray = np.unique(places.to_numpy(), return_inverse=True)[1].astype(np.int64)
    return found


def log_score(rows: pd.DataFrame) -> FloatArray:
    """Return the logarithm of each target's true statement's posterior."""
    truth = rows["truth_posterior"].to_numpy(np.float64)
    unseen = (truth == 0.0) & (rows["status"] == "sampled").to_numpy()
    with np.errstate(divide="ignore"):
        found: FloatArray = np.log(np.where(unseen, FLOOR, truth))
    return found


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
# What an audit's adversaries say with certainty, and how often it is false.


_CERTAIN = 1.0 - 1e-12
_TWO = ("posterior", "without")
_CERTAIN_COLUMNS = [
    *KEYS, "targets",
    *(
        f"{name}{end}"
        for end in ("", "_without")
        for name in ("certain", "false", "false_share", "false_lower", "false_upper")
    ),
]  # fmt: skip


def audit_certain(statements: pd.DataFrame, *, confidence: float = 0.95) -> pd.DataFrame:
    """Return the numbers of statements made with certainty, and of those that are false.

    A statement is certain where its probability is 1, but for 1e-12, and no estimate.  Of true
    counts it is true; of counts that are only taken as true it can be false.

    Parameters
    ----------
    statements : pandas.DataFrame
        Statements of an audit.
    confidence : float, default 0.95
        Of the intervals.

    Returns
    -------
    pandas.DataFrame
        A row for each ``protection, attack, adversary``: ``targets``; ``certain``, how many of them
        something certain is said about after the release, ``false``, how many of these statements
        are not true, their share ``false_share`` (missing where nothing is certain) and its
        interval ``false_lower``, ``false_upper``; and the same ``*_without`` the target's record.

    Notes
    -----
    Intervals are Clopper and Pearson's, for the effective number of statements, as those of one
    place stand and fall together (Korn and Graubard, Survey Methodology 24, 1998).

    Examples
    --------
    >>> rows = pd.DataFrame({
    ...     "protection": "swapped", "attack": "claims", "adversary": "linker", "place": ["1", "2"],
    ...     "target": ["7", "8"], "statement": "a", "prior": 0.5, "without": [1.0, 0.5],
    ...     "posterior": 1.0, "without_error": 0.0, "posterior_error": 0.0,
    ...     "correct": [True, False], "status": "believed",
    ... })
    >>> found = audit_certain(rows)
    >>> found[["certain", "false", "certain_without", "false_without"]].values.tolist()
    [[2, 1, 1, 0]]
    """
    level = check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    texts = (*KEYS, "target", "status", "place")
    numbers = (*_TWO, *(f"{name}_error" for name in _TWO), "correct")
    whole = whole_columns(statements, "statements", texts, numbers)
    frame = whole[~whole["status"].isin(OPEN)]
    lines = []
    for key, rows in frame.groupby(KEYS, sort=False):
        line = dict(zip(KEYS, key, strict=True)) | {"targets": rows["target"].nunique()}
        for name, end in zip(_TWO, ("", "_without"), strict=True):
            some = rows[(rows[name] >= _CERTAIN) & (rows[f"{name}_error"] == 0.0)]
            false = 1.0 - some["correct"].to_numpy(np.float64)
            low, high = clustered_interval(false, some["place"], confidence=level)
            line |= {
                f"certain{end}": len(some),
                f"false{end}": int(false.sum()),
                f"false_share{end}": float(false.mean()) if len(some) else np.nan,
                f"false_lower{end}": low,
                f"false_upper{end}": high,
            }
        lines.append(line)
    return pd.DataFrame(lines) if lines else empty_frame(_CERTAIN_COLUMNS)


# -----------------------------------------------------------------------------
# A quantile of what is learned from own records, with its interval.


def audit_quantiles(
    targets: pd.DataFrame, *, quantile: float = 0.99, confidence: float = 0.95
) -> pd.DataFrame:
    """Return a quantile of posterior over without, of the true statements about targets.

    The interval goes from the last ratio, the k-th of n, with P(Bin(n, q) < k) <= alpha / 2 to the
    first with P(Bin(n, q) >= k) <= alpha / 2.  Because targets of one place are alike, n of them
    count as fewer, n', and k as k n' / n.  Targets without a posterior are left out of the
    estimate; the lower end takes their ratios as 0, the upper one as infinite.

    Parameters
    ----------
    targets : pandas.DataFrame
        As :func:`audit_targets` gives them.
    quantile : float, default 0.99
        Which, in (0, 1).
    confidence : float, default 0.95
        Of the intervals, in (0, 1).

    References
    ----------
    The interval is that of Korn and Graubard (1998, Survey Methodology 24, 193-201) for a share,
    inverted as by Woodruff (1952, JASA 47, 635-646).

    Examples
    --------
    >>> targets = pd.DataFrame({
    ...     "protection": "none", "attack": "likelihood", "adversary": "outsider",
    ...     "place": [str(i) for i in range(40)], "status": "calculated",
    ...     "truth_without": 0.125, "truth_posterior": [(4 + i) / 32 for i in range(40)],
    ... })
    >>> found = audit_quantiles(targets, quantile=0.5)
    >>> found[["targets", "undecided", "ratio", "lower", "upper"]].values.tolist()
    [[40.0, 0.0, 5.75, 4.25, 7.5]]
    """
    share = check.scalar(quantile, "quantile", lower=0.0, upper=1.0, bounds="()")
    level = check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    numbers = ("truth_without", "truth_posterior")
    found = whole_columns(targets, "targets", (*KEYS, "place", "status"), numbers)
    lines = []
    for key, rows in found.groupby(KEYS, sort=False):
        ratio = ratio_of(*(rows[name].to_numpy(np.float64) for name in reversed(numbers)))
        open_ = rows["status"].isin(OPEN).to_numpy(np.bool_) | np.isnan(ratio)
        places = place_numbers(rows["place"])
        about = {"targets": len(rows), "undecided": int(open_.sum())}
        value, low, high = _quantile(ratio, open_, places, share, 1.0 - level)
        lines.append(
            dict(zip(KEYS, key, strict=True))
            | about
            | {"ratio": value, "lower": low, "upper": high}
        )
    return pd.DataFrame(lines)


def _quantile(
    ratio: FloatArray, open_: NDArray[np.bool_], places: IntArray, share: float, alpha: float
) -> tuple[float, float, float]:
    """Return the quantile of decided ratios, and an interval for that of all."""
    known = np.sort(ratio[~open_])
    if not known.size:
        return np.nan, 0.0, np.inf
    value = float(known[int(np.ceil(share * known.size)) - 1])
    n = ratio.size
    worth = _worth(ratio[~open_], places[~open_], value, alpha) * n / known.size
    if worth == 0.0:
        return value, 0.0, np.inf
    k = np.arange(1, n + 1) * worth / n
    fewer = k - worth / n
    ends = np.zeros(int(open_.sum()))
    lowest, highest = np.r_[ends, known], np.r_[known, ends + np.inf]
    below = np.flatnonzero(1.0 - betainc(fewer + 1.0, worth - fewer, share) <= alpha / 2.0)
    above = np.flatnonzero(betainc(k, worth - k + 1.0, share) <= alpha / 2.0)
    low = float(lowest[below[-1]]) if below.size else 0.0
    high = float(highest[above[0]]) if above.size else np.inf
    return value, low, high


def _worth(ratio: FloatArray, places: IntArray, value: float, alpha: float) -> float:
    """Return the effective number of independent targets for the share below a value."""
    number = np.unique(places).size
    if number < 2:
        return 0.0
    below = ratio <= value if (ratio > value).any() else ratio < value
    n, mean = below.size, float(below.mean())
    if mean in (0.0, 1.0):
        design = 1.0
    else:
        off = np.bincount(places, below - mean)
        variance = float((off**2).sum()) * number / (number - 1) / n**2
        design = max(variance / (mean * (1.0 - mean) / n), 1.0)
    people, units = (float(stdtrit(k - 1, 1.0 - alpha / 2.0)) for k in (n, number))
    return n / design * (people / units) ** 2
