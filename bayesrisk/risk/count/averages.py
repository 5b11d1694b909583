"""Averages over the releases of one count, given the truth: compiled sums and a general form."""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk._base import validation as check
from bayesrisk._base.compiling import elementwise
from bayesrisk._base.validation import FloatAnswer
from bayesrisk.distributions import Noise
from bayesrisk.distributions.base import NoiseLaw
from bayesrisk.distributions.kernels import REACH
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, ShapeError, quote
from bayesrisk.inference.count.posterior import count_posterior

_MAX_RELEASES = 2**24
_CHUNK = 2**16
# Below this precision the sum over whole numbers equals its coarser trapezoidal sums (see
# ``marginal_ratio``).
SMOOTH = 0.18
STEP = 0.6


@elementwise("float64(float64, float64)")
def marginal_ratio(precision: float, prior: float) -> float:
    """Return the average over releases of posterior / prior, if the target is in the cell.

    sum_j f(j) / (p + q exp(-rho (2 j + 1))), f the noise law, j its value, rho the precision.

    Window. The summand at j < 0, relative to that at 0, is at most exp(-rho j**2), for any p. At j
    > 1, relative to that at 1, it is at most exp(-rho (j - 1)**2). So j is in [-w, 1 + w], rho w**2
    = REACH.

    Step. By Poisson summation, a sum with spacing s differs from the integral by the transform of
    the summand at 1 / s. For s <= 2 the poles of the logistic function, pi / (2 rho) from the real
    line, decide: relatively exp(-(pi**2 / rho) (1 / s - 1 / 4)). For s >= 2 the Gaussian decides:
    exp(-pi**2 / (rho s**2)). For rho < SMOOTH that is below 1e-17 both at s = 1, the wanted sum,
    and at s = STEP sigma, the computed sum. Hence at most 33 terms at any rho.
    """
    complement = 1.0 - prior
    # Window: rho w**2 = REACH, beyond which exp(-rho w**2) is below any double.
    reach = math.sqrt(REACH / precision)
    # Step: every whole number, or STEP sigma with sigma**2 = 1 / (2 rho) where the sum is smooth.
    step = 1.0
    if precision < SMOOTH:
        step = STEP / math.sqrt(2.0 * precision)
    i = -math.floor(reach / step)
    last = math.floor((1.0 + reach) / step)
    total = 0.0
    mass = 0.0
    while i <= last:
        # f(j) is proportional to exp(-rho j**2); the ratio is 1 / (p + q exp(-rho (2 j + 1))).
        j = i * step
        weight = math.exp(-precision * j * j)
        mass += weight
        total += weight / (prior + complement * math.exp(-precision * (2.0 * j + 1.0)))
        i += 1
    return total / mass


@elementwise("float64(float64, float64)")
def marginal_excess(precision: float, prior: float) -> float:
    """Return ``marginal_ratio`` - 1, computed without the cancellation near 1.

    q**2 sum_j f(j) (1 - exp(-E))**2 / (p + q exp(-E)), E = rho (2 j + 1). Let P and Q be the laws
    of releases with and without the target. The mean of the ratio less 1 is q**2 times the sum of
    (P - Q)**2 / (p P + q Q). If E < 0, the term is taken from Q(j) = f(j + 1). Window and step are
    those of ``marginal_ratio`` on both sides.
    """
    complement = 1.0 - prior
    step = 1.0
    if precision < SMOOTH:
        step = STEP / math.sqrt(2.0 * precision)
    last = math.floor((1.0 + math.sqrt(REACH / precision)) / step)
    total = 0.0
    mass = 0.0
    i = -last
    while i <= last:
        # E = rho (2 j + 1): log of the probability of the release with the target over without.
        j = i * step
        evidence = precision * (2.0 * j + 1.0)
        decay = math.exp(-abs(evidence))
        rest = math.expm1(-abs(evidence))
        weight = math.exp(-precision * j * j)
        mass += weight
        # f(j) (1 - exp(-E))**2 / (p + q exp(-E)), or with f(j + 1) where E < 0: no overflow.
        if evidence >= 0.0:
            total += weight * rest * rest / (prior + complement * decay)
        else:
            shifted = math.exp(-precision * (j + 1.0) * (j + 1.0))
            total += shifted * rest * rest / (prior * decay + complement)
        i += 1
    return complement * complement * total / mass


def compose_risk(*risks: ArrayLike) -> FloatAnswer:
    """Return the total risk ratio of successive releases: the product of their ratios.

    Each ratio must be that of its release given the earlier ones. The posterior after one release
    is the prior of the next, so the total is the last posterior over the first prior. Source: Kazan
    and Reiter (arXiv:2204.04253), supplement S5.

    Parameters
    ----------
    *risks : array_like
        Ratios of the releases, each >= 0, broadcast against each other; or one sequence of them,
        composed along its first axis.

    Examples
    --------
    >>> print(compose_risk(1.2, 1.5))
    1.7999999999999998
    """
    if not risks:
        raise ArgumentError("compose_risk needs at least one risk ratio, got none")
    if len(risks) == 1:
        ratios = list(np.atleast_1d(check.real_array(risks[0], "risks", lower=0.0)))
    else:
        named = {
            f"risks[{i}]": check.real_array(r, f"risks[{i}]", lower=0.0)
            for i, r in enumerate(risks)
        }
        check.broadcast(**named)
        ratios = list(named.values())
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        total = np.asarray(functools.reduce(np.multiply, ratios))
    if not np.all(np.isfinite(total)):
        raise ArgumentError("risks must compose to a finite ratio, got one above 1.8e308")
    return check.answer(total)


def single_noise(noise: NoiseLaw | Noise, name: str) -> NoiseLaw:
    """Return a single noise law; raise for anything else."""
    law = noise.law() if isinstance(noise, Noise) else noise
    if not isinstance(law, NoiseLaw):
        raise ArgumentTypeError(f"{name} must have logpmf, ppf and isf, got {quote(noise)}")
    if np.asarray(law.ppf(0.5)).ndim:
        raise ArgumentError(f"{name} must be a single law, got {quote(noise)}")
    return law


def marginal_count_posterior(
    *, noise: NoiseLaw, prior_pmf: ArrayLike, tail: float = 2.0**-60
) -> FloatAnswer:
    r"""Return the average posterior of every count, given each true count, under a noise law.

    .. math:: M_{ij} = \sum_y f(y - i)\, P(X = j \mid y), \quad i, j = 0, \dots, u

    Row i is the average posterior given the truth k + i.  The absolute error is at most twice the
    ``tail``, plus rounding; at most 2**24 releases are summed.

    Parameters
    ----------
    noise : NoiseLaw
        Law of the noise, a single one with ``logpmf``, ``ppf`` and ``isf``.
    prior_pmf : array_like, shape (u + 1,)
        Prior of X = k, ..., k + u.
    tail : float, default 2**-60
        Probability of the releases left out on each side, in (0, 0.5).

    Examples
    --------
    >>> from bayesrisk.distributions import DiscreteGaussian
    >>> law = DiscreteGaussian.from_rho(0.0992264)
    >>> marginal_count_posterior(noise=law, prior_pmf=[0.8, 0.2]).round(6).tolist()
    [[0.806356, 0.193644], [0.774577, 0.225423]]
    """
    pmf = check.probability_vector(prior_pmf, "prior_pmf")
    if pmf.ndim != 1:
        raise ShapeError(f"prior_pmf must be one-dimensional, got shape {pmf.shape}")
    check.scalar(tail, "tail", lower=0.0, upper=0.5, bounds="()")
    law = single_noise(noise, "noise")
    first, last = float(law.ppf(tail)), float(law.isf(tail)) + pmf.size - 1
    if not last - first < _MAX_RELEASES:
        raise ArgumentError(
            f"noise must be worth at most {_MAX_RELEASES} releases, got {last - first + 1:g}"
        )
    truths = np.arange(pmf.size)
    total = np.zeros((pmf.size, pmf.size))
    for start in range(int(first), int(last) + 1, _CHUNK):
        y = np.arange(start, min(start + _CHUNK, int(last) + 1))
        # Releases that no admissible truth explains carry no weight either.
        weight = np.exp(np.asarray(law.logpmf(y - truths[:, None]), dtype=float))
        possible = (weight * (pmf[:, None] > 0.0)).sum(axis=0) > 0.0
        posterior = count_posterior(y[possible], noise=law, prior_pmf=pmf)
        total += weight[:, possible] @ posterior
    return total
