"""Protections held against each other: which lets less be learned, where an audit can tell."""

from __future__ import annotations

import itertools
from collections.abc import Collection

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from bayesrisk import _validation as check
from bayesrisk._validation import FloatArray
from bayesrisk.risk.audit.measures import (
    BEST_READINGS,
    KEYS,
    audit_targets,
    compared_targets,
    empty_frame,
    matrices,
    satterthwaite,
    share_asked,
    whole_columns,
)

LESS, MORE, UNTOLD = "less", "more", "cannot tell"
_COLUMNS = [
    "adversary", "protection", "against", "attack", "attack_against", "targets", "releases",
    "difference", "lower", "upper", "p", "verdict", "needed", "construction",
]  # fmt: skip
_MOST_RELEASES = 10_000  # more are not worth being proposed
_TIE = 1e-12


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
        A row for each adversary and pair of protections, in their order: ``difference``, the gain
        under ``protection`` less that under ``against``, with ``lower`` and ``upper``;
        ``p``, adjusted for all rows; ``verdict``: under ``protection`` ``less`` is learned than
        under ``against``, ``more``, or the audit ``cannot tell``; ``releases``; ``needed``, how
        many of them would tell if what was seen is true, missing where none would;
        ``construction``, whether one of both can be made from the other.  ``attack`` and
        ``attack_against`` are how the releases are read: by their likelihood, or else by the
        adversary's best model of how they were made.

    Notes
    -----
    Differences are taken of the same people, and of releases of the same number, whose random
    numbers settings of one mechanism share.  With m releases and differences :math:`D_r` of their
    mean gains the variance is :math:`s^2(D) / m`, and that of drawing targets besides; p-values are
    Student's, and Holm's rule holds the chance of any false verdict to one less the confidence.
    Intervals are Bonferroni's.  A difference between protections that are not randomised, of
    everybody and without chains, is exact.

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
    targets = audit if "truth_posterior" in audit else audit_targets(audit)
    numbers = ("release", "randomised", "error", "truth_without", "truth_posterior")
    frame = whole_columns(targets, "targets", (*KEYS, "place", "target", "status"), numbers)
    share = share_asked(frame, people)
    rows = frame[compared_targets(frame) & frame["attack"].isin(BEST_READINGS).to_numpy()]
    lines = []
    for adversary, mine in rows.groupby("adversary", sort=False):
        gains = {str(name): _Gains(some) for name, some in mine.groupby("protection", sort=False)}
        for against, protection in itertools.combinations(gains, 2):
            line = {"adversary": adversary, "protection": protection, "against": against}
            pair = {(against, protection), (protection, against)}
            line["construction"] = not pair.isdisjoint(constructions)
            lines.append(line | gains[protection].less(gains[against], share))
    return _verdicts(pd.DataFrame(lines), level) if lines else empty_frame(_COLUMNS)


class _Gains:
    """Gains of people (people, releases) from their own records."""

    def __init__(self, rows: pd.DataFrame) -> None:
        _, (without, posterior, error) = matrices(rows, "truth_without", "truth_posterior", "error")
        self.value, self.error = posterior - without, error
        self.randomised = bool(rows["randomised"].iloc[0])
        self.attack = str(rows["attack"].iloc[0])

    def less(self, other: _Gains, share: float) -> dict[str, object]:
        """Return the difference of mean gains, its variances and their degrees of freedom."""
        number = min(
            g.value.shape[1] for g in (self, other) if g.randomised or not self._any(other)
        )
        difference = self._first(number) - other._first(number)
        by_release, by_person = difference.mean(axis=0), difference.mean(axis=1)
        size = by_person.size
        asked = 0.0
        if share < 1.0:
            asked = float(by_person.var(ddof=1)) / size * (1.0 - share) if size > 1 else np.inf
        if self._any(other):
            drawn = float(by_release.var(ddof=1)) / number if number > 1 else np.inf
            freedom = number - 1.0
        else:  # errors of chains alone, which those of one place share at most
            square = [float(g.error.sum()) ** 2 for g in (self, other)]
            drawn, freedom = sum(square) / size**2, np.inf
        return {
            "attack": self.attack, "attack_against": other.attack, "targets": size,
            "releases": number, "difference": float(difference.mean()), "drawn": drawn,
            "asked": asked, "freedom": satterthwaite([(asked, size - 1.0), (drawn, freedom)]),
            "randomised": self._any(other),
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
    drawn, asked = frame["drawn"].to_numpy(), frame["asked"].to_numpy()
    error, freedom = np.sqrt(drawn + asked), frame["freedom"].to_numpy()
    apart = np.abs(difference) > _TIE
    exact = (error == 0.0) & ~frame["randomised"].to_numpy(bool)
    # Releases that do not differ although they might say nothing about others.
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.where(error > _TIE, 2.0 * stdtr(freedom, -np.abs(difference) / error), 1.0)
    p = np.where(exact, np.where(apart, 0.0, 1.0), p)
    # Holm: the k-th smallest of n times n - k + 1, and never less than one before it.
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(size)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * (size - np.arange(size))), 1.0)
    reach = stdtrit(freedom, 1.0 - alpha / (2.0 * size)) * error
    reach = np.where(exact, 0.0, np.where((error > _TIE) & np.isfinite(reach), reach, np.nan))
    sure = adjusted <= alpha
    verdict = np.where(sure, np.where(difference < 0.0, LESS, MORE), UNTOLD)
    columns = {
        "lower": np.maximum(difference - reach, -2.0),
        "upper": np.minimum(difference + reach, 2.0),
        "p": adjusted,
        "verdict": verdict,
        "needed": np.where(sure, frame["releases"], _needed(frame, alpha / size)),
    }
    return frame.assign(**columns)[_COLUMNS]


def _needed(frame: pd.DataFrame, alpha: float) -> FloatArray:
    """Return the releases that tell two protections apart, if what was seen is true."""
    quantile = float(stdtrit(np.inf, 1.0 - alpha / 2.0))
    releases = frame["releases"].to_numpy(np.float64)
    # The difference in its standard errors is the quantile where d^2 = q^2 (v / m + a).
    spare = (frame["difference"].to_numpy() / quantile) ** 2 - frame["asked"].to_numpy()
    each = frame["drawn"].to_numpy() * releases
    with np.errstate(divide="ignore", invalid="ignore"):
        number = np.maximum(np.ceil(each / spare), releases + 1.0)  # so many did not tell
    told = (spare > 0.0) & (number <= _MOST_RELEASES) & frame["randomised"].to_numpy(bool)
    return np.where(told, number, np.nan)
