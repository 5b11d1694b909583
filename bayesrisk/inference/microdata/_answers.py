"""Answers of draws: their errors and intervals, and which are undecided.

An answer is a mean of draws, or a ratio E[X] / E[G] of two means, whose error is that of the mean
of the linearised draws.  Its effective size is the smaller of two: of the draws of that mean,
without ranks, and of the looks at the target, p (1 - p) / error^2, the number of independent
people of the group who would tell as much.  Where every draw says yes or no both are the same;
in a group that is empty in most draws, few of them are looks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import special

from bayesrisk._types import FloatArray, IntArray
from bayesrisk.inference.microdata._asked import Asked
from bayesrisk.inference.microdata.chains.running import LEAST_ESS, MOST_R_HAT, Draws
from bayesrisk.inference.microdata.questions import RecordQuestion
from bayesrisk.inference.sampling.arviz_io import mean_r_hat
from bayesrisk.inference.sampling.chains import effective_size

_COLUMNS = ["posterior", "error", "lower", "upper", "status", "r_hat", "ess"]


@dataclass(frozen=True)
class Tracked:
    """One question: draws with the error of its answer, and the answer."""

    draws: FloatArray
    value: float
    about: float  # part of the draws that is about the question at all
    share: bool


def answers_of(asked: Sequence[RecordQuestion], functions: Asked, drawn: Draws) -> pd.DataFrame:
    """Return value, error, interval, status, R-hat and effective size of every question."""
    rows = zip(asked, functions.row, functions.known, strict=True)
    return pd.DataFrame(
        [answer_of(_tracked(*row, drawn.counts), drawn) for row in rows], columns=_COLUMNS
    )


def _tracked(question: RecordQuestion, row: IntArray, known: IntArray, counts: IntArray) -> Tracked:
    part, whole = (counts[:, :, r] + k for r, k in zip(row, known, strict=True))
    if question.among is not None:
        return share_of(part.astype(float), whole.astype(float))
    draws: FloatArray = part.astype(float)
    if question.at_least is not None:
        draws = (part >= question.at_least).astype(float)
    return Tracked(draws, float(draws.mean()), 1.0, question.at_least is not None)


def share_of(part: FloatArray, whole: FloatArray) -> Tracked:
    """Return the share of a part, from draws of both, each of shape (chains, draws)."""
    mean = float(whole.mean())
    value, about = ratio(float(part.mean()), mean), float(np.mean(whole > 0))
    # Linearised: the error of a ratio of means is that of these draws.
    draws = value + (part - value * whole) / mean if about else 0.0 * whole
    return Tracked(draws, value, about, True)


def answer_of(
    of: Tracked, drawn: Draws, *, most: float = math.inf
) -> tuple[float, float, float, float, str, float, float]:
    """Return value, error, interval, status, R-hat and effective size, at most ``most``."""
    seen, error = drawn.watched, 0.0
    if np.isfinite(of.value) and not np.all(of.draws == of.draws.flat[0]):
        r_hat, ess = mean_r_hat(of.draws), float(effective_size(of.draws))
        error = float(of.draws.std(ddof=1)) / math.sqrt(ess)
        if of.share:
            ess = min(ess, of.value * (1.0 - of.value) / error**2)
    else:  # it never changed: nothing but the state's own numbers says how much that means
        r_hat = max((n.r_hat for n in seen), default=np.nan)
        ess = of.about * min((min(n.bulk, n.tail) for n in seen), default=0.0)
    ess = min(ess, most)
    agree = r_hat <= MOST_R_HAT or error == 0.0  # of what is watched, if nothing changed
    if not (drawn.agreed and agree and ess >= LEAST_ESS):
        return np.nan, np.nan, np.nan, np.nan, "undecided", r_hat, ess
    low, high = answer_interval(of.value, error, ess, share=of.share, leap=drawn.leap)
    return of.value, error, low, high, "sampled", r_hat, ess


def answer_interval(
    value: float, error: float, ess: float, *, share: bool, level: float = 0.95, leap: int = 1
) -> tuple[float, float]:
    """Return the interval of an answer from ``ess`` effective draws with a standard error.

    That of a share is Clopper and Pearson's for the trials that would have this error, which
    are the effective draws where every draw says 0 or 1: a normal law is wrong for rare events.
    Draws that all say the same leave at most the share of a run of so many trials without one
    event, which changes a share by 1 and a number by ``leap``.
    """
    tail = 0.5 * (1.0 - level)
    if error == 0.0:
        rest = float(-np.expm1(np.log(tail) / ess)) * (1 if share else leap)
        return max(value - rest, 0.0), min(value + rest, 1.0) if share else value + rest
    if not share:
        reach = float(-special.ndtri(tail)) * error
        return max(value - reach, 0.0), value + reach
    p = min(value, 1.0)
    trials = p * (1.0 - p) / error**2
    events, others = p * trials, (1.0 - p) * trials
    low = float(special.betaincinv(events, others + 1.0, tail)) if events else 0.0
    high = float(special.betaincinv(events + 1.0, others, 1.0 - tail)) if others else 1.0
    return low, high


def ratio(part: float, whole: float) -> float:
    """Return the share of a target's kind; NaN if nobody can be the target."""
    return float(part / whole) if whole > 0.0 else float("nan")
