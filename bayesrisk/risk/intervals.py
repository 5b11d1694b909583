"""Intervals of shares: of independent trials, and of trials that stand and fall with their block.

People of one block are guessed, linked and reconstructed together, so that blocks, not people, are
the independent units of every rate over people.  The sums over blocks that an interval needs are
polynomials in the trials and hits of each (:func:`block_moments`): they add up over groups of
blocks, and along a ranking.
"""

import numpy as np
import scipy.special as special
from numpy.typing import ArrayLike

from bayesrisk._types import FloatArray

__all__ = [
    "binomial_interval",
    "block_moments",
    "clustered_interval",
    "clustered_intervals",
    "guess_moments",
    "moment_intervals",
    "moment_ratio_intervals",
    "ratio_intervals",
]

_EQUAL = 1e-12  # shares of blocks that differ less do not differ, by rounding of the sums


def binomial_interval(
    successes: ArrayLike, trials: ArrayLike, *, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Return the Clopper-Pearson interval of a proportion; 0 to 1 where there are no trials."""
    k, n = np.asarray(successes, float), np.asarray(trials, float)
    tail = (1.0 - confidence) / 2.0
    with np.errstate(invalid="ignore"):
        lower = np.where(k > 0, special.betaincinv(k, n - k + 1, tail), 0.0)
        upper = np.where(k < n, special.betaincinv(k + 1, n - k, 1.0 - tail), 1.0)
    return lower, upper


def block_moments(hits: ArrayLike, trials: ArrayLike) -> FloatArray:
    """Return for every block, with ``n`` trials and ``y`` hits, what intervals are made of.

    Rows 0 to 5 hold the powers of ``n``, then come ``y, y**2, y n, y**2 / n``; all are 0 in a block
    without trials.
    """
    y, n = np.asarray(hits, float), np.asarray(trials, float)
    some = n > 0
    within = np.divide(y * y, n, out=np.zeros_like(n), where=some)
    return np.stack([some, n, n**2, n**3, n**4, n**5, y, y * y, y * n, within]).astype(float)


def moment_intervals(sums: FloatArray, *, confidence: float) -> tuple[FloatArray, FloatArray]:
    """Return intervals of shares from sums of :func:`block_moments` over blocks, one per column.

    Clopper-Pearson's for the effective number of trials of Korn and Graubard (Survey Methodology
    24, 1998), ``p (1 - p)`` over the variance of the share, times ``(z / t)**2``, never more than
    the trials.  Where few blocks have most of the trials the spread between blocks is small by
    chance, and known badly.  So the variance is divided by what it comes to on average, and ``t``
    has the degrees of freedom of Satterthwaite (Bell and McCaffrey, Survey Methodology 28, 2002),
    both if trials of one block are correlated as much as they were found to be.

    Where all trials agree, or blocks do not differ, the effective number of trials is that of
    blocks, ``(sum n)**2 / sum n**2``.
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
    """Return what the sum of squared residuals falls short by, and its degrees of freedom.

    Both by the working model: hits of one block have the correlation found by an analysis of
    variance, blocks are independent.  A single block has an infinite correction.
    """
    blocks, n1, n2, n3, n4, n5, y1, _, _, within = sums
    inside = np.maximum(y1 - within, 0.0) / np.maximum(n1 - blocks, 1.0)
    between = np.maximum(within - y1**2 / n1, 0.0) / (blocks - 1.0)
    typical = (n1 - n2 / n1) / (blocks - 1.0)
    spread = between + (typical - 1.0) * inside
    alike = np.where(spread > 0, np.clip((between - inside) / spread, 0.0, 1.0), 1.0)
    # Variances of hits, w = n (1 + (n - 1) alike) = a n + alike n**2, and sums of their products.
    a = 1.0 - alike
    w = a * n1 + alike * n2
    nw, n2w = a * n2 + alike * n3, a * n3 + alike * n4
    w2 = a * a * n2 + 2.0 * a * alike * n3 + alike * alike * n4
    nw2 = a * a * n3 + 2.0 * a * alike * n4 + alike * alike * n5
    # Residuals y - p n have the covariance S = diag(w) - (n w' + w n') / N + n n' W / N**2: the
    # mean of their squares is its trace, the variance twice the trace of S S.
    mean = w - 2.0 * nw / n1 + n2 * w / n1**2
    k1, k2 = w / n1**2, -1.0 / n1
    a11, a12 = k1 * n2 + k2 * nw, k1 * nw + k2 * w2
    a21, a22 = k2 * n2, k2 * nw
    square = w2 + 2.0 * (k1 * n2w + 2.0 * k2 * nw2) + a11**2 + a22**2 + 2.0 * a12 * a21
    freedom = np.where(blocks > 1, np.maximum(mean**2 / square, 1.0), 1.0)
    return np.where(blocks > 1, w / mean, np.inf), freedom


def clustered_intervals(
    hits: ArrayLike, trials: ArrayLike, groups: ArrayLike, n_groups: int, *, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Return intervals of shares of groups of blocks, from the hits and trials of each block.

    ``groups`` has the number of its group for each block; 0 to 1 for a group without trials.
    """
    return moment_intervals(
        _grouped(block_moments(hits, trials), groups, n_groups), confidence=confidence
    )


def _grouped(moments: FloatArray, groups: ArrayLike, n_groups: int) -> FloatArray:
    label = np.asarray(groups, np.int64)
    return np.stack([np.bincount(label, row, n_groups) for row in moments])


def clustered_interval(
    hits: ArrayLike, clusters: ArrayLike, *, confidence: float
) -> tuple[float, float]:
    """Return the interval of a share whose trials stand and fall together within clusters.

    See :func:`moment_intervals`; ``hits`` and ``clusters`` have an entry for every trial.
    """
    right = np.asarray(hits, float)
    if not right.size:
        return 0.0, 1.0
    _, label, size = np.unique(np.asarray(clusters), return_inverse=True, return_counts=True)
    right = np.bincount(label, right, minlength=size.size)
    low, high = clustered_intervals(
        right, size, np.zeros(size.size, np.int64), 1, confidence=confidence
    )
    return float(low[0]), float(high[0])


def ratio_intervals(
    hits: ArrayLike,
    guessed: ArrayLike,
    trials: ArrayLike,
    groups: ArrayLike,
    n_groups: int,
    *,
    confidence: float,
) -> tuple[FloatArray, FloatArray]:
    """Return intervals of hits over what a guesser expects to hit on the same trials, by group.

    The logarithm of the ratio is linearised, ``sum (y / Y - x / X)**2`` over blocks, with the
    correction and degrees of freedom of :func:`moment_intervals`.  Without hits it runs from 0 to
    the upper end of the share of hits over the guesser's; NaN where the guesser never hits.
    """
    sums = _grouped(block_moments(hits, trials), groups, n_groups)
    beside = _grouped(guess_moments(hits, guessed), groups, n_groups)
    return moment_ratio_intervals(sums, beside, confidence=confidence)


def guess_moments(hits: ArrayLike, guessed: ArrayLike) -> FloatArray:
    """Return ``x, x**2, x y`` for every block, of whose ``y`` hits a guesser expects ``x``."""
    y, x = np.asarray(hits, float), np.asarray(guessed, float)
    return np.stack([x, x * x, x * y])


def moment_ratio_intervals(
    sums: FloatArray, beside: FloatArray, *, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Return the intervals of :func:`ratio_intervals` from sums over blocks, one per column.

    ``sums`` are those of :func:`block_moments`, ``beside`` those of :func:`guess_moments`.
    """
    xs, xx, xy = beside
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
