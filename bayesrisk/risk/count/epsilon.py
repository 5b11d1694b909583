"""The least epsilon that risks are compatible with: no smaller one can have been promised."""

from __future__ import annotations

import numpy as np

from bayesrisk._base import validation as check
from bayesrisk._base.validation import FloatAnswer, Number
from bayesrisk.accounting.privacy_loss import PrivacyLoss
from bayesrisk.answers import Belief
from bayesrisk.distributions import DiscreteGaussian, Noise
from bayesrisk.distributions.discrete_laplace import noise_precision
from bayesrisk.exceptions import ArgumentError, ShapeError

_MAX_PRECISION = 1e3


def implied_epsilon(belief: Belief) -> float:
    r"""Return the smallest epsilon of pure differential privacy that beliefs are compatible with.

    .. math:: \epsilon \ge \max \Big| \log\frac{\pi}{1 - \pi} - \log\frac{p}{1 - p} \Big|

    The change of the log-odds is the logarithm of the Bayes factor, P(release | there) over
    P(release | not there). Under epsilon-differential privacy (delta = 0) no release has one beyond
    epsilon, whatever the prior. Source: S. P. Kasiviswanathan and A. Smith (2014), *On the
    semantics of differential privacy: a Bayesian formulation*, Journal of Privacy and
    Confidentiality 6(1).

    The bound is in nats, and infinite if a posterior is 0 or 1.  A posterior rounded to a double
    moves it by up to 2**-53 / (1 - posterior).

    An average posterior is no single release: its bound is valid but smaller.  Gaussian noise has
    no finite epsilon at delta = 0; see :func:`attainable_epsilon`.

    Parameters
    ----------
    belief : Belief
        Priors in (0, 1) and posteriors of the statement that the target is there, where all else
        is known: the two possible data sets must be neighbours.

    Examples
    --------
    >>> print(round(implied_epsilon(Belief(prior=0.1, posterior=0.182)), 4))
    0.6944
    """
    p = check.probability(check.instance(belief, Belief, "belief").prior, "prior")
    with np.errstate(divide="ignore"):
        after = np.log(belief.posterior) - np.log1p(-np.asarray(belief.posterior))
    return float(np.abs(after - (np.log(p) - np.log1p(-p))).max())


def decision_epsilon(*, found: Number, cleared: Number, delta: float = 0.0) -> FloatAnswer:
    r"""Return the smallest epsilon that a rate of right decisions is compatible with.

    .. math:: \epsilon \ge \log \max\Big\{ \frac{a - \delta}{b}, \frac{b - \delta}{a},
        \frac{1 - a - \delta}{1 - b}, \frac{1 - b - \delta}{1 - a} \Big\}, \quad
        a = \text{found},\ b = 1 - \text{cleared}

    Every decision about one person, as :func:`decision_accuracy` and the simulated attacks give
    them, is a test of two neighbouring data sets.  Source: L. Wasserman and S. Zhou (2010), *A
    statistical framework for differential privacy*, Theorem 2.4; P. Kairouz, S. Oh and P. Viswanath
    (2015), *The composition theorem for differential privacy*, Theorem 2.1.

    The bound is in nats, and infinite where an outcome of probability above delta has none under
    the other truth.

    With estimated rates use the ends of their confidence intervals that make the bound small.

    Parameters
    ----------
    found : array_like
        Probability of deciding "there" if the target is there, in [0, 1].
    cleared : array_like
        Probability of deciding "not there" if not, in [0, 1].
    delta : float, default 0.0
        delta of the promise, in [0, 1).

    Examples
    --------
    >>> print(round(decision_epsilon(found=0.6, cleared=0.7), 4))
    0.6931
    """
    a = check.real_array(found, "found", lower=0.0, upper=1.0) + 0.0  # without minus zero
    right = check.real_array(cleared, "cleared", lower=0.0, upper=1.0) + 0.0
    failure = check.scalar(delta, "delta", lower=0.0, upper=1.0, bounds="[)")
    check.broadcast(found=a, cleared=right)
    b = 1.0 - right
    pairs = [(a, b), (b, a), (1.0 - a, right), (right, 1.0 - a)]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        bounds = [
            np.where(x > failure, np.log1p((np.maximum(x - failure, 0.0) - y) / y), 0.0)
            for x, y in pairs
        ]
    return check.answer(np.maximum(np.maximum.reduce(bounds), 0.0))


def attainable_epsilon(*, noise: Noise | DiscreteGaussian, delta: float) -> float:
    r"""Return the epsilon, at a given delta, that the best test of noisy counts attains.

    .. math:: \inf\{\epsilon \ge 0 : E[(1 - e^{\epsilon - E})_+] \le \delta\}, \quad
        E = \sum_l \rho_l (2 \eta_l + 1)

    with E the evidence if the target is there, the logarithm of the Bayes factor: the best test of
    whether the target is there decides by whether E exceeds epsilon.  Source: As for
    :func:`decision_epsilon`; by the lemma of Neyman and Pearson no other test gains more.

    Parameters
    ----------
    noise : Noise or DiscreteGaussian, shape () or (levels,)
        Noise of the count, or of each level that counts the target.
    delta : float
        delta of the promise, in [1e-12, 1).

    Returns
    -------
    float
        Epsilon, in nats, rounded down: for one person more or less it is attained, and for one
        count it is :func:`discrete_gaussian_epsilon`.  The lower end of
        :meth:`~bayesrisk.accounting.PrivacyLoss.epsilon`, whose two ends are within 1e-7 of each
        other.  rho / sensitivity**2 is at most 1000.

    Examples
    --------
    >>> print(round(attainable_epsilon(noise=Noise(rho=0.0992264), delta=1e-6), 4))
    2.0016
    """
    precision = noise_precision(noise)
    if precision.ndim > 1:
        raise ShapeError(f"noise must be one number or a list of levels, got {precision.shape}")
    if np.any(precision > _MAX_PRECISION):
        raise ArgumentError(
            f"noise must have rho / sensitivity**2 <= {_MAX_PRECISION:g}, got {precision.max():g}"
        )
    failure = check.scalar(delta, "delta", lower=1e-12, upper=1.0, bounds="[)")
    noises = [DiscreteGaussian(0.5 / level) for level in np.atleast_1d(precision).tolist()]
    return float(PrivacyLoss.of(noises).epsilon(failure).lower)
