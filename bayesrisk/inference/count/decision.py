"""The adversary's decision under 0-1 loss (Kazan and Reiter, equation 3.5)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from bayesrisk import _validation as check
from bayesrisk._validation import IntAnswer, Number
from bayesrisk.exceptions import ArgumentError


def threshold_offset(
    precision: NDArray[np.float64], prior: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the smallest whole d with logit(prior) + precision (2 d - 1) >= 0, as float64."""
    log_odds = special.logit(prior)
    with np.errstate(over="ignore", under="ignore"):
        offset = np.ceil(0.5 - log_odds / (2.0 * precision))
        # Rounding may leave the quotient one step off; settle it by the inequality itself.
        below = log_odds + precision * (2.0 * offset - 3.0) >= 0.0
        offset = np.where(below, offset - 1.0, offset)
        short = log_odds + precision * (2.0 * offset - 1.0) < 0.0
        return np.where(short, offset + 1.0, offset)


def decision_threshold(
    *,
    rho: Number | None = None,
    prior: Number,
    known_count: ArrayLike = 0,
    sensitivity: Number = 1.0,
    sigma2: Number | None = None,
) -> IntAnswer:
    r"""Return the smallest release at which the adversary decides for the characteristics.

    .. math:: k + \lceil 1/2 + \log((1-p)/p) / (2\rho) \rceil

    Parameters
    ----------
    rho : array_like, optional
        zCDP budget of the count, > 0; give either it or ``sigma2``.
    prior : array_like
        Probability p that the target has the characteristics, in (0, 1).
    known_count : array_like of int, default 0
        Others known to have them, k.
    sensitivity : array_like, default 1.0
        L2 sensitivity that ``rho`` refers to.
    sigma2 : array_like, optional
        Scale parameter of the noise, instead of ``rho`` and ``sensitivity``.

    Returns
    -------
    int or ndarray of int64
        Threshold on the noisy count; may be negative.  Exact unless the posterior at a whole
        number is 1/2 within rounding, or the threshold exceeds 2**52.

    Raises
    ------
    ArgumentError
        If an argument is out of range, or the threshold does not fit in 62 bits.

    References
    ----------
    Kazan and Reiter (arXiv:2204.04253), equations (3.5) and (3.6).

    Examples
    --------
    >>> decision_threshold(rho=0.0992264, prior=[1 / 2, 1 / 5]).tolist()
    [1, 8]
    """
    precision = check.cell_precision(rho, sigma2, sensitivity)
    p = check.probability(prior, "prior")
    k = check.count_array(known_count, "known_count", lower=0)
    check.broadcast(prior=p, known_count=k, **{check.NOISE: precision})
    offset = threshold_offset(precision, p)
    if np.any(np.abs(offset) > 2.0**62):
        raise ArgumentError(
            f"the threshold must fit in 62 bits, got {offset.flat[np.abs(offset).argmax()]:g}; "
            "rho / sensitivity**2 is too small for this prior"
        )
    return (k + offset.astype(np.int64))[()]


def bayes_decision(
    noisy_count: ArrayLike,
    *,
    rho: Number | None = None,
    prior: Number,
    known_count: ArrayLike = 0,
    sensitivity: Number = 1.0,
    sigma2: Number | None = None,
) -> IntAnswer:
    """Return the adversary's best guess of the true count: k or k + 1.

    k + 1 where the posterior is at least 1/2, which is where the release reaches
    :func:`decision_threshold`.

    Parameters
    ----------
    noisy_count : array_like of int
        Released count y.
    rho : array_like, optional
        zCDP budget of the count, > 0; give either it or ``sigma2``.
    prior : array_like
        Probability p that the target has the characteristics, in (0, 1).
    known_count : array_like of int, default 0
        Others known to have them, k.
    sensitivity : array_like, default 1.0
        L2 sensitivity that ``rho`` refers to.
    sigma2 : array_like, optional
        Scale parameter of the noise, instead of ``rho`` and ``sensitivity``.

    Returns
    -------
    int or ndarray of int64
        ``known_count`` or ``known_count + 1``.

    References
    ----------
    Kazan and Reiter (arXiv:2204.04253), equation (3.5).

    Examples
    --------
    >>> bayes_decision([0, 1, 7, 8], rho=0.0992264, prior=1 / 5).tolist()
    [0, 0, 0, 1]
    """
    precision = check.cell_precision(rho, sigma2, sensitivity)
    p = check.probability(prior, "prior")
    k = check.count_array(known_count, "known_count", lower=0)
    y = check.count_array(noisy_count, "noisy_count")
    check.broadcast(noisy_count=y, prior=p, known_count=k, **{check.NOISE: precision})
    return (k + ((y - k) >= threshold_offset(precision, p)))[()]
