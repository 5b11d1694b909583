"""Intervals of shares, for independent trials and for trials clustered in blocks.

People of one block are guessed, linked and reconstructed together. So blocks, not people, are the
independent units of every rate over people. The sums over blocks that an interval needs are
polynomials in the trials and hits of each block (:func:`block_moments`). They add up over groups of
blocks, and along a ranking. If blocks are sampled from a frame of published sizes, size classes are
strata (:func:`stratified_rates`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import numpy as np
import pandas as pd
import scipy.special as special
from numpy.typing import ArrayLike

from bayesrisk._base import validation as check
from bayesrisk._base.calls import caller_level
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError, SampleWarning, ShapeError

#: Least people of a block of each class of size: from 8 on each class doubles.
_STARTS = np.append(1, 2 ** np.arange(3, 51))
_EQUAL = 1e-12  # shares of blocks that differ less do not differ, by rounding of the sums


def binomial_interval(
    successes: ArrayLike, trials: ArrayLike, *, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Return the Clopper-Pearson interval of a proportion, or (0, 1) without trials.

    The interval holds the true proportion with a probability of at least ``confidence``.
    """
    k, n = np.asarray(successes, float), np.asarray(trials, float)
    tail = (1.0 - confidence) / 2.0
    with np.errstate(invalid="ignore"):
        lower = np.where(k > 0, special.betaincinv(k, n - k + 1, tail), 0.0)
        upper = np.where(k < n, special.betaincinv(k + 1, n - k, 1.0 - tail), 1.0)
    return lower, upper


def number_interval(
    hits: tuple[int, int], sample: int, everybody: int, *, confidence: float
) -> tuple[int, int]:
    r"""Return the interval of a number in a finite population, from a random sample.

    In a sample of n people of N without replacement, between ``hits[0]`` and ``hits[1]`` are hits.
    If K people of all are hits, their number k in the sample is hypergeometric. The ends are the
    least and the largest K for which so many, or so few, are probable enough: at least half of one
    less the confidence (Clopper and Pearson 1934, for a finite population). They cover K at least
    as often as ``confidence``, and are exact if n is N.
    """
    tail = (1.0 - confidence) / 2.0
    least, most = hits
    # The largest K is everybody less the least number of those who have it not.
    lower = _least_number(least, sample, everybody, tail)
    return lower, everybody - _least_number(sample - most, sample, everybody, tail)


def _least_number(hits: int, sample: int, everybody: int, tail: float) -> int:
    """Return the least K with P(k >= hits) > tail; the probability grows with K."""
    low, high = hits, everybody - (sample - hits)
    while low < high:
        middle = (low + high) // 2
        if _at_least(hits, sample, middle, everybody) > tail:
            high = middle
        else:
            low = middle + 1
    return low


def _at_least(hits: int, sample: int, having: int, everybody: int) -> float:
    """Return P(k >= hits) of a hypergeometric number, by ratios of successive terms."""
    first, last = max(0, sample - (everybody - having)), min(sample, having)
    k = np.arange(first, last)
    # P(k + 1) / P(k) = (K - k) (n - k) / ((k + 1) (N - K - n + k + 1))
    up = np.log(having - k) + np.log(sample - k)
    down = np.log(k + 1.0) + np.log(everybody - having - sample + k + 1.0)
    logs = np.concatenate([[0.0], np.cumsum(up - down)])
    terms = np.exp(logs - logs.max())
    return float(terms[max(hits - first, 0) :].sum() / terms.sum())


def block_moments(hits: ArrayLike, trials: ArrayLike) -> FloatArray:
    """Return, for every block of ``n`` trials and ``y`` hits, the moments that intervals need.

    Rows 0 to 5 hold the powers of ``n``, then come ``y, y**2, y n, y**2 / n``; all are 0 in a block
    without trials.
    """
    y, n = np.asarray(hits, float), np.asarray(trials, float)
    present = n > 0
    ratio = np.divide(y * y, n, out=np.zeros_like(n), where=present)
    return np.stack([present, n, n**2, n**3, n**4, n**5, y, y * y, y * n, ratio]).astype(float)


def moment_intervals(sums: FloatArray, *, confidence: float) -> tuple[FloatArray, FloatArray]:
    """Return intervals of shares from sums of :func:`block_moments`, one per column.

    ``confidence`` is the probability that an interval holds the true share.

    These are Clopper-Pearson intervals for the effective number of trials of Korn and Graubard
    (Survey Methodology 24, 1998). That number is ``p (1 - p)`` over the variance of the share,
    times ``(z / t)**2``, at most the number of trials. If few blocks have most of the trials, the
    spread between blocks is small by chance, and poorly known. So the variance is divided by its
    expectation relative to the truth, and ``t`` has Satterthwaite's degrees of freedom. Both assume
    that trials of one block are as correlated as they were found to be (Bell and McCaffrey, Survey
    Methodology 28, 2002).

    If all trials agree, or blocks do not differ, the effective number of trials is that of blocks,
    ``(sum n)**2 / sum n**2``.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        size, hits = sums[1], sums[6]
        share = np.clip(hits / size, 0.0, 1.0)
        rest = _residual(sums)
        correction, freedom = _correction(sums)
        varies = (sums[0] > 1) & (rest > _EQUAL * sums[2]) & (share > 0) & (share < 1)
        variance = rest / size**2 * correction
        quantile = special.stdtrit(freedom, (1.0 + confidence) / 2.0)
        few = (special.ndtri((1.0 + confidence) / 2.0) / quantile) ** 2
        effective = np.minimum(share * (1.0 - share) / variance * few, size)
        effective = np.where(varies, effective, size**2 / sums[2])
    effective = np.where(size > 0, effective, 0.0)
    return binomial_interval(
        np.where(size > 0, share, 0.0) * effective, effective, confidence=confidence
    )


def _residual(sums: FloatArray) -> FloatArray:
    """Return the sum of ``(y - p n)**2`` over blocks."""
    share = sums[6] / sums[1]
    return np.asarray(sums[7] - 2.0 * share * sums[8] + share**2 * sums[2])


def _correction(sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the bias correction of the sum of squared residuals, and its degrees of freedom.

    The working model for both: hits of one block have the correlation found by an analysis of
    variance, and blocks are independent.  A single block has an infinite correction.
    """
    blocks, n1, n2, n3, n4, n5, y1, _, _, y2_n = sums
    mean_within = np.maximum(y1 - y2_n, 0.0) / np.maximum(n1 - blocks, 1.0)
    mean_between = np.maximum(y2_n - y1**2 / n1, 0.0) / (blocks - 1.0)
    typical = (n1 - n2 / n1) / (blocks - 1.0)
    spread = mean_between + (typical - 1.0) * mean_within
    r = np.where(spread > 0, np.clip((mean_between - mean_within) / spread, 0.0, 1.0), 1.0)
    # Variances of hits, w = n (1 + (n - 1) r) = a n + r n**2, and sums of their products.
    a = 1.0 - r
    w = a * n1 + r * n2
    nw, n2w = a * n2 + r * n3, a * n3 + r * n4
    w2 = a * a * n2 + 2.0 * a * r * n3 + r * r * n4
    nw2 = a * a * n3 + 2.0 * a * r * n4 + r * r * n5
    # Residuals y - p n have the covariance S = diag(w) - (n w' + w n') / N + n n' W / N**2: the
    # mean of their squares is its trace, the variance twice the trace of S S.
    mean = w - 2.0 * nw / n1 + n2 * w / n1**2
    k1, k2 = w / n1**2, -1.0 / n1
    a11, a12 = k1 * n2 + k2 * nw, k1 * nw + k2 * w2
    a21, a22 = k2 * n2, k2 * nw
    square = w2 + 2.0 * (k1 * n2w + 2.0 * k2 * nw2) + a11**2 + a22**2 + 2.0 * a12 * a21
    freedom = np.where(blocks > 1, np.maximum(mean**2 / square, 1.0), 1.0)
    return np.where(blocks > 1, w / mean, np.inf), freedom


def group_sums(moments: Iterable[FloatArray], group: IntArray, n_groups: int) -> FloatArray:
    """Return the sums of moments over groups of blocks."""
    return np.stack([np.bincount(group, row, n_groups) for row in moments])


def clustered_interval(
    hits: ArrayLike, clusters: ArrayLike, *, confidence: float
) -> tuple[float, float]:
    """Return the interval of a share whose trials are dependent within clusters.

    See :func:`moment_intervals`, also for ``confidence``; ``hits`` and ``clusters`` have an entry
    for every trial.
    """
    right = np.asarray(hits, float)
    if not right.size:
        return 0.0, 1.0
    _, label, size = np.unique(np.asarray(clusters), return_inverse=True, return_counts=True)
    moments = block_moments(np.bincount(label, right, minlength=size.size), size)
    sums = group_sums(moments, np.zeros(size.size, np.int64), 1)
    low, high = moment_intervals(sums, confidence=confidence)
    return float(low[0]), float(high[0])


def guess_moments(hits: ArrayLike, guessed: ArrayLike) -> FloatArray:
    """Return ``x, x**2, x y`` for every block, a guesser expecting ``x`` of its ``y`` hits."""
    y, x = np.asarray(hits, float), np.asarray(guessed, float)
    return np.stack([x, x * x, x * y])


def moment_ratio_intervals(
    sums: FloatArray, guesses: FloatArray, *, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Return intervals of hits over a guesser's expected hits, one per column of sums.

    The logarithm of the ratio is linearised, ``sum (y / Y - x / X)**2`` over blocks, with the
    correction and degrees of freedom of :func:`moment_intervals`. Without hits it runs from 0 to
    the upper end of the share of hits over the guesser's. It is NaN if the guesser never hits.
    ``sums`` are those of :func:`block_moments`, and ``guesses`` those of :func:`guess_moments`.
    ``confidence`` is the probability that an interval holds the true ratio.
    """
    xs, xx, xy = guesses
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        size, ys = sums[1], sums[6]
        correction, freedom = _correction(sums)
        quantile = special.stdtrit(freedom, (1.0 + confidence) / 2.0)
        rest = np.maximum(sums[7] / ys**2 - 2.0 * xy / (xs * ys) + xx / xs**2, 0.0)
        # One block alone says nothing of others.
        factor = np.where(sums[0] > 1, np.exp(quantile * np.sqrt(rest * correction)), np.inf)
        ratio = ys / xs
        most = moment_intervals(sums, confidence=confidence)[1] * size / xs
        lower, upper = np.where(ys > 0, ratio / factor, 0.0), np.where(ys > 0, ratio * factor, most)
    return np.where(xs > 0, lower, np.nan), np.where(xs > 0, upper, np.nan)


def stratified_rates(
    hits: ArrayLike,
    trials: ArrayLike,
    sizes: ArrayLike,
    *,
    frame_sizes: ArrayLike,
    confidence: float = 0.95,
) -> pd.DataFrame:
    r"""Return the rate of hits in a whole frame of blocks, from a sample of blocks by size.

    The sizes of all blocks are published. Size classes (1 to 7 people, 8 to 15, 16 to 31 and so on)
    are strata. Class h has :math:`X_h` people in the frame and :math:`x_h` in sampled blocks, which
    have :math:`y_h` hits in :math:`t_h` trials. The rate is

    .. math:: R = \sum_h \frac{X_h}{x_h} y_h \Big/ \sum_h \frac{X_h}{x_h} t_h .

    A class with at most one sampled block joins the next smaller class, unless all its blocks were
    sampled. Source: Cochran (1977), Sampling Techniques, sections 6.10 to 6.12.

    Parameters
    ----------
    hits, trials : array_like, (blocks,)
        Hits and trials of the sampled blocks; a block may have no trials.
    sizes : array_like of int, (blocks,)
        People of the sampled blocks, as published.
    frame_sizes : array_like of int
        People of every inhabited block of the frame, sampled or not.
    confidence : float in (0, 1), default 0.95

    Returns
    -------
    pandas.DataFrame
        A row for each stratum, small to large, and ``All``. ``people`` is the size of a block;
        ``frame_blocks, frame_people`` describe the frame; ``blocks, trials, hits`` the sample; and
        ``rate, lower, upper`` the result.

    Warns
    -----
    SampleWarning
        If a class of the frame has no block in the sample, so that its rate is unknown.

    Notes
    -----
    The variance is that of the jackknife that leaves out one block of a class at a time, with R
    held fixed in the sums. It is multiplied by the share of the class's blocks that was not
    sampled. Degrees of freedom are Satterthwaite's, for residuals proportional to the size of the
    block. The interval is Clopper and Pearson's for the effective number of trials.

    Examples
    --------
    >>> rates = stratified_rates(
    ...     [4, 5, 3, 9], [5, 7, 6, 60], [5, 7, 6, 60], frame_sizes=[5, 7, 6, 4, 60]
    ... )
    >>> rates[["people", "frame_blocks", "blocks", "rate"]].round(3).values.tolist()
    [['1-7', 4, 3, 0.667], ['32-63', 1, 1, 0.15], ['All', 5, 4, 0.289]]
    """
    share = check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    x = check.count_array(sizes, "sizes", lower=1)
    t = check.real_array(trials, "trials", lower=0.0)
    y = check.real_array(hits, "hits", lower=0.0)
    whole = check.count_array(frame_sizes, "frame_sizes", lower=1).reshape(-1)
    if not x.ndim == 1 or not x.shape == t.shape == y.shape:
        raise ShapeError(
            "hits, trials and sizes must have one axis of equal length, got shapes "
            f"{y.shape}, {t.shape}, {x.shape}"
        )
    if np.any(y > t):
        block = int(np.argmax(y > t))
        raise ArgumentError("hits", "must be at most trials", shown=f"{y[block]:g} of {t[block]:g}")
    left = pd.Series(whole).value_counts().sub(pd.Series(x).value_counts(), fill_value=0)
    if (left < 0).any():
        raise ArgumentError(
            f"frame_sizes must hold the sizes of the sample, got {int(-left.min())} too few of "
            f"{left.idxmin()} people"
        )
    sampled, every = (np.searchsorted(_STARTS, sizes, side="right") - 1 for sizes in (x, whole))
    stratum = _strata(
        np.bincount(sampled, minlength=_STARTS.size), np.bincount(every), whole, every
    )
    rows = []
    for group in [*np.unique(stratum[every]), None]:
        a, b = (
            np.full(k.size, True) if group is None else stratum[k] == group
            for k in (sampled, every)
        )
        rate = _stratified(
            y[a], t[a], x[a], stratum[sampled][a], whole[b], stratum[every][b], share
        )
        first, last = every[b].min(), every[b].max()
        name = "All" if group is None else f"{_STARTS[first]}-{_STARTS[last + 1] - 1}"
        rows.append((name, b.sum(), whole[b].sum(), a.sum(), t[a].sum(), y[a].sum(), *rate))
    names = ["people", "frame_blocks", "frame_people", "blocks", "trials", "hits"]
    return pd.DataFrame(rows, columns=[*names, "rate", "lower", "upper"])


def _strata(sampled: IntArray, present: IntArray, whole: IntArray, every: IntArray) -> IntArray:
    """Return each size class's stratum; warn about classes without a sampled block."""
    sampled = sampled[: present.size]
    missing = (present > 0) & (sampled == 0)
    if missing.any():
        lost = whole[missing[every]]
        warnings.warn(
            f"the sample has none of {lost.size} blocks of {lost.min()} to {lost.max()} people, "
            f"where {lost.sum()} of {whole.sum()} people of the frame live: the interval takes "
            "their rate for that of blocks of other sizes",
            SampleWarning,
            stacklevel=caller_level(),
        )
    stratum: IntArray = np.full(present.size, -1)
    joined: list[int] = []
    for kind in np.flatnonzero(present)[::-1]:
        joined.append(int(kind))
        if sampled[joined].sum() > 1 or sampled[joined].sum() == present[joined].sum():
            stratum[joined], joined = kind, []
    if joined:  # the smallest class has nothing below it
        stratum[joined] = stratum[stratum >= 0].min(initial=present.size)
    return stratum


def _stratified(
    y: FloatArray,
    t: FloatArray,
    x: IntArray,
    strata: IntArray,
    frame_sizes: IntArray,
    frame_strata: IntArray,
    confidence: float,
) -> tuple[float, float, float]:
    """Return the rate and its interval from stratified sampled blocks."""
    parts = []
    for group in np.unique(frame_strata):
        a, b = strata == group, frame_strata == group
        people = x[a].astype(float)
        parts.append(
            (y[a], t[a], people, frame_sizes[b].sum() / max(people.sum(), 1), 1 - a.sum() / b.sum())
        )
    trials = sum(g * n.sum() for _, n, _, g, _ in parts)
    if trials == 0:
        return np.nan, 0.0, 1.0
    rate = sum(g * k.sum() for k, _, _, g, _ in parts) / trials
    if not any(rest for *_, rest in parts):
        return rate, rate, rate
    variance = spread = blocks = 0.0
    for k, n, people, g, rest in parts:
        if rest and people.size > 1:
            residual, lever = k - rate * n, people / people.sum()
            left_out = (residual - lever * residual.sum()) / (1 - lever)
            part = rest * g**2 * (1 - 1 / people.size) * (left_out**2).sum() / trials**2
            freedom = max((people**2).sum() ** 2 / (people**4).sum() - 1, 1.0)
            variance, spread = variance + part, spread + part**2 / freedom
        blocks += rest * (g * n**2).sum() * g / trials**2
    effective = 1 / blocks if blocks else np.inf
    if 0 < rate < 1 and variance > _EQUAL * blocks:
        tail = (1 + confidence) / 2
        few = (special.ndtri(tail) / special.stdtrit(variance**2 / spread, tail)) ** 2
        effective = rate * (1 - rate) / variance * few
    # Never more than as many trials drawn one by one, without replacement.
    effective = min(effective, t.sum() / max(1 - t.sum() / trials, _EQUAL))
    lower, upper = binomial_interval(rate * effective, effective, confidence=confidence)
    return float(rate), float(lower), float(upper)
